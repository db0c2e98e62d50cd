/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file verify: every block is opened, nothing is changed.  A job may
 * be writing meanwhile; each block is checked under its lock.  Also checked: the
 * file's seal, if any, and the copies of its map.
 */
#include <errno.h>
#include <string.h>

#include "file.h"
#include "opal/mca/common/cryptfile/file/seal_tree.h"

enum { CONDITIONS = OPAL_CRYPTFILE_BLOCK_BAD + 1 };

typedef struct tally {
    uint64_t count[CONDITIONS];
    mpicrypt_table_t *listed;           /* torn and bad blocks */
} tally_t;

static const char *const condition_names[CONDITIONS] = {"hole", "good", "behind", "torn", "bad"};

static const mpicrypt_column_t listed_columns[] = {
    {"region", "region", 0}, {"block", "block", 0}, {"offset", "offset", 0}, {"state", "state", 0}, {NULL, NULL, 0}};
static const mpicrypt_column_t region_columns[] = {
    {"region", "region", 0}, {"label", "label", 0}, {"checked", "checked", 0}, {"holes", "holes", 0}, {"good", "good", 0},
    {"behind", "behind", 0}, {"torn", "torn", 0}, {"bad", "bad", 0}, {NULL, NULL, 0}};

static void list(tally_t *tally, const mpicrypt_file_t *file, uint32_t number, uint64_t block, const char *state)
{
    mpicrypt_table_count(tally->listed, number);
    mpicrypt_table_count(tally->listed, block);
    mpicrypt_table_count(tally->listed, opal_cryptfile_block_offset(file->file, number, block));
    mpicrypt_table_text(tally->listed, state);
}

static int check_region(const mpicrypt_file_t *file, uint32_t number, tally_t *tally)
{
    const opal_cryptfile_region_t *region = &file->map->regions[number];
    uint64_t blocks = opal_cryptfile_block_count(file->file, number, file->bytes);

    memset(tally->count, 0, sizeof(tally->count));
    for (uint64_t block = 0; (block = opal_cryptfile_block_next(file->file, number, block, blocks)) < blocks; ++block) {
        opal_cryptfile_block_condition_t condition;
        uint32_t plain_bytes;
        int rc = opal_cryptfile_check(file->file, number, block, &condition, &plain_bytes);
        if (OPAL_CRYPT_OK != rc) {
            const opal_cryptfile_outcome_t outcome = {.rc = rc, .error = errno,
                                                       .file_offset = opal_cryptfile_block_offset(file->file, number, block)};
            mpicrypt_progress_end();
            return mpicrypt_file_failed(file, &outcome);
        }
        ++tally->count[condition];
        if (OPAL_CRYPTFILE_BLOCK_TORN == condition || OPAL_CRYPTFILE_BLOCK_BAD == condition) {
            list(tally, file, number, block, condition_names[condition]);
        }
        if (0 == block % 256) {
            mpicrypt_progress(region->label, block, blocks);
        }
    }
    mpicrypt_progress_end();
    return MPICRYPT_OK;
}

static int check_all(const mpicrypt_file_t *file, mpicrypt_table_t *regions, tally_t *tally, bool *good)
{
    int code = MPICRYPT_OK;

    for (uint32_t i = 0; i < file->map->region_count && MPICRYPT_OK == code; ++i) {
        const opal_cryptfile_region_t *region = &file->map->regions[i];
        bool can = NULL != file->keys[i].data_key;
        if (!region->encrypted) {
            continue;
        }
        memset(tally->count, 0, sizeof(tally->count));
        code = can ? check_region(file, i, tally) : MPICRYPT_OK;
        *good = *good && can && 0 == tally->count[OPAL_CRYPTFILE_BLOCK_TORN] && 0 == tally->count[OPAL_CRYPTFILE_BLOCK_BAD];
        mpicrypt_table_count(regions, i);
        mpicrypt_table_text(regions, region->label);
        mpicrypt_table_text(regions, can ? "yes" : "no key");
        for (int k = 0; k < CONDITIONS; ++k) {
            mpicrypt_table_count(regions, tally->count[k]);
        }
    }
    return code;
}

static const char *truth(bool value) { return value ? "true" : "false"; }

/* A seal has a part for each region; checking it takes the region's key. */
static bool all_keys(const mpicrypt_file_t *file)
{
    bool all = true;

    for (uint32_t i = 0; i < file->map->region_count; ++i) {
        all = all && (!file->map->regions[i].encrypted || NULL != file->keys[i].data_key);
    }
    return all;
}

static void print_json(const mpicrypt_file_t *file, const mpicrypt_table_t *regions, const tally_t *tally, bool good,
                       const mpicrypt_file_around_t *around)
{
    printf("{\"good\": %s, \"seal\": \"%s\", \"copies\": %s, \"regions\": ", truth(good && around->seal && around->copies),
           !file->sealed ? "none" : !around->seal ? "broken" : all_keys(file) ? "holds" : "partly", truth(around->copies));
    mpicrypt_table_json(regions, stdout);
    printf(", \"blocks\": ");
    mpicrypt_table_json(tally->listed, stdout);
    printf("}\n");
}

static void print(const mpicrypt_table_t *regions, const tally_t *tally, bool good)
{
    mpicrypt_table_print(regions, stdout);
    if (!good) {
        printf("\n");
        mpicrypt_table_print(tally->listed, stdout);
    }
}

int mpicrypt_file_check(const mpicrypt_file_t *file, const mpicrypt_file_around_t *around)
{
    mpicrypt_table_t *regions = mpicrypt_table_new(region_columns);
    tally_t tally = {.listed = mpicrypt_table_new(listed_columns)};
    bool good = true;
    int code = check_all(file, regions, &tally, &good);

    if (MPICRYPT_OK == code && NULL != around) {
        print_json(file, regions, &tally, good, around);
    } else if (MPICRYPT_OK == code) {
        print(regions, &tally, good);
    }
    if (MPICRYPT_OK == code && !good) {
        code = mpicrypt_error(MPICRYPT_FAILED, "%s: some blocks cannot be read, or could not be checked", file->path);
    }
    mpicrypt_table_free(tally.listed);
    mpicrypt_table_free(regions);
    return code;
}

int mpicrypt_file_root(mpicrypt_file_t *file, uint8_t hash[OPAL_CRYPT_HASH_BYTES])
{
    opal_cryptfile_tree_t tree;
    opal_crypt_why_t why = {.topic = NULL};
    int rc = opal_cryptfile_tree_check(file->file, &tree, hash, &why);

    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused(file->path, rc, &why);
}

/* ---- the copies of the map ---- */

/* The keys of a copy may be older than those here: see `differ`. */
static bool says_the_same(const mpicrypt_file_t *file, opal_cryptfile_copy_t copy)
{
    const opal_cryptfile_copy_state_t *state = &file->copies[copy];
    const opal_cryptfile_map_digest_t *best = &file->copies[file->best].head;

    return (state->verified || state->digest || NULL != state->map) && state->head.generation == best->generation
           && 0 == memcmp(state->head.uuid, best->uuid, sizeof(best->uuid))
           && 0 == memcmp(state->head.hash, best->hash, sizeof(best->hash));
}

/* Both places must have the map, with the same keys.  The attribute may be missing: programs that copy files drop it. */
static int check_copies(const mpicrypt_file_t *file)
{
    const opal_cryptfile_copy_state_t *copies = file->copies;

    if (!says_the_same(file, OPAL_CRYPTFILE_COPY_PLACE_0) || !says_the_same(file, OPAL_CRYPTFILE_COPY_PLACE_1)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: one of its copies of the map is missing or damaged; opening the file for writing "
                              "repairs it", file->path);
    }
    if (copies[OPAL_CRYPTFILE_COPY_PLACE_0].refused || copies[OPAL_CRYPTFILE_COPY_PLACE_1].refused) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: one of its copies of the map does not authenticate", file->path);
    }
    if (copies[OPAL_CRYPTFILE_COPY_ATTRIBUTE].present && !says_the_same(file, OPAL_CRYPTFILE_COPY_ATTRIBUTE)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: the map in its attribute is another or damaged; opening the file for writing repairs it",
                              file->path);
    }
    if (file->differ) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: one of its copies of the map has old keys; 'mpicrypt file rekey' replaces them, and so "
                              "does opening the file for writing", file->path);
    }
    return MPICRYPT_OK;
}

/* ---- the command ---- */

/* A sealed file must match its seal; its blocks are checked in any case. */
static int check_seal(const mpicrypt_file_options_t *options, mpicrypt_file_t *file)
{
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    int code = file->sealed ? mpicrypt_file_root(file, hash) : MPICRYPT_OK;

    if (MPICRYPT_OK == code && !options->json) {
        printf("seal: %s\n", !file->sealed ? "none" : all_keys(file) ? "the file is as it was sealed"
               : "the regions whose keys are here are as they were sealed; the others were not checked");
    }
    return code;
}

int mpicrypt_file_examine(const mpicrypt_file_options_t *options, const char *path)
{
    mpicrypt_file_t file;
    int code = mpicrypt_file_open_verified(options, path, false, &file);

    if (MPICRYPT_OK != code) {
        return code;
    }
    int seal = check_seal(options, &file), copies = check_copies(&file);
    const mpicrypt_file_around_t around = {.seal = MPICRYPT_OK == seal, .copies = MPICRYPT_OK == copies};
    code = mpicrypt_file_check(&file, options->json ? &around : NULL);
    mpicrypt_file_close_engine(&file);
    return MPICRYPT_OK != code ? code : MPICRYPT_OK != seal ? seal : copies;
}
