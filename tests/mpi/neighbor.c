/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Neighborhood collectives, blocking, non-blocking and persistent, on
 * Cartesian grids, graphs and random distributed graphs with repeated and own
 * edges.  The k-th message between two ranks must be the k-th of its sender.
 */
#include "mt_ways.h"

enum { MAX = 512 };
static int seed;

typedef struct {
    MPI_Comm comm;
    int rank, in, out, from[MAX], to[MAX];
    int nth_in[MAX], nth_out[MAX];      /* its index among the edges between those two */
} graph_t;

static void number(const int *who, int *nth, int n)
{
    for (int i = 0; i < n; i++) {
        nth[i] = 0;
        for (int k = 0; k < i; k++) {
            nth[i] += who[k] == who[i];
        }
    }
}

/* What goes from a to b over their nth edge: some bytes of this pattern. */
static uint64_t key(int a, int b, int nth) { return mt_key(seed, a, b, nth); }
static int bytes(int n, int a, int b, int nth) { return n + (a * 5 + b * 3 + nth) % 7; }

static void run(const graph_t *g, int n)
{
    size_t step = (size_t) n + 8, width = (size_t) (g->in > g->out ? g->in : g->out) + 1;
    unsigned char *p = malloc(width * step), *q = calloc(width, step);
    int sc[MAX], sd[MAX], rc[MAX], rd[MAX];
    MPI_Aint sa[MAX], ra[MAX];
    MPI_Datatype types[MAX];
    MT_CHECK(NULL != p && NULL != q, "memory");

    mt_fill(p, (size_t) n, key(g->rank, -1, 0));
    MT_CALL(Neighbor_allgather, Ineighbor_allgather, p, n, MPI_BYTE, q, n, MPI_BYTE, g->comm);
    for (int i = 0; i < g->in; i++) {
        if (MPI_PROC_NULL != g->from[i]) {
            MT_SAME(q + (size_t) i * (size_t) n, (size_t) n, key(g->from[i], -1, 0), "neighbor_allgather");
        }
    }
    for (int i = 0; i < g->in; i++) {
        rc[i] = MPI_PROC_NULL == g->from[i] ? 0 : bytes(n, g->from[i], 0, 0);
        rd[i] = i * (int) step;
    }
    int own = bytes(n, g->rank, 0, 0);
    mt_fill(p, (size_t) own, key(g->rank, -2, 0));
    MT_CALL(Neighbor_allgatherv, Ineighbor_allgatherv, p, own, MPI_BYTE, q, rc, rd, MPI_BYTE, g->comm);
    for (int i = 0; i < g->in; i++) {
        MT_SAME(q + rd[i], (size_t) rc[i], key(g->from[i], -2, 0), "neighbor_allgatherv");
    }
    for (int i = 0; i < g->out; i++) {
        mt_fill(p + (size_t) i * (size_t) n, (size_t) n, key(g->rank, g->to[i], g->nth_out[i]));
    }
    MT_CALL(Neighbor_alltoall, Ineighbor_alltoall, p, n, MPI_BYTE, q, n, MPI_BYTE, g->comm);
    for (int i = 0; i < g->in; i++) {
        if (MPI_PROC_NULL != g->from[i]) {
            MT_SAME(q + (size_t) i * (size_t) n, (size_t) n, key(g->from[i], g->rank, g->nth_in[i]), "neighbor_alltoall");
        }
    }
    for (int i = 0; i < MAX; i++) {
        types[i] = MPI_BYTE;
    }
    for (int i = 0; i < g->out; i++) {
        sc[i] = MPI_PROC_NULL == g->to[i] ? 0 : bytes(n, g->rank, g->to[i], g->nth_out[i]);
        sd[i] = i * (int) step;
        sa[i] = sd[i];
        mt_fill(p + sd[i], (size_t) sc[i], key(g->rank, g->to[i], 10 + g->nth_out[i]));
    }
    for (int i = 0; i < g->in; i++) {
        rc[i] = MPI_PROC_NULL == g->from[i] ? 0 : bytes(n, g->from[i], g->rank, g->nth_in[i]);
        ra[i] = rd[i];
    }
    for (int w = 0; w < 2; w++) {
        memset(q, 0, width * step);
        if (w) {
            MT_CALL(Neighbor_alltoallw, Ineighbor_alltoallw, p, sc, sa, types, q, rc, ra, types, g->comm);
        } else {
            MT_CALL(Neighbor_alltoallv, Ineighbor_alltoallv, p, sc, sd, MPI_BYTE, q, rc, rd, MPI_BYTE, g->comm);
        }
        for (int i = 0; i < g->in; i++) {
            MT_SAME(q + rd[i], (size_t) rc[i], key(g->from[i], g->rank, 10 + g->nth_in[i]), w ? "neighbor_alltoallw" : "neighbor_alltoallv");
        }
    }
    free(p);
    free(q);
}

static void all_ways(graph_t *g, const char *name)
{
    MT_MPI(MPI_Comm_rank(g->comm, &g->rank));
    number(g->from, g->nth_in, g->in);
    number(g->to, g->nth_out, g->out);
    for (mt_way = 0; mt_way < MT_WAYS; mt_way++) {
        for (int i = 0; i < mt_few_sizes_count; i++) {
            if (mt_few_sizes[i] < 400000) {
                seed++;
                run(g, (int) mt_few_sizes[i]);
            }
        }
    }
    MT_MPI(MPI_Comm_free(&g->comm));
    mt_group("%s", name);
}

/* Every rank knows every edge: they follow from the seed. */
static void random_graph(graph_t *g, int which)
{
    uint64_t state = mt_key(which, 0, 0, 0);
    int edges = mt_size * 3;
    static int weights[MAX];            /* all alike: gcc takes MPI_UNWEIGHTED for an address */
    g->in = g->out = 0;
    for (int e = 0; e < edges; e++) {
        int a = (int) mt_below(&state, (size_t) mt_size), b = (int) mt_below(&state, (size_t) mt_size);
        if (a == mt_rank && g->out < MAX) {
            g->to[g->out++] = b;
        }
        if (b == mt_rank && g->in < MAX) {
            g->from[g->in++] = a;
        }
    }
    MT_MPI(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, g->in, g->from, weights, g->out, g->to, weights,
                                          MPI_INFO_NULL, 0, &g->comm));
}

static void grid(graph_t *g, int dims, int periodic)
{
    int shape[3] = {0, 0, 0}, period[3] = {periodic, periodic, periodic};
    MT_MPI(MPI_Dims_create(mt_size, dims, shape));
    MT_MPI(MPI_Cart_create(MPI_COMM_WORLD, dims, shape, period, 0, &g->comm));
    g->in = g->out = 2 * dims;
    for (int d = 0; d < dims; d++) {
        MT_MPI(MPI_Cart_shift(g->comm, d, 1, &g->from[2 * d], &g->from[2 * d + 1]));
        g->to[2 * d] = g->from[2 * d];
        g->to[2 * d + 1] = g->from[2 * d + 1];
    }
}

int main(int argc, char **argv)
{
    static graph_t g;
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    grid(&g, 1, 0);
    all_ways(&g, "a line");
    grid(&g, 2, 0);
    all_ways(&g, "a grid");
    if (mt_size > 2) {                  /* with two, both sides are the same neighbor: order is open */
        grid(&g, 1, 1);
        all_ways(&g, "a ring");
    }
    for (int i = 0; i < 5; i++) {
        random_graph(&g, i);
        all_ways(&g, "a random distributed graph");
    }
    return mt_end();
}
