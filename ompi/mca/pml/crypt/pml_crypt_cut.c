/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How a long message is cut: (k,t)-chopping.
 *
 *     | first part | chunk 1              | ... | chunk k              |
 *     | chop_min   | segment .. segment t | ... | segment .. segment t |
 *
 * A chunk is t segments, which t threads seal side by side; a segment is what
 * travels.  By pml_crypt_t:
 *
 *     FROM:T[:CHUNK],...   k and t by size
 *     T                    segments of chunk_size, T threads
 *     nothing              segments of chunk_size, one thread
 *
 * t is at most max(1, T0 - T1): the hardware threads that are ours, less the one
 * that communicates.  crypt_threads replaces T0 - T1, however many processors there
 * are.  A k from a table becomes 1 while OUTSTANDING or more long sends are
 * unfinished, as in the papers.
 */
#include "pml_crypt.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/util/proc.h"

enum {
    SMALL_SEGMENT = 16384,              /* below it a second thread does not pay */
    COMMUNICATING = 1,                  /* T1 */
    OUTSTANDING = 64
};

static opal_crypt_rule_t rule;
static unsigned given;                  /* threads, where pml_crypt_t is a number; else 0 */
static opal_crypt_limits_t limits;

/* "0" is the same as nothing. */
static bool is_number(const char *text)
{
    return isdigit((unsigned char) *text) && text[strspn(text, "0123456789")] == '\0';
}

static bool read_threads(const ompi_pml_crypt_params_t *p)
{
    const char *text = NULL == p->t ? "" : p->t;
    opal_crypt_why_t why = {.topic = NULL};
    unsigned long number;

    rule.count = 0;
    given = 0;
    if (is_number(text)) {
        number = strtoul(text, NULL, 10);
        given = number < OPAL_CRYPT_TEAM_MAX ? (unsigned) number : OPAL_CRYPT_TEAM_MAX;
    } else if ('\0' != *text && OPAL_CRYPT_OK != opal_crypt_rule_parse(&rule, text, p->chunk_size, &why)) {
        OPAL_CRYPTPROC_SHOW("help-mpi-pml-crypt.txt", "bad-cut", "pml_crypt_t", why.detail);
        return false;
    }
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

    if (forced > OPAL_CRYPT_TEAM_MAX) {
        forced = OPAL_CRYPT_TEAM_MAX;
    }
    limits = (opal_crypt_limits_t){.threads = forced > 0 ? forced + COMMUNICATING : our_processors(),
                                   .comm_threads = COMMUNICATING, .max_outstanding = OUTSTANDING, .chop_min = p->chop_min};
    return read_threads(p);
}

/* The largest t of any message. */
unsigned ompi_pml_crypt_cut_threads(void)
{
    unsigned most = 1, max = opal_crypt_rule_max_threads(&limits);

    for (int i = 0; i < rule.count; i++) {
        most = rule.step[i].threads > most ? rule.step[i].threads : most;
    }
    if (given > 0) {
        most = given;
    } else if (0 == rule.count && opal_cryptproc_params.threads > 0) {
        most = max;
    }
    most = most < max ? most : max;
    return most < OPAL_CRYPT_TEAM_MAX ? most : OPAL_CRYPT_TEAM_MAX;
}

static opal_crypt_choice_t choose(uint64_t plain_bytes, unsigned outstanding)
{
    return rule.count > 0 ? opal_crypt_rule_choose(&rule, &limits, plain_bytes, outstanding)
                          : (opal_crypt_choice_t) {.k = 0, .t = ompi_pml_crypt_cut_threads()};
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
