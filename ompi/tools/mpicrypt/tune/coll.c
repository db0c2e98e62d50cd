/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt tune --coll: for each operation, shape and order the algorithms are
 * measured beside each other, and the fastest of each size goes into a rule:
 *
 *     # operation  mapping  nodes  ranks-a-node  bytes  algorithm
 *       allgather  block    4      2             2048   hs2
 *
 * Of the rules that apply the last one counts, so shapes go from small to
 * large, and sizes within a shape; coll/cryptag's built-in rules are before
 * them all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tune.h"

#define WORTH 0.03              /* faster by less is noise */

static const char *const operations[] = {"allgather", "bcast", "alltoall", NULL};

/* ---- choosing ---- */

/* Column 0 is the automatic choice, which is no algorithm. */
static int fastest(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values, int size, int before)
{
    int best = 1;

    for (int c = 2; c < plan->column_count; ++c) {
        if (mpicrypt_bench_ratio(values, c, 0, size).median < mpicrypt_bench_ratio(values, best, 0, size).median) {
            best = c;
        }
    }
    return before > 0 && mpicrypt_bench_ratio(values, before, best, size).median <= 1 + WORTH ? before : best;
}

static void write_rules(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values, FILE *out)
{
    const mpicrypt_bench_variant_t *variant = values->variant;
    const char *mapping = 1 == variant->width ? "any" : variant->cyclic ? "cyclic" : "block";
    int last = 0;

    fputc('\n', out);
    for (int s = 0; s < plan->sizes.count; ++s) {
        int best = fastest(plan, values, s, last);
        mpicrypt_spread_t ratio = mpicrypt_bench_ratio(values, best, 0, s);
        fprintf(out, "# %zu: %s %.1f us, %.2f of the automatic choice (%.2f to %.2f)\n", plan->sizes.value[s],
                plan->column[best].algorithm, 1e6 * mpicrypt_bench_median(values, best, s), ratio.median, ratio.low,
                ratio.high);
        if (best != last) {
            fprintf(out, "%-9s  %-6s  %zu  %zu  %zu  %s\n", plan->pattern, mapping, variant->nodes, variant->width,
                    0 == s ? 0 : plan->sizes.value[s], plan->column[best].algorithm);
        }
        last = best;
    }
}

static void write_head(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places, FILE *out)
{
    time_t now = time(NULL);
    struct tm *day = gmtime(&now);

    fprintf(out, "# Rules for coll/cryptag, written by mpicrypt tune --coll on %04d-%02d-%02d, for\n# %s,\n"
            "# %s, %zu-bit keys, %zu jobs each%s.\n# Jobs read it by --mca coll_cryptag_rules_file FILE; every node "
            "needs the same file.\n#\n# operation  mapping  nodes  ranks-a-node  bytes  algorithm\n",
            day->tm_year + 1900, day->tm_mon + 1, day->tm_mday, places->library, plan->host, plan->bits.value[0],
            plan->rounds, places->shared ? "; nodes that share one machine" : "");
}

/* ---- measuring ---- */

static int by_size(const void *a, const void *b)
{
    size_t x = *(const size_t *) a, y = *(const size_t *) b;
    return (x > y) - (x < y);
}

static int by_ranks(const void *a, const void *b)
{
    const mpicrypt_bench_variant_t *x = a, *y = b;
    return x->ranks != y->ranks ? (x->ranks > y->ranks) - (x->ranks < y->ranks) : x->cyclic - y->cyclic;
}

/* One shape and order of one operation. */
static int measure(mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t *variant, FILE *out, FILE *report,
                   mpicrypt_table_t *table)
{
    mpicrypt_bench_places_t places = {.nodes = 0};
    mpicrypt_bench_values_t values = {.rounds = 0};
    int rc = mpicrypt_bench_places(plan, variant, &places);

    if (MPICRYPT_OK == rc && 0 == ftell(out)) {
        write_head(plan, &places, out);
    }
    rc = rc ? rc : mpicrypt_bench_rounds(plan, variant, &places, &values);
    if (MPICRYPT_OK == rc) {
        write_rules(plan, &values, out);
        mpicrypt_bench_matrix(plan, &values, report);
        mpicrypt_bench_add(plan, &values, table);
        fflush(report);
    }
    mpicrypt_bench_values_free(&values);
    mpicrypt_bench_places_free(&places);
    return rc;
}

static int tune_operation(mpicrypt_bench_plan_t *plan, const char *operation, FILE *out, FILE *report,
                          mpicrypt_table_t *table)
{
    const mpicrypt_bench_coll_t *coll = mpicrypt_bench_coll(operation);
    mpicrypt_bench_variant_t *variants = NULL;
    char error[256];
    int count = 0, rc = MPICRYPT_OK;

    plan->pattern = operation;
    mpicrypt_bench_columns_free(plan);
    mpicrypt_names_free(&plan->schemes);
    if (0 != mpicrypt_names_parse(coll->algorithms, &plan->schemes, error, sizeof(error))) {
        rc = mpicrypt_error(MPICRYPT_FAILED, "%s", error);
    }
    rc = rc ? rc : mpicrypt_bench_coll_columns(plan, coll);
    rc = rc ? rc : mpicrypt_bench_coll_variants(plan, &variants, &count);
    if (MPICRYPT_OK == rc) {
        qsort(variants, (size_t) count, sizeof(*variants), by_ranks);
    }
    for (int v = 0; v < count && MPICRYPT_OK == rc; ++v) {
        /* With one rank a node both orders are the same. */
        if (1 != variants[v].width || 0 == v || variants[v - 1].ranks != variants[v].ranks) {
            rc = measure(plan, &variants[v], out, report, table);
        }
    }
    free(variants);
    return rc;
}

static int save(const char *path, const char *text, size_t bytes)
{
    FILE *out = 0 == strcmp(path, "-") ? stdout : fopen(path, "w");

    if (NULL == out) {
        return mpicrypt_error(MPICRYPT_FAILED, "cannot write %s: %s", path, strerror(errno));
    }
    bool good = bytes == fwrite(text, 1, bytes, out);
    good = (stdout == out ? 0 == fflush(out) : 0 == fclose(out)) && good;
    return good ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_FAILED, "cannot write %s", path);
}

int mpicrypt_tune_coll(mpicrypt_bench_plan_t *plan, const char *out_path, const char *csv_path)
{
    bool on_stdout = 0 == strcmp(out_path, "-");
    mpicrypt_table_t *table = mpicrypt_bench_table();
    char *text = NULL, error[256];
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    int rc = NULL == out ? mpicrypt_error(MPICRYPT_FAILED, "out of memory") : MPICRYPT_OK;

    plan->every = true;
    plan->fast = plan->rounds;
    if (MPICRYPT_OK == rc && 0 == plan->sizes.count
        && 0 != mpicrypt_sizes_parse("1,256,1K,2K,4K,8K,16K,32K,64K,128K,256K,512K,1M", &plan->sizes, error,
                                     sizeof(error))) {
        rc = mpicrypt_error(MPICRYPT_FAILED, "%s", error);
    }
    if (MPICRYPT_OK == rc) {
        qsort(plan->sizes.value, (size_t) plan->sizes.count, sizeof(size_t), by_size);
    }
    for (int i = 0; NULL != operations[i] && MPICRYPT_OK == rc; ++i) {
        rc = tune_operation(plan, operations[i], out, on_stdout ? stderr : stdout, table);
    }
    if (NULL != out) {
        fclose(out);
    }
    rc = rc ? rc : save(out_path, text, bytes);
    if (MPICRYPT_OK == rc && NULL != csv_path) {
        rc = mpicrypt_table_csv_file(table, csv_path);
    }
    if (MPICRYPT_OK == rc && !on_stdout) {
        printf("Written to %s.  Jobs read it by\n    mpirun --mca pml crypt --mca coll_cryptag_rules_file %s ./app\n",
               out_path, out_path);
    }
    mpicrypt_bench_columns_free(plan);
    mpicrypt_names_free(&plan->schemes);
    mpicrypt_table_free(table);
    free(text);
    return rc;
}
