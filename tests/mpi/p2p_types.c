/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Derived types: strided, indexed, struct with gaps, resized, negative lower
 * bound, sub-array, nested, absolute addresses, packed; different types with
 * one signature at the two ends; partial receives with MPI_Get_count and
 * MPI_Get_elements; gaps stay as they were.
 */
#include "mt.h"

#define INTS 60         /* integers in one item of every type: signatures agree */
#define SPAN 4096       /* bytes that hold one item of any type, origin in the middle */

enum { CONTIGUOUS, VECTOR, HVECTOR, INDEXED, BLOCKS, STRUCT, RESIZED, NEGATIVE, SUBARRAY, NESTED, TYPES };
static const char *names[] = {"contiguous", "vector", "hvector", "indexed", "indexed_block", "struct", "resized",
                              "negative", "subarray", "nested"};
static MPI_Datatype types[TYPES];
static MPI_Aint extents[TYPES];

static MPI_Datatype make(int kind)
{
    MPI_Datatype t = MPI_DATATYPE_NULL, inner;
    int lengths[INTS], where[INTS];
    MPI_Aint bytes[4];
    switch (kind) {
    case CONTIGUOUS: MT_MPI(MPI_Type_contiguous(INTS, MPI_INT, &t)); break;
    case VECTOR:     MT_MPI(MPI_Type_vector(INTS / 3, 3, 5, MPI_INT, &t)); break;
    case HVECTOR:    MT_MPI(MPI_Type_create_hvector(INTS, 1, 12, MPI_INT, &t)); break;
    case INDEXED:
        for (int i = 0, at = 0; i < 10; i++) {          /* 1, 11, 2, 10, ... integers */
            lengths[i] = i % 2 ? 11 - i / 2 : 1 + i / 2;
            where[i] = at + i;
            at += lengths[i] + i;
        }
        MT_MPI(MPI_Type_indexed(10, lengths, where, MPI_INT, &t));
        break;
    case BLOCKS:
        for (int i = 0; i < INTS; i++) {
            where[i] = (INTS - 1 - i) * 2;              /* backwards in memory */
        }
        MT_MPI(MPI_Type_create_indexed_block(INTS, 1, where, MPI_INT, &t));
        break;
    case STRUCT: {
        int n[3] = {20, 1, 39};
        MPI_Datatype members[3] = {MPI_INT, MPI_INT, MPI_INT};
        bytes[0] = 4; bytes[1] = 101 * 4; bytes[2] = 200 * 4;
        MT_MPI(MPI_Type_create_struct(3, n, bytes, members, &t));
        break;
    }
    case RESIZED:
        MT_MPI(MPI_Type_contiguous(INTS, MPI_INT, &inner));
        MT_MPI(MPI_Type_create_resized(inner, 0, INTS * 4 + 36, &t));
        MT_MPI(MPI_Type_free(&inner));
        break;
    case NEGATIVE:
        for (int i = 0; i < 3; i++) {
            bytes[i] = (i - 1) * 400;
            lengths[i] = 20;
        }
        MT_MPI(MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &t));
        break;
    case SUBARRAY: {
        int whole[3] = {7, 8, 9}, part[3] = {3, 4, 5}, at[3] = {2, 1, 3};
        MT_MPI(MPI_Type_create_subarray(3, whole, part, at, MPI_ORDER_C, MPI_INT, &t));
        break;
    }
    default:
        MT_MPI(MPI_Type_vector(2, 3, 4, MPI_INT, &inner));
        MT_MPI(MPI_Type_create_hvector(INTS / 6, 1, 52, inner, &t));
        MT_MPI(MPI_Type_free(&inner));
        break;
    }
    MT_MPI(MPI_Type_commit(&t));
    return t;
}

/* Spread `items` * INTS integers of the pattern into memory of a type, and
 * gather them again, by Open MPI's own pack: independent of any message. */
static void spread(void *to, MPI_Datatype t, int items, uint64_t key)
{
    int n = items * INTS * 4, position = 0;
    unsigned char *flat = mt_alloc((size_t) n + 1);
    mt_fill(flat, (size_t) n, key);
    MT_MPI(MPI_Unpack(flat, n, &position, to, items, t, MPI_COMM_SELF));
    free(flat);
}

static unsigned char *room(int kind, int items, unsigned char **origin, size_t *bytes)
{
    size_t extent = (size_t) (extents[kind] > 0 ? extents[kind] : -extents[kind]);
    *bytes = (size_t) items * extent + 2 * SPAN;
    unsigned char *base = mt_alloc(*bytes);
    MT_CHECK(NULL != base, "memory");
    memset(base, 0x5c, *bytes);
    *origin = base + SPAN;
    return base;
}

/* Sender's type and receiver's type differ; the receiver may have room for more. */
static void pair(int out, int in, int items, int distance)
{
    int to = (mt_rank + distance) % mt_size, from = (mt_rank + mt_size - distance) % mt_size, count;
    unsigned char *p, *q, *want, *base_p, *base_q, *base_want;
    size_t bytes_p, bytes_q;
    MPI_Request req;
    MPI_Status status;
    MPI_Count elements;
    base_p = room(out, items, &p, &bytes_p);
    base_q = room(in, items + 1, &q, &bytes_q);
    base_want = room(in, items + 1, &want, &bytes_q);
    spread(p, types[out], items, mt_key(out, mt_rank, in, items));
    spread(want, types[in], items, mt_key(out, from, in, items));
    MT_MPI(MPI_Isend(p, items, types[out], to, out * TYPES + in, MPI_COMM_WORLD, &req));
    MT_MPI(MPI_Recv(q, items + 1, types[in], from, out * TYPES + in, MPI_COMM_WORLD, &status));
    MT_MPI(MPI_Get_count(&status, types[in], &count));
    MT_CHECK(items == count, "%s to %s: count %d of %d", names[out], names[in], count, items);
    MT_MPI(MPI_Get_elements_x(&status, types[in], &elements));
    MT_CHECK((MPI_Count) items * INTS == elements, "%s to %s: %lld elements", names[out], names[in], (long long) elements);
    for (size_t i = 0; i < bytes_q; i++) {
        MT_CHECK(base_q[i] == base_want[i], "%s to %s, %d items: byte %zd of %zu", names[out], names[in], items,
                 (ssize_t) i - SPAN, bytes_q - 2 * SPAN);
    }
    MT_MPI(MPI_Wait(&req, MPI_STATUS_IGNORE));
    free(base_p);
    free(base_q);
    free(base_want);
}

/* An integral number of integers but not of items. */
static void partial(int kind, int ints)
{
    int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size, count, elements;
    int *p = calloc((size_t) ints + 1, sizeof(*p));
    unsigned char *q, *base;
    size_t bytes;
    MPI_Request req;
    MPI_Status status;
    base = room(kind, ints / INTS + 1, &q, &bytes);
    MT_MPI(MPI_Isend(p, ints, MPI_INT, to, 1, MPI_COMM_WORLD, &req));
    MT_MPI(MPI_Recv(q, ints / INTS + 1, types[kind], from, 1, MPI_COMM_WORLD, &status));
    MT_MPI(MPI_Get_count(&status, types[kind], &count));
    MT_MPI(MPI_Get_elements(&status, types[kind], &elements));
    MT_CHECK(elements == ints && count == (ints % INTS ? MPI_UNDEFINED : ints / INTS), "%s, %d integers: count %d elements %d",
             names[kind], ints, count, elements);
    MT_MPI(MPI_Wait(&req, MPI_STATUS_IGNORE));
    free(base);
    free(p);
}

/* MPI_BOTTOM with absolute addresses of two arrays, and MPI_PACKED. */
static void addresses(int ints)
{
    int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size, n[2] = {ints, ints}, position = 0, size;
    int *a = calloc((size_t) ints, 4), *b = calloc((size_t) ints, 4), *packed = malloc((size_t) ints * 8 + 64);
    MPI_Aint at[2];
    MPI_Datatype t;
    MPI_Request req;
    MPI_Status status;
    MT_MPI(MPI_Get_address(a, &at[0]));
    MT_MPI(MPI_Get_address(b, &at[1]));
    MT_MPI(MPI_Type_create_hindexed(2, n, at, MPI_INT, &t));
    MT_MPI(MPI_Type_commit(&t));
    for (int i = 0; i < ints; i++) {
        a[i] = mt_rank * 7 + i;
        b[i] = mt_rank * 11 - i;
    }
    MT_MPI(MPI_Pack_size(1, t, MPI_COMM_WORLD, &size));
    MT_CHECK(size <= ints * 8 + 64, "pack size %d", size);
    MT_MPI(MPI_Pack(MPI_BOTTOM, 1, t, packed, size, &position, MPI_COMM_WORLD));
    MT_MPI(MPI_Isend(packed, position, MPI_PACKED, to, 2, MPI_COMM_WORLD, &req));
    MT_MPI(MPI_Recv(MPI_BOTTOM, 1, t, from, 2, MPI_COMM_WORLD, &status));
    MT_MPI(MPI_Wait(&req, MPI_STATUS_IGNORE));
    for (int i = 0; i < ints; i++) {
        MT_CHECK(a[i] == from * 7 + i && b[i] == from * 11 - i, "at %d", i);
    }
    MT_MPI(MPI_Isend(MPI_BOTTOM, 1, t, to, 3, MPI_COMM_WORLD, &req));
    MT_MPI(MPI_Recv(packed, size, MPI_PACKED, from, 3, MPI_COMM_WORLD, &status));
    MT_MPI(MPI_Wait(&req, MPI_STATUS_IGNORE));
    MT_MPI(MPI_Get_count(&status, MPI_PACKED, &position));
    MT_CHECK(position == ints * 8, "packed count %d", position);
    MT_MPI(MPI_Type_free(&t));
    free(a);
    free(b);
    free(packed);
}

/* The type is freed while its messages are on their way. */
static void freed_type(void)
{
    int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size, items = 3000;
    unsigned char *p, *q, *want, *base_p, *base_q, *base_want;
    size_t bytes;
    MPI_Datatype t = make(VECTOR);
    MPI_Request req[2];
    base_p = room(VECTOR, items, &p, &bytes);
    base_q = room(VECTOR, items, &q, &bytes);
    base_want = room(VECTOR, items, &want, &bytes);
    spread(p, types[VECTOR], items, mt_key(1, mt_rank, 0, 0));
    spread(want, types[VECTOR], items, mt_key(1, from, 0, 0));
    MT_MPI(MPI_Irecv(q, items, t, from, 4, MPI_COMM_WORLD, &req[0]));
    MT_MPI(MPI_Isend(p, items, t, to, 4, MPI_COMM_WORLD, &req[1]));
    MT_MPI(MPI_Type_free(&t));
    MT_MPI(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
    MT_CHECK(0 == memcmp(base_q, base_want, bytes), "bytes differ");
    free(base_p);
    free(base_q);
    free(base_want);
}

int main(int argc, char **argv)
{
    static const int items[] = {0, 1, 2, 17, 136, 137, 273, 2000, 9000};
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    for (int k = 0; k < TYPES; k++) {
        MPI_Aint lb;
        int size;
        types[k] = make(k);
        MT_MPI(MPI_Type_get_extent(types[k], &lb, &extents[k]));
        MT_MPI(MPI_Type_size(types[k], &size));
        MT_CHECK(4 * INTS == size && extents[k] <= SPAN, "%s: %d bytes", names[k], size);
    }
    for (int d = 1; d < mt_size; d++) {
        for (int out = 0; out < TYPES; out++) {
            for (int in = 0; in < TYPES; in++) {
                for (size_t i = 0; i < sizeof(items) / sizeof(*items); i++) {
                    if (items[i] < 9000 || out == in) {
                        pair(out, in, items[i], d);
                    }
                }
            }
        }
        mt_group("%d x %d types, distance %d", TYPES, TYPES, d);
    }
    for (int k = 0; k < TYPES; k++) {
        for (int n = 1; n < 40000; n = n * 3 + 7) {
            partial(k, n);
        }
        partial(k, 5 * INTS);
    }
    mt_group("MPI_Get_count and MPI_Get_elements of partial items");
    for (int n = 1; n < 400000; n = n * 5 + 3) {
        addresses(n);
    }
    freed_type();
    mt_group("absolute addresses, MPI_PACKED, a type freed in flight");
    for (int k = 0; k < TYPES; k++) {
        MT_MPI(MPI_Type_free(&types[k]));
    }
    return mt_end();
}
