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
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "opal/mca/common/crypt/base/secmem.h"

enum { PART_BYTES = 4 << 20, REQUESTS = 65536 };

static int failed(const char *path) { return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", path, strerror(errno)); }

/* ---- the bytes ---- */

typedef struct copy {
    mpicrypt_file_t *from, *to;
    uint32_t region;
    uint64_t plain;                     /* where `bytes` begin in the region's stream, which is cut into blocks */
    uint8_t *bytes;
    size_t capacity, have;              /* have: requested so far */
    opal_cryptfile_request_t requests[REQUESTS];
    size_t count;
} copy_t;

static bool all_zero(const uint8_t *bytes, size_t count)
{
    return 0 == count || (0 == bytes[0] && 0 == memcmp(bytes, bytes + 1, count - 1));
}

/* A hole is visible, so zeros become one only if they were never written, or are not encrypted. */
static bool stays_hole(const copy_t *copy)
{
    const opal_cryptfile_region_t *region = &copy->from->map->regions[copy->region];
    opal_cryptfile_block_condition_t condition = OPAL_CRYPTFILE_BLOCK_HOLE;
    uint32_t plain_bytes;
    bool hole = all_zero(copy->bytes, copy->have);

    for (uint64_t at = copy->plain; region->encrypted && hole && at < copy->plain + copy->have;) {
        uint64_t block = at / region->block_bytes;
        hole = OPAL_CRYPT_OK == opal_cryptfile_check(copy->from->file, copy->region, block, &condition, &plain_bytes) &&
               OPAL_CRYPTFILE_BLOCK_HOLE == condition;
        at = (block + 1) * region->block_bytes;
    }
    return hole;
}

/* Read the requested bytes, and write them. */
static int flush(copy_t *copy)
{
    opal_cryptfile_outcome_t outcome;
    int code = MPICRYPT_OK;

    if (copy->count > 0 && OPAL_CRYPT_OK != opal_cryptfile_read(copy->from->file, copy->requests, copy->count, false, &outcome)) {
        code = mpicrypt_file_failed(copy->from, &outcome);
    } else if (copy->count > 0 && outcome.bytes != copy->have) {
        code = mpicrypt_error(MPICRYPT_FAILED, "%s: it became shorter meanwhile", copy->from->path);
    } else if (!stays_hole(copy) &&
               OPAL_CRYPT_OK != opal_cryptfile_write(copy->to->file, copy->requests, copy->count, false, &outcome)) {
        code = mpicrypt_file_failed(copy->to, &outcome);
    }
    copy->plain += copy->have;
    copy->count = copy->have = 0;
    return code;
}

static int ask(copy_t *copy, uint64_t offset, uint64_t count)
{
    int code = MPICRYPT_OK;

    while (count > 0 && MPICRYPT_OK == code) {
        size_t here = copy->capacity - copy->have < count ? copy->capacity - copy->have : (size_t) count;
        copy->requests[copy->count++] = (opal_cryptfile_request_t){copy->bytes + copy->have, offset, here};
        copy->have += here;
        offset += here;
        count -= here;
        if (copy->have == copy->capacity || REQUESTS == copy->count) {
            code = flush(copy);
        }
    }
    return code;
}

/* Copies a region in the order of its stream, so that its blocks are written whole, and once. */
static int copy_region(copy_t *copy, uint32_t number)
{
    const opal_cryptfile_geometry_t *geometry = &copy->from->map->geometry;
    const opal_cryptfile_tiling_t *tiling = &copy->from->map->regions[number].tiling;
    uint64_t total = opal_cryptfile_geometry_stand(geometry, tiling, copy->from->bytes), offset, together;
    int code = MPICRYPT_OK;

    for (uint64_t plain = 0; plain < total && MPICRYPT_OK == code; plain += together) {
        if (opal_cryptfile_geometry_locate(geometry, tiling, plain, &offset, &together)) {
            together = together < total - plain ? together : total - plain;
            code = ask(copy, offset, together);
        } else {                        /* the group has no more of its bytes; the next one has whole blocks again */
            uint64_t group = opal_cryptfile_geometry_data(geometry);
            together = group - plain % group;
            code = flush(copy);
            copy->plain = plain + together;
        }
        mpicrypt_progress(copy->to->path, plain, total);
    }
    return MPICRYPT_OK == code ? flush(copy) : code;
}

/* The rest: all bytes that belong to no other region. */
static int copy_rest(copy_t *copy, uint32_t rest)
{
    uint64_t plain, together;
    uint32_t region, hint = 0;
    int code = MPICRYPT_OK;

    for (uint64_t at = 0; at < copy->from->bytes && MPICRYPT_OK == code; at += together) {
        bool found = opal_cryptfile_map_find(copy->from->map, &hint, at, &region, &plain, &together);
        together = together < copy->from->bytes - at ? together : copy->from->bytes - at;
        code = found && rest == region ? ask(copy, at, together) : MPICRYPT_OK;
    }
    return MPICRYPT_OK == code ? flush(copy) : code;
}

static size_t copy_capacity(const opal_cryptfile_map_t *map)
{
    size_t capacity = PART_BYTES;

    for (uint32_t i = 0; i < map->region_count; ++i) {
        capacity = map->regions[i].block_bytes > capacity ? map->regions[i].block_bytes : capacity;
    }
    return capacity;
}

static int copy_all(mpicrypt_file_t *from, mpicrypt_file_t *to)
{
    copy_t *copy = calloc(1, sizeof(*copy));
    size_t capacity = copy_capacity(from->map);
    uint8_t *bytes = malloc(capacity);
    opal_cryptfile_outcome_t outcome;
    int code = NULL == copy || NULL == bytes ? failed(to->path) : MPICRYPT_OK;

    if (MPICRYPT_OK == code) {
        *copy = (copy_t){.from = from, .to = to, .bytes = bytes, .capacity = capacity};
    }
    for (uint32_t i = 0; MPICRYPT_OK == code && i < from->map->region_count; ++i) {
        copy->region = i;
        copy->plain = 0;
        code = 0 == from->map->regions[i].tiling.run_count ? copy_rest(copy, i) : copy_region(copy, i);
    }
    mpicrypt_progress_end();
    if (MPICRYPT_OK == code && OPAL_CRYPT_OK != opal_cryptfile_resize(to->file, from->bytes, &outcome)) {
        code = mpicrypt_file_failed(to, &outcome);
    }
    if (MPICRYPT_OK == code && OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_sync(&to->posix)) {
        code = failed(to->path);
    }
    if (NULL != bytes) {
        opal_crypt_wipe(bytes, capacity);
    }
    free(bytes);
    free(copy);
    return code;
}

/* ---- the files ---- */

/* A sealed file must match its seal; the new file is sealed, too. */
static int open_from(const mpicrypt_file_options_t *options, const char *path, mpicrypt_file_t *from)
{
    int code = mpicrypt_file_open_verified(options, path, options->alone, from);

    if (MPICRYPT_OK != code) {
        return code;
    }
    code = mpicrypt_file_proved(from);
    if (MPICRYPT_OK == code && from->sealed) {
        opal_crypt_why_t why = {.topic = NULL};
        int rc = mpicrypt_file_demand(from, NULL, &why);
        code = OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused(path, rc, &why);
    }
    for (uint32_t i = 0; MPICRYPT_OK == code && i < from->map->region_count; ++i) {
        if (from->map->regions[i].encrypted && NULL == from->keys[i].data_key) {
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
static int make_part(const mpicrypt_file_options_t *options, mpicrypt_file_t *from, const char *part, mpicrypt_file_t *to)
{
    struct stat status;
    unsigned mode;
    int code;

    if (0 != fstat(from->posix.data_fd, &status)) {
        return failed(from->path);
    }
    mode = mpicrypt_file_mode(from->posix.data_fd, &status);
    code = mpicrypt_file_make_like(options, from, part, mode, to);
    if (MPICRYPT_OK != code) {
        return code;
    }
    code = mpicrypt_file_take(to, options->alone);
    code = MPICRYPT_OK == code ? copy_all(from, to) : code;
    if (MPICRYPT_OK == code && from->sealed) {
        to->bytes = from->bytes;
        code = mpicrypt_file_make_seal(to);
    }
    /* The replacement of FILE keeps FILE's owner; so does a copy made by root. */
    if (MPICRYPT_OK == code
        && !(options->alone || 0 == geteuid() ? mpicrypt_file_own_as(to->posix.data_fd, from->posix.data_fd)
                                              : mpicrypt_file_protect(to, mode))) {
        code = failed(part);
    }
    if (MPICRYPT_OK != code) {
        mpicrypt_file_close_engine(to);
    }
    return code;
}

/* `was`: of the file at `to`, which is replaced; NULL: there is none. */
static int make_anew(const mpicrypt_file_options_t *options, mpicrypt_file_t *from, const char *to, const struct stat *was)
{
    mpicrypt_file_t made;
    const char *part;
    int code = NULL == was ? mpicrypt_file_begin(to, &part) : mpicrypt_file_begin_over(to, &part);

    if (MPICRYPT_OK != code) {
        return code;
    }
    code = make_part(options, from, part, &made);
    if (MPICRYPT_OK != code) {
        mpicrypt_file_drop();
        return code;
    }
    code = NULL == was ? mpicrypt_file_finish(to) : mpicrypt_file_finish_over(to, was);
    mpicrypt_file_close_engine(&made);
    return code;
}

int mpicrypt_file_cp(const mpicrypt_file_options_t *options, const char *path, const char *to)
{
    mpicrypt_file_t from;

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

int mpicrypt_file_reencrypt(const mpicrypt_file_options_t *options, const char *path)
{
    mpicrypt_file_options_t with = *options;
    char real[PATH_MAX];
    mpicrypt_file_t from;
    struct stat was;

    if (NULL == realpath(path, real)) {         /* a link stays a link */
        return failed(path);
    }
    with.alone = true;
    int code = open_from(&with, real, &from);
    if (MPICRYPT_OK == code) {
        code = 0 == fstat(from.posix.data_fd, &was) ? make_anew(&with, &from, real, &was) : failed(real);
        mpicrypt_file_close_engine(&from);
    }
    return code;
}
