/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * From the plan of mpicrypt bench to its output: what is to be measured, one after
 * another, and what is written of it.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* ---- variants ---- */

static int message_variants(const mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t **variants, int *count)
{
    bool pairs = 0 == strcmp(plan->pattern, "pairs"), stencil = 0 == strcmp(plan->pattern, "stencil");
    int outer = stencil ? plan->dims.count : pairs ? plan->pairs.count : 1;
    int inner = stencil ? plan->compute.count : 1, sizes = stencil ? plan->ranks.count : 1;
    mpicrypt_bench_variant_t *variant = calloc((size_t) (outer * inner * sizes), sizeof(*variant));

    *variants = variant;
    *count = 0;
    for (int o = 0; o < outer && NULL != variant; ++o) {
        for (int i = 0; i < inner * sizes; ++i) {
            size_t number = pairs ? plan->pairs.value[o] : 1;
            variant[(*count)++] = (mpicrypt_bench_variant_t){
                .ranks = stencil ? plan->ranks.value[i / inner] : 2 * number, .pairs = number,
                .dims = stencil ? plan->dims.value[o] : 2, .compute = stencil ? plan->compute.value[i % inner] : 0};
        }
    }
    return NULL == variant ? mpicrypt_error(MPICRYPT_FAILED, "out of memory") : MPICRYPT_OK;
}

static int make_variants(mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t **variants, int *count)
{
    if (0 == strcmp(plan->pattern, "io")) {
        return mpicrypt_bench_io_variants(plan, variants, count);
    }
    if (NULL == mpicrypt_bench_coll(plan->pattern)) {
        int rc = message_variants(plan, variants, count);
        return MPICRYPT_OK == rc && plan->cryptmpi ? mpicrypt_bench_cryptmpi_scale(plan, *variants, count) : rc;
    }
    int rc = mpicrypt_bench_coll_variants(plan, variants, count);
    return MPICRYPT_OK == rc && plan->paper ? mpicrypt_bench_coll_scale(plan, *variants, *count) : rc;
}

static int output(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_output_t *to,
                  const mpicrypt_bench_places_t *places, const mpicrypt_bench_values_t *values, int count)
{
    mpicrypt_table_t *table = mpicrypt_bench_table(), *raw = mpicrypt_bench_raw_table();
    bool csv_on_stdout = NULL != to->csv && 0 == strcmp(to->csv, "-");
    int rc = MPICRYPT_OK;

    for (int v = 0; v < count; ++v) {
        mpicrypt_bench_add(plan, &values[v], table);
        mpicrypt_bench_add_raw(plan, &values[v], raw);
    }
    if (to->json) {
        mpicrypt_bench_json(plan, places, values, count, table);
    } else if (!csv_on_stdout) {
        mpicrypt_bench_print(plan, places, values, count, table, stdout);
    }
    if (NULL != to->csv) {
        rc = mpicrypt_table_csv_file(table, to->csv);
    }
    if (MPICRYPT_OK == rc && NULL != to->raw) {
        rc = mpicrypt_table_csv_file(raw, to->raw);
    }
    if (MPICRYPT_OK == rc && NULL != to->plot) {
        rc = mpicrypt_bench_plot(plan, values, count, to->plot);
    }
    mpicrypt_table_free(table);
    mpicrypt_table_free(raw);
    return rc;
}

/* Too few FAST rounds are no failure, but are said. */
static void warn_incomplete(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values)
{
    char text[96];

    if (!values->complete) {
        mpicrypt_bench_variant_text(plan, values->variant, text, sizeof(text));
        if (plan->cryptmpi) {
            fprintf(stderr, "mpicrypt bench: %s: after %zu rounds the paper's rule was not satisfied\n", text,
                    values->rounds);
            return;
        }
        fprintf(stderr, "mpicrypt bench: %s: %zu rounds did not give %zu FAST ones at every size\n", text,
                values->rounds, plan->fast);
    }
}

int mpicrypt_bench_measure(mpicrypt_bench_plan_t *plan, const mpicrypt_bench_output_t *to)
{
    int count = 0, done = 0;
    mpicrypt_bench_variant_t *variant = NULL;
    int rc = make_variants(plan, &variant, &count);
    mpicrypt_bench_values_t *values = calloc((size_t) count + 1, sizeof(*values));
    mpicrypt_bench_places_t *places = calloc((size_t) count + 1, sizeof(*places));

    if (MPICRYPT_OK == rc && (NULL == values || NULL == places)) {
        rc = mpicrypt_error(MPICRYPT_FAILED, "out of memory");
    }
    while (done < count && MPICRYPT_OK == rc) {
        rc = mpicrypt_bench_places(plan, &variant[done], &places[done]);
        if (MPICRYPT_OK == rc) {
            rc = mpicrypt_bench_rounds(plan, &variant[done], &places[done], &values[done]);
        }
        if (MPICRYPT_OK == rc) {
            warn_incomplete(plan, &values[done++]);
        }
    }
    /* What has been measured is not lost by what could not be. */
    if (MPICRYPT_OK != rc && done > 0) {
        fprintf(stderr, "mpicrypt bench: only %d of %d parts have been measured; these are shown\n", done, count);
    }
    if (MPICRYPT_OK == rc || done > 0) {
        int written = output(plan, to, places, values, done);
        rc = rc ? rc : written;
    }
    for (int v = 0; v < count && NULL != values && NULL != places; ++v) {
        mpicrypt_bench_values_free(&values[v]);
        mpicrypt_bench_places_free(&places[v]);
        mpicrypt_sizes_free(&variant[v].work);
    }
    free(places);
    free(values);
    free(variant);
    return rc;
}
