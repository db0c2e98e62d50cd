/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a job may seal of a file that it wrote: see seal_watch.c.  The previous seal's version of a
 * block is the sealed field of its entry, which is in the storage until the next seal overwrites it; so it counts only
 * if all fields of its group match the page that was kept when the seal was removed.  They do as long as the group
 * exists: a cut through the group leaves its entries, and nothing is expected of a group that was cut off.
 *
 * Fields of a group have many owners, so all of them accept before any of them writes.  What was accepted is
 * remembered as one hash for each group, and compared with the fields from which the tree is made, in the same copy.
 */
#include "seal_page.h"
#include "seal_tree.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdlib.h>
#include <string.h>

enum { HASH = OPAL_CRYPT_HASH_BYTES, ENTRY = OPAL_CRYPTFILE_ENTRY_BYTES };

typedef struct accepting {
    opal_cryptfile_t *file;
    uint32_t region;
    uint64_t size, group, first, below;         /* of the group: its first block of the region, and how many begin below the size */
    uint8_t *entries;                           /* the group's, as read */
    uint8_t *own;                               /* the fields of the region */
    uint64_t block;                             /* where it failed */
    opal_crypt_why_t *why;
} accepting_t;

/* Reads the group, and once more if overwrites in the region had to be finished. */
static int read_finished(accepting_t *a, uint64_t index)
{
    opal_cryptfile_slots_t slots;
    bool again = true;
    int rc = OPAL_CRYPT_OK;

    for (int turn = 0; OPAL_CRYPT_OK == rc && again && turn < 2; ++turn) {
        again = false;
        free(a->entries);
        rc = opal_cryptfile_tree_group(a->file, a->group, a->size, &a->entries);
        a->own = a->entries + index * ENTRY;
        for (uint64_t k = 0; OPAL_CRYPT_OK == rc && k < a->below; ++k) {
            a->block = a->first + k;
            opal_cryptfile_entry_parse(a->file, a->own + k * ENTRY, opal_cryptfile_capacity(a->file, a->region, a->block), &slots);
            rc = slots.bad[0] || slots.bad[1] ? OPAL_CRYPT_ERR_AUTH : slots.behind ? opal_cryptfile_finish_block(a->file, a->region, a->block) : rc;
            again = again || slots.behind;
        }
    }
    return rc;
}

/* Do the group's fields say what was sealed before?  *before false: nothing of the group was, or it is gone. */
static int read_before(const accepting_t *a, bool *before)
{
    const opal_cryptfile_t *file = a->file;
    const uint8_t *pages = file->regions[0]->pages;
    uint64_t count = 0, below;
    uint8_t hash[HASH];

    *before = NULL != pages && a->group < opal_cryptfile_tree_groups(file, file->sealed_bytes) &&
              a->group * opal_cryptfile_geometry_data(opal_cryptfile_geometry_of(file)) < file->before_bytes;
    for (uint32_t i = 0; *before && i < file->sealed_regions; ++i) {
        count += opal_cryptfile_tree_blocks(file, i, a->group, file->sealed_bytes, &below);
    }
    uint8_t *copy = *before ? malloc(count * ENTRY + 1) : NULL;
    if (NULL == copy) {
        return *before ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;
    }
    memcpy(copy, a->entries, count * ENTRY);
    int rc = opal_cryptfile_tree_page(file, file->sealed_regions, a->group, file->sealed_bytes, copy, OPAL_CRYPTFILE_PAGE_ANY, hash);
    free(copy);
    return OPAL_CRYPT_OK == rc && 0 != opal_crypt_differ(hash, pages + a->group * HASH, HASH) ? OPAL_CRYPT_ERR_AUTH : rc;
}

static int accept_group(accepting_t *a, uint8_t accepted[HASH])
{
    const opal_cryptfile_slot_t hole = {.used = false};
    opal_cryptfile_slots_t slots;
    uint64_t index = 0, below;
    bool before = false;

    for (uint32_t i = 0; i < a->region; ++i) {
        index += opal_cryptfile_tree_blocks(a->file, i, a->group, a->size, &below);
    }
    (void) opal_cryptfile_tree_blocks(a->file, a->region, a->group, a->size, &a->below);
    a->block = a->first = opal_cryptfile_tree_first(a->file, a->region, a->group);
    int rc = read_finished(a, index);
    rc = OPAL_CRYPT_OK == rc && a->below > 0 ? read_before(a, &before) : rc;
    rc = OPAL_CRYPT_ERR_AUTH == rc ? opal_cryptfile_seal_foreign(a->why, a->region, a->block) : rc;
    for (uint64_t k = 0; OPAL_CRYPT_OK == rc && k < a->below; ++k) {
        a->block = a->first + k;
        opal_cryptfile_entry_parse(a->file, a->own + k * ENTRY, opal_cryptfile_capacity(a->file, a->region, a->block), &slots);
        int newer = opal_cryptfile_entry_newer(slots.slot);
        const opal_cryptfile_slot_t *slot = newer < 0 ? &hole : &slots.slot[newer];
        rc = opal_cryptfile_seal_watched_block(a->file, a->region, a->block, slot, before ? slots.sealed : NULL, a->why);
        rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_tree_field(slot, a->own + k * HASH) : rc;     /* the entry is parsed */
    }
    const opal_crypt_input_t fields = {a->own, a->below * HASH};
    return OPAL_CRYPT_OK == rc ? opal_crypt_sha256(&fields, 1, accepted) : rc;
}

int opal_cryptfile_tree_accept(opal_cryptfile_t *file, uint32_t region, uint64_t size, opal_cryptfile_outcome_t *outcome, opal_crypt_why_t *why)
{
    uint64_t groups = opal_cryptfile_tree_groups(file, size);
    uint8_t *accepted = calloc(groups + 1, HASH);
    accepting_t a = {.file = file, .region = region, .size = size, .why = why};
    int rc = NULL == accepted ? OPAL_CRYPT_ERR_MEMORY : NULL == file->regions[region]->blocks ? OPAL_CRYPT_ERR_ACCESS : OPAL_CRYPT_OK;

    opal_cryptfile_outcome_init(outcome);
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_seal_watched_size(file, size, why) : rc;
    for (a.group = 0; a.group < groups && OPAL_CRYPT_OK == rc; ++a.group) {
        rc = accept_group(&a, accepted + a.group * HASH);
    }
    free(a.entries);
    if (OPAL_CRYPT_OK != rc) {
        free(accepted);
        return opal_cryptfile_outcome_set(file, outcome, rc, region, a.block);
    }
    free(file->regions[region]->accepted);
    file->regions[region]->accepted = accepted;
    return rc;
}
