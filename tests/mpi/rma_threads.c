/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Threads that make windows at the same time, each over a communicator of its own, and put, get and add there, with messages
 * in between.  (osc/pt2pt of Open MPI 4.1 does not support several threads.)
 */
#include "mt.h"

#include <pthread.h>

enum { THREADS = 3, LONGS = 4096 };

static MPI_Comm comms[THREADS];
static int rounds;

/* In the memory of rank `at`: what the rank before it has put, and a sum to which every rank adds. */
typedef struct {
    long put[LONGS], sum;
} memory_t;

static long value(int thread, int round, int rank, int i)
{
    return ((thread * 1000L + round) * 1000 + rank) * LONGS + i;
}

static void use(MPI_Win window, memory_t *memory, int t, int r)
{
    const int next = (mt_rank + 1) % mt_size, before = (mt_rank + mt_size - 1) % mt_size;
    const long one = 1;
    long *words = malloc(LONGS * sizeof(*words)), got = -1, sum = 0;

    for (int i = 0; i < LONGS; i++) {
        words[i] = value(t, r, mt_rank, i);
    }
    MT_MPI(MPI_Win_fence(0, window));
    MT_MPI(MPI_Put(words, LONGS, MPI_LONG, next, 0, LONGS, MPI_LONG, window));
    for (int to = 0; to < mt_size; to++) {
        MT_MPI(MPI_Accumulate(&one, 1, MPI_LONG, to, LONGS * (MPI_Aint) sizeof(long), 1, MPI_LONG, MPI_SUM, window));
    }
    MT_MPI(MPI_Sendrecv(&words[r], 1, MPI_LONG, next, t, &got, 1, MPI_LONG, before, t, comms[t], MPI_STATUS_IGNORE));
    MT_CHECK(value(t, r, before, r) == got, "thread %d, round %d: message", t, r);
    MT_MPI(MPI_Win_fence(0, window));
    for (int i = 0; i < LONGS; i++) {
        MT_CHECK(value(t, r, before, i) == memory->put[i], "thread %d, round %d: word %d", t, r, i);
    }
    MT_MPI(MPI_Get(&sum, 1, MPI_LONG, next, LONGS * (MPI_Aint) sizeof(long), 1, MPI_LONG, window));
    MT_MPI(MPI_Win_fence(0, window));
    MT_CHECK(mt_size == sum, "thread %d, round %d: sum %ld", t, r, sum);
    free(words);
}

static void *thread(void *arg)
{
    const int t = (int) (intptr_t) arg;

    for (int r = 0; r < rounds; r++) {
        memory_t *memory;
        MPI_Win window;

        MT_MPI(MPI_Win_allocate(sizeof(*memory), 1, MPI_INFO_NULL, comms[t], &memory, &window));
        memory->sum = 0;
        use(window, memory, t, r);
        MT_MPI(MPI_Win_free(&window));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];

    mt_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    if (OMPI_MAJOR_VERSION < 5) {
        mt_skip("osc/pt2pt does not support several threads");
    }
    rounds = (int) mt_arg("rounds", 10);
    for (int t = 0; t < THREADS; t++) {
        MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]));
    }
    for (int t = 0; t < THREADS; t++) {
        MT_CHECK(0 == pthread_create(&threads[t], NULL, thread, (void *) (intptr_t) t), "pthread_create");
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    for (int t = 0; t < THREADS; t++) {
        MT_MPI(MPI_Comm_free(&comms[t]));
    }
    mt_group("windows of several threads");
    return mt_end();
}
