/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The times of the model (crypt/wire/model.h, docs/model.rst).
 */
#include "model.h"

static const opal_crypt_comm_piece_t *comm_piece(const opal_crypt_model_t *model, double bytes)
{
    int i = model->comm_count - 1;

    while (0 < i && bytes < model->comm[i].from_bytes) {
        --i;
    }
    return &model->comm[i];
}

static const opal_crypt_enc_piece_t *enc_piece(const opal_crypt_model_t *model, double bytes)
{
    int i = model->enc_count - 1;

    while (0 < i && bytes < model->enc[i].from_bytes) {
        --i;
    }
    return &model->enc[i];
}

static double rate(const opal_crypt_enc_piece_t *piece, double threads)
{
    return piece->first_rate + piece->next_rate * (threads - 1);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double opal_crypt_model_comm_us(const opal_crypt_model_t *model, double bytes, double pairs)
{
    const opal_crypt_comm_piece_t *piece = comm_piece(model, bytes);
    return piece->alpha_us + piece->beta_us * pairs * bytes;
}

double opal_crypt_model_enc_us(const opal_crypt_model_t *model, double bytes, double pairs,
                               double threads)
{
    const opal_crypt_enc_piece_t *piece = enc_piece(model, bytes);
    return piece->alpha_us + pairs * bytes / rate(piece, pairs * threads);
}

double opal_crypt_model_chopped_us(const opal_crypt_model_t *model, double bytes,
                                   double k, double threads)
{
    double chunk = bytes / k;
    double enc = opal_crypt_model_enc_us(model, chunk, 1, threads);
    double wire = comm_piece(model, chunk)->beta_us * chunk;

    return 2 * enc + (k - 1) * larger(enc, wire) + opal_crypt_model_comm_us(model, chunk, 1);
}

double opal_crypt_model_parts_us(const opal_crypt_model_t *model, double bytes,
                                 double first_bytes, double k, double threads)
{
    if (bytes <= first_bytes) {
        return opal_crypt_model_chopped_us(model, bytes, 1, 1);
    }
    double chunk = (bytes - first_bytes) / k;
    double enc = opal_crypt_model_enc_us(model, chunk, 1, threads);
    double comm = threads * opal_crypt_model_comm_us(model, chunk / threads, 1);

    return opal_crypt_model_enc_us(model, first_bytes, 1, 1)
           + larger(enc, opal_crypt_model_comm_us(model, first_bytes, 1))
           + (k - 1) * larger(enc, comm) + comm + enc;
}

opal_crypt_comm_piece_t opal_crypt_model_enhanced(const opal_crypt_model_t *model,
                                                  double bytes, double threads)
{
    const opal_crypt_comm_piece_t *comm = comm_piece(model, bytes);
    const opal_crypt_enc_piece_t *enc = enc_piece(model, bytes);

    return (opal_crypt_comm_piece_t){
        larger(comm->from_bytes, enc->from_bytes),
        comm->alpha_us + 2 * enc->alpha_us,
        comm->beta_us + 2 / rate(enc, threads)
    };
}

static double window_comm(const opal_crypt_model_t *model, const opal_crypt_window_t *window)
{
    return opal_crypt_model_comm_us(model, window->bytes, 0 < window->flows ? window->flows : window->pairs);
}

double opal_crypt_model_window_plain_us(const opal_crypt_model_t *model,
                                        const opal_crypt_window_t *window)
{
    return window->window * window_comm(model, window);
}

double opal_crypt_model_window_us(const opal_crypt_model_t *model,
                                  const opal_crypt_window_t *window)
{
    double enc = opal_crypt_model_enc_us(model, window->bytes, window->pairs, window->threads);
    double comm = window_comm(model, window);
    double sent = enc + (window->window - 1) * larger(enc, comm) + comm;

    return sent + (OPAL_CRYPT_MODEL_OPEN_AFTER == window->opening ? window->window : 1) * enc;
}
