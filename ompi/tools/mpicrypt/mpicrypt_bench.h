/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The pieces of `mpicrypt bench`: columns (what is compared), jobs (one start
 * of mpicrypt-mpi), rounds (one job of each column), what is shown.
 *
 *     for each variant (pairs, dimensions, computation):
 *         round 1: A B C ...   round 2: B C ... A   until the rule is satisfied
 */
#ifndef MPICRYPT_BENCH_H
#define MPICRYPT_BENCH_H

#include "mpicrypt.h"
#include "mpicrypt_launch.h"

/* ---- columns: mpicrypt_bench_columns.c ---- */

#define MPICRYPT_BENCH_COLUMNS_MAX 16

typedef struct mpicrypt_bench_column {
    char label[48];             /* "crypt", "naive-256" */
    char pml[16];
    size_t bits;                /* 0: nothing is encrypted */
    bool naive;                 /* sealed by the benchmark */
    bool file;                  /* io: files are encrypted */
    mpicrypt_words_t settings;  /* PARAMETER=VALUE of Open MPI */
    char said[1024];            /* what its jobs last wrote to stderr */
} mpicrypt_bench_column_t;

typedef struct mpicrypt_bench_plan {
    const char *pattern;
    mpicrypt_sizes_t sizes, pairs, dims, compute, bits;
    mpicrypt_names_t schemes;
    size_t ranks, window, fast, rounds, laps, cpus_per_rank;
    double lap_ms;
    mpicrypt_names_t workloads, accesses, ops;  /* io */
    mpicrypt_sizes_t data, row, blocks;
    const char *directory, *key_label;
    bool local, pin;
    const char *mpirun, *mapping, *host, *program;
    mpicrypt_bench_column_t column[MPICRYPT_BENCH_COLUMNS_MAX];
    int column_count;
} mpicrypt_bench_plan_t;

/* Columns from --schemes, --bits and the operands "NAME PARAMETER=VALUE...". */
int mpicrypt_bench_columns(mpicrypt_bench_plan_t *plan, int operand_count, char **operands);
void mpicrypt_bench_columns_free(mpicrypt_bench_plan_t *plan);
const char *mpicrypt_bench_scheme_names(void);

/* ---- jobs: mpicrypt_bench_job.c ---- */

/* What one line of a table is about, but for the size. */
typedef struct mpicrypt_bench_variant {
    size_t ranks, pairs, dims, compute;     /* compute: percent of the plain time */
    const char *workload, *access, *op;     /* io */
    mpicrypt_sizes_t work;                  /* units in a step, for each size */
    size_t messages;                        /* stencils: of a rank in a step */
} mpicrypt_bench_variant_t;

/* The processes as the launcher places them. */
typedef struct mpicrypt_bench_places {
    size_t nodes;
    char library[256];
    char *cpus;                 /* for --cpus; NULL: left as they are */
    bool shared;                /* several nodes are one machine */
    bool yield;                 /* more ranks than processors somewhere */
} mpicrypt_bench_places_t;

/* One start: seconds[size] and work_seconds[size], medians of the laps. */
int mpicrypt_bench_job(mpicrypt_bench_plan_t *plan, mpicrypt_bench_column_t *column,
                       mpicrypt_bench_variant_t *variant, const mpicrypt_bench_places_t *places,
                       double *seconds, double *work_seconds, double *unit_seconds);
int mpicrypt_bench_places(mpicrypt_bench_plan_t *plan, const mpicrypt_bench_variant_t *variant,
                          mpicrypt_bench_places_t *places);
void mpicrypt_bench_places_free(mpicrypt_bench_places_t *places);

/* ---- rounds: mpicrypt_bench_rounds.c ---- */

/* Every value of a variant: [round][column][size], and which rounds were FAST. */
typedef struct mpicrypt_bench_values {
    const mpicrypt_bench_variant_t *variant;
    size_t rounds;              /* that were run */
    int columns, sizes;
    double *seconds, *work;
    bool *fast;                 /* [round][size] */
    bool complete;              /* enough FAST rounds at every size */
} mpicrypt_bench_values_t;

double *mpicrypt_bench_at(const mpicrypt_bench_values_t *values, double *of, size_t round, int column, int size);

/* Runs until the rule is satisfied; values are freed by _values_free. */
int mpicrypt_bench_rounds(mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t *variant,
                          const mpicrypt_bench_places_t *places, mpicrypt_bench_values_t *values);
void mpicrypt_bench_values_free(mpicrypt_bench_values_t *values);

/* The rule, as a sentence or two. */
const char *mpicrypt_bench_rule(const mpicrypt_bench_plan_t *plan);

/* Mark FAST rounds of one size: plain (column 0) at most 1.1 times the first
 * quartile of the plain values.  Returns how many. */
size_t mpicrypt_bench_classify(mpicrypt_bench_values_t *values, int size);

/* ---- what is shown: mpicrypt_bench_show.c ---- */

mpicrypt_table_t *mpicrypt_bench_table(void);
void mpicrypt_bench_add(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values,
                        mpicrypt_table_t *table);
mpicrypt_table_t *mpicrypt_bench_raw_table(void);
void mpicrypt_bench_add_raw(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values,
                            mpicrypt_table_t *table);
void mpicrypt_bench_print(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places,
                          const mpicrypt_table_t *table, FILE *out);
void mpicrypt_bench_json(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places,
                         const mpicrypt_table_t *table);
int mpicrypt_bench_plot(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values, int count,
                        const char *path);

/* "2D, 25 % computation" */
void mpicrypt_bench_variant_text(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_variant_t *variant,
                                 char *text, size_t bytes);

#endif
