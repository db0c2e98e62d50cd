/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * `mpicrypt tune`: the search around the prediction.  Chunk size first, then
 * the limits of btl/tcp: one thing at a time, each beside what the
 * step before has chosen (column "default"), in the same rounds.
 *
 * A value is taken if it is faster than its own default, with the rest as chosen, by
 * more than WORTH: less is noise, and a file of defaults is better than a file of noise.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune.h"

#define WORTH 0.02

/* Candidates of one step: what stands in the column's settings. */
typedef struct candidates {
    size_t value[8];
    int count;
} candidates_t;

static void add(candidates_t *list, size_t value)
{
    for (int i = 0; i < list->count; ++i) {
        if (list->value[i] == value) {
            return;
        }
    }
    if (list->count < (int) (sizeof(list->value) / sizeof(*list->value))) {
        list->value[list->count++] = value;
    }
}

static void settings_of(const mpicrypt_tune_t *tune, const mpicrypt_tune_choice_t *choice, char *text, size_t bytes)
{
    size_t used = (size_t) snprintf(text, bytes, "crypt_transport=pml");

    if (tune->most_threads > 1) {
        used += (size_t) snprintf(text + used, bytes - used, " pml_crypt_t=%zu", tune->most_threads);
    }
    if (0 != choice->chunk_size) {
        used += (size_t) snprintf(text + used, bytes - used, " pml_crypt_chunk_size=%zu", choice->chunk_size);
    }
    if (0 != choice->limit) {
        snprintf(text + used, bytes - used, " btl_tcp_eager_limit=%zu btl_tcp_rndv_eager_limit=%zu "
                 "btl_tcp_max_send_size=%zu", choice->limit, choice->limit, choice->limit);
    }
}

/* Time over plain, geometric mean of the sizes. */
static double score(const mpicrypt_tune_t *tune, const mpicrypt_bench_values_t *values, int column)
{
    double sum = 0;

    for (int s = 0; s < tune->plan.sizes.count; ++s) {
        sum += log(mpicrypt_bench_median(values, column, s) / mpicrypt_bench_median(values, 0, s));
    }
    return exp(sum / tune->plan.sizes.count);
}

/* The best of the candidates for *field, 0 being the default. */
static int step(mpicrypt_tune_t *tune, const char *name, const candidates_t *list, size_t *field, size_t rounds)
{
    mpicrypt_bench_values_t values = {.rounds = 0};
    char label[64], settings[512];
    int best = -1, rc = mpicrypt_tune_begin(tune, "64K,256K,1M,4M");

    *field = 0;
    settings_of(tune, &tune->choice, settings, sizeof(settings));
    rc = rc ? rc : mpicrypt_tune_column(tune, true, "default", settings);
    for (int i = 0; i < list->count && MPICRYPT_OK == rc; ++i) {
        *field = list->value[i];
        snprintf(label, sizeof(label), "%s-%zu", name, list->value[i]);
        settings_of(tune, &tune->choice, settings, sizeof(settings));
        rc = mpicrypt_tune_column(tune, true, label, settings);
    }
    *field = 0;
    rc = rc ? rc : mpicrypt_tune_rounds(tune, rounds, &values);
    if (MPICRYPT_OK == rc) {
        double fallback = score(tune, &values, 1), least = fallback * (1 - WORTH);
        for (int i = 0; i < list->count; ++i) {
            double mine = score(tune, &values, 2 + i);
            if (mine < least) {
                best = i;
                least = mine;
            }
        }
        *field = best < 0 ? 0 : list->value[best];
        tune->before = 0 == tune->before ? fallback : tune->before;
        tune->after = best < 0 ? fallback : least;
    }
    mpicrypt_bench_values_free(&values);
    return rc;
}

/* Half of, as much as, and twice what the model says for 1 MiB and 4 MiB. */
static candidates_t chunk_sizes(const mpicrypt_tune_t *tune)
{
    const opal_crypt_limits_t limits = {.threads = (unsigned) tune->processors, .comm_threads = 1, .max_outstanding = 64,
                                        .min_chunk = 16384};
    candidates_t list = {.count = 0};

    for (int i = 0; i < 2; ++i) {
        double bytes = 0 == i ? 1 << 20 : 4 << 20;
        unsigned k = opal_crypt_model_choose_k(&tune->model, &limits, bytes, (unsigned) tune->most_threads, 0);
        size_t chunk = (size_t) bytes / k;
        for (size_t size = chunk / 2; size <= 2 * chunk; size *= 2) {
            if (size >= 16384 && size <= 4 << 20) {
                add(&list, size);
            }
        }
    }
    add(&list, 262144 - 128);           /* one eager fragment of btl/tcp, as pml/crypt raises it */
    return list;
}

int mpicrypt_tune_search(mpicrypt_tune_t *tune, size_t rounds)
{
    static const candidates_t limits = {{65536, 131072, 524288}, 3};
    candidates_t chunks = chunk_sizes(tune);
    int rc = step(tune, "chunk", &chunks, &tune->choice.chunk_size, rounds);

    if (MPICRYPT_OK == rc && 0 == strcmp(tune->plan.host, "ob1")) {
        rc = step(tune, "limit", &limits, &tune->choice.limit, rounds);
    }
    return rc;
}
