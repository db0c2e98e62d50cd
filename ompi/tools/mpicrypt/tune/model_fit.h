/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Fitting the model (opal/mca/common/crypt/wire/model.h) to what was measured.
 */
#ifndef MPICRYPT_TUNE_MODEL_FIT_H
#define MPICRYPT_TUNE_MODEL_FIT_H

#include "opal/mca/common/crypt/wire/model.h"

typedef struct mpicrypt_sample {
    double bytes;
    double threads;             /* not looked at for communication */
    double us;
} mpicrypt_sample_t;

typedef enum {
    MPICRYPT_FIT_RELATIVE,    /* every sample counts by its error in percent */
    MPICRYPT_FIT_ABSOLUTE     /* in microseconds, as the papers do: large messages decide */
} mpicrypt_fit_weight_t;

/* Least squares for two pieces, eager and rendezvous.  `eager_bytes`: where the
 * second begins; 0: where the errors are least; a negative one: one piece only.
 * A negative alpha is replaced by the time of the smallest message, and beta
 * fitted again (Modeling, footnote 3).  OPAL_CRYPT_OK, or
 * OPAL_CRYPT_ERR_CONFIG when a piece has fewer than two sizes. */
int mpicrypt_fit_comm(const mpicrypt_sample_t *samples, int count, double eager_bytes,
                      mpicrypt_fit_weight_t weight, opal_crypt_model_t *model);

/* Non-linear least squares (Levenberg-Marquardt), a piece from each of
 * `from_bytes`.  Without samples for more than one thread B is 0.
 * OPAL_CRYPT_ERR_CONFIG when a piece has fewer than two sizes. */
int mpicrypt_fit_enc(const mpicrypt_sample_t *samples, int count, const double *from_bytes,
                     int piece_count, mpicrypt_fit_weight_t weight,
                     opal_crypt_model_t *model);

#endif
