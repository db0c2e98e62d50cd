/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Timing a batch of messages with one or more pinned threads.
 *
 *     worker:  pin, fill buffers, warm up | barrier | start, n messages, end
 *     batch:   (latest end - earliest start) / n
 *
 * Nothing but the provider's seal or open runs between start and end.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/base/thread.h"
#include "speed.h"

typedef enum { SEAL, OPEN } operation_t;

typedef struct worker {
    pthread_t thread;
    int index, cpu;
    uint8_t *plain, *cipher;            /* max_bytes each */
    size_t filled_bytes;                /* of both, so far */
    uint8_t tag[OPAL_AEAD_TAG_BYTES];
    uint64_t counter;                   /* no nonce is used twice under the key */

    /* the batch */
    const mpicrypt_speed_cell_t *cell;
    pthread_barrier_t *barrier;
    operation_t operation;
    size_t messages;
    double start, end;
    int rc;
} worker_t;

struct mpicrypt_speed_team {
    int threads;
    worker_t *workers;
};

static double now(void) { return 1e-9 * (double) opal_crypt_now(); }

static void *aligned(size_t bytes)
{
    void *block = NULL;
    return 0 == posix_memalign(&block, OPAL_AEAD_KEY_ALIGN, 0 == bytes ? 1 : bytes) ? block : NULL;
}

/* ---- the team ---- */

mpicrypt_speed_team_t *mpicrypt_speed_team_new(int threads, const int *cpus, size_t max_bytes)
{
    mpicrypt_speed_team_t *team = calloc(1, sizeof(*team));

    if (NULL == team) {
        return NULL;
    }
    team->threads = threads;
    team->workers = calloc((size_t) threads, sizeof(*team->workers));
    for (int i = 0; NULL != team->workers && i < threads; ++i) {
        worker_t *worker = &team->workers[i];
        worker->index = i;
        worker->cpu = cpus[i];
        worker->plain = aligned(max_bytes);
        worker->cipher = aligned(max_bytes);
        if (NULL == worker->plain || NULL == worker->cipher) {
            mpicrypt_speed_team_free(team);
            return NULL;
        }
    }
    if (NULL == team->workers) {
        free(team);
        return NULL;
    }
    return team;
}

void mpicrypt_speed_team_free(mpicrypt_speed_team_t *team)
{
    for (int i = 0; i < team->threads; ++i) {
        free(team->workers[i].plain);
        free(team->workers[i].cipher);
    }
    free(team->workers);
    free(team);
}

/* ---- the cell ---- */

int mpicrypt_speed_cell_init(mpicrypt_speed_cell_t *cell, const opal_aead_module_t *module,
                             opal_aead_cipher_t cipher, size_t bytes, int threads)
{
    /* The key is written here for all to read: it protects nothing. */
    static const uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES] = "a benchmark key guards nothing";
    int rc = OPAL_AEAD_ERROR;

    memset(cell, 0, sizeof(*cell));
    cell->module = module;
    cell->cipher = cipher;
    cell->bytes = bytes;
    cell->key = aligned(module->key_bytes);
    cell->contexts = calloc((size_t) threads, sizeof(*cell->contexts));
    if (NULL == cell->key || NULL == cell->contexts) {
        goto free_memory;
    }
    rc = module->key_init(cipher, raw, cell->key);
    if (OPAL_AEAD_OK != rc) {
        goto free_memory;
    }
    for (; cell->context_count < threads; ++cell->context_count) {
        rc = module->context_new(&cell->contexts[cell->context_count]);
        if (OPAL_AEAD_OK != rc) {
            mpicrypt_speed_cell_wipe(cell);
            return rc;
        }
    }
    return OPAL_AEAD_OK;

free_memory:
    free(cell->key);
    free(cell->contexts);
    return rc;
}

void mpicrypt_speed_cell_wipe(mpicrypt_speed_cell_t *cell)
{
    cell->module->key_wipe(cell->key);
    for (int i = 0; i < cell->context_count; ++i) {
        cell->module->context_free(cell->contexts[i]);
    }
    free(cell->contexts);
    free(cell->key);
}

/* ---- one batch ---- */

static void nonce_next(worker_t *worker, uint8_t nonce[OPAL_AEAD_NONCE_BYTES])
{
    uint32_t index = (uint32_t) worker->index;
    ++worker->counter;
    memcpy(nonce, &index, 4);
    memcpy(nonce + 4, &worker->counter, 8);
}

static int seal_some(worker_t *worker, size_t messages)
{
    const mpicrypt_speed_cell_t *cell = worker->cell;
    opal_aead_context_t *context = cell->contexts[worker->index];
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES];
    int rc = OPAL_AEAD_OK;

    for (size_t i = 0; i < messages && OPAL_AEAD_OK == rc; ++i) {
        nonce_next(worker, nonce);
        rc = cell->module->seal(context, cell->key, nonce, NULL, 0, worker->plain, cell->bytes,
                                worker->cipher, worker->tag);
    }
    return rc;
}

static int open_some(worker_t *worker, const uint8_t nonce[OPAL_AEAD_NONCE_BYTES], size_t messages)
{
    const mpicrypt_speed_cell_t *cell = worker->cell;
    opal_aead_context_t *context = cell->contexts[worker->index];
    int rc = OPAL_AEAD_OK;

    for (size_t i = 0; i < messages && OPAL_AEAD_OK == rc; ++i) {
        rc = cell->module->open(context, cell->key, nonce, NULL, 0, worker->cipher, cell->bytes,
                                worker->tag, worker->plain);
    }
    return rc;
}

static void pin(int cpu)
{
    size_t set_bytes = CPU_ALLOC_SIZE(cpu + 1);
    cpu_set_t *set = CPU_ALLOC(cpu + 1);

    if (NULL != set) {
        CPU_ZERO_S(set_bytes, set);
        CPU_SET_S((size_t) cpu, set_bytes, set);
        (void) sched_setaffinity(0, set_bytes, set);
        CPU_FREE(set);
    }
}

static void *work(void *argument)
{
    worker_t *worker = argument;
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES];
    size_t warm = worker->messages < 16 ? 1 : worker->messages / 16;

    /* 1. pin, touch the buffers on this processor's memory, warm up */
    pin(worker->cpu);
    if (worker->filled_bytes < worker->cell->bytes) {
        worker->filled_bytes = worker->cell->bytes;
        memset(worker->plain, 0x5a, worker->filled_bytes);
        memset(worker->cipher, 0, worker->filled_bytes);
    }
    nonce_next(worker, nonce);
    worker->rc = worker->cell->module->seal(worker->cell->contexts[worker->index], worker->cell->key,
                                            nonce, NULL, 0, worker->plain, worker->cell->bytes,
                                            worker->cipher, worker->tag);
    if (OPAL_AEAD_OK == worker->rc) {
        worker->rc = SEAL == worker->operation ? seal_some(worker, warm) : open_some(worker, nonce, warm);
    }

    /* 2. together with the others */
    pthread_barrier_wait(worker->barrier);
    worker->start = now();
    if (OPAL_AEAD_OK == worker->rc) {
        worker->rc = SEAL == worker->operation ? seal_some(worker, worker->messages)
                                               : open_some(worker, nonce, worker->messages);
    }
    worker->end = now();
    return NULL;
}

/* Start all workers, wait for all of them; a worker that cannot be started
 * would leave the others at the barrier, so that is the end of the program. */
static void run_team(mpicrypt_speed_team_t *team, const mpicrypt_speed_cell_t *cell,
                     operation_t operation, size_t messages)
{
    pthread_barrier_t barrier;

    pthread_barrier_init(&barrier, NULL, (unsigned) team->threads);
    for (int i = 0; i < team->threads; ++i) {
        worker_t *worker = &team->workers[i];
        worker->cell = cell;
        worker->barrier = &barrier;
        worker->operation = operation;
        worker->messages = messages;
        int error = pthread_create(&worker->thread, NULL, work, worker);
        if (0 != error) {
            exit(mpicrypt_error(MPICRYPT_FAILED, "cannot start thread %d: %s", i, strerror(error)));
        }
    }
    for (int i = 0; i < team->threads; ++i) {
        pthread_join(team->workers[i].thread, NULL);
    }
    pthread_barrier_destroy(&barrier);
}

static int batch(mpicrypt_speed_team_t *team, const mpicrypt_speed_cell_t *cell,
                 operation_t operation, size_t messages, double *seconds)
{
    run_team(team, cell, operation, messages);

    double start = team->workers[0].start, end = team->workers[0].end;
    for (int i = 0; i < team->threads; ++i) {
        const worker_t *worker = &team->workers[i];
        if (OPAL_AEAD_OK != worker->rc) {
            return worker->rc;
        }
        start = worker->start < start ? worker->start : start;
        end = worker->end > end ? worker->end : end;
    }
    *seconds = end - start;
    return OPAL_AEAD_OK;
}

int mpicrypt_speed_seal(mpicrypt_speed_team_t *team, const mpicrypt_speed_cell_t *cell, double *ns)
{
    double seconds = 0;
    int rc = batch(team, cell, SEAL, cell->seal_messages, &seconds);
    *ns = 1e9 * seconds / (double) cell->seal_messages;
    return rc;
}

int mpicrypt_speed_open(mpicrypt_speed_team_t *team, const mpicrypt_speed_cell_t *cell, double *ns)
{
    double seconds = 0;
    int rc = batch(team, cell, OPEN, cell->open_messages, &seconds);
    *ns = 1e9 * seconds / (double) cell->open_messages;
    return rc;
}

/* Double the batch until it is long enough to be extrapolated from. */
static int calibrate(mpicrypt_speed_team_t *team, const mpicrypt_speed_cell_t *cell,
                     operation_t operation, double wanted, size_t *messages)
{
    double seconds = 0;
    size_t n = 1;

    for (;; n *= 2) {
        int rc = batch(team, cell, operation, n, &seconds);
        if (OPAL_AEAD_OK != rc) {
            return rc;
        }
        if (seconds >= wanted / 4 || n >= (size_t) 1 << 30) {
            break;
        }
    }
    double fit = (double) n * wanted / seconds;
    *messages = fit < 1 ? 1 : (size_t) fit;
    return OPAL_AEAD_OK;
}

int mpicrypt_speed_calibrate(mpicrypt_speed_team_t *team, mpicrypt_speed_cell_t *cell, double seconds)
{
    int rc = calibrate(team, cell, SEAL, seconds, &cell->seal_messages);
    return OPAL_AEAD_OK != rc ? rc : calibrate(team, cell, OPEN, seconds, &cell->open_messages);
}
