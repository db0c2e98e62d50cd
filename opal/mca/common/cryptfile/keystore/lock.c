/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One process at a time changes a keystore: the record that it has read is still
 * current when it writes it back.  The lock is on a file of its own, DIRECTORY/lock,
 * which stays empty and is never deleted; the directory itself could not be locked on
 * NFS, where only a file open for writing can be.  Processes that only use keys take
 * no lock, since records change by rename.
 */
#include "keystore_object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* *fd: to be closed, which ends the lock; -1: no locks are available. */
static int lock_file(const opal_cryptfile_keystore_t *keystore, int *fd, opal_crypt_why_t *why)
{
    char path[4200];
    int rc;

    *fd = -1;
    if (keystore->ops->server) {                /* which has locks of its own */
        return OPAL_CRYPT_OK;
    }
    if (keystore->of_another) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-directory", "%.512s: only its owner changes a group's keystore",
                                 keystore->directory);
    }
    snprintf(path, sizeof(path), "%s/lock", keystore->directory);
    *fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    if (*fd < 0 && ENOENT == errno) {           /* `pkcs11` needs no directory; without one, `file` fails later */
        return OPAL_CRYPT_OK;
    }
    if (*fd < 0) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-file", "%.512s: %s", path, strerror(errno));
    }
    do {
        rc = flock(*fd, LOCK_EX);
    } while (0 != rc && EINTR == errno);
    if (0 == rc) {
        return OPAL_CRYPT_OK;
    }
    int error = errno;
    close(*fd);
    *fd = -1;
    /* For example, Lustre without -o flock: keys can be created there, one command after the other. */
    return ENOSYS == error || EOPNOTSUPP == error
               ? OPAL_CRYPT_OK
               : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-file", "%.512s: %s", path, strerror(error));
}

int opal_cryptfile_keystore_change(opal_cryptfile_keystore_t *keystore, const char *label, opal_crypt_why_t *why)
{
    if (NULL != label && !opal_cryptfile_key_label_valid(label)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-label", "%.80s", label);
    }
    int fd, rc = lock_file(keystore, &fd, why);
    if (OPAL_CRYPT_OK == rc) {
        pthread_mutex_lock(&keystore->lock);
        keystore->change_fd = fd;
    }
    return rc;
}

void opal_cryptfile_keystore_changed(opal_cryptfile_keystore_t *keystore)
{
    const int fd = keystore->change_fd;

    pthread_mutex_unlock(&keystore->lock);
    if (fd >= 0) {
        close(fd);
    }
}
