/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * fbtl/crypt: OMPIO's reads and writes go to the block engine if the file is
 * encrypted, and to the component that would have served the file if it is
 * not.
 */
#ifndef OMPI_MCA_FBTL_CRYPT_H
#define OMPI_MCA_FBTL_CRYPT_H

#include "ompi/mca/common/cryptmpio/cryptmpio.h"
#include "ompi/mca/common/ompio/common_ompio_request.h"
#include "ompi/mca/fbtl/base/base.h"
#include "ompi/mca/fbtl/fbtl.h"

extern OMPI_DECLSPEC mca_fbtl_base_component_2_0_0_t mca_fbtl_crypt_component;

/* One for each file. */
typedef struct ompi_fbtl_crypt_module {
    mca_fbtl_base_module_t super;
    mca_fbtl_base_module_t *under;
    const ompi_common_cryptmpio_module_t *fs;   /* fs/crypt's module; has the state once the file is open */
} ompi_fbtl_crypt_module_t;

mca_fbtl_base_module_t *ompi_fbtl_crypt_module(mca_fbtl_base_module_t *under, const ompi_common_cryptmpio_module_t *fs);

static inline const ompi_fbtl_crypt_module_t *ompi_fbtl_crypt_module_of(const ompio_file_t *fh)
{
    return (const ompi_fbtl_crypt_module_t *) fh->f_fbtl;
}

/* Read or write `count` entries of an OMPIO list; from any thread, touches no OMPIO structure but the
 * list.  Returns the byte count that OMPIO expects even after an error, which is reported in
 * `outcome`. */
ssize_t ompi_fbtl_crypt_transfer(ompi_common_cryptmpio_file_t *state, bool writing, const mca_common_ompio_io_array_t *entries,
                                 int count, opal_cryptfile_outcome_t *outcome);

/* Read an empty file. */
void ompi_fbtl_crypt_nothing(const ompio_file_t *fh);

/* In a blocking call: note an error, if any, for the function that the application called. */
void ompi_fbtl_crypt_note(const ompi_common_cryptmpio_file_t *state, bool writing, const opal_cryptfile_outcome_t *outcome);

/* ---- non-blocking requests ---- */

ssize_t ompi_fbtl_crypt_ipreadv(ompio_file_t *fh, ompi_request_t *request);
ssize_t ompi_fbtl_crypt_ipwritev(ompio_file_t *fh, ompi_request_t *request);
bool ompi_fbtl_crypt_progress(mca_ompio_request_t *request);
void ompi_fbtl_crypt_request_free(mca_ompio_request_t *request);

/* End the thread that works on them. */
void ompi_fbtl_crypt_async_stop(void);

#endif
