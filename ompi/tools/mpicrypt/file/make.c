/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Opening, making and sealing an encrypted file that is one file, and changing its map: a file that begins like one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/cryptfile/file/seal_tree.h"

static bool is_one(const mpicrypt_file_t *file) { return ompi_common_cryptmpio_posix_is_one(&file->posix); }

static int failed(const mpicrypt_file_t *file, const char *what) { return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", file->path, what); }

int mpicrypt_file_beginning(mpicrypt_file_t *file)
{
    opal_cryptfile_state_t state = OPAL_CRYPTFILE_STATE_OPEN;
    bool magic;
    int rc = opal_cryptfile_beginning_read(&file->posix.super, &magic, &file->beginning, &state);

    rc = OPAL_CRYPT_OK == rc && !magic ? OPAL_CRYPT_ERR_AUTH : rc;
    file->header = (opal_cryptfile_sidecar_header_t){.sealed = OPAL_CRYPTFILE_STATE_SEALED == state};
    memcpy(file->header.uuid, file->beginning.uuid, sizeof(file->header.uuid));
    return OPAL_CRYPT_ERR_STORAGE == rc ? failed(file, strerror(errno))
           : OPAL_CRYPT_ERR_CONFIG == rc ? failed(file, "another version of ompi-crypt made it")
           : OPAL_CRYPT_OK != rc ? failed(file, "its header is damaged")
           : OPAL_CRYPTFILE_STATE_MAKING == state ? failed(file, "it is being made, or whoever made it was killed") : MPICRYPT_OK;
}

int mpicrypt_file_judge_copy(mpicrypt_file_t *file, opal_cryptfile_copy_t copy)
{
    opal_cryptfile_storage_t *storage = &file->posix.super;
    uint8_t *bytes;
    size_t count;
    int place = (int) copy - OPAL_CRYPTFILE_COPY_SIDECAR_0;
    int rc = OPAL_CRYPTFILE_COPY_ATTRIBUTE == copy ? ompi_common_cryptmpio_posix_attribute_read(&file->posix, &bytes, &count)
             : is_one(file) ? opal_cryptfile_place_read(storage, &file->beginning, (unsigned) place, &bytes, &count)
                            : opal_cryptfile_sidecar_map_read(storage, &file->header, place, &bytes, &count);

    if (OPAL_CRYPT_OK == rc) {
        rc = is_one(file) && OPAL_CRYPTFILE_COPY_ATTRIBUTE != copy
                 ? opal_cryptfile_place_judge(bytes, count, &file->beginning, file->keystore, &file->copies[copy])
                 : opal_cryptfile_copy_judge_kind(bytes, count, is_one(file) ? OPAL_CRYPTFILE_KIND_ONE_MAP : OPAL_CRYPTFILE_KIND_MAP,
                                                  file->keystore, &file->copies[copy]);
        free(bytes);
    }
    return rc;
}

int mpicrypt_file_choose(mpicrypt_file_t *file)
{
    opal_cryptfile_copy_t chosen;
    bool differ;

    if (!is_one(file)) {
        return opal_cryptfile_copy_choose(file->copies, file->header.uuid, &differ, &file->why);
    }
    int rc = opal_cryptfile_header_choose(file->copies, &file->beginning, &chosen, &file->differ, &file->why);
    return OPAL_CRYPT_OK == rc ? (int) chosen : -1;
}

int mpicrypt_file_make_one(mpicrypt_file_t *file)
{
    opal_cryptfile_storage_t *storage = &file->posix.super;
    bool there = false;

    ompi_common_cryptmpio_posix_one(&file->posix);
    int rc = ompi_common_cryptmpio_posix_maker_lock(&file->posix, file->sidecar, &there);
    if (OPAL_CRYPT_OK == rc && !there) {
        errno = ESTALE;
        return OPAL_CRYPT_ERR_STORAGE;
    }
    rc = rc ? rc : opal_cryptfile_make_begin(storage, file->map);
    rc = rc ? rc : ompi_common_cryptmpio_posix_attribute_write(&file->posix, file->map);
    rc = rc ? rc : opal_cryptfile_make_end(storage, file->map);
    if (OPAL_CRYPT_OK == rc) {
        ompi_common_cryptmpio_posix_maker_unlock(&file->posix);
    }
    return rc;
}

/* After the map in a place there may be the end of a longer one, with keys that must no longer open the file. */
static int wipe_behind(mpicrypt_file_t *file)
{
    opal_cryptfile_storage_t *storage = &file->posix.super;
    const opal_cryptfile_geometry_t *geometry = &file->map->geometry;
    size_t count = opal_cryptfile_place_bytes(file->map);
    int rc = OPAL_CRYPT_OK;

    for (unsigned place = 0; place < 2 && OPAL_CRYPT_OK == rc && count < geometry->map_bytes; ++place) {
        rc = storage->zero(storage, OPAL_CRYPTFILE_DATA, opal_cryptfile_geometry_map_at(geometry, place) + count,
                           geometry->map_bytes - count);
    }
    return rc;
}

/* The place with the map that counts is not touched before the other one has a copy, key for key. */
int mpicrypt_file_change_one(mpicrypt_file_t *file, const opal_cryptfile_map_t *now)
{
    int rc = opal_cryptfile_places_change(&file->posix.super, now, file->map);

    rc = rc ? rc : wipe_behind(file);
    rc = rc ? rc : ompi_common_cryptmpio_posix_attribute_write(&file->posix, file->map);
    return rc ? rc : ompi_common_cryptmpio_posix_sync(&file->posix);
}

int mpicrypt_file_root_one(mpicrypt_file_t *file, uint8_t hash[OPAL_CRYPT_HASH_BYTES])
{
    opal_cryptfile_tree_t tree;
    opal_crypt_why_t why = {.topic = NULL};
    int rc = opal_cryptfile_tree_check(file->file, &tree, hash, &why);

    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused(file->path, rc, &why);
}

int mpicrypt_file_seal_one(mpicrypt_file_t *file, opal_cryptfile_outcome_t *outcome)
{
    opal_cryptfile_tree_t tree = {.size = file->bytes};
    int rc = file->header.sealed ? opal_cryptfile_tree_unseal(file->file) : OPAL_CRYPT_OK;

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
