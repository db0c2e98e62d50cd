/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One process's line for the report of a job, and writing the report from all of them.
 */
#ifndef OMPI_COMMON_CRYPTMPI_REPORT_H
#define OMPI_COMMON_CRYPTMPI_REPORT_H

#include "opal/mca/common/crypt/base/stats.h"

typedef struct ompi_common_cryptmpi_report_line {
    opal_crypt_stats_t stats;
    uint64_t sealed_peers, local_peers, wall_ns;
    uint64_t pq_peers, kernel_peers;    /* of the sealed ones: with X25519MLKEM768; with the kernel's TLS */
    uint64_t threads, segments;         /* the most that a chopped message had */
    uint64_t raised;                    /* bit i: the limits of transport i (ompi_common_cryptmpi_raised_t) */
    char provider[64];
} ompi_common_cryptmpi_report_line_t;

/* On rank 0: sort and add up `count` lines, and write the report to where crypt_report
 * says.  `processes`: how many there are in the job. */
void ompi_common_cryptmpi_report_write(ompi_common_cryptmpi_report_line_t *lines, int count, int processes);

#endif
