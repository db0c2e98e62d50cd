/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One-sided communication: put, get, accumulate and the atomics under fence,
 * post-start-complete-wait, lock and lock_all; request-based; derived types;
 * windows of all four makes; zero to 1 MiB.
 */
#include "mt.h"

enum { CREATE, ALLOCATE, DYNAMIC, MAKES };
#define ROOM ((MPI_Aint) 1 << 21)

static unsigned char *base;             /* our own window */
static MPI_Win win;
static MPI_Aint *at;                    /* displacement of each rank's window */
static int next, prev;

static void make(int how)
{
    MPI_Aint mine = 0;
    base = NULL;
    switch (how) {
    case CREATE:
        base = malloc((size_t) ROOM);
        MT_MPI(MPI_Win_create(base, ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        break;
    case ALLOCATE:
        MT_MPI(MPI_Win_allocate(ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        break;
    default:
        base = malloc((size_t) ROOM);
        MT_MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        MT_MPI(MPI_Win_attach(win, base, ROOM));
        MT_MPI(MPI_Get_address(base, &mine));
        break;
    }
    MT_MPI(MPI_Allgather(&mine, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD));
    memset(base, 0, (size_t) ROOM);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static void unmake(int how)
{
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (DYNAMIC == how) {
        MT_MPI(MPI_Win_detach(win, base));
    }
    MT_MPI(MPI_Win_free(&win));
    if (ALLOCATE != how) {
        free(base);
    }
}

static void fence(size_t n, int seed)
{
    unsigned char *p = malloc(n + 1), *q = malloc(n + 1);
    mt_fill(p, n, mt_key(seed, mt_rank, 1, 0));
    MT_MPI(MPI_Win_fence(0, win));
    MT_MPI(MPI_Put(p, (int) n, MPI_BYTE, next, at[next], (int) n, MPI_BYTE, win));
    MT_MPI(MPI_Win_fence(0, win));
    MT_SAME(base, n, mt_key(seed, prev, 1, 0), "put, fence");
    MT_MPI(MPI_Get(q, (int) n, MPI_BYTE, next, at[next], (int) n, MPI_BYTE, win));
    MT_MPI(MPI_Win_fence(0, win));
    MT_SAME(q, n, mt_key(seed, mt_rank, 1, 0), "get, fence");
    free(p);
    free(q);
}

static void post_start(size_t n, int seed)
{
    unsigned char *p = malloc(n + 1);
    MPI_Group world, to, from;
    MT_MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
    MT_MPI(MPI_Group_incl(world, 1, &next, &to));
    MT_MPI(MPI_Group_incl(world, 1, &prev, &from));
    mt_fill(p, n, mt_key(seed, mt_rank, 2, 0));
    MT_MPI(MPI_Win_post(from, 0, win));
    MT_MPI(MPI_Win_start(to, 0, win));
    MT_MPI(MPI_Put(p, (int) n, MPI_BYTE, next, at[next], (int) n, MPI_BYTE, win));
    MT_MPI(MPI_Win_complete(win));
    MT_MPI(MPI_Win_wait(win));
    MT_SAME(base, n, mt_key(seed, prev, 2, 0), "put, post-start");
    MT_MPI(MPI_Group_free(&to));
    MT_MPI(MPI_Group_free(&from));
    MT_MPI(MPI_Group_free(&world));
    free(p);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* Each rank owns a slot in every window. */
static void locks(size_t n, int seed)
{
    unsigned char *p = malloc(n + 1), *q = malloc(n + 1);
    MPI_Request req[2];
    if (n * (size_t) mt_size > (size_t) ROOM) {
        n = (size_t) ROOM / (size_t) mt_size;
    }
    mt_fill(p, n, mt_key(seed, mt_rank, 3, 0));
    for (int t = 0; t < mt_size; t++) {
        MT_MPI(MPI_Win_lock(t % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, t, 0, win));
        MT_MPI(MPI_Put(p, (int) n, MPI_BYTE, t, at[t] + (MPI_Aint) n * mt_rank, (int) n, MPI_BYTE, win));
        MT_MPI(MPI_Win_unlock(t, win));
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_Win_lock_all(0, win));
    for (int s = 0; s < mt_size; s++) {         /* what everybody wrote, read from the neighbor's window */
        MT_MPI(MPI_Get(q, (int) n, MPI_BYTE, next, at[next] + (MPI_Aint) n * s, (int) n, MPI_BYTE, win));
        MT_MPI(MPI_Win_flush(next, win));
        MT_SAME(q, n, mt_key(seed, s, 3, 0), "get, lock_all and flush");
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    mt_fill(p, n, mt_key(seed, mt_rank, 4, 0));
    MT_MPI(MPI_Rput(p, (int) n, MPI_BYTE, next, at[next] + (MPI_Aint) n * mt_rank, (int) n, MPI_BYTE, win, &req[0]));
    MT_MPI(MPI_Wait(&req[0], MPI_STATUS_IGNORE));
    MT_MPI(MPI_Win_flush_all(win));
    MT_MPI(MPI_Rget(q, (int) n, MPI_BYTE, next, at[next] + (MPI_Aint) n * mt_rank, (int) n, MPI_BYTE, win, &req[1]));
    MT_MPI(MPI_Wait(&req[1], MPI_STATUS_IGNORE));
    MT_SAME(q, n, mt_key(seed, mt_rank, 4, 0), "rput and rget");
    MT_MPI(MPI_Win_unlock_all(win));
    free(p);
    free(q);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static void accumulate(int ints)
{
    int64_t *p = malloc(((size_t) ints + 1) * 8), *q = malloc(((size_t) ints + 1) * 8), *own = (int64_t *) base;
    memset(base, 0, (size_t) ROOM);
    MT_MPI(MPI_Win_fence(0, win));
    for (int i = 0; i < ints; i++) {
        p[i] = (int64_t) (mt_rank + 1) * (i + 1);
    }
    for (int t = 0; t < mt_size; t++) {
        MT_MPI(MPI_Accumulate(p, ints, MPI_INT64_T, t, at[t], ints, MPI_INT64_T, MPI_SUM, win));
    }
    MT_MPI(MPI_Win_fence(0, win));
    for (int i = 0; i < ints; i++) {
        MT_CHECK(own[i] == (int64_t) mt_size * (mt_size + 1) / 2 * (i + 1), "accumulate, element %d", i);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));        /* all have read */
    MT_MPI(MPI_Get_accumulate(p, ints, MPI_INT64_T, q, ints, MPI_INT64_T, next, at[next], ints, MPI_INT64_T, MPI_REPLACE, win));
    MT_MPI(MPI_Win_fence(0, win));
    for (int i = 0; i < ints; i++) {
        MT_CHECK(q[i] == (int64_t) mt_size * (mt_size + 1) / 2 * (i + 1) && own[i] == (int64_t) (prev + 1) * (i + 1),
                 "get_accumulate, element %d", i);
    }
    free(p);
    free(q);
}

/* All ranks add to all and fetch the old values, several times at once, during long messages, of which the next one
 * begins when the one before has ended. */
static void crowded(int ints)
{
    enum { TIMES = 4 };
    const int64_t all = (int64_t) TIMES * mt_size * (mt_size + 1) / 2;
    int64_t *p = malloc((size_t) ints * 8), *q = malloc((size_t) TIMES * (size_t) mt_size * (size_t) ints * 8), *own = (int64_t *) base;
    unsigned char *out = malloc((size_t) ints * 8), *in = malloc((size_t) TIMES * (size_t) ints * 8);
    MPI_Request requests[2 * TIMES];

    mt_fill(out, (size_t) ints * 8, mt_key(ints, mt_rank, 2, 0));
    memset(base, 0, (size_t) ROOM);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < ints; i++) {
        p[i] = (int64_t) (mt_rank + 1) * (i + 1);
    }
    MT_MPI(MPI_Win_lock_all(0, win));
    for (int t = 0; t < TIMES; t++) {
        MT_MPI(MPI_Irecv(in + (size_t) t * (size_t) ints * 8, ints * 8, MPI_BYTE, prev, t, MPI_COMM_WORLD, &requests[2 * t]));
        MT_MPI(MPI_Isend(out, ints * 8, MPI_BYTE, next, t, MPI_COMM_WORLD, &requests[2 * t + 1]));
        for (int r = 0; r < mt_size; r++) {
            MT_MPI(MPI_Get_accumulate(p, ints, MPI_INT64_T, q + (size_t) (t * mt_size + r) * (size_t) ints, ints, MPI_INT64_T, r, at[r],
                                      ints, MPI_INT64_T, MPI_SUM, win));
        }
    }
    MT_MPI(MPI_Win_unlock_all(win));
    MT_MPI(MPI_Waitall(2 * TIMES, requests, MPI_STATUSES_IGNORE));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < ints; i++) {
        MT_CHECK(own[i] == all * (i + 1), "crowded, element %d: %lld", i, (long long) own[i]);
        for (int k = 0; k < TIMES * mt_size; k++) {
            const int64_t was = q[(size_t) k * (size_t) ints + (size_t) i];

            MT_CHECK(0 == was % (i + 1) && was >= 0 && was / (i + 1) < all, "crowded, element %d was %lld", i, (long long) was);
        }
    }
    for (int t = 0; t < TIMES; t++) {
        MT_SAME(in + (size_t) t * (size_t) ints * 8, (size_t) ints * 8, mt_key(ints, prev, 2, 0), "crowded");
    }
    free(p);
    free(q);
    free(out);
    free(in);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* A shared counter by fetch_and_op and one by compare_and_swap. */
static void atomics(int times)
{
    int64_t one = 1, old, last = -1, want, fresh, *own = (int64_t *) base;
    MT_MPI(MPI_Win_fence(0, win));
    memset(base, 0, 64);
    MT_MPI(MPI_Win_fence(0, win));
    MT_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    MT_MPI(MPI_Win_lock_all(0, win));
    for (int i = 0; i < times; i++) {
        MT_MPI(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, at[0], MPI_SUM, win));
        MT_MPI(MPI_Win_flush(0, win));
        MT_CHECK(old > last, "fetch_and_op gave %lld after %lld", (long long) old, (long long) last);
        last = old;
        for (want = 0;; want = old) {
            fresh = want + 1;
            MT_MPI(MPI_Compare_and_swap(&fresh, &want, &old, MPI_INT64_T, 0, at[0] + 8, win));
            MT_MPI(MPI_Win_flush(0, win));
            if (old == want) {
                break;
            }
        }
    }
    MT_MPI(MPI_Win_unlock_all(win));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == mt_rank) {
        MT_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        MT_CHECK(own[0] == (int64_t) times * mt_size && own[1] == (int64_t) times * mt_size, "%lld %lld of %d",
                 (long long) own[0], (long long) own[1], times * mt_size);
        MT_MPI(MPI_Win_unlock(0, win));
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* A vector at the origin, another one at the target. */
static void strided(int n)
{
    MPI_Datatype two, three;
    int *p = calloc((size_t) n * 2, 4), *own = (int *) base;
    MT_MPI(MPI_Type_vector(n, 1, 2, MPI_INT, &two));
    MT_MPI(MPI_Type_vector(n, 1, 3, MPI_INT, &three));
    MT_MPI(MPI_Type_commit(&two));
    MT_MPI(MPI_Type_commit(&three));
    memset(base, 0xff, (size_t) ROOM);
    for (int i = 0; i < n; i++) {
        p[2 * i] = mt_rank * 100000 + i;
    }
    MT_MPI(MPI_Win_fence(0, win));
    MT_MPI(MPI_Put(p, 1, two, next, at[next], 1, three, win));
    MT_MPI(MPI_Win_fence(0, win));
    for (int i = 0; i < 3 * n - 2; i++) {
        MT_CHECK(own[i] == (i % 3 ? -1 : prev * 100000 + i / 3), "strided put, integer %d", i);
    }
    MT_MPI(MPI_Type_free(&two));
    MT_MPI(MPI_Type_free(&three));
    free(p);
}

int main(int argc, char **argv)
{
    static const char *names[] = {"create", "allocate", "dynamic"};
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    next = (mt_rank + 1) % mt_size;
    prev = (mt_rank + mt_size - 1) % mt_size;
    at = malloc((size_t) mt_size * sizeof(*at));
    for (int how = 0; how < MAKES; how++) {
        make(how);
        for (int i = 0; i < mt_few_sizes_count; i++) {
            fence(mt_few_sizes[i], i);
            post_start(mt_few_sizes[i], i);
            locks(mt_few_sizes[i], i);
        }
        accumulate(3);
        accumulate(1000);
        accumulate(100000);
        crowded(100);
        crowded(20000);
        crowded(100000);
        strided(1000);
        strided(50000);
        atomics(50);
        unmake(how);
        mt_group("windows by %s", names[how]);
    }
    free(at);
    return mt_end();
}
