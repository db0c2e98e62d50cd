/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The verb `path`, for `mpicrypt doctor --path`: what the file system of a directory does between nodes.  All processes
 * go through lists of steps together.  A step is taken by one of them, and there by its helper, a child without MPI:
 *
 *     rank --socket--> helper --system calls--> the file system
 *
 * A system call that does not return holds up a helper, but no MPI process.  A helper whose process is gone, killed
 * or not, deletes the files and ends.
 */
#ifndef MPICRYPT_RANK_PATH_H
#define MPICRYPT_RANK_PATH_H

#include "ompi/mca/common/cryptmpio/cryptmpio_posix.h"

enum { MPICRYPT_PATH_RACERS = 256 };

/* Lists of steps for one process or two sides, which may be the same process.  What is wrong spoils a verdict, or makes another row of
 * the report, of the list's name; RANGES, and RACE, for all at once, and what comes before it spoil NODES. */
enum { MPICRYPT_PATH_READING, MPICRYPT_PATH_ONE_WRITER, MPICRYPT_PATH_ONE_NODE, MPICRYPT_PATH_NODES, MPICRYPT_PATH_VERDICTS,
       MPICRYPT_PATH_ATTRIBUTES = MPICRYPT_PATH_VERDICTS, MPICRYPT_PATH_LEFT, MPICRYPT_PATH_UNUSABLE, MPICRYPT_PATH_ROWS,
       MPICRYPT_PATH_RANGES = MPICRYPT_PATH_ROWS, MPICRYPT_PATH_START, MPICRYPT_PATH_RACE };

typedef struct mpicrypt_path_order {
    int step, index, rounds;            /* index: of the node */
    int pass;                           /* each has file names of its own, as nodes may remember names */
    uint64_t number;                    /* of the directory */
} mpicrypt_path_order_t;

/* Continues ompi_common_cryptmpio_seen_t. */
enum { MPICRYPT_PATH_WRONG = 4, MPICRYPT_PATH_LATE, MPICRYPT_PATH_GONE };

typedef struct mpicrypt_path_answer {
    int seen, error;
    uint64_t value;
} mpicrypt_path_answer_t;

typedef struct mpicrypt_path_step {
    int list, side;
    int (*take)(ompi_common_cryptmpio_posix_t *file, int value, const mpicrypt_path_order_t *order, uint64_t *answer);
    int value;
    const char *what;                   /* "node1 could not ..." */
    const char *wrong;                  /* "node1 ...", or "node1 read an old size ..."; %s is the other side */
} mpicrypt_path_step_t;

extern const mpicrypt_path_step_t mpicrypt_path_steps[];    /* up to one that has no `take` */

/* Before MPI_Init.  The socket to the helper, or -1. */
int mpicrypt_path_helper(const char *directory);

void mpicrypt_mpi_path(int helper);

#endif
