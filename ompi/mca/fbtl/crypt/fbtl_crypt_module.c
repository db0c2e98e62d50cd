/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Blocking transfers.  They never return an error: OMPIO would lose it, or hang
 * over it.  It is noted for the function that the application called.
 */
#include "fbtl_crypt.h"

#include <stdlib.h>

static mca_fbtl_base_module_t *under_of(const ompio_file_t *fh)
{
    return ((ompi_fbtl_crypt_module_t *) fh->f_fbtl)->under;
}

ompi_common_cryptmpio_file_t *ompi_fbtl_crypt_state(const ompio_file_t *fh)
{
    ompi_common_cryptmpio_module_t *module = ompi_common_cryptmpio_module(fh);

    return NULL != module && NULL != module->state && module->state->encrypted ? module->state : NULL;
}

static ssize_t transfer(ompio_file_t *fh, ompi_common_cryptmpio_file_t *state, bool writing)
{
    opal_cryptfile_outcome_t outcome;
    ssize_t bytes = ompi_common_cryptmpio_transfer(state, writing, fh->f_io_array, fh->f_num_of_io_entries, &outcome);

    ompi_common_cryptmpio_note(ompi_common_cryptmpio_report(state, writing, &outcome));
    return bytes;
}

/* What is refused of a plain file fails as in an encrypted one of which nothing is known. */
static bool is_ours(const ompi_common_cryptmpio_file_t *state, bool writing)
{
    return state->encrypted || ompi_common_cryptmpio_refuses(state, writing);
}

static ssize_t preadv_(ompio_file_t *fh)
{
    ompi_common_cryptmpio_file_t *state = ompi_common_cryptmpio_module(fh)->state;

    return is_ours(state, false) ? transfer(fh, state, false) : under_of(fh)->fbtl_preadv(fh);
}

static ssize_t pwritev_(ompio_file_t *fh)
{
    ompi_common_cryptmpio_file_t *state = ompi_common_cryptmpio_module(fh)->state;

    return is_ours(state, true) ? transfer(fh, state, true) : under_of(fh)->fbtl_pwritev(fh);
}

static int module_init(ompio_file_t *fh)
{
    return under_of(fh)->fbtl_module_init(fh);
}

static int module_finalize(ompio_file_t *fh)
{
    ompi_fbtl_crypt_module_t *module = (ompi_fbtl_crypt_module_t *) fh->f_fbtl;
    int rc = module->under->fbtl_module_finalize(fh);

    free(module);
    fh->f_fbtl = NULL;
    return rc;
}

/* What Open MPI 5.0 asks before it sets atomic mode. */
static bool __opal_attribute_unused__ check_atomicity(ompio_file_t *fh)
{
    return NULL != ompi_fbtl_crypt_state(fh) || OMPI_COMMON_CRYPTMPI_FBTL_IS_ATOMIC(under_of(fh), fh);
}

mca_fbtl_base_module_t *ompi_fbtl_crypt_module(mca_fbtl_base_module_t *under)
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
    };
    return &module->super;
}
