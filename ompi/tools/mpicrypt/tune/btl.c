/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * `mpicrypt tune` where btl/crypt seals: its parameters about speed, one after another, each with what was taken
 * before.  All values of one are measured in the same rounds, beside the default and the default once more (A/A).
 *
 * What counts is the time over the default's, as the geometric mean of all sizes of a ping-pong and of a stream.
 * A value is taken if its median is less than WORTH allows and less than the quartiles of the default's time over
 * itself, and if three of four rounds say that it is faster at all.  Quartiles of a few rounds say nothing, and nothing is
 * taken then.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune.h"

#define WORTH 0.02
#define SIZES "1,4K,16K,64K,128K,256K,512K,1M,4M"

enum { PATTERNS = 2, DEFAULT = 1, AGAIN = 2, FIRST = 3, ENOUGH = 5, WINDOW = 16 };

static const char *const patterns[PATTERNS] = {"pingpong", "pairs"};

static const struct {
    const char *name, *values, *lacking;
} parameters[] = {
    {"btl_crypt_eager_limit", "66560 135168 528384", NULL},
    {"btl_crypt_rndv_eager_limit", "65536 262144", NULL},
    {"crypt_threads", "2 4 8 16", "a rank has one processor"},
    {"btl_crypt_ktls", "auto", "not every node has the kernel's module tls"},
};

static bool can_be_tried(const mpicrypt_tune_t *tune, const char *name, const char *value)
{
    return 0 == strcmp(name, "crypt_threads")  ? (size_t) atoi(value) <= tune->places.each
         : 0 == strcmp(name, "btl_crypt_ktls") ? 0 != tune->places.kernel
                                               : true;
}

static int add_columns(mpicrypt_tune_t *tune, const char *name, const mpicrypt_words_t *values)
{
    char label[48], settings[512];
    int rc = mpicrypt_tune_begin(tune, SIZES);

    rc = rc ? rc : mpicrypt_tune_column(tune, true, name, tune->settings);
    snprintf(label, sizeof(label), "%s again", name);
    rc = rc ? rc : mpicrypt_tune_column(tune, true, label, tune->settings);
    for (int i = 0; i < values->count && MPICRYPT_OK == rc; ++i) {
        snprintf(label, sizeof(label), "%s=%s", name, values->value[i]);
        snprintf(settings, sizeof(settings), "%s %s", tune->settings, label);
        rc = mpicrypt_tune_column(tune, true, label, settings);
    }
    return rc;
}

/* Time over the default's. */
static mpicrypt_spread_t score(const mpicrypt_bench_values_t measured[PATTERNS], int column)
{
    mpicrypt_spread_t sum = {0, 0, 0};
    int count = 0;

    for (int p = 0; p < PATTERNS; ++p) {
        for (int s = 0; s < measured[p].sizes; ++s, ++count) {
            mpicrypt_spread_t ratio = mpicrypt_bench_ratio(&measured[p], column, DEFAULT, s);
            sum.median += log(ratio.median);
            sum.low += log(ratio.low);
            sum.high += log(ratio.high);
        }
    }
    return (mpicrypt_spread_t){exp(sum.median / count), exp(sum.low / count), exp(sum.high / count)};
}

static void choose(mpicrypt_tune_t *tune, const char *name, const mpicrypt_words_t *values,
                   const mpicrypt_bench_values_t measured[PATTERNS])
{
    mpicrypt_spread_t again = score(measured, AGAIN);
    const bool trial = measured[0].rounds < ENOUGH;
    double limit = trial ? 0 : fmin(1 - WORTH, fmin(again.low, 1 / again.high)), least = limit;
    const char *best = NULL;

    printf("    %-10s %.3f (quartiles %.3f, %.3f)\n", "default", again.median, again.low, again.high);
    for (int i = 0; i < values->count; ++i) {
        mpicrypt_spread_t mine = score(measured, FIRST + i);
        printf("    %-10s %.3f (quartiles %.3f, %.3f)\n", values->value[i], mine.median, mine.low, mine.high);
        if (mine.median < least && mine.high < 1) {
            least = mine.median;
            best = values->value[i];
        }
    }
    if (trial) {
        printf("    The default stays, as it would after any %zu rounds.\n", measured[0].rounds);
    } else {
        printf("    %s is taken (less than %.3f would be better).\n", NULL == best ? "The default" : best, limit);
    }
    if (NULL != best) {
        size_t used = strlen(tune->settings);
        snprintf(tune->settings + used, sizeof(tune->settings) - used, "%s%s=%s", 0 == used ? "" : " ", name, best);
    }
}

static int try_values(mpicrypt_tune_t *tune, const char *name, const mpicrypt_words_t *values, size_t rounds,
                      mpicrypt_table_t *table)
{
    mpicrypt_bench_values_t measured[PATTERNS] = {{.rounds = 0}};
    int rc = MPICRYPT_OK;

    mpicrypt_tune_say("%s: time over that of the default, %zu to %zu rounds of %d jobs", name, rounds, 2 * rounds,
                      PATTERNS * (FIRST + values->count));
    for (int p = 0; p < PATTERNS && MPICRYPT_OK == rc; ++p) {
        tune->plan.pattern = patterns[p];
        rc = add_columns(tune, name, values);
        rc = rc ? rc : mpicrypt_tune_rounds(tune, rounds, &measured[p]);
        if (MPICRYPT_OK == rc) {
            mpicrypt_bench_add(&tune->plan, &measured[p], table);
        }
    }
    if (MPICRYPT_OK == rc) {
        choose(tune, name, values, measured);
    }
    for (int p = 0; p < PATTERNS; ++p) {
        mpicrypt_bench_values_free(&measured[p]);
    }
    return rc;
}

int mpicrypt_tune_btl(mpicrypt_tune_t *tune, size_t rounds, const char *csv)
{
    mpicrypt_table_t *table = mpicrypt_bench_table();
    int rc = MPICRYPT_OK;

    tune->plan.window = WINDOW;
    for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]) && MPICRYPT_OK == rc; ++i) {
        mpicrypt_words_t values = {NULL, 0};
        mpicrypt_words_split(&values, parameters[i].values);
        while (values.count > 0 && !can_be_tried(tune, parameters[i].name, values.value[values.count - 1])) {
            free(values.value[--values.count]);
        }
        if (0 == values.count) {
            mpicrypt_tune_say("%s: not tried, as %s", parameters[i].name, parameters[i].lacking);
        } else {
            rc = try_values(tune, parameters[i].name, &values, rounds, table);
        }
        mpicrypt_words_free(&values);
    }
    if (MPICRYPT_OK == rc && NULL != csv) {
        rc = mpicrypt_table_csv_file(table, csv);
    }
    mpicrypt_table_free(table);
    return rc;
}
