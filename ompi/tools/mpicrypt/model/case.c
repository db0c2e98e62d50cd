/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One prediction.
 *
 *   pingpong   one message between two nodes, (k,t)-chopped
 *   the rest   every rank of a node sends some messages without waiting and
 *              receives as many: the window formula, unchopped
 */
#include <string.h>

#include "model.h"

static const char *const pattern_names[] = {
    [MPICRYPT_PINGPONG] = "pingpong", [MPICRYPT_PAIRS] = "pairs", [MPICRYPT_STENCIL2] = "stencil2d",
    [MPICRYPT_STENCIL3] = "stencil3d", [MPICRYPT_STENCIL4] = "stencil4d", [MPICRYPT_ALLTOALL] = "alltoall"
};

int mpicrypt_pattern_find(const char *name)
{
    for (int i = 0; i < (int) (sizeof(pattern_names) / sizeof(pattern_names[0])); ++i) {
        if (0 == strcmp(pattern_names[i], name)) {
            return i;
        }
    }
    return -1;
}

const char *mpicrypt_pattern_name(mpicrypt_pattern_t pattern)
{
    return pattern_names[pattern];
}

/* The model with the link of this case: its nominal speed instead of the
 * measured one, the measured latency. */
static opal_crypt_model_t model_of(const mpicrypt_setting_t *setting, const mpicrypt_case_t *of)
{
    opal_crypt_model_t model = setting->model;

    for (int i = 0; i < model.comm_count; ++i) {
        if (0 != of->gbps) {
            model.comm[i].beta_us = 8 / (1000.0 * (double) of->gbps);
        }
        model.comm[i].beta_us *= setting->oversubscription;
    }
    return model;
}

static opal_crypt_limits_t limits_of(const mpicrypt_setting_t *setting, const mpicrypt_case_t *of)
{
    return (opal_crypt_limits_t){
        .threads = (unsigned) (setting->hardware_threads / of->ranks),
        .comm_threads = (unsigned) setting->comm_threads,
        .max_outstanding = 64,          /* the papers', and pml/crypt's */
        .chop_min = (double) setting->chop_min
    };
}

static const char *bound_by(double enc_us, double link_us)
{
    return enc_us > link_us ? "cipher" : "link";
}

static void predict_pingpong(const opal_crypt_model_t *model, const opal_crypt_limits_t *limits,
                             mpicrypt_row_t *row)
{
    double bytes = (double) row->of.bytes;
    opal_crypt_choice_t choice = {(unsigned) row->of.k, (unsigned) row->of.threads};

    if (0 == choice.t && 0 == choice.k) {
        choice = opal_crypt_model_choose(model, limits, bytes, 0);
    } else if (0 == choice.t) {
        choice.t = opal_crypt_model_max_threads(limits);
    } else if (0 == choice.k) {
        choice.k = opal_crypt_model_choose_k(model, limits, bytes, choice.t, 0);
    }
    row->k = choice.k;
    row->threads = choice.t;
    row->messages = 1;
    row->plain_us = opal_crypt_model_comm_us(model, bytes, 1);
    row->naive_us = opal_crypt_model_chopped_us(model, bytes, 1, 1);
    row->crypt_us = opal_crypt_model_chopped_us(model, bytes, choice.k, choice.t);

    double chunk = bytes / choice.k;
    double latency = opal_crypt_model_comm_us(model, 0, 1);
    row->bound = bound_by(opal_crypt_model_enc_us(model, chunk, 1, choice.t),
                          opal_crypt_model_comm_us(model, chunk, 1) - latency);
}

/* Messages of a rank that leave its node, and of a node. */
static mpicrypt_traffic_t traffic_of(const mpicrypt_setting_t *setting, const mpicrypt_case_t *of)
{
    double others = (double) ((of->nodes - 1) * of->ranks);

    switch (of->pattern) {
    case MPICRYPT_STENCIL2:
    case MPICRYPT_STENCIL3:
    case MPICRYPT_STENCIL4:
        return mpicrypt_stencil_traffic(of->nodes, of->ranks, 2 + (int) of->pattern - MPICRYPT_STENCIL2);
    case MPICRYPT_ALLTOALL:
        return (mpicrypt_traffic_t){others, others * (double) of->ranks};
    default:
        return (mpicrypt_traffic_t){(double) setting->window, (double) (setting->window * of->ranks)};
    }
}

static void predict_window(const mpicrypt_setting_t *setting, const opal_crypt_model_t *model,
                           const opal_crypt_limits_t *limits, mpicrypt_row_t *row)
{
    mpicrypt_traffic_t traffic = traffic_of(setting, &row->of);
    opal_crypt_window_t window = {
        .bytes = (double) row->of.bytes,
        .pairs = (double) row->of.ranks,
        .flows = traffic.of_node / traffic.of_rank,
        .window = traffic.of_rank,
        .threads = 1,
        .opening = setting->opening
    };

    row->messages = traffic.of_rank;
    row->k = 1;
    row->threads = 0 != row->of.threads ? row->of.threads
                 : row->of.bytes < setting->chop_min ? 1 : opal_crypt_model_max_threads(limits);
    row->plain_us = opal_crypt_model_window_plain_us(model, &window);
    row->naive_us = opal_crypt_model_window_us(model, &window);
    window.threads = (double) row->threads;
    row->crypt_us = opal_crypt_model_window_us(model, &window);
    row->bound = bound_by(opal_crypt_model_enc_us(model, window.bytes, window.pairs, window.threads),
                          opal_crypt_model_comm_us(model, window.bytes, window.flows));
}

/* Computation does not get slower by encryption: the same for all three. */
static void add_computation(mpicrypt_row_t *row)
{
    double share = (double) row->of.compute / 100;
    double computation = row->plain_us * share / (1 - share);

    row->plain_us += computation;
    row->naive_us += computation;
    row->crypt_us += computation;
}

mpicrypt_row_t mpicrypt_predict(const mpicrypt_setting_t *setting, const mpicrypt_case_t *of)
{
    const opal_crypt_model_t model = model_of(setting, of);
    const opal_crypt_limits_t limits = limits_of(setting, of);
    mpicrypt_row_t row = {.of = *of};

    if (MPICRYPT_PINGPONG == of->pattern) {
        predict_pingpong(&model, &limits, &row);
    } else {
        predict_window(setting, &model, &limits, &row);
        add_computation(&row);
    }
    return row;
}
