/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The nodes of a communicator's ranks.  Every rank computes the same: nodes are
 * numbered in the order of their lowest rank, and within a node ranks are in
 * ascending order.
 *
 *     ranks 0 1 2 3 4 5 on nodes A B A B A C
 *     by_node    = 0 2 4 | 1 3 | 5
 *     node_first = 0       3     5   6
 */
#ifndef COLL_CRYPTAG_TOPO_H
#define COLL_CRYPTAG_TOPO_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ompi_coll_cryptag_topo {
    int ranks, nodes;
    int rank, node, local;      /* ourselves: rank, node, index within the node */
    int *node_of;               /* [ranks] */
    int *local_of;              /* [ranks] index within its node */
    int *by_node;               /* [ranks] ranks, node by node */
    int *node_first;            /* [nodes + 1] into by_node */
    int widest, narrowest;      /* most and fewest ranks on a node */
    bool in_order;              /* by_node is 0, 1, 2 ...: block mapping */
} ompi_coll_cryptag_topo_t;

/* leader_of[i]: the lowest rank on the node of rank i.  NULL if out of memory
 * or if leader_of is not a valid table. */
ompi_coll_cryptag_topo_t *ompi_coll_cryptag_topo_new(const int32_t *leader_of, int ranks, int rank);
void ompi_coll_cryptag_topo_free(ompi_coll_cryptag_topo_t *topo);

static inline int ompi_coll_cryptag_node_size(const ompi_coll_cryptag_topo_t *topo, int node)
{
    return topo->node_first[node + 1] - topo->node_first[node];
}

/* The rank with index `local` on `node`. */
static inline int ompi_coll_cryptag_rank_at(const ompi_coll_cryptag_topo_t *topo, int node, int local)
{
    return topo->by_node[topo->node_first[node] + local];
}

static inline bool ompi_coll_cryptag_same_node(const ompi_coll_cryptag_topo_t *topo, int a, int b)
{
    return topo->node_of[a] == topo->node_of[b];
}

#endif
