/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Is ompi-crypt installed here, where Open MPI looks, and for this Open MPI?
 */
#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#include "opal/mca/aead/aead_version.h"
#include "opal/mca/base/base.h"
#include "opal/runtime/opal.h"

#define INSTALL "Install ompi-crypt at the same place on every node, and source " OMPI_CRYPT_DATA_DIR "/env.sh where jobs " \
                "are started."
#define MIXED "Two installations are mixed: remove one, or source the env.sh of the one to which this mpicrypt belongs, " \
              OMPI_CRYPT_DATA_DIR "/env.sh, in a new shell."
#define REBUILD "Build ompi-crypt for the Open MPI that runs (configure --with-ompi=DIR) and install it, or source " \
                "the env.sh of the right one."

static void check_version(mpicrypt_report_t *report)
{
    int major = -1, minor = -1;

    sscanf(opal_version_string, "%*[^0-9]%d.%d", &major, &minor);
    if (major < 0) {
        sscanf(opal_version_string, "%d.%d", &major, &minor);
    }
    bool same = OPAL_MAJOR_VERSION == major && OPAL_MINOR_VERSION == minor;
    mpicrypt_report_add(report, same ? MPICRYPT_FOUND_OK : MPICRYPT_FOUND_FAIL, "version", same ? "" : REBUILD,
                        OPAL_CRYPT_BUILT "%d.%d, Open MPI %s", OPAL_MAJOR_VERSION, OPAL_MINOR_VERSION, opal_version_string);
}

/* ---- where components are looked for ---- */

static const char *meaning(const char *word)
{
    return 0 == strcmp(word, "SYS_DEFAULT") || 0 == strcmp(word, "SYSTEM_DEFAULT") ? mca_base_system_default_path
         : 0 == strcmp(word, "USER_DEFAULT") || 0 == strcmp(word, "USR_DEFAULT") ? mca_base_user_default_path : NULL;
}

/* Calls `visit` for every directory of the path until it returns true; `named`:
 * the user wrote it. */
static bool each_directory(bool (*visit)(mpicrypt_report_t *, const char *directory, bool named, void *),
                           mpicrypt_report_t *report, void *argument)
{
    char *text = strdup(NULL == mca_base_component_path ? "" : mca_base_component_path), *rest = text;
    bool stop = false;

    while (NULL != rest && !stop) {
        char *word = strsep(&rest, ":");
        const char *builtin = meaning(word);
        if ('\0' != *word && (NULL == builtin || '\0' != *builtin)) {
            bool ours = NULL != mca_base_system_default_path && 0 == strcmp(word, mca_base_system_default_path);
            bool users = NULL != mca_base_user_default_path && 0 == strcmp(word, mca_base_user_default_path);
            stop = visit(report, NULL == builtin ? word : builtin, NULL == builtin && !ours && !users, argument);
        }
    }
    free(text);
    return stop;
}

static bool missing_directory(mpicrypt_report_t *report, const char *directory, bool named, void *argument)
{
    if (named && 0 != access(directory, R_OK | X_OK)) {
        *(bool *) argument = true;
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "path", INSTALL,
                            "mca_base_component_path names %s, which is not there or cannot be read", directory);
    }
    return false;
}

static bool holds(mpicrypt_report_t *report, const char *directory, bool named, void *file)
{
    char path[4096];

    (void) report;
    (void) named;
    snprintf(path, sizeof(path), "%s/%s", directory, (const char *) file);
    if (0 != access(path, R_OK)) {
        return false;
    }
    memcpy(file, path, sizeof(path));
    return true;
}

/* ---- components ---- */

/* The version of ompi-crypt that the text OPAL_CRYPT_BUILT in these bytes names, or "unknown". */
static void find_version(const char *bytes, size_t count, char version[32])
{
    static const char before[] = "ompi-crypt ", behind[] = OPAL_CRYPT_BUILT_FOR;
    const char *end = bytes + count;

    snprintf(version, 32, "unknown");
    while (NULL != (bytes = memmem(bytes, (size_t) (end - bytes), before, sizeof(before) - 1))) {
        size_t length = 0;
        bytes += sizeof(before) - 1;
        while (length < 31 && bytes + length < end && isgraph((unsigned char) bytes[length])) {
            ++length;
        }
        if ((size_t) (end - bytes) >= length + sizeof(behind) - 1 && 0 == memcmp(bytes + length, behind, sizeof(behind) - 1)) {
            snprintf(version, 32, "%.*s", (int) length, bytes);
            return;
        }
    }
}

static void version_of(const char *path, char version[32])
{
    enum { MOST = 16 << 20 };
    char *bytes = malloc(MOST);
    FILE *file = fopen(path, "re");

    find_version(bytes, NULL == bytes || NULL == file ? 0 : fread(bytes, 1, MOST, file), version);
    free(bytes);
    if (NULL != file) {
        fclose(file);
    }
}

static void check_series(mpicrypt_report_t *report, const char *path, const char *name, void *handle)
{
    static const char own[] = OPAL_CRYPT_BUILT;
    char symbol[128], version[32], own_version[32];
    const mca_base_component_t *component;

    find_version(own, sizeof(own) - 1, own_version);
    version_of(path, version);
    snprintf(symbol, sizeof(symbol), "mca_%s_component", name);
    component = dlsym(handle, symbol);
    if (NULL == component) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "component", REBUILD, "%s holds no component", path);
    } else if (OPAL_MAJOR_VERSION != component->mca_component_major_version
               || OPAL_MINOR_VERSION != component->mca_component_minor_version) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "component", REBUILD,
                            "%s was built for Open MPI %d.%d, but %d.%d runs", path,
                            component->mca_component_major_version, component->mca_component_minor_version,
                            OPAL_MAJOR_VERSION, OPAL_MINOR_VERSION);
    } else if (0 != strcmp(own_version, version)) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "component", MIXED,
                            "%s is of ompi-crypt %s, but this mpicrypt of %s", path, version, own_version);
    } else {
        mpicrypt_report_add(report, MPICRYPT_FOUND_OK, "component", "", "%s", path);
    }
}

/* `name`: "pml_crypt" is required; others may not have been built. */
static void check_component(mpicrypt_report_t *report, const char *name, mpicrypt_found_t missing)
{
    char path[4096];

    snprintf(path, sizeof(path), "mca_%s.so", name);
    if (!each_directory(holds, report, path)) {
        mpicrypt_report_add(report, missing, "component", INSTALL, "%s is in no directory of %s", path,
                            NULL == mca_base_component_path ? "the component path" : mca_base_component_path);
        return;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (NULL != handle) {
        check_series(report, path, name, handle);
        return;             /* it stays: its destructor must not run before ours */
    }
    const char *error = dlerror();
    bool other = NULL != error && (NULL != strstr(error, "libopen-pal") || NULL != strstr(error, "libmpi.so")
                                   || NULL != strstr(error, "undefined symbol"));
    mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "component", other ? REBUILD : INSTALL, "%s cannot be loaded%s: %s",
                        path, other ? ", it was built for another Open MPI" : "", NULL == error ? "" : error);
}

static bool means_none(const char *text)
{
    return NULL != text && (0 == strcmp(text, "none") || 0 == strcmp(text, "0") || 0 == strcmp(text, "false")
                            || 0 == strcmp(text, "no"));
}

/* Some installations of Open MPI set it; in 4.1 it is a boolean. */
static void check_silence(mpicrypt_report_t *report)
{
    int index = mca_base_var_find("opal", "mca", "base", "component_show_load_errors");
    const mca_base_var_t *var;
    const mca_base_var_storage_t *value = NULL;

    if (index < 0 || OPAL_SUCCESS != mca_base_var_get(index, &var)
        || OPAL_SUCCESS != mca_base_var_get_value(index, &value, NULL, NULL) || NULL == value) {
        return;
    }
    if (MCA_BASE_VAR_TYPE_STRING == var->mbv_type ? means_none(value->stringval) : !value->boolval) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_NOTE, "component", "",
                            "mca_base_component_show_load_errors is off: Open MPI does not say which components it cannot load");
    }
}

void mpicrypt_check_installation(mpicrypt_report_t *report)
{
    static const char *const needed[] = {"pml_crypt", "hook_crypt", "btl_crypt"}, *const others[] = {"coll_cryptag", "fs_crypt", "fbtl_crypt"};
    bool missing = false;

    check_version(report);
    each_directory(missing_directory, report, &missing);
    if (!missing) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_OK, "path", "", "%s",
                            NULL == mca_base_component_path ? "" : mca_base_component_path);
    }
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); ++i) {
        check_component(report, needed[i], MPICRYPT_FOUND_FAIL);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
        check_component(report, others[i], MPICRYPT_FOUND_WARN);
    }
    check_silence(report);
}
