/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file cp --new-key, reencrypt: the same bytes in another file, with its own
 * UUID and data keys, and the same regions, labels and algorithms.  No block of one
 * opens in the other.
 *
 *     cp          FROM -> TO, which does not exist
 *     reencrypt   FILE -> FILE.0123456789abcdef.part, which is exchanged for FILE if that is still what was
 *                 copied.  Both are locked exclusively until then
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crew.h"
#include "file.h"
#include "opal/mca/common/crypt/base/secmem.h"

enum { REQUESTS = 65536 };

static int failed(const char *path) { return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", path, strerror(errno)); }

/* ---- the bytes, by several threads ---- */

/* Regions are copied one after the other, each in the order of its stream, so that its blocks are written whole, and once;
 * except for the rest, which is all bytes that belong to no other region. */
typedef struct copy {
    mpicrypt_opened_t *from, *to;
    size_t capacity;                    /* of a part */
    uint32_t region, hint;
    uint64_t next;                      /* in the region's stream or, for the rest, in the file */
} copy_t;

typedef struct copy_part {
    uint32_t region;
    uint64_t plain;                     /* where `bytes` begin in the region's stream, which is cut into blocks */
    size_t have;                        /* requested so far */
    size_t count;
    opal_cryptfile_request_t requests[REQUESTS];
    uint8_t bytes[];
} copy_part_t;

/* A hole is visible, so zeros become one only if they were never written, or are not encrypted. */
static bool stays_hole(const copy_t *copy, const copy_part_t *part)
{
    const opal_cryptfile_region_t *region = &copy->from->map->regions[part->region];
    opal_cryptfile_block_condition_t condition = OPAL_CRYPTFILE_BLOCK_HOLE;
    uint32_t plain_bytes;
    bool hole = opal_crypt_all_zero(part->bytes, part->have);

    for (uint64_t at = part->plain; region->encrypted && hole && at < part->plain + part->have;) {
        uint64_t block = at / region->block_bytes;
        hole = OPAL_CRYPT_OK == opal_cryptfile_check(copy->from->file, part->region, block, &condition, &plain_bytes) &&
               OPAL_CRYPTFILE_BLOCK_HOLE == condition;
        at = (block + 1) * region->block_bytes;
    }
    return hole;
}

/* Read the requested bytes, and write them. */
static bool copy_work(void *of, void *memory, mpicrypt_file_fault_t *fault)
{
    const copy_t *copy = of;
    copy_part_t *part = memory;
    opal_cryptfile_outcome_t outcome;

    if (OPAL_CRYPT_OK != opal_cryptfile_read(copy->from->file, part->requests, part->count, false, &outcome)) {
        return mpicrypt_file_fault_engine(fault, copy->from, &outcome);
    }
    if (outcome.bytes != part->have) {
        return mpicrypt_file_fault_text(fault, copy->from->path, "it became shorter meanwhile");
    }
    if (!stays_hole(copy, part) && OPAL_CRYPT_OK != opal_cryptfile_write(copy->to->file, part->requests, part->count, false, &outcome)) {
        return mpicrypt_file_fault_engine(fault, copy->to, &outcome);
    }
    mpicrypt_file_progress(part->have);
    return true;
}

/* Is this the rest: all bytes that belong to no other region? */
static bool is_rest(const copy_t *copy) { return 0 == copy->from->map->regions[copy->region].tiling.run_count; }

/* The run of contiguous bytes at copy->next: its offset and place in the stream.  False: there is none up to *together. */
static bool run_at(copy_t *copy, uint64_t *offset, uint64_t *plain, uint64_t *together)
{
    const opal_cryptfile_geometry_t *geometry = &copy->from->map->geometry;
    uint32_t region;
    bool found;

    if (is_rest(copy)) {
        *offset = copy->next;
        found = opal_cryptfile_map_find(copy->from->map, &copy->hint, copy->next, &region, plain, together) && copy->region == region;
    } else {
        *plain = copy->next;
        found = opal_cryptfile_geometry_locate(geometry, &copy->from->map->regions[copy->region].tiling, copy->next, offset, together);
        if (!found) {                   /* the group has no more of its bytes; the next one has whole blocks again */
            uint64_t group = opal_cryptfile_geometry_data(geometry);
            *together = group - copy->next % group;
        }
    }
    return found;
}

/* Where copy->next ends. */
static uint64_t copy_end(const copy_t *copy)
{
    const opal_cryptfile_map_t *map = copy->from->map;

    return is_rest(copy) ? copy->from->bytes
                         : opal_cryptfile_geometry_stand(&map->geometry, &map->regions[copy->region].tiling, copy->from->bytes);
}

/* Bytes that follow one another in a region's stream. */
static bool copy_next(void *of, void *memory)
{
    copy_t *copy = of;
    copy_part_t *part = memory;
    uint64_t offset, plain, together;

    part->have = part->count = 0;
    while (copy->region < copy->from->map->region_count && 0 == part->have) {
        part->region = copy->region;
        for (uint64_t end = copy_end(copy); copy->next < end && part->have < copy->capacity && part->count < REQUESTS;) {
            bool found = run_at(copy, &offset, &plain, &together);
            together = together < end - copy->next ? together : end - copy->next;
            if (part->have > 0 && (!found || plain != part->plain + part->have)) {
                if (found) {
                    return true;        /* the next part begins there */
                }
                copy->next += together;
                if (!is_rest(copy)) {
                    return true;
                }
                continue;
            }
            if (found) {
                together = together < copy->capacity - part->have ? together : copy->capacity - part->have;
                part->plain = 0 == part->have ? plain : part->plain;
                part->requests[part->count++] = (opal_cryptfile_request_t){part->bytes + part->have, offset, (size_t) together};
                part->have += (size_t) together;
            }
            copy->next += together;
        }
        if (copy->next >= copy_end(copy)) {
            ++copy->region;
            copy->next = copy->hint = 0;
        }
    }
    return part->have > 0;
}

static void *copy_begin(void *of) { return malloc(sizeof(copy_part_t) + ((copy_t *) of)->capacity); }

static void copy_wipe(void *of, void *memory)
{
    opal_crypt_wipe(((copy_part_t *) memory)->bytes, ((copy_t *) of)->capacity);
    free(memory);
}

static size_t copy_capacity(const opal_cryptfile_map_t *map)
{
    size_t capacity = MPICRYPT_FILE_PART_BYTES;

    for (uint32_t i = 0; i < map->region_count; ++i) {
        capacity = map->regions[i].block_bytes > capacity ? map->regions[i].block_bytes : capacity;
    }
    return capacity;
}

static int copy_all(mpicrypt_opened_t *from, mpicrypt_opened_t *to)
{
    const size_t capacity = copy_capacity(from->map);
    copy_t copy = {.from = from, .to = to, .capacity = from->bytes < capacity ? (size_t) from->bytes + 1 : capacity};
    const mpicrypt_file_crew_t crew = {&copy, (from->bytes + copy.capacity - 1) / copy.capacity, copy_begin, copy_next, copy_work,
                                       copy_wipe};
    opal_cryptfile_outcome_t outcome;
    int code = mpicrypt_file_crew(&crew);

    if (MPICRYPT_OK == code && OPAL_CRYPT_OK != opal_cryptfile_resize(to->file, from->bytes, &outcome)) {
        code = mpicrypt_file_failed(to, &outcome);
    }
    return MPICRYPT_OK != code || OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_sync(&to->posix) ? code : failed(to->path);
}

/* ---- the files ---- */

/* A sealed file must match its seal; the new file is sealed, too. */
static int open_from(const mpicrypt_file_choices_t *options, const char *path, mpicrypt_opened_t *from)
{
    int code = mpicrypt_file_open_verified(options, path, options->alone, from);

    if (MPICRYPT_OK != code) {
        return code;
    }
    code = mpicrypt_file_proved(from);
    code = MPICRYPT_OK == code && from->found.sealed ? mpicrypt_file_demand(from, NULL) : code;
    for (uint32_t i = 0; MPICRYPT_OK == code && i < from->map->region_count; ++i) {
        if (from->map->regions[i].encrypted && NULL == from->keys[i].data_key) {
            mpicrypt_file_finds(from->subject, MPICRYPT_FILE_HAS_NO_KEY);
            code = mpicrypt_error(MPICRYPT_FAILED, "%s: region %u: %s: there is no key for it here", path, (unsigned) i,
                                  from->map->regions[i].label);
        }
    }
    if (MPICRYPT_OK != code) {
        mpicrypt_file_close_engine(from);
    }
    return code;
}

/* `to` stays open; the caller closes it. */
static int make_part(const mpicrypt_file_choices_t *options, mpicrypt_opened_t *from, mpicrypt_file_part_t *part, mpicrypt_opened_t *to)
{
    struct stat status;
    unsigned mode;
    int code;

    if (0 != fstat(from->posix.data_fd, &status)) {
        return failed(from->path);
    }
    mode = mpicrypt_file_mode(from->posix.data_fd, &status);
    code = mpicrypt_file_make_like(options, from, mpicrypt_file_part_name(part), mode, to);
    if (MPICRYPT_OK != code) {
        return code;
    }
    mpicrypt_file_created(part);
    code = mpicrypt_file_take(to, options->alone);
    code = MPICRYPT_OK == code ? copy_all(from, to) : code;
    if (MPICRYPT_OK == code && from->found.sealed) {
        to->bytes = from->bytes;
        code = mpicrypt_file_make_seal(to);
    }
    /* The replacement of FILE keeps FILE's owner; so does a copy made by root. */
    if (MPICRYPT_OK == code
        && !(options->alone || 0 == geteuid() ? mpicrypt_file_own_as(to->posix.data_fd, from->posix.data_fd)
                                              : mpicrypt_file_protect(to, mode))) {
        code = failed(to->path);
    }
    if (MPICRYPT_OK != code) {
        mpicrypt_file_close_engine(to);
    }
    return code;
}

/* `was`: of the file at `to`, which is replaced; NULL: there is none. */
static int make_anew(const mpicrypt_file_choices_t *options, mpicrypt_opened_t *from, const char *to, const struct stat *was)
{
    mpicrypt_opened_t made;
    mpicrypt_file_part_t *part;
    int code = mpicrypt_file_begin(to, was, &part);

    if (MPICRYPT_OK != code) {
        return code;
    }
    code = make_part(options, from, part, &made);
    if (MPICRYPT_OK != code) {
        mpicrypt_file_drop(part);
        return code;
    }
    code = mpicrypt_file_finish(part, to, was);
    mpicrypt_file_close_engine(&made);
    return code;
}

int mpicrypt_file_cp(const mpicrypt_file_choices_t *options, const char *path, const char *to)
{
    mpicrypt_opened_t from;

    if (!options->new_key) {
        return mpicrypt_error(MPICRYPT_USAGE, "cp needs --new-key; 'cp -a' copies the file as it is, with its keys");
    }
    int code = open_from(options, path, &from);
    if (MPICRYPT_OK == code) {
        code = make_anew(options, &from, to, NULL);
        mpicrypt_file_close_engine(&from);
    }
    return code;
}

int mpicrypt_file_reencrypt(const mpicrypt_file_choices_t *options, const char *path)
{
    mpicrypt_opened_t from;
    struct stat was;
    int code = open_from(options, path, &from);

    if (MPICRYPT_OK == code) {
        code = 0 == fstat(from.posix.data_fd, &was) ? make_anew(options, &from, path, &was) : failed(path);
        mpicrypt_file_close_engine(&from);
    }
    return code;
}
