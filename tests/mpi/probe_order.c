/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Two threads, two communicators.  Each probes one of them, where nothing arrives, while either thread makes progress
 * with what was started on the other one: reductions by a user-defined operation, duplicates.  A probe that makes
 * progress under the lock of its communicator would need that of the other one, and both threads would wait.
 * The operation is slow, so that they are often inside it.
 */
#include "mt.h"

#include <pthread.h>
#include <unistd.h>

enum { REDUCTIONS = 400, DUPLICATES = 2000, PROBES = 20, NOBODYS_TAG = 77 };

static MPI_Comm reduced, duplicated;

static void add_slowly(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void) type;
    usleep(1000);
    for (int i = 0; i < *count; i++) {
        ((int *) inout)[i] += ((int *) in)[i];
    }
}

/* Until the request is complete. */
static void probe_on(MPI_Comm comm, MPI_Request *request)
{
    for (int done = 0; !done;) {
        for (int i = 0, found; i < PROBES; i++) {
            MT_MPI(MPI_Iprobe(MPI_ANY_SOURCE, NOBODYS_TAG, comm, &found, MPI_STATUS_IGNORE));
            MT_CHECK(!found, "a message that nobody sent");
        }
        MT_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE));
    }
}

static void *reduce(void *unused)
{
    MPI_Request request;
    MPI_Op slow;

    MT_MPI(MPI_Op_create(add_slowly, 1, &slow));
    for (int round = 0; round < REDUCTIONS; round++) {
        int mine = mt_rank + round, sum = -1;

        MT_MPI(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, slow, reduced, &request));
        probe_on(duplicated, &request);
        MT_CHECK(mt_size * (mt_size - 1) / 2 + mt_size * round == sum, "round %d: sum %d", round, sum);
    }
    MT_MPI(MPI_Op_free(&slow));
    return unused;
}

static void *duplicate(void *unused)
{
    for (int round = 0; round < DUPLICATES; round++) {
        MPI_Request request;
        MPI_Comm copy;

        MT_MPI(MPI_Comm_idup(duplicated, &copy, &request));
        probe_on(reduced, &request);
        MT_MPI(MPI_Comm_free(&copy));
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];

    mt_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &reduced));
    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &duplicated));
    MT_CHECK(0 == pthread_create(&threads[0], NULL, reduce, NULL), "pthread_create");
    MT_CHECK(0 == pthread_create(&threads[1], NULL, duplicate, NULL), "pthread_create");
    MT_CHECK(0 == pthread_join(threads[0], NULL) && 0 == pthread_join(threads[1], NULL), "pthread_join");
    MT_MPI(MPI_Comm_free(&reduced));
    MT_MPI(MPI_Comm_free(&duplicated));
    return mt_end();
}
