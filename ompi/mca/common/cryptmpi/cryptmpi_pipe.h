/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * While MPI ends, a process may write to a peer that has exited already: btl/tcp of 5.0 sends a goodbye on each
 * connection (on a loaded machine 4 of 190 jobs of 12 ranks died of it in MPI_Finalize), and any btl/tcp may have the
 * rest of a message that was never received.  That raises SIGPIPE.  This thread blocks the signal meanwhile; one that
 * was pending before stays pending.
 */
#ifndef OMPI_COMMON_CRYPTMPI_PIPE_H
#define OMPI_COMMON_CRYPTMPI_PIPE_H

#include "ompi_config.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

typedef struct ompi_common_cryptmpi_pipe {
    sigset_t before, waiting;
} ompi_common_cryptmpi_pipe_t;

static inline void ompi_common_cryptmpi_pipe_block(ompi_common_cryptmpi_pipe_t *pipe)
{
    sigset_t broken_pipe;

    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    sigemptyset(&pipe->waiting);
    (void) sigpending(&pipe->waiting);
    (void) pthread_sigmask(SIG_BLOCK, &broken_pipe, &pipe->before);
}

static inline void ompi_common_cryptmpi_pipe_restore(const ompi_common_cryptmpi_pipe_t *pipe)
{
    const struct timespec at_once = {0};
    sigset_t broken_pipe;

    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    if (!sigismember(&pipe->waiting, SIGPIPE)) {
        (void) sigtimedwait(&broken_pipe, NULL, &at_once);
    }
    (void) pthread_sigmask(SIG_SETMASK, &pipe->before, NULL);
}

#endif
