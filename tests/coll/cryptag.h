/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * coll/cryptag seen through MPI_T: choosing an algorithm at run time, reading
 * the six metrics; and communicators with a node map of one's choice.
 */
#ifndef TESTS_COLL_CRYPTAG_H
#define TESTS_COLL_CRYPTAG_H

#include "mt.h"

/* All-gathers by number, from MPI_T: 0 is "auto"; ALGORITHM_HOP is left to Open MPI's own.  Known once cryptag_start has
 * returned. */
enum { ALGORITHM_HS1 = 7, ALGORITHM_HS3 = 9, ALGORITHM_HOP = 10, ALGORITHMS_MOST = 64 };
extern int algorithms;
extern const char *algorithm_name[ALGORITHMS_MOST];
#define METRICS 6
extern const char *const metric_name[METRICS];
typedef unsigned long long metrics_t[METRICS];

/* After mt_start; skips where the component is not there. */
void cryptag_start(void);
void cryptag_stop(void);

/* Set an integer parameter of the component at this rank. */
void cryptag_set(const char *parameter, int value);
int cryptag_get(const char *parameter);

/* The words that the parameter of a collective ("bcast") takes, by number; returns how many. */
int cryptag_algorithms(const char *collective, const char *words[ALGORITHMS_MOST]);

/* Metrics of this process since its start. */
void cryptag_metrics(metrics_t now);

/* What `body` adds to this process's metrics. */
#define CRYPTAG_COUNT(added, body)                      \
    do {                                                \
        metrics_t before_;                              \
        cryptag_metrics(before_);                       \
        body;                                           \
        cryptag_metrics(added);                         \
        for (int m_ = 0; m_ < METRICS; m_++) {          \
            (added)[m_] -= before_[m_];                 \
        }                                               \
    } while (0)

/* ---- node maps ----
 *
 *     5x3          five nodes with three ranks each, in block order
 *     cyclic:5x3   the same, dealt out like cards
 *     3,1,4        three nodes; cyclic:3,1,4
 *     list:0,1,0   rank 0 and 2 on one node, rank 1 on another
 */
#define MAP_RANKS 256

/* The node of each rank; returns how many ranks. */
int map_parse(const char *text, int nodes[MAP_RANKS]);

/* Collective over MPI_COMM_WORLD: a communicator with this map, MPI_COMM_NULL
 * at ranks that are not in it.  Fails when there are not enough ranks. */
MPI_Comm map_comm(const char *text);

/* The arguments of the program that are maps (they hold no '='). */
int map_arguments(int argc, char **argv, const char *maps[], int room);

#endif
