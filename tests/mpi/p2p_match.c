/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Matching, at random: from every source a stream of messages of a few tags
 * and any size; at the receiver a stream of receives, probes and matched
 * probes, blocking or pending.  MPI leaves exactly one outcome open for a
 * single source: the n-th operation takes the first message that fits it and
 * that no earlier operation took.  Every rank predicts it and compares.
 */
#include "mt.h"

enum { TAGS = 3 };
enum { RECV, IRECV, PROBE, IPROBE, MPROBE, IMPROBE, KINDS };

typedef struct {
    size_t bytes;
    int tag;
    bool taken;
} message_t;

typedef struct {                /* a receive that is pending */
    MPI_Request req;
    MPI_Message handle;
    mt_buf_t buf;
    int index;                  /* of its message in the stream */
} pending_t;

static int count;
static size_t limit;
static MPI_Comm comm;

/* The stream from `source` to `target`, known to both. */
static void make_stream(int seed, int source, int target, message_t *m)
{
    uint64_t state = mt_key(seed, source, target, 99);
    for (int i = 0; i < count; i++) {
        m[i].bytes = mt_random_size(&state, limit);
        m[i].tag = (int) mt_below(&state, TAGS);
        m[i].taken = false;
    }
}

static int predict(message_t *m, int tag)
{
    for (int i = 0; i < count; i++) {
        if (!m[i].taken && (MPI_ANY_TAG == tag || tag == m[i].tag)) {
            return i;
        }
    }
    return -1;
}

static void finish(pending_t *q, const message_t *m, int seed, int source)
{
    MPI_Status status;
    const message_t *x = &m[q->index];
    if (MPI_MESSAGE_NULL != q->handle) {
        MT_MPI(MPI_Mrecv(q->buf.p, (int) q->buf.n, MPI_BYTE, &q->handle, &status));
    } else {
        MT_MPI(MPI_Wait(&q->req, &status));
    }
    MT_STATUS(&status, source, x->tag, x->bytes);
    MT_BUF(&q->buf, x->bytes, mt_key(seed, source, mt_rank, q->index));
    mt_buf_free(&q->buf);
}

/* One operation; true if `q` is pending afterwards. */
static bool operate(int kind, int source, int tag, message_t *x, pending_t *q, uint64_t *state)
{
    MPI_Status status;
    int flag = 0;
    size_t extra = mt_below(state, 3);
    mt_buf_new(&q->buf, x->bytes + extra);
    q->handle = MPI_MESSAGE_NULL;
    q->req = MPI_REQUEST_NULL;
    int room = (int) q->buf.n;
    switch (kind) {
    case PROBE:
        MT_MPI(MPI_Probe(source, tag, comm, &status));
        MT_STATUS(&status, source, x->tag, x->bytes);
        MT_MPI(MPI_Recv(q->buf.p, room, MPI_BYTE, source, tag, comm, &status));
        break;
    case IPROBE:
        while (!flag) {
            MT_MPI(MPI_Iprobe(source, tag, comm, &flag, &status));
        }
        MT_STATUS(&status, source, x->tag, x->bytes);
        MT_MPI(MPI_Recv(q->buf.p, room, MPI_BYTE, source, status.MPI_TAG, comm, &status));
        break;
    case RECV:
        MT_MPI(MPI_Recv(q->buf.p, room, MPI_BYTE, source, tag, comm, &status));
        break;
    case IRECV:
        MT_MPI(MPI_Irecv(q->buf.p, room, MPI_BYTE, source, tag, comm, &q->req));
        return true;
    case MPROBE:
        MT_MPI(MPI_Mprobe(source, tag, comm, &q->handle, &status));
        MT_STATUS(&status, source, x->tag, x->bytes);
        return true;
    default:
        while (!flag) {
            MT_MPI(MPI_Improbe(source, tag, comm, &flag, &q->handle, &status));
        }
        MT_STATUS(&status, source, x->tag, x->bytes);
        MT_MPI(MPI_Imrecv(q->buf.p, room, MPI_BYTE, &q->handle, &q->req));
        return true;
    }
    MT_STATUS(&status, source, x->tag, x->bytes);
    return false;
}

static void receive_all(int seed)
{
    uint64_t state = mt_key(seed, mt_rank, 0, 7);
    message_t *streams = malloc((size_t) mt_size * (size_t) count * sizeof(*streams));
    pending_t (*waiting)[8] = calloc((size_t) mt_size, sizeof(*waiting));
    int *left = malloc((size_t) mt_size * sizeof(*left)), *pending = calloc((size_t) mt_size, sizeof(*pending));
    for (int s = 0; s < mt_size; s++) {
        make_stream(seed, s, mt_rank, streams + s * count);
        left[s] = count;
    }
    for (long todo = (long) mt_size * count; todo > 0; todo--) {
        int s = (int) mt_below(&state, (size_t) mt_size);
        while (0 == left[s]) {
            s = (s + 1) % mt_size;
        }
        message_t *m = streams + s * count;
        int tag = mt_below(&state, 3) ? m[predict(m, MPI_ANY_TAG)].tag : MPI_ANY_TAG;
        if (0 == mt_below(&state, 4)) {                 /* maybe another tag than the next one's */
            int other = (int) mt_below(&state, TAGS);
            tag = predict(m, other) >= 0 ? other : tag;
        }
        pending_t *q = &waiting[s][pending[s]];
        q->index = predict(m, tag);
        m[q->index].taken = true;
        left[s]--;
        if (operate((int) mt_below(&state, KINDS), s, tag, &m[q->index], q, &state)) {
            pending[s]++;
        } else {
            MT_BUF(&q->buf, m[q->index].bytes, mt_key(seed, s, mt_rank, q->index));
            mt_buf_free(&q->buf);
        }
        if (pending[s] && (8 == pending[s] || 0 == mt_below(&state, 5))) {
            int k = (int) mt_below(&state, (size_t) pending[s]);
            finish(&waiting[s][k], m, seed, s);
            waiting[s][k] = waiting[s][--pending[s]];
        }
    }
    for (int s = 0; s < mt_size; s++) {
        while (pending[s]) {
            finish(&waiting[s][--pending[s]], streams + s * count, seed, s);
        }
    }
    free(streams);
    free(waiting);
    free(left);
    free(pending);
}

/* All sends to all ranks, ourselves included, are started before we receive. */
static void round_trip(int seed)
{
    message_t *m = malloc((size_t) count * sizeof(*m));
    MPI_Request *out = malloc((size_t) mt_size * (size_t) count * sizeof(*out));
    unsigned char **p = malloc((size_t) mt_size * (size_t) count * sizeof(*p));
    int many = 0;
    for (int i = 0; i < count; i++) {
        for (int d = 0; d < mt_size; d++) {
            int to = (mt_rank + d) % mt_size;
            make_stream(seed, mt_rank, to, m);
            p[many] = mt_alloc(m[i].bytes + 1);
            MT_CHECK(NULL != p[many], "memory");
            mt_fill(p[many], m[i].bytes, mt_key(seed, mt_rank, to, i));
            int rc = i % 3 ? MPI_Isend(p[many], (int) m[i].bytes, MPI_BYTE, to, m[i].tag, comm, &out[many])
                           : MPI_Issend(p[many], (int) m[i].bytes, MPI_BYTE, to, m[i].tag, comm, &out[many]);
            MT_MPI(rc);
            many++;
        }
    }
    receive_all(seed);
    MT_MPI(MPI_Waitall(many, out, MPI_STATUSES_IGNORE));
    while (many > 0) {
        free(p[--many]);
    }
    free(m);
    free(out);
    free(p);
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    int times = (int) mt_arg("times", 12), seed = (int) mt_arg("seed", 1);
    count = (int) mt_arg("count", 60);
    limit = (size_t) mt_arg("limit", 300000);
    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int t = 0; t < times; t++) {
        round_trip(seed + t);
    }
    mt_group("%d rounds of %d messages a pair, up to %zu bytes, from seed %d", times, count, limit, seed);
    limit = 4000000;
    count = 12;
    round_trip(seed + 1000);
    mt_group("the same up to %zu bytes", limit);
    MT_MPI(MPI_Comm_free(&comm));
    return mt_end();
}
