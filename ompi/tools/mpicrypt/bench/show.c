/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Results of `mpicrypt bench`: a table of medians and ratios, one of every
 * single value, JSON, plots.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "ompi/tools/mpicrypt/plot/plot.h"

static const mpicrypt_column_t columns[] = {
    {"pattern", NULL, 0},
    {"variant", "variant", 0},
    {"ranks", NULL, 0},
    {"bytes", "size", 0},
    {"column", "column", 0},
    {"bits", "bits", 0},
    {"fast_rounds", "n", 0},
    {"rounds", "of", 0},
    {"us", "us", 2},
    {"us_q1", NULL, 2},
    {"us_q3", NULL, 2},
    {"iqr_percent", "IQR %", 1},
    {"MBps", "MB/s", 1},
    {"ratio", "/plain", 3},
    {"ratio_q1", "q1", 3},
    {"ratio_q3", "q3", 3},
    {"slow_rounds", NULL, 0},
    {"slow_ratio", "slow", 3},
    {"work_percent", NULL, 1},
    {"comm_ratio", NULL, 3},
    {NULL, NULL, 0}
};

static const mpicrypt_column_t raw_columns[] = {
    {"pattern", NULL, 0}, {"variant", NULL, 0}, {"bytes", NULL, 0},   {"column", NULL, 0},  {"round", NULL, 0},
    {"fast", NULL, 0},    {"us", NULL, 0},      {"work_us", NULL, 0}, {"ratio", NULL, 0},   {NULL, NULL, 0}
};

mpicrypt_table_t *mpicrypt_bench_table(void)
{
    return mpicrypt_table_new(columns);
}

mpicrypt_table_t *mpicrypt_bench_raw_table(void)
{
    return mpicrypt_table_new(raw_columns);
}

void mpicrypt_bench_variant_text(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_variant_t *variant,
                                 char *text, size_t bytes)
{
    const char *where = plan->local ? ", one node" : "";
    char ranks[32] = "";

    if (plan->ranks.count > 1) {
        snprintf(ranks, sizeof(ranks), " %zu ranks", variant->ranks);
    }
    if (0 == strcmp(plan->pattern, "pairs")) {
        snprintf(text, bytes, "%zu pair%s x %zu%s%s", variant->pairs, 1 == variant->pairs ? "" : "s", plan->window,
                 plan->both ? " both ways" : "", where);
    } else if (0 == strcmp(plan->pattern, "stencil")) {
        snprintf(text, bytes, "%zuD %zu%%%s%s", variant->dims, variant->compute, ranks, where);
    } else if (0 == strcmp(plan->pattern, "io")) {
        snprintf(text, bytes, "%s %s %s%s%s", variant->workload, variant->access, variant->op, ranks, where);
    } else if (0 != variant->nodes) {
        snprintf(text, bytes, "%zux%zu %s", variant->nodes, variant->width, variant->cyclic ? "cyclic" : "block");
        size_t used = strlen(text);
        if (0 != variant->paper_width) {
            snprintf(text + used, bytes - used, " (paper: %zux%zu)", variant->nodes, variant->paper_width);
        }
    } else {
        snprintf(text, bytes, "pingpong%s", where);
    }
}

/* Bytes that the value's time moved, NAN if that says nothing: of files all of them; in a stencil those that a rank sends, in
 * allgather and alltoall those that it gets from others. */
static double moved(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_variant_t *variant, int size)
{
    double bytes = (double) plan->sizes.value[size];

    if (0 == strcmp(plan->pattern, "io")) {
        /* In matmul a rank reads matrix B more than once, and computes. */
        return 0 == strcmp(variant->workload, "matmul") ? NAN : (double) plan->data.value[0] * (double) variant->ranks;
    }
    return 0 == strcmp(plan->pattern, "pairs") ? bytes * (double) (variant->pairs * plan->window * (plan->both ? 2 : 1))
         : 0 == strcmp(plan->pattern, "stencil") ? bytes * (double) variant->messages
         : 0 == strcmp(plan->pattern, "allgather") || 0 == strcmp(plan->pattern, "alltoall")
         ? bytes * (double) (variant->ranks - 1) : bytes;
}

typedef struct summary {
    mpicrypt_spread_t seconds, ratio, slow_ratio, work, comm_ratio;
    int fast, slow;
} summary_t;

static summary_t summarize(const mpicrypt_bench_values_t *values, int column, int size)
{
    double *room = calloc(5 * values->rounds + 1, sizeof(*room));
    double *seconds = room, *ratio = seconds + values->rounds, *slow = ratio + values->rounds,
           *work = slow + values->rounds, *comm = work + values->rounds;
    summary_t summary = {.fast = 0};

    if (NULL == room) {
        exit(mpicrypt_error(MPICRYPT_FAILED, "out of memory"));
    }
    for (size_t r = 0; r < values->rounds; ++r) {
        double mine = *mpicrypt_bench_at(values, values->seconds, r, column, size);
        double plain = *mpicrypt_bench_at(values, values->seconds, r, 0, size);
        double my_work = *mpicrypt_bench_at(values, values->work, r, column, size);
        double plain_work = *mpicrypt_bench_at(values, values->work, r, 0, size);
        if (!values->fast[r * (size_t) values->sizes + (size_t) size]) {
            slow[summary.slow++] = mine / plain;
            continue;
        }
        seconds[summary.fast] = mine;
        ratio[summary.fast] = mine / plain;
        work[summary.fast] = my_work / mine;
        comm[summary.fast++] = (mine - my_work) / (plain - plain_work);
    }
    summary.seconds = mpicrypt_spread(seconds, summary.fast);
    summary.ratio = mpicrypt_spread(ratio, summary.fast);
    summary.slow_ratio = mpicrypt_spread(slow, summary.slow);
    summary.work = mpicrypt_spread(work, summary.fast);
    summary.comm_ratio = mpicrypt_spread(comm, summary.fast);
    free(room);
    return summary;
}

static void add_line(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values, int column, int size,
                     mpicrypt_table_t *table)
{
    summary_t s = summarize(values, column, size);
    char text[64];

    mpicrypt_bench_variant_text(plan, values->variant, text, sizeof(text));
    mpicrypt_table_text(table, plan->pattern);
    mpicrypt_table_text(table, text);
    mpicrypt_table_count(table, values->variant->ranks);
    mpicrypt_table_bytes(table, plan->sizes.value[size]);
    mpicrypt_table_text(table, plan->column[column].label);
    mpicrypt_table_count(table, plan->column[column].bits);
    mpicrypt_table_count(table, (size_t) s.fast);
    mpicrypt_table_count(table, values->rounds);
    mpicrypt_table_number(table, 1e6 * s.seconds.median);
    mpicrypt_table_number(table, 1e6 * s.seconds.low);
    mpicrypt_table_number(table, 1e6 * s.seconds.high);
    mpicrypt_table_number(table, 100 * (s.seconds.high - s.seconds.low) / s.seconds.median);
    mpicrypt_table_number(table, 1e-6 * moved(plan, values->variant, size) / s.seconds.median);
    mpicrypt_table_number(table, s.ratio.median);
    mpicrypt_table_number(table, s.ratio.low);
    mpicrypt_table_number(table, s.ratio.high);
    mpicrypt_table_count(table, (size_t) s.slow);
    mpicrypt_table_number(table, s.slow_ratio.median);
    mpicrypt_table_number(table, 100 * s.work.median);
    mpicrypt_table_number(table, s.comm_ratio.median);
}

void mpicrypt_bench_add(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values,
                        mpicrypt_table_t *table)
{
    for (int s = 0; s < values->sizes; ++s) {
        for (int c = 0; c < values->columns; ++c) {
            add_line(plan, values, c, s, table);
        }
    }
}

void mpicrypt_bench_add_raw(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values,
                            mpicrypt_table_t *table)
{
    char text[64];

    mpicrypt_bench_variant_text(plan, values->variant, text, sizeof(text));
    for (int s = 0; s < values->sizes; ++s) {
        for (int c = 0; c < values->columns; ++c) {
            for (size_t r = 0; r < values->rounds; ++r) {
                double seconds = *mpicrypt_bench_at(values, values->seconds, r, c, s);
                mpicrypt_table_text(table, plan->pattern);
                mpicrypt_table_text(table, text);
                mpicrypt_table_bytes(table, plan->sizes.value[s]);
                mpicrypt_table_text(table, plan->column[c].label);
                mpicrypt_table_count(table, r + 1);
                mpicrypt_table_count(table, values->fast[r * (size_t) values->sizes + (size_t) s]);
                mpicrypt_table_number(table, 1e6 * seconds);
                mpicrypt_table_number(table, 1e6 * *mpicrypt_bench_at(values, values->work, r, c, s));
                mpicrypt_table_number(table, seconds / *mpicrypt_bench_at(values, values->seconds, r, 0, s));
            }
        }
    }
}

/* ---- the head of a report ---- */

void mpicrypt_bench_print(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places,
                          const mpicrypt_bench_values_t *values, int count, const mpicrypt_table_t *table, FILE *out)
{
    mpicrypt_bench_print_places(plan, places, values, count, out);
    for (int c = 0; c < plan->column_count; ++c) {
        fprintf(out, "%-14s %s", plan->column[c].label, plan->column[c].joined ? "the same job" :
                plan->column[c].naive ? "sealed by the benchmark;" : "");
        fputs(plan->column[c].socket ? " over a socket, MPI only to start;" : "", out);
        fputs(plan->column[c].copied ? " copied once more;" : "", out);
        for (int i = 0; i < plan->column[c].settings.count && !plan->column[c].joined; ++i) {
            fprintf(out, "%s%s", 0 == i && !plan->column[c].naive ? "" : " ", plan->column[c].settings.value[i]);
        }
        if (NULL != plan->column[c].algorithm) {
            fprintf(out, ", in it coll_cryptag_%s_algorithm=%s", plan->pattern, plan->column[c].algorithm);
        }
        fputc('\n', out);
    }
    fprintf(out, "\n%s\n\n", mpicrypt_bench_rule(plan));
    if (plan->cryptmpi) {
        mpicrypt_bench_cryptmpi_scaling(plan, places, out);
        fputc('\n', out);
    }
    for (int v = 0; v < count; ++v) {
        mpicrypt_bench_matrix(plan, &values[v], out);
    }
    mpicrypt_table_print(table, out);
}

void mpicrypt_bench_json(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places,
                         const mpicrypt_bench_values_t *values, int count, const mpicrypt_table_t *table)
{
    printf("{\n  \"benchmark\": \"%s\",\n  ", plan->pattern);
    mpicrypt_bench_json_places(plan, places, values, count);
    printf(",\n  \"rule\": ");
    mpicrypt_json_text(stdout, mpicrypt_bench_rule(plan));
    printf(",\n  \"columns\": {");
    for (int c = 0; c < plan->column_count; ++c) {
        printf("%s", 0 == c ? "" : ", ");
        mpicrypt_json_text(stdout, plan->column[c].label);
        printf(": [");
        for (int i = 0; i < plan->column[c].settings.count; ++i) {
            printf("%s", 0 == i ? "" : ", ");
            mpicrypt_json_text(stdout, plan->column[c].settings.value[i]);
        }
        if (NULL != plan->column[c].algorithm) {
            printf(", \"coll_cryptag_%s_algorithm=%s\"", plan->pattern, plan->column[c].algorithm);
        }
        putchar(']');
    }
    printf("},\n  \"results\": ");
    mpicrypt_table_json(table, stdout);
    printf("\n}\n");
}

/* ---- plots: for each variant the times, and the ratios to plain ---- */

int mpicrypt_bench_plot(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values, int count,
                        const char *path)
{
    char title[64], text[96], panel[128];
    mpicrypt_plot_t *picture;

    snprintf(title, sizeof(title), "%s", plan->pattern);
    picture = mpicrypt_plot_new(title, 2 * count);
    for (int v = 0; v < count; ++v) {
        mpicrypt_bench_variant_text(plan, values[v].variant, text, sizeof(text));
        snprintf(panel, sizeof(panel), "%s: time", text);
        mpicrypt_plot_panel(picture, 2 * v, panel, "message size (bytes)", "time (us)");
        mpicrypt_plot_axes(picture, 2 * v, MPICRYPT_AXIS_BYTES, MPICRYPT_AXIS_LOG);
        snprintf(panel, sizeof(panel), "%s: relative to plain", text);
        mpicrypt_plot_panel(picture, 2 * v + 1, panel, "message size (bytes)", "time / plain");
        mpicrypt_plot_axes(picture, 2 * v + 1, MPICRYPT_AXIS_BYTES, MPICRYPT_AXIS_LINEAR);
        for (int s = 0; s < values[v].sizes; ++s) {
            for (int c = 0; c < values[v].columns && plan->sizes.value[s] > 0; ++c) {
                summary_t summary = summarize(&values[v], c, s);
                double x = (double) plan->sizes.value[s];
                mpicrypt_plot_point(picture, 2 * v, plan->column[c].label, x, 1e6 * summary.seconds.median);
                mpicrypt_plot_point(picture, 2 * v + 1, plan->column[c].label, x, summary.ratio.median);
            }
        }
    }
    int rc = mpicrypt_plot_write(picture, path);
    mpicrypt_plot_free(picture);
    return rc;
}
