/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Removing the key files of a label.  Nothing is overwritten first: a journal, a snapshot or the wear leveling of a
 * flash disk keeps old blocks whatever is written over them.
 */
#include "key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* LABEL.VERSION.PID.new, left by a store whose process was killed, may hold a key in the clear. */
int opal_cryptfile_key_file_remove_unfinished(const opal_cryptfile_keystore_t *keystore, DIR *directory, const char *label,
                                              opal_crypt_why_t *why)
{
    const size_t bytes = strlen(label);

    for (struct dirent *entry; NULL != (entry = readdir(directory));) {
        const char *rest = entry->d_name + bytes;

        if (0 == strncmp(entry->d_name, label, bytes) && '.' == *rest) {
            rest += 1 + strspn(rest + 1, "0123456789");
            rest += '.' == *rest ? 1 + strspn(rest + 1, "0123456789") : 0;
            if (0 == strcmp(rest, ".new") && 0 != unlinkat(dirfd(directory), entry->d_name, 0) && ENOENT != errno) {
                return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-file", "%.512s/%s: %s", keystore->directory,
                                         entry->d_name, strerror(errno));
            }
        }
    }
    rewinddir(directory);
    return OPAL_CRYPT_OK;
}

static int compare_versions(const void *a, const void *b)
{
    return (int) *(const uint16_t *) a - (int) *(const uint16_t *) b;
}

/* The versions of a label, the oldest first: by the names of their files, as a damaged one can be removed, too. */
static int versions_of(DIR *directory, const char *label, uint16_t **versions, size_t *count)
{
    char name[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1];
    uint16_t version;

    *count = 0;
    *versions = calloc(UINT16_MAX, sizeof(**versions));
    if (NULL == *versions) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    while (*count < UINT16_MAX && opal_cryptfile_keystore_next(directory, label, name, &version)) {
        (*versions)[(*count)++] = version;
    }
    qsort(*versions, *count, sizeof(**versions), compare_versions);
    return OPAL_CRYPT_OK;
}

/* The newest is the last to go: were an older one left, new files would use that. */
static int remove_versions(opal_cryptfile_keystore_t *keystore, DIR *directory, const char *label, unsigned *count,
                           opal_crypt_why_t *why)
{
    char name[OPAL_CRYPTFILE_KEY_LABEL_MAX + 8];
    uint16_t *versions;
    size_t found;
    int rc = versions_of(directory, label, &versions, &found);

    for (size_t i = 0; OPAL_CRYPT_OK == rc && i < found; ++i) {
        rc = opal_cryptfile_keystore_log_change(keystore, "delete", label, versions[i], why);
        snprintf(name, sizeof(name), "%s.%u", label, versions[i]);
        if (OPAL_CRYPT_OK == rc && 0 != unlinkat(dirfd(directory), name, 0)) {
            rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-file", "%.512s/%s: %s", keystore->directory, name,
                                   strerror(errno));
        }
        rc = opal_cryptfile_keystore_log_end(keystore, "delete", label, versions[i], rc);
        *count += OPAL_CRYPT_OK == rc;
    }
    free(versions);
    if (0 != fsync(dirfd(directory)) && EINVAL != errno && OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-file", "%.512s: %s", keystore->directory, strerror(errno));
    }
    return rc;
}

int opal_cryptfile_key_file_remove_all(opal_cryptfile_keystore_t *keystore, const char *label, unsigned *count,
                                       opal_crypt_why_t *why)
{
    DIR *directory;
    int rc = opal_cryptfile_keystore_directory(keystore, &directory, why);

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_key_file_remove_unfinished(keystore, directory, label, why);
        rc = OPAL_CRYPT_OK == rc ? remove_versions(keystore, directory, label, count, why) : rc;
        closedir(directory);
    }
    return rc;
}
