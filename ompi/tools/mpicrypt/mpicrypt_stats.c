/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Median and quartiles, and the progress bar or line of long runs.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpicrypt.h"
#include "opal/mca/common/crypt/base/text.h"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

/* The value at `share` (0..1) of the sorted sample, interpolated linearly. */
static double quantile(const double *sorted, int count, double share)
{
    double place = share * (count - 1);
    int below = (int) floor(place);
    int above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

mpicrypt_spread_t mpicrypt_spread(double *values, int count)
{
    if (count < 1) {
        return (mpicrypt_spread_t){NAN, NAN, NAN};
    }
    qsort(values, (size_t) count, sizeof(*values), ascending);
    return (mpicrypt_spread_t){quantile(values, count, 0.5), quantile(values, count, 0.25),
                               quantile(values, count, 0.75)};
}

static pthread_mutex_t bar_lock = PTHREAD_MUTEX_INITIALIZER;
static bool bar_shown = false;

void mpicrypt_progress(const char *label, size_t done, size_t total)
{
    enum { CELLS = 40 };
    static const char full[CELLS + 1] = "########################################";

    if (!isatty(STDERR_FILENO) || 0 == total) {
        return;
    }
    int filled = (int) (done * CELLS / total);
    char shown[25];

    snprintf(shown, sizeof(shown), "%s", label);
    pthread_mutex_lock(&bar_lock);
    fprintf(stderr, "\r[%-*.*s] %3zu%% %-24s", CELLS, filled, full, done * 100 / total, opal_crypt_harmless(shown, ""));
    fflush(stderr);
    bar_shown = true;
    pthread_mutex_unlock(&bar_lock);
}

void mpicrypt_progress_line(const char *text)
{
    if (isatty(STDERR_FILENO)) {
        pthread_mutex_lock(&bar_lock);
        fprintf(stderr, "\r%-74.74s", text);
        fflush(stderr);
        bar_shown = true;
        pthread_mutex_unlock(&bar_lock);
    }
}

void mpicrypt_progress_end(void)
{
    pthread_mutex_lock(&bar_lock);
    if (bar_shown) {
        fprintf(stderr, "\r%74s\r", "");
        bar_shown = false;
    }
    pthread_mutex_unlock(&bar_lock);
}
