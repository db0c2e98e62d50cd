/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file verify: every block is opened, nothing is changed.  A job may
 * be writing meanwhile; each block is checked under its lock.  Also checked: the
 * file's seal, if any, and the copies of its map.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "crew.h"
#include "file.h"
#include "opal/mca/common/cryptfile/file/seal_tree.h"

enum { CONDITIONS = OPAL_CRYPTFILE_BLOCK_BAD + 1 };

/* A torn or bad block. */
typedef struct listed_block {
    uint64_t block;
    opal_cryptfile_block_condition_t condition;
} listed_block_t;

typedef struct tally {
    uint64_t count[CONDITIONS];
    listed_block_t *listed;
    size_t listed_count, listed_capacity;
} tally_t;

static const char *const condition_names[CONDITIONS] = {"hole", "good", "behind", "torn", "bad"};

static const mpicrypt_column_t listed_columns[] = {
    {"region", "region", 0}, {"block", "block", 0}, {"offset", "offset", 0}, {"state", "state", 0}, {NULL, NULL, 0}};
static const mpicrypt_column_t region_columns[] = {
    {"region", "region", 0}, {"label", "label", 0}, {"checked", "checked", 0}, {"holes", "holes", 0}, {"good", "good", 0},
    {"behind", "behind", 0}, {"torn", "torn", 0}, {"bad", "bad", 0}, {NULL, NULL, 0}};

/* ---- the blocks of a region, by several threads ---- */

typedef struct checked_region {
    const mpicrypt_opened_t *file;
    uint32_t number;
    uint64_t next, blocks, at_a_time;
    tally_t tally;
    bool incomplete;                    /* there was no memory for what a thread has found */
} checked_region_t;

/* What a thread has. */
typedef struct checked_blocks {
    uint64_t first, end;
    tally_t tally;
} checked_blocks_t;

static bool list(tally_t *tally, uint64_t block, opal_cryptfile_block_condition_t condition)
{
    if (tally->listed_count == tally->listed_capacity) {
        size_t capacity = 0 == tally->listed_capacity ? 64 : 2 * tally->listed_capacity;
        listed_block_t *larger = realloc(tally->listed, capacity * sizeof(*larger));
        if (NULL == larger) {
            return false;
        }
        tally->listed = larger;
        tally->listed_capacity = capacity;
    }
    tally->listed[tally->listed_count++] = (listed_block_t){block, condition};
    return true;
}

static void *blocks_begin(void *of)
{
    (void) of;
    return calloc(1, sizeof(checked_blocks_t));
}

static bool blocks_next(void *of, void *memory)
{
    checked_region_t *region = of;
    checked_blocks_t *mine = memory;

    mine->first = opal_cryptfile_block_next(region->file->file, region->number, region->next, region->blocks);
    mine->end = region->blocks - mine->first < region->at_a_time ? region->blocks : mine->first + region->at_a_time;
    region->next = mine->end;
    return mine->first < region->blocks;
}

static bool blocks_check(void *of, void *memory, mpicrypt_file_fault_t *fault)
{
    const checked_region_t *region = of;
    const mpicrypt_opened_t *file = region->file;
    checked_blocks_t *mine = memory;
    uint64_t bytes = 0;

    for (uint64_t block = mine->first; (block = opal_cryptfile_block_next(file->file, region->number, block, mine->end)) < mine->end; ++block) {
        opal_cryptfile_block_condition_t condition;
        uint32_t plain_bytes;
        int rc = opal_cryptfile_check(file->file, region->number, block, &condition, &plain_bytes);
        if (OPAL_CRYPT_OK == rc && (OPAL_CRYPTFILE_BLOCK_TORN == condition || OPAL_CRYPTFILE_BLOCK_BAD == condition)
            && !list(&mine->tally, block, condition)) {
            rc = OPAL_CRYPT_ERR_MEMORY;
        }
        if (OPAL_CRYPT_OK != rc) {
            const opal_cryptfile_outcome_t outcome = {.rc = rc, .error = errno,
                                                       .file_offset = opal_cryptfile_block_offset(file->file, region->number, block)};
            return mpicrypt_file_fault_engine(fault, file, &outcome);
        }
        ++mine->tally.count[condition];
        bytes += plain_bytes;
    }
    mpicrypt_file_progress(bytes);
    return true;
}

static void blocks_end(void *of, void *memory)
{
    checked_region_t *region = of;
    checked_blocks_t *mine = memory;

    for (int i = 0; i < CONDITIONS; ++i) {
        region->tally.count[i] += mine->tally.count[i];
    }
    for (size_t i = 0; i < mine->tally.listed_count; ++i) {
        region->incomplete = !list(&region->tally, mine->tally.listed[i].block, mine->tally.listed[i].condition)
                             || region->incomplete;
    }
    free(mine->tally.listed);
    free(mine);
}

static int by_block(const void *a, const void *b)
{
    uint64_t x = ((const listed_block_t *) a)->block, y = ((const listed_block_t *) b)->block;

    return (x > y) - (x < y);
}

/* Adds to the table of torn and bad blocks; `count` gets the rest. */
static int check_region(const mpicrypt_opened_t *file, uint32_t number, mpicrypt_table_t *listed, uint64_t count[CONDITIONS])
{
    const uint64_t blocks = opal_cryptfile_block_count(file->file, number, file->bytes);
    const uint32_t block_bytes = file->map->regions[number].block_bytes;
    checked_region_t region = {.file = file, .number = number, .blocks = blocks,
                               .at_a_time = block_bytes < MPICRYPT_FILE_PART_BYTES ? MPICRYPT_FILE_PART_BYTES / block_bytes : 1};
    const mpicrypt_file_crew_t crew = {&region, (blocks + region.at_a_time - 1) / region.at_a_time, blocks_begin, blocks_next,
                                       blocks_check, blocks_end};
    int code = mpicrypt_file_crew(&crew);

    if (MPICRYPT_OK == code && region.incomplete) {
        code = mpicrypt_error(MPICRYPT_FAILED, "%s: %s", file->path, strerror(ENOMEM));
    }
    if (region.tally.listed_count > 0) {
        qsort(region.tally.listed, region.tally.listed_count, sizeof(*region.tally.listed), by_block);
    }
    for (size_t i = 0; i < region.tally.listed_count; ++i) {
        const listed_block_t *block = &region.tally.listed[i];
        mpicrypt_table_count(listed, number);
        mpicrypt_table_count(listed, block->block);
        mpicrypt_table_count(listed, opal_cryptfile_block_offset(file->file, number, block->block));
        mpicrypt_table_text(listed, condition_names[block->condition]);
    }
    free(region.tally.listed);
    memcpy(count, region.tally.count, sizeof(region.tally.count));
    return code;
}

/* ---- all regions ---- */

static int check_all(const mpicrypt_opened_t *file, mpicrypt_table_t *regions, mpicrypt_table_t *listed, bool *good)
{
    int code = MPICRYPT_OK;

    for (uint32_t i = 0; i < file->map->region_count && MPICRYPT_OK == code; ++i) {
        const opal_cryptfile_region_t *region = &file->map->regions[i];
        const bool can = NULL != file->keys[i].data_key;
        uint64_t count[CONDITIONS] = {0};
        if (!region->encrypted) {
            continue;
        }
        code = can ? check_region(file, i, listed, count) : MPICRYPT_OK;
        const bool torn = count[OPAL_CRYPTFILE_BLOCK_TORN] > 0, bad = count[OPAL_CRYPTFILE_BLOCK_BAD] > 0;
        *good = *good && can && !torn && !bad;
        mpicrypt_file_finds(file->subject, bad ? MPICRYPT_FILE_IS_FORGED : torn ? MPICRYPT_FILE_IS_TORN
                            : can ? MPICRYPT_FILE_IS_WHOLE : MPICRYPT_FILE_HAS_NO_KEY);
        mpicrypt_table_count(regions, i);
        mpicrypt_table_text(regions, region->label);
        mpicrypt_table_text(regions, can ? "yes" : "no key");
        for (int k = 0; k < CONDITIONS; ++k) {
            mpicrypt_table_count(regions, count[k]);
        }
    }
    return code;
}

static const char *truth(bool value) { return value ? "true" : "false"; }

/* A seal has a part for each region; checking it takes the region's key. */
static bool all_keys(const mpicrypt_opened_t *file)
{
    bool all = true;

    for (uint32_t i = 0; i < file->map->region_count; ++i) {
        all = all && (!file->map->regions[i].encrypted || NULL != file->keys[i].data_key);
    }
    return all;
}

static void print_json(const mpicrypt_opened_t *file, const mpicrypt_table_t *regions, const mpicrypt_table_t *listed, bool good,
                       const mpicrypt_file_around_t *around)
{
    FILE *out = file->subject->out;

    fprintf(out, "{\"file\": ");
    mpicrypt_json_text(out, file->subject->shown);
    fprintf(out, ", \"state\": \"%s\", \"good\": %s, \"seal\": \"%s\", \"copies\": %s, \"regions\": ",
            mpicrypt_file_state_of(file->subject), truth(good && around->seal && around->copies),
            !file->found.sealed ? "none" : !around->seal ? "broken" : all_keys(file) ? "holds" : "partly", truth(around->copies));
    mpicrypt_table_json_line(regions, out);
    fprintf(out, ", \"blocks\": ");
    mpicrypt_table_json_line(listed, out);
}

static void print(const mpicrypt_opened_t *file, const mpicrypt_table_t *regions, const mpicrypt_table_t *listed, bool good)
{
    mpicrypt_table_print(regions, file->subject->out);
    if (!good) {
        fprintf(file->subject->out, "\n");
        mpicrypt_table_print(listed, file->subject->out);
    }
}

int mpicrypt_file_check(const mpicrypt_file_choices_t *options, const mpicrypt_opened_t *file, const mpicrypt_file_around_t *around)
{
    mpicrypt_table_t *regions = mpicrypt_table_new(region_columns), *listed = mpicrypt_table_new(listed_columns);
    bool good = true;
    int code = check_all(file, regions, listed, &good);

    if (MPICRYPT_OK == code && options->verdict) {
        /* the caller prints it */
    } else if (MPICRYPT_OK == code && options->json && NULL != around) {
        print_json(file, regions, listed, good, around);
    } else if (MPICRYPT_OK == code && !options->json) {
        print(file, regions, listed, good);
    }
    if (MPICRYPT_OK == code && !good) {
        code = mpicrypt_error(MPICRYPT_FAILED, "%s: some blocks cannot be read, or could not be checked", file->path);
    }
    mpicrypt_table_free(listed);
    mpicrypt_table_free(regions);
    return code;
}

int mpicrypt_file_root(mpicrypt_opened_t *file, uint8_t hash[OPAL_CRYPT_HASH_BYTES])
{
    opal_cryptfile_tree_t tree;
    opal_crypt_why_t why = {.topic = NULL};
    int rc = opal_cryptfile_tree_check(file->file, &tree, hash, &why);

    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_file_refused(file->subject, file->path, MPICRYPT_FILE_ERR_FORGED, rc, &why);
}

/* ---- the copies of the map ---- */

/* The keys of a copy may be older than those here: see `differ`. */
static bool says_the_same(const mpicrypt_opened_t *file, opal_cryptfile_copy_t copy)
{
    const opal_cryptfile_copy_state_t *state = &file->found.copies[copy];
    const opal_cryptfile_map_digest_t *best = &file->found.copies[file->found.best].head;

    return (state->verified || state->digest || NULL != state->map) && state->head.generation == best->generation
           && 0 == memcmp(state->head.uuid, best->uuid, sizeof(best->uuid))
           && 0 == memcmp(state->head.hash, best->hash, sizeof(best->hash));
}

/* Both places must have the map, with the same keys.  The attribute may be missing: programs that copy files drop it. */
static int check_copies(const mpicrypt_opened_t *file)
{
    const opal_cryptfile_copy_state_t *copies = file->found.copies;
    mpicrypt_file_subject_t *subject = file->subject;

    if (!says_the_same(file, OPAL_CRYPTFILE_COPY_PLACE_0) || !says_the_same(file, OPAL_CRYPTFILE_COPY_PLACE_1)) {
        mpicrypt_file_finds(subject, MPICRYPT_FILE_IS_HALF);
        return mpicrypt_error(MPICRYPT_FAILED, "%s: one of its copies of the map is missing or damaged; opening the file for writing "
                              "repairs it", file->path);
    }
    if (copies[OPAL_CRYPTFILE_COPY_PLACE_0].refused || copies[OPAL_CRYPTFILE_COPY_PLACE_1].refused) {
        mpicrypt_file_finds(subject, MPICRYPT_FILE_IS_FORGED);
        return mpicrypt_error(MPICRYPT_FAILED, "%s: one of its copies of the map does not authenticate", file->path);
    }
    if (copies[OPAL_CRYPTFILE_COPY_ATTRIBUTE].present && !says_the_same(file, OPAL_CRYPTFILE_COPY_ATTRIBUTE)) {
        mpicrypt_file_finds(subject, MPICRYPT_FILE_IS_HALF);
        return mpicrypt_error(MPICRYPT_FAILED, "%s: the map in its attribute is another or damaged; opening the file for writing repairs it",
                              file->path);
    }
    if (file->found.differ) {
        mpicrypt_file_finds(subject, MPICRYPT_FILE_IS_HALF);
        return mpicrypt_error(MPICRYPT_FAILED, "%s: one of its copies of the map has old keys; 'mpicrypt file rekey' replaces them, and so "
                              "does opening the file for writing", file->path);
    }
    return MPICRYPT_OK;
}

/* ---- the command ---- */

/* A sealed file must match its seal; its blocks are checked in any case. */
static int check_seal(const mpicrypt_file_choices_t *options, mpicrypt_opened_t *file)
{
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    int code = file->found.sealed ? mpicrypt_file_root(file, hash) : MPICRYPT_OK;

    if (MPICRYPT_OK == code && !options->json && !options->verdict) {
        fprintf(file->subject->out, "seal: %s\n", !file->found.sealed ? "none" : all_keys(file) ? "the file is as it was sealed"
               : "the regions whose keys are here are as they were sealed; the others were not checked");
    }
    return code;
}

int mpicrypt_file_examine(const mpicrypt_file_choices_t *options, const char *path)
{
    mpicrypt_opened_t file;
    int code = mpicrypt_file_open_verified(options, path, false, &file);

    if (MPICRYPT_OK != code) {
        return code;
    }
    int seal = check_seal(options, &file), copies = check_copies(&file);
    const mpicrypt_file_around_t around = {.seal = MPICRYPT_OK == seal, .copies = MPICRYPT_OK == copies};
    code = mpicrypt_file_check(options, &file, &around);
    mpicrypt_file_close_engine(&file);
    return MPICRYPT_OK != code ? code : MPICRYPT_OK != seal ? seal : copies;
}
