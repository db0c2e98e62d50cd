/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file seal: every block is opened, then all of them together are
 * sealed.  The root is for the user to keep: whoever has it knows this version
 * of the file from every other.
 */
#include <errno.h>
#include <string.h>

#include "mpicrypt_file.h"

static int make(mpicrypt_file_t *file)
{
    opal_common_crypt_storage_t *storage = &file->posix.super;
    opal_common_crypt_outcome_t outcome;
    int rc = opal_common_crypt_sidecar_unseal(storage);

    for (uint32_t i = 0; i < file->map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        if (file->map->regions[i].encrypted && OPAL_CRYPT_OK != opal_common_crypt_seal_region(file->file, i, file->bytes, &outcome)) {
            return mpicrypt_file_failed(file, &outcome);
        }
    }
    rc = rc ? rc : ompi_common_cryptmpio_posix_sync(&file->posix);
    rc = rc ? rc : opal_common_crypt_seal_finish(storage, file->bytes);
    rc = rc ? rc : ompi_common_cryptmpio_posix_sync(&file->posix);
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK
                               : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", file->path, strerror(errno));
}

int mpicrypt_file_seal(const mpicrypt_file_options_t *options, const char *path)
{
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    char text[OPAL_CRYPT_SEAL_TEXT_BYTES];
    mpicrypt_file_t file;
    bool good;
    int code = mpicrypt_file_open_verified(options, path, true, &file);

    if (MPICRYPT_OK != code) {
        return code;
    }
    code = mpicrypt_file_check(options, &file, &good);
    if (MPICRYPT_OK == code) {
        code = make(&file);
    }
    if (MPICRYPT_OK == code && OPAL_CRYPT_OK == opal_common_crypt_seal_hash(file.file, hash)) {
        opal_common_crypt_seal_text(hash, text);
        printf("%sroot %s\n", options->json ? "" : "\n", text);
    }
    mpicrypt_file_close(&file);
    return code;
}
