/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * --paper for messages: ping-pong, pairs and stencils as the CryptMPI paper
 * (section V) measures them: its sizes, iterations, pairs, shares of computation
 * and stopping rule.  What cannot be as there is scaled down, and said.
 */
#include <math.h>
#include <string.h>

#include "bench.h"

enum { LEAST = 10, MOST = 100 };    /* rounds: before the deviation counts, and before the interval does */

#define DEVIATION 0.05              /* of the mean */
#define INTERVAL 0.01               /* half of the 99% confidence interval, of the mean */
#define NORMAL_99 2.576

static const struct {
    const char *pattern, *sizes;
    size_t large, small;            /* iterations: of messages from 1 MiB on, and of others */
} paper[] = {
    {"pingpong", "64K,128K,256K,512K,1M,2M,4M", 1000, 10000},
    {"pairs", "64K,4M", 100, 100},
    {"stencil", "64K,256K,2M", 1250, 1250},
};

static int of_pattern(const char *pattern)
{
    for (int i = 0; i < (int) (sizeof(paper) / sizeof(paper[0])); ++i) {
        if (0 == strcmp(pattern, paper[i].pattern)) {
            return i;
        }
    }
    return -1;
}

static int replace(mpicrypt_sizes_t *list, const char *text)
{
    char error[256];

    mpicrypt_sizes_free(list);
    return 0 == mpicrypt_sizes_parse(text, list, error, sizeof(error)) ? MPICRYPT_OK
         : mpicrypt_error(MPICRYPT_FAILED, "%s", error);
}

size_t mpicrypt_bench_cryptmpi_iterations(const mpicrypt_bench_plan_t *plan, size_t bytes)
{
    int i = of_pattern(plan->pattern);
    size_t count = (bytes < (size_t) 1 << 20 ? paper[i].small : paper[i].large) * plan->percent / 100;

    return 0 == count ? 1 : count;
}

int mpicrypt_bench_cryptmpi(mpicrypt_bench_plan_t *plan)
{
    int i = of_pattern(plan->pattern);

    if (i < 0) {
        return mpicrypt_error(MPICRYPT_USAGE, "--paper is for messages (pingpong, pairs, stencil) and collectives");
    }
    int rc = replace(&plan->bits, "128");
    rc = rc ? rc : replace(&plan->pairs, "1,2,4,8,16");
    rc = rc ? rc : replace(&plan->compute, "30,60,80");
    rc = rc || plan->sizes.count > 0 ? rc : replace(&plan->sizes, paper[i].sizes);
    plan->window = 64;
    plan->laps = 1;
    plan->every = true;
    plan->cryptmpi = true;
    return rc;
}

/* No more pairs than --per-cpu ranks on a processor allow. */
int mpicrypt_bench_cryptmpi_scale(mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t *variants, int *count)
{
    mpicrypt_bench_places_t places;
    int kept = 0, rc = MPICRYPT_OK;

    if (0 != strcmp(plan->pattern, "pairs")) {
        return MPICRYPT_OK;
    }
    rc = mpicrypt_bench_places(plan, &variants[0], &places);
    if (MPICRYPT_OK == rc) {
        plan->processors = places.processors;
        for (int v = 0; v < *count; ++v) {
            if (0 == v || (double) variants[v].pairs <= (double) plan->per_cpu * places.processors + 1e-9) {
                variants[kept++] = variants[v];
            }
        }
        mpicrypt_bench_places_free(&places);
        *count = kept;
    }
    return rc;
}

/* Standard deviation over the mean. */
static double deviation(const mpicrypt_bench_values_t *values, int column, int size)
{
    double sum = 0, squares = 0, n = (double) values->rounds;

    for (size_t r = 0; r < values->rounds; ++r) {
        sum += *mpicrypt_bench_at(values, values->seconds, r, column, size);
    }
    for (size_t r = 0; r < values->rounds; ++r) {
        double d = *mpicrypt_bench_at(values, values->seconds, r, column, size) - sum / n;
        squares += d * d;
    }
    return values->rounds < 2 ? INFINITY : sqrt(squares / (n - 1)) / (sum / n);
}

bool mpicrypt_bench_cryptmpi_complete(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values)
{
    double worst = 0;

    for (int c = 0; c < values->columns; ++c) {
        for (int s = 0; s < values->sizes; ++s) {
            worst = fmax(worst, deviation(values, c, s));
        }
    }
    return values->rounds >= plan->fast
           && (worst <= DEVIATION
               || (values->rounds >= MOST && NORMAL_99 * worst / sqrt((double) values->rounds) <= INTERVAL));
}

size_t mpicrypt_bench_cryptmpi_least(void)
{
    return LEAST;
}

size_t mpicrypt_bench_cryptmpi_most(void)
{
    return MOST;
}

void mpicrypt_bench_cryptmpi_rule(const mpicrypt_bench_plan_t *plan, char *text, size_t bytes)
{
    snprintf(text, bytes,
             "As in the CryptMPI paper: in every round each column runs once, in rotating order; %zu rounds at least, and\n"
             "on until the standard deviation of every time is within 5%% of its mean, or, from %d rounds on, its 99%%\n"
             "confidence interval within 1%%; here at most %zu rounds (--rounds). Medians and quartiles are those of the\n"
             "rounds; a ratio is taken within a round.", plan->fast, MOST, plan->rounds);
}

void mpicrypt_bench_cryptmpi_scaling(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places, FILE *out)
{
    int i = of_pattern(plan->pattern);

    fprintf(out, "%zu iterations a round from 1M on, else %zu: ", mpicrypt_bench_cryptmpi_iterations(plan, 1 << 20),
            mpicrypt_bench_cryptmpi_iterations(plan, 1));
    if (100 == plan->percent) {
        fputs("as in the paper.\n", out);
    } else {
        fprintf(out, "%zu%% of the paper's %zu and %zu (--percent).\n", plan->percent, paper[i].large, paper[i].small);
    }
    if (0 == strcmp(plan->pattern, "pairs") && 16 > (double) plan->per_cpu * plan->processors) {
        fprintf(out, "Fewer pairs than the paper's 16 where there would be more: a rank of one pair has %.3g processors,\n"
                "and with more than %zu ranks on each (--per-cpu) the scheduler would be measured.\n", plan->processors,
                plan->per_cpu);
    } else if (0 == strcmp(plan->pattern, "stencil") && 784 != plan->ranks.value[0]) {
        fprintf(out, "%zu ranks on %zu nodes (--ranks) instead of the paper's 784 on 112.\n", plan->ranks.value[0], places->nodes);
    }
}
