/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Collectives of nested derived types, drawn at random (mt_types.h), byte for byte, gaps
 * included, with every algorithm.
 *
 *     nested [seed=S] [cases=N] [most=BYTES] MAP...
 *
 * What is sent lies in memory as one type says, and what is received as the same type or
 * as packed bytes.
 */
#include "mt_types.h"
#include "cryptag.h"

typedef struct {
    MPI_Comm comm;
    int p, rank, part;                  /* elements of a block */
    const mt_type_t *t;
    size_t block;                       /* packed bytes of one */
    unsigned char *wanted, *packed;     /* p blocks */
    mt_span_t from, to;                 /* room for p blocks */
    uint64_t key;
    char what[96];
} case_t;

/* Block `from` for `to`: packed bytes. */
static void fill(const case_t *c, unsigned char *p, int from, int to)
{
    mt_fill(p, c->block, c->key + (uint64_t) (from * MAP_RANKS + to) * 0x9e3779b97f4a7c15u);
}

static void same(const case_t *c, const mt_span_t *s, size_t n, const char *call)
{
    const long at = mt_span_differs(c->t, s, c->wanted, n);

    MT_CHECK(-1 == at, "%s: %s of %d of %s differs at %ld", c->what, call, c->part, c->t->text, at);
}

static void same_packed(const case_t *c, size_t n, const char *call)
{
    MT_CHECK(0 == memcmp(c->wanted, c->packed, n), "%s: %s of %d of %s: other bytes", c->what, call, c->part, c->t->text);
}

/* ---- one case of each collective ---- */

static void gather(case_t *c)
{
    const size_t all = (size_t) c->p * c->block;
    const MPI_Datatype type = c->t->type;
    unsigned char *own = c->wanted + (size_t) c->rank * c->block;
    int counts[MAP_RANKS], places[MAP_RANKS], total = 0;

    for (int r = 0; r < c->p; r++) {
        fill(c, c->wanted + (size_t) r * c->block, r, 0);
        counts[r] = 0 == (r + c->part) % 3 ? 0 : c->part - r % c->part;
        places[r] = total;
        total += counts[r];
    }
    mt_span_poison(&c->from);
    mt_span_poison(&c->to);
    mt_span_put(c->t, &c->from, own, c->block);
    MT_MPI(MPI_Allgather(c->from.origin, c->part, type, c->to.origin, c->part, type, c->comm));
    same(c, &c->to, all, "all-gather");
    MT_MPI(MPI_Allgather(c->from.origin, c->part, type, c->packed, (int) c->block, MPI_BYTE, c->comm));
    same_packed(c, all, "all-gather into bytes");
    mt_span_poison(&c->to);
    MT_MPI(MPI_Allgather(own, (int) c->block, MPI_BYTE, c->to.origin, c->part, type, c->comm));
    same(c, &c->to, all, "all-gather of bytes");
    for (int r = 0, at = 0; r < c->p; at += counts[r++]) {      /* uneven: only the first ones of a block */
        memmove(c->wanted + (size_t) at * c->t->size, c->wanted + (size_t) r * c->block, (size_t) counts[r] * c->t->size);
    }
    mt_span_poison(&c->to);
    MT_MPI(MPI_Allgatherv(c->from.origin, counts[c->rank], type, c->to.origin, counts, places, type, c->comm));
    same(c, &c->to, (size_t) total * c->t->size, "allgatherv");
}

static void broadcast(case_t *c, int root)
{
    const size_t all = (size_t) c->p * c->block;

    fill(c, c->wanted, root, 0);
    for (size_t done = c->block; done < all; done += c->block) {
        fill(c, c->wanted + done, root, 1 + (int) (done / c->block));
    }
    mt_span_poison(&c->to);
    if (c->rank == root) {
        mt_span_put(c->t, &c->to, c->wanted, all);
    }
    MT_MPI(MPI_Bcast(c->to.origin, c->p * c->part, c->t->type, root, c->comm));
    same(c, &c->to, all, "broadcast");
}

static void exchange(case_t *c)
{
    const size_t all = (size_t) c->p * c->block;
    const MPI_Datatype type = c->t->type;

    for (int r = 0; r < c->p; r++) {
        fill(c, c->packed + (size_t) r * c->block, c->rank, r);
        fill(c, c->wanted + (size_t) r * c->block, r, c->rank);
    }
    mt_span_poison(&c->from);
    mt_span_poison(&c->to);
    mt_span_put(c->t, &c->from, c->packed, all);
    MT_MPI(MPI_Alltoall(c->from.origin, c->part, type, c->to.origin, c->part, type, c->comm));
    same(c, &c->to, all, "all-to-all");
    mt_span_poison(&c->to);
    MT_MPI(MPI_Alltoall(c->packed, (int) c->block, MPI_BYTE, c->to.origin, c->part, type, c->comm));
    same(c, &c->to, all, "all-to-all of bytes");
    MT_MPI(MPI_Alltoall(c->from.origin, c->part, type, c->packed, (int) c->block, MPI_BYTE, c->comm));
    same_packed(c, all, "all-to-all into bytes");
    MT_MPI(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, c->from.origin, c->part, type, c->comm));
    same(c, &c->from, all, "all-to-all in place");
}

/* ---- every algorithm ---- */

static void try_all(case_t *c, const char *named)
{
    const char *words[ALGORITHMS_MOST];
    const int bcasts = cryptag_algorithms("bcast", words), alltoalls = cryptag_algorithms("alltoall", words);

    for (int a = 0; a < algorithms; a++) {
        if (ALGORITHM_HOP == a) {
            continue;
        }
        snprintf(c->what, sizeof(c->what), "%s, %s", named, algorithm_name[a]);
        cryptag_set("allgather_algorithm", a);
        gather(c);
    }
    cryptag_set("allgather_algorithm", 0);
    for (int a = 0; a < bcasts; a++) {
        snprintf(c->what, sizeof(c->what), "%s, algorithm %d", named, a);
        cryptag_set("bcast_algorithm", a);
        broadcast(c, (int) (c->key % (uint64_t) c->p));
    }
    cryptag_set("bcast_algorithm", 0);
    for (int a = 0; a < alltoalls; a++) {
        snprintf(c->what, sizeof(c->what), "%s, algorithm %d", named, a);
        cryptag_set("alltoall_algorithm", a);
        exchange(c);
    }
    cryptag_set("alltoall_algorithm", 0);
}

/* Returns whether the type fits a block a rank. */
static bool try_one(MPI_Comm comm, uint64_t state, size_t most, const char *named)
{
    const int depth = 1 + (int) mt_below(&state, 4);
    int count;
    mt_type_t t = mt_type_draw(&state, depth, &count, most);
    case_t c = { .comm = comm, .t = &t };

    MPI_Comm_size(comm, &c.p);
    MPI_Comm_rank(comm, &c.rank);
    c.part = count / c.p;
    if (c.part > 0) {
        c.block = (size_t) c.part * t.size;
        c.key = mt_random(&state);
        c.wanted = malloc((size_t) c.p * c.block);
        c.packed = mt_alloc((size_t) c.p * c.block);
        c.from = mt_span_new(&t, c.p * c.part);
        c.to = mt_span_new(&t, c.p * c.part);
        MT_CHECK(NULL != c.wanted && NULL != c.packed, "memory");
        try_all(&c, named);
        mt_span_free(&c.from);
        mt_span_free(&c.to);
        free(c.wanted);
        free(c.packed);
    }
    mt_type_free(&t);
    return c.part > 0;
}

int main(int argc, char **argv)
{
    const char *maps[32];
    metrics_t added;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    cryptag_start();
    const long seed = mt_arg("seed", 1), cases = mt_arg("cases", 20), most = mt_arg("most", 60000);
    const int count = map_arguments(argc, argv, maps, 32);

    for (int i = 0; i < count; i++) {
        MPI_Comm comm = map_comm(maps[i]);
        long done = 0;

        CRYPTAG_COUNT(added, for (long k = 0; done < cases && MPI_COMM_NULL != comm; k++) {
            char named[48];

            MT_CHECK(k < 20 * cases, "only %ld types of %ld were small enough", done, k);
            snprintf(named, sizeof(named), "seed=%ld, type %ld", seed, k);
            done += try_one(comm, mt_key((int) seed, i, 0, (int) k), (size_t) most, named);
        });
        if (MPI_COMM_NULL != comm) {
            MT_CHECK(done == cases, "%ld cases", done);
            MT_MPI(MPI_Allreduce(MPI_IN_PLACE, added, METRICS, MPI_UNSIGNED_LONG_LONG, MPI_SUM, comm));
            MT_CHECK(added[0] > 0, "nothing was sent");
            MT_CHECK(mt_sealed() == (added[2] > 0) && mt_sealed() == (added[4] > 0), "sealed %llu, opened %llu", added[2], added[4]);
            MT_MPI(MPI_Comm_free(&comm));
        }
        mt_group("%s: %ld types from seed %ld", maps[i], cases, seed);
    }
    cryptag_stop();
    return mt_end();
}
