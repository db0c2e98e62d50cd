/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * From OMPIO's list of entries to the block engine.  It may run in a thread of
 * our own: no OMPIO structure but the list is touched.
 */
#include "cryptmpio_internal.h"

#include <stdlib.h>
#include <string.h>

/* What OMPIO is to believe: that all went well.  Nobody leaves an exchange
 * early then, and readers get zeros. */
static ssize_t pretend(bool writing, const mca_common_ompio_io_array_t *entries, int count)
{
    ssize_t total = 0;

    for (int i = 0; i < count; ++i) {
        if (!writing) {
            memset(entries[i].memory_address, 0, entries[i].length);
        }
        total += (ssize_t) entries[i].length;
    }
    return total;
}

ssize_t ompi_common_cryptmpio_transfer(ompi_common_cryptmpio_file_t *state, bool writing,
                                       const mca_common_ompio_io_array_t *entries, int count,
                                       opal_cryptfile_outcome_t *outcome)
{
    opal_cryptfile_request_t *requests = NULL;
    bool atomic = 0 != state->fh->f_atomicity;

    *outcome = (opal_cryptfile_outcome_t){.rc = OPAL_CRYPT_ERR_ACCESS, .region = UINT32_MAX};
    if (NULL != state->file) {
        requests = malloc((size_t) count * sizeof(*requests));
        outcome->rc = NULL == requests ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;
    }
    for (int i = 0; NULL != requests && i < count; ++i) {
        requests[i] = (opal_cryptfile_request_t){(uint64_t) (uintptr_t) entries[i].offset, entries[i].memory_address,
                                                    entries[i].length};
    }
    if (OPAL_CRYPT_OK == outcome->rc && writing) {
        (void) opal_cryptfile_write(state->file, requests, (size_t) count, atomic, outcome);
    } else if (OPAL_CRYPT_OK == outcome->rc) {
        (void) opal_cryptfile_read(state->file, requests, (size_t) count, atomic, outcome);
    }
    free(requests);
    return OPAL_CRYPT_OK == outcome->rc ? (ssize_t) outcome->bytes : pretend(writing, entries, count);
}
