/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A keystore's directory: whose it is, and the names of the backend `file`: LABEL.VERSION.
 * All other files there are ignored.
 */
#include "keystore_object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A user who can rename its files could bring back a revoked key, or make an older version the newest. */
int opal_cryptfile_keystore_directory_check(const opal_crypt_secret_group_t *group, int fd, const char *path, opal_crypt_why_t *why)
{
    struct stat status;

    if (NULL != group) {
        return opal_crypt_secret_group_directory(fd, "keystore", path, group, why);
    }
    if (0 != fstat(fd, &status)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-directory", "%.512s: %s", path, strerror(errno));
    }
    if (0 != status.st_uid && geteuid() != status.st_uid) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-directory",
                                 "%.512s: it belongs to user id %lu, this process runs as %lu", path,
                                 (unsigned long) status.st_uid, (unsigned long) geteuid());
    }
    if (0 != (status.st_mode & (S_IWGRP | S_IWOTH)) && 0 == (status.st_mode & S_ISVTX)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-directory",
                                 "%.512s: others can write to it, its mode is 0%o", path,
                                 (unsigned) status.st_mode & 07777);
    }
    return OPAL_CRYPT_OK;
}

/* Parse LABEL.VERSION; false for any other name. */
static bool split_name(const char *name, char label[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1], uint16_t *version)
{
    const char *dot = strrchr(name, '.');
    char *end, again[8];

    if (NULL == dot || dot == name || dot - name > OPAL_CRYPTFILE_KEY_LABEL_MAX) {
        return false;
    }
    unsigned long number = strtoul(dot + 1, &end, 10);
    if (0 == number || number > UINT16_MAX) {
        return false;
    }
    snprintf(again, sizeof(again), "%lu", number);
    memcpy(label, name, (size_t) (dot - name));
    label[dot - name] = '\0';
    *version = (uint16_t) number;
    return 0 == strcmp(again, dot + 1) && opal_cryptfile_key_label_valid(label);
}

int opal_cryptfile_keystore_directory(const opal_cryptfile_keystore_t *keystore, DIR **directory,
                                      opal_crypt_why_t *why)
{
    *directory = opendir(keystore->directory);
    if (NULL == *directory) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-missing", "%.512s: %s", keystore->directory, strerror(errno));
    }
    int rc = opal_cryptfile_keystore_directory_check(keystore->group, dirfd(*directory), keystore->directory, why);
    if (OPAL_CRYPT_OK != rc) {
        closedir(*directory);
    }
    return rc;
}

bool opal_cryptfile_keystore_next(DIR *directory, const char *label, char name[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1],
                                  uint16_t *version)
{
    for (struct dirent *entry; NULL != (entry = readdir(directory));) {
        if (split_name(entry->d_name, name, version) && (NULL == label || 0 == strcmp(label, name))) {
            return true;
        }
    }
    return false;
}
