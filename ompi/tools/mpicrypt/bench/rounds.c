/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Rounds: in each, every column has one job, in rotating order, and they go on
 * until the one stopping rule is satisfied.
 *
 * A machine may flip between speeds.  A round in which plain was slow is kept,
 * but not counted: ratios are of FAST rounds.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define NEAR_BEST 1.10

const char *mpicrypt_bench_rule(const mpicrypt_bench_plan_t *plan)
{
    static char text[512];

    if (plan->cryptmpi) {
        mpicrypt_bench_cryptmpi_rule(plan, text, sizeof(text));
        return text;
    }
    if (0 == strcmp(plan->pattern, "nas")) {
        snprintf(text, sizeof(text),
                 "%zu rounds: in each every program runs once in each column, in rotating order. Times are means over "
                 "the\nrounds, and over the ranks; overheads are those of the summed times. own: the program's own "
                 "\"Time in seconds\".", plan->fast);
        return text;
    }
    if (plan->every) {
        snprintf(text, sizeof(text),
                 "In every round each job runs once, in rotating order; in a job the columns that share it take turns.\n"
                 "%zu rounds, all of which count. Medians and quartiles are those of the rounds; a ratio is taken "
                 "within a round.", plan->fast);
        return text;
    }
    snprintf(text, sizeof(text),
             "In every round each column runs once, in rotating order. A round is FAST, at a size, if plain took\n"
             "at most %.2f times the first quartile of plain's times. Stopping rule: %zu FAST rounds at every size, "
             "or\n%zu rounds. Medians, quartiles and ratios are those of FAST rounds; a ratio is taken within a round.",
             NEAR_BEST, plan->fast, plan->rounds);
    return text;
}

double *mpicrypt_bench_at(const mpicrypt_bench_values_t *values, double *of, size_t round, int column, int size)
{
    return &of[(round * (size_t) values->columns + (size_t) column) * (size_t) values->sizes + (size_t) size];
}

size_t mpicrypt_bench_classify(mpicrypt_bench_values_t *values, int size)
{
    double *plain = calloc(values->rounds + 1, sizeof(*plain));
    size_t fast = 0;

    if (NULL == plain) {
        exit(mpicrypt_error(MPICRYPT_FAILED, "out of memory"));
    }
    for (size_t r = 0; r < values->rounds; ++r) {
        plain[r] = *mpicrypt_bench_at(values, values->seconds, r, 0, size);
    }
    double limit = NEAR_BEST * mpicrypt_spread(plain, (int) values->rounds).low;
    for (size_t r = 0; r < values->rounds; ++r) {
        bool *mark = &values->fast[r * (size_t) values->sizes + (size_t) size];
        *mark = values->every || *mpicrypt_bench_at(values, values->seconds, r, 0, size) <= limit;
        fast += *mark;
    }
    free(plain);
    return fast;
}

double mpicrypt_bench_median(const mpicrypt_bench_values_t *values, int column, int size)
{
    double *seconds = calloc(values->rounds + 1, sizeof(*seconds));
    int count = 0;

    if (NULL == seconds) {
        exit(mpicrypt_error(MPICRYPT_FAILED, "out of memory"));
    }
    for (size_t r = 0; r < values->rounds; ++r) {
        if (values->fast[r * (size_t) values->sizes + (size_t) size]) {
            seconds[count++] = *mpicrypt_bench_at(values, values->seconds, r, column, size);
        }
    }
    double median = mpicrypt_spread(seconds, count).median;
    free(seconds);
    return median;
}

static size_t fewest_fast(mpicrypt_bench_values_t *values)
{
    size_t fewest = values->rounds;

    for (int s = 0; s < values->sizes; ++s) {
        size_t fast = mpicrypt_bench_classify(values, s);
        fewest = fast < fewest ? fast : fewest;
    }
    return fewest;
}

/* How much work makes the asked share of the plain time: three plain jobs
 * without any, before the rounds. */
static int choose_work(mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t *variant,
                       const mpicrypt_bench_places_t *places)
{
    enum { JOBS = 3 };
    size_t sizes = (size_t) plan->sizes.count;
    double *seconds = calloc(sizes * (JOBS + 1), sizeof(double)), unit[JOBS], sample[JOBS];
    int rc = MPICRYPT_OK;

    variant->work = (mpicrypt_sizes_t){calloc(sizes, sizeof(size_t)), 0};
    if (NULL == seconds || NULL == variant->work.value) {
        rc = mpicrypt_error(MPICRYPT_FAILED, "out of memory");
    }
    for (int j = 0; j < JOBS && MPICRYPT_OK == rc; ++j) {
        rc = mpicrypt_bench_job(plan, &plan->column[0], variant, places, seconds + (size_t) j * sizes,
                                seconds + JOBS * sizes, &unit[j]);
    }
    if (MPICRYPT_OK == rc) {
        double each = mpicrypt_spread(unit, JOBS).median, share = (double) variant->compute / 100;
        variant->work.count = plan->sizes.count;
        for (size_t s = 0; s < sizes; ++s) {
            for (size_t j = 0; j < JOBS; ++j) {
                sample[j] = seconds[j * sizes + s];
            }
            variant->work.value[s] = (size_t) (mpicrypt_spread(sample, JOBS).median * share / (1 - share) / each + 0.5);
        }
    }
    free(seconds);
    return rc;
}

static int one_round(mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t *variant,
                     const mpicrypt_bench_places_t *places, mpicrypt_bench_values_t *values)
{
    size_t round = values->rounds;
    char label[96];
    double unit;
    int rc = MPICRYPT_OK;

    for (int turn = 0; turn < plan->column_count && MPICRYPT_OK == rc; ++turn) {
        int c = (int) (((size_t) turn + round) % (size_t) plan->column_count);
        if (plan->column[c].joined) {
            continue;
        }
        snprintf(label, sizeof(label), "%zu %s: %s", fewest_fast(values), plan->every ? "done" : "FAST",
                 plan->column[c].label);
        mpicrypt_progress(label, round * (size_t) plan->column_count + (size_t) turn,
                          plan->rounds * (size_t) plan->column_count);
        rc = mpicrypt_bench_job(plan, &plan->column[c], variant, places,
                                mpicrypt_bench_at(values, values->seconds, round, c, 0),
                                mpicrypt_bench_at(values, values->work, round, c, 0), &unit);
    }
    values->rounds += MPICRYPT_OK == rc;
    return rc;
}

int mpicrypt_bench_rounds(mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t *variant,
                          const mpicrypt_bench_places_t *places, mpicrypt_bench_values_t *values)
{
    size_t cells = plan->rounds * (size_t) plan->column_count * (size_t) plan->sizes.count;
    int rc = MPICRYPT_OK;

    *values = (mpicrypt_bench_values_t){
        .variant = variant, .columns = plan->column_count, .sizes = plan->sizes.count, .every = plan->every,
        .seconds = calloc(cells, sizeof(double)), .work = calloc(cells, sizeof(double)),
        .fast = calloc(plan->rounds * (size_t) plan->sizes.count, sizeof(bool))};
    if (NULL == values->seconds || NULL == values->work || NULL == values->fast) {
        return mpicrypt_error(MPICRYPT_FAILED, "out of memory");
    }
    if (variant->compute > 0) {
        rc = choose_work(plan, variant, places);
    }
    while (MPICRYPT_OK == rc && values->rounds < plan->rounds && !values->complete) {
        rc = one_round(plan, variant, places, values);
        size_t fast = fewest_fast(values);
        values->complete = plan->cryptmpi ? mpicrypt_bench_cryptmpi_complete(plan, values) : fast >= plan->fast;
    }
    mpicrypt_progress_end();
    return rc;
}

void mpicrypt_bench_values_free(mpicrypt_bench_values_t *values)
{
    free(values->seconds);
    free(values->work);
    free(values->fast);
    memset(values, 0, sizeof(*values));
}
