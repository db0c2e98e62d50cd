/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A loop whose iterations (turns) are shared by the caller and threads of a team.
 *
 *     run(n)   caller:  turn 0, the next free one, ...     waits for turns that others are running
 *              helper:  the next free one, ...             polls for the next loop for a while, then sleeps
 *
 * The caller never waits for a thread that has not started: in that case it takes all turns itself.
 *
 * Threads: run is called by one at a time.
 */
#ifndef OPAL_CRYPT_BASE_SHARE_H
#define OPAL_CRYPT_BASE_SHARE_H

#include "team.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPT_SHARE_TURNS_MAX  0xffff

typedef struct opal_crypt_share opal_crypt_share_t;

/* Run by `helpers` (1 .. TEAM_MAX) threads of the team, and the caller.  NULL: no memory. */
opal_crypt_share_t *opal_crypt_share_create(opal_crypt_team_t *team, unsigned helpers);

/* Waits for helpers.  Does nothing in a forked child.  NULL is allowed. */
void opal_crypt_share_destroy(opal_crypt_share_t *share);

/* turn(argument, 0) .. turn(argument, turns - 1), each once, in any thread; turns: 1 .. TURNS_MAX. */
void opal_crypt_share_run(opal_crypt_share_t *share, unsigned turns, void (*turn)(void *argument, unsigned index),
                          void *argument);

#pragma GCC visibility pop

#endif
