/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Long messages of nested derived types, byte for byte, gaps included: types of
 * programs (fixed), and types drawn at random (mt_types.h).
 *
 *   p2p_nested [seed=S] [cases=N] [most=BYTES]
 *
 * Of a type T with packed bytes P: T to packed, packed to T, T to T, into more room
 * than the message has, and by broadcast, gather, all-to-all and (4.1) put and get.
 */
#include "mt_types.h"

static bool one_sided;

/* ---- one type, by every way ---- */

typedef struct way {
    const mt_type_t *t;
    int count;
    size_t n;                           /* packed bytes */
    unsigned char *packed, *again;
    mt_span_t from, to;
    uint64_t key;
    const char *what;
} way_t;

static void check(const way_t *w, const char *how, const mt_span_t *s, size_t n)
{
    long at = mt_span_differs(w->t, s, w->packed, n);

    MT_CHECK(-1 == at, "%s, %d of %s, %s: differs at %ld", w->what, w->count, w->t->text, how, at);
}

static void check_packed(const way_t *w, const char *how)
{
    MT_CHECK(0 == memcmp(w->packed, w->again, w->n), "%s, %d of %s, %s: other bytes", w->what, w->count, w->t->text, how);
}

/* A ring: all send and receive at the same time. */
static void exchange(way_t *w, const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type)
{
    const int next = (mt_rank + 1) % mt_size, before = (mt_rank + mt_size - 1) % mt_size;
    MPI_Status status;
    MPI_Count bytes;

    MT_MPI(MPI_Sendrecv(out, out_count, out_type, next, 1, in, in_count, in_type, before, 1, MPI_COMM_WORLD, &status));
    MT_MPI(MPI_Get_elements_x(&status, MPI_PACKED == in_type ? MPI_BYTE : in_type, &bytes));
    MT_CHECK(MPI_UNDEFINED != bytes && (MPI_PACKED != in_type || (size_t) bytes == w->n), "%s: %lld of %zu bytes", w->what,
             (long long) bytes, w->n);
}

static void by_messages(way_t *w)
{
    const MPI_Datatype type = w->t->type;
    mt_span_t more = mt_span_new(w->t, w->count + 1);

    exchange(w, w->from.origin, w->count, type, w->again, (int) w->n, MPI_PACKED);
    check_packed(w, "typed to packed");
    exchange(w, w->packed, (int) w->n, MPI_PACKED, w->to.origin, w->count, type);
    check(w, "packed to typed", &w->to, w->n);
    mt_span_poison(&w->to);
    exchange(w, w->from.origin, w->count, type, w->to.origin, w->count, type);
    check(w, "typed to typed", &w->to, w->n);
    exchange(w, w->from.origin, w->count, type, more.origin, w->count + 1, type);
    check(w, "into more room", &more, w->n);
    mt_span_free(&more);
}

static void by_collectives(way_t *w)
{
    const MPI_Datatype type = w->t->type;
    const int root = (int) (w->key % (uint64_t) mt_size);
    unsigned char *all = NULL;

    mt_span_poison(&w->to);
    if (mt_rank == root) {
        mt_span_put(w->t, &w->to, w->packed, w->n);
    }
    MT_MPI(MPI_Bcast(w->to.origin, w->count, type, root, MPI_COMM_WORLD));
    check(w, "broadcast", &w->to, w->n);
    if (w->n * (size_t) mt_size > (size_t) 1 << 26) {
        return;
    }
    all = malloc(w->n * (size_t) mt_size + 1);
    MT_MPI(MPI_Gather(w->from.origin, w->count, type, all, (int) w->n, MPI_PACKED, root, MPI_COMM_WORLD));
    for (int i = 0; mt_rank == root && i < mt_size; i++) {      /* its own: Open MPI's copy, which 5.0.7 gets wrong */
        MT_CHECK(i == root || 0 == memcmp(all + (size_t) i * w->n, w->packed, w->n), "%s, %s: gather from %d", w->what,
                 w->t->text, i);
    }
    for (int i = 0; i < mt_size; i++) {
        memcpy(all + (size_t) i * w->n, w->packed, w->n);
    }
    if (1 == mt_size % 2 || w->count % mt_size == 0) {      /* a part of them to each */
        int part = w->count / mt_size;
        mt_span_poison(&w->to);
        if (part > 0 && part * mt_size == w->count) {
            MT_MPI(MPI_Alltoall(w->from.origin, part, type, w->again, (int) (w->n / (size_t) mt_size), MPI_PACKED, MPI_COMM_WORLD));
            for (int i = 0; i < mt_size; i++) {
                MT_CHECK(0 == memcmp(w->again + (size_t) i * (w->n / (size_t) mt_size),
                                     w->packed + (size_t) mt_rank * (w->n / (size_t) mt_size), w->n / (size_t) mt_size),
                         "%s, %s: all-to-all from %d", w->what, w->t->text, i);
            }
        }
    }
    mt_span_poison(&w->to);
    MT_MPI(MPI_Scatter(all, (int) w->n, MPI_PACKED, w->to.origin, w->count, type, root, MPI_COMM_WORLD));
    check(w, "scatter", &w->to, w->n);
    free(all);
}

static void by_windows(way_t *w)
{
    const int next = (mt_rank + 1) % mt_size;
    MPI_Win window;

    if (!one_sided || w->to.bytes > (size_t) 1 << 24) {
        return;
    }
    mt_span_poison(&w->to);
    MT_MPI(MPI_Win_create(w->to.memory, (MPI_Aint) w->to.bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    MT_MPI(MPI_Win_fence(0, window));
    MT_MPI(MPI_Put(w->from.origin, w->count, w->t->type, next, w->to.origin - w->to.memory, w->count, w->t->type, window));
    MT_MPI(MPI_Win_fence(0, window));
    check(w, "put", &w->to, w->n);
    mt_span_poison(&w->from);
    MT_MPI(MPI_Win_fence(0, window));
    MT_MPI(MPI_Get(w->from.origin, w->count, w->t->type, next, w->to.origin - w->to.memory, w->count, w->t->type, window));
    MT_MPI(MPI_Win_fence(0, window));
    check(w, "get", &w->from, w->n);
    MT_MPI(MPI_Win_free(&window));
}

static void try_all(const mt_type_t *t, int count, uint64_t key, const char *what)
{
    way_t w = {.t = t, .count = count, .n = t->size * (size_t) count, .key = key, .what = what};

    w.packed = mt_alloc(w.n);
    w.again = mt_alloc(w.n);
    w.from = mt_span_new(t, count);
    w.to = mt_span_new(t, count);
    mt_fill(w.packed, w.n, key);
    mt_span_put(t, &w.from, w.packed, w.n);
    by_messages(&w);
    by_collectives(&w);
    by_windows(&w);
    mt_span_free(&w.from);
    mt_span_free(&w.to);
    free(w.packed);
    free(w.again);
}

/* ---- types of programs ---- */

static mt_entry_t *grow(mt_entry_t *map, int entries) { return realloc(map, sizeof(*map) * (size_t) (entries + 1)); }

/* vector(3,1,2) of vector(3,2,4) of an element; or three vectors of an element. */
static mt_type_t vectors(bool three, bool record)
{
    MPI_Datatype element = MPI_INT, a, b, c;
    const int members = record ? 2 : 1, lengths[2] = {1, 1}, sizes[2] = {record ? 8 : 4, 4};
    MPI_Datatype parts[2] = {MPI_DOUBLE, MPI_INT};
    MPI_Aint places[2] = {0, 8}, lower, e, ea, eb;
    mt_entry_t *map = NULL;
    int n = 0;

    if (record) {
        MT_MPI(MPI_Type_create_struct(2, lengths, places, parts, &element));
    }
    MT_MPI(MPI_Type_vector(3, 2, 4, element, &a));
    MT_MPI(MPI_Type_vector(3, 1, 2, a, &b));
    MT_MPI(MPI_Type_get_extent(element, &lower, &e));
    MT_MPI(MPI_Type_get_extent(a, &lower, &ea));
    MT_MPI(MPI_Type_get_extent(b, &lower, &eb));
    MT_MPI(three ? MPI_Type_vector(2, 2, 3, b, &c) : MPI_Type_dup(b, &c));
    for (int x = 0; x < (three ? 4 : 1); x++) {
        for (int y = 0; y < 3; y++) {
            for (int z = 0; z < 6; z++) {
                for (int m = 0; m < members; m++) {
                    map = grow(map, n);
                    map[n++] = (mt_entry_t){(x / 2 * 3 + x % 2) * eb + y * 2 * ea + (z / 2 * 4 + z % 2) * e + places[m], sizes[m]};
                }
            }
        }
    }
    MT_MPI(MPI_Type_free(&a));
    MT_MPI(MPI_Type_free(&b));
    if (record) {
        MT_MPI(MPI_Type_free(&element));
    }
    return mt_type_of(c, map, n, three ? "three vectors" : "two vectors of struct");
}

/* The inner part of a lattice, a program's halo. */
static mt_type_t lattice(int dimensions, int size, int part, bool record)
{
    int sizes[4], parts[4], starts[4], lengths[2] = {1, 1}, total = 1, n = 0;
    MPI_Datatype element = MPI_DOUBLE, members[2] = {MPI_DOUBLE, MPI_INT}, t;
    MPI_Aint places[2] = {0, 8}, lower, extent;
    mt_entry_t *map = NULL;

    if (record) {
        MT_MPI(MPI_Type_create_struct(2, lengths, places, members, &element));
    }
    MT_MPI(MPI_Type_get_extent(element, &lower, &extent));
    for (int i = 0; i < dimensions; i++) {
        sizes[i] = size;
        parts[i] = part;
        starts[i] = (size - part) / 2;
        total *= part;
    }
    MT_MPI(MPI_Type_create_subarray(dimensions, sizes, parts, starts, MPI_ORDER_C, element, &t));
    for (int i = 0; i < total; i++) {
        MPI_Aint place = 0;
        for (int d = 0, rest = i, unit = total; d < dimensions; d++) {
            unit /= part;
            place = place * size + starts[d] + rest / unit;
            rest %= unit;
        }
        map = grow(map, n + 1);
        map[n++] = (mt_entry_t){place * extent, 8};
        if (record) {
            map[n++] = (mt_entry_t){place * extent + 8, 4};
        }
    }
    if (record) {
        MT_MPI(MPI_Type_free(&element));
    }
    return mt_type_of(t, map, n, record ? "lattice of struct" : "lattice of double");
}

static void programs(void)
{
    mt_type_t t[] = {vectors(false, true), lattice(4, 6, 4, false), lattice(4, 6, 4, true), lattice(3, 7, 5, true), vectors(true, false)};
    const int counts[] = {5000, 1000, 500, 1000, 9000};

    for (int i = 0; i < 5; i++) {
        try_all(&t[i], counts[i], mt_key(1, 0, 0, i), "as in a program");
        mt_type_free(&t[i]);
    }
    mt_group("nested types of programs");
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    const long seed = mt_arg("seed", 1), cases = mt_arg("cases", 40), most = mt_arg("most", 1 << 20);
    char what[64];

    one_sided = OMPI_MAJOR_VERSION < 5 && !mt_flag("two-sided");
    programs();
    for (long i = 0; i < cases; i++) {
        uint64_t state = mt_key((int) seed, 0, 0, (int) i);
        int count, depth = 1 + (int) mt_below(&state, 4);
        mt_type_t t = mt_type_draw(&state, depth, &count, (size_t) most);
        snprintf(what, sizeof(what), "seed=%ld case %ld", seed, i);
        try_all(&t, count, mt_random(&state), what);
        mt_type_free(&t);
    }
    mt_group("%ld types from seed %ld", cases, seed);
    return mt_end();
}
