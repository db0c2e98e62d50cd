/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file seal: every block is opened, then all of them together are
 * sealed.  The root is for the user to keep: it tells this version of the file
 * from every other.  A seal that the file already has must fit, or this would
 * approve any change made since; --anew allows it.  The file is locked exclusively
 * meanwhile: a writer would change what is being sealed, another seal would mix its
 * tables with ours, and a reader would find tables without their root.
 */
#include <errno.h>
#include <string.h>

#include "file.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/cryptfile/file/seal_tree.h"

static int seal_all(mpicrypt_opened_t *file, opal_cryptfile_outcome_t *outcome)
{
    opal_cryptfile_tree_t tree = {.size = file->bytes};
    int rc = file->found.sealed ? opal_cryptfile_tree_unseal(file->file) : OPAL_CRYPT_OK;

    opal_crypt_random(tree.id, sizeof(tree.id));
    for (uint32_t i = 0; i < file->map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        rc = file->map->regions[i].encrypted ? opal_cryptfile_tree_fields(file->file, i, tree.size, outcome) : rc;
    }
    rc = rc ? rc : opal_cryptfile_tree_make(file->file, &tree, true);
    for (uint32_t i = 0; i < file->map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        rc = file->map->regions[i].encrypted ? opal_cryptfile_tree_root(file->file, i, &tree) : rc;
    }
    rc = rc ? rc : ompi_common_cryptmpio_posix_sync(&file->posix);
    return rc ? rc : opal_cryptfile_tree_finish(file->file, &tree);
}

static void print_root(const mpicrypt_opened_t *file, const uint8_t hash[OPAL_CRYPT_HASH_BYTES])
{
    opal_cryptfile_seal_text(hash, file->subject->root);
    fprintf(file->subject->out, "root %s\n", file->subject->root);
}

static void separate(const mpicrypt_file_choices_t *options)
{
    if (!options->json && !options->verdict) {
        fprintf(options->subject->out, "\n");
    }
}

int mpicrypt_file_make_seal(mpicrypt_opened_t *file)
{
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    opal_cryptfile_outcome_t outcome = {.rc = OPAL_CRYPT_OK};

    if (OPAL_CRYPT_OK != seal_all(file, &outcome)) {
        return OPAL_CRYPT_OK != outcome.rc ? mpicrypt_file_failed(file, &outcome)
                                           : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", file->path, strerror(errno));
    }
    if (OPAL_CRYPT_OK != opal_cryptfile_seal_hash(file->file, hash)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: it is sealed, but its root cannot be told: %s", file->path, strerror(errno));
    }
    print_root(file, hash);
    return MPICRYPT_OK;
}

/* A valid seal is kept: while a new one is made, nothing ensures that it covers the same blocks. */
static int keep_seal(const mpicrypt_file_choices_t *options, mpicrypt_opened_t *file)
{
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    int code = mpicrypt_file_check(options, file, NULL);

    code = MPICRYPT_OK == code ? mpicrypt_file_root(file, hash) : code;
    if (MPICRYPT_OK == code) {
        separate(options);
        print_root(file, hash);
    }
    return code;
}

int mpicrypt_file_seal(const mpicrypt_file_choices_t *options, const char *path)
{
    mpicrypt_opened_t file;
    int code = mpicrypt_file_open_verified(options, path, true, &file);

    if (MPICRYPT_OK != code) {
        return code;
    }
    if (file.found.sealed && !options->anew) {
        code = keep_seal(options, &file);
    } else {
        code = mpicrypt_file_check(options, &file, NULL);
        if (MPICRYPT_OK == code) {
            separate(options);
            code = mpicrypt_file_make_seal(&file);
        }
    }
    mpicrypt_file_close_engine(&file);
    return code;
}
