/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * From OMPIO's list of entries to the block engine, in blocking calls.  They never return an
 * error: OMPIO would lose it, or hang because of it.  It is noted for the function that the
 * application called.
 */
#include "fbtl_crypt.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* OMPIO's list of entries serves as the engine's list of requests. */
#define SAME_MEMBER(ompios, ours)                                                                                       \
    (offsetof(mca_common_ompio_io_array_t, ompios) == offsetof(opal_cryptfile_request_t, ours) &&                       \
     sizeof(((mca_common_ompio_io_array_t *) NULL)->ompios) == sizeof(((opal_cryptfile_request_t *) NULL)->ours))
static_assert(SAME_MEMBER(memory_address, memory) && SAME_MEMBER(offset, offset) && SAME_MEMBER(length, bytes) &&
                  sizeof(mca_common_ompio_io_array_t) == sizeof(opal_cryptfile_request_t), "OMPIO's entries are our requests");

/* Report success to OMPIO, so that no process leaves an exchange early;
 * readers get zeros. */
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

void ompi_fbtl_crypt_nothing(const ompio_file_t *fh)
{
    if (ompi_common_cryptmpio_exchanging()) {
        (void) pretend(false, fh->f_io_array, fh->f_num_of_io_entries);
    }
}

/* Does a read end early in an exchange buffer of OMPIO, which is sent as a whole, and may hold another file's bytes? */
static bool is_short(const opal_cryptfile_outcome_t *outcome, const mca_common_ompio_io_array_t *entries, int count)
{
    uint64_t total = 0;

    for (int i = 0; i < count; ++i) {
        total += entries[i].length;
    }
    return ompi_common_cryptmpio_exchanging() && outcome->bytes < total;
}

ssize_t ompi_fbtl_crypt_transfer(ompi_common_cryptmpio_file_t *state, bool writing, const mca_common_ompio_io_array_t *entries,
                                 int count, opal_cryptfile_outcome_t *outcome)
{
    const opal_cryptfile_request_t *requests = (const opal_cryptfile_request_t *) entries;
    bool atomic = 0 != state->fh->f_atomicity;

    if (NULL == state->file) {
        *outcome = (opal_cryptfile_outcome_t){.rc = OPAL_CRYPT_ERR_ACCESS, .region = UINT32_MAX};
    } else if (writing) {
        (void) opal_cryptfile_write(state->file, requests, (size_t) count, atomic, outcome);
    } else {
        (void) opal_cryptfile_read(state->file, requests, (size_t) count, atomic, outcome);
        if (OPAL_CRYPT_OK == outcome->rc && is_short(outcome, entries, count)) {
            (void) pretend(false, entries, count);
            (void) opal_cryptfile_read(state->file, requests, (size_t) count, atomic, outcome);
        }
    }
    return OPAL_CRYPT_OK == outcome->rc ? (ssize_t) outcome->bytes : pretend(writing, entries, count);
}

void ompi_fbtl_crypt_note(const ompi_common_cryptmpio_file_t *state, bool writing, const opal_cryptfile_outcome_t *outcome)
{
    if (OPAL_CRYPT_OK != outcome->rc || outcome->torn) {
        ompi_common_cryptmpio_note(ompi_common_cryptmpio_report(state, writing, outcome));
    }
}

static ssize_t transfer_now(ompio_file_t *fh, ompi_common_cryptmpio_file_t *state, bool writing)
{
    opal_cryptfile_outcome_t outcome;
    ssize_t bytes = ompi_fbtl_crypt_transfer(state, writing, fh->f_io_array, fh->f_num_of_io_entries, &outcome);

    ompi_fbtl_crypt_note(state, writing, &outcome);
    return bytes;
}

/* A refused access to a plain file fails like one to an encrypted file without an engine. */
static ssize_t preadv_(ompio_file_t *fh)
{
    const ompi_fbtl_crypt_module_t *module = ompi_fbtl_crypt_module_of(fh);
    ompi_common_cryptmpio_file_t *state = module->fs->state;

    if (state->encrypted || ompi_common_cryptmpio_refuses(state, false)) {
        return transfer_now(fh, state, false);
    }
    if (state->bare) {
        ompi_fbtl_crypt_nothing(fh);
        return 0;
    }
    return module->under->fbtl_preadv(fh);
}

static ssize_t pwritev_(ompio_file_t *fh)
{
    const ompi_fbtl_crypt_module_t *module = ompi_fbtl_crypt_module_of(fh);
    ompi_common_cryptmpio_file_t *state = module->fs->state;

    return state->encrypted || ompi_common_cryptmpio_refuses(state, true) ? transfer_now(fh, state, true)
                                                                          : module->under->fbtl_pwritev(fh);
}

static int module_init(ompio_file_t *fh)
{
    return ompi_fbtl_crypt_module_of(fh)->under->fbtl_module_init(fh);
}

static int module_finalize(ompio_file_t *fh)
{
    ompi_fbtl_crypt_module_t *module = (ompi_fbtl_crypt_module_t *) fh->f_fbtl;
    int rc = module->under->fbtl_module_finalize(fh);

    free(module);
    fh->f_fbtl = NULL;
    return rc;
}

/* Open MPI 5.0 calls this before it sets atomic mode. */
static bool __opal_attribute_unused__ check_atomicity(ompio_file_t *fh)
{
    const ompi_fbtl_crypt_module_t *module = ompi_fbtl_crypt_module_of(fh);
    const ompi_common_cryptmpio_file_t *state = module->fs->state;

    return (NULL != state && state->encrypted) || OMPI_COMMON_CRYPTMPI_FBTL_IS_ATOMIC(module->under, fh);
}

mca_fbtl_base_module_t *ompi_fbtl_crypt_module(mca_fbtl_base_module_t *under, const ompi_common_cryptmpio_module_t *fs)
{
    ompi_fbtl_crypt_module_t *module = calloc(1, sizeof(*module));

    if (NULL == module) {
        return NULL;
    }
    *module = (ompi_fbtl_crypt_module_t){
        .super = {
            .fbtl_module_init = module_init,
            .fbtl_module_finalize = module_finalize,
            .fbtl_preadv = preadv_,
            .fbtl_ipreadv = ompi_fbtl_crypt_ipreadv,
            .fbtl_pwritev = pwritev_,
            .fbtl_ipwritev = ompi_fbtl_crypt_ipwritev,
            .fbtl_progress = ompi_fbtl_crypt_progress,
            .fbtl_request_free = ompi_fbtl_crypt_request_free,
            OMPI_COMMON_CRYPTMPI_FBTL_EXTRAS(check_atomicity)
        },
        .under = under,
        .fs = fs,
    };
    return &module->super;
}
