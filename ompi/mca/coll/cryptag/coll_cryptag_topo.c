/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The node map of a communicator, made from the table of leaders.
 */
#include "coll_cryptag_topo.h"

#include <stdlib.h>

static bool table_makes_sense(const int32_t *leader_of, int ranks)
{
    for (int i = 0; i < ranks; i++) {
        if (leader_of[i] < 0 || leader_of[i] > i || leader_of[leader_of[i]] != leader_of[i]) {
            return false;
        }
    }
    return true;
}

static bool allocate(ompi_coll_cryptag_topo_t *topo, int ranks)
{
    topo->node_of = malloc((size_t) ranks * sizeof(int));
    topo->local_of = malloc((size_t) ranks * sizeof(int));
    topo->by_node = malloc((size_t) ranks * sizeof(int));
    topo->node_first = calloc((size_t) ranks + 2, sizeof(int));
    return NULL != topo->node_of && NULL != topo->local_of && NULL != topo->by_node
           && NULL != topo->node_first;
}

ompi_coll_cryptag_topo_t *ompi_coll_cryptag_topo_new(const int32_t *leader_of, int ranks, int rank)
{
    ompi_coll_cryptag_topo_t *topo = NULL;

    if (!table_makes_sense(leader_of, ranks) || NULL == (topo = calloc(1, sizeof(*topo)))
        || !allocate(topo, ranks)) {
        ompi_coll_cryptag_topo_free(topo);
        return NULL;
    }
    topo->ranks = ranks;

    /* 1. number the nodes, count their ranks (node_first is shifted by one) */
    for (int i = 0; i < ranks; i++) {
        int node = leader_of[i] == i ? topo->nodes++ : topo->node_of[leader_of[i]];
        topo->node_of[i] = node;
        topo->local_of[i] = topo->node_first[node + 1]++;
    }

    /* 2. sizes and first places */
    topo->narrowest = ranks;
    for (int n = 0; n < topo->nodes; n++) {
        int size = topo->node_first[n + 1];
        topo->widest = size > topo->widest ? size : topo->widest;
        topo->narrowest = size < topo->narrowest ? size : topo->narrowest;
        topo->node_first[n + 1] += topo->node_first[n];
    }

    /* 3. ranks node by node */
    topo->in_order = true;
    for (int i = 0; i < ranks; i++) {
        int place = topo->node_first[topo->node_of[i]] + topo->local_of[i];
        topo->by_node[place] = i;
        topo->in_order = topo->in_order && place == i;
    }
    topo->rank = rank;
    topo->node = topo->node_of[rank];
    topo->local = topo->local_of[rank];
    return topo;
}

void ompi_coll_cryptag_topo_free(ompi_coll_cryptag_topo_t *topo)
{
    if (NULL == topo) {
        return;
    }
    free(topo->node_of);
    free(topo->local_of);
    free(topo->by_node);
    free(topo->node_first);
    free(topo);
}
