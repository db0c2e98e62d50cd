/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Verifying: every byte is read, into secret memory, and dropped.
 */
#include "lib/mpicrypt_file/reader.h"

#include <errno.h>

#include "opal/mca/common/crypt/base/secmem.h"

enum { VERIFY_BYTES = 4 << 20, VERIFY_THREAD_BYTES = 1 << 20, VERIFY_MOST_BYTES = 64 << 20 };

static int verify_with(mpicrypt_file_t *file, uint8_t *memory, size_t capacity, int (*progress)(void *arg, uint64_t done, uint64_t of),
                       void *arg, int *stopped, mpicrypt_file_error_t *error)
{
    uint64_t end = 0;
    size_t got = 1;
    int status = mpicrypt_size(file, &end, error);

    for (uint64_t at = 0; at < end && got > 0 && MPICRYPT_FILE_OK == status; at += got) {
        status = mpicrypt_read(file, at, memory, capacity, &got, error);
        if (MPICRYPT_FILE_OK == status && NULL != progress) {
            int said = progress(arg, at + got < end ? at + got : end, end);
            if (0 != said) {
                *(NULL == stopped ? &said : stopped) = said;
                break;
            }
        }
    }
    return status;
}

int mpicrypt_verify(mpicrypt_file_t *file, int (*progress)(void *arg, uint64_t done, uint64_t of), void *arg, int *stopped,
                    mpicrypt_file_error_t *error)
{
    const size_t wanted = (size_t) file->threads * VERIFY_THREAD_BYTES, limited = wanted < VERIFY_MOST_BYTES ? wanted : VERIFY_MOST_BYTES;
    const size_t capacity = limited > VERIFY_BYTES ? limited : VERIFY_BYTES;

    if (file->plain) {
        return mpicrypt_fail(error, MPICRYPT_FILE_ERR_PLAIN, 0, MPICRYPT_FILE_NOWHERE, file->name,
                             "it is not encrypted: there is nothing by which it could be verified");
    }
    uint8_t *memory = opal_crypt_secmem_alloc(capacity);
    int status = NULL == memory ? mpicrypt_fail(error, MPICRYPT_FILE_ERR_MEMORY, ENOMEM, MPICRYPT_FILE_NOWHERE, file->name, "out of memory")
                                : verify_with(file, memory, capacity, progress, arg, stopped, error);
    opal_crypt_secmem_free(memory);
    return status;
}
