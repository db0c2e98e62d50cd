/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reading.  A large read is the engine's: blocks are read in runs and opened in the caller's memory, by several threads if
 * that was asked for.  A small one is put together from blocks of the cache:
 *
 *     read | size | large --> engine
 *                 | small --> for each part: whole blocks --> engine; else the cache | or read the block, keep it
 */
#include "lib/mpicrypt_file/reader.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/cryptfile/file/seal.h"

enum {
    LARGE_BYTES = 256 << 10,            /* from here on a read is large */
    SLICE_BYTES = 1 << 20,              /* of a large read, for one thread */
    SLICES_MOST = 64,
    SETTLED_LOCAL_S = 2,                /* a file that was changed so long ago has another time when it is changed again: */
    SETTLED_REMOTE_S = 600              /* longer where the clock is another node's */
};

#define NS INT64_C(1000000000)

/* ---- what the file is like ---- */

/* False: it was changed so recently that another change might leave the same times; nothing is kept of it. */
static bool read_stamp(const mpicrypt_file_t *file, mpicrypt_stamp_t *stamp)
{
    struct stat status;
    struct timespec now;

    memset(stamp, 0, sizeof(*stamp));
    if (file->sealed) {
        return true;
    }
    if (0 != fstat(file->posix.data_fd, &status) || 0 != clock_gettime(CLOCK_REALTIME, &now)) {
        return false;
    }
    stamp->changed = status.st_ctim.tv_sec * NS + status.st_ctim.tv_nsec;
    stamp->modified = status.st_mtim.tv_sec * NS + status.st_mtim.tv_nsec;
    stamp->bytes = (uint64_t) status.st_size;
    return now.tv_sec - (file->posix.remote ? SETTLED_REMOTE_S : SETTLED_LOCAL_S) > status.st_ctim.tv_sec;
}

int mpicrypt_size(mpicrypt_file_t *file, uint64_t *bytes, mpicrypt_file_error_t *error)
{
    struct stat status;

    if (!file->plain && opal_cryptfile_sealed_bytes(file->engine, bytes)) {
        return mpicrypt_fail_nothing(error);
    }
    if (file->plain && 0 == fstat(file->posix.data_fd, &status)) {
        *bytes = (uint64_t) status.st_size;
        return mpicrypt_fail_nothing(error);
    }
    int rc = file->plain ? OPAL_CRYPT_ERR_STORAGE : opal_cryptfile_size(file->engine, bytes);
    return OPAL_CRYPT_OK == rc ? mpicrypt_fail_nothing(error)
           : OPAL_CRYPT_ERR_STORAGE == rc ? mpicrypt_fail_errno(error, errno, file->name)
           : mpicrypt_fail(error, MPICRYPT_FILE_ERR_FORGED, 0, MPICRYPT_FILE_NOWHERE, file->name, "no file of ours has this length");
}

/* ---- a plain file ---- */

static int read_plain_file(const mpicrypt_file_t *file, uint64_t offset, uint8_t *memory, size_t bytes, size_t *got,
                           mpicrypt_file_error_t *error)
{
    for (*got = 0; *got < bytes && offset + *got <= INT64_MAX;) {
        ssize_t done = pread(file->posix.data_fd, memory + *got, bytes - *got, (off_t) (offset + *got));
        if (done < 0 && EINTR == errno) {
            continue;
        }
        if (done < 0) {
            int failed = errno;
            memset(memory, 0, bytes);
            *got = 0;
            return mpicrypt_fail_errno(error, failed, file->name);
        }
        if (0 == done) {
            break;
        }
        *got += (size_t) done;
    }
    return mpicrypt_fail_nothing(error);
}

/* ---- large ---- */

typedef struct slices {
    pthread_mutex_t lock;
    pthread_cond_t done;
    unsigned left;
} slices_t;

typedef struct slice {
    opal_crypt_job_t job;               /* first */
    slices_t *all;
    opal_cryptfile_t *engine;
    opal_cryptfile_request_t request;
    opal_cryptfile_outcome_t outcome;
} slice_t;

static void slice_read(opal_crypt_job_t *job)
{
    slice_t *slice = (slice_t *) job;

    (void) opal_cryptfile_read(slice->engine, &slice->request, 1, false, &slice->outcome);
    pthread_mutex_lock(&slice->all->lock);
    if (0 == --slice->all->left) {
        pthread_cond_signal(&slice->all->done);
    }
    pthread_mutex_unlock(&slice->all->lock);
}

/* The bytes up to the first slice in which the file ended, or the first failure. */
static void slices_join(const slice_t *slices, unsigned count, opal_cryptfile_outcome_t *outcome)
{
    bool ended = false;

    *outcome = (opal_cryptfile_outcome_t){.region = UINT32_MAX};
    for (unsigned i = 0; i < count && OPAL_CRYPT_OK == outcome->rc; ++i) {
        if (OPAL_CRYPT_OK != slices[i].outcome.rc) {
            *outcome = slices[i].outcome;
        } else if (!ended) {
            outcome->bytes += slices[i].outcome.bytes;
            ended = slices[i].outcome.bytes < slices[i].request.bytes;
        }
    }
}

static void read_by_threads(mpicrypt_file_t *file, const opal_cryptfile_request_t *request, opal_cryptfile_outcome_t *outcome)
{
    unsigned count = request->bytes / SLICE_BYTES < SLICES_MOST ? (unsigned) (request->bytes / SLICE_BYTES) : SLICES_MOST;
    const size_t each = request->bytes / count / SLICE_BYTES * SLICE_BYTES;
    slices_t all = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER, .left = count};
    slice_t slices[SLICES_MOST];

    for (unsigned i = 0; i < count; ++i) {
        slices[i] = (slice_t){.job = {.work = slice_read}, .all = &all, .engine = file->engine,
                              .request = {(uint8_t *) request->memory + i * each, request->offset + i * each,
                                          i + 1 < count ? each : request->bytes - i * each}};
    }
    for (unsigned i = 1; i < count; ++i) {
        opal_crypt_team_submit(file->team, &slices[i].job);
    }
    slice_read(&slices[0].job);
    pthread_mutex_lock(&all.lock);
    while (all.left > 0) {
        pthread_cond_wait(&all.done, &all.lock);
    }
    pthread_mutex_unlock(&all.lock);
    for (unsigned i = 1; i < count; ++i) {      /* the team touches a job once more when its work is done */
        while (!opal_crypt_job_done(&slices[i].job)) {
        }
    }
    pthread_mutex_destroy(&all.lock);
    pthread_cond_destroy(&all.done);
    slices_join(slices, count, outcome);
}

static void read_large(mpicrypt_file_t *file, const opal_cryptfile_request_t *request, opal_cryptfile_outcome_t *outcome)
{
    if (NULL != file->team && request->bytes >= 2 * (size_t) SLICE_BYTES) {
        read_by_threads(file, request, outcome);
    } else {
        (void) opal_cryptfile_read(file->engine, request, 1, false, outcome);
    }
}

/* ---- small ---- */

typedef struct small_read {
    mpicrypt_file_t *file;
    const opal_cryptfile_map_t *map;
    mpicrypt_stamp_t stamp;
    bool keep;
} small_read_t;

static int read_from_block(const small_read_t *s, const opal_cryptfile_spot_t *spot, uint8_t *memory, size_t bytes,
                           opal_cryptfile_outcome_t *outcome)
{
    const mpicrypt_block_name_t name = {spot->block, spot->region, s->map->regions[spot->region].block_bytes};

    if (s->keep && mpicrypt_cache_copy(s->file->cache, &name, &s->stamp, spot->within, memory, bytes)) {
        return OPAL_CRYPT_OK;
    }
    uint8_t *text = mpicrypt_cache_room(s->file->cache, name.block_bytes);
    int rc = NULL == text ? OPAL_CRYPT_ERR_MEMORY
                          : opal_cryptfile_read_block(s->file->engine, spot->region, spot->block, text, outcome);
    if (OPAL_CRYPT_OK == rc) {
        memcpy(memory, text + spot->within, bytes);
    } else {
        outcome->rc = rc;
    }
    if (OPAL_CRYPT_OK == rc && s->keep) {
        mpicrypt_cache_put(s->file->cache, &name, &s->stamp, text);
    } else {
        opal_crypt_secmem_free(text);
    }
    return rc;
}

/* By way of the engine, which also finds the reason if there is no region or no key. */
static int read_piece(const small_read_t *s, uint64_t offset, uint8_t *memory, size_t bytes, opal_cryptfile_outcome_t *outcome)
{
    const opal_cryptfile_request_t request = {memory, offset, bytes};
    int rc = opal_cryptfile_read(s->file->engine, &request, 1, false, outcome);

    if (OPAL_CRYPT_OK == rc && outcome->bytes < bytes) {
        memset(memory + outcome->bytes, 0, bytes - outcome->bytes);     /* the file was cut meanwhile */
    }
    return rc;
}

/* `bytes`: up to the end of the file. */
static void read_small(mpicrypt_file_t *file, const opal_cryptfile_request_t *request, opal_cryptfile_outcome_t *outcome)
{
    small_read_t s = {.file = file, .map = opal_cryptfile_map_of(file->engine)};
    uint8_t *memory = request->memory;
    uint32_t hint = 0;
    int rc = OPAL_CRYPT_OK;

    *outcome = (opal_cryptfile_outcome_t){.region = UINT32_MAX};
    s.keep = read_stamp(file, &s.stamp);
    for (size_t done = 0; done < request->bytes && OPAL_CRYPT_OK == rc;) {
        const size_t left = request->bytes - done;
        opal_cryptfile_spot_t spot;
        bool by_block = opal_cryptfile_spot(file->engine, &hint, request->offset + done, &spot) && spot.encrypted
                        && file->readable[spot.region] && mpicrypt_cache_fits(file->cache, s.map->regions[spot.region].block_bytes);
        size_t part = spot.together > 0 && spot.together < left ? (size_t) spot.together : left;
        if (by_block && part == s.map->regions[spot.region].block_bytes) {
            by_block = false;           /* whole blocks are opened where they belong, and not kept */
            part = left - left % part;
        }
        rc = by_block ? read_from_block(&s, &spot, memory + done, part, outcome)
                      : read_piece(&s, request->offset + done, memory + done, part, outcome);
        done += part;
    }
    outcome->bytes = OPAL_CRYPT_OK == rc ? request->bytes : 0;
}

/* ---- all ---- */

int mpicrypt_read(mpicrypt_file_t *file, uint64_t offset, uint8_t *memory, size_t bytes, size_t *got, mpicrypt_file_error_t *error)
{
    opal_cryptfile_outcome_t outcome;
    uint64_t end = 0;

    *got = 0;
    if (0 == bytes) {
        return mpicrypt_fail_nothing(error);
    }
    if (file->plain) {
        return read_plain_file(file, offset, memory, bytes, got, error);
    }
    int status = mpicrypt_size(file, &end, error);
    if (MPICRYPT_FILE_OK != status || offset >= end) {
        if (MPICRYPT_FILE_OK != status) {
            memset(memory, 0, bytes);
        }
        return status;
    }
    const size_t there = end - offset < bytes ? (size_t) (end - offset) : bytes;
    const opal_cryptfile_request_t request = {memory, offset, there};
    if (there >= LARGE_BYTES) {
        read_large(file, &request, &outcome);
    } else {
        read_small(file, &request, &outcome);
    }
    if (OPAL_CRYPT_OK != outcome.rc) {
        memset(memory, 0, bytes);
        return mpicrypt_fail_engine(error, file->name, file->engine, &outcome);
    }
    *got = (size_t) outcome.bytes;
    return mpicrypt_fail_nothing(error);
}
