/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt-times.so: what the calls of MPI (rank/times_calls.c) tell the
 * clock (rank/times.c).
 */
#ifndef MPICRYPT_RANK_TIMES_H
#define MPICRYPT_RANK_TIMES_H

#include <stdbool.h>

#include <mpi.h>

void mpicrypt_times_begin(void);        /* MPI is there */
void mpicrypt_times_end(void);          /* MPI_Finalize comes next; rank 0 prints */

double mpicrypt_times_now(void);
/* A call that began then has ended; far: a message of another node was in it. */
void mpicrypt_times_spent(double begin, bool far);

/* Is this peer of a communicator on another node?  forget: it is freed. */
bool mpicrypt_times_is_far(int peer, MPI_Comm comm);
void mpicrypt_times_forget(MPI_Comm comm);

/* A request was started.  Before requests are completed: _before; afterwards _after
 * takes what _before returned. */
void mpicrypt_times_watch(MPI_Request request, bool far);
MPI_Request *mpicrypt_times_before(const void *list, int count, bool fortran, bool *far);
void mpicrypt_times_after(MPI_Request *before, const void *list, int count, bool fortran);

#endif
