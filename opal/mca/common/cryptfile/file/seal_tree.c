/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The seal of a file: fields, pages, tables.  A block's entry is compared with its
 * field, and the field goes into the page, in one copy: so what is checked is what is used.
 */
#include "seal_page.h"
#include "seal_tree.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/crypt/base/le.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HASH = OPAL_CRYPT_HASH_BYTES, ENTRY = OPAL_CRYPTFILE_ENTRY_BYTES, IN_TABLE = 128, TABLE = IN_TABLE * HASH, LEVELS = 4,
       AT_A_TIME_SEALED = 64 };

/* ---- the entries of a group ---- */

uint64_t opal_cryptfile_tree_blocks(const opal_cryptfile_t *file, uint32_t region, uint64_t group, uint64_t size, uint64_t *below)
{
    const opal_cryptfile_geometry_t *geometry = opal_cryptfile_geometry_of(file);
    const opal_cryptfile_region_t *of = &file->map->regions[region];
    uint64_t data = opal_cryptfile_geometry_data(geometry);
    uint64_t blocks = of->encrypted ? opal_cryptfile_geometry_blocks(geometry, &of->tiling, of->block_bytes, group) : 0;

    *below = blocks;
    if (blocks > 0 && size / data == group) {
        *below = (opal_cryptfile_stand(file, region, size) - group * data + of->block_bytes - 1) / of->block_bytes;
    }
    return blocks;
}

uint64_t opal_cryptfile_tree_first(const opal_cryptfile_t *file, uint32_t region, uint64_t group)
{
    return group * (opal_cryptfile_geometry_data(opal_cryptfile_geometry_of(file)) / file->map->regions[region].block_bytes);
}

int opal_cryptfile_tree_field(const opal_cryptfile_slot_t *slot, uint8_t hash[HASH])
{
    uint8_t bytes[OPAL_CRYPTFILE_SLOT_BYTES];
    const opal_crypt_input_t piece = {bytes, sizeof(bytes)};
    const opal_cryptfile_slot_t plain = opal_cryptfile_slot_plain(slot);

    memset(hash, 0, HASH);
    opal_cryptfile_slot_write(&plain, bytes);
    return slot->used ? opal_crypt_sha256(&piece, 1, hash) : OPAL_CRYPT_OK;
}

/* The field of the version that an entry has. */
static int sealed_field(const opal_cryptfile_slots_t *slots, uint8_t hash[HASH])
{
    const opal_cryptfile_slot_t hole = {.used = false};
    int newer = opal_cryptfile_entry_newer(slots->slot);

    return opal_cryptfile_tree_field(newer < 0 ? &hole : &slots->slot[newer], hash);
}

/* Does each of these entries have the version that its field says? */
static int fields_match(const opal_cryptfile_t *file, uint32_t region, uint64_t first, const uint8_t *entries, uint64_t count)
{
    uint8_t hash[HASH];
    int rc = OPAL_CRYPT_OK;

    for (uint64_t i = 0; i < count && OPAL_CRYPT_OK == rc; ++i) {
        opal_cryptfile_slots_t slots;
        opal_cryptfile_entry_parse(file, entries + i * ENTRY, opal_cryptfile_capacity(file, region, first + i), &slots);
        rc = sealed_field(&slots, hash);
        rc = OPAL_CRYPT_OK == rc && 0 != memcmp(hash, slots.sealed, HASH) ? OPAL_CRYPT_ERR_AUTH : rc;
    }
    return rc;
}

int opal_cryptfile_tree_group(opal_cryptfile_t *file, uint64_t group, uint64_t size, uint8_t **bytes)
{
    uint64_t count = 0, below;

    for (uint32_t i = 0; i < file->map->region_count; ++i) {
        count += opal_cryptfile_tree_blocks(file, i, group, size, &below);
    }
    *bytes = malloc(count * ENTRY + 1);
    return NULL == *bytes ? OPAL_CRYPT_ERR_MEMORY
                          : opal_cryptfile_bytes_read(file, opal_cryptfile_geometry_entry_at(opal_cryptfile_geometry_of(file), group, 0), *bytes, count * ENTRY);
}

/* Are these the fields of the group that this process accepted? */
static int are_accepted(const opal_cryptfile_region_state_t *of, uint64_t group, const uint8_t *fields, uint64_t count)
{
    const opal_crypt_input_t piece = {fields, count * HASH};
    uint8_t hash[HASH];
    int rc = NULL == of->accepted ? OPAL_CRYPT_OK : opal_crypt_sha256(&piece, 1, hash);

    return OPAL_CRYPT_OK == rc && NULL != of->accepted && 0 != memcmp(hash, of->accepted + group * HASH, HASH) ? OPAL_CRYPT_ERR_AUTH : rc;
}

/* Moves the fields to the start of `entries`, after the comparisons that the caller demands. */
int opal_cryptfile_tree_page(const opal_cryptfile_t *file, uint32_t regions, uint64_t group, uint64_t size, uint8_t *entries,
                             opal_cryptfile_page_demand_t demand, uint8_t hash[HASH])
{
    uint8_t head[12] = {'p', 'a', 'g', 'e'};
    uint64_t index = 0, fields = 0, below;
    int rc = OPAL_CRYPT_OK;

    for (uint32_t i = 0; i < regions && OPAL_CRYPT_OK == rc; ++i) {
        uint64_t blocks = opal_cryptfile_tree_blocks(file, i, group, size, &below);
        if (OPAL_CRYPTFILE_PAGE_MATCHES == demand && below > 0) {
            rc = fields_match(file, i, opal_cryptfile_tree_first(file, i, group), entries + index * ENTRY, below);
        }
        for (uint64_t k = 0; k < below; ++k) {          /* a field is shorter than an entry */
            memmove(entries + (fields + k) * HASH, entries + (index + k) * ENTRY + OPAL_CRYPTFILE_SLOTS_BYTES, HASH);
        }
        if (OPAL_CRYPTFILE_PAGE_ACCEPTED == demand && OPAL_CRYPT_OK == rc) {
            rc = are_accepted(file->regions[i], group, entries + fields * HASH, below);
        }
        fields += below;
        index += blocks;
    }
    const opal_crypt_input_t pieces[2] = {{head, sizeof(head)}, {entries, fields * HASH}};
    opal_crypt_le_put64(head + 4, group);
    return OPAL_CRYPT_OK == rc ? opal_crypt_sha256(pieces, 2, hash) : rc;
}

/* ---- the tree ---- */

int opal_cryptfile_tree_climb(opal_cryptfile_t *file, uint8_t *hashes, uint64_t count, opal_cryptfile_tables_t tables)
{
    uint8_t table[TABLE], stored[TABLE], head[16] = {'n', 'o', 'd', 'e'};
    const opal_crypt_input_t pieces[2] = {{head, sizeof(head)}, {table, TABLE}};
    int rc = OPAL_CRYPT_OK;

    for (unsigned level = 1; OPAL_CRYPT_OK == rc && (count > 1 || (1 == level && count > 0)); ++level) {
        uint64_t nodes = (count + IN_TABLE - 1) / IN_TABLE;
        if (level > LEVELS) {
            errno = EFBIG;
            return OPAL_CRYPT_ERR_STORAGE;
        }
        for (uint64_t j = 0; j < nodes && OPAL_CRYPT_OK == rc; ++j) {
            uint64_t here = count - j * IN_TABLE < IN_TABLE ? count - j * IN_TABLE : IN_TABLE;
            uint64_t at = opal_cryptfile_geometry_table_at(opal_cryptfile_geometry_of(file), level, j);
            memset(table, 0, sizeof(table));
            memcpy(table, hashes + j * TABLE, here * HASH);
            if (OPAL_CRYPTFILE_TABLES_WRITE == tables) {
                rc = opal_cryptfile_bytes_write(file, at, table, TABLE);
            } else if (OPAL_CRYPTFILE_TABLES_COMPARE == tables) {
                rc = opal_cryptfile_bytes_read(file, at, stored, TABLE);
                rc = OPAL_CRYPT_OK == rc && 0 != memcmp(table, stored, TABLE) ? OPAL_CRYPT_ERR_AUTH : rc;
            }
            opal_crypt_le_put32(head + 4, level);
            opal_crypt_le_put64(head + 8, j);
            rc = OPAL_CRYPT_OK == rc ? opal_crypt_sha256(pieces, 2, hashes + j * HASH) : rc;
        }
        count = nodes;
    }
    return rc;
}

/* The pages of all groups, from entries. */
int opal_cryptfile_tree_pages(opal_cryptfile_t *file, uint64_t size, opal_cryptfile_page_demand_t demand, uint8_t *pages)
{
    uint64_t groups = opal_cryptfile_tree_groups(file, size);
    int rc = OPAL_CRYPT_OK;

    for (uint64_t g = 0; g < groups && OPAL_CRYPT_OK == rc; ++g) {
        uint8_t *entries = NULL;
        rc = opal_cryptfile_tree_group(file, g, size, &entries);
        rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_tree_page(file, file->map->region_count, g, size, entries, demand, pages + g * HASH) : rc;
        free(entries);
    }
    return rc;
}

/* The same, as the tables of the lowest level have them. */
int opal_cryptfile_tree_pages_stored(opal_cryptfile_t *file, uint64_t size, uint8_t *pages)
{
    uint64_t groups = opal_cryptfile_tree_groups(file, size);
    int rc = OPAL_CRYPT_OK;

    for (uint64_t g = 0; g < groups && OPAL_CRYPT_OK == rc; g += IN_TABLE) {
        uint64_t here = groups - g < IN_TABLE ? groups - g : IN_TABLE;
        rc = opal_cryptfile_bytes_read(file, opal_cryptfile_geometry_table_at(opal_cryptfile_geometry_of(file), 1, g / IN_TABLE), pages + g * HASH, here * HASH);
    }
    return rc;
}

/* ---- sealing ---- */

/* Write the fields of contiguous blocks of a region. */
static int put_fields(opal_cryptfile_t *file, uint32_t region, uint64_t first, uint64_t count)
{
    uint8_t entries[AT_A_TIME_SEALED * ENTRY];
    uint64_t at = opal_cryptfile_entry_at(file, region, first);
    int rc = opal_cryptfile_bytes_read(file, at, entries, count * ENTRY);

    for (uint64_t i = 0; i < count && OPAL_CRYPT_OK == rc; ++i) {
        uint32_t capacity = opal_cryptfile_capacity(file, region, first + i);
        opal_cryptfile_slots_t slots;
        opal_cryptfile_entry_parse(file, entries + i * ENTRY, capacity, &slots);
        if (slots.behind) {
            rc = opal_cryptfile_finish_block(file, region, first + i);
            rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_bytes_read(file, at + i * ENTRY, entries + i * ENTRY, ENTRY) : rc;
            opal_cryptfile_entry_parse(file, entries + i * ENTRY, capacity, &slots);
        }
        rc = OPAL_CRYPT_OK == rc && (slots.bad[0] || slots.bad[1]) ? OPAL_CRYPT_ERR_AUTH : rc;
        rc = OPAL_CRYPT_OK == rc ? sealed_field(&slots, entries + i * ENTRY + OPAL_CRYPTFILE_SLOTS_BYTES) : rc;
    }
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_bytes_write(file, at, entries, count * ENTRY) : rc;
}

int opal_cryptfile_tree_fields(opal_cryptfile_t *file, uint32_t region, uint64_t size, opal_cryptfile_outcome_t *outcome)
{
    uint64_t groups = opal_cryptfile_tree_groups(file, size), below;
    int rc = NULL == file->regions[region]->blocks ? OPAL_CRYPT_ERR_ACCESS : OPAL_CRYPT_OK;

    opal_cryptfile_outcome_init(outcome);
    for (uint64_t g = 0; g < groups && OPAL_CRYPT_OK == rc; ++g) {
        (void) opal_cryptfile_tree_blocks(file, region, g, size, &below);
        uint64_t first = opal_cryptfile_tree_first(file, region, g);
        for (uint64_t k = 0; k < below && OPAL_CRYPT_OK == rc; k += AT_A_TIME_SEALED) {
            rc = put_fields(file, region, first + k, below - k < AT_A_TIME_SEALED ? below - k : AT_A_TIME_SEALED);
            if (OPAL_CRYPT_OK != rc) {
                (void) opal_cryptfile_outcome_set(file, outcome, rc, region, first + k);
            }
        }
    }
    return outcome->rc = rc;
}

/* ---- reading ---- */

/* The group's entries, if its fields are those of its page, to file->sealed_entries: calls that follow one another find it there. */
static int group_checked(opal_cryptfile_t *file, uint64_t group)
{
    uint64_t count = 0, below;
    uint8_t hash[HASH], *stored = NULL;
    int rc = group < opal_cryptfile_tree_groups(file, file->sealed_bytes) ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH;

    if (OPAL_CRYPT_OK != rc || (NULL != file->sealed_entries && group == file->sealed_group)) {
        return rc;
    }
    for (uint32_t i = 0; i < file->map->region_count; ++i) {
        count += opal_cryptfile_tree_blocks(file, i, group, file->sealed_bytes, &below);
    }
    free(file->sealed_entries);
    file->sealed_entries = malloc(count * ENTRY + 1);
    rc = NULL == file->sealed_entries ? OPAL_CRYPT_ERR_MEMORY : opal_cryptfile_tree_group(file, group, file->sealed_bytes, &stored);
    if (OPAL_CRYPT_OK == rc) {
        memcpy(file->sealed_entries, stored, count * ENTRY);
        rc = opal_cryptfile_tree_page(file, file->map->region_count, group, file->sealed_bytes, stored, OPAL_CRYPTFILE_PAGE_ANY, hash);
    }
    free(stored);
    rc = OPAL_CRYPT_OK == rc && 0 != opal_crypt_differ(hash, file->regions[0]->pages + group * HASH, HASH) ? OPAL_CRYPT_ERR_AUTH : rc;
    if (OPAL_CRYPT_OK != rc) {
        free(file->sealed_entries);
        file->sealed_entries = NULL;
    }
    file->sealed_group = group;
    return rc;
}

int opal_cryptfile_tree_entries(opal_cryptfile_t *file, uint32_t region, uint64_t first, uint64_t count, uint8_t *entries)
{
    uint64_t group = first / (opal_cryptfile_geometry_data(opal_cryptfile_geometry_of(file)) / file->map->regions[region].block_bytes);
    uint64_t index = opal_cryptfile_geometry_entry(file->map, region, first), below;

    (void) opal_cryptfile_tree_blocks(file, region, group, file->sealed_bytes, &below);
    if (first - opal_cryptfile_tree_first(file, region, group) + count > below) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    pthread_mutex_lock(&file->regions[0]->lock);
    int rc = group_checked(file, group);
    if (OPAL_CRYPT_OK == rc) {
        memcpy(entries, file->sealed_entries + index * ENTRY, count * ENTRY);
    }
    pthread_mutex_unlock(&file->regions[0]->lock);
    return OPAL_CRYPT_OK == rc ? fields_match(file, region, first, entries, count) : rc;
}
