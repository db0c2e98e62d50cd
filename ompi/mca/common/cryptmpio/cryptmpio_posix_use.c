/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The users of an encrypted file.  `mpicrypt file reencrypt` puts a new file in its place; a process that goes on with the
 * old one would write what nobody reads.  `rekey` overwrites both maps with one that it has read, and would undo what a
 * job or another rekey changed in between; `seal` seals blocks that must not change meanwhile, in pages that a reader
 * must not see half written.  So every user holds a shared lock on one byte for as long as the file is open, and these
 * three hold it exclusively:
 *
 *     a job         open, lock | still there? | use ...
 *     reencrypt     open, lock exclusively | copy ... | exchange the names
 *
 * Writers hold a second byte, shared.  A job that seals the file when closing it holds that byte exclusively
 * until the sealing ends: a later write would change blocks under a valid seal.  Nobody waits for either.
 *
 * A third byte is the maker's, exclusively, until header, maps and attribute are written.  Others wait for it, and look
 * again; if a maker dies, the kernel releases it:
 *
 *     open   lock | still there, and not made?  write ... | unlock
 *     another       lock .................................| made: use it
 */
#include "cryptmpio_posix.h"

#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool ompi_common_cryptmpio_posix_is_at(int fd, const char *path)
{
    struct stat open_one, named;

    return 0 == fstat(fd, &open_one) && 0 == stat(path, &named) && open_one.st_dev == named.st_dev &&
           open_one.st_ino == named.st_ino;
}

/* realpath() has a call to the file system for each directory; the kernel knows the whole path. */
char *ompi_common_cryptmpio_posix_real_path(int fd, const char *path)
{
    char link[64], real[PATH_MAX];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t bytes = readlink(link, real, sizeof(real) - 1);
    real[bytes > 0 ? bytes : 0] = '\0';
    return '/' == real[0] && ompi_common_cryptmpio_posix_is_at(fd, real) ? strdup(real) : realpath(path, NULL);
}

int ompi_common_cryptmpio_posix_use(const ompi_common_cryptmpio_posix_t *posix, const char *path, bool alone,
                                    ompi_common_cryptmpio_use_t *use)
{
    bool got = false;
    int rc = alone ? ompi_common_cryptmpio_posix_lock_now(posix, OMPI_CRYPTMPIO_LOCK_USE, true, &got)
                   : ompi_common_cryptmpio_posix_share_now(posix, posix->may_write, &got);

    if (OPAL_CRYPT_OK == rc) {
        *use = !got ? OMPI_CRYPTMPIO_USE_BUSY
               : !ompi_common_cryptmpio_posix_is_at(posix->data_fd, path) ? OMPI_CRYPTMPIO_USE_OTHER : OMPI_CRYPTMPIO_USE_OURS;
    }
    return rc;
}

const char *ompi_common_cryptmpio_posix_why_not(ompi_common_cryptmpio_use_t use)
{
    return OMPI_CRYPTMPIO_USE_BUSY == use ? "mpicrypt file reencrypt, rekey or seal is working on it, or a job that seals it"
                                          : "another file was put in its place while it was opened";
}

int ompi_common_cryptmpio_posix_maker_lock(ompi_common_cryptmpio_posix_t *posix, const char *path, bool *there)
{
    int rc = posix->super.lock(&posix->super, OMPI_CRYPTMPIO_LOCK_MAKER, 1, posix->may_write);

    *there = OPAL_CRYPT_OK == rc && ompi_common_cryptmpio_posix_is_at(posix->data_fd, path);
    return rc;
}

void ompi_common_cryptmpio_posix_maker_unlock(ompi_common_cryptmpio_posix_t *posix)
{
    (void) posix->super.unlock(&posix->super, OMPI_CRYPTMPIO_LOCK_MAKER, 1);
}
