/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The users of an open encrypted file.  `mpicrypt file compact` and `reencrypt` replace its
 * parts by new files; a process that goes on with the old ones would write what nobody reads,
 * or read parts that do not match.  `rekey` overwrites both maps with one that it has read, and
 * would undo what a job or another rekey changed in between; `seal` seals blocks that must
 * not change meanwhile, in pages that a reader must not see half written.  So every user holds a
 * shared lock on one byte of the sidecar for as long as the file is open, and these four hold
 * it exclusively:
 *
 *     a job       open the data | open the sidecar, lock | both still there? | use ...
 *     compact                                open, lock excl. | new sidecar | rename
 *
 * Writers hold a second byte, shared.  A job that seals the file when closing it holds that byte exclusively
 * until the sealing ends: a later write would change blocks under a valid seal.
 *
 * Nobody waits for either.  A process that opened the old parts and gets the lock after a rename
 * finds that the names lead to other files.
 */
#include "cryptmpio_posix.h"

#include "opal/mca/common/cryptfile/file/sidecar.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool ompi_common_cryptmpio_posix_lies_at(int fd, const char *path)
{
    struct stat open_one, named;

    return 0 == fstat(fd, &open_one) && 0 == lstat(path, &named) && open_one.st_dev == named.st_dev &&
           open_one.st_ino == named.st_ino;
}

int ompi_common_cryptmpio_posix_use(const ompi_common_cryptmpio_posix_t *posix, const char *sidecar, bool alone,
                                    ompi_common_cryptmpio_use_t *use)
{
    char *data = strndup(sidecar, strlen(sidecar) - strlen(OPAL_CRYPTFILE_SIDECAR_SUFFIX));
    bool got = false;
    int rc = NULL == data ? OPAL_CRYPT_ERR_STORAGE : ompi_common_cryptmpio_posix_lock_now(posix, OMPI_CRYPTMPIO_LOCK_USE, alone, &got);

    if (OPAL_CRYPT_OK == rc && got && posix->may_write && !alone) {
        rc = ompi_common_cryptmpio_posix_lock_now(posix, OMPI_CRYPTMPIO_LOCK_WRITERS, false, &got);
    }

    if (OPAL_CRYPT_OK == rc) {
        *use = !got ? OMPI_CRYPTMPIO_USE_BUSY
               : !ompi_common_cryptmpio_posix_is_one(posix) && !ompi_common_cryptmpio_posix_lies_at(posix->sidecar_fd, sidecar)
                   ? OMPI_CRYPTMPIO_USE_OTHER_SIDECAR
               : !ompi_common_cryptmpio_posix_lies_at(posix->data_fd, data) ? OMPI_CRYPTMPIO_USE_OTHER_DATA
                                                                            : OMPI_CRYPTMPIO_USE_OURS;
    }
    free(data);
    return rc;
}

const char *ompi_common_cryptmpio_posix_why_not(ompi_common_cryptmpio_use_t use)
{
    return OMPI_CRYPTMPIO_USE_BUSY == use ? "mpicrypt file compact, reencrypt, rekey or seal is working on it, or a job that seals it"
                                          : "another file was put in its place while it was opened";
}
