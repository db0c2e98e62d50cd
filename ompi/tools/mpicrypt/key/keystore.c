/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Opening the keystore that the options name.
 */
#include "keystore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/parameter.h"
#include "opal/mca/common/crypt/base/secret_file.h"

/* An empty parameter counts as not set, as for jobs. */
static const char *setting(const char *option, const char *variable)
{
    const char *value = getenv(variable);

    return NULL != option ? option : NULL == value || '\0' == *value ? NULL : value;
}

/* True by Open MPI's rules. */
static bool is_on(const char *value)
{
    return NULL != value && (0 != atoi(value) || 0 == strcasecmp(value, "true") || 0 == strcasecmp(value, "t")
                             || 0 == strcasecmp(value, "enabled") || 0 == strcasecmp(value, "yes"));
}

/* Settings for jobs are the defaults of options: a key made where jobs do not look
 * would be a puzzle. */
static mpicrypt_keystore_t with_environment(const mpicrypt_keystore_t *options)
{
    return (mpicrypt_keystore_t){
        .backend = setting(options->backend, "OMPI_MCA_crypt_keystore"),
        .directory = setting(options->directory, "OMPI_MCA_crypt_keystore_dir"),
        .group = setting(options->group, "OMPI_MCA_crypt_keystore_group"),
        .log_file = setting(options->log_file, "OMPI_MCA_crypt_keystore_log"),
        .machine_key_file = setting(options->machine_key_file, "OMPI_MCA_crypt_keystore_machine_key"),
        .pkcs11_module = setting(options->pkcs11_module, "OMPI_MCA_crypt_pkcs11_module"),
        .pkcs11_token = setting(options->pkcs11_token, "OMPI_MCA_crypt_pkcs11_token"),
        .pkcs11_pin_file = setting(options->pkcs11_pin_file, "OMPI_MCA_crypt_pkcs11_pin_file"),
        .netfs = options->netfs || is_on(getenv("OMPI_MCA_crypt_secret_on_netfs")),
        .fips = options->fips || is_on(getenv("OMPI_MCA_crypt_fips")),
    };
}

/* A misspelt crypt_keystore_dir, too, would put the key where jobs do not look. */
static void complain(const char *name, const char *value, opal_crypt_parameter_t kind, const char *nearest,
                     void *wrong)
{
    if (OPAL_CRYPT_PARAMETER_UNKNOWN == kind) {
        *(int *) wrong = mpicrypt_error(MPICRYPT_USAGE, "OMPI_MCA_%s is set, and there is no such parameter%s%s%s", name,
                                        NULL == nearest ? "" : "; did you mean ", NULL == nearest ? "" : nearest,
                                        NULL == nearest ? "" : "?");
    } else if (OPAL_CRYPT_PARAMETER_UNREADABLE == kind) {
        *(int *) wrong = mpicrypt_error(MPICRYPT_USAGE, "OMPI_MCA_%s=%s cannot be read%s%s", name, value,
                                        NULL == nearest ? "" : "; it is one of: ", NULL == nearest ? "" : nearest);
    }
}

static int check_environment(void)
{
    int wrong = MPICRYPT_OK;

    opal_crypt_parameter_environment(complain, &wrong);
    return wrong;
}

bool mpicrypt_keystore_fips(const mpicrypt_keystore_t *options)
{
    return with_environment(options).fips;
}

int mpicrypt_keystore_open(const mpicrypt_keystore_t *options, opal_cryptfile_keystore_t **keystore)
{
    mpicrypt_keystore_t set = with_environment(options);
    opal_cryptfile_keystore_options_t of = {
        .backend = OPAL_CRYPTFILE_KEYSTORE_FILE,
        .directory = set.directory,
        .group = set.group,
        .log_file = set.log_file,
        .machine_key_file = set.machine_key_file,
        .secret_on_netfs = set.netfs,
        .pkcs11_module = set.pkcs11_module,
        .pkcs11_token = set.pkcs11_token,
        .pkcs11_pin_file = set.pkcs11_pin_file,
    };
    opal_crypt_why_t why = {.topic = NULL};

    if (NULL != set.backend && 0 == strcmp(set.backend, "pkcs11")) {
        of.backend = OPAL_CRYPTFILE_KEYSTORE_PKCS11;
    } else if (NULL != set.backend && 0 != strcmp(set.backend, "file")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--keystore is file or pkcs11, not '%s'", set.backend);
    }
    if (MPICRYPT_OK != check_environment()) {
        return MPICRYPT_USAGE;
    }
    int rc = set.fips ? opal_crypt_library_open(true, &why) : OPAL_CRYPT_OK;
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_keystore_open(&of, keystore, &why) : rc;
    if (OPAL_CRYPT_OK != rc && NULL != why.topic && 0 == strcmp("keystore-missing", why.topic)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s; 'mpicrypt key new LABEL' makes one", why.detail);
    }
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused("the keystore cannot be used", rc, &why);
}

/* The keystore's directory, as the options and settings name it. */
static int path_of(const mpicrypt_keystore_t *options, char *path, size_t bytes, opal_crypt_why_t *why)
{
    const char *directory = with_environment(options).directory;

    if (NULL == directory) {
        return opal_crypt_home_path("keys", path, bytes, why);
    }
    snprintf(path, bytes, "%s", directory);
    return OPAL_CRYPT_OK;
}

void mpicrypt_keystore_warn(const mpicrypt_keystore_t *options)
{
    const char *backend = with_environment(options).backend, *name = "";
    opal_crypt_fs_t kind;
    char path[4096];

    if ((NULL == backend || 0 == strcmp(backend, "file")) && OPAL_CRYPT_OK == path_of(options, path, sizeof(path), NULL)
        && OPAL_CRYPT_OK == opal_crypt_fs_of(path, &kind, &name)
        && (0 == strcmp(name, "tmpfs") || 0 == strcmp(name, "ramfs"))) {
        fprintf(stderr, "mpicrypt: WARNING: %s is in memory (%s): at the next reboot the key is lost, and with it every file "
                "encrypted under it\n", path, name);
    }
}

/* Give a directory that was just made to the group, if there is one.  Nobody makes a keystore for another user. */
static int give_to_group(const char *path, const char *text)
{
    opal_crypt_secret_group_t group;
    opal_crypt_why_t why = {.topic = NULL};

    if (NULL == text) {
        return MPICRYPT_OK;
    }
    int rc = opal_crypt_secret_group_parse(text, &group, &why);
    if (OPAL_CRYPT_OK != rc) {
        rmdir(path);
        return mpicrypt_refused("the keystore cannot be made", rc, &why);
    }
    if (geteuid() != group.owner) {
        rmdir(path);
        return mpicrypt_error(MPICRYPT_FAILED, "%s cannot be made: another user would own it, by crypt_keystore_group (%s)", path, text);
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool shared = fd >= 0 && 0 == fchown(fd, (uid_t) -1, group.group) && 0 == fchmod(fd, 0750);
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (!shared) {
        rmdir(path);
        return mpicrypt_error(MPICRYPT_FAILED, "%s cannot be given to %s: %s", path, text, strerror(error));
    }
    return MPICRYPT_OK;
}

int mpicrypt_keystore_directory(const mpicrypt_keystore_t *options)
{
    char path[4096];
    opal_crypt_why_t why = {.topic = NULL};

    if (MPICRYPT_OK != check_environment()) {
        return MPICRYPT_USAGE;
    }
    int rc = path_of(options, path, sizeof(path), &why);
    if (OPAL_CRYPT_OK != rc) {
        return mpicrypt_refused("the keystore's directory", rc, &why);
    }
    if (NULL == with_environment(options).directory) {
        char *slash = strrchr(path, '/');
        *slash = '\0';
        (void) mkdir(path, 0700);
        *slash = '/';
    }
    if (0 == mkdir(path, 0700)) {
        return give_to_group(path, with_environment(options).group);
    }
    return EEXIST == errno ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", path, strerror(errno));
}
