/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt bench nas: programs of the NAS Parallel Benchmarks, as the user has
 * built them, in every column; the time of communication between nodes, of all
 * communication and of the run, as CryptMPI's Table III has them.  The programs
 * are not changed: mpicrypt-times.so is loaded before them and takes the times.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#ifndef OMPI_CRYPT_LIBEXEC_DIR
#define OMPI_CRYPT_LIBEXEC_DIR "."
#endif

enum { BETWEEN, INSIDE, RUN, OWN, TIMES };      /* own: "Time in seconds", which the program prints */

/* seconds[program][column][TIMES][round] */
typedef struct results {
    size_t programs, columns, rounds;
    double *seconds;
} results_t;

static const mpicrypt_column_t columns[] = {
    {"program", "program", 0},
    {"ranks", "ranks", 0},
    {"column", "column", 0},
    {"bits", "bits", 0},
    {"rounds", "n", 0},
    {"inter_s", "inter-node s", 3},
    {"comm_s", "comm s", 3},
    {"run_s", "run s", 3},
    {"run_iqr_percent", "iqr%", 1},
    {"own_s", "own s", 3},
    {"inter_overhead_percent", "inter-node +%", 1},
    {"comm_overhead_percent", "comm +%", 1},
    {"run_overhead_percent", "run +%", 1},
    {NULL, NULL, 0}
};

/* Class D, 784 ranks on 112 nodes, CG 512 on 128, PSC Bridges: CryptMPI, Table III. */
static const struct {
    const char *program;
    double plain[3], crypt[3], naive[3];
} paper[] = {
    {"cg", {7.77, 13.17, 27.09}, {8.73, 14.80, 32.56}, {13.91, 20.93, 37.84}},
    {"lu", {6.30, 32.11, 52.17}, {8.80, 34.26, 56.24}, {9.71, 36.06, 57.87}},
    {"sp", {24.67, 35.94, 62.40}, {30.01, 39.54, 67.64}, {31.62, 40.11, 68.18}},
    {"bt", {26.49, 40.54, 69.89}, {28.54, 42.25, 73.06}, {29.03, 42.67, 73.49}},
};

static double *at(const results_t *results, size_t program, size_t column, size_t time)
{
    return results->seconds + ((program * results->columns + column) * TIMES + time) * results->rounds;
}

/* ---- one run ---- */

/* bin/cg.C.64 (NPB 3.3) or bin/cg.C.x (3.4). */
static int find_program(const mpicrypt_bench_plan_t *plan, const char *name, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/bin/%s.%s.%zu", plan->npb, name, plan->npb_class, plan->ranks.value[0]);
    if (0 == access(path, X_OK)) {
        return MPICRYPT_OK;
    }
    snprintf(path, bytes, "%s/bin/%s.%s.x", plan->npb, name, plan->npb_class);
    return 0 == access(path, X_OK) ? MPICRYPT_OK
         : mpicrypt_error(MPICRYPT_MISSING, "there is neither %s/bin/%s.%s.%zu nor %s; build it there (make %s CLASS=%s, "
                          "and for NPB 3.3 NPROCS=%zu)", plan->npb, name, plan->npb_class, plan->ranks.value[0], path, name,
                          plan->npb_class, plan->ranks.value[0]);
}

/* The program has verified its result, and the times are there. */
static bool understand(char *text, double *times)
{
    bool verified = false, timed = false;
    const char *mark;

    times[OWN] = NAN;
    for (char *line; NULL != (line = strsep(&text, "\n"));) {
        timed = timed || 3 == sscanf(line, "@mpicrypt times %lf %lf %lf", &times[BETWEEN], &times[INSIDE], &times[RUN]);
        if (NULL != strstr(line, "Time in seconds") && NULL != (mark = strchr(line, '='))) {
            times[OWN] = strtod(mark + 1, NULL);
        }
        verified = verified || (NULL != strstr(line, "Verification") && NULL != strstr(line, " SUCCESSFUL"));
    }
    return timed && verified;
}

static int start(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_column_t *column,
                 const mpicrypt_bench_variant_t *variant, const mpicrypt_bench_places_t *places, const char *name,
                 double *times)
{
    mpicrypt_words_t command = {NULL, 0}, settings = {NULL, 0};
    mpicrypt_launch_t result;
    char path[4096];
    int rc = find_program(plan, name, path, sizeof(path));

    if (MPICRYPT_OK != rc) {
        return rc;
    }
    mpicrypt_bench_launcher(plan, variant, &command);
    mpicrypt_words_add(&command, "env");
    mpicrypt_words_add(&command, "LD_PRELOAD=%s", OMPI_CRYPT_LIBEXEC_DIR "/mpicrypt-times.so");
    mpicrypt_words_add(&command, "%s", path);
    mpicrypt_bench_settings(column, places, &settings);
    rc = mpicrypt_launch(&command, &settings, &result);
    if (MPICRYPT_OK == rc) {
        if (0 != result.code) {
            rc = mpicrypt_bench_failed(&command, column->label, &result);
        } else if (!understand(result.out, times)) {
            mpicrypt_progress_end();
            fputs(result.err, stderr);
            rc = mpicrypt_error(MPICRYPT_FAILED, "column %s: %s did not say that its verification was successful, or "
                                "its times are missing (it has to use MPI through C, mpif.h or `use mpi`)",
                                column->label, path);
        }
        mpicrypt_launch_free(&result);
    }
    mpicrypt_words_free(&command);
    mpicrypt_words_free(&settings);
    return rc;
}

static int run_rounds(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_variant_t *variant,
                      const mpicrypt_bench_places_t *places, const results_t *results)
{
    size_t done = 0, all = results->rounds * results->programs * results->columns;
    char label[96];
    int rc = MPICRYPT_OK;

    for (size_t round = 0; round < results->rounds; ++round) {
        for (size_t p = 0; p < results->programs; ++p) {
            for (size_t turn = 0; turn < results->columns && MPICRYPT_OK == rc; ++turn, ++done) {
                size_t c = (turn + round) % results->columns;
                double times[TIMES];
                snprintf(label, sizeof(label), "%s: %s", plan->kernels.value[p], plan->column[c].label);
                mpicrypt_progress(label, done, all);
                rc = start(plan, &plan->column[c], variant, places, plan->kernels.value[p], times);
                for (size_t t = 0; t < TIMES && MPICRYPT_OK == rc; ++t) {
                    at(results, p, c, t)[round] = times[t];
                }
            }
        }
    }
    mpicrypt_progress_end();
    return rc;
}

/* ---- what is shown ---- */

static double sum(const results_t *results, size_t program, size_t column, size_t time)
{
    double total = 0;

    for (size_t round = 0; round < results->rounds; ++round) {
        total += at(results, program, column, time)[round];
    }
    return total;
}

/* A row of the sums of programs first..last; the overhead is of the sums. */
static void add_row(const mpicrypt_bench_plan_t *plan, const results_t *results, size_t first, size_t last, size_t c,
                    const char *name, mpicrypt_table_t *table)
{
    double total[TIMES] = {0}, plain[TIMES] = {0}, n = (double) results->rounds;
    mpicrypt_spread_t spread = {NAN, NAN, NAN};

    for (size_t p = first; p <= last; ++p) {
        for (size_t t = 0; t < TIMES; ++t) {
            total[t] += sum(results, p, c, t);
            plain[t] += sum(results, p, 0, t);
        }
    }
    if (first == last) {
        spread = mpicrypt_spread(at(results, first, c, RUN), (int) results->rounds);
    }
    mpicrypt_table_text(table, name);
    mpicrypt_table_count(table, plan->ranks.value[0]);
    mpicrypt_table_text(table, plan->column[c].label);
    mpicrypt_table_count(table, plan->column[c].bits);
    mpicrypt_table_count(table, results->rounds);
    for (size_t t = 0; t < TIMES; ++t) {
        mpicrypt_table_number(table, total[t] / n);
        if (RUN == t) {
            mpicrypt_table_number(table, 100 * (spread.high - spread.low) / spread.median);
        }
    }
    for (size_t t = 0; t < OWN; ++t) {
        mpicrypt_table_number(table, 100 * (total[t] / plain[t] - 1));
    }
}

static void print_paper(const mpicrypt_bench_plan_t *plan, FILE *out)
{
    bool begun = false;

    for (size_t i = 0; i < sizeof(paper) / sizeof(paper[0]); ++i) {
        const double *row[3] = {paper[i].plain, paper[i].naive, paper[i].crypt};
        static const char *const name[3] = {"plain", "naive", "CryptMPI"};
        for (int r = 0; r < 3 && mpicrypt_names_contain(&plan->kernels, paper[i].program); ++r) {
            if (!begun) {
                fputs("\nCryptMPI's Table III (class D, 784 ranks on 112 nodes of PSC Bridges, CG 512 on 128): seconds, "
                      "and overhead\n", out);
                begun = true;
            }
            fprintf(out, "%-8s %-8s  inter-node %6.2f %+6.1f%%   comm %6.2f %+6.1f%%   run %6.2f %+6.1f%%\n",
                    paper[i].program, name[r], row[r][0], 100 * (row[r][0] / row[0][0] - 1), row[r][1],
                    100 * (row[r][1] / row[0][1] - 1), row[r][2], 100 * (row[r][2] / row[0][2] - 1));
        }
    }
}

static int show(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places, const results_t *results,
                const char *csv_path, bool json)
{
    mpicrypt_table_t *table = mpicrypt_table_new(columns);
    int rc = MPICRYPT_OK;

    for (size_t p = 0; p < results->programs; ++p) {
        for (size_t c = 0; c < results->columns; ++c) {
            add_row(plan, results, p, p, c, plan->kernels.value[p], table);
        }
    }
    for (size_t c = 0; c < results->columns && results->programs > 1; ++c) {
        add_row(plan, results, 0, results->programs - 1, c, "sum", table);
    }
    if (json) {
        mpicrypt_bench_json(plan, places, NULL, 0, table);
    } else if (NULL == csv_path || 0 != strcmp(csv_path, "-")) {
        mpicrypt_bench_print(plan, places, NULL, 0, table, stdout);
        print_paper(plan, stdout);
    }
    if (NULL != csv_path) {
        rc = mpicrypt_table_csv_file(table, csv_path);
    }
    mpicrypt_table_free(table);
    return rc;
}

int mpicrypt_bench_nas(mpicrypt_bench_plan_t *plan, const char *csv_path, bool json)
{
    results_t results = {.programs = (size_t) plan->kernels.count, .columns = (size_t) plan->column_count,
                         .rounds = plan->fast};
    mpicrypt_bench_variant_t variant = {.ranks = plan->ranks.value[0]};
    mpicrypt_bench_places_t places;
    char path[4096];
    int rc = NULL == plan->npb ? mpicrypt_error(MPICRYPT_USAGE, "nas needs --npb DIR") : MPICRYPT_OK;

    if (MPICRYPT_OK == rc && 1 != plan->ranks.count) {
        rc = mpicrypt_error(MPICRYPT_USAGE, "nas takes one number of --ranks: its programs are built for it");
    }
    for (int p = 0; p < plan->kernels.count && MPICRYPT_OK == rc; ++p) {
        rc = find_program(plan, plan->kernels.value[p], path, sizeof(path));
    }
    if (MPICRYPT_OK != rc) {
        return rc;
    }
    plan->pin = false;
    rc = mpicrypt_bench_places(plan, &variant, &places);
    results.seconds = calloc(results.programs * results.columns * TIMES * results.rounds, sizeof(double));
    if (MPICRYPT_OK == rc && NULL == results.seconds) {
        rc = mpicrypt_error(MPICRYPT_FAILED, "out of memory");
    }
    rc = rc ? rc : run_rounds(plan, &variant, &places, &results);
    rc = rc ? rc : show(plan, &places, &results, csv_path, json);
    mpicrypt_bench_places_free(&places);
    free(results.seconds);
    return rc;
}
