/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Only senders know their receivers: synchronous sends, probes from any source until a
 * non-blocking barrier ends, which each rank enters when its own sends have ended.  A
 * probe makes progress, and so may advance the barrier, on the very communicator that it
 * probes.  "sparse threads=N": on N communicators at once.
 */
#include "mt.h"

#include <pthread.h>

enum { MOST = 5, TAG = 7, ROOM = 200000 };

static int threads, rounds;
static MPI_Comm *comms;

static size_t size_of(int t, int round, int source, int k)
{
    uint64_t state = mt_key(t, round, source, k);

    return mt_random_size(&state, ROOM);
}

/* A message's first bytes tell its number among its sender's. */
static void check(const unsigned char *p, const MPI_Status *status, int t, int round)
{
    int count;

    MT_MPI(MPI_Get_count(status, MPI_BYTE, &count));
    MT_CHECK(count >= 4, "%d bytes", count);
    int32_t k;
    memcpy(&k, p, 4);
    MT_CHECK(k >= 0 && k < MOST && (size_t) count == 4 + size_of(t, round, status->MPI_SOURCE, k), "number %d, %d bytes", k, count);
    MT_SAME(p + 4, (size_t) count - 4, mt_key(t, round, status->MPI_SOURCE, k), "sparse");
}

static bool take_one(unsigned char *p, int t, int round)
{
    MPI_Message message;
    MPI_Status status;
    int flag;

    switch (round % 3) {
    case 0:
        MT_MPI(MPI_Iprobe(MPI_ANY_SOURCE, TAG, comms[t], &flag, &status));
        if (flag) {
            MT_MPI(MPI_Recv(p, ROOM + 4, MPI_BYTE, status.MPI_SOURCE, TAG, comms[t], &status));
        }
        break;
    default:
        MT_MPI(MPI_Improbe(MPI_ANY_SOURCE, 1 == round % 3 ? TAG : MPI_ANY_TAG, comms[t], &flag, &message, &status));
        if (flag) {
            MT_MPI(MPI_Mrecv(p, ROOM + 4, MPI_BYTE, &message, &status));
        }
    }
    if (flag) {
        check(p, &status, t, round);
    }
    return flag;
}

static void exchange(int t, int round, unsigned char **out, unsigned char *in)
{
    uint64_t state = mt_key(t, round, mt_rank, 99);
    MPI_Request sends[MOST], barrier = MPI_REQUEST_NULL, sum;
    int many = (int) mt_below(&state, MOST + 1), taken = 0, mine[2] = {many, 1}, all[2] = {0, 0}, sent = 0, ended = 0;

    MT_MPI(MPI_Iallreduce(mine, all, 2, MPI_INT, MPI_SUM, comms[t], &sum));
    for (int32_t k = 0; k < many; k++) {
        size_t n = size_of(t, round, mt_rank, k);
        int to = (int) mt_below(&state, (size_t) mt_size);
        memcpy(out[k], &k, 4);
        mt_fill(out[k] + 4, n, mt_key(t, round, mt_rank, k));
        MT_MPI(MPI_Issend(out[k], (int) n + 4, MPI_BYTE, to, TAG, comms[t], &sends[k]));
    }
    while (!ended) {
        taken += take_one(in, t, round);
        if (!sent) {
            MT_MPI(MPI_Testall(many, sends, &sent, MPI_STATUSES_IGNORE));
            if (sent) {
                MT_MPI(MPI_Ibarrier(comms[t], &barrier));
            }
        } else {
            MT_MPI(MPI_Test(&barrier, &ended, MPI_STATUS_IGNORE));
        }
    }
    MT_MPI(MPI_Wait(&sum, MPI_STATUS_IGNORE));
    MT_CHECK(all[1] == mt_size, "%d ranks", all[1]);
    MT_MPI(MPI_Allreduce(MPI_IN_PLACE, &taken, 1, MPI_INT, MPI_SUM, comms[t]));
    MT_CHECK(taken == all[0], "%d messages of %d", taken, all[0]);
}

static void *body(void *arg)
{
    int t = (int) (intptr_t) arg;
    unsigned char *out[MOST], *in = malloc(ROOM + 4);

    for (int k = 0; k < MOST; k++) {
        out[k] = malloc(ROOM + 4);
    }
    for (int round = 0; round < rounds; round++) {
        exchange(t, round, out, in);
    }
    for (int k = 0; k < MOST; k++) {
        free(out[k]);
    }
    free(in);
    return NULL;
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, mt_flag("single") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE);
    threads = (int) mt_arg("threads", 1);
    rounds = (int) mt_arg("rounds", 150);
    pthread_t *id = malloc((size_t) threads * sizeof(*id));
    comms = malloc((size_t) threads * sizeof(*comms));
    for (int t = 0; t < threads; t++) {
        MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]));
    }
    for (int t = 1; t < threads; t++) {
        MT_CHECK(0 == pthread_create(&id[t], NULL, body, (void *) (intptr_t) t), "pthread_create");
    }
    body(NULL);
    for (int t = 1; t < threads; t++) {
        pthread_join(id[t], NULL);
    }
    for (int t = 0; t < threads; t++) {
        MT_MPI(MPI_Comm_free(&comms[t]));
    }
    mt_group("%d rounds of %d threads", rounds, threads);
    free(comms);
    free(id);
    return mt_end();
}
