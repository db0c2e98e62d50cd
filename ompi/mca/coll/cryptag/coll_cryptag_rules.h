/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which algorithm for which operation, topology and size: a table of rules,
 * built in or read from coll_cryptag_rules_file.  The last rule that applies
 * counts, so tables are written from small to large:
 *
 *     # operation  mapping  nodes  ranks-a-node  bytes  algorithm
 *       allgather  any      2      1             0      hs1
 *       allgather  any      2      1             2048   hs2
 *       allgather  cyclic   2      2             65536  c-ring
 *
 * nodes, ranks-a-node (the largest on any node) and bytes (of a rank's block, of the whole broadcast, of a
 * block between two ranks; 0 for alltoallv) are minima; bytes may end in k or m.  mapping: any, block (ranks
 * of a node are consecutive) or cyclic (anything else).
 */
#ifndef COLL_CRYPTAG_RULES_H
#define COLL_CRYPTAG_RULES_H

#include "coll_cryptag_call.h"

typedef struct ompi_coll_cryptag_rules ompi_coll_cryptag_rules_t;

/* The built-in table for btl/crypt or for pml/crypt, followed by the rules of the file (NULL: no
 * file).  Returns NULL if the file cannot be used; `why` then gives the reason, with the line. */
ompi_coll_cryptag_rules_t *ompi_coll_cryptag_rules_new(bool over_btl, const char *file, char *why, size_t why_bytes);
void ompi_coll_cryptag_rules_free(ompi_coll_cryptag_rules_t *rules);

/* The algorithm, by its number in the enumeration of the operation; 0: no rule applies. */
int ompi_coll_cryptag_rules_find(const ompi_coll_cryptag_rules_t *rules, ompi_coll_cryptag_operation_t operation,
                                 const ompi_coll_cryptag_topo_t *topo, size_t block_bytes);

/* Continue a checksum, which begins with START, over bytes, and over all rules. */
#define OMPI_COLL_CRYPTAG_SUM_START 2166136261u
uint32_t ompi_coll_cryptag_sum(const void *bytes, size_t count, uint32_t sum);
uint32_t ompi_coll_cryptag_rules_sum(const ompi_coll_cryptag_rules_t *rules, uint32_t sum);

/* "hs1" for OMPI_COLL_CRYPTAG_ALLGATHER and HS1 ..., NULL for an invalid number;
 * the names are those that the parameters accept. */
const char *ompi_coll_cryptag_operation_name(ompi_coll_cryptag_operation_t operation);
const char *ompi_coll_cryptag_algorithm_name(ompi_coll_cryptag_operation_t operation, int algorithm);

#endif
