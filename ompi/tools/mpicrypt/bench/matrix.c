/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Collectives side by side: for each size the ratios of all columns to the first
 * one, the best of the algorithms, and how far the automatic choice is from it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

mpicrypt_spread_t mpicrypt_bench_ratio(const mpicrypt_bench_values_t *values, int column, int to, int size)
{
    double *ratio = calloc(values->rounds + 1, sizeof(*ratio));
    int count = 0;

    if (NULL == ratio) {
        exit(mpicrypt_error(MPICRYPT_FAILED, "out of memory"));
    }
    for (size_t r = 0; r < values->rounds; ++r) {
        if (values->fast[r * (size_t) values->sizes + (size_t) size]) {
            ratio[count++] = *mpicrypt_bench_at(values, values->seconds, r, column, size)
                             / *mpicrypt_bench_at(values, values->seconds, r, to, size);
        }
    }
    mpicrypt_spread_t spread = mpicrypt_spread(ratio, count);
    free(ratio);
    return spread;
}

static bool is_auto(const mpicrypt_bench_column_t *column)
{
    return NULL != column->algorithm && 0 == strcmp(column->algorithm, "auto");
}

/* The fastest algorithm among those that share the job of column `chosen`; -1: there is none. */
static int best_of(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values, int chosen, int size)
{
    int first = chosen, best = -1;
    double least = INFINITY;

    while (plan->column[first].joined) {
        --first;
    }
    for (int c = first; c < first + mpicrypt_bench_column_jobs(plan, &plan->column[first]); ++c) {
        double mine = mpicrypt_bench_ratio(values, c, chosen, size).median;
        if (c != chosen && mine < least) {
            least = mine;
            best = c;
        }
    }
    return best;
}

static void add_line(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values, int size,
                     mpicrypt_table_t *table)
{
    mpicrypt_table_bytes(table, plan->sizes.value[size]);
    mpicrypt_table_number(table, 1e6 * mpicrypt_bench_median(values, 0, size));
    for (int c = 1; c < plan->column_count; ++c) {
        mpicrypt_table_number(table, mpicrypt_bench_ratio(values, c, 0, size).median);
    }
    for (int c = 0; c < plan->column_count; ++c) {
        int best = is_auto(&plan->column[c]) ? best_of(plan, values, c, size) : -1;
        if (best >= 0) {
            mpicrypt_table_text(table, plan->column[best].label);
            mpicrypt_table_number(table, mpicrypt_bench_ratio(values, c, best, size).median);
        }
    }
}

void mpicrypt_bench_matrix(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values, FILE *out)
{
    mpicrypt_column_t heading[3 * MPICRYPT_BENCH_COLUMNS_MAX + 3] = {{"bytes", "size", 0}};
    char text[96], first[64];
    int count = 1;

    if (0 == values->variant->nodes) {
        return;
    }
    snprintf(first, sizeof(first), "%s us", plan->column[0].label);
    heading[count++] = (mpicrypt_column_t){"us", first, 1};
    for (int c = 1; c < plan->column_count; ++c) {
        heading[count++] = (mpicrypt_column_t){plan->column[c].label, plan->column[c].label, 2};
    }
    for (int c = 0; c < plan->column_count; ++c) {
        if (is_auto(&plan->column[c]) && best_of(plan, values, c, 0) >= 0) {
            heading[count++] = (mpicrypt_column_t){"best", "best", 0};
            heading[count++] = (mpicrypt_column_t){"auto_best", "auto/best", 2};
        }
    }
    mpicrypt_table_t *table = mpicrypt_table_new(heading);
    for (int s = 0; s < plan->sizes.count; ++s) {
        add_line(plan, values, s, table);
    }
    mpicrypt_bench_variant_text(plan, values->variant, text, sizeof(text));
    if (0 != values->variant->paper_width) {
        mpicrypt_bench_coll_scaling(plan, values->variant, out);
    }
    fprintf(out, "%s %s: times over those of %s\n\n", plan->pattern, text, plan->column[0].label);
    mpicrypt_table_print(table, out);
    fputc('\n', out);
    mpicrypt_table_free(table);
}
