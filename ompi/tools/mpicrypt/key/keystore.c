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
#include <sys/stat.h>
#include <unistd.h>

#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/parameter.h"
#include "opal/mca/common/crypt/base/secret_file.h"

/* A misspelt crypt_keystore_dir, too, would put the key where jobs do not look. */
static void complain(const char *name, const char *value, opal_crypt_parameter_t kind, const char *nearest,
                     void *wrong)
{
    char sentence[512];

    if (mpicrypt_settings_complain(name, value, kind, nearest, sentence, sizeof(sentence))) {
        *(int *) wrong = mpicrypt_error(MPICRYPT_USAGE, "%s", sentence);
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
    return mpicrypt_settings(options).fips;
}

int mpicrypt_keystore_begin(const mpicrypt_keystore_t *options)
{
    opal_crypt_why_t why = {.topic = NULL};

    if (MPICRYPT_OK != check_environment()) {
        return MPICRYPT_USAGE;
    }
    int rc = mpicrypt_keystore_fips(options) ? opal_crypt_library_open(true, &why) : OPAL_CRYPT_OK;
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused("the keystore cannot be used", rc, &why);
}

bool mpicrypt_keystore_shared(const mpicrypt_keystore_t *options)
{
    const char *backend = mpicrypt_settings(options).backend;

    return NULL != backend && (0 == strcmp(backend, "pkcs11") || 0 == strcmp(backend, "vault"));
}

int mpicrypt_keystore_open(const mpicrypt_keystore_t *options, opal_cryptfile_keystore_t **keystore)
{
    mpicrypt_keystore_t set = mpicrypt_settings(options);
    opal_cryptfile_keystore_options_t of;
    opal_crypt_why_t why = {.topic = NULL};

    if (!mpicrypt_settings_keystore(&set, &of)) {
        return mpicrypt_error(MPICRYPT_USAGE, "--keystore is file, pkcs11 or vault, not '%s'", set.backend);
    }
    int code = mpicrypt_keystore_begin(options);
    if (MPICRYPT_OK != code) {
        return code;
    }
    int rc = opal_cryptfile_keystore_open(&of, keystore, &why);
    if (OPAL_CRYPT_OK != rc && NULL != why.topic && 0 == strcmp("keystore-missing", why.topic)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s; 'mpicrypt key new LABEL' makes one", why.detail);
    }
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused("the keystore cannot be used", rc, &why);
}

/* The keystore's directory, as the options and settings name it. */
static int path_of(const mpicrypt_keystore_t *options, char *path, size_t bytes, opal_crypt_why_t *why)
{
    const char *directory = mpicrypt_settings(options).directory;

    if (NULL == directory) {
        return opal_crypt_home_path("keys", path, bytes, why);
    }
    snprintf(path, bytes, "%s", directory);
    return OPAL_CRYPT_OK;
}

bool mpicrypt_keystore_missing(const mpicrypt_keystore_t *options)
{
    const char *backend = mpicrypt_settings(options).backend;
    struct stat status;
    char path[4096];

    return (NULL == backend || 0 == strcmp(backend, "file")) && OPAL_CRYPT_OK == path_of(options, path, sizeof(path), NULL)
           && 0 != stat(path, &status) && ENOENT == errno;
}

void mpicrypt_keystore_warn(const mpicrypt_keystore_t *options)
{
    const char *backend = mpicrypt_settings(options).backend, *name = "";
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
    if (NULL == mpicrypt_settings(options).directory) {
        char *slash = strrchr(path, '/');
        *slash = '\0';
        (void) mkdir(path, 0700);
        *slash = '/';
    }
    if (0 == mkdir(path, 0700)) {
        return give_to_group(path, mpicrypt_settings(options).group);
    }
    return EEXIST == errno ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", path, strerror(errno));
}
