/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt bench io: what its options ask for.  The sizes that vary within a job
 * are those of blocks.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static bool contains(const mpicrypt_names_t *list, const char *const *known)
{
    for (int i = 0; i < list->count; ++i) {
        int k = 0;
        while (NULL != known[k] && 0 != strcmp(known[k], list->value[i])) {
            ++k;
        }
        if (NULL == known[k]) {
            return mpicrypt_error(MPICRYPT_USAGE, "there is no '%s'", list->value[i]), false;
        }
    }
    return true;
}

/* A file of whole rows for every rank, and rows of whole pieces. */
int mpicrypt_bench_io_check(mpicrypt_bench_plan_t *plan)
{
    static const char *const workloads[] = {"tile", "noncontig", "rows", "matmul", NULL};
    static const char *const accesses[] = {"row", "column", "block", NULL}, *const ops[] = {"write", "read", "overwrite", NULL};

    if (!contains(&plan->workloads, workloads) || !contains(&plan->accesses, accesses) || !contains(&plan->ops, ops)) {
        return MPICRYPT_USAGE;
    }
    if (NULL == plan->key_label || 1 != plan->data.count || 1 != plan->row.count) {
        return mpicrypt_error(MPICRYPT_USAGE, "io needs --label, one --data and one --row");
    }
    size_t row = plan->row.value[0], data = plan->data.value[0];
    for (int i = 0; i < plan->ranks.count; ++i) {
        if (0 == row || 0 != row % (16 * plan->ranks.value[i]) || 0 == data || 0 != data % row || data > (size_t) 1 << 30) {
            return mpicrypt_error(MPICRYPT_USAGE, "--row is a multiple of 16 x --ranks, --data one of --row, of 1G at most");
        }
    }
    for (int i = 0; i < plan->blocks.count; ++i) {
        if (plan->blocks.value[i] < 512 || plan->blocks.value[i] > (size_t) 16 << 20) {
            return mpicrypt_error(MPICRYPT_USAGE, "--block-size: %zu is not between 512 and 16M", plan->blocks.value[i]);
        }
    }
    mpicrypt_sizes_t sizes = plan->sizes;
    plan->sizes = plan->blocks;
    plan->blocks = sizes;
    return MPICRYPT_OK;
}

static void add_variants(const mpicrypt_bench_plan_t *plan, size_t ranks, mpicrypt_bench_variant_t *variant, int *count)
{
    for (int w = 0; w < plan->workloads.count; ++w) {
        bool matmul = 0 == strcmp(plan->workloads.value[w], "matmul");
        for (int a = 0; a < (matmul ? 1 : plan->accesses.count); ++a) {
            for (int o = 0; o < (matmul ? 1 : plan->ops.count); ++o) {
                variant[(*count)++] = (mpicrypt_bench_variant_t){
                    .ranks = ranks, .dims = 2, .pairs = 1, .workload = plan->workloads.value[w],
                    .access = matmul ? "row" : plan->accesses.value[a], .op = matmul ? "run" : plan->ops.value[o]};
            }
        }
    }
}

int mpicrypt_bench_io_variants(const mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t **variants, int *count)
{
    int most = plan->ranks.count * plan->workloads.count * plan->accesses.count * plan->ops.count;

    *variants = calloc((size_t) most, sizeof(**variants));
    *count = 0;
    for (int r = 0; r < plan->ranks.count && NULL != *variants; ++r) {
        add_variants(plan, plan->ranks.value[r], *variants, count);
    }
    return NULL == *variants ? mpicrypt_error(MPICRYPT_FAILED, "out of memory") : MPICRYPT_OK;
}
