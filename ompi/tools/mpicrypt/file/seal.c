/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file seal: every block is opened, then all of them together are
 * sealed.  The root is for the user to keep: it tells this version of the file
 * from every other.  A seal that the file already has must fit, or this would
 * approve any change made since; --anew allows it.  The file is locked exclusively
 * meanwhile: a writer would change what is being sealed, another seal would mix its
 * pages with ours, and a reader would find pages without their root.
 */
#include <errno.h>
#include <string.h>

#include "file.h"
#include "opal/mca/common/crypt/base/secmem.h"

static int make(mpicrypt_file_t *file)
{
    opal_cryptfile_storage_t *storage = &file->posix.super;
    opal_cryptfile_outcome_t outcome;
    opal_crypt_why_t why = {.topic = NULL};
    uint8_t id[OPAL_CRYPTFILE_SEAL_ID_BYTES];

    if (ompi_common_cryptmpio_posix_is_one(&file->posix)) {
        outcome.rc = OPAL_CRYPT_OK;
        int sealed = mpicrypt_file_seal_one(file, &outcome);
        return OPAL_CRYPT_OK == sealed ? MPICRYPT_OK
               : OPAL_CRYPT_OK != outcome.rc ? mpicrypt_file_failed(file, &outcome)
                                             : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", file->path, strerror(errno));
    }
    int rc = opal_cryptfile_sidecar_unseal(storage);

    rc = rc ? rc : ompi_common_cryptmpio_posix_sync(&file->posix);
    opal_crypt_random(id, sizeof(id));
    for (uint32_t i = 0; i < file->map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        if (file->map->regions[i].encrypted &&
            OPAL_CRYPT_OK != opal_cryptfile_seal_region(file->file, i, file->bytes, id, &outcome, &why)) {
            return mpicrypt_file_failed(file, &outcome);
        }
    }
    rc = rc ? rc : ompi_common_cryptmpio_posix_sync(&file->posix);
    rc = rc ? rc : opal_cryptfile_seal_finish(storage, file->bytes, id);
    rc = rc ? rc : ompi_common_cryptmpio_posix_sync(&file->posix);
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK
                               : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", file->path, strerror(errno));
}

static void print_root(const uint8_t hash[OPAL_CRYPT_HASH_BYTES])
{
    char text[OPAL_CRYPTFILE_SEAL_TEXT_BYTES];

    opal_cryptfile_seal_text(hash, text);
    printf("root %s\n", text);
}

int mpicrypt_file_make_seal(mpicrypt_file_t *file)
{
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    int code = make(file);

    if (MPICRYPT_OK != code) {
        return code;
    }
    if (OPAL_CRYPT_OK != opal_cryptfile_seal_hash(file->file, hash)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: it is sealed, but its root cannot be told: %s", file->path, strerror(errno));
    }
    print_root(hash);
    return MPICRYPT_OK;
}

/* A valid seal of one file is kept: while a new one is made, nothing ensures that it covers the same blocks. */
static int keep_seal(mpicrypt_file_t *file)
{
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    int code = mpicrypt_file_check(file, NULL);

    code = MPICRYPT_OK == code ? mpicrypt_file_root_one(file, hash) : code;
    if (MPICRYPT_OK == code) {
        printf("\n");
        print_root(hash);
    }
    return code;
}

int mpicrypt_file_seal(const mpicrypt_file_options_t *options, const char *path)
{
    mpicrypt_file_options_t with = *options;
    mpicrypt_file_t file;

    with.alone = true;
    int code = mpicrypt_file_open_verified(&with, path, true, &file);

    if (MPICRYPT_OK != code) {
        return code;
    }
    if (!options->anew && file.header.sealed && ompi_common_cryptmpio_posix_is_one(&file.posix)) {
        code = keep_seal(&file);
        mpicrypt_file_close(&file);
        return code;
    }
    code = options->anew ? MPICRYPT_OK : mpicrypt_file_check_seal(&file);
    if (MPICRYPT_OK == code && !options->anew && file.header.sealed) {
        opal_cryptfile_seal_watch(file.file, file.bytes);       /* seal only what was sealed before */
    }
    code = MPICRYPT_OK == code ? mpicrypt_file_check(&file, NULL) : code;
    if (MPICRYPT_OK == code) {
        printf("\n");
        code = mpicrypt_file_make_seal(&file);
    }
    mpicrypt_file_close(&file);
    return code;
}
