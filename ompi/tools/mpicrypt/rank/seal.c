/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The verb `seal`: how long rank 0 takes to seal a piece of a message with one
 * thread, and with several by the worker team, and to open it; the mean of both
 * is printed.  As in pml/crypt, the plaintext moves on through a large buffer,
 * and the ciphertext is in staging that is reused.
 *
 * Nothing is kept secret here: the key is made of zeros and nonces repeat.
 */
#include <string.h>

#include "rank.h"
#include "ompi/tools/mpicrypt/doctor/check.h"

#include "opal/mca/aead/base/base.h"
#include "opal/mca/common/crypt/wire/session.h"
#include "opal/mca/common/crypt/base/team.h"
#include "opal/mca/common/crypt/base/thread.h"

#define BUFFER ((size_t) 8 << 20)

typedef struct part {
    opal_crypt_job_t job;
    uint8_t *plain, *sealed, tag[OPAL_AEAD_TAG_BYTES];
    size_t bytes;
    bool opening;
    int rc;
} part_t;

static const opal_aead_module_t *aead;
static void *key;

static void work(opal_crypt_job_t *job)
{
    static const uint8_t nonce[OPAL_AEAD_NONCE_BYTES];
    part_t *p = (part_t *) job;
    opal_aead_context_t *context = opal_crypt_context(aead);

    if (NULL == context) {
        p->rc = OPAL_AEAD_ERROR;
    } else if (p->opening) {
        p->rc = aead->open(context, key, nonce, NULL, 0, p->sealed, p->bytes, p->tag, p->plain);
    } else {
        p->rc = aead->seal(context, key, nonce, NULL, 0, p->plain, p->bytes, p->sealed, p->tag);
    }
}

/* One piece of a message, in `threads` parts. */
static void one(opal_crypt_team_t *team, part_t *parts, size_t threads)
{
    if (1 == threads) {
        work(&parts[0].job);
    }
    for (size_t i = 0; i < threads && threads > 1; ++i) {
        parts[i].job.work = work;
        opal_crypt_team_submit(team, &parts[i].job);
    }
    for (size_t i = 0; i < threads; ++i) {
        while (threads > 1 && !opal_crypt_job_done(&parts[i].job)) {
        }
        if (OPAL_AEAD_OK != parts[i].rc) {
            mpicrypt_mpi_abort(MPICRYPT_FAILED, "the provider %s failed", aead->name);
        }
    }
}

/* Seconds of `count` pieces. */
static double lap(opal_crypt_team_t *team, part_t *parts, size_t threads, uint8_t *buffer, size_t bytes,
                  size_t count, bool opening)
{
    size_t at = 0;
    double start = MPI_Wtime();

    for (size_t i = 0; i < count; ++i) {
        for (size_t p = 0, done = 0; p < threads; done += parts[p++].bytes) {
            parts[p].plain = buffer + at + done;
            parts[p].opening = opening;
        }
        one(team, parts, threads);
        at = at + 2 * bytes <= BUFFER ? at + bytes : 0;
    }
    return MPI_Wtime() - start;
}

static void measure(opal_crypt_team_t *team, uint8_t *buffer, size_t bytes, size_t threads)
{
    const mpicrypt_mpi_job_t *job = &mpicrypt_mpi_job;
    part_t *parts = mpicrypt_mpi_memory(threads * sizeof(*parts));
    size_t left = bytes, count = 1;
    double seconds;

    for (size_t i = 0; i < threads; ++i) {
        parts[i].bytes = left / (threads - i);
        parts[i].sealed = mpicrypt_mpi_memory(parts[i].bytes);
        left -= parts[i].bytes;
    }
    while ((seconds = lap(team, parts, threads, buffer, bytes, count, false)) < job->lap_ms / 4000) {
        count *= 2;
    }
    count = (size_t) ((double) count * job->lap_ms / 1000 / seconds) + 1;
    for (size_t i = 0; i < job->laps; ++i) {
        double seal = lap(team, parts, threads, buffer, bytes, count, false);
        double open = lap(team, parts, threads, buffer, bytes, count, true);
        printf("@mpicrypt sealed %zu %zu %zu %.9g\n", bytes, threads, i, (seal + open) / 2 / (double) count);
    }
    for (size_t i = 0; i < threads; ++i) {
        free(parts[i].sealed);
    }
    free(parts);
}

static void measure_all(void)
{
    const mpicrypt_mpi_job_t *job = &mpicrypt_mpi_job;
    size_t processors = opal_crypt_team_processors(), most;
    uint8_t *buffer = mpicrypt_mpi_memory(BUFFER);

    most = processors > 1 ? processors - 1 : 1;         /* as pml/crypt: one communicates */
    most = most < OPAL_CRYPT_TEAM_MAX ? most : OPAL_CRYPT_TEAM_MAX;
    printf("@mpicrypt processors %zu %zu\n", processors, most);
    for (size_t threads = 1; threads <= most; threads = 2 * threads > most && threads < most ? most : 2 * threads) {
        opal_crypt_team_t *team = NULL;
        if (threads > 1 && OPAL_CRYPT_OK != opal_crypt_team_create((unsigned) threads, false, &team)) {
            mpicrypt_mpi_abort(MPICRYPT_FAILED, "no team of %zu threads", threads);
        }
        for (int s = 0; s < job->sizes.count; ++s) {
            size_t bytes = job->sizes.value[s];
            if (bytes >= threads && bytes <= BUFFER) {
                measure(team, buffer, bytes, threads);
            }
        }
        opal_crypt_team_destroy(team);
    }
    free(buffer);
}

const opal_aead_module_t *mpicrypt_mpi_provider(opal_aead_cipher_t cipher, const uint8_t *raw, void **made)
{
    const opal_aead_module_t *found;
    opal_aead_why_t why = {0};

    if (OPAL_SUCCESS != mca_base_framework_open(&opal_aead_base_framework, 0)
        || OPAL_SUCCESS != opal_aead_base_select(NULL, cipher, false, &found, &why)) {
        opal_aead_base_show(&why);
        mpicrypt_mpi_abort(MPICRYPT_MISSING, "no provider of encryption can be used");
    }
    *made = mpicrypt_mpi_memory(found->key_bytes);
    if (OPAL_AEAD_OK != found->key_init(cipher, raw, *made)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "the provider %s takes no key", found->name);
    }
    return found;
}

void mpicrypt_mpi_seal_verb(void)
{
    static const uint8_t zeros[OPAL_AEAD_KEY_MAX_BYTES];

    if (0 != mpicrypt_mpi_rank) {
        return;
    }
    if (MPICRYPT_OK != mpicrypt_check_open()) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "the parameters of this node cannot be read");
    }
    int cipher = opal_aead_aes_gcm(opal_cryptproc_params.key_bits);
    if (cipher < 0) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "crypt_key_bits is %u", opal_cryptproc_params.key_bits);
    }
    aead = mpicrypt_mpi_provider((opal_aead_cipher_t) cipher, zeros, &key);
    printf("@mpicrypt provider %s, %s\n", aead->name, aead->version());
    measure_all();
    aead->key_wipe(key);
    free(key);
    opal_crypt_finalize();
    mpicrypt_check_close();
}
