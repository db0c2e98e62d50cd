/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A signal that is to end the tool (^C, kill, a closed terminal) while it runs a command: the
 * command ends first, no further one is started, everything temporary is removed,
 * and then the tool ends by the signal.
 */
#ifndef MPICRYPT_SIGNALS_H
#define MPICRYPT_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>

/* Around fork: block signals; in the child, restore them; in the parent, forward signals to the
 * child until the last call (child < 0: no child). */
void mpicrypt_signals_hold(void);
void mpicrypt_signals_child(void);
void mpicrypt_signals_parent(pid_t child);
void mpicrypt_signals_over(void);

/* Did one come? */
bool mpicrypt_signals_caught(void);

/* End by the signal that came; returns if none did. */
void mpicrypt_signals_finish(void);

#endif
