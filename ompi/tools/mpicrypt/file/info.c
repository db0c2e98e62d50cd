/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file info: the map.  Without a key it is only what the file claims,
 * which anybody may have written; the output says so.
 */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "file.h"
#include "ompi/tools/mpicrypt/key/list.h"
#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/text.h"

static const mpicrypt_column_t columns[] = {
    {"region", "region", 0}, {"algorithm", "algorithm", 0}, {"label", "label", 0}, {"version", "version", 0},
    {"fingerprint", "fingerprint", 0}, {"created", "created", 0},
    {"key", "key", 0}, {"block", "block", 0}, {"displacement", "displacement", 0}, {"extent", "extent", 0},
    {"runs", "runs", 0}, {"repeats", "repeats", 0}, {"bytes", "bytes", 0}, {NULL, NULL, 0}};

/* The map to show: the verified one, or the newest that can be read. */
static const opal_cryptfile_map_t *shown(const mpicrypt_opened_t *file)
{
    const opal_cryptfile_map_t *newest = file->map;

    for (int i = 0; NULL == file->map && i < OPAL_CRYPTFILE_COPIES; ++i) {
        const opal_cryptfile_map_t *map = file->found.copies[i].map;
        if (NULL != map && (NULL == newest || map->generation > newest->generation)) {
            newest = map;
        }
    }
    return newest;
}

/* Without a key of ours, the number of plaintext bytes is unknown. */
static bool length_known(const mpicrypt_opened_t *file) { return NULL != file->file; }

static void add_row(mpicrypt_table_t *table, const mpicrypt_opened_t *file, const opal_cryptfile_map_t *map, uint32_t number)
{
    static const char *const grants[] = {"none", "decrypts", "yes"};
    const opal_cryptfile_region_t *region = &map->regions[number];
    opal_cryptfile_wrapped_by_t by;
    char hex[2 * MPICRYPT_KEY_SHOWN_BYTES + 1], day[32];

    mpicrypt_table_count(table, number);
    mpicrypt_table_text(table, region->encrypted ? opal_cryptfile_algorithm_name(region->cipher) : "plain");
    mpicrypt_table_text(table, region->encrypted ? region->label : "-");
    if (region->encrypted && OPAL_CRYPT_OK == opal_cryptfile_wrapped_parse(region->wrapped, &by)) {
        mpicrypt_table_count(table, by.version);
        opal_crypt_hex_write(by.fingerprint, MPICRYPT_KEY_SHOWN_BYTES, hex);
        mpicrypt_table_text(table, hex);
        mpicrypt_table_text(table, mpicrypt_key_day(by.created, day));
    } else {
        for (int i = 0; i < 3; ++i) {
            mpicrypt_table_text(table, "-");
        }
    }
    mpicrypt_table_text(table, !region->encrypted ? "-" : NULL == file->keys ? "none" : grants[file->keys[number].grant]);
    mpicrypt_table_bytes(table, region->block_bytes);
    if (0 == region->tiling.run_count) {
        mpicrypt_table_text(table, "-");
        mpicrypt_table_text(table, "-");
        mpicrypt_table_text(table, "-");
        mpicrypt_table_text(table, "the rest");
    } else {
        mpicrypt_table_count(table, region->tiling.displacement);
        mpicrypt_table_count(table, region->tiling.extent);
        mpicrypt_table_count(table, region->tiling.run_count);
        mpicrypt_table_text(table, region->tiling.once ? "no" : "yes");
    }
    if (length_known(file) && region->tiling.run_count > 0) {
        mpicrypt_table_count(table, opal_cryptfile_tiling_before(&region->tiling, file->bytes));
    } else {
        mpicrypt_table_text(table, "-");
    }
}

static const char *copy_text(const opal_cryptfile_copy_state_t *copy)
{
    return !copy->present ? "none" : copy->digest ? "digest" : copy->refused ? "does not verify"
           : copy->verified ? "verifies" : NULL == copy->map ? "damaged" : "not checked";
}

static void print_seal(const mpicrypt_opened_t *file)
{
    FILE *out = file->subject->out;
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    char text[OPAL_CRYPTFILE_SEAL_TEXT_BYTES];

    if (file->found.sealed && NULL != file->file && OPAL_CRYPT_OK == opal_cryptfile_seal_hash(file->file, hash)) {
        opal_cryptfile_seal_text(hash, text);
        fprintf(out, "seal        root %s (not checked here)\n", text);
    } else {
        fprintf(out, "seal        %s\n", file->found.sealed ? "yes" : "none");
    }
}

static void print_head(const mpicrypt_opened_t *file, const opal_cryptfile_map_t *map)
{
    FILE *out = file->subject->out;
    char path[PATH_MAX];
    struct stat status = {.st_size = 0};

    (void) fstat(file->posix.data_fd, &status);
    snprintf(path, sizeof(path), "%s", file->subject->shown);
    if (length_known(file)) {
        fprintf(out, "file        %s: %llu bytes\n", opal_crypt_harmless(path, ""), (unsigned long long) file->bytes);
    } else {
        fprintf(out, "file        %s\n", opal_crypt_harmless(path, ""));
    }
    fprintf(out, "length      %llu bytes, of which %llu are on disk\n", (unsigned long long) status.st_size,
           512 * (unsigned long long) status.st_blocks);
    fprintf(out, "UUID        ");
    for (int i = 0; i < OPAL_CRYPTFILE_UUID_BYTES; ++i) {
        fprintf(out, "%02x", file->found.header.uuid[i]);
    }
    fprintf(out, "\nmap         generation %llu, %s\n", (unsigned long long) map->generation,
           NULL != file->map ? "verified" : "NOT VERIFIED: anybody may have written what follows");
    print_seal(file);
    fprintf(out, "copies      attribute: %s; file: %s, %s\n\n", copy_text(&file->found.copies[OPAL_CRYPTFILE_COPY_ATTRIBUTE]),
           copy_text(&file->found.copies[OPAL_CRYPTFILE_COPY_PLACE_0]), copy_text(&file->found.copies[OPAL_CRYPTFILE_COPY_PLACE_1]));
}

static void print(const mpicrypt_file_choices_t *options, const mpicrypt_opened_t *file, const opal_cryptfile_map_t *map)
{
    FILE *out = file->subject->out;
    mpicrypt_table_t *table = mpicrypt_table_new(columns);

    for (uint32_t i = 0; i < map->region_count; ++i) {
        add_row(table, file, map, i);
    }
    if (options->json) {
        fprintf(out, "{\"file\": ");
        mpicrypt_json_text(out, file->subject->shown);
        fprintf(out, ", \"state\": \"%s\"", mpicrypt_file_state_of(file->subject));
        if (length_known(file)) {
            fprintf(out, ", \"bytes\": %llu", (unsigned long long) file->bytes);
        }
        fprintf(out, ", \"generation\": %llu, \"verified\": %s, \"regions\": ", (unsigned long long) map->generation,
               NULL != file->map ? "true" : "false");
        mpicrypt_table_json_line(table, out);
    } else {
        print_head(file, map);
        mpicrypt_table_print(table, out);
    }
    mpicrypt_table_free(table);
}

int mpicrypt_file_show(const mpicrypt_file_choices_t *options, const char *path)
{
    mpicrypt_file_choices_t with = *options;
    mpicrypt_opened_t file;

    with.go_on = true;
    int code = mpicrypt_file_open_engine(&with, path, false, &file);

    if (MPICRYPT_OK != code) {
        return code;
    }
    const opal_cryptfile_map_t *map = shown(&file);
    if (NULL == file.file) {
        code = mpicrypt_file_says(file.subject, path, &file.error);
    }
    if (NULL != map) {
        print(options, &file, map);
    }
    mpicrypt_file_close_engine(&file);
    return code;
}
