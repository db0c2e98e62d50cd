/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Does anything bypass encryption?  Some components of other frameworks carry
 * payload past the PML.  This runs in pml_enable, when they have been discovered
 * but are not in use yet.
 *
 *   coll   only components that are known to send through the PML, or to stay
 *          within a node, are left in the list; the others are taken out, as
 *          basic and tuned can do everything.
 *   osc    a component that is not known to send through the PML is asked
 *          only about windows that stay on one node (audit_osc.c).
 *   files  a file that backs shared memory must be on a file system that is
 *          known to be local.
 *   shmem  OpenSHMEM in the same program has its own paths.
 *
 * Safe components are known by name (cryptmpi_names.c).  With crypt_audit = warn
 * everything is reported, and nothing is changed.
 */
#include "pml_crypt_host.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/common/crypt/base/secret_file.h"
#include "opal/util/proc.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_names.h"

bool ompi_pml_crypt_audit_finding(const char *component, const char *remedy, bool fatal)
{
    bool warn = OPAL_CRYPTPROC_AUDIT_WARN == opal_cryptproc_params.audit;

    if (warn) {
        opal_cryptproc_found();
    }
    if (warn || fatal) {
        OPAL_CRYPTPROC_SHOW("help-mpi-pml-crypt.txt", warn ? "plaintext-possible" : "plaintext-path", component,
                       remedy);
    }
    return !warn;
}

/* ---- coll ---- */

static bool coll_is_safe(const char *name)
{
    return ompi_common_cryptmpi_coll_rides(name)
           || (OPAL_CRYPTPROC_ALL != opal_cryptproc_params.scope && ompi_common_cryptmpi_coll_local(name));
}

static void audit_coll(void)
{
    mca_base_component_list_item_t *item, *next;
    char name[128];

    OPAL_LIST_FOREACH_SAFE(item, next, &ompi_coll_base_framework.framework_components,
                           mca_base_component_list_item_t) {
        const mca_base_component_t *component = item->cli_component;
        if (coll_is_safe(component->mca_component_name)) {
            continue;
        }
        snprintf(name, sizeof(name), "coll/%s", component->mca_component_name);
        if (ompi_pml_crypt_audit_finding(name, "none needed: it is switched off, other components do its work",
                                         false)) {
            opal_list_remove_item(&ompi_coll_base_framework.framework_components, &item->super);
            OBJ_RELEASE(item);
        }
    }
}

/* ---- files behind shared memory ---- */

/* For a path that does not exist yet, its nearest existing parent decides.  When in doubt,
 * it counts as a network file system. */
static bool is_local(const char *path, char *kind, size_t bytes)
{
    char place[PATH_MAX];
    struct statfs system;
    const char *name;
    int rc = -1;

    if (snprintf(place, sizeof(place), "%s", path) >= (int) sizeof(place)) {
        errno = ENAMETOOLONG;
    } else {
        for (char *slash; 0 != (rc = statfs(place, &system)) && ENOENT == errno && '\0' != *place
                            && NULL != (slash = strrchr(place + 1, '/'));) {
            *slash = '\0';
        }
    }
    if (0 != rc) {
        snprintf(kind, bytes, "%s", strerror(errno));
        return false;
    }
    bool local = OPAL_CRYPT_FS_LOCAL == opal_crypt_fs_kind((unsigned long) system.f_type, &name);
    snprintf(kind, bytes, "%s", name);
    return local;
}

static int audit_directory(const char *what, const char *path)
{
    char remedy[512], kind[128];

    if (NULL == path || is_local(path, kind, sizeof(kind))) {
        return OMPI_SUCCESS;
    }
    snprintf(remedy, sizeof(remedy), "%s is on a file system that is a network's, or of an unknown kind (%s: %s); "
             "set TMPDIR, or the parameter that names it, to a directory of this node", what, kind, path);
    return ompi_pml_crypt_audit_finding("shared memory backed by a file", remedy, true) ? OMPI_ERR_NOT_SUPPORTED
                                                                                        : OMPI_SUCCESS;
}

static const char *directory_parameter(const char *full_name)
{
    const char **value = NULL;
    int index;

    return OPAL_SUCCESS == mca_base_var_find_by_name(full_name, &index)
                   && OPAL_SUCCESS == mca_base_var_get_value(index, &value, NULL, NULL) && NULL != value
               ? *value : NULL;
}

/* Is an integer parameter of Open MPI nonzero? */
static bool is_on(const char *full_name)
{
    const int *value = NULL;
    int index;

    return OPAL_SUCCESS == mca_base_var_find_by_name(full_name, &index)
           && OPAL_SUCCESS == mca_base_var_get_value(index, &value, NULL, NULL) && NULL != value && 0 != *value;
}

/* A parameter exists only if its component was loaded. */
static int audit_files(void)
{
    static const char *const directories[] = {
        "btl_vader_backing_directory", "btl_sm_backing_directory", "osc_sm_backing_directory", "osc_rdma_backing_directory",
        "coll_xhc_shmem_backing",
    };
    int rc = audit_directory("the session directory", opal_process_info.job_session_dir);

    rc = rc ? rc : audit_directory("the session directory", opal_process_info.proc_session_dir);
    for (size_t i = 0; 0 == rc && i < sizeof(directories) / sizeof(*directories); ++i) {
        rc = audit_directory(directories[i], directory_parameter(directories[i]));
    }
    if (0 == rc && is_on("shmem_mmap_relocate_backing_file")) {     /* then all backing files are there */
        rc = audit_directory("shmem_mmap_backing_file_base_dir", directory_parameter("shmem_mmap_backing_file_base_dir"));
    }
    return rc;
}

/* ---- OpenSHMEM ---- */

/* A program that is linked with an OpenSHMEM, Open MPI's or another, may put and get past MPI. */
static int audit_shmem(void)
{
    if (NULL == dlsym(RTLD_DEFAULT, "shmem_init") || NULL == dlsym(RTLD_DEFAULT, "shmem_putmem")) {
        return OMPI_SUCCESS;
    }
    return ompi_pml_crypt_audit_finding("OpenSHMEM, with which the program is linked",
                                        "none: its puts and gets do not pass through MPI; link the program without it", true)
               ? OMPI_ERR_NOT_SUPPORTED : OMPI_SUCCESS;
}

int ompi_pml_crypt_audit_transport(void)
{
    int rc = audit_shmem();

    audit_coll();
    return rc ? rc : audit_files();
}

int ompi_pml_crypt_audit(void)
{
    ompi_pml_crypt_audit_osc();
    return ompi_pml_crypt_audit_transport();
}
