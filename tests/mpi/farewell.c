/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The transports' last words in MPI_Finalize: a peer that was faster has closed
 * its end, and btl/tcp of 5.0 writes to it with a plain send().  Here every
 * such send() in MPI_Finalize fails as it would in the kernel; no rank may die of
 * it, and SIGPIPE must afterwards be what it was before.  A send() with MSG_NOSIGNAL raises no
 * signal and goes through: a close_notify that is lost while its peer still listens is a connection
 * that was cut.
 */
#define _GNU_SOURCE
#include "mt.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

static volatile sig_atomic_t ending;
static int sent;
static pthread_t finalizer;

/* Replaces libc's: the program's symbols come first. */
ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    static ssize_t (*real)(int, const void *, size_t, int);

    if (ending && 0 == (flags & MSG_NOSIGNAL) && pthread_equal(finalizer, pthread_self())) {
        pthread_kill(pthread_self(), SIGPIPE);
        errno = EPIPE;
        return -1;
    }
    if (NULL == real) {
        *(void **) &real = dlsym(RTLD_NEXT, "send");
    }
    sent++;
    return real(fd, bytes, count, flags);
}

/* Neither handled nor blocked nor pending? */
static bool as_ever(void)
{
    struct sigaction action;
    sigset_t mask, pending;

    return 0 == sigaction(SIGPIPE, NULL, &action) && SIG_DFL == action.sa_handler
           && 0 == pthread_sigmask(SIG_SETMASK, NULL, &mask) && !sigismember(&mask, SIGPIPE)
           && 0 == sigpending(&pending) && !sigismember(&pending, SIGPIPE);
}

int main(int argc, char **argv)
{
    int value, sum;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    for (int peer = 0; peer < mt_size; peer++) {    /* a connection to every rank */
        MT_MPI(MPI_Sendrecv(&mt_rank, 1, MPI_INT, peer, 1, &value, 1, MPI_INT, peer, 1, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
        MT_CHECK(peer == value, "from %d: %d", peer, value);
    }
    MT_MPI(MPI_Allreduce(&mt_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    MT_CHECK(sent > 0, "btl/tcp's handshakes did not come through the send() of this program");
    MT_CHECK(as_ever(), "SIGPIPE is not as it was before MPI_Init");
    finalizer = pthread_self();
    ending = 1;
    (void) mt_end();
    if (!as_ever()) {
        fprintf(stderr, "rank %d: SIGPIPE is not as it was before MPI_Finalize\n", mt_rank);
        return 1;
    }
    return 0;
}
