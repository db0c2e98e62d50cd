/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Removing the key files of a label.  Nothing is overwritten first: a journal, a snapshot or the wear leveling of a
 * flash disk keeps old blocks whatever is written over them.
 *
 * A revoked version leaves an empty file FINGERPRINT.revoked, so that an old message cannot bring the key back into use.
 */
#include "key_file.h"
#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/secmem.h"

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

enum { MARK_BYTES = 2 * OPAL_CRYPTFILE_FINGERPRINT_BYTES + sizeof(".revoked") };

static const char *mark_of(const uint8_t fingerprint[OPAL_CRYPTFILE_FINGERPRINT_BYTES], char name[MARK_BYTES])
{
    opal_crypt_hex_write(fingerprint, OPAL_CRYPTFILE_FINGERPRINT_BYTES, name);
    return strcat(name, ".revoked");
}

/* What cannot be determined counts as revoked. */
bool opal_cryptfile_key_file_was_revoked(const opal_cryptfile_keystore_t *keystore, const uint8_t fingerprint[OPAL_CRYPTFILE_FINGERPRINT_BYTES])
{
    char name[MARK_BYTES], path[4200];

    snprintf(path, sizeof(path), "%s/%s", keystore->directory, mark_of(fingerprint, name));
    return 0 == faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) || ENOENT != errno;
}

/* The mark is on the disk before the key file goes.  One that cannot be read has no fingerprint to remember. */
static int leave_mark(const opal_cryptfile_keystore_t *keystore, int directory, const char *label, unsigned version, opal_crypt_why_t *why)
{
    opal_cryptfile_key_file_t *content;
    char name[MARK_BYTES];
    bool plain;

    if (OPAL_CRYPT_OK != opal_cryptfile_key_file_load_any(keystore, label, version, &content, &plain, NULL)) {
        return OPAL_CRYPT_OK;
    }
    const bool revoked = content->record.revoked;
    mark_of(content->record.fingerprint, name);
    opal_crypt_secmem_free(content);
    if (!revoked) {
        return OPAL_CRYPT_OK;
    }
    int fd = openat(directory, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    if (fd >= 0) {
        close(fd);
        if (0 == fsync(directory) || EINVAL == errno) {
            return OPAL_CRYPT_OK;
        }
    }
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-file", "%.512s/%s: %s", keystore->directory, name, strerror(errno));
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
        rc = leave_mark(keystore, dirfd(directory), label, versions[i], why);
        rc = rc ? rc : opal_cryptfile_keystore_log(keystore, "delete", label, versions[i], NULL, NULL, why);
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
