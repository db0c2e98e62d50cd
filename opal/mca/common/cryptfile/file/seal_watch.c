/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a job may seal of a file that it wrote.  Hashing whatever storage has at the
 * end would endorse what somebody else put there: an older version of a block,
 * or a hole.  So only two versions of each block can be sealed:
 *
 *     one of ours     its S was drawn by a process of this job for this opening
 *     the sealed one  what the previous seal has, which is in the sealed field of its entry
 *
 * and beyond what the file had at opening, a hole.  The same holds for a version
 * that a process took as the base when it wrote a part of a block.  And the file
 * is at least as long as it was at opening, unless the job cut it.
 */
#include "seal_page.h"
#include "opal/mca/common/crypt/base/le.h"
#include "opal/mca/common/crypt/base/kdf.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BASES = 16 };

/* | region 4 | kind 4 | block 8 | slot 48, or S 16 |, between processes of one version */
enum { KIND_OURS = 1, KIND_BASE = 2, WITNESS_BYTES = 16 + OPAL_CRYPTFILE_SLOT_BYTES };

/* ---- while the file is open ---- */

void opal_cryptfile_seal_watch(opal_cryptfile_t *file, uint64_t data_bytes)
{
    if (file->watched) {
        return;
    }
    for (uint32_t i = 0; i < file->map->region_count; ++i) {
        file->regions[i]->before_blocks = opal_cryptfile_block_count(file, i, data_bytes);
    }
    file->before_bytes = data_bytes;
    file->watched = true;
}

/* Drop what was written on top of blocks that are gone. */
static void drop_bases(opal_cryptfile_region_state_t *of, uint64_t blocks)
{
    size_t kept = 0;

    pthread_mutex_lock(&of->lock);
    for (size_t i = 0; i < of->base_count; ++i) {
        if (of->bases[i].block < blocks) {
            of->bases[kept++] = of->bases[i];
        }
    }
    of->base_count = kept;
    pthread_mutex_unlock(&of->lock);
}

void opal_cryptfile_seal_cut(opal_cryptfile_t *file, uint64_t data_bytes, bool done)
{
    file->before_bytes = data_bytes < file->before_bytes ? data_bytes : file->before_bytes;
    for (uint32_t i = 0; i < file->map->region_count; ++i) {
        uint64_t blocks = opal_cryptfile_block_count(file, i, data_bytes);
        if (blocks < file->regions[i]->before_blocks) {
            file->regions[i]->before_blocks = blocks;
        }
        if (done) {
            drop_bases(file->regions[i], blocks);
        }
    }
}

/* By block, then by S, then all the rest. */
static int compare_bases(const void *a, const void *b)
{
    const opal_cryptfile_seal_base_t *x = a, *y = b;
    uint8_t one[OPAL_CRYPTFILE_SLOT_BYTES], two[OPAL_CRYPTFILE_SLOT_BYTES];

    if (x->block != y->block) {
        return x->block > y->block ? 1 : -1;
    }
    int differ = memcmp(x->slot.salt, y->slot.salt, OPAL_CRYPTFILE_SALT_BYTES);
    if (0 == differ) {
        opal_cryptfile_slot_write(&x->slot, one);
        opal_cryptfile_slot_write(&y->slot, two);
        differ = memcmp(one, two, sizeof(one));
    }
    return differ;
}

static bool same_source(const opal_cryptfile_seal_base_t *a, const opal_cryptfile_seal_base_t *b)
{
    return a->block == b->block && a->slot.used == b->slot.used && 0 == memcmp(a->slot.salt, b->slot.salt, OPAL_CRYPTFILE_SALT_BYTES);
}

/* Processes that take turns at writing parts of a block find version after version; two of each
 * S are enough: either all of them are the job's, or they are not both what was sealed. */
static void forget_bases(opal_cryptfile_region_state_t *of)
{
    opal_cryptfile_seal_base_t *bases = of->bases;
    size_t kept = 0;

    if (of->base_count > 0) {
        qsort(bases, of->base_count, sizeof(*bases), compare_bases);
    }
    for (size_t i = 0; i < of->base_count; ++i) {
        bool again = kept > 0 && 0 == compare_bases(&bases[kept - 1], &bases[i]);
        if (!again && !(kept > 1 && same_source(&bases[kept - 2], &bases[i]))) {
            bases[kept++] = bases[i];
        }
    }
    of->base_count = kept;
}

/* Space for one more.  Twice as much, where more than half was worth keeping. */
static int base_capacity(opal_cryptfile_region_state_t *of)
{
    if (of->base_count < of->base_capacity) {
        return OPAL_CRYPT_OK;
    }
    forget_bases(of);
    if (of->base_count > 0 && of->base_count <= of->base_capacity / 2) {
        return OPAL_CRYPT_OK;
    }
    size_t capacity = 0 == of->base_capacity ? FIRST_BASES : 2 * of->base_capacity;
    opal_cryptfile_seal_base_t *larger = realloc(of->bases, capacity * sizeof(*larger));
    if (NULL == larger) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    of->bases = larger;
    of->base_capacity = capacity;
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_seal_based(opal_cryptfile_t *file, uint32_t region, uint64_t block, const opal_cryptfile_slot_t *slot)
{
    opal_cryptfile_region_state_t *of = file->regions[region];

    if (!file->watched || (slot->used && opal_cryptfile_blocks_drew(of->blocks, slot->salt))) {
        return OPAL_CRYPT_OK;
    }
    pthread_mutex_lock(&of->lock);
    int rc = base_capacity(of);
    if (OPAL_CRYPT_OK == rc) {
        of->bases[of->base_count++] = (opal_cryptfile_seal_base_t){block, opal_cryptfile_slot_plain(slot)};
    }
    pthread_mutex_unlock(&of->lock);
    return rc;
}

/* ---- what processes tell one another ---- */

static void witness(uint8_t *to, uint32_t region, uint32_t kind, uint64_t block)
{
    memset(to, 0, WITNESS_BYTES);
    opal_crypt_le_put32(to, region);
    opal_crypt_le_put32(to + 4, kind);
    opal_crypt_le_put64(to + 8, block);
}

int opal_cryptfile_seal_witnesses(opal_cryptfile_t *file, uint8_t **bytes, size_t *count)
{
    size_t all = 0, have = 0;

    for (uint32_t i = 0; i < file->map->region_count; ++i) {
        const opal_cryptfile_region_state_t *of = file->regions[i];
        all += of->base_count + (NULL == of->blocks ? 0 : opal_cryptfile_blocks_salts(of->blocks, NULL, 0));
    }
    uint8_t *made = malloc((all + 1) * WITNESS_BYTES);
    if (NULL == made) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    for (uint32_t i = 0; i < file->map->region_count; ++i) {
        const opal_cryptfile_region_state_t *of = file->regions[i];
        size_t salts = NULL == of->blocks ? 0 : opal_cryptfile_blocks_salts(of->blocks, NULL, 0);
        for (size_t k = 0; k < salts; ++k, ++have) {
            witness(made + have * WITNESS_BYTES, i, KIND_OURS, 0);
            (void) opal_cryptfile_blocks_salts(of->blocks, made + have * WITNESS_BYTES + 16, k);
        }
        for (size_t k = 0; k < of->base_count; ++k, ++have) {
            witness(made + have * WITNESS_BYTES, i, KIND_BASE, of->bases[k].block);
            opal_cryptfile_slot_write(&of->bases[k].slot, made + have * WITNESS_BYTES + 16);
        }
    }
    *bytes = made;
    *count = have * WITNESS_BYTES;
    return OPAL_CRYPT_OK;
}

/* Those of all processes, in the process that seals the region. */
static int take_records(opal_cryptfile_t *file, uint32_t region, const uint8_t *bytes, size_t records)
{
    opal_cryptfile_region_state_t *of = file->regions[region];
    size_t ours = 0, bases = 0;

    free(of->ours);
    free(of->bases);
    of->ours = malloc((records + 1) * OPAL_CRYPTFILE_SALT_BYTES);
    of->bases = malloc((records + 1) * sizeof(*of->bases));
    if (NULL == of->ours || NULL == of->bases) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    for (size_t i = 0; i < records; ++i, bytes += WITNESS_BYTES) {
        opal_cryptfile_seal_base_t *base = &of->bases[bases];
        if (region != opal_crypt_le_get32(bytes)) {
            continue;
        }
        base->block = opal_crypt_le_get64(bytes + 8);
        if (KIND_OURS == opal_crypt_le_get32(bytes + 4)) {
            memcpy(of->ours + ours++ * OPAL_CRYPTFILE_SALT_BYTES, bytes + 16, OPAL_CRYPTFILE_SALT_BYTES);
        } else if (OPAL_CRYPT_OK == opal_cryptfile_slot_parse(bytes + 16, opal_cryptfile_capacity(file, region, base->block), &base->slot)) {
            ++bases;
        } else {
            return OPAL_CRYPT_ERR_AUTH;
        }
    }
    of->ours_count = ours;
    of->base_count = of->base_capacity = bases;
    return OPAL_CRYPT_OK;
}

static int compare_salts(const void *a, const void *b) { return memcmp(a, b, OPAL_CRYPTFILE_SALT_BYTES); }

int opal_cryptfile_seal_witnessed(opal_cryptfile_t *file, uint32_t region, const uint8_t *bytes, size_t count)
{
    opal_cryptfile_region_state_t *of = file->regions[region];
    int rc = 0 == count % WITNESS_BYTES ? take_records(file, region, bytes, count / WITNESS_BYTES) : OPAL_CRYPT_ERR_AUTH;

    if (OPAL_CRYPT_OK == rc) {
        qsort(of->ours, of->ours_count, OPAL_CRYPTFILE_SALT_BYTES, compare_salts);
        qsort(of->bases, of->base_count, sizeof(*of->bases), compare_bases);
    }
    return rc;
}

/* ---- at the end ---- */

/* `before`: the field that the previous seal has for the block, or NULL. */
static bool was_sealed(const opal_cryptfile_slot_t *slot, const uint8_t *before)
{
    uint8_t field[OPAL_CRYPT_HASH_BYTES];

    return NULL != before && OPAL_CRYPT_OK == opal_cryptfile_tree_field(slot, field) && 0 == memcmp(field, before, sizeof(field));
}

static bool may_seal(const opal_cryptfile_region_state_t *of, uint64_t block, const opal_cryptfile_slot_t *slot, const uint8_t *before)
{
    if (slot->used && of->ours_count > 0 &&
        NULL != bsearch(slot->salt, of->ours, of->ours_count, OPAL_CRYPTFILE_SALT_BYTES, compare_salts)) {
        return true;
    }
    return block >= of->before_blocks ? !slot->used : was_sealed(slot, before);
}

/* The first of `bases` that is not before `block`. */
static size_t first_base(const opal_cryptfile_region_state_t *of, uint64_t block)
{
    size_t low = 0, high = of->base_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (of->bases[middle].block < block) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int opal_cryptfile_seal_watched_size(const opal_cryptfile_t *file, uint64_t data_bytes, opal_crypt_why_t *why)
{
    return file->watched && data_bytes < file->before_bytes
               ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "file-seal-foreign", "the size of the file is %llu, and was %llu",
                                   (unsigned long long) data_bytes, (unsigned long long) file->before_bytes)
               : OPAL_CRYPT_OK;
}

int opal_cryptfile_seal_watched_block(const opal_cryptfile_t *file, uint32_t region, uint64_t block, const opal_cryptfile_slot_t *newer,
                                      const uint8_t *before, opal_crypt_why_t *why)
{
    const opal_cryptfile_region_state_t *of = file->regions[region];
    bool may = may_seal(of, block, newer, before);

    for (size_t k = first_base(of, block); may && k < of->base_count && of->bases[k].block == block; ++k) {
        may = may_seal(of, block, &of->bases[k].slot, before);
    }
    return may ? OPAL_CRYPT_OK : opal_cryptfile_seal_foreign(why, region, block);
}

int opal_cryptfile_seal_foreign(opal_crypt_why_t *why, uint32_t region, uint64_t block)
{
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "file-seal-foreign", "region %u, block %llu", (unsigned) region, (unsigned long long) block);
}
