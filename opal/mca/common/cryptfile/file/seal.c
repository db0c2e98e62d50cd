/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Making a seal.  Page by page: overwrites that were cut short are finished, a
 * watched file's blocks are compared with what may be sealed, and the page goes
 * to the sealed slots; then list and root of the region, and at the very end, by
 * one process for all regions, the state.
 */
#include "seal_page.h"
#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/le.h"
#include "store.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/cryptfile/keystore/keystore_object.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_BLOCKS = OPAL_CRYPTFILE_SEAL_PAGE_BLOCKS, HASH_BYTES = OPAL_CRYPT_HASH_BYTES };

/* | seal list 8 | sealed blocks 8 | root 32 | sealed slots 8 |, in a directory */
enum { SEAL_AT = 16 * OPAL_CRYPTFILE_SIDECAR_SEGMENTS, SEAL_BYTES = 16 + HASH_BYTES + 8 };

typedef opal_cryptfile_seal_page_t page_t;

/* ---- sealing ---- */

/* Was an overwrite of this block cut short? */
static int is_behind(opal_cryptfile_t *file, uint32_t region, uint64_t block, const uint8_t *entry, bool *behind)
{
    uint32_t capacity = opal_cryptfile_capacity(file, region, block);
    opal_cryptfile_slot_t slots[2];
    opal_cryptfile_room_t room;
    bool there = false;
    int rc = OPAL_CRYPT_OK;

    for (unsigned k = 0; k < 2; ++k) {
        (void) opal_cryptfile_slot_parse(entry + k * OPAL_CRYPTFILE_SLOT_BYTES, capacity, &slots[k]);
    }
    int newer = opal_cryptfile_entry_newer(slots);
    *behind = newer >= 0 && slots[!newer].pending;
    if (newer >= 0 && !*behind && slots[newer].room > 0) {
        rc = opal_cryptfile_room_read(file, region, block, slots[newer].room, &room, NULL, &there);
        *behind = there && opal_cryptfile_room_needed(slots, slots[newer].room, &room);
    }
    return rc;
}

/* One region that is being sealed. */
typedef struct sealing {
    opal_cryptfile_t *file;
    uint32_t region;
    uint64_t blocks, list_at, slots_at;
    uint8_t *hashes;
    page_t page;
    opal_cryptfile_outcome_t *outcome;
    opal_crypt_why_t *why;
} sealing_t;

/* Read a page, so that its blocks need no room any more. */
static int settled_page(sealing_t *s, uint64_t number)
{
    bool settled = false;
    int rc = opal_cryptfile_seal_page_read(s->file, s->region, number, s->blocks, &s->page);

    for (uint32_t i = 0; OPAL_CRYPT_OK == rc && i < s->page.count; ++i) {
        bool behind;
        rc = is_behind(s->file, s->region, s->page.first + i, s->page.entries + i * OPAL_CRYPTFILE_ENTRY_BYTES, &behind);
        if (OPAL_CRYPT_OK == rc && behind) {
            rc = opal_cryptfile_finish_block(s->file, s->region, s->page.first + i);
            settled = true;
        }
        if (OPAL_CRYPT_OK != rc) {
            return opal_cryptfile_outcome_set(s->file, s->outcome, rc, s->region, s->page.first + i);
        }
    }
    return OPAL_CRYPT_OK == rc && settled ? opal_cryptfile_seal_page_read(s->file, s->region, number, s->blocks, &s->page) : rc;
}

static int seal_page(sealing_t *s, uint64_t number)
{
    uint8_t slots[OPAL_CRYPTFILE_SEAL_PAGE_BYTES];
    uint64_t block = number * PAGE_BLOCKS;
    int rc = settled_page(s, number);

    if (OPAL_CRYPT_OK == rc && s->file->watched) {
        rc = opal_cryptfile_seal_watched_page(s->file, s->region, number, &s->page, &block, s->why);
    }
    if (OPAL_CRYPT_OK == rc) {
        opal_cryptfile_seal_page_slots(&s->page, slots);
        rc = opal_cryptfile_seal_page_hash(s->file->regions[s->region], s->region, number, slots, s->page.count,
                                           s->hashes + number * HASH_BYTES);
    }
    if (OPAL_CRYPT_OK == rc) {
        const opal_cryptfile_extent_t extent = {s->slots_at + number * OPAL_CRYPTFILE_SEAL_PAGE_BYTES, slots,
                                                   s->page.count * OPAL_CRYPTFILE_SLOT_BYTES};
        rc = s->file->storage->write(s->file->storage, OPAL_CRYPTFILE_SIDECAR, &extent, 1);
    }
    return OPAL_CRYPT_OK == rc ? rc : opal_cryptfile_outcome_set(s->file, s->outcome, rc, s->region, block);
}

/* Find a place for `bytes`: where `before` bytes are already, or at the end, which exists before anything names it. */
static int find_place(opal_cryptfile_storage_t *storage, uint64_t *at, uint64_t before, uint64_t bytes)
{
    uint64_t size;
    int rc;

    if (0 == bytes || (0 != *at && opal_cryptfile_sidecar_end(*at + bytes) <= opal_cryptfile_sidecar_end(*at + before))) {
        return OPAL_CRYPT_OK;
    }
    rc = storage->size(storage, OPAL_CRYPTFILE_SIDECAR, &size);
    *at = OPAL_CRYPT_OK == rc ? opal_cryptfile_sidecar_end(size) : 0;
    rc = OPAL_CRYPT_OK == rc ? storage->resize(storage, OPAL_CRYPTFILE_SIDECAR, opal_cryptfile_sidecar_end(*at + bytes)) : rc;
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_storage_sync(storage, OPAL_CRYPTFILE_SIDECAR) : rc;
}

/* Under the header's lock: room for list and slots.  The previous seal no longer counts: the file is open. */
static int make_room(sealing_t *s)
{
    opal_cryptfile_region_state_t *of = s->file->regions[s->region];
    opal_cryptfile_range_t header;
    int rc = opal_cryptfile_range_lock(s->file, &header, 0, 1, true);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    pthread_mutex_lock(&of->lock);
    rc = opal_cryptfile_directory_read(s->file, s->region);
    uint64_t before = of->directory.sealed_blocks;
    s->list_at = of->directory.seal_list;
    s->slots_at = of->directory.sealed_slots;
    pthread_mutex_unlock(&of->lock);
    if (OPAL_CRYPT_OK == rc) {
        rc = find_place(s->file->storage, &s->list_at, opal_cryptfile_seal_pages(before) * HASH_BYTES,
                        opal_cryptfile_seal_pages(s->blocks) * HASH_BYTES);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = find_place(s->file->storage, &s->slots_at, before * OPAL_CRYPTFILE_SLOT_BYTES, s->blocks * OPAL_CRYPTFILE_SLOT_BYTES);
    }
    return opal_cryptfile_range_unlock(s->file, &header, rc);
}

/* The list, then what points to it. */
static int list_write(sealing_t *s, const uint8_t root[HASH_BYTES])
{
    opal_cryptfile_storage_t *storage = s->file->storage;
    uint8_t bytes[SEAL_BYTES];
    const opal_cryptfile_extent_t list = {s->list_at, s->hashes, opal_cryptfile_seal_pages(s->blocks) * HASH_BYTES};
    const opal_cryptfile_extent_t place = {opal_cryptfile_sidecar_directory_at(s->region) + SEAL_AT, bytes, sizeof(bytes)};
    int rc = 0 == s->blocks ? OPAL_CRYPT_OK : storage->write(storage, OPAL_CRYPTFILE_SIDECAR, &list, 1);

    opal_crypt_le_put64(bytes, 0 == s->blocks ? 0 : s->list_at);
    opal_crypt_le_put64(bytes + 8, s->blocks);
    memcpy(bytes + 16, root, HASH_BYTES);
    opal_crypt_le_put64(bytes + 16 + HASH_BYTES, 0 == s->blocks ? 0 : s->slots_at);
    return OPAL_CRYPT_OK == rc ? storage->write(storage, OPAL_CRYPTFILE_SIDECAR, &place, 1) : rc;
}

int opal_cryptfile_seal_region(opal_cryptfile_t *file, uint32_t region, uint64_t data_bytes,
                               const uint8_t id[OPAL_CRYPTFILE_SEAL_ID_BYTES], opal_cryptfile_outcome_t *outcome,
                               opal_crypt_why_t *why)
{
    uint64_t blocks = opal_cryptfile_block_count(file, region, data_bytes), pages = opal_cryptfile_seal_pages(blocks);
    uint8_t root[HASH_BYTES];
    sealing_t *s = calloc(1, sizeof(*s));
    uint8_t *hashes = calloc(pages + 1, HASH_BYTES);
    int rc = NULL == s || NULL == hashes ? OPAL_CRYPT_ERR_MEMORY : opal_cryptfile_seal_need_key(file->regions[region]);

    memset(outcome, 0, sizeof(*outcome));
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_seal_watched_size(file, data_bytes, why) : rc;
    if (OPAL_CRYPT_OK == rc) {
        *s = (sealing_t){.file = file, .region = region, .blocks = blocks, .hashes = hashes, .outcome = outcome, .why = why};
        rc = make_room(s);
    }
    for (uint64_t p = 0; OPAL_CRYPT_OK == rc && p < pages; ++p) {
        rc = seal_page(s, p);
    }
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_seal_root(file, region, data_bytes, blocks, id, hashes, opal_cryptfile_seal_pages(blocks), root) : rc;
    rc = OPAL_CRYPT_OK == rc ? list_write(s, root) : rc;
    if (OPAL_CRYPT_OK == rc) {
        opal_cryptfile_seal_root_take(file, region, root);
    }
    free(s);
    free(hashes);
    return OPAL_CRYPT_OK == rc ? rc : opal_cryptfile_outcome_set(file, outcome, rc, region, 0);
}

bool opal_cryptfile_seal_root_of(const opal_cryptfile_t *file, uint32_t region, uint8_t root[HASH_BYTES])
{
    memcpy(root, file->regions[region]->root, HASH_BYTES);
    return file->regions[region]->has_root;
}

void opal_cryptfile_seal_root_take(opal_cryptfile_t *file, uint32_t region, const uint8_t root[HASH_BYTES])
{
    memcpy(file->regions[region]->root, root, HASH_BYTES);
    file->regions[region]->has_root = true;
}

/* Prefer the root that we know: storage, asked again, may return another version's. */
static int stored_root(opal_cryptfile_t *file, uint32_t region, uint8_t root[HASH_BYTES])
{
    opal_cryptfile_region_state_t *of = file->regions[region];
    int rc;

    if (opal_cryptfile_seal_root_of(file, region, root)) {
        return OPAL_CRYPT_OK;
    }
    if (NULL != opal_cryptfile_one(file)) {
        return opal_cryptfile_tree_root_stored(file, region, root);
    }
    pthread_mutex_lock(&of->lock);
    rc = opal_cryptfile_directory_read(file, region);
    memcpy(root, of->directory.root, HASH_BYTES);
    pthread_mutex_unlock(&of->lock);
    return rc;
}

int opal_cryptfile_seal_hash(opal_cryptfile_t *file, uint8_t hash[HASH_BYTES])
{
    uint32_t count = 0;
    uint8_t *roots = calloc(file->map->region_count, HASH_BYTES);
    int rc = NULL == roots ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;

    for (uint32_t i = 0; OPAL_CRYPT_OK == rc && i < file->map->region_count; ++i) {
        if (file->map->regions[i].encrypted) {
            rc = stored_root(file, i, roots + HASH_BYTES * count++);
        }
    }
    const opal_crypt_input_t piece = {roots, (size_t) count * HASH_BYTES};
    rc = OPAL_CRYPT_OK == rc ? opal_crypt_sha256(&piece, 1, hash) : rc;
    free(roots);
    return rc;
}

void opal_cryptfile_seal_text(const uint8_t hash[HASH_BYTES], char text[OPAL_CRYPTFILE_SEAL_TEXT_BYTES])
{
    opal_crypt_hex_write(hash, HASH_BYTES, text);
}

bool opal_cryptfile_seal_parse(const char *text, uint8_t hash[HASH_BYTES])
{
    return strlen(text) == 2 * HASH_BYTES && opal_crypt_hex_read(text, hash, HASH_BYTES);
}
