/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file cp --new-key, reencrypt: the same bytes in another file, with its own
 * UUID and data keys, and the same regions, labels and algorithms.  No block of one
 * opens in the other.
 *
 *     cp          FROM -> TO, which does not exist
 *     reencrypt   FILE -> FILE.0123456789abcdef.part, then over FILE: sidecar, data.
 *                 If killed between the two, FILE is refused, and the same command again
 *                 finishes: the number in the part's name begins the new UUID.  Old and new
 *                 sidecar are locked exclusively until both files are in place.  A file that is
 *                 one file is exchanged for the part, if it is still what was copied
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/text.h"

enum { PART_BYTES = 4 << 20, REQUESTS = 65536 };

static int failed(const char *path) { return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", path, strerror(errno)); }

/* ---- the bytes ---- */

typedef struct copy {
    mpicrypt_file_t *from, *to;
    uint32_t region;
    uint64_t plain;                     /* where `bytes` begin in the region's stream, which is cut into blocks */
    uint8_t *bytes;
    size_t room, have;                  /* have: requested so far */
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
        size_t here = copy->room - copy->have < count ? copy->room - copy->have : (size_t) count;
        copy->requests[copy->count++] = (opal_cryptfile_request_t){copy->bytes + copy->have, offset, here};
        copy->have += here;
        offset += here;
        count -= here;
        if (copy->have == copy->room || REQUESTS == copy->count) {
            code = flush(copy);
        }
    }
    return code;
}

/* The end of a region's stream, and the offset of a position in it; false: the group has no more of its bytes. */
static uint64_t stream_end(const copy_t *copy, const opal_cryptfile_tiling_t *tiling)
{
    const opal_cryptfile_geometry_t *geometry = &copy->from->map->geometry;

    return 0 == geometry->group_bytes ? opal_cryptfile_tiling_before(tiling, copy->from->bytes)
                                      : opal_cryptfile_geometry_stand(geometry, tiling, copy->from->bytes);
}

static bool stands(const copy_t *copy, const opal_cryptfile_tiling_t *tiling, uint64_t plain, uint64_t *offset, uint64_t *together)
{
    const opal_cryptfile_geometry_t *geometry = &copy->from->map->geometry;

    return 0 == geometry->group_bytes ? opal_cryptfile_tiling_locate(tiling, plain, offset, together)
                                      : opal_cryptfile_geometry_locate(geometry, tiling, plain, offset, together);
}

/* Copies a region in the order of its stream, so that its blocks are written whole, and once. */
static int copy_region(copy_t *copy, uint32_t number)
{
    const opal_cryptfile_tiling_t *tiling = &copy->from->map->regions[number].tiling;
    uint64_t total = stream_end(copy, tiling), offset, together;
    int code = MPICRYPT_OK;

    for (uint64_t plain = 0; plain < total && MPICRYPT_OK == code; plain += together) {
        if (stands(copy, tiling, plain, &offset, &together)) {
            together = together < total - plain ? together : total - plain;
            code = ask(copy, offset, together);
        } else {                        /* the next group has whole blocks again */
            uint64_t group = opal_cryptfile_geometry_data(&copy->from->map->geometry);
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

static size_t room_for_blocks(const opal_cryptfile_map_t *map)
{
    size_t room = PART_BYTES;

    for (uint32_t i = 0; i < map->region_count; ++i) {
        room = map->regions[i].block_bytes > room ? map->regions[i].block_bytes : room;
    }
    return room;
}

static int copy_all(mpicrypt_file_t *from, mpicrypt_file_t *to)
{
    copy_t *copy = calloc(1, sizeof(*copy));
    size_t room = room_for_blocks(from->map);
    uint8_t *bytes = malloc(room);
    opal_cryptfile_outcome_t outcome;
    int code = NULL == copy || NULL == bytes ? failed(to->path) : MPICRYPT_OK;

    if (MPICRYPT_OK == code) {
        *copy = (copy_t){.from = from, .to = to, .bytes = bytes, .room = room};
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
        opal_crypt_wipe(bytes, room);
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
    if (MPICRYPT_OK == code && from->header.sealed) {
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
        mpicrypt_file_close(from);
    }
    return code;
}

/* `to` stays open; the caller closes it. */
static int make_part(const mpicrypt_file_options_t *options, mpicrypt_file_t *from, const char *part, uint64_t number,
                     mpicrypt_file_t *to)
{
    struct stat status;
    unsigned mode;
    int code;

    if (0 != fstat(from->posix.data_fd, &status)) {
        return failed(from->path);
    }
    mode = mpicrypt_file_mode(from->posix.data_fd, &status);
    code = mpicrypt_file_make_like(options, from, part, mode, number, to);
    if (MPICRYPT_OK != code) {
        return code;
    }
    code = mpicrypt_file_take(to, options->alone);
    code = MPICRYPT_OK == code ? copy_all(from, to) : code;
    if (MPICRYPT_OK == code && from->header.sealed) {
        to->bytes = from->bytes;
        code = mpicrypt_file_make_seal(to);
    }
    /* The replacement of FILE keeps FILE's owner; so does a copy made by root. */
    if (MPICRYPT_OK == code
        && !(options->alone || 0 == geteuid() ? mpicrypt_file_own_as(to->posix.data_fd, from->posix.data_fd)
                                                    && mpicrypt_file_own_as(to->posix.sidecar_fd, from->posix.sidecar_fd)
                                              : mpicrypt_file_protect(to, mode))) {
        code = failed(part);
    }
    if (MPICRYPT_OK != code) {
        mpicrypt_file_close(to);
    }
    return code;
}

int mpicrypt_file_cp(const mpicrypt_file_options_t *options, const char *path, const char *to)
{
    mpicrypt_file_t from, made;
    const char *part;
    uint64_t number;

    if (!options->new_key) {
        return mpicrypt_error(MPICRYPT_USAGE, "cp needs --new-key; 'cp -a' copies the file as it is, with its keys");
    }
    int code = open_from(options, path, &from);
    if (MPICRYPT_OK != code) {
        return code;
    }
    code = mpicrypt_file_begin(to, true, &part, &number);
    if (MPICRYPT_OK == code) {
        code = make_part(options, &from, part, number, &made);
        if (MPICRYPT_OK == code) {
            code = mpicrypt_file_finish(to, !ompi_common_cryptmpio_posix_is_one(&made.posix));
            mpicrypt_file_close(&made);
        } else {
            mpicrypt_file_drop();
        }
    }
    mpicrypt_file_close(&from);
    return code;
}

/* ---- reencrypt ---- */

/* The name of the part that an earlier run left, by the number that begins the sidecar's UUID; false if there is no
 * such part.  The number is public, so anybody may have created a file of that name: it must belong to the
 * sidecar, and FILE to another one. */
static bool find_earlier(mpicrypt_file_t *file, char part[PATH_MAX])
{
    uint8_t of_part[OPAL_CRYPTFILE_UUID_BYTES], of_file[OPAL_CRYPTFILE_UUID_BYTES];
    uint64_t number;

    if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_open(&file->posix, file->sidecar, 0) ||
        OPAL_CRYPT_OK != opal_cryptfile_sidecar_read(&file->posix.super, &file->header)) {
        return false;
    }
    memcpy(&number, file->header.uuid, sizeof(number));
    return mpicrypt_file_part_name(file->path, number, part)
           && ompi_common_cryptmpio_posix_uuid_at(part, of_part) && 0 == memcmp(of_part, file->header.uuid, sizeof(of_part))
           && ompi_common_cryptmpio_posix_uuid_at(file->path, of_file) && 0 != memcmp(of_file, file->header.uuid, sizeof(of_file));
}

/* An earlier run has put its sidecar in place, but not its data.  Our keys must open the resulting file. */
static int finish_earlier(const mpicrypt_file_options_t *options, const char *path, bool *finished)
{
    mpicrypt_file_t file = {.path = path, .sidecar = ompi_common_cryptmpio_posix_sidecar(path)};
    char part[PATH_MAX];
    bool one = false;
    int code = MPICRYPT_OK;

    ompi_common_cryptmpio_posix_init(&file.posix, open(path, O_RDWR | O_CLOEXEC), true);
    *finished = file.posix.data_fd >= 0 && OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_begins_as_one(&file.posix, &one) && !one
                && NULL != file.sidecar && find_earlier(&file, part);
    if (*finished) {
        code = mpicrypt_file_take(&file, true);
        code = MPICRYPT_OK != code || (0 == rename(part, path) && OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_sync_names(path)) ? code : failed(path);
    }
    mpicrypt_file_close(&file);
    if (*finished && MPICRYPT_OK == code) {
        code = mpicrypt_file_open_verified(options, path, true, &file);
    }
    if (*finished && MPICRYPT_OK == code) {
        mpicrypt_file_close(&file);
        snprintf(part, sizeof(part), "%s", path);
        printf("%s: finished what an earlier reencrypt began\n", opal_crypt_harmless(part, ""));
    }
    return code;
}

int mpicrypt_file_reencrypt(const mpicrypt_file_options_t *options, const char *path)
{
    mpicrypt_file_options_t with = *options;
    char real[PATH_MAX];
    mpicrypt_file_t from, made;
    struct stat was;
    const char *part;
    uint64_t number;
    bool finished;

    if (NULL == realpath(path, real)) {         /* a link stays a link */
        return failed(path);
    }
    with.alone = true;
    int code = finish_earlier(&with, real, &finished);
    if (MPICRYPT_OK != code || finished) {
        return code;
    }
    code = open_from(&with, real, &from);
    if (MPICRYPT_OK != code) {
        return code;
    }
    code = 0 == fstat(from.posix.data_fd, &was) ? mpicrypt_file_begin_over(real, &part, &number) : failed(real);
    if (MPICRYPT_OK == code) {
        code = make_part(&with, &from, part, number, &made);
        if (MPICRYPT_OK == code) {
            code = ompi_common_cryptmpio_posix_is_one(&made.posix) ? mpicrypt_file_finish_one(real, &was)
                                                                   : mpicrypt_file_finish_over(real);
            mpicrypt_file_close(&made);
        } else {
            mpicrypt_file_drop();
        }
    }
    mpicrypt_file_close(&from);
    return code;
}
