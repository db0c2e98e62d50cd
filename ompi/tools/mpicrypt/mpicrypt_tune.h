/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The pieces of `mpicrypt tune`:
 *
 *     collectives: measure, choose, write rules         mpicrypt_tune_coll.c
 */
#ifndef MPICRYPT_TUNE_H
#define MPICRYPT_TUNE_H

#include "mpicrypt_bench.h"

/* --coll: the plan has the options of the user (an empty list of sizes: the
 * default); the rules go to `out_path`, "-" being standard output. */
int mpicrypt_tune_coll(mpicrypt_bench_plan_t *plan, const char *out_path, const char *csv_path);

#endif
