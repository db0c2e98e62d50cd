/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How a message is cut, depending on its size: a table like CryptMPI's (Naser et al., arXiv:2010.06471, section IV;
 * docs/model.rst).  `mpicrypt tune` fits a model and writes one.  Pure arithmetic, thread-safe.
 */
#ifndef OPAL_CRYPT_WIRE_RULE_H
#define OPAL_CRYPT_WIRE_RULE_H

#include "opal/mca/common/crypt/base/base.h"

#pragma GCC visibility push(default)

typedef struct opal_crypt_limits {
    unsigned threads;           /* T0: hardware threads of this rank */
    unsigned comm_threads;      /* T1: those kept for communication */
    unsigned max_outstanding;   /* from this number of unfinished sends on: k = 1 */
    size_t chop_min;            /* bytes; shorter messages are never chopped: (1, 1) */
} opal_crypt_limits_t;

typedef struct opal_crypt_choice {
    unsigned k, t;
} opal_crypt_choice_t;

/* t <= max(1, T0 - T1). */
unsigned opal_crypt_rule_max_threads(const opal_crypt_limits_t *limits);

/* A size-to-t table: a message of at least from_bytes is cut into chunks of
 * chunk_bytes, each sealed by `threads` threads.  Below the first step: (1, 1). */
#define OPAL_CRYPT_RULE_STEPS 32

typedef struct opal_crypt_rule_step {
    size_t from_bytes;
    size_t chunk_bytes;
    unsigned threads;
} opal_crypt_rule_step_t;

typedef struct opal_crypt_rule {
    opal_crypt_rule_step_t step[OPAL_CRYPT_RULE_STEPS];
    int count;
} opal_crypt_rule_t;

/* k = floor(max(1, m / chunk)), t from the table, both within the limits. */
opal_crypt_choice_t opal_crypt_rule_choose(const opal_crypt_rule_t *rule,
                                           const opal_crypt_limits_t *limits,
                                           size_t bytes, unsigned outstanding);

/* FROM:T[:CHUNK],... as in pml_crypt_t: "64K:2,128K:4:1M,512K:8".  Sizes take K, M, G (powers of 1024); the locale has
 * no effect.  On an error nothing is replaced: OPAL_CRYPT_ERR_CONFIG, with the reason in `why`. */
int opal_crypt_rule_parse(opal_crypt_rule_t *rule, const char *text, size_t chunk_bytes,
                          opal_crypt_why_t *why);

#pragma GCC visibility pop

#endif
