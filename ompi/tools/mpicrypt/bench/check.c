/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What options of mpicrypt bench leave open, and whether what they say can be.
 */
#include <math.h>
#include <string.h>

#include "bench.h"

static int check_range(const char *option, const mpicrypt_sizes_t *list, size_t low, size_t high)
{
    for (int i = 0; i < list->count; ++i) {
        if (list->value[i] < low || list->value[i] > high) {
            return mpicrypt_error(MPICRYPT_USAGE, "--%s: %zu is not between %zu and %zu", option, list->value[i], low,
                                  high);
        }
    }
    return MPICRYPT_OK;
}

static int check_one(const char *option, size_t value, size_t low, size_t high)
{
    return check_range(option, &(mpicrypt_sizes_t){&value, 1}, low, high);
}

int mpicrypt_bench_check(const mpicrypt_bench_plan_t *plan)
{
    int rc = check_range("size", &plan->sizes, 0, (size_t) 1 << 30);

    rc = rc ? rc : check_range("pairs", &plan->pairs, 1, 1 << 16);
    rc = rc ? rc : check_range("dims", &plan->dims, 2, 4);
    rc = rc ? rc : check_range("compute", &plan->compute, 0, 95);
    rc = rc ? rc : check_one("window", plan->window, 1, 1 << 16);
    rc = rc ? rc : check_range("ranks", &plan->ranks, 2, MPICRYPT_BENCH_RANKS_MAX);
    for (int i = 0; i < plan->shapes.count && MPICRYPT_OK == rc; ++i) {
        size_t nodes, width;
        rc = mpicrypt_bench_shape(plan->shapes.value[i], &nodes, &width);
    }
    rc = rc ? rc : check_one("fast", plan->fast, 1, 10000);
    rc = rc ? rc : check_one("rounds", plan->rounds, plan->fast, 10000);
    rc = rc ? rc : check_one("laps", plan->laps, 1, 1000);
    rc = rc ? rc : check_one("percent", plan->percent, 1, 100);
    rc = rc ? rc : check_one("per-cpu", plan->per_cpu, 1, 1024);
    rc = rc ? rc : check_one("cpus-per-rank", plan->cpus_per_rank, 1, 1024);
    for (int i = 0; i < plan->bits.count && MPICRYPT_OK == rc; ++i) {
        if (128 != plan->bits.value[i] && 192 != plan->bits.value[i] && 256 != plan->bits.value[i]) {
            rc = mpicrypt_error(MPICRYPT_USAGE, "--bits: %zu is not one of 128, 192, 256", plan->bits.value[i]);
        }
    }
    if (MPICRYPT_OK == rc && (plan->lap_ms <= 0 || plan->lap_ms > 60000)) {
        rc = mpicrypt_error(MPICRYPT_USAGE, "--lap-ms: %g is not more than 0, at most 60000", plan->lap_ms);
    }
    if (MPICRYPT_OK == rc && 0 != strcmp(plan->host, "ob1") && 0 != strcmp(plan->host, "ucx")
        && 0 != strcmp(plan->host, "cm")) {
        rc = mpicrypt_error(MPICRYPT_USAGE, "--host: '%s' is none of ob1, ucx and cm", plan->host);
    }
    return rc;
}

static size_t at_most(size_t value, size_t limit) { return value < limit ? value : limit; }

static int set_default(mpicrypt_names_t *list, const char *text)
{
    char error[256];

    return list->count > 0 || 0 == mpicrypt_names_parse(text, list, error, sizeof(error))
               ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_FAILED, "%s", error);
}

int mpicrypt_bench_quick(mpicrypt_bench_plan_t *plan, bool quick)
{
    if (quick) {
        plan->fast = at_most(plan->fast, 3);
        plan->rounds = at_most(plan->rounds, 6);
        plan->laps = at_most(plan->laps, 3);
    }
    int rc = set_default(&plan->workloads, quick ? "tile,noncontig" : "tile,noncontig,rows,matmul");
    rc = rc ? rc : set_default(&plan->accesses, quick ? "row,column" : "row,column,block");
    return rc ? rc : set_default(&plan->ops, quick ? "write,read" : "write,read,overwrite");
}

int mpicrypt_bench_defaults(mpicrypt_bench_plan_t *plan)
{
    const mpicrypt_bench_coll_t *coll = mpicrypt_bench_coll(plan->pattern);
    char error[256];
    int rc = 0;

    /* What a disk takes for a sync does not depend on whether plain's was quick. */
    plan->every = NULL != coll || 0 == strcmp(plan->pattern, "io");
    if (isnan(plan->lap_ms)) {
        plan->lap_ms = NULL == coll ? 10 : 50;
    }
    if (NULL != coll && plan->local) {
        return mpicrypt_error(MPICRYPT_USAGE, "--local is not for collectives, which are over all ranks");
    }
    if (0 == strcmp(plan->pattern, "io") && plan->schemes.count > 0) {
        return mpicrypt_error(MPICRYPT_USAGE, "--schemes: the columns of io are always plain, plain-cycles, "
                              "messages and file");
    }
    if (NULL == coll && plan->paper && MPICRYPT_OK != (rc = mpicrypt_bench_cryptmpi(plan))) {
        return rc;
    }
    if (NULL != coll && plan->paper) {
        mpicrypt_sizes_free(&plan->bits);
        rc = mpicrypt_sizes_parse("128,256", &plan->bits, error, sizeof(error));
    }
    if (0 == rc && 0 == plan->schemes.count) {
        const bool few = plan->paper || 0 == strcmp(plan->pattern, "nas");

        rc = mpicrypt_names_parse(NULL != coll ? coll->schemes : few ? "naive,crypt" : "tuned,naive,crypt", &plan->schemes,
                                  error, sizeof(error));
    }
    if (0 == rc && 0 == plan->sizes.count) {
        rc = mpicrypt_sizes_parse(NULL == coll ? "1,1K,4K,16K,64K,256K,1M,8M" : coll->sizes, &plan->sizes, error,
                                  sizeof(error));
    }
    return 0 == rc ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_FAILED, "%s", error);
}
