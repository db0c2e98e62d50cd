/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Threads that an OpenMP run-time library provides, for crypt/base/team.c.
 */
#ifndef OPAL_CRYPT_BASE_TEAM_OPENMP_H
#define OPAL_CRYPT_BASE_TEAM_OPENMP_H

#include "base.h"

/* Is there such a library? */
bool opal_crypt_openmp_there(void);

/* Runs `loop` in up to `threads` threads, including the calling one; returns when all have returned.  Without a
 * library only the caller runs it. */
void opal_crypt_openmp_run(void (*loop)(void *), void *argument, unsigned threads);

#endif
