/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * `mpicrypt tune`: the model's parameters by least squares, and how well they
 * predict encrypted messages, of which the fit has seen none.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune.h"

static const size_t ks[] = {1, 2, 4, 8, 16, 32};
enum { KS = sizeof(ks) / sizeof(*ks) };

/* A message that takes less time the longer it is is none that a file may have. */
static bool comm_makes_sense(const opal_crypt_model_t *model)
{
    for (int i = 0; i < model->comm_count; ++i) {
        if (!(model->comm[i].beta_us > 0) || !(model->comm[i].alpha_us >= 0)) {
            return false;
        }
    }
    return true;
}

/* Two pieces; on a machine too restless for that, one. */
static bool fit_comm(mpicrypt_tune_t *tune)
{
    for (int eager = 0; eager >= -1; --eager) {
        if (OPAL_CRYPT_OK == mpicrypt_fit_comm(tune->comm, tune->comm_count, eager, MPICRYPT_FIT_RELATIVE,
                                               &tune->model)
            && comm_makes_sense(&tune->model)) {
            return true;
        }
    }
    return false;
}

/* Threads that slow each other down add nothing. */
static bool fit_enc(mpicrypt_tune_t *tune)
{
    static const double pieces[] = {0, 32 << 10, 1 << 20};      /* CryptMPI's */

    if (OPAL_CRYPT_OK != mpicrypt_fit_enc(tune->enc, tune->enc_count, pieces, 3, MPICRYPT_FIT_RELATIVE,
                                          &tune->model)) {
        return false;
    }
    for (int i = 0; i < tune->model.enc_count; ++i) {
        tune->model.enc[i].next_rate = tune->model.enc[i].next_rate > 0 ? tune->model.enc[i].next_rate : 0;
    }
    return true;
}

int mpicrypt_tune_fit(mpicrypt_tune_t *tune)
{
    if (!fit_comm(tune) || !fit_enc(tune)) {
        return mpicrypt_error(MPICRYPT_FAILED, "what was measured is too irregular for a model: is the machine busy?");
    }
    return MPICRYPT_OK;
}

/* ---- the cells ---- */

/* The n-th number of threads that was measured; 0: there are no more. */
static size_t threads_at(const mpicrypt_tune_t *tune, int n)
{
    double last = 0;

    for (int i = 0; i < tune->enc_count; ++i) {
        if (tune->enc[i].threads != last) {
            last = tune->enc[i].threads;
            if (0 == n--) {
                return (size_t) last;
            }
        }
    }
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

/* Sorted, in percent. */
static void errors_of(const mpicrypt_tune_t *tune, bool papers, double *errors)
{
    for (int i = 0; i < tune->cell_count; ++i) {
        const mpicrypt_tune_cell_t *cell = &tune->cells[i];
        double us = papers ? cell->papers_us : cell->predicted_us;
        errors[i] = 100 * fabs(us - cell->measured_us) / cell->measured_us;
    }
    qsort(errors, (size_t) tune->cell_count, sizeof(*errors), by_value);
}

static int judge(mpicrypt_tune_t *tune)
{
    double *errors = calloc((size_t) tune->cell_count + 1, sizeof(*errors));

    if (NULL == errors) {
        return mpicrypt_error(MPICRYPT_FAILED, "out of memory");
    }
    errors_of(tune, true, errors);
    tune->papers_error = mpicrypt_spread(errors, tune->cell_count).median;
    errors_of(tune, false, errors);
    tune->median_error = mpicrypt_spread(errors, tune->cell_count).median;
    tune->largest_error = errors[tune->cell_count - 1];
    free(errors);
    return MPICRYPT_OK;
}

/* Every size that is measured in k chunks. */
static void print_cut(const mpicrypt_tune_t *tune, size_t k, size_t threads, char *text, size_t bytes)
{
    size_t used = (size_t) snprintf(text, bytes, "crypt_transport=pml pml_crypt_chop_min=%d pml_crypt_t=", MPICRYPT_TUNE_FIRST);

    for (int s = 0; s < tune->plan.sizes.count && used < bytes; ++s) {
        const size_t size = tune->plan.sizes.value[s];
        used += (size_t) snprintf(text + used, bytes - used, "%s%zu:%zu:%zu", 0 == s ? "" : ",", size, threads, size / k);
    }
}

/* All k at one number of threads. */
static int check_threads(mpicrypt_tune_t *tune, size_t threads, size_t rounds)
{
    mpicrypt_bench_values_t values = {.rounds = 0};
    int rc = mpicrypt_tune_begin(tune, "128K,256K,512K,1M,2M,4M");
    char name[32], settings[512];

    for (int i = 0; i < KS && MPICRYPT_OK == rc; ++i) {
        snprintf(name, sizeof(name), "k%zu-t%zu", ks[i], threads);
        print_cut(tune, ks[i], threads, settings, sizeof(settings));
        rc = mpicrypt_tune_column(tune, true, name, settings);
    }
    rc = rc ? rc : mpicrypt_tune_rounds(tune, rounds, &values);
    if (MPICRYPT_OK == rc) {
        size_t more = (size_t) KS * (size_t) tune->plan.sizes.count;
        mpicrypt_tune_cell_t *cells = realloc(tune->cells, ((size_t) tune->cell_count + more) * sizeof(*cells));
        if (NULL == cells) {
            rc = mpicrypt_error(MPICRYPT_FAILED, "out of memory");
        }
        tune->cells = NULL == cells ? tune->cells : cells;
    }
    for (int s = 0; s < tune->plan.sizes.count && MPICRYPT_OK == rc; ++s) {
        for (int i = 0; i < KS; ++i) {
            size_t bytes = tune->plan.sizes.value[s];
            double m = (double) bytes, k = (double) ks[i], t = (double) threads;
            tune->cells[tune->cell_count++] = (mpicrypt_tune_cell_t){
                ks[i], threads, bytes, 1e6 * mpicrypt_bench_median(&values, 1 + i, s),
                opal_crypt_model_parts_us(&tune->model, m, MPICRYPT_TUNE_FIRST, k, t),
                opal_crypt_model_chopped_us(&tune->model, m, k, t)};
        }
    }
    mpicrypt_bench_values_free(&values);
    return rc;
}

int mpicrypt_tune_check(mpicrypt_tune_t *tune, size_t rounds)
{
    int rc = MPICRYPT_OK;
    size_t threads;

    for (int n = 0; 0 != (threads = threads_at(tune, n)) && MPICRYPT_OK == rc; ++n) {
        rc = check_threads(tune, threads, rounds);
    }
    return rc ? rc : judge(tune);
}
