/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the tests of processes that connect at run time share: messages between two groups, and how much a process
 * keeps after a connection.
 */
#ifndef TESTS_MPI_MT_INTER_H
#define TESTS_MPI_MT_INTER_H

#include "mt.h"

/* Both groups of an intercommunicator, one with side 0 and the other with 1: messages of all sizes in both directions,
 * wildcards, probes, a merged communicator and its collectives.  `turn`: makes a second connection's messages differ
 * from the first one's. */
void mt_inter_talk(MPI_Comm inter, int side, int turn);

/* One side, the one that `speaks`, sends to all of the other, which sends nothing. */
void mt_inter_first_words(MPI_Comm inter, bool speaks);

/* Resident memory of this process alone, and its descriptors.  Not VmRSS: the kernel maps 64 KiB around each place that
 * is read in the runtime's shared store, which has a file for each job. */
typedef struct {
    long kib, files;
} mt_kept_t;

mt_kept_t mt_kept(void);

/* Print what was kept for each 100 connections since `before`, when `meetings` began.  At most kib= and files= of the
 * command line. */
void mt_kept_check(const mt_kept_t *before, int meetings);

#endif
