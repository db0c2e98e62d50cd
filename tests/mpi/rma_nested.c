/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One-sided communication of nested derived types, drawn at random (mt_types.h), byte for
 * byte, gaps included.
 *
 *   rma_nested [seed=S] [cases=N] [most=BYTES]
 *
 * A type describes the origin's memory, the target's, or both; else that is bytes.  Put and get;
 * fence, lock, and post and start.
 */
#include "mt_types.h"

typedef struct {
    const mt_type_t *t;
    int count, next, before;
    size_t n;                           /* packed bytes */
    unsigned char *packed, *again;
    mt_span_t from, window;             /* window.memory is MPI's */
    MPI_Aint origin;                    /* displacement of the type in it */
    MPI_Win win;
    MPI_Group to, of;                   /* the next rank, and the one before */
    const char *what;
} case_t;

static void same(const case_t *c, const mt_span_t *s, const char *call)
{
    const long at = mt_span_differs(c->t, s, c->packed, c->n);

    MT_CHECK(-1 == at, "%s: %s of %d of %s differs at %ld", c->what, call, c->count, c->t->text, at);
}

static void same_packed(const case_t *c, const void *p, const char *call)
{
    MT_CHECK(0 == memcmp(c->packed, p, c->n), "%s: %s of %d of %s: other bytes", c->what, call, c->count, c->t->text);
}

/* Fill our own window, while no other rank reads it. */
static void lay(case_t *c, bool data)
{
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mt_rank, 0, c->win));
    mt_span_poison(&c->window);
    if (data) {
        mt_span_put(c->t, &c->window, c->packed, c->n);
    }
    MT_MPI(MPI_Win_unlock(mt_rank, c->win));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static void look(case_t *c, const char *call, bool bytes)
{
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_Win_lock(MPI_LOCK_SHARED, mt_rank, 0, c->win));
    if (bytes) {
        same_packed(c, c->window.memory, call);
    } else {
        same(c, &c->window, call);
    }
    MT_MPI(MPI_Win_unlock(mt_rank, c->win));
}

static void put(case_t *c)
{
    const MPI_Datatype type = c->t->type;

    mt_span_poison(&c->from);
    mt_span_put(c->t, &c->from, c->packed, c->n);
    lay(c, false);
    MT_MPI(MPI_Win_fence(0, c->win));
    MT_MPI(MPI_Put(c->from.origin, c->count, type, c->next, c->origin, c->count, type, c->win));
    MT_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, c->win));
    look(c, "put", false);
    lay(c, false);
    MT_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, c->next, 0, c->win));
    MT_MPI(MPI_Put(c->packed, (int) c->n, MPI_BYTE, c->next, c->origin, c->count, type, c->win));
    MT_MPI(MPI_Win_unlock(c->next, c->win));
    look(c, "put of bytes", false);
    lay(c, false);
    MT_MPI(MPI_Win_post(c->of, 0, c->win));
    MT_MPI(MPI_Win_start(c->to, 0, c->win));
    MT_MPI(MPI_Put(c->from.origin, c->count, type, c->next, 0, (int) c->n, MPI_BYTE, c->win));
    MT_MPI(MPI_Win_complete(c->win));
    MT_MPI(MPI_Win_wait(c->win));
    look(c, "put as bytes", true);
}

static void get(case_t *c)
{
    const MPI_Datatype type = c->t->type;

    lay(c, true);
    mt_span_poison(&c->from);
    MT_MPI(MPI_Win_fence(0, c->win));
    MT_MPI(MPI_Get(c->from.origin, c->count, type, c->next, c->origin, c->count, type, c->win));
    MT_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, c->win));
    same(c, &c->from, "get");
    MT_MPI(MPI_Win_lock(MPI_LOCK_SHARED, c->next, 0, c->win));
    MT_MPI(MPI_Get(c->again, (int) c->n, MPI_BYTE, c->next, c->origin, c->count, type, c->win));
    MT_MPI(MPI_Win_unlock(c->next, c->win));
    same_packed(c, c->again, "get as bytes");
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mt_rank, 0, c->win));
    memcpy(c->window.memory, c->packed, c->n);
    MT_MPI(MPI_Win_unlock(mt_rank, c->win));
    mt_span_poison(&c->from);
    MT_MPI(MPI_Win_post(c->of, 0, c->win));
    MT_MPI(MPI_Win_start(c->to, 0, c->win));
    MT_MPI(MPI_Get(c->from.origin, c->count, type, c->next, 0, (int) c->n, MPI_BYTE, c->win));
    MT_MPI(MPI_Win_complete(c->win));
    MT_MPI(MPI_Win_wait(c->win));
    same(c, &c->from, "get of bytes");
}

static void try_one(uint64_t state, size_t most, const char *what)
{
    const int depth = 1 + (int) mt_below(&state, 4);
    case_t c = {.next = (mt_rank + 1) % mt_size, .before = (mt_rank + mt_size - 1) % mt_size, .what = what};
    mt_type_t t = mt_type_draw(&state, depth, &c.count, most);
    mt_span_t shape = mt_span_new(&t, c.count);
    MPI_Group world;

    c.t = &t;
    c.n = t.size * (size_t) c.count;
    c.origin = shape.origin - shape.memory;
    c.packed = malloc(c.n);
    c.again = malloc(c.n);
    c.from = mt_span_new(&t, c.count);
    c.window.bytes = shape.bytes;
    MT_CHECK(NULL != c.packed && NULL != c.again && c.n <= shape.bytes, "memory");
    MT_MPI(MPI_Win_allocate((MPI_Aint) shape.bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &c.window.memory, &c.win));
    c.window.origin = c.window.memory + c.origin;
    mt_span_free(&shape);
    MT_MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
    MT_MPI(MPI_Group_incl(world, 1, &c.next, &c.to));
    MT_MPI(MPI_Group_incl(world, 1, &c.before, &c.of));
    mt_fill(c.packed, c.n, mt_random(&state));
    put(&c);
    get(&c);
    MT_MPI(MPI_Group_free(&world));
    MT_MPI(MPI_Group_free(&c.to));
    MT_MPI(MPI_Group_free(&c.of));
    MT_MPI(MPI_Win_free(&c.win));
    mt_span_free(&c.from);
    free(c.packed);
    free(c.again);
    mt_type_free(&t);
}

int main(int argc, char **argv)
{
    char what[64];

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    const long seed = mt_arg("seed", 1), cases = mt_arg("cases", 30), most = mt_arg("most", 300000);

    for (long i = 0; i < cases; i++) {
        snprintf(what, sizeof(what), "seed=%ld case %ld", seed, i);
        try_one(mt_key((int) seed, 0, 0, (int) i), (size_t) most, what);
    }
    mt_group("%ld types from seed %ld", cases, seed);
    return mt_end();
}
