/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Making a pre-shared key.  The file is written under another name and then
 * linked or renamed to its own, so that half a key can never be read.
 */
#include "keygen_make.h"
#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES  4096
#define KEY_BYTES   32
#define TEXT_BYTES  (2 * KEY_BYTES + 1)

static int refuse(const char *topic, const char *path, int error, opal_crypt_why_t *why)
{
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, topic, "%s: %s", path, strerror(error));
}

/* Make the directory of `path` if it is missing; refuse one in which jobs refuse a key. */
static int make_directory(const char *path, opal_crypt_why_t *why)
{
    char directory[PATH_BYTES];
    char *slash;

    memcpy(directory, path, strlen(path) + 1);
    slash = strrchr(directory, '/');
    if (NULL != slash && slash != directory) {
        *slash = 0;
        if (0 != mkdir(directory, 0700) && EEXIST != errno) {
            return refuse("keygen-directory", directory, errno, why);
        }
    }
    opal_crypt_why_t found;
    int fd, rc = opal_crypt_secret_file_directory(path, "pre-shared key", &fd, &found);
    if (OPAL_CRYPT_OK == rc) {
        close(fd);
    } else if (0 != strcmp("secret-directory", found.topic)) {
        return OPAL_CRYPT_OK;           /* if it cannot be opened, writing will fail, and be reported */
    } else if (NULL != why) {
        *why = found;
    }
    return rc;
}

/* Write a fresh key into an open file of mode 0600. */
static int write_key(int fd, const char *path, opal_crypt_why_t *why)
{
    uint8_t *key = opal_crypt_secmem_alloc(KEY_BYTES);
    char *text = opal_crypt_secmem_alloc(TEXT_BYTES);
    int rc = OPAL_CRYPT_OK;

    if (NULL == key || NULL == text) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "no-secret-memory", "%s", path);
    } else {
        opal_crypt_random(key, KEY_BYTES);
        opal_crypt_hex_write(key, KEY_BYTES, text);
        text[TEXT_BYTES - 1] = '\n';
        errno = ENOSPC;         /* what a short write means */
        if (TEXT_BYTES != write(fd, text, TEXT_BYTES) || 0 != fsync(fd)) {
            rc = refuse("keygen-write", path, errno, why);
        }
    }
    opal_crypt_secmem_free(text);
    opal_crypt_secmem_free(key);
    return rc;
}

static int put_in_place(const char *fresh, const char *path, int flags, opal_crypt_why_t *why)
{
    if (0 != (flags & MPICRYPT_KEYGEN_FORCE)) {
        return 0 == rename(fresh, path) ? OPAL_CRYPT_OK : refuse("keygen-write", path, errno, why);
    }
    if (0 != link(fresh, path)) {
        return EEXIST == errno ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keygen-exists", "%s", path)
                               : refuse("keygen-write", path, errno, why);
    }
    unlink(fresh);
    return OPAL_CRYPT_OK;
}

int mpicrypt_psk_make(const char *path, int flags, opal_crypt_why_t *why)
{
    char fresh[PATH_BYTES + 16];
    struct stat status;
    int fd, rc;

    if (0 == path[0] || strlen(path) >= PATH_BYTES) {
        return refuse("keygen-write", path, 0 == path[0] ? ENOENT : ENAMETOOLONG, why);
    }
    if (0 == (flags & MPICRYPT_KEYGEN_FORCE) && 0 == lstat(path, &status)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keygen-exists", "%s", path);
    }
    rc = make_directory(path, why);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    snprintf(fresh, sizeof(fresh), "%s.new.%lu", path, (unsigned long) getpid());
    fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return refuse("keygen-write", fresh, errno, why);
    }
    rc = opal_crypt_secret_file_place(fd, path, "pre-shared key", 0 != (flags & MPICRYPT_KEYGEN_NETFS),
                                      NULL, why);
    if (OPAL_CRYPT_OK == rc && 0 != fchmod(fd, 0600)) {
        rc = refuse("keygen-write", path, errno, why);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = write_key(fd, path, why);
    }
    close(fd);
    if (OPAL_CRYPT_OK == rc) {
        rc = put_in_place(fresh, path, flags, why);
    }
    if (OPAL_CRYPT_OK != rc) {
        unlink(fresh);
    }
    return rc;
}
