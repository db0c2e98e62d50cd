/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * (k,t) for a message: by the model, or by a table such as the papers use.
 * The papers' constraints hold in both cases: no more threads than the rank
 * has beside those for communication, one chunk when many sends are
 * outstanding.
 */
#include "model.h"

unsigned opal_crypt_model_max_threads(const opal_crypt_limits_t *limits)
{
    return limits->threads > limits->comm_threads + 1 ? limits->threads - limits->comm_threads : 1;
}

static bool k_allowed(const opal_crypt_limits_t *limits, double bytes, double k, unsigned outstanding)
{
    return k <= 1
        || (bytes >= limits->chop_min && outstanding < limits->max_outstanding && k < 1u << 31
            && bytes / k >= 1 && bytes / k >= limits->min_chunk
            && (0 == limits->max_k || k <= limits->max_k));
}

/* Take (k, threads) into `best` where it is faster by more than `worth`. */
static void try_threads(const opal_crypt_model_t *model, const opal_crypt_limits_t *limits,
                        double bytes, unsigned threads, unsigned outstanding,
                        opal_crypt_choice_t *best, double *best_us)
{
    for (double k = 1; k_allowed(limits, bytes, k, outstanding); k *= 2) {
        double us = opal_crypt_model_chopped_us(model, bytes, k, threads);
        if (us < *best_us * (1 - limits->worth)) {
            *best = (opal_crypt_choice_t){(unsigned) k, threads};
            *best_us = us;
        }
    }
}

unsigned opal_crypt_model_choose_k(const opal_crypt_model_t *model,
                                   const opal_crypt_limits_t *limits,
                                   double bytes, unsigned threads, unsigned outstanding)
{
    opal_crypt_choice_t best = {1, threads};
    double best_us = opal_crypt_model_chopped_us(model, bytes, 1, threads);

    try_threads(model, limits, bytes, threads, outstanding, &best, &best_us);
    return best.k;
}

opal_crypt_choice_t opal_crypt_model_choose(const opal_crypt_model_t *model,
                                            const opal_crypt_limits_t *limits,
                                            double bytes, unsigned outstanding)
{
    opal_crypt_choice_t best = {1, 1};
    double best_us = opal_crypt_model_chopped_us(model, bytes, 1, 1);
    unsigned max_threads = bytes < limits->chop_min ? 1 : opal_crypt_model_max_threads(limits);

    for (unsigned t = 1; t <= max_threads; ++t) {
        try_threads(model, limits, bytes, t, outstanding, &best, &best_us);
    }
    return best;
}

opal_crypt_choice_t opal_crypt_rule_choose(const opal_crypt_rule_t *rule,
                                           const opal_crypt_limits_t *limits,
                                           size_t bytes, unsigned outstanding)
{
    int i = rule->count - 1;

    while (0 <= i && bytes < rule->step[i].from_bytes) {
        --i;
    }
    if (i < 0 || (double) bytes < limits->chop_min) {
        return (opal_crypt_choice_t){1, 1};
    }
    const opal_crypt_rule_step_t *step = &rule->step[i];
    unsigned max_threads = opal_crypt_model_max_threads(limits);
    size_t k = 0 < step->chunk_bytes && bytes > step->chunk_bytes ? bytes / step->chunk_bytes : 1;

    if (outstanding >= limits->max_outstanding) {
        k = 1;
    }
    if (0 < limits->max_k && k > limits->max_k) {
        k = limits->max_k;
    }
    return (opal_crypt_choice_t){
        k < UINT32_MAX ? (unsigned) k : UINT32_MAX,
        step->threads < max_threads ? step->threads : max_threads
    };
}
