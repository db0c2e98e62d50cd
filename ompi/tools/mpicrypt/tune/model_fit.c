/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Least squares: model parameters from measurements.
 *
 * Communication is linear in (alpha, beta): normal equations.  Encryption,
 * alpha + m / (A + B (t-1)), is not: Levenberg-Marquardt from the linear
 * solution for one thread.
 */
#include <math.h>
#include <string.h>

#include "model_fit.h"

/* The samples of a piece: from <= bytes < to. */
typedef struct range {
    const mpicrypt_sample_t *samples;
    int count;
    double from, to;
    mpicrypt_fit_weight_t weight;
} range_t;

static bool inside(const range_t *range, int i)
{
    return range->samples[i].bytes >= range->from && range->samples[i].bytes < range->to;
}

/* Of the squared error. */
static double weight_of(const range_t *range, int i)
{
    double us = range->samples[i].us;
    return MPICRYPT_FIT_ABSOLUTE == range->weight || us <= 0 ? 1 : 1 / (us * us);
}

static bool two_sizes(const range_t *range)
{
    int first = -1;

    for (int i = 0; i < range->count; ++i) {
        if (!inside(range, i)) {
            continue;
        }
        if (first < 0) {
            first = i;
        } else if (range->samples[i].bytes != range->samples[first].bytes) {
            return true;
        }
    }
    return false;
}

/* ---- communication ---- */

static double mean_of_smallest(const mpicrypt_sample_t *samples, int count)
{
    double bytes = INFINITY, sum = 0;
    int of_it = 0;

    for (int i = 0; i < count; ++i) {
        if (samples[i].bytes < bytes) {
            bytes = samples[i].bytes;
            sum = 0;
            of_it = 0;
        }
        if (samples[i].bytes == bytes) {
            sum += samples[i].us;
            ++of_it;
        }
    }
    return sum / of_it;
}

/* alpha and beta of a range with two sizes; returns the sum of weighted squared errors. */
static double fit_line(const range_t *range, opal_crypt_comm_piece_t *piece)
{
    double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0, error = 0;

    for (int i = 0; i < range->count; ++i) {
        if (inside(range, i)) {
            double weight = weight_of(range, i), x = range->samples[i].bytes, y = range->samples[i].us;
            w += weight;
            wx += weight * x;
            wxx += weight * x * x;
            wy += weight * y;
            wxy += weight * x * y;
        }
    }
    piece->from_bytes = range->from;
    piece->beta_us = (w * wxy - wx * wy) / (w * wxx - wx * wx);
    piece->alpha_us = (wy - piece->beta_us * wx) / w;
    if (piece->alpha_us < 0) {
        piece->alpha_us = mean_of_smallest(range->samples, range->count);
        piece->beta_us = (wxy - piece->alpha_us * wx) / wxx;
    }
    for (int i = 0; i < range->count; ++i) {
        if (inside(range, i)) {
            double off = piece->alpha_us + piece->beta_us * range->samples[i].bytes - range->samples[i].us;
            error += weight_of(range, i) * off * off;
        }
    }
    return error;
}

/* Both pieces, split at eager_bytes; -1 if there are not enough sizes. */
static double fit_split(range_t range, double eager_bytes, opal_crypt_comm_piece_t *pieces)
{
    range_t eager = range, rendezvous = range;

    eager.to = eager_bytes;
    rendezvous.from = eager_bytes;
    if (!two_sizes(&eager) || !two_sizes(&rendezvous)) {
        return -1;
    }
    return fit_line(&eager, &pieces[0]) + fit_line(&rendezvous, &pieces[1]);
}

int mpicrypt_fit_comm(const mpicrypt_sample_t *samples, int count, double eager_bytes,
                      mpicrypt_fit_weight_t weight, opal_crypt_model_t *model)
{
    const range_t all = {samples, count, 0, INFINITY, weight};
    opal_crypt_comm_piece_t tried[2];
    double best = INFINITY;

    if (eager_bytes < 0) {
        if (!two_sizes(&all)) {
            return OPAL_CRYPT_ERR_CONFIG;
        }
        fit_line(&all, &model->comm[0]);
        model->comm_count = 1;
        return OPAL_CRYPT_OK;
    }
    for (int i = 0; i < (0 == eager_bytes ? count : 1); ++i) {
        double error = fit_split(all, 0 == eager_bytes ? samples[i].bytes : eager_bytes, tried);
        if (0 <= error && error < best) {
            best = error;
            memcpy(model->comm, tried, sizeof(tried));
            model->comm_count = 2;
        }
    }
    return isinf(best) ? OPAL_CRYPT_ERR_CONFIG : OPAL_CRYPT_OK;
}

/* ---- encryption ---- */

enum { ALPHA, FIRST, NEXT, PARAMETERS };

/* Gaussian elimination with pivoting, `n` <= 3 unknowns; false if singular. */
static bool solve(double a[PARAMETERS][PARAMETERS], double b[PARAMETERS], int n)
{
    for (int column = 0; column < n; ++column) {
        int pivot = column;
        for (int row = column + 1; row < n; ++row) {
            pivot = fabs(a[row][column]) > fabs(a[pivot][column]) ? row : pivot;
        }
        if (0 == a[pivot][column] || !isfinite(a[pivot][column])) {
            return false;
        }
        for (int i = 0; i < n; ++i) {
            double swap = a[column][i];
            a[column][i] = a[pivot][i];
            a[pivot][i] = swap;
        }
        double swap = b[column];
        b[column] = b[pivot];
        b[pivot] = swap;
        for (int row = column + 1; row < n; ++row) {
            double factor = a[row][column] / a[column][column];
            for (int i = column; i < n; ++i) {
                a[row][i] -= factor * a[column][i];
            }
            b[row] -= factor * b[column];
        }
    }
    for (int row = n - 1; 0 <= row; --row) {
        for (int i = row + 1; i < n; ++i) {
            b[row] -= a[row][i] * b[i];
        }
        b[row] /= a[row][row];
    }
    return true;
}

/* Sum of weighted squared errors; infinite where a rate is not positive. */
static double enc_error(const range_t *range, const double *p)
{
    double error = 0;

    for (int i = 0; i < range->count; ++i) {
        if (inside(range, i)) {
            const mpicrypt_sample_t *sample = &range->samples[i];
            double rate = p[FIRST] + p[NEXT] * (sample->threads - 1);
            if (rate <= 0) {
                return INFINITY;
            }
            double off = p[ALPHA] + sample->bytes / rate - sample->us;
            error += weight_of(range, i) * off * off;
        }
    }
    return error;
}

/* J^T W J and -J^T W r over the free parameters. */
static void normal_equations(const range_t *range, const double *p, const int *free_ones, int n,
                             double a[PARAMETERS][PARAMETERS], double b[PARAMETERS])
{
    memset(a, 0, sizeof(double[PARAMETERS][PARAMETERS]));
    memset(b, 0, sizeof(double[PARAMETERS]));
    for (int i = 0; i < range->count; ++i) {
        if (!inside(range, i)) {
            continue;
        }
        const mpicrypt_sample_t *sample = &range->samples[i];
        double others = sample->threads - 1, rate = p[FIRST] + p[NEXT] * others;
        double slope = -sample->bytes / (rate * rate);
        const double gradient[PARAMETERS] = {1, slope, slope * others};
        double off = p[ALPHA] + sample->bytes / rate - sample->us, weight = weight_of(range, i);

        for (int row = 0; row < n; ++row) {
            for (int column = 0; column < n; ++column) {
                a[row][column] += weight * gradient[free_ones[row]] * gradient[free_ones[column]];
            }
            b[row] -= weight * gradient[free_ones[row]] * off;
        }
    }
}

static void levenberg_marquardt(const range_t *range, double *p, const int *free_ones, int n)
{
    double damping = 1e-3, error = enc_error(range, p);

    for (int round = 0; round < 500 && damping < 1e12; ++round) {
        double a[PARAMETERS][PARAMETERS], b[PARAMETERS], trial[PARAMETERS];

        normal_equations(range, p, free_ones, n, a, b);
        for (int i = 0; i < n; ++i) {
            a[i][i] *= 1 + damping;
        }
        memcpy(trial, p, sizeof(trial));
        bool solved = solve(a, b, n);
        for (int i = 0; solved && i < n; ++i) {
            trial[free_ones[i]] += b[i];
        }
        double trial_error = solved ? enc_error(range, trial) : INFINITY;
        if (trial_error < error) {
            bool converged = error - trial_error <= 1e-15 * error;
            memcpy(p, trial, sizeof(trial));
            error = trial_error;
            damping /= 10;
            if (converged) {
                break;
            }
        } else {
            damping *= 10;
        }
    }
}

static bool several_threads(const range_t *range)
{
    for (int i = 0; i < range->count; ++i) {
        if (inside(range, i) && range->samples[i].threads > 1) {
            return true;
        }
    }
    return false;
}

static void fit_enc_piece(const range_t *range, opal_crypt_enc_piece_t *piece)
{
    static const int all[] = {ALPHA, FIRST, NEXT}, rates[] = {FIRST, NEXT}, single[] = {ALPHA, FIRST};
    bool threads = several_threads(range);
    opal_crypt_comm_piece_t line;

    /* As if all were of one thread: a start from which the rates are positive. */
    fit_line(range, &line);
    double p[PARAMETERS] = {line.alpha_us, line.beta_us > 0 ? 1 / line.beta_us : 1, 0};
    levenberg_marquardt(range, p, threads ? all : single, threads ? 3 : 2);
    if (p[ALPHA] < 0) {
        p[ALPHA] = 0;
        levenberg_marquardt(range, p, rates, threads ? 2 : 1);
    }
    *piece = (opal_crypt_enc_piece_t){range->from, p[ALPHA], p[FIRST], p[NEXT]};
}

int mpicrypt_fit_enc(const mpicrypt_sample_t *samples, int count, const double *from_bytes,
                     int piece_count, mpicrypt_fit_weight_t weight,
                     opal_crypt_model_t *model)
{
    opal_crypt_enc_piece_t pieces[OPAL_CRYPT_MODEL_PIECES];

    if (piece_count < 1 || piece_count > OPAL_CRYPT_MODEL_PIECES || 0 != from_bytes[0]) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    for (int i = 0; i < piece_count; ++i) {
        const range_t range = {samples, count, from_bytes[i],
                               i + 1 < piece_count ? from_bytes[i + 1] : INFINITY, weight};
        if (!two_sizes(&range)) {
            return OPAL_CRYPT_ERR_CONFIG;
        }
        fit_enc_piece(&range, &pieces[i]);
    }
    memcpy(model->enc, pieces, (size_t) piece_count * sizeof(pieces[0]));
    model->enc_count = piece_count;
    return OPAL_CRYPT_OK;
}
