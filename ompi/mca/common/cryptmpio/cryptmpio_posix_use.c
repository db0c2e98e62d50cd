/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Who has an encrypted file open.  `mpicrypt file compact` and `reencrypt` put new files in
 * the place of its parts; who goes on with the old ones would write what nobody reads, or
 * read what does not fit.  `rekey` puts a map that it has read over both maps, and would undo
 * what a job or another rekey has changed in between; `seal` makes a seal of blocks that must
 * not change meanwhile, by pages that a reader must not see half made.  So everybody has a
 * lock on one byte of the sidecar for as long as the file is open, shared, and these four have
 * it alone:
 *
 *     a job       open the data | open the sidecar, lock | both still there? | use ...
 *     compact                                open, lock alone | new sidecar | rename
 *
 * Who may write has a second byte, shared.  A job that seals the file when it closes it has that alone
 * to the end of the sealing: what is written later would lie under a seal that holds.
 *
 * Nobody waits for either.  Who opened the old parts and gets the lock after a rename finds that
 * other files lie there.
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
               : !ompi_common_cryptmpio_posix_lies_at(posix->sidecar_fd, sidecar) ? OMPI_CRYPTMPIO_USE_OTHER_SIDECAR
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
