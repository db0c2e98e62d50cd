/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Types whose elements have different lengths, so that no length of a piece
 * falls between two elements: structs of characters and numbers of 2 to 32
 * bytes, with gaps and without, at one or both ends, also in messages that end
 * before the buffer does, and in several messages at once.
 */
#include "mt.h"

#include <complex.h>

typedef struct mixed {
    char letter;
    double number;
    short small;
    long double _Complex large;
    int number2;
    char letters[3];
} mixed_t;

enum { MEMBERS = 6 };
static const int lengths[MEMBERS] = {1, 1, 1, 1, 1, 3};

/* As in memory; without gaps; every second letter and number; every second of
 * the longest numbers there are. */
static MPI_Datatype gaps, tight, pair, wide;
static int item_bytes, pair_bytes;

static void make_types(void)
{
    MPI_Datatype types[MEMBERS] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_C_LONG_DOUBLE_COMPLEX, MPI_INT, MPI_CHAR};
    const MPI_Aint where[MEMBERS] = {offsetof(mixed_t, letter), offsetof(mixed_t, number), offsetof(mixed_t, small),
                                     offsetof(mixed_t, large), offsetof(mixed_t, number2), offsetof(mixed_t, letters)};
    MPI_Aint packed[MEMBERS], at = 0;
    MPI_Datatype inner;
    int size;

    for (int i = 0; i < MEMBERS; i++) {
        packed[i] = at;
        MT_MPI(MPI_Type_size(types[i], &size));
        at += size * lengths[i];
    }
    MT_MPI(MPI_Type_create_struct(MEMBERS, lengths, where, types, &inner));
    MT_MPI(MPI_Type_create_resized(inner, 0, sizeof(mixed_t), &gaps));
    MT_MPI(MPI_Type_free(&inner));
    MT_MPI(MPI_Type_create_struct(MEMBERS, lengths, packed, types, &inner));
    MT_MPI(MPI_Type_create_resized(inner, 0, at, &tight));
    MT_MPI(MPI_Type_free(&inner));
    MT_MPI(MPI_Type_create_struct(2, lengths, where, types, &inner));
    MT_MPI(MPI_Type_create_resized(inner, 0, 2 * sizeof(mixed_t), &pair));
    MT_MPI(MPI_Type_free(&inner));
    MT_MPI(MPI_Type_vector(7, 1, 2, MPI_C_LONG_DOUBLE_COMPLEX, &wide));
    MT_MPI(MPI_Type_commit(&wide));
    MT_MPI(MPI_Type_commit(&gaps));
    MT_MPI(MPI_Type_commit(&tight));
    MT_MPI(MPI_Type_commit(&pair));
    MT_MPI(MPI_Type_size(gaps, &item_bytes));
    MT_MPI(MPI_Type_size(pair, &pair_bytes));
    MT_CHECK(item_bytes == (int) at && 9 == pair_bytes, "%d and %d bytes", item_bytes, pair_bytes);
}

/* Memory of `items` of this type, the bytes of the pattern in their places. */
static unsigned char *memory_of(MPI_Datatype type, int items, size_t *bytes, int with_data, uint64_t key)
{
    MPI_Aint lower, extent;
    int size, position = 0;
    unsigned char *memory, *flat;

    MT_MPI(MPI_Type_get_extent(type, &lower, &extent));
    MT_MPI(MPI_Type_size(type, &size));
    *bytes = (size_t) items * (size_t) extent + 1;
    memory = malloc(*bytes);
    memset(memory, 0x5c, *bytes);
    flat = malloc((size_t) items * (size_t) size + 1);
    mt_fill(flat, (size_t) items * (size_t) size, key);
    if (with_data) {
        MT_MPI(MPI_Unpack(flat, items * size, &position, memory, items, type, MPI_COMM_SELF));
    }
    free(flat);
    return memory;
}

/* `items` of them, into room for `more` more. */
static void transfer(MPI_Datatype out_type, MPI_Datatype in_type, int items, int more, int distance)
{
    int to = (mt_rank + distance) % mt_size, from = (mt_rank + mt_size - distance) % mt_size, count;
    size_t out_bytes, in_bytes, want_bytes;
    unsigned char *out = memory_of(out_type, items, &out_bytes, 1, mt_key(items, mt_rank, more, distance));
    unsigned char *in = memory_of(in_type, items + more, &in_bytes, 0, 0);
    unsigned char *want = memory_of(in_type, items, &want_bytes, 1, mt_key(items, from, more, distance));
    MPI_Status status;

    MT_MPI(MPI_Sendrecv(out, items, out_type, to, 1, in, items + more, in_type, from, 1, MPI_COMM_WORLD, &status));
    MT_MPI(MPI_Get_count(&status, in_type, &count));
    MT_CHECK(count == items, "count %d of %d", count, items);
    for (size_t i = 0; i < in_bytes; i++) {
        unsigned char byte = i + 1 < want_bytes ? want[i] : 0x5c;
        MT_CHECK(in[i] == byte, "%d items and room for %d more: byte %zu of %zu", items, more, i, in_bytes);
    }
    free(out);
    free(in);
    free(want);
}

/* Several at once, received as they come. */
static void at_once(int items, int distance)
{
    enum { MANY = 8 };
    int to = (mt_rank + distance) % mt_size, from = (mt_rank + mt_size - distance) % mt_size;
    unsigned char *out[MANY], *in[MANY], *want;
    MPI_Request request[2 * MANY];
    size_t bytes;

    for (int i = 0; i < MANY; i++) {
        in[i] = memory_of(gaps, items + i, &bytes, 0, 0);
        out[i] = memory_of(gaps, items + i, &bytes, 1, mt_key(9, mt_rank, i, distance));
        MT_MPI(MPI_Irecv(in[i], items + i, gaps, from, i, MPI_COMM_WORLD, &request[i]));
    }
    for (int i = 0; i < MANY; i++) {
        MT_MPI(MPI_Isend(out[i], items + i, gaps, to, i, MPI_COMM_WORLD, &request[MANY + i]));
    }
    MT_MPI(MPI_Waitall(2 * MANY, request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++) {
        want = memory_of(gaps, items + i, &bytes, 1, mt_key(9, from, i, distance));
        MT_CHECK(0 == memcmp(in[i], want, bytes), "message %d", i);
        free(want);
        free(out[i]);
        free(in[i]);
    }
}

int main(int argc, char **argv)
{
    static const int items[] = {1, 3, 600, 641, 642, 643, 644, 645, 2000, 4099, 20000};

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    make_types();
    for (int d = 1; d < mt_size; d++) {
        for (size_t i = 0; i < sizeof(items) / sizeof(*items); i++) {
            transfer(gaps, gaps, items[i], 0, d);
            transfer(gaps, tight, items[i], 1, d);
            transfer(tight, gaps, items[i], 7, d);
            transfer(tight, tight, items[i], 0, d);
            transfer(pair, pair, 5 * items[i], 2, d);
            transfer(wide, wide, items[i] / 3, 1, d);
        }
        mt_group("items of %d bytes, with gaps and without, distance %d", item_bytes, d);
        at_once(1500, d);
        mt_group("8 messages at once, distance %d", d);
    }
    MT_MPI(MPI_Type_free(&gaps));
    MT_MPI(MPI_Type_free(&tight));
    MT_MPI(MPI_Type_free(&pair));
    MT_MPI(MPI_Type_free(&wide));
    return mt_end();
}
