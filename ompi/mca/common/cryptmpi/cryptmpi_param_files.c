/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Open MPI's parameter files, read once more.  Open MPI does not tell a file's value for a name that is not
 * registered yet, nor, once mpirun of 5.0 has read the files, which values of the environment come from them; and
 * it skips the override file where it reads no other.
 */
#include "cryptmpi_param_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_vari.h"
#include "opal/mca/installdirs/installdirs.h"
#include "opal/util/opal_environ.h"

typedef ompi_common_cryptmpi_param_files_t files_t;

static void read_file(files_t *files, const char *directory, const char *name, size_t bytes)
{
    if (OMPI_COMMON_CRYPTMPI_PARAM_FILES == files->count || 0 == bytes
        || asprintf(&files->names[files->count], "%s%.*s", directory, (int) bytes, name) < 0) {
        return;
    }
    for (int i = 0; i < files->count; i++) {
        if (0 == strcmp(files->names[i], files->names[files->count])) {
            free(files->names[files->count]);
            return;
        }
    }
    (void) mca_base_parse_paramfile(files->names[files->count++], &files->values);
}

/* If two files set a parameter, the first in the list wins: it is read last. */
static void read_list(files_t *files, const char *list)
{
    const size_t bytes = strcspn(list, ",");

    if ('\0' != list[bytes]) {
        read_list(files, list + bytes + 1);
    }
    read_file(files, "", list, bytes);
}

static const char *path_of(const char *parameter)
{
    const char **value = NULL;
    int index = mca_base_var_find("opal", "mca", "base", parameter);

    return index >= 0 && OPAL_SUCCESS == mca_base_var_get_value(index, &value, NULL, NULL) && NULL != value ? *value : NULL;
}

/* Open MPI 5.0's mpirun may have read the usual files, and passes their values in the
 * environment; a process then has no list of the files. */
static void read_handed_over(files_t *files)
{
    static const char user[] = "/.openmpi/mca-params.conf", site[] = "/openmpi-mca-params.conf";
    const char *home = opal_home_directory();

    if (NULL != getenv("OPAL_SYS_PARAMS_GIVEN")) {
        read_file(files, opal_install_dirs.sysconfdir, site, sizeof(site) - 1);
    }
    if (NULL != getenv("OPAL_USER_PARAMS_GIVEN") && NULL != home) {
        read_file(files, home, user, sizeof(user) - 1);
    }
}

void ompi_common_cryptmpi_param_files_read(files_t *files)
{
    const char *usual = path_of("param_files");

    files->count = 0;
    OBJ_CONSTRUCT(&files->values, opal_list_t);
    read_handed_over(files);
    if (NULL != usual && 0 != strcmp(usual, "none")) {
        read_list(files, usual);
    }
    files->override = path_of("override_param_file");
    if (NULL != files->override) {
        (void) mca_base_parse_paramfile(files->override, &files->values);
    }
}

void ompi_common_cryptmpi_param_files_free(files_t *files)
{
    OPAL_LIST_DESTRUCT(&files->values);
    for (int i = 0; i < files->count; i++) {
        free(files->names[i]);
    }
}

const mca_base_var_file_value_t *ompi_common_cryptmpi_param_files_value(const files_t *files, const char *name)
{
    const mca_base_var_file_value_t *value;

    OPAL_LIST_FOREACH(value, &files->values, mca_base_var_file_value_t) {
        if (0 == strcmp(value->mbvfv_var, name)) {
            return value;
        }
    }
    return NULL;
}
