/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The pieces of `mpicrypt model`: what is predicted (a case), for which
 * machine, and the result (a row).  The formulas are in
 * opal/mca/common/crypt/wire/model.h.
 */
#ifndef MPICRYPT_MODEL_MODEL_H
#define MPICRYPT_MODEL_MODEL_H

#include "ompi/tools/mpicrypt/mpicrypt.h"
#include "opal/mca/common/crypt/wire/model.h"

/* ---- profiles: model/profile.c ---- */

/* What a file of MCA parameters says about the model. */
typedef struct mpicrypt_profile {
    opal_crypt_model_t model;                   /* counts of 0: not in the file */
    opal_crypt_rule_t rule;
    size_t chop_min, chunk_size, comm_threads;
} mpicrypt_profile_t;

/* `name`: one of the profiles that were installed, or a file (with a slash in
 * it).  MPICRYPT_OK, or another code after a message. */
int mpicrypt_profile_read(const char *name, mpicrypt_profile_t *profile);

/* ---- cases: model/case.c ---- */

typedef enum {
    MPICRYPT_PINGPONG, MPICRYPT_PAIRS, MPICRYPT_STENCIL2, MPICRYPT_STENCIL3, MPICRYPT_STENCIL4, MPICRYPT_ALLTOALL
} mpicrypt_pattern_t;

/* -1 if there is none of that name. */
int mpicrypt_pattern_find(const char *name);
const char *mpicrypt_pattern_name(mpicrypt_pattern_t pattern);

typedef struct mpicrypt_case {
    mpicrypt_pattern_t pattern;
    size_t bytes;
    size_t nodes, ranks;            /* ranks of a node */
    size_t gbps;                    /* 0: as in the model */
    size_t threads, k;              /* 0: chosen by the model */
    size_t compute;                 /* percent of the plain time, stencils only */
} mpicrypt_case_t;

/* What is the same for all cases of a run. */
typedef struct mpicrypt_setting {
    opal_crypt_model_t model;
    size_t hardware_threads;        /* of a node */
    size_t chop_min, comm_threads, window;
    double oversubscription;
    opal_crypt_model_opening_t opening;
} mpicrypt_setting_t;

typedef struct mpicrypt_row {
    mpicrypt_case_t of;
    size_t threads, k;              /* as used */
    double messages;                /* a rank's, that leave its node */
    double plain_us, naive_us, crypt_us;    /* of all of them, computation included */
    const char *bound;              /* what the encrypted time is spent on: "link" or "cipher" */
} mpicrypt_row_t;

mpicrypt_row_t mpicrypt_predict(const mpicrypt_setting_t *setting, const mpicrypt_case_t *of);

/* ---- machines: model/machine.c ---- */

/* Ranks in a periodic grid of `dimensions`, row by row, so many consecutive
 * ones on a node.  Of the messages that a rank sends to its 2 d neighbors:
 * how many leave the node, for the rank with most of them; and how many leave
 * the busiest node. */
typedef struct mpicrypt_traffic {
    double of_rank, of_node;
} mpicrypt_traffic_t;

mpicrypt_traffic_t mpicrypt_stencil_traffic(size_t nodes, size_t ranks, int dimensions);

/* ---- output: model/show.c ---- */

mpicrypt_table_t *mpicrypt_model_table(const mpicrypt_row_t *rows, int count);
int mpicrypt_model_plot(const mpicrypt_row_t *rows, int count, const char *path);

#endif
