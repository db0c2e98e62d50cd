/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Making a sidecar where others may want to make the same.  Whoever makes it has
 * the maker's lock until header, map and the data's attribute are written:
 *
 *     open, or create   lock | still there, and vacant?  write ...  attribute | unlock
 *     another           lock ................................................| whole: use it
 *
 * A sidecar that is vacant belongs to whoever has the lock: he makes it, or deletes
 * it.  The kernel takes the lock from a maker that dies; what he leaves is vacant,
 * but for the short time that writing takes.
 */
#include "cryptmpio_posix.h"

#include "opal/mca/common/cryptfile/file/sidecar.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Another may have deleted it, and a third may have made a new one. */
static bool lies_at(const ompi_common_cryptmpio_posix_t *posix, const char *sidecar)
{
    return ompi_common_cryptmpio_posix_lies_at(posix->sidecar_fd, sidecar);
}

int ompi_common_cryptmpio_posix_maker_lock(ompi_common_cryptmpio_posix_t *posix, const char *sidecar, bool *there)
{
    int rc = posix->super.lock(&posix->super, OMPI_CRYPTMPIO_LOCK_MAKER, 1, posix->may_write);

    *there = OPAL_CRYPT_OK == rc && lies_at(posix, sidecar);
    return rc;
}

void ompi_common_cryptmpio_posix_maker_unlock(ompi_common_cryptmpio_posix_t *posix)
{
    (void) posix->super.unlock(&posix->super, OMPI_CRYPTMPIO_LOCK_MAKER, 1);
}

bool ompi_common_cryptmpio_posix_is_vacant(ompi_common_cryptmpio_posix_t *posix)
{
    uint64_t bytes;

    return OPAL_CRYPT_OK == posix->super.size(&posix->super, OPAL_CRYPTFILE_SIDECAR, &bytes) &&
           bytes <= OPAL_CRYPTFILE_SIDECAR_FREE;
}

int ompi_common_cryptmpio_posix_abandon(ompi_common_cryptmpio_posix_t *posix, const char *sidecar)
{
    int rc = !lies_at(posix, sidecar) || 0 == unlink(sidecar) ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
    int error = errno;

    ompi_common_cryptmpio_posix_close(posix);
    errno = error;
    return rc;
}

/* As long as the name that it had, so that there is room for it. */
int ompi_common_cryptmpio_posix_set_aside(ompi_common_cryptmpio_posix_t *posix, const char *sidecar)
{
    static const char ending[] = ".mpic-old";
    char *aside = strdup(sidecar);
    int rc = OPAL_CRYPT_ERR_STORAGE, error;

    _Static_assert(sizeof(ending) == sizeof(OPAL_CRYPTFILE_SIDECAR_SUFFIX), "one name is as long as the other");
    if (NULL != aside) {
        memcpy(aside + strlen(aside) - strlen(ending), ending, sizeof(ending));
        rc = lies_at(posix, sidecar) && 0 != rename(sidecar, aside) ? OPAL_CRYPT_ERR_STORAGE : OPAL_CRYPT_OK;
    }
    error = errno;
    free(aside);
    ompi_common_cryptmpio_posix_close(posix);
    errno = error;
    return rc;
}
