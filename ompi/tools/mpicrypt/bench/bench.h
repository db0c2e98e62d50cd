/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The pieces of `mpicrypt bench`: columns (what is compared), jobs (one start
 * of mpicrypt-mpi), rounds (one job of each column), what is shown.
 *
 *     for each variant (pairs, dimensions, computation, ranks on nodes):
 *         round 1: A B C ...   round 2: B C ... A   until the rule is satisfied
 *
 * A letter is a job.  Most columns are a job of their own; algorithms of a
 * collective are columns that share one, and take turns in it.
 */
#ifndef MPICRYPT_BENCH_BENCH_H
#define MPICRYPT_BENCH_BENCH_H

#include "ompi/tools/mpicrypt/mpicrypt.h"
#include "mpicrypt_launch.h"

/* ---- columns: bench/columns.c ---- */

#define MPICRYPT_BENCH_COLUMNS_MAX 32
#define MPICRYPT_BENCH_RANKS_MAX (1 << 20)

typedef struct mpicrypt_bench_column {
    char label[48];             /* "crypt", "naive-256" */
    char pml[16];
    size_t bits;                /* 0: nothing is encrypted */
    bool naive, bare;           /* sealed by the benchmark; with pml/crypt's provider */
    bool socket, copied;        /* over a socket of the benchmark's own; and copied once more */
    bool kernel;                /* sealed by the kernel */
    bool file;                  /* io: files are encrypted */
    mpicrypt_words_t settings;  /* PARAMETER=VALUE of Open MPI */
    const char *algorithm;      /* of a collective, chosen within the job; NULL: none */
    bool joined;                /* measured by the job of the column before */
    char said[1024];            /* what its jobs last wrote to stderr */
} mpicrypt_bench_column_t;

typedef struct mpicrypt_bench_plan {
    const char *pattern;
    mpicrypt_sizes_t sizes, pairs, dims, compute, bits, ranks;
    mpicrypt_names_t schemes;
    size_t window, fast, rounds, laps, cpus_per_rank;
    double lap_ms;              /* not finite: the default of the pattern */
    mpicrypt_names_t workloads, accesses, ops;  /* io */
    mpicrypt_sizes_t data, row, blocks;
    const char *directory, *key_label;
    const char *npb, *npb_class;                /* nas */
    mpicrypt_names_t kernels;
    bool local, both, pin;
    mpicrypt_names_t shapes, orders;    /* collectives */
    size_t per_cpu;
    bool paper;
    bool cryptmpi;              /* --paper, of messages */
    size_t percent;             /* of the papers' iterations */
    double processors;          /* of a rank of one pair, if --paper looked */
    bool every;                 /* every round counts, FAST or not */
    const char *mpirun, *mapping, *host, *program;
    mpicrypt_bench_column_t column[MPICRYPT_BENCH_COLUMNS_MAX];
    int column_count;
} mpicrypt_bench_plan_t;

/* Columns from --schemes, --bits and the operands "NAME PARAMETER=VALUE...". */
int mpicrypt_bench_columns(mpicrypt_bench_plan_t *plan, int operand_count, char **operands);
/* `settings` are words; encrypted columns get pml/crypt and the key size. */
int mpicrypt_bench_new_column(mpicrypt_bench_plan_t *plan, const char *name, bool crypt, size_t bits,
                              const char *settings);
/* Columns that the job of this one measures: itself and those joined to it. */
int mpicrypt_bench_column_jobs(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_column_t *column);
void mpicrypt_bench_columns_free(mpicrypt_bench_plan_t *plan);
const char *mpicrypt_bench_scheme_names(void);

/* ---- options: bench/check.c ---- */

/* Lists whose default depends on the pattern, and what --paper says. */
int mpicrypt_bench_defaults(mpicrypt_bench_plan_t *plan);
/* A first look, or not; io has lists of its own for it. */
int mpicrypt_bench_quick(mpicrypt_bench_plan_t *plan, bool quick);
/* Are the values such that they can be used? */
int mpicrypt_bench_check(const mpicrypt_bench_plan_t *plan);

/* ---- all of it: bench/measure.c ---- */

/* Where results go; NULL: nowhere.  On standard output a table, or JSON. */
typedef struct mpicrypt_bench_output {
    const char *csv, *raw, *plot;
    bool json;
} mpicrypt_bench_output_t;

int mpicrypt_bench_measure(mpicrypt_bench_plan_t *plan, const mpicrypt_bench_output_t *to);

/* ---- files: bench/io.c ---- */

typedef struct mpicrypt_bench_variant mpicrypt_bench_variant_t;

/* What the options say; puts block sizes in the place of sizes. */
int mpicrypt_bench_io_check(mpicrypt_bench_plan_t *plan);
int mpicrypt_bench_io_variants(const mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t **variants, int *count);

/* ---- jobs: bench/job.c ---- */

/* What one line of a table is about, but for the size. */
typedef struct mpicrypt_bench_variant {
    size_t ranks, pairs, dims, compute;     /* compute: percent of the plain time */
    const char *workload, *access, *op;     /* io */
    mpicrypt_sizes_t work;                  /* units in a step, for each size */
    size_t messages;                        /* stencils: of a rank in a step */
    size_t nodes, width;                    /* collectives: ranks a node; 0: as the launcher likes */
    bool cyclic;
    size_t paper_width;                     /* what --paper scaled down; 0: not --paper */
    double processors;                      /* that a node has, then */
} mpicrypt_bench_variant_t;

/* The processes as the launcher places them. */
typedef struct mpicrypt_bench_places {
    size_t nodes;
    char library[256];
    char tcp[32];               /* congestion control */
    char *cpus;                 /* for --cpus; NULL: left as they are */
    bool shared;                /* several nodes are one machine */
    bool yield;                 /* more ranks than processors somewhere */
    double processors;          /* fewest for a rank, if those of a machine share them */
    size_t each;                /* fewest that a rank is pinned or bound to */
    bool misplaced;             /* not where the variant wants the ranks */
} mpicrypt_bench_places_t;

/* One start: seconds[column][size] and work_seconds[column][size], medians of
 * the laps, of `column` and those joined to it. */
int mpicrypt_bench_job(mpicrypt_bench_plan_t *plan, mpicrypt_bench_column_t *column,
                       mpicrypt_bench_variant_t *variant, const mpicrypt_bench_places_t *places,
                       double *seconds, double *work_seconds, double *unit_seconds);
/* The parts of a command: the launcher with its words for the ranks, what the
 * environment gets, and a message about one that failed (the result is the exit status). */
void mpicrypt_bench_launcher(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_variant_t *variant,
                             mpicrypt_words_t *command);
void mpicrypt_bench_settings(const mpicrypt_bench_column_t *column, const mpicrypt_bench_places_t *places,
                             mpicrypt_words_t *settings);
int mpicrypt_bench_failed(const mpicrypt_words_t *command, const char *label, const mpicrypt_launch_t *result);

int mpicrypt_bench_places(mpicrypt_bench_plan_t *plan, const mpicrypt_bench_variant_t *variant,
                          mpicrypt_bench_places_t *places);
void mpicrypt_bench_places_free(mpicrypt_bench_places_t *places);

/* ---- collectives: bench/coll.c ---- */

typedef struct mpicrypt_bench_coll {
    const char *name;
    const char *schemes;        /* columns beside plain */
    const char *algorithms;     /* those of them that one job compares */
    const char *sizes;
} mpicrypt_bench_coll_t;

/* NULL when the pattern is no collective. */
const mpicrypt_bench_coll_t *mpicrypt_bench_coll(const char *pattern);
int mpicrypt_bench_coll_columns(mpicrypt_bench_plan_t *plan, const mpicrypt_bench_coll_t *coll);

/* Shapes and orders; the caller frees *variants. */
int mpicrypt_bench_coll_variants(const mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t **variants, int *count);
/* --paper: as many ranks as the nodes bear, and a sentence about it. */
int mpicrypt_bench_coll_scale(mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t *variants, int count);
void mpicrypt_bench_coll_scaling(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_variant_t *variant, FILE *out);

/* NODESxRANKS, or a usage error. */
int mpicrypt_bench_shape(const char *text, size_t *nodes, size_t *width);

/* Words for the launcher that make it place ranks so; did it place this one so? */
void mpicrypt_bench_coll_mapping(const mpicrypt_bench_variant_t *variant, mpicrypt_words_t *command);
bool mpicrypt_bench_coll_fits(const mpicrypt_bench_variant_t *variant, size_t rank, size_t node);

/* ---- --paper for messages: bench/cryptmpi.c ---- */

typedef struct mpicrypt_bench_values mpicrypt_bench_values_t;

/* Puts what the paper has into the plan; drops variants for which the nodes are too
 * small. */
int mpicrypt_bench_cryptmpi(mpicrypt_bench_plan_t *plan);
int mpicrypt_bench_cryptmpi_scale(mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t *variants, int *count);
size_t mpicrypt_bench_cryptmpi_iterations(const mpicrypt_bench_plan_t *plan, size_t bytes);

/* Its stopping rule: has it been satisfied?  In words; what was scaled, and why. */
bool mpicrypt_bench_cryptmpi_complete(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values);
size_t mpicrypt_bench_cryptmpi_least(void);
size_t mpicrypt_bench_cryptmpi_most(void);
void mpicrypt_bench_cryptmpi_rule(const mpicrypt_bench_plan_t *plan, char *text, size_t bytes);
void mpicrypt_bench_cryptmpi_scaling(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places, FILE *out);

/* ---- rounds: bench/rounds.c ---- */

/* Every value of a variant: [round][column][size], and which rounds were FAST. */
struct mpicrypt_bench_values {
    const mpicrypt_bench_variant_t *variant;
    size_t rounds;              /* that were run */
    int columns, sizes;
    double *seconds, *work;
    bool *fast;                 /* [round][size] */
    bool every;                 /* all of them count as FAST */
    bool complete;              /* the stopping rule is satisfied */
};

double *mpicrypt_bench_at(const mpicrypt_bench_values_t *values, double *of, size_t round, int column, int size);

/* Runs until the rule is satisfied; values are freed by _values_free. */
int mpicrypt_bench_rounds(mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t *variant,
                          const mpicrypt_bench_places_t *places, mpicrypt_bench_values_t *values);
void mpicrypt_bench_values_free(mpicrypt_bench_values_t *values);

/* Median of the FAST rounds, seconds. */
double mpicrypt_bench_median(const mpicrypt_bench_values_t *values, int column, int size);

/* The rule, as a sentence or two. */
const char *mpicrypt_bench_rule(const mpicrypt_bench_plan_t *plan);

/* Mark FAST rounds of one size: plain (column 0) at most 1.1 times the first
 * quartile of the plain values.  Returns how many. */
size_t mpicrypt_bench_classify(mpicrypt_bench_values_t *values, int size);

/* ---- the NAS Parallel Benchmarks: bench/nas.c ---- */

/* All of it, with the columns of the plan. */
int mpicrypt_bench_nas(mpicrypt_bench_plan_t *plan, const char *csv_path, bool json);

/* ---- what is shown: bench/show.c, bench/matrix.c ---- */

/* Median and quartiles, over the FAST rounds, of the time of a column over that
 * of another, within a round. */
mpicrypt_spread_t mpicrypt_bench_ratio(const mpicrypt_bench_values_t *values, int column, int to, int size);

/* The head of both (bench/conditions.c): places[v] are those of values[v]; without values (count 0), one for all. */
void mpicrypt_bench_print_places(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places,
                                 const mpicrypt_bench_values_t *values, int count, FILE *out);
void mpicrypt_bench_json_places(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places,
                                const mpicrypt_bench_values_t *values, int count);

mpicrypt_table_t *mpicrypt_bench_table(void);
void mpicrypt_bench_add(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values,
                        mpicrypt_table_t *table);
mpicrypt_table_t *mpicrypt_bench_raw_table(void);
void mpicrypt_bench_add_raw(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values,
                            mpicrypt_table_t *table);
void mpicrypt_bench_print(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places,
                          const mpicrypt_bench_values_t *values, int count, const mpicrypt_table_t *table, FILE *out);
/* Collectives: ratios to plain, a line for each size and a column for each column. */
void mpicrypt_bench_matrix(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values, FILE *out);
void mpicrypt_bench_json(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places,
                         const mpicrypt_bench_values_t *values, int count, const mpicrypt_table_t *table);
int mpicrypt_bench_plot(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_values_t *values, int count,
                        const char *path);

/* "2D, 25 % computation" */
void mpicrypt_bench_variant_text(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_variant_t *variant,
                                 char *text, size_t bytes);

#endif
