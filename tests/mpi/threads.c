/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI_THREAD_MULTIPLE: threads with tags of their own, threads that share
 * tags and communicators, matched probes by several threads, collectives and
 * persistent requests in every thread, sends whose request is freed at once, and
 * receives that are cancelled.
 */
#include "mt.h"

#include <pthread.h>

static int threads, rounds, mode;
static MPI_Comm *comms;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int *seen;                       /* shared-tag messages, by source and number */
static int next_number;

static size_t size_of(int seed, int source, int k)
{
    uint64_t state = mt_key(seed, source, k, 1);
    return 8 + mt_random_size(&state, 120000);
}

/* Thread t of every rank talks to thread t of every other, on tag t. */
static void own_tags(int t)
{
    MPI_Request in, out;
    MPI_Status status;
    mt_buf_t buf;
    unsigned char *p = malloc(130000);
    for (int r = 0; r < rounds; r++) {
        int d = 1 + r % (mt_size - 1), to = (mt_rank + d) % mt_size, from = (mt_rank + mt_size - d) % mt_size;
        size_t n = size_of(t, mt_rank, r), m = size_of(t, from, r);
        mt_buf_new(&buf, m);
        mt_fill(p, n, mt_key(t, mt_rank, to, r));
        MT_MPI(MPI_Irecv(buf.p, (int) m, MPI_BYTE, r % 2 ? from : MPI_ANY_SOURCE, t, comms[0], &in));
        MT_MPI(r % 3 ? MPI_Isend(p, (int) n, MPI_BYTE, to, t, comms[0], &out)
                     : MPI_Issend(p, (int) n, MPI_BYTE, to, t, comms[0], &out));
        MT_MPI(MPI_Wait(&in, &status));
        MT_MPI(MPI_Wait(&out, MPI_STATUS_IGNORE));
        MT_STATUS(&status, from, t, m);
        MT_BUF(&buf, m, mt_key(t, from, mt_rank, r));
        mt_buf_free(&buf);
        MT_MPI(MPI_Sendrecv(&r, 1, MPI_INT, to, 100 + t, &d, 1, MPI_INT, from, 100 + t, comms[0], MPI_STATUS_IGNORE));
        MT_CHECK(d == r, "thread %d: round %d of %d", t, d, r);     /* keeps wildcards of two rounds apart */
        MPI_Barrier(comms[1 + t]);
    }
    free(p);
}

/* Any thread may take a message, but each must arrive once and whole.  A message
 * begins with its sender and number. */
static void arrived(const unsigned char *p, const MPI_Status *s, int total)
{
    int32_t head[2];
    int count;
    MT_MPI(MPI_Get_count(s, MPI_BYTE, &count));
    MT_CHECK(count >= 8, "%d bytes", count);
    memcpy(head, p, 8);
    MT_CHECK(head[0] == s->MPI_SOURCE && head[1] >= 0 && head[1] < total, "from %d, number %d of %d", head[0], head[1], total);
    MT_CHECK((size_t) count == size_of(77, head[0], head[1]), "%d bytes", count);
    MT_SAME(p + 8, (size_t) count - 8, mt_key(77, head[0], mt_rank, head[1]), "shared tag");
    pthread_mutex_lock(&lock);
    int times = ++seen[head[0] * total + head[1]];
    pthread_mutex_unlock(&lock);
    MT_CHECK(1 == times, "message %d of rank %d comes %d times", head[1], head[0], times);
}

static int take_number(int total)
{
    pthread_mutex_lock(&lock);
    int k = next_number < total ? next_number++ : -1;
    pthread_mutex_unlock(&lock);
    return k;
}

/* Every thread sends numbered messages to everybody on one tag, and takes an
 * equal share of what comes: by wildcard receive or by matched probe. */
static void shared_tag(int t, bool probe)
{
    int total = rounds * threads, k, many = 0;
    MPI_Request *req = malloc((size_t) total * (size_t) mt_size * sizeof(*req));
    unsigned char **p = malloc((size_t) total * (size_t) mt_size * sizeof(*p)), *q = malloc(130000);
    MPI_Message message;
    MPI_Status status;
    while (-1 != (k = take_number(total))) {
        for (int d = 0; d < mt_size; d++) {
            int to = (mt_rank + d) % mt_size;
            size_t n = size_of(77, mt_rank, k);
            int32_t head[2] = {mt_rank, k};
            p[many] = malloc(n);
            memcpy(p[many], head, 8);
            mt_fill(p[many] + 8, n - 8, mt_key(77, mt_rank, to, k));
            MT_MPI(MPI_Isend(p[many], (int) n, MPI_BYTE, to, 7, comms[0], &req[many]));
            many++;
        }
    }
    for (int i = 0; i < rounds * mt_size; i++) {
        if (probe && (i + t) % 3) {
            int flag = 0;
            if ((i + t) % 3 == 1) {
                MT_MPI(MPI_Mprobe(MPI_ANY_SOURCE, 7, comms[0], &message, &status));
            }
            while (!flag && (i + t) % 3 == 2) {
                MT_MPI(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[0], &flag, &message, &status));
            }
            MT_MPI(MPI_Mrecv(q, 130000, MPI_BYTE, &message, &status));
        } else {
            MT_MPI(MPI_Recv(q, 130000, MPI_BYTE, MPI_ANY_SOURCE, 7, comms[0], &status));
        }
        arrived(q, &status, total);
    }
    MT_MPI(MPI_Waitall(many, req, MPI_STATUSES_IGNORE));
    while (many > 0) {
        free(p[--many]);
    }
    free(p);
    free(q);
    free(req);
}

static void collectives(int t)
{
    for (int r = 0; r < rounds; r++) {
        int n = (int) (size_of(t, 0, r) / 8), root = r % mt_size;
        uint64_t *a = malloc((size_t) n * 8), *b = malloc((size_t) n * 8);
        unsigned char *all = malloc((size_t) n * (size_t) mt_size);
        for (int i = 0; i < n; i++) {
            a[i] = (uint64_t) (mt_rank + 1) * (uint64_t) (i + t);
        }
        MT_MPI(MPI_Allreduce(a, b, n, MPI_UINT64_T, MPI_SUM, comms[1 + t]));
        for (int i = 0; i < n; i++) {
            MT_CHECK(b[i] == (uint64_t) mt_size * (uint64_t) (mt_size + 1) / 2 * (uint64_t) (i + t), "thread %d, element %d", t, i);
        }
        if (mt_rank == root) {
            mt_fill(a, (size_t) n, mt_key(t, root, r, 0));
        }
        MT_MPI(MPI_Bcast(a, n, MPI_BYTE, root, comms[1 + t]));
        MT_SAME(a, (size_t) n, mt_key(t, root, r, 0), "bcast in a thread");
        MT_MPI(MPI_Allgather(a, n, MPI_BYTE, all, n, MPI_BYTE, comms[1 + t]));
        for (int i = 0; i < mt_size; i++) {
            MT_SAME(all + (size_t) i * (size_t) n, (size_t) n, mt_key(t, root, r, 0), "allgather in a thread");
        }
        free(a);
        free(b);
        free(all);
    }
}

static void persistent(int t)
{
    int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size;
    for (int s = 0; s < 2; s++) {
        size_t n = s ? 70001 : 333;
        unsigned char *p = malloc(n);
        MPI_Request req[2];
        MPI_Status status[2];
        mt_buf_t buf;
        mt_buf_new(&buf, n);
        MT_MPI(MPI_Recv_init(buf.p, (int) n, MPI_BYTE, from, 200 + t, comms[0], &req[0]));
        MT_MPI(MPI_Send_init(p, (int) n, MPI_BYTE, to, 200 + t, comms[0], &req[1]));
        for (int r = 0; r < rounds; r++) {
            mt_fill(p, n, mt_key(t, mt_rank, r, s));
            mt_buf_poison(&buf);
            MT_MPI(MPI_Startall(2, req));
            MT_MPI(MPI_Waitall(2, req, status));
            MT_STATUS(&status[0], from, 200 + t, n);
            MT_BUF(&buf, n, mt_key(t, from, r, s));
        }
        MT_MPI(MPI_Request_free(&req[0]));
        MT_MPI(MPI_Request_free(&req[1]));
        mt_buf_free(&buf);
        free(p);
    }
}

/* The freed send completes in any thread that makes progress, at the same time as
 * the next receive of this one. */
static void freed(int t)
{
    enum { RING = 16, BYTES = 400 };
    int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size;
    unsigned char *ring = malloc(RING * BYTES), p[BYTES];
    for (int r = 0; r < 20 * rounds; r++) {
        unsigned char *out = ring + (r % RING) * BYTES;
        MPI_Request send, receive;
        MPI_Status status;
        mt_fill(out, BYTES, mt_key(t, mt_rank, to, r));
        MT_MPI(MPI_Isend(out, BYTES, MPI_BYTE, to, 300 + t, comms[0], &send));
        MT_MPI(MPI_Request_free(&send));
        MT_MPI(MPI_Irecv(p, BYTES, MPI_BYTE, from, 300 + t, comms[0], &receive));
        MT_MPI(MPI_Wait(&receive, &status));
        MT_STATUS(&status, from, 300 + t, BYTES);
        MT_SAME(p, BYTES, mt_key(t, from, mt_rank, r), "after a send that was freed");
        if (0 == r % (RING / 2)) {
            MPI_Barrier(comms[1 + t]);      /* what is in the ring has arrived when it comes round */
        }
    }
    MPI_Barrier(comms[1 + t]);
    free(ring);
}

/* Receives for which nothing is sent, besides others': ob1 sometimes loses one that is cancelled
 * while its message arrives (4.1.4 and 5.0.7 check for a match before it is recorded), and UCX
 * aborts. */
static void cancelled(int t)
{
    int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size;
    for (int r = 0; r < 5 * rounds; r++) {
        size_t n = size_of(t, mt_rank, r), m = size_of(t, from, r);
        unsigned char *out = malloc(n), *in = malloc(m), never[8];
        MPI_Request send, receive, nothing;
        MPI_Status status;
        int gone;
        mt_fill(out, n, mt_key(t, mt_rank, to, r));
        MT_MPI(MPI_Irecv(never, 8, MPI_BYTE, r % 2 ? from : MPI_ANY_SOURCE, 500 + t, comms[0], &nothing));
        MT_MPI(MPI_Irecv(in, (int) m, MPI_BYTE, from, 400 + t, comms[0], &receive));
        MT_MPI(MPI_Isend(out, (int) n, MPI_BYTE, to, 400 + t, comms[0], &send));
        MT_MPI(MPI_Cancel(&nothing));
        MT_MPI(MPI_Wait(&nothing, &status));
        MT_MPI(MPI_Test_cancelled(&status, &gone));
        MT_CHECK(gone, "a receive for which nothing comes was not cancelled");
        MT_MPI(MPI_Wait(&receive, &status));
        MT_STATUS(&status, from, 400 + t, m);
        MT_SAME(in, m, mt_key(t, from, mt_rank, r), "beside receives that are cancelled");
        MT_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
        free(out);
        free(in);
    }
}

/* Every rank must go on as long as the others: rank 0's clock says. */
static bool time_is_left(double since, long minutes)
{
    int left = MPI_Wtime() - since < 60.0 * (double) minutes;

    MT_MPI(MPI_Bcast(&left, 1, MPI_INT, 0, MPI_COMM_WORLD));
    return left;
}

static void *body(void *arg)
{
    int t = (int) (intptr_t) arg;
    switch (mode) {
    case 0: own_tags(t); break;
    case 1: shared_tag(t, false); break;
    case 2: shared_tag(t, true); break;
    case 3: collectives(t); break;
    case 4: persistent(t); break;
    case 5: freed(t); break;
    default: cancelled(t); break;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static const char *names[] = {"own tags", "a shared tag", "matched probes on a shared tag",
                                  "collectives", "persistent requests", "sends freed at once",
                                  "receives that are cancelled"};
    mt_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    threads = (int) mt_arg("threads", 8);
    rounds = (int) mt_arg("rounds", 40);
    pthread_t *id = malloc((size_t) threads * sizeof(*id));
    comms = malloc((size_t) (threads + 1) * sizeof(*comms));
    seen = malloc((size_t) mt_size * (size_t) rounds * (size_t) threads * sizeof(int));
    for (int i = 0; i <= threads; i++) {
        MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    }
    double since = MPI_Wtime();
    long minutes = mt_arg("minutes", 0);
    do {
        for (mode = 0; mode < 7; mode++) {
            memset(seen, 0, (size_t) mt_size * (size_t) rounds * (size_t) threads * sizeof(int));
            next_number = 0;
            for (int t = 0; t < threads; t++) {
                MT_CHECK(0 == pthread_create(&id[t], NULL, body, (void *) (intptr_t) t), "pthread_create");
            }
            for (int t = 0; t < threads; t++) {
                pthread_join(id[t], NULL);
            }
            mt_group("%d threads, %d rounds: %s", threads, rounds, names[mode]);
        }
    } while (time_is_left(since, minutes));
    for (int i = 0; i <= threads; i++) {
        MT_MPI(MPI_Comm_free(&comms[i]));
    }
    free(seen);
    free(comms);
    free(id);
    return mt_end();
}
