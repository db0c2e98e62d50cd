/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The pieces of `mpicrypt tune`:
 *
 * Collectives (--coll): measure, choose, write rules    tune/coll.c
 * Messages, if btl/crypt seals: values beside the default tune/btl.c
 * Messages, if pml/crypt seals:
 *     measure  plain ping-pong, sealing alone           tune/p2p.c
 *     fit      parameters of the model                  tune/fit.c
 *     check    every (k, t) and size, against the model tune/fit.c
 *     search   chunk size, limits                       tune/search.c
 *     show     tables, plot, the file of parameters     tune/show.c
 */
#ifndef MPICRYPT_TUNE_TUNE_H
#define MPICRYPT_TUNE_TUNE_H

#include "ompi/tools/mpicrypt/bench/bench.h"
#include "opal/mca/common/crypt/wire/model.h"
#include "model_fit.h"

/* Bytes of a message's first part, in the jobs of tune: the default of pml_crypt_chop_min. */
enum { MPICRYPT_TUNE_FIRST = 1 << 16 };

/* One (k, t) at one size. */
typedef struct mpicrypt_tune_cell {
    size_t k, t, bytes;
    double measured_us, predicted_us, papers_us;    /* by crypt/wire/model.h's parts_us, and by chopped_us */
} mpicrypt_tune_cell_t;

/* What the search chose; 0: the component's default is as good. */
typedef struct mpicrypt_tune_choice {
    size_t chunk_size, limit;
} mpicrypt_tune_choice_t;

typedef struct mpicrypt_tune {
    mpicrypt_bench_plan_t plan;         /* its columns are filled for each step */
    mpicrypt_bench_variant_t variant;
    mpicrypt_bench_places_t places;
    size_t processors, most_threads;    /* T0; max(1, T0 - 1) */
    char provider[128];

    mpicrypt_sample_t *comm, *enc;
    int comm_count, enc_count;
    opal_crypt_model_t model;

    mpicrypt_tune_cell_t *cells;
    int cell_count;
    double median_error, largest_error, papers_error;   /* of the cells, in percent; papers': the median */

    mpicrypt_tune_choice_t choice;
    double before, after;               /* time over plain, geometric mean of sizes */
    bool over_btl;
    char settings[256];                 /* over btl/crypt, what was taken: PARAMETER=VALUE, separated by blanks */
} mpicrypt_tune_t;

/* What the user asked for, beside what is in the plan. */
typedef struct mpicrypt_tune_files {
    const char *out, *csv, *plot;
} mpicrypt_tune_files_t;

/* The plan has the options of the user; no rounds, or no host: the default. */
int mpicrypt_tune_p2p(const mpicrypt_bench_plan_t *plan, bool search, const mpicrypt_tune_files_t *files);

/* --coll: the plan has the options of the user (an empty list of sizes: the
 * default); the rules go to `out_path`, "-" being standard output. */
int mpicrypt_tune_coll(mpicrypt_bench_plan_t *plan, const char *out_path, const char *csv_path);

/* Columns: "plain" is always the first.  `settings` are MCA parameters,
 * separated by blanks. */
int mpicrypt_tune_begin(mpicrypt_tune_t *tune, const char *sizes);
int mpicrypt_tune_column(mpicrypt_tune_t *tune, bool crypt, const char *name, const char *settings);
/* One round each until `rounds` are FAST, or twice as many have been run. */
int mpicrypt_tune_rounds(mpicrypt_tune_t *tune, size_t rounds, mpicrypt_bench_values_t *values);

int mpicrypt_tune_fit(mpicrypt_tune_t *tune);
int mpicrypt_tune_check(mpicrypt_tune_t *tune, size_t rounds);
int mpicrypt_tune_search(mpicrypt_tune_t *tune, size_t rounds);
int mpicrypt_tune_btl(mpicrypt_tune_t *tune, size_t rounds, const char *csv);

/* A line on standard output, at once: what is measured next. */
void mpicrypt_tune_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

mpicrypt_table_t *mpicrypt_tune_table(const mpicrypt_tune_t *tune);
void mpicrypt_tune_print(const mpicrypt_tune_t *tune);
int mpicrypt_tune_plot(const mpicrypt_tune_t *tune, const char *path);
int mpicrypt_tune_write(const mpicrypt_tune_t *tune, const char *path);

#endif
