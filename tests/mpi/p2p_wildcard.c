/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI_ANY_SOURCE and MPI_ANY_TAG from local and remote senders at once, over
 * two communicators: every message once, with its sender and tag, and those
 * of one sender, communicator and tag in the order of sending.
 */
#include "mt.h"

enum { TAGS = 4, WINDOW = 16 };

static int count;
static size_t limit;
static MPI_Comm comms[2];

/* The size of a message follows from its sender, communicator and number. */
static size_t size_of(int seed, int c, int source, int target, int tag, int index)
{
    uint64_t state = mt_key(seed + 10 * c, source, target * 100 + tag, index);
    return mt_random_size(&state, limit);
}

static uint64_t key_of(int seed, int c, int source, int target, int tag, int index)
{
    return mt_key(seed + 10 * c + 1000, source, target * 100 + tag, index);
}

/* `count` messages to every rank, on both communicators, tags at random.  Used
 * twice by everybody: to send, and (requests NULL) to know how many there are. */
static int send_all(int seed, MPI_Request *req, unsigned char **p)
{
    uint64_t state = mt_key(seed, mt_rank, 0, 1);
    int many = 0;
    int (*next)[2][TAGS] = calloc((size_t) mt_size, sizeof(*next));
    for (int i = 0; i < count * mt_size; i++) {
        int to = i % mt_size, c = (int) mt_below(&state, 2), tag = (int) mt_below(&state, TAGS);
        int k = next[to][c][tag]++;
        size_t n = size_of(seed, c, mt_rank, to, tag, k);
        p[many] = mt_alloc(n + 1);
        MT_CHECK(NULL != p[many], "memory");
        mt_fill(p[many], n, key_of(seed, c, mt_rank, to, tag, k));
        MT_MPI(MPI_Isend(p[many], (int) n, MPI_BYTE, to, tag, comms[c], &req[many]));
        many++;
    }
    free(next);
    return many;
}

/* How many come to us on each communicator. */
static void expected(int seed, long *incoming)
{
    incoming[0] = incoming[1] = 0;
    for (int s = 0; s < mt_size; s++) {
        uint64_t state = mt_key(seed, s, 0, 1);
        for (int i = 0; i < count * mt_size; i++) {
            int c = (int) mt_below(&state, 2);
            mt_below(&state, TAGS);
            incoming[c] += i % mt_size == mt_rank;
        }
    }
}

typedef int counters_t[2][TAGS];

static void arrived(int seed, int c, const MPI_Status *s, mt_buf_t *buf, counters_t *next)
{
    MT_CHECK(s->MPI_SOURCE >= 0 && s->MPI_SOURCE < mt_size && s->MPI_TAG >= 0 && s->MPI_TAG < TAGS,
             "source %d tag %d", s->MPI_SOURCE, s->MPI_TAG);
    int k = next[s->MPI_SOURCE][c][s->MPI_TAG]++;
    size_t n = size_of(seed, c, s->MPI_SOURCE, mt_rank, s->MPI_TAG, k);
    MT_STATUS(s, s->MPI_SOURCE, s->MPI_TAG, n);
    MT_BUF(buf, n, key_of(seed, c, s->MPI_SOURCE, mt_rank, s->MPI_TAG, k));
    mt_buf_poison(buf);
}

/* A window of wildcard receives, waited for in the order of posting, so that
 * the order of matching is known. */
static void windowed(int seed, int c, long incoming, counters_t *next)
{
    mt_buf_t buf[WINDOW];
    MPI_Request req[WINDOW];
    MPI_Status status;
    long posted = 0, done = 0;
    for (int i = 0; i < WINDOW; i++) {
        mt_buf_new(&buf[i], limit);
    }
    while (done < incoming) {
        for (; posted < incoming && posted - done < WINDOW; posted++) {
            int i = (int) (posted % WINDOW);
            MT_MPI(MPI_Irecv(buf[i].p, (int) limit, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[c], &req[i]));
        }
        MT_MPI(MPI_Wait(&req[done % WINDOW], &status));
        arrived(seed, c, &status, &buf[done % WINDOW], next);
        done++;
    }
    for (int i = 0; i < WINDOW; i++) {
        mt_buf_free(&buf[i]);
    }
}

/* Blocking receives; every third is probed first, every fourth matched. */
static void blocking(int seed, int c, long incoming, counters_t *next)
{
    mt_buf_t buf;
    MPI_Message message;
    MPI_Status status;
    mt_buf_new(&buf, limit);
    for (long i = 0; i < incoming; i++) {
        if (0 == i % 3) {
            MT_MPI(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[c], &status));
            MT_MPI(MPI_Recv(buf.p, (int) limit, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comms[c], &status));
        } else if (0 == i % 4) {
            MT_MPI(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[c], &message, &status));
            MT_MPI(MPI_Mrecv(buf.p, (int) limit, MPI_BYTE, &message, &status));
        } else {
            MT_MPI(MPI_Recv(buf.p, (int) limit, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[c], &status));
        }
        arrived(seed, c, &status, &buf, next);
    }
    mt_buf_free(&buf);
}

static void all_to_all(int seed, bool window)
{
    size_t total = (size_t) count * (size_t) mt_size;
    MPI_Request *req = malloc(total * sizeof(*req));
    unsigned char **p = malloc(total * sizeof(*p));
    counters_t *next = calloc((size_t) mt_size, sizeof(*next));
    long incoming[2];
    int many = send_all(seed, req, p);
    expected(seed, incoming);
    for (int c = 0; c < 2; c++) {
        if (window) {
            windowed(seed, c, incoming[c], next);
        } else {
            blocking(seed, c, incoming[c], next);
        }
    }
    MT_MPI(MPI_Waitall(many, req, MPI_STATUSES_IGNORE));
    while (many > 0) {
        free(p[--many]);
    }
    free(next);
    free(req);
    free(p);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* The whole range of tags. */
static void tags(void)
{
    int *upper, flag, to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size;
    MT_MPI(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &flag));
    MT_CHECK(flag && *upper >= 32767, "MPI_TAG_UB");
    int list[] = {0, 1, 255, 32767, *upper / 2, *upper - 1, *upper};
    int count_tags = sizeof(list) / sizeof(*list);
    for (int i = 0; i < count_tags; i++) {
        for (int big = 0; big < 2; big++) {
            size_t n = big ? 150001 : 11;
            unsigned char *p = mt_alloc(n);
            MPI_Status status;
            MPI_Request out;
            mt_buf_t buf;
            mt_buf_new(&buf, n);
            mt_fill(p, n, mt_key(77, mt_rank, list[i], big));
            MT_MPI(MPI_Isend(p, (int) n, MPI_BYTE, to, list[i], MPI_COMM_WORLD, &out));
            MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, from, big ? list[i] : MPI_ANY_TAG, MPI_COMM_WORLD, &status));
            MT_STATUS(&status, from, list[i], n);
            MT_BUF(&buf, n, mt_key(77, from, list[i], big));
            MT_MPI(MPI_Wait(&out, MPI_STATUS_IGNORE));
            mt_buf_free(&buf);
            free(p);
        }
    }
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    int times = (int) mt_arg("times", 10), seed = (int) mt_arg("seed", 1);
    count = (int) mt_arg("count", 60);
    limit = (size_t) mt_arg("limit", 200000);
    comms[0] = MPI_COMM_WORLD;
    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    for (int t = 0; t < times; t++) {
        all_to_all(seed + t, true);
    }
    mt_group("windows of %d wildcard receives, %d rounds of %d messages a pair", WINDOW, times, count);
    for (int t = 0; t < times; t++) {
        all_to_all(seed + 500 + t, false);
    }
    mt_group("blocking, probed and matched wildcard receives, as many");
    tags();
    mt_group("tags up to MPI_TAG_UB");
    MT_MPI(MPI_Comm_free(&comms[1]));
    return mt_end();
}
