/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How a long message is cut: (k,t)-chopping.
 *
 *     | first part | chunk 1              | ... | chunk k              |
 *     | chop_min   | segment .. segment t | ... | segment .. segment t |
 *
 * A chunk is t segments, which t threads seal side by side; a segment is what
 * travels.  In this order:
 *
 *     pml_crypt_k, pml_crypt_t                 as given
 *     pml_crypt_t_table                        by size
 *     pml_crypt_model_comm and _model_enc      by the model: made into a table at the start
 *     nothing                                  segments of chunk_size, one thread
 *
 * t is at most max(1, T0 - T1): the hardware threads that are ours, less those
 * left to communication (pml_crypt_comm_threads).  crypt_threads takes the
 * place of T0 - T1, whatever the processors are.  Where k is chosen (all but
 * the last line) it is 1 while max_outstanding long sends are not finished.
 */
#include "pml_crypt.h"

#include <string.h>
#include <unistd.h>

#include "opal/util/proc.h"

enum {
    SMALL_SEGMENT = 16384,              /* below it a second thread only costs */
    MANY_PROCESSORS = 1 << 20           /* more than any node has */
};

static const uint64_t model_from = 65536, model_to = UINT64_C(1) << 30;

static opal_crypt_rule_t rule;
static opal_crypt_limits_t limits;

static bool refused(const char *name, const opal_crypt_why_t *why)
{
    OPAL_CRYPTPROC_SHOW("help-mpi-pml-crypt.txt", "bad-cut", name, why->detail);
    return false;
}

static bool set_rule(const ompi_pml_crypt_params_t *p)
{
    opal_crypt_model_t model = {.comm_count = 0};
    opal_crypt_why_t why = {.topic = NULL};

    rule.count = 0;
    if (NULL != p->t_table && '\0' != *p->t_table) {
        return OPAL_CRYPT_OK == opal_crypt_rule_parse(&rule, p->t_table, p->chunk_size, &why)
               || refused("pml_crypt_t_table", &why);
    }
    if (NULL == p->model_comm && NULL == p->model_enc) {
        return true;
    }
    if (OPAL_CRYPT_OK != opal_crypt_model_parse_comm(&model, NULL == p->model_comm ? "" : p->model_comm, &why)) {
        return refused("pml_crypt_model_comm", &why);
    }
    if (OPAL_CRYPT_OK != opal_crypt_model_parse_enc(&model, NULL == p->model_enc ? "" : p->model_enc, &why)) {
        return refused("pml_crypt_model_enc", &why);
    }
    opal_crypt_rule_make(&rule, &model, &limits, model_from, model_to);
    return true;
}

static unsigned our_processors(void)
{
    long all = sysconf(_SC_NPROCESSORS_ONLN);

    return opal_crypt_team_share(opal_crypt_team_processors(), all > 0 ? (unsigned) all : 1,
                                 opal_process_info.num_local_peers + 1);
}

bool ompi_pml_crypt_cut_start(void)
{
    const ompi_pml_crypt_params_t *p = &ompi_pml_crypt.params;
    unsigned forced = opal_cryptproc_params.threads;
    unsigned left = p->comm_threads < MANY_PROCESSORS ? p->comm_threads : MANY_PROCESSORS;

    if (forced > OPAL_CRYPT_TEAM_MAX) {
        forced = OPAL_CRYPT_TEAM_MAX;
    }
    limits = (opal_crypt_limits_t){.threads = forced > 0 ? forced + left : our_processors(),
                                          .comm_threads = left, .max_outstanding = p->max_outstanding,
                                          .chop_min = p->chop_min};
    return set_rule(p);
}

/* Of all messages. */
unsigned ompi_pml_crypt_cut_threads(void)
{
    unsigned most = 1, max = opal_crypt_model_max_threads(&limits);

    for (int i = 0; i < rule.count; i++) {
        most = rule.step[i].threads > most ? rule.step[i].threads : most;
    }
    if (ompi_pml_crypt.params.t > 0) {
        most = ompi_pml_crypt.params.t;
    } else if (0 == rule.count && opal_cryptproc_params.threads > 0) {
        most = max;
    }
    most = most < max ? most : max;
    return most < OPAL_CRYPT_TEAM_MAX ? most : OPAL_CRYPT_TEAM_MAX;
}

static opal_crypt_choice_t choose(uint64_t plain_bytes, unsigned outstanding)
{
    const ompi_pml_crypt_params_t *p = &ompi_pml_crypt.params;
    opal_crypt_choice_t choice = {.k = 0, .t = ompi_pml_crypt_cut_threads()};

    if (rule.count > 0) {
        choice = opal_crypt_rule_choose(&rule, &limits, plain_bytes, outstanding);
    }
    if (p->t > 0) {
        choice.t = ompi_pml_crypt_cut_threads();
    }
    if (p->k > 0) {
        choice.k = outstanding < p->max_outstanding ? p->k : 1;
    }
    return choice;
}

static inline uint64_t quotient_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

uint32_t ompi_pml_crypt_cut(uint64_t plain_bytes, uint64_t rest, unsigned outstanding, unsigned *threads)
{
    const ompi_pml_crypt_params_t *p = &ompi_pml_crypt.params;
    uint64_t segment = p->chunk_size, pieces;
    opal_crypt_choice_t choice = choose(plain_bytes, outstanding);

    pieces = (uint64_t) choice.k * choice.t;
    if (choice.k > 0) {
        segment = quotient_up(rest, pieces);
    } else if (choice.t > 1 && quotient_up(rest, choice.t) < segment) {
        segment = quotient_up(rest, choice.t);
        segment = segment > SMALL_SEGMENT ? segment : SMALL_SEGMENT < p->chunk_size ? SMALL_SEGMENT : p->chunk_size;
    }
    segment = segment < OPAL_CRYPT_CHUNK_MAX ? segment : OPAL_CRYPT_CHUNK_MAX;
    *threads = rest > segment ? choice.t : 1;
    return (uint32_t) segment;
}

unsigned ompi_pml_crypt_cut_open(uint64_t plain_bytes)
{
    return choose(plain_bytes, 0).t;
}
