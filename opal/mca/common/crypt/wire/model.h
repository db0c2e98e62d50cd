/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The performance model: how long a message takes, plain and encrypted, and
 * which (k, t) makes it shortest.  Pure arithmetic: nothing here measures,
 * allocates, or keeps state, so everything is thread-safe.
 *
 * Units: microseconds and bytes; a rate is bytes a microsecond, which is 10^6
 * bytes a second.  Formulas and their sources stand in docs/model.rst:
 *   CryptMPI   Naser and others, arXiv:2010.06471, section IV
 *   Modeling   Naser and others, Performance Evaluation and Modeling of
 *              Cryptographic Libraries for MPI Communications, section 6
 */
#ifndef OPAL_CRYPT_WIRE_MODEL_H
#define OPAL_CRYPT_WIRE_MODEL_H

#include "opal/mca/common/crypt/base/base.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPT_MODEL_PIECES 4

/* Hockney: a message of m bytes, m >= from_bytes, takes alpha + beta m. */
typedef struct opal_crypt_comm_piece {
    double from_bytes;
    double alpha_us;
    double beta_us;             /* per byte; 1 / beta is the bandwidth */
} opal_crypt_comm_piece_t;

/* Max-rate: t threads seal m bytes in alpha + m / (A + B (t - 1)). */
typedef struct opal_crypt_enc_piece {
    double from_bytes;
    double alpha_us;
    double first_rate;          /* A: of the first thread */
    double next_rate;           /* B: what each further thread adds */
} opal_crypt_enc_piece_t;

/* Pieces are in rising order and the first starts at 0 bytes.  The encryption
 * pieces hold for ONE operation, sealing or opening, which the papers take to
 * last equally long. */
typedef struct opal_crypt_model {
    opal_crypt_comm_piece_t comm[OPAL_CRYPT_MODEL_PIECES];
    opal_crypt_enc_piece_t enc[OPAL_CRYPT_MODEL_PIECES];
    int comm_count, enc_count;
} opal_crypt_model_t;

/* ---- times: crypt/wire/model.c ---- */

/* One message, alone on the link; `pairs` of them at once share its bandwidth:
 * alpha + beta n m. */
double opal_crypt_model_comm_us(const opal_crypt_model_t *model, double bytes, double pairs);

/* `pairs` messages of `bytes` sealed at once on one node by `threads` threads
 * each: alpha + n m / (A + B (n t - 1)). */
double opal_crypt_model_enc_us(const opal_crypt_model_t *model, double bytes, double pairs,
                               double threads);

/* One way of a ping-pong with (k,t)-chopping, s = m / k:
 *   2 T_enc(s,t) + (k-1) max(T_enc(s,t), beta s) + T_comm(s)
 * k = 1, t = 1 is the naive scheme: seal, send, open. */
double opal_crypt_model_chopped_us(const opal_crypt_model_t *model, double bytes,
                                   double k, double threads);

/* The same message as pml/crypt cuts it: a first part of f bytes, sealed by one thread, and
 * the rest in k chunks, s = (m - f) / k, of t segments, each of which pays its latency on
 * the wire, C = t T_comm(s/t):
 *   T_enc(f,1) + max(T_enc(s,t), T_comm(f)) + (k-1) max(T_enc(s,t), C) + C + T_enc(s,t)
 * A message of up to f bytes is not cut. */
double opal_crypt_model_parts_us(const opal_crypt_model_t *model, double bytes,
                                 double first_bytes, double k, double threads);

/* The naive scheme as a Hockney model of its own ("enhanced Hockney"), for
 * messages of about `bytes`: alpha = alpha_comm + 2 alpha_enc, beta likewise. */
opal_crypt_comm_piece_t opal_crypt_model_enhanced(const opal_crypt_model_t *model,
                                                  double bytes, double threads);

/* When a receiver with a window of messages opens them.  The paper's prose can
 * be read both ways; docs/model.rst says why the first is the default. */
typedef enum {
    OPAL_CRYPT_MODEL_OPEN_AFTER,        /* all of them, after the last one has arrived */
    OPAL_CRYPT_MODEL_OPEN_WHILE         /* each while the next one arrives */
} opal_crypt_model_opening_t;

/* Ranks of one node that each send `window` unchopped messages without waiting,
 * and receive as many: the 64-message loop of the multiple-pair benchmark. */
typedef struct opal_crypt_window {
    double bytes;
    double pairs;               /* ranks that do so at once */
    double flows;               /* messages that share the link at any time; 0: `pairs` */
    double window;
    double threads;             /* of each rank */
    opal_crypt_model_opening_t opening;
} opal_crypt_window_t;

/* Time of the whole window, plain and encrypted:
 *   w T_comm
 *   T_enc + (w-1) max(T_enc, T_comm) + T_comm, then w T_enc (after) or T_enc (while) */
double opal_crypt_model_window_plain_us(const opal_crypt_model_t *model,
                                        const opal_crypt_window_t *window);
double opal_crypt_model_window_us(const opal_crypt_model_t *model,
                                  const opal_crypt_window_t *window);

/* ---- choosing (k,t): crypt/wire/model_choose.c ---- */

typedef struct opal_crypt_limits {
    unsigned threads;           /* T0: hardware threads that this rank has */
    unsigned comm_threads;      /* T1: of those, kept for communication */
    unsigned max_outstanding;   /* so many sends not finished, or more: k = 1 */
    unsigned max_k;             /* 0: no limit */
    double chop_min;            /* bytes; a shorter message is never chopped: (1, 1) */
    double min_chunk;           /* bytes; a chunk is not made smaller */
    double worth;               /* share of the time that may be lost to save chunks and threads; 0: none */
} opal_crypt_limits_t;

typedef struct opal_crypt_choice {
    unsigned k, t;
} opal_crypt_choice_t;

/* t <= max(1, T0 - T1). */
unsigned opal_crypt_model_max_threads(const opal_crypt_limits_t *limits);

/* The k, among powers of two, with the shortest chopped time for t threads. */
unsigned opal_crypt_model_choose_k(const opal_crypt_model_t *model,
                                   const opal_crypt_limits_t *limits,
                                   double bytes, unsigned threads, unsigned outstanding);

/* The same over t = 1 ... limit, too.  For setting up a rule, not for every
 * message. */
opal_crypt_choice_t opal_crypt_model_choose(const opal_crypt_model_t *model,
                                            const opal_crypt_limits_t *limits,
                                            double bytes, unsigned outstanding);

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

/* ---- as text: crypt/wire/model_text.c ----
 *
 *     mpicrypt_model_comm    FROM:ALPHA:BETA,...     0:5.54:7.29e-05,17K:5.75:7.86e-05
 *     mpicrypt_model_enc     FROM:ALPHA:A:B,...      0:4.278:5265:843,32K:4.643:6072:4106
 *     pml_crypt_t            FROM:T[:CHUNK],...      64K:2,128K:4,512K:8
 *
 * Sizes take K, M, G (powers of 1024).  Parsing replaces nothing on an error:
 * OPAL_CRYPT_ERR_CONFIG, why says what is wrong.  A locale changes nothing. */
int opal_crypt_model_parse_comm(opal_crypt_model_t *model, const char *text,
                                opal_crypt_why_t *why);
int opal_crypt_model_parse_enc(opal_crypt_model_t *model, const char *text,
                               opal_crypt_why_t *why);
int opal_crypt_rule_parse(opal_crypt_rule_t *rule, const char *text, size_t chunk_bytes,
                          opal_crypt_why_t *why);

/* Into `text`; false when it does not fit. */
bool opal_crypt_model_print_comm(const opal_crypt_model_t *model, char *text, size_t bytes);
bool opal_crypt_model_print_enc(const opal_crypt_model_t *model, char *text, size_t bytes);
bool opal_crypt_rule_print(const opal_crypt_rule_t *rule, char *text, size_t bytes);

#pragma GCC visibility pop

#endif
