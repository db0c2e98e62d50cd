/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt-mpi: the MPI half of the tool, a process for each rank.  `mpicrypt bench`
 * starts it, once for each column and round, since the PML is chosen in
 * MPI_Init; what it measures, rank 0 prints in lines of this form:
 *
 *     @mpicrypt rank RANK NODE HOST BOOT-ID TCP CPU,CPU... (verb nodes, a rank)
 *     @mpicrypt has RANK NAME: TEXT                       (the same with --fabric, a network or a library)
 *     @mpicrypt library VERSION                           (verb nodes)
 *     @mpicrypt seals HOST KERNEL PROTECTION              (verb nodes, encrypted; KERNEL: 1 if all nodes have kTLS)
 *     @mpicrypt processor NAME                            (verb nodes, encrypted: of rank 0)
 *     @mpicrypt unit SECONDS                              (one unit of work)
 *     @mpicrypt value BYTES LAP SECONDS WORK-SECONDS CHOICE   (a lap, an iteration)
 *     @mpicrypt messages N                                (stencils: most of any rank)
 *     @mpicrypt provider NAME, VERSION                    (verb seal; verb nodes, encrypted)
 *     @mpicrypt processors T0 THREADS                     (verb seal: of rank 0, and the most threads)
 *     @mpicrypt sealed BYTES THREADS LAP SECONDS          (verb seal)
 *     @mpicrypt done
 *
 * A run without the last line was cut short.  Verbs check, meet and path are for
 * `mpicrypt doctor`: doctor/check.h.
 */
#ifndef MPICRYPT_RANK_RANK_H
#define MPICRYPT_RANK_RANK_H

#include <mpi.h>

#include "ompi/tools/mpicrypt/mpicrypt.h"

#include "opal/mca/aead/aead.h"

/* ---- the job, as its options say: rank/rank.c ---- */

typedef struct mpicrypt_mpi_io {
    const char *directory, *workload, *access, *op;
    const char *label, *algorithm;  /* NULL label: plain files */
    size_t data, row;               /* bytes of a rank, and of a row */
} mpicrypt_mpi_io_t;

typedef struct mpicrypt_mpi_job {
    mpicrypt_sizes_t sizes;
    size_t laps, window, pairs, dims, seal_bits;
    mpicrypt_sizes_t work;          /* units in an iteration, one for each size */
    double lap_ms;
    mpicrypt_sizes_t iterations;    /* in a lap, one for each size; 0: by lap_ms */
    bool local, both, bare, socket, copied, kernel, fabric;
    const char *pml;
    mpicrypt_names_t cpus, require;
    mpicrypt_mpi_io_t io;
    const char *choose;             /* parameter whose values are compared; NULL: none */
    mpicrypt_names_t choices;
} mpicrypt_mpi_job_t;

extern mpicrypt_mpi_job_t mpicrypt_mpi_job;

extern int mpicrypt_mpi_rank, mpicrypt_mpi_size;

/* Prints the message on stderr and ends the job with `code`. */
void mpicrypt_mpi_abort(int code, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

/* Zeroed memory of at least one byte; ends the job when there is none. */
void *mpicrypt_mpi_memory(size_t bytes);

/* ---- nodes: rank/nodes.c ---- */

/* node[rank], by order of their lowest rank; returns how many. */
int mpicrypt_mpi_nodes(int *node);

/* Print what the verb nodes prints. */
void mpicrypt_mpi_show_nodes(void);

/* Appends lines about the networks of this node, and the libraries of networks that are loaded here: rank/fabric.c */
void mpicrypt_mpi_describe_fabric(char *text, size_t bytes);

/* The rank that this one exchanges messages with, -1 for none; `*lower`: is
 * this the side that begins?  Pair i are the i-th ranks of the first two
 * nodes, or with --local ranks 2i and 2i + 1 of the first. */
int mpicrypt_mpi_partner(size_t pairs, bool local, bool *lower);

/* What pml/crypt would seal with, and a key of these bytes; ends the job when there
 * is nothing: rank/seal.c */
const opal_aead_module_t *mpicrypt_mpi_provider(opal_aead_cipher_t cipher, const uint8_t *raw, void **key);

/* ---- messages, sealed by this program if --seal asks for it: _message.c ---- */

typedef struct mpicrypt_mpi_message {
    uint8_t *plain;
    uint8_t *sealed;                /* nonce 12 | ciphertext | tag 16; NULL: not sealed */
    size_t bytes;
    int peer, tag;
} mpicrypt_mpi_message_t;

void mpicrypt_mpi_messages_start(size_t seal_bits, bool bare);

/* A provider, a context of it and a key, for --seal without the naive library. */
const opal_aead_module_t *mpicrypt_mpi_bare(size_t seal_bits, opal_aead_context_t **context, void **key);
mpicrypt_mpi_message_t mpicrypt_mpi_message_new(size_t bytes, int peer, int tag);
void mpicrypt_mpi_message_free(mpicrypt_mpi_message_t *message);

void mpicrypt_mpi_send(const mpicrypt_mpi_message_t *message);
void mpicrypt_mpi_recv(const mpicrypt_mpi_message_t *message);

/* What irecv brought is in `plain` after the request is complete AND received
 * was called. */
void mpicrypt_mpi_isend(const mpicrypt_mpi_message_t *message, MPI_Request *request);
void mpicrypt_mpi_irecv(const mpicrypt_mpi_message_t *message, MPI_Request *request);
void mpicrypt_mpi_received(const mpicrypt_mpi_message_t *message);

/* Contents that tell sender and message apart; check ends the job when
 * something else arrived. */
void mpicrypt_mpi_fill(const mpicrypt_mpi_message_t *message, int from, int number);
void mpicrypt_mpi_check_filled(const mpicrypt_mpi_message_t *message, int from, int number);

/* ---- computation: rank/work.c ---- */

void mpicrypt_mpi_work(size_t units);
double mpicrypt_mpi_unit_seconds(void);

/* ---- values of a parameter, compared within the job: rank/choice.c ---- */

/* How many there are; 1 when the job has no such parameter. */
int mpicrypt_mpi_choices(void);

/* Sets the parameter at this rank; every rank does so between the same two
 * collectives. */
void mpicrypt_mpi_choose(int choice);
void mpicrypt_mpi_chosen(void);            /* no more choices */

/* ---- patterns and laps: rank/pattern.c, one file each ---- */

typedef struct mpicrypt_mpi_pattern {
    /* Allocates for messages of `bytes`, which every rank calls. */
    void (*prepare)(size_t bytes);
    /* One iteration whose messages are filled and checked; `number` is to tell
     * their contents from those of another such iteration. */
    void (*verify)(int number);
    /* `count` iterations; each with `units` of work, whose time is returned. */
    double (*iterate)(size_t count, size_t units);
    void (*release)(void);
    /* What the time of an iteration is divided by. */
    double share;
} mpicrypt_mpi_pattern_t;

extern const mpicrypt_mpi_pattern_t mpicrypt_mpi_pingpong, mpicrypt_mpi_pairs, mpicrypt_mpi_stencil,
                                    mpicrypt_mpi_socket, mpicrypt_mpi_socket_pairs,
                                    mpicrypt_mpi_allgather, mpicrypt_mpi_bcast, mpicrypt_mpi_alltoall;

/* A socket to the partner, which calls this, too; ends the job if that fails: rank/socket_meet.c */
int mpicrypt_mpi_socket_meet(int partner, bool first);

/* Files: rank/io.c.  The sizes are those of blocks. */
void mpicrypt_mpi_io(void);

/* All sizes, all laps; rank 0 prints the values. */
void mpicrypt_mpi_measure(const mpicrypt_mpi_pattern_t *pattern);

/* Sealing alone, all sizes and numbers of threads: rank/seal.c. */
void mpicrypt_mpi_seal_verb(void);

#endif
