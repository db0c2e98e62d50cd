/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt tune: measure these nodes, fit the model, say how well it predicts,
 * search around what it predicts, write a file of MCA parameters.
 */
#include <stdlib.h>
#include <string.h>

#include "mpicrypt_plot.h"
#include "mpicrypt_tune.h"

static mpicrypt_tune_t tune;
static const char *out_path, *plot_path, *csv_path;
static bool no_search, no_pin;

static const mpicrypt_option_t options[] = {
    {"out", MPICRYPT_TEXT, "FILE", "ompi-crypt-tuned.conf", &out_path, "The file of MCA parameters to write."},
    {"bits", MPICRYPT_SIZES, "BITS", "128", &tune.plan.bits, "Key size: 128, 192 or 256."},
    {"comm-threads", MPICRYPT_COUNT, "N", "1", &tune.comm_threads,
     "Processors of a rank that are left to communication, T1."},
    {"rounds", MPICRYPT_COUNT, "N", "3", &tune.plan.rounds,
     "FAST rounds of each step; at most twice as many are run."},
    {"mpirun", MPICRYPT_TEXT, "COMMAND", "mpirun", &tune.plan.mpirun,
     "The launcher, with arguments separated by blanks: 'mpirun --hostfile hosts', 'srun --mpi=pmix'."},
    {"mapping", MPICRYPT_TEXT, "WORDS", "--map-by node", &tune.plan.mapping,
     "Words that make the launcher place ranks on nodes in turn."},
    {"host", MPICRYPT_TEXT, "NAME", "ob1", &tune.plan.host, "The host PML: ob1 or ucx."},
    {"cpus-per-rank", MPICRYPT_COUNT, "N", "0", &tune.plan.cpus_per_rank,
     "Pin each of the two ranks to so many processors, T0; 0: to all of its node. The file fits jobs whose ranks have "
     "so many."},
    {"no-pin", MPICRYPT_FLAG, NULL, NULL, &no_pin, "Leave ranks as the launcher starts them."},
    {"no-search", MPICRYPT_FLAG, NULL, NULL, &no_search,
     "Only measure and fit: the file gets the model, but neither chunk size, depth nor limits."},
    {"csv", MPICRYPT_TEXT, "FILE", NULL, &csv_path, "Also write measured and predicted times as CSV."},
    {"plot", MPICRYPT_TEXT, "FILE", NULL, &plot_path,
     "Also draw them. FILE ends in .svg, or in .png if the cairo library (Debian: libcairo2) is installed."},
    {"program", MPICRYPT_TEXT, "FILE", NULL, &tune.plan.program,
     "The program that is started on the nodes, instead of the installed mpicrypt-mpi."},
    {NULL, MPICRYPT_FLAG, NULL, NULL, NULL, NULL}
};

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
    char text[1024];

    snprintf(text, sizeof(text), "%s %s %s", name, crypt ? "pml=crypt" : "", settings);
    return mpicrypt_bench_add_column(&t->plan, text);
}

int mpicrypt_tune_rounds(mpicrypt_tune_t *t, size_t rounds, mpicrypt_bench_values_t *values)
{
    t->plan.fast = rounds;
    t->plan.rounds = 2 * rounds;
    return mpicrypt_bench_rounds(&t->plan, &t->variant, &t->places, values);
}

/* ---- what the model is fitted to ---- */

static int add_sample(opal_common_crypt_sample_t **list, int *count, opal_common_crypt_sample_t sample)
{
    opal_common_crypt_sample_t *longer = realloc(*list, ((size_t) *count + 1) * sizeof(sample));

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
                        (opal_common_crypt_sample_t){(double) tune.plan.sizes.value[s], 1,
                                                     1e6 * mpicrypt_bench_median(&values, ob1, s)});
    }
    mpicrypt_bench_values_free(&values);
    return rc;
}

/* Laps of one size and number of threads come one behind the other. */
static int take_enc(char *text)
{
    double lap[64], seconds;
    size_t bytes, threads, number;
    int rc = MPICRYPT_OK;

    for (char *line = mpicrypt_launch_line(&text); NULL != line && MPICRYPT_OK == rc;
         line = mpicrypt_launch_line(&text)) {
        sscanf(line, "processors %zu %zu", &tune.processors, &tune.most_threads);
        sscanf(line, "provider %127[^\n]", tune.provider);
        if (4 == sscanf(line, "sealed %zu %zu %zu %lf", &bytes, &threads, &number, &seconds)
            && number < sizeof(lap) / sizeof(*lap)) {
            lap[number] = seconds;
            if (number + 1 == tune.plan.laps) {
                rc = add_sample(&tune.enc, &tune.enc_count,
                                (opal_common_crypt_sample_t){(double) bytes, (double) threads,
                                                             1e6 * mpicrypt_spread(lap, (int) number + 1).median});
            }
        }
    }
    return MPICRYPT_OK == rc && 0 == tune.enc_count ? MPICRYPT_FAILED : rc;
}

static int measure_enc(void)
{
    mpicrypt_launch_t result;
    int rc = mpicrypt_tune_begin(&tune, "2K,4K,8K,16K,32K,64K,128K,256K,512K,1M,2M,4M");
    char extra[64];

    snprintf(extra, sizeof(extra), "--comm-threads=%zu", tune.comm_threads);
    rc = rc ? rc : mpicrypt_bench_start(&tune.plan, &tune.variant, &tune.places, "seal", extra, &result);
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

static int check_values(void)
{
    size_t bits = 1 == tune.plan.bits.count ? tune.plan.bits.value[0] : 0;

    if (128 != bits && 192 != bits && 256 != bits) {
        return mpicrypt_error(MPICRYPT_USAGE, "--bits is one of 128, 192, 256");
    }
    if (tune.plan.rounds < 1 || tune.plan.rounds > 1000) {
        return mpicrypt_error(MPICRYPT_USAGE, "--rounds: %zu is not between 1 and 1000", tune.plan.rounds);
    }
    if (0 != strcmp(tune.plan.host, "ob1") && 0 != strcmp(tune.plan.host, "ucx")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--host: '%s' is neither ob1 nor ucx", tune.plan.host);
    }
    int rc = NULL == plot_path ? MPICRYPT_OK : mpicrypt_plot_check(plot_path);
    rc = rc ? rc : mpicrypt_writable(plot_path);
    rc = rc ? rc : mpicrypt_writable(csv_path);
    rc = rc ? rc : mpicrypt_writable(out_path);
    return rc ? rc : mpicrypt_mpi_program(tune.plan.program, &tune.plan.program);
}

static int write_all(void)
{
    int rc = MPICRYPT_OK;

    mpicrypt_tune_print(&tune);
    if (NULL != csv_path) {
        mpicrypt_table_t *table = mpicrypt_tune_table(&tune);
        rc = mpicrypt_table_csv_file(table, csv_path);
        mpicrypt_table_free(table);
    }
    if (MPICRYPT_OK == rc && NULL != plot_path) {
        rc = mpicrypt_tune_plot(&tune, plot_path);
    }
    rc = rc ? rc : mpicrypt_tune_write(&tune, out_path);
    if (MPICRYPT_OK == rc) {
        printf("\nWritten to %s.  Jobs read it by\n    mpirun --mca pml crypt --mca mca_base_param_files %s ./app\n",
               out_path, out_path);
    }
    return rc;
}

static int run(int operand_count, char **operands)
{
    size_t rounds = tune.plan.rounds;

    (void) operand_count;
    (void) operands;
    tune.plan.pattern = "pingpong";
    tune.plan.pin = !no_pin;
    tune.plan.laps = 5;
    tune.plan.lap_ms = 5;
    tune.variant = (mpicrypt_bench_variant_t){.ranks = 2, .pairs = 1, .dims = 2};
    int rc = check_values();
    rc = rc ? rc : mpicrypt_tune_begin(&tune, "1");
    rc = rc ? rc : mpicrypt_bench_places(&tune.plan, &tune.variant, &tune.places);
    rc = rc ? rc : measure_enc();
    rc = rc ? rc : measure_comm(rounds);
    rc = rc ? rc : mpicrypt_tune_fit(&tune);
    rc = rc ? rc : mpicrypt_tune_check(&tune, rounds);
    if (MPICRYPT_OK == rc && !no_search) {
        rc = mpicrypt_tune_search(&tune, rounds);
    }
    rc = rc ? rc : write_all();
    mpicrypt_bench_places_free(&tune.places);
    mpicrypt_bench_columns_free(&tune.plan);
    mpicrypt_sizes_free(&tune.plan.sizes);
    free(tune.comm);
    free(tune.enc);
    free(tune.cells);
    return rc;
}

const mpicrypt_verb_t mpicrypt_tune_verb = {
    .name = "tune",
    .summary = "measure your nodes and write parameters that fit them",
    .synopsis = "[--mpirun COMMAND] [--out FILE] [OPTION]...",
    .description =
        "Starts jobs of two ranks on two of your nodes. It measures messages without encryption, and encryption "
        "without messages with one thread, two, and so on; fits the model of the papers to that; and then measures "
        "encrypted messages with every number of chunks k and threads t, which the fit has not seen, and prints "
        "measured times beside predicted ones.\n\n"
        "Then it searches around the prediction: chunk sizes, how many sealed chunks are with the transport at a "
        "time, and (for ob1) the limits of btl/tcp. What is faster than the defaults, it writes into a file of MCA "
        "parameters; 'mpicrypt model --profile ./FILE' predicts with the same file.\n\n"
        "The nodes should do nothing else meanwhile. It takes about a minute.",
    .options = options,
    .examples = "mpicrypt tune --mpirun 'mpirun --host a,b'\n"
                "mpicrypt tune --mpirun 'mpirun --host a,b' --cpus-per-rank 8 --out a8.conf --plot a8.svg",
    .run = run
};
