/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which neighbors of a stencil are on other nodes: counted rank by rank, as
 * many as there are.
 */
#include <stdlib.h>

#include "model.h"

#define DIMENSIONS_MAX 4

/* The most even factors of `ranks`, as MPI_Dims_create is meant to choose
 * them: each time the largest factor not above the root of what is left. */
static void grid(size_t ranks, int dimensions, size_t *extent)
{
    for (int d = 0; d < dimensions; ++d) {
        int left = dimensions - d;
        size_t best = 1;
        for (size_t factor = 1; factor <= ranks; ++factor) {
            double power = 1;
            for (int i = 0; i < left; ++i) {
                power *= (double) factor;
            }
            if (power > (double) ranks) {
                break;
            }
            best = 0 == ranks % factor ? factor : best;
        }
        extent[d] = 1 == left ? ranks : best;
        ranks /= extent[d];
    }
}

/* Messages of one rank that leave its node. */
static size_t leaving(size_t rank, size_t ranks, const size_t *extent, int dimensions)
{
    size_t count = 0, stride = 1;

    for (int d = dimensions - 1; 0 <= d; --d) {
        size_t place = rank / stride % extent[d];
        size_t next = rank + stride * ((place + 1) % extent[d]) - stride * place;
        size_t previous = rank + stride * ((place + extent[d] - 1) % extent[d]) - stride * place;
        count += (size_t) (next / ranks != rank / ranks) + (size_t) (previous / ranks != rank / ranks);
        stride *= extent[d];
    }
    return count;
}

mpicrypt_traffic_t mpicrypt_stencil_traffic(size_t nodes, size_t ranks, int dimensions)
{
    size_t extent[DIMENSIONS_MAX], of_rank = 0, of_node = 0;

    grid(nodes * ranks, dimensions, extent);
    for (size_t node = 0; node < nodes; ++node) {
        size_t sum = 0;
        for (size_t rank = node * ranks; rank < (node + 1) * ranks; ++rank) {
            size_t count = leaving(rank, ranks, extent, dimensions);
            sum += count;
            of_rank = count > of_rank ? count : of_rank;
        }
        of_node = sum > of_node ? sum : of_node;
    }
    return (mpicrypt_traffic_t){(double) of_rank, (double) of_node};
}
