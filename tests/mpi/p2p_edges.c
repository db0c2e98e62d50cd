/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Messages at the edges of pieces: a first one of "first" bytes, then pieces of
 * "piece" bytes each.  One byte less, as many, one byte more, for 0 to 9 pieces,
 * 16, 17 and 40: posted and unexpected, all at once and taken in the other
 * order, into buffers that are too large, and with types that have gaps, so that
 * an edge falls into a block of one byte, or between two.
 */
#include "mt.h"

enum { MOST = 64 };

static size_t sizes[MOST];
static int count;

static void make_sizes(size_t first, size_t piece, size_t most)
{
    static const size_t pieces[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 40};

    for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
        size_t edge = first + pieces[i] * piece;
        for (size_t bytes = edge - 1; bytes <= edge + 1 && edge < most; bytes++) {
            sizes[count++] = bytes;
        }
    }
    MT_CHECK(count <= MOST, "%d sizes", count);
}

static int partner(int distance)
{
    return (mt_rank + mt_size + distance) % mt_size;
}

/* Into a buffer of `more` bytes too many. */
static void one(size_t bytes, int distance, size_t more)
{
    int to = partner(distance), from = partner(-distance);
    unsigned char *out = mt_alloc(bytes + 1);
    MPI_Status status;
    mt_buf_t in;

    mt_buf_new(&in, bytes + more);
    mt_fill(out, bytes, mt_key(1, mt_rank, 1, (int) more));
    MT_MPI(MPI_Sendrecv(out, (int) bytes, MPI_BYTE, to, 1, in.p, (int) in.n, MPI_BYTE, from, 1, MPI_COMM_WORLD,
                        &status));
    MT_STATUS(&status, from, 1, bytes);
    MT_BUF(&in, bytes, mt_key(1, from, 1, (int) more));
    mt_buf_free(&in);
    free(out);
}

/* All sizes are on their way before the first is received; the last comes first. */
static void together(int distance, int posted)
{
    int to = partner(distance), from = partner(-distance);
    MPI_Request out[MOST], in[MOST];
    MPI_Status status[MOST];
    unsigned char *sent[MOST];
    mt_buf_t got[MOST];

    for (int i = 0; i < count; i++) {
        mt_buf_new(&got[i], sizes[i]);
        if (posted) {
            MT_MPI(MPI_Irecv(got[i].p, (int) sizes[i], MPI_BYTE, from, i, MPI_COMM_WORLD, &in[i]));
        }
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < count; i++) {
        sent[i] = mt_alloc(sizes[i] + 1);
        mt_fill(sent[i], sizes[i], mt_key(2, mt_rank, i, posted));
        MT_MPI(MPI_Isend(sent[i], (int) sizes[i], MPI_BYTE, to, i, MPI_COMM_WORLD, &out[i]));
    }
    for (int i = count - 1; i >= 0; i--) {
        if (!posted) {
            MT_MPI(MPI_Irecv(got[i].p, (int) sizes[i], MPI_BYTE, from, i, MPI_COMM_WORLD, &in[i]));
        }
    }
    MT_MPI(MPI_Waitall(count, in, status));
    MT_MPI(MPI_Waitall(count, out, MPI_STATUSES_IGNORE));
    for (int i = 0; i < count; i++) {
        MT_STATUS(&status[i], from, i, sizes[i]);
        MT_BUF(&got[i], sizes[i], mt_key(2, from, i, posted));
        mt_buf_free(&got[i]);
        free(sent[i]);
    }
}

/* Every second, or third, byte of memory. */
static void with_gaps(size_t bytes, int distance, int out_stride, int in_stride)
{
    int to = partner(distance), from = partner(-distance), n = (int) bytes;
    unsigned char *flat = mt_alloc(bytes + 1), *out = mt_alloc(bytes * (size_t) out_stride + 1);
    size_t room = bytes * (size_t) in_stride;
    unsigned char *in = mt_alloc(room + 1), *want = mt_alloc(room + 1);
    MPI_Datatype out_type, in_type;

    MT_MPI(MPI_Type_vector(n, 1, out_stride, MPI_BYTE, &out_type));
    MT_MPI(MPI_Type_vector(n, 1, in_stride, MPI_BYTE, &in_type));
    MT_MPI(MPI_Type_commit(&out_type));
    MT_MPI(MPI_Type_commit(&in_type));
    mt_fill(flat, bytes, mt_key(3, mt_rank, out_stride, in_stride));
    memset(in, 0x5c, room + 1);
    memset(want, 0x5c, room + 1);
    for (size_t i = 0; i < bytes; i++) {
        out[i * (size_t) out_stride] = flat[i];
    }
    mt_fill(flat, bytes, mt_key(3, from, out_stride, in_stride));
    for (size_t i = 0; i < bytes; i++) {
        want[i * (size_t) in_stride] = flat[i];
    }
    MT_MPI(MPI_Sendrecv(out, 1, out_type, to, 3, in, 1, in_type, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MT_CHECK(0 == memcmp(in, want, room + 1), "%zu bytes, strides %d and %d", bytes, out_stride, in_stride);
    MT_MPI(MPI_Type_free(&out_type));
    MT_MPI(MPI_Type_free(&in_type));
    free(flat);
    free(out);
    free(in);
    free(want);
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    size_t first = (size_t) mt_arg("first", 65536), piece = (size_t) mt_arg("piece", 106400);
    int strided = (int) mt_arg("strided", 300000);
    make_sizes(first, piece, (size_t) mt_arg("most", 16000000));
    for (int d = 1; d < mt_size; d++) {
        for (int i = 0; i < count; i++) {
            one(sizes[i], d, 0);
            one(sizes[i], d, 1);
            one(sizes[i], d, piece + 1);
        }
        mt_group("%d sizes around %zu + n x %zu, one by one, distance %d", count, first, piece, d);
        together(d, 1);
        together(d, 0);
        mt_group("all of them at once, posted and unexpected, distance %d", d);
        for (int i = 0; i < count && sizes[i] <= (size_t) strided; i++) {
            with_gaps(sizes[i], d, 2, 1);
            with_gaps(sizes[i], d, 1, 3);
            with_gaps(sizes[i], d, 3, 2);
        }
        mt_group("with gaps, up to %d bytes, distance %d", strided, d);
    }
    return mt_end();
}
