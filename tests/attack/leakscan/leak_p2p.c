/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Point-to-point in all modes, with every kind of receive, with strided
 * types.  Every rank exchanges with one of the other node, one direction
 * after the other.
 */
#include "leak.h"

enum { SEND, BSEND, SSEND, RSEND, NONBLOCKING = 4, PERSISTENT = 8 };
enum { RECV, IRECV, RECV_INIT, PROBE, MPROBE, IMRECV, ANY, RECEIVES };

static MPI_Datatype line_type;      /* 64 bytes, the next 96 further on */

static void *attached;

static void send_it(int how, const void *p, int count, MPI_Datatype type, int to)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int size = (int) leak_n + MPI_BSEND_OVERHEAD;
    if (BSEND == (how & 3)) {
        MT_MPI(MPI_Buffer_attach(attached = malloc((size_t) size), size));
    }
    switch (how) {
    case SEND:  MT_MPI(MPI_Send(p, count, type, to, 1, leak_comm)); break;
    case BSEND: MT_MPI(MPI_Bsend(p, count, type, to, 1, leak_comm)); break;
    case SSEND: MT_MPI(MPI_Ssend(p, count, type, to, 1, leak_comm)); break;
    case RSEND: MT_MPI(MPI_Rsend(p, count, type, to, 1, leak_comm)); break;
    case SEND | NONBLOCKING:  MT_MPI(MPI_Isend(p, count, type, to, 1, leak_comm, &request)); break;
    case BSEND | NONBLOCKING: MT_MPI(MPI_Ibsend(p, count, type, to, 1, leak_comm, &request)); break;
    case SSEND | NONBLOCKING: MT_MPI(MPI_Issend(p, count, type, to, 1, leak_comm, &request)); break;
    case RSEND | NONBLOCKING: MT_MPI(MPI_Irsend(p, count, type, to, 1, leak_comm, &request)); break;
    case SEND | PERSISTENT:  MT_MPI(MPI_Send_init(p, count, type, to, 1, leak_comm, &request)); break;
    case BSEND | PERSISTENT: MT_MPI(MPI_Bsend_init(p, count, type, to, 1, leak_comm, &request)); break;
    case SSEND | PERSISTENT: MT_MPI(MPI_Ssend_init(p, count, type, to, 1, leak_comm, &request)); break;
    case RSEND | PERSISTENT: MT_MPI(MPI_Rsend_init(p, count, type, to, 1, leak_comm, &request)); break;
    }
    if (how & PERSISTENT) {
        MT_MPI(MPI_Start(&request));
    }
    MT_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (how & PERSISTENT) {
        MT_MPI(MPI_Request_free(&request));
    }
    if (BSEND == (how & 3)) {
        MT_MPI(MPI_Buffer_detach(&attached, &size));
        free(attached);
    }
}

static void send_when_ready(const leak_op_t *op, const void *p, int count, MPI_Datatype type, int to)
{
    MT_MPI(MPI_Recv(NULL, 0, MPI_BYTE, to, 2, leak_comm, MPI_STATUS_IGNORE));
    send_it(op->how, p, count, type, to);
}

static void receive(const leak_op_t *op, void *p, int count, MPI_Datatype type, int from)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message message;
    MPI_Status status;
    int kind = op->with;
    if (IRECV == kind || ANY == kind) {
        MT_MPI(MPI_Irecv(p, count, type, ANY == kind ? MPI_ANY_SOURCE : from, ANY == kind ? MPI_ANY_TAG : 1, leak_comm,
                         &request));
    } else if (RECV_INIT == kind) {
        MT_MPI(MPI_Recv_init(p, count, type, from, 1, leak_comm, &request));
        MT_MPI(MPI_Start(&request));
    }
    MT_MPI(MPI_Send(NULL, 0, MPI_BYTE, from, 2, leak_comm));
    switch (kind) {
    case RECV: MT_MPI(MPI_Recv(p, count, type, from, 1, leak_comm, &status)); break;
    case PROBE:
        MT_MPI(MPI_Probe(from, 1, leak_comm, &status));
        MT_MPI(MPI_Recv(p, count, type, from, 1, leak_comm, &status));
        break;
    case MPROBE:
        MT_MPI(MPI_Mprobe(from, 1, leak_comm, &message, &status));
        MT_MPI(MPI_Mrecv(p, count, type, &message, &status));
        break;
    case IMRECV:
        MT_MPI(MPI_Mprobe(from, 1, leak_comm, &message, &status));
        MT_MPI(MPI_Imrecv(p, count, type, &message, &request));
        break;
    }
    MT_MPI(MPI_Wait(&request, &status));
    if (RECV_INIT == kind) {
        MT_MPI(MPI_Request_free(&request));
    }
}

static void one_way(const leak_op_t *op)
{
    int other = leak_partner(leak_comm), rank;
    MT_MPI(MPI_Comm_rank(leak_comm, &rank));
    for (int way = 0; way < 2; way++) {
        if ((rank < other) == (0 == way)) {
            send_when_ready(op, leak_out, (int) leak_n, MPI_BYTE, other);
        } else {
            receive(op, leak_in, (int) leak_n, MPI_BYTE, other);
            LEAK_SAME(leak_in, 1);
        }
    }
}

/* Whole lines only, from memory with gaps into memory with gaps. */
static void strided(const leak_op_t *op)
{
    size_t lines = leak_n / LEAK_LINE, gaps = 96;
    int other = leak_partner(leak_comm);
    unsigned char *spread = calloc(lines, gaps), *into = calloc(lines, gaps);
    for (size_t i = 0; i < lines; i++) {
        memcpy(spread + i * gaps, leak_block + i * LEAK_LINE, LEAK_LINE);
    }
    for (int way = 0; way < 2; way++) {
        if ((mt_rank < other) == (0 == way)) {
            send_when_ready(op, spread, (int) lines, line_type, other);
        } else {
            receive(op, into, (int) lines, line_type, other);
            MT_CHECK(0 == memcmp(spread, into, lines * gaps), "%s: wrong bytes", op->name);
        }
    }
    free(spread);
    free(into);
}

static void sendrecv(const leak_op_t *op)
{
    int other = leak_partner(leak_comm), n = (int) leak_n;
    if (op->how) {
        memcpy(leak_in, leak_out, leak_n);
        MT_MPI(MPI_Sendrecv_replace(leak_in, n, MPI_BYTE, other, 1, other, 1, leak_comm, MPI_STATUS_IGNORE));
    } else {
        MT_MPI(MPI_Sendrecv(leak_out, n, MPI_BYTE, other, 1, leak_in, n, MPI_BYTE, other, 1, leak_comm, MPI_STATUS_IGNORE));
    }
    LEAK_SAME(leak_in, 1);
}

static const leak_op_t ops[] = {
    {"Send, Recv", one_way, .how = SEND, .with = RECV},
    {"Bsend", one_way, .how = BSEND, .with = IRECV},
    {"Ssend", one_way, .how = SSEND, .with = IRECV},
    {"Rsend", one_way, .how = RSEND, .with = IRECV},
    {"Isend, Irecv", one_way, .how = SEND | NONBLOCKING, .with = IRECV},
    {"Ibsend", one_way, .how = BSEND | NONBLOCKING, .with = IRECV},
    {"Issend", one_way, .how = SSEND | NONBLOCKING, .with = IRECV},
    {"Irsend", one_way, .how = RSEND | NONBLOCKING, .with = IRECV},
    {"Send_init, Recv_init", one_way, .how = SEND | PERSISTENT, .with = RECV_INIT},
    {"Bsend_init", one_way, .how = BSEND | PERSISTENT, .with = RECV_INIT},
    {"Ssend_init", one_way, .how = SSEND | PERSISTENT, .with = RECV_INIT},
    {"Rsend_init", one_way, .how = RSEND | PERSISTENT, .with = RECV_INIT},
    {"Probe, Recv", one_way, .how = SEND, .with = PROBE},
    {"Mprobe, Mrecv", one_way, .how = SEND, .with = MPROBE},
    {"Mprobe, Imrecv", one_way, .how = SSEND, .with = IMRECV},
    {"Send to ANY_SOURCE", one_way, .how = SEND, .with = ANY},
    {"Sendrecv", sendrecv, .how = 0},
    {"Sendrecv_replace", sendrecv, .how = 1},
    {"Send, strided", strided, .how = SEND, .with = RECV, .least = LEAK_LINE},
    {"Isend, strided", strided, .how = SEND | NONBLOCKING, .with = IRECV, .least = LEAK_LINE},
};

void leak_p2p(size_t largest)
{
    MPI_Datatype line;
    MT_MPI(MPI_Type_contiguous(LEAK_LINE, MPI_BYTE, &line));
    MT_MPI(MPI_Type_create_resized(line, 0, 96, &line_type));
    MT_MPI(MPI_Type_commit(&line_type));
    leak_run("point-to-point", ops, LEAK_COUNT(ops), largest, MPI_COMM_WORLD);
    MT_MPI(MPI_Type_free(&line_type));
    MT_MPI(MPI_Type_free(&line));
}
