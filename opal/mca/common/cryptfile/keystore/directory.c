/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The names of key files in the directory of the backend `file`: LABEL.VERSION.  All other
 * files there are ignored.
 */
#include "keystore_object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    return NULL != *directory ? OPAL_CRYPT_OK
                              : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-missing", "%.512s: %s",
                                                  keystore->directory, strerror(errno));
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
