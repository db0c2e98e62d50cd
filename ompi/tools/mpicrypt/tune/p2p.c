/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt tune, without --coll: ask a job what seals its messages.  If that is pml/crypt: measure two nodes,
 * fit the model, say how well it predicts, search around what it predicts.  Write a file of MCA parameters.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tune.h"

static mpicrypt_tune_t tune;

/* ---- jobs ---- */

int mpicrypt_tune_begin(mpicrypt_tune_t *t, const char *sizes)
{
    char error[256];

    mpicrypt_bench_columns_free(&t->plan);
    mpicrypt_sizes_free(&t->plan.sizes);
    if (0 != mpicrypt_sizes_parse(sizes, &t->plan.sizes, error, sizeof(error))) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s", error);
    }
    return mpicrypt_bench_columns(&t->plan, 0, NULL);
}

int mpicrypt_tune_column(mpicrypt_tune_t *t, bool crypt, const char *name, const char *settings)
{
    return mpicrypt_bench_new_column(&t->plan, name, crypt, t->plan.bits.value[0], settings);
}

int mpicrypt_tune_rounds(mpicrypt_tune_t *t, size_t rounds, mpicrypt_bench_values_t *values)
{
    t->plan.fast = rounds;
    t->plan.rounds = 2 * rounds;
    return mpicrypt_bench_rounds(&t->plan, &t->variant, &t->places, values);
}

/* ---- what the model is fitted to ---- */

static int add_sample(mpicrypt_sample_t **list, int *count, mpicrypt_sample_t sample)
{
    mpicrypt_sample_t *longer = realloc(*list, ((size_t) *count + 1) * sizeof(sample));

    if (NULL == longer) {
        return mpicrypt_error(MPICRYPT_FAILED, "out of memory");
    }
    *list = longer;
    longer[(*count)++] = sample;
    return MPICRYPT_OK;
}

/* Plain, with the limits that pml/crypt sets: that is what it sends on. */
static int measure_comm(size_t rounds)
{
    mpicrypt_bench_values_t values = {.rounds = 0};
    bool ob1 = 0 == strcmp(tune.plan.host, "ob1");
    int rc = mpicrypt_tune_begin(&tune, "1,256,1K,4K,16K,32K,64K,128K,256K,512K,1M,2M,4M,8M");

    if (MPICRYPT_OK == rc && ob1) {
        rc = mpicrypt_tune_column(&tune, false, "raised", mpicrypt_bench_scheme_settings("raised"));
    }
    rc = rc ? rc : mpicrypt_tune_rounds(&tune, rounds, &values);
    for (int s = 0; MPICRYPT_OK == rc && s < tune.plan.sizes.count; ++s) {
        rc = add_sample(&tune.comm, &tune.comm_count,
                        (mpicrypt_sample_t){(double) tune.plan.sizes.value[s], 1,
                                                     1e6 * mpicrypt_bench_median(&values, ob1, s)});
    }
    mpicrypt_bench_values_free(&values);
    return rc;
}

/* Laps of one size and number of threads come one behind the other. */
static int take_enc(char *text)
{
    double *lap = calloc(tune.plan.laps, sizeof(*lap)), seconds;
    size_t bytes, threads, number;
    int rc = NULL == lap ? mpicrypt_error(MPICRYPT_FAILED, "out of memory") : MPICRYPT_OK;

    for (char *line = mpicrypt_launch_line(&text); NULL != line && MPICRYPT_OK == rc;
         line = mpicrypt_launch_line(&text)) {
        sscanf(line, "processors %zu %zu", &tune.processors, &tune.most_threads);
        sscanf(line, "provider %127[^\n]", tune.provider);
        if (4 == sscanf(line, "sealed %zu %zu %zu %lf", &bytes, &threads, &number, &seconds)
            && number < tune.plan.laps) {
            lap[number] = seconds;
            if (number + 1 == tune.plan.laps) {
                rc = add_sample(&tune.enc, &tune.enc_count,
                                (mpicrypt_sample_t){(double) bytes, (double) threads,
                                                             1e6 * mpicrypt_spread(lap, (int) number + 1).median});
            }
        }
    }
    free(lap);
    return MPICRYPT_OK == rc && 0 == tune.enc_count ? MPICRYPT_FAILED : rc;
}

static int measure_enc(void)
{
    mpicrypt_launch_t result;
    int rc = mpicrypt_tune_begin(&tune, "2K,4K,8K,16K,32K,64K,128K,256K,512K,1M,2M,4M");

    rc = rc ? rc : mpicrypt_bench_start(&tune.plan, &tune.variant, &tune.places, "seal", &result);
    if (MPICRYPT_OK == rc) {
        rc = take_enc(result.out);
        if (0 != result.code || MPICRYPT_OK != rc) {
            fputs(result.err, stderr);
            rc = mpicrypt_error(MPICRYPT_FAILED, "sealing could not be measured: status %d", result.code);
        }
        mpicrypt_launch_free(&result);
    }
    return rc;
}

/* ---- running ---- */

void mpicrypt_tune_say(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    putchar('\n');
    fflush(stdout);
}

static int show_model(const mpicrypt_tune_files_t *files)
{
    int rc = MPICRYPT_OK;

    mpicrypt_tune_print(&tune);
    if (NULL != files->csv) {
        mpicrypt_table_t *table = mpicrypt_tune_table(&tune);
        rc = mpicrypt_table_csv_file(table, files->csv);
        mpicrypt_table_free(table);
    }
    if (MPICRYPT_OK == rc && NULL != files->plot) {
        rc = mpicrypt_tune_plot(&tune, files->plot);
    }
    return rc;
}

static int tune_pml(size_t rounds, bool search, const mpicrypt_tune_files_t *files)
{
    mpicrypt_tune_say("Measuring encryption alone, and plain messages ...");
    int rc = measure_enc();
    rc = rc ? rc : measure_comm(rounds);
    rc = rc ? rc : mpicrypt_tune_fit(&tune);
    if (MPICRYPT_OK == rc) {
        mpicrypt_tune_say("Measuring encrypted messages ...");
        rc = mpicrypt_tune_check(&tune, rounds);
    }
    if (MPICRYPT_OK == rc && search) {
        mpicrypt_tune_say("Searching near the model's choice ...\n");
        rc = mpicrypt_tune_search(&tune, rounds);
    }
    return rc ? rc : show_model(files);
}

/* The first job says what all of them use. */
static int find_out(bool model_wanted)
{
    tune.plan.encrypted = true;
    int rc = mpicrypt_bench_places(&tune.plan, &tune.variant, &tune.places);

    if (MPICRYPT_OK != rc) {
        return rc;
    }
    tune.over_btl = 0 == strncmp(tune.places.protection, "btl/", 4);
    tune.processors = tune.places.each;
    snprintf(tune.provider, sizeof(tune.provider), "%s", tune.places.provider);
    mpicrypt_tune_say("%s", tune.places.protection);
    if (tune.over_btl && model_wanted) {
        return mpicrypt_error(MPICRYPT_USAGE, "--plot and --no-search are about the model of pml/crypt, and btl/crypt "
                              "encrypts these jobs");
    }
    mpicrypt_bench_print_places(&tune.plan, &tune.places, NULL, 0, stdout);
    return MPICRYPT_OK;
}

int mpicrypt_tune_p2p(const mpicrypt_bench_plan_t *plan, bool search, const mpicrypt_tune_files_t *files)
{
    tune = (mpicrypt_tune_t){.plan = *plan, .variant = {.ranks = 2, .pairs = 1, .dims = 2}};
    tune.plan.pattern = "pingpong";
    tune.plan.sizes = (mpicrypt_sizes_t){NULL, 0};
    int rc = find_out(NULL != files->plot || !search);
    const size_t rounds = 0 != plan->rounds ? plan->rounds : tune.over_btl ? 7 : 3;
    if (MPICRYPT_OK == rc) {
        rc = tune.over_btl ? mpicrypt_tune_btl(&tune, rounds, files->csv) : tune_pml(rounds, search, files);
    }
    rc = rc ? rc : mpicrypt_tune_write(&tune, files->out);
    if (MPICRYPT_OK == rc) {
        printf("\n%sWritten to %s.  Jobs read it by\n    mpirun --mca pml crypt --mca mca_base_param_files %s ./app\n",
               tune.over_btl && '\0' == tune.settings[0] ? "Every default is best; the file has only a comment.  " : "",
               files->out, files->out);
    }
    mpicrypt_bench_places_free(&tune.places);
    mpicrypt_bench_columns_free(&tune.plan);
    mpicrypt_sizes_free(&tune.plan.sizes);
    free(tune.comm);
    free(tune.enc);
    free(tune.cells);
    return rc;
}
