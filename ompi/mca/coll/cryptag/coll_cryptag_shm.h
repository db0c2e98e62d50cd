/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The shared segment of the ranks of one node, for HS1, HS2 and HS3.
 *
 *     | flag of local rank 0, 8, its length, 8, nothing, 48 | flag 1, 64 | ... | data |
 *
 * Mode 0600; its name is removed as soon as all ranks of the node have mapped it,
 * before anything is written to it.  It grows and never shrinks.
 *
 * Phases.  A rank raises its flag when it reaches a phase; a rank that needs what
 * was written before waits for the flag, making MPI progress meanwhile.
 */
#ifndef COLL_CRYPTAG_SHM_H
#define COLL_CRYPTAG_SHM_H

#include "coll_cryptag_call.h"

struct ompi_coll_cryptag_shm {
    uint8_t *map;
    size_t map_bytes;
    uint8_t *data;
    size_t data_bytes;
    size_t refused;         /* this many data bytes were refused; 0: none so far */
    int here, local;        /* ranks on the node, our index */
    uint64_t phase;         /* our flag at the start of a call */
    unsigned turn;          /* HS1 to HS3: consecutive calls that used halves */
    uint64_t turn_phase;    /* `phase` after the last of these */
};

/* Ensure `bytes` of data on every node.  All ranks of the communicator call it
 * together and get the same answer; false: use another algorithm. */
bool ompi_coll_cryptag_shm_ensure(ompi_coll_cryptag_call_t *call, size_t bytes);
void ompi_coll_cryptag_shm_free(ompi_coll_cryptag_shm_t *shm);

/* Raise our flag: we have reached `phase`, and what we wrote before is visible. */
void ompi_coll_cryptag_shm_arrive(ompi_coll_cryptag_shm_t *shm, uint64_t phase);
void ompi_coll_cryptag_shm_await(ompi_coll_cryptag_shm_t *shm, int local, uint64_t phase);
void ompi_coll_cryptag_shm_await_all(ompi_coll_cryptag_shm_t *shm, uint64_t phase);

/* Publish our length of the call's data, before we raise our flag; read another rank's, after it has raised its own. */
void ompi_coll_cryptag_shm_say(ompi_coll_cryptag_shm_t *shm, uint64_t bytes);
uint64_t ompi_coll_cryptag_shm_said(ompi_coll_cryptag_shm_t *shm, int local);

#endif
