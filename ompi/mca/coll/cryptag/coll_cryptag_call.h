/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One collective call in progress, and the operations that algorithms are
 * made of: post and wait (step), seal and open (piece), gather, share (shm).
 *
 * Errors.  A rank that fails in the middle of a collective would leave the
 * others waiting.  So no operation returns an error: the first failure is kept
 * in the call, the algorithm goes on to its end with zeros in place of what did
 * not open, and the end of the call (coll_cryptag_finish.c) tells every rank.
 * By default a failure has ended the job long before.
 */
#ifndef COLL_CRYPTAG_CALL_H
#define COLL_CRYPTAG_CALL_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_compat.h"
#include "ompi/request/request.h"
#include "opal/mca/common/crypt/base/algorithms.h"
#include "opal/mca/common/crypt/wire/group.h"

#include "coll_cryptag_schedule.h"
#include "coll_cryptag_topo.h"

typedef struct ompi_coll_cryptag_module ompi_coll_cryptag_module_t;
typedef struct ompi_coll_cryptag_shm ompi_coll_cryptag_shm_t;
typedef struct ompi_coll_cryptag_ord_plan ompi_coll_cryptag_ord_plan_t;

/* The operation, as encoded in the AAD: never renumber. */
typedef enum {
    OMPI_COLL_CRYPTAG_ALLGATHER = 1,    /* allgatherv as well */
    OMPI_COLL_CRYPTAG_BCAST = 2,
    OMPI_COLL_CRYPTAG_ALLTOALL = 3
} ompi_coll_cryptag_operation_t;

/* The algorithm, AUTO or a row of crypt/base/algorithms.h: OMPI_COLL_CRYPTAG_NAIVE, ..., _HOP; _BCAST_HOP, ...;
 * _ALLTOALL_HOP, ... */
#define OMPI_COLL_CRYPTAG_NUMBER_RUN(name, function, word) OMPI_COLL_CRYPTAG_##name,
#define OMPI_COLL_CRYPTAG_NUMBER_NAMED(name, word) OMPI_COLL_CRYPTAG_##name,
#define OMPI_COLL_CRYPTAG_NUMBERS(list) list(OMPI_COLL_CRYPTAG_NUMBER_RUN, OMPI_COLL_CRYPTAG_NUMBER_NAMED)
typedef enum {
    OMPI_COLL_CRYPTAG_AUTO,
    OMPI_COLL_CRYPTAG_NUMBERS(OPAL_CRYPT_ALLGATHERS)
    OMPI_COLL_CRYPTAG_ALGORITHMS
} ompi_coll_cryptag_algorithm_t;

typedef enum {
    OMPI_COLL_CRYPTAG_BCAST_AUTO,
    OMPI_COLL_CRYPTAG_NUMBERS(OPAL_CRYPT_BCASTS)
    OMPI_COLL_CRYPTAG_BCASTS
} ompi_coll_cryptag_bcast_algorithm_t;

typedef enum {
    OMPI_COLL_CRYPTAG_ALLTOALL_AUTO,
    OMPI_COLL_CRYPTAG_NUMBERS(OPAL_CRYPT_ALLTOALLS)
    OMPI_COLL_CRYPTAG_ALLTOALLS
} ompi_coll_cryptag_alltoall_algorithm_t;

_Static_assert(OMPI_COLL_CRYPTAG_NAIVE == 1 && OMPI_COLL_CRYPTAG_HS3 == 9 && OMPI_COLL_CRYPTAG_HOP == 10
               && OMPI_COLL_CRYPTAG_BCAST_CHAIN == 3 && OMPI_COLL_CRYPTAG_ALLTOALL_ROWS == 4,
               "the numbers of algorithms are in the AAD");

/* The paper's six metrics: docs/design/004-collectives.rst defines them. */
typedef struct ompi_coll_cryptag_metrics {
    uint64_t r_c, s_c, r_e, s_e, r_d, s_d;
} ompi_coll_cryptag_metrics_t;

/* The user's buffers. */
typedef struct ompi_coll_cryptag_user {
    const void *sbuf;           /* MPI_IN_PLACE allowed */
    size_t scount;
    ompi_datatype_t *sdtype;
    char *rbuf;
    size_t rcount;              /* allgather; for allgatherv rcounts and disps */
    ompi_common_cryptmpi_counts_t rcounts;
    ompi_common_cryptmpi_disps_t disps;
    ompi_datatype_t *rdtype;
    ptrdiff_t extent;
    bool dense;                 /* rbuf has the layout of `plain`: no copy */
} ompi_coll_cryptag_user_t;

typedef struct ompi_coll_cryptag_call ompi_coll_cryptag_call_t;
struct ompi_coll_cryptag_call {
    ompi_coll_cryptag_module_t *module;
    ompi_communicator_t *comm;
    const ompi_coll_cryptag_topo_t *topo;
    ompi_coll_cryptag_user_t user;          /* for an all-gather */
    void (*wipe)(ompi_coll_cryptag_call_t *call);   /* overwrite everything received with zeros */

    ompi_coll_cryptag_operation_t operation;
    int algorithm;                          /* of this operation */
    uint64_t sequence;
    int tag;

    /* Block i is rank i's contribution: offset[i + 1] - offset[i] bytes, at
     * plain + offset[i] once this rank has it.  plain is the user's buffer if
     * that is dense, else scratch; HS1 to HS3 do not use it. */
    const size_t *offset;
    uint8_t *plain;

    ompi_coll_cryptag_metrics_t metrics;
    bool spoiled;               /* nothing is sealed here, and what would be did not have the expected length */
    bool failed;                /* in a way that may affect others: not only a wrong length */
    int failure;                /* first failure: an MPI error class or Open MPI error code; 0 so far */
};

static inline size_t ompi_coll_cryptag_block_bytes(const ompi_coll_cryptag_call_t *call, int rank)
{
    return call->offset[rank + 1] - call->offset[rank];
}

static inline size_t ompi_coll_cryptag_longest_block(const ompi_coll_cryptag_call_t *call)
{
    size_t longest = 0;

    for (int i = 0; i < call->topo->ranks; i++) {
        const size_t bytes = ompi_coll_cryptag_block_bytes(call, i);
        longest = bytes > longest ? bytes : longest;
    }
    return longest;
}

static inline uint8_t *ompi_coll_cryptag_block(const ompi_coll_cryptag_call_t *call, int rank)
{
    return call->plain + call->offset[rank];
}

/* The length of the parts into which `bytes` are cut: at most `most`, and the same for
 * all but the last. */
static inline size_t ompi_coll_cryptag_even_part(size_t bytes, size_t most)
{
    const size_t parts = bytes > most ? (bytes + most - 1) / most : 1;

    return (bytes + parts - 1) / parts;
}

/* A part of a message: `wire_bytes` at `base`, with `plain_bytes` of payload (which
 * the metric s_c counts). */
typedef struct ompi_coll_cryptag_part {
    uint8_t *base;
    size_t wire_bytes, plain_bytes;
} ompi_coll_cryptag_part_t;

/* The blocks of a run of ranks in `plain`: one part, or two if the run wraps
 * around.  Returns how many. */
int ompi_coll_cryptag_run_parts(const ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_run_t *run,
                                ompi_coll_cryptag_part_t parts[2]);

/* ---- scratch: memory until the end of the call (coll_cryptag_scratch.c) ---- */

typedef struct ompi_coll_cryptag_chunk ompi_coll_cryptag_chunk_t;
typedef struct ompi_coll_cryptag_scratch {
    ompi_coll_cryptag_chunk_t *chunks;
} ompi_coll_cryptag_scratch_t;

enum { OMPI_COLL_CRYPTAG_ALIGN = 64 };

static inline size_t ompi_coll_cryptag_aligned(size_t bytes)
{
    return (bytes + OMPI_COLL_CRYPTAG_ALIGN - 1) & ~(size_t) (OMPI_COLL_CRYPTAG_ALIGN - 1);
}

/* Aligned.  Ends the job instead of returning NULL: the other ranks are in the collective already. */
void *ompi_coll_cryptag_scratch(ompi_coll_cryptag_call_t *call, size_t bytes);
void ompi_coll_cryptag_scratch_reset(ompi_coll_cryptag_scratch_t *scratch);
void ompi_coll_cryptag_scratch_free(ompi_coll_cryptag_scratch_t *scratch);

/* ---- steps: the messages between two waits (coll_cryptag_step.c) ---- */

typedef enum {
    OMPI_COLL_CRYPTAG_PLAIN,    /* plaintext: to the selected PML */
    OMPI_COLL_CRYPTAG_SEALED    /* pieces: to the host PML, or like plaintext if nothing is sealed here */
} ompi_coll_cryptag_form_t;

typedef struct ompi_coll_cryptag_arrival ompi_coll_cryptag_arrival_t;
typedef struct ompi_coll_cryptag_step {
    ompi_request_t **requests;
    ompi_coll_cryptag_arrival_t *arrivals;
    int count, capacity;
} ompi_coll_cryptag_step_t;

/* Post; do not touch the parts, nor their array, until the wait.  Both sides pass
 * parts of the same sizes in the same order.  Without parts there is no
 * message. */
void ompi_coll_cryptag_send(ompi_coll_cryptag_call_t *call, int peer, ompi_coll_cryptag_form_t form,
                            const ompi_coll_cryptag_part_t *parts, int count);
/* The same for one part, synchronous: the wait ends when the peer receives its end, not when it has left. */
void ompi_coll_cryptag_send_awaited(ompi_coll_cryptag_call_t *call, int peer, ompi_coll_cryptag_form_t form,
                                    const ompi_coll_cryptag_part_t *part);
void ompi_coll_cryptag_recv(ompi_coll_cryptag_call_t *call, int peer, ompi_coll_cryptag_form_t form,
                            const ompi_coll_cryptag_part_t *parts, int count);
/* One message of the user's datatype, through the selected PML; `bytes`: packed. */
void ompi_coll_cryptag_send_typed(ompi_coll_cryptag_call_t *call, int peer, const void *base, size_t count,
                                  ompi_datatype_t *dtype, size_t bytes);
void ompi_coll_cryptag_recv_typed(ompi_coll_cryptag_call_t *call, int peer, void *base, size_t count,
                                  ompi_datatype_t *dtype, size_t bytes);
/* Wait for all that was posted: one communication step, if anything was. */
void ompi_coll_cryptag_wait(ompi_coll_cryptag_call_t *call);
void ompi_coll_cryptag_step_free(ompi_coll_cryptag_step_t *step);

/* ---- pieces: sealed once, opened by many or by one (coll_cryptag_piece.c) ---- */

/* Names a sealed item of this call: the rank that sealed it, the receiver (a rank of another
 * node, which alone can open it, or OPAL_CRYPT_TO_ALL), and the index among this origin's items. */
typedef struct ompi_coll_cryptag_name {
    int origin;
    uint32_t destination;
    uint32_t item;
} ompi_coll_cryptag_name_t;

size_t ompi_coll_cryptag_sealed_bytes(const ompi_coll_cryptag_call_t *call, size_t plain_bytes);
void ompi_coll_cryptag_seal(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_name_t *name,
                            const void *plain, size_t plain_bytes, uint8_t *sealed);
/* If it does not open, `plain` is set to zeros, and the call fails. */
void ompi_coll_cryptag_open(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_name_t *name,
                            const uint8_t *sealed, void *plain, size_t plain_bytes);

/* Do we seal?  If not, the transport does, on each hop: "sealed" then means the plaintext itself, with
 * nothing added, and the two above copy it unless it is in place already. */
bool ompi_coll_cryptag_seals(const ompi_coll_cryptag_call_t *call);
/* The PML that carries this form. */
const mca_pml_base_module_t *ompi_coll_cryptag_carrier(const ompi_coll_cryptag_call_t *call,
                                                       ompi_coll_cryptag_form_t form);
/* Where to put the sealed form of what is, or will be, at `plain`: `apart`, or the same place. */
uint8_t *ompi_coll_cryptag_sealed_at(const ompi_coll_cryptag_call_t *call, uint8_t *plain, uint8_t *apart);
/* Bytes that sealing adds to a piece. */
size_t ompi_coll_cryptag_overhead(const ompi_coll_cryptag_call_t *call);

/* One of several pieces of an item. */
void ompi_coll_cryptag_seal_piece(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_name_t *name,
                                  uint32_t index, uint32_t count, const void *plain, size_t plain_bytes,
                                  uint8_t *sealed);
void ompi_coll_cryptag_open_piece(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_name_t *name,
                                  uint32_t index, uint32_t count, const uint8_t *sealed, void *plain,
                                  size_t plain_bytes);

/* ---- gathers among some ranks (coll_cryptag_gather.c) ---- */

/* All-gather among members[0..n-1] (ranks): item i is the parts
 * parts[first[i]] ... parts[first[i + 1] - 1]. */
typedef struct ompi_coll_cryptag_lane {
    const int *members;
    const ompi_coll_cryptag_part_t *parts;
    const int *first;
} ompi_coll_cryptag_lane_t;

typedef struct ompi_coll_cryptag_gather {
    ompi_coll_cryptag_kind_t kind;
    ompi_coll_cryptag_form_t form;
    int n, me;                              /* same in every lane */
    const ompi_coll_cryptag_lane_t *lanes;  /* side by side, sharing steps */
    int lane_count;
    /* Called for every item that has arrived, while the next step is in progress. */
    void (*arrived)(void *context, int lane, int item);
    void *context;
} ompi_coll_cryptag_gather_t;

void ompi_coll_cryptag_gather(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_gather_t *gather);

/* A ring of long blocks among members (ranks, one on each node), piece by piece: every node's
 * block, from rank owners[node], or none if that is -1, is opened into its place. */
void ompi_coll_cryptag_stream(ompi_coll_cryptag_call_t *call, const int *members, const int *owners);

/* Ring or doubling for items of this size. */
ompi_coll_cryptag_kind_t ompi_coll_cryptag_gather_kind(size_t item_bytes);

/* The maximum of all ranks' values, known to all; not in the metrics.  A message of this exchange that fails counts as
 * `lost`, here and for ranks that get the value through us, and is the call's failure. */
int ompi_coll_cryptag_agree(ompi_coll_cryptag_call_t *call, int value, int lost);

/* ---- the user's buffers (coll_cryptag_user.c) ---- */

/* Ends the job if Open MPI cannot copy `buffer`, with `bytes` to read or write, to memory of the host, as others would wait
 * for this rank.  MPI_IN_PLACE is allowed. */
void ompi_coll_cryptag_device_check(ompi_coll_cryptag_call_t *call, const void *buffer, const ompi_datatype_t *type,
                                    size_t bytes);
/* The number of elements in the block of `rank`. */
size_t ompi_coll_cryptag_user_count(const ompi_coll_cryptag_user_t *user, int rank);
/* Copy our contribution to `to`, in packed form. */
void ompi_coll_cryptag_take_own(ompi_coll_cryptag_call_t *call, uint8_t *to);
/* Copy the block of `rank` from packed form to the user's buffer. */
void ompi_coll_cryptag_deliver(ompi_coll_cryptag_call_t *call, int rank, const uint8_t *from);
/* `wipe` for an all-gather */
void ompi_coll_cryptag_wipe(ompi_coll_cryptag_call_t *call);

/* ---- failures (coll_cryptag_finish.c) ---- */

/* A piece did not open, or could not be sealed (crypt_rc): by default this ends
 * the job.  peer: the rank that it came from, or ours. */
void ompi_coll_cryptag_fail(ompi_coll_cryptag_call_t *call, int crypt_rc, int peer);
/* What the PML or the datatype engine returned: a failure, unless it is OMPI_SUCCESS. */
void ompi_coll_cryptag_note(ompi_coll_cryptag_call_t *call, int rc);
/* Data for this rank alone does not have the expected length: MPI_ERR_TRUNCATE, which other ranks are not told. */
void ompi_coll_cryptag_mistaken(ompi_coll_cryptag_call_t *call);
/* The end of every call: tells all ranks whether it failed anywhere. */
int ompi_coll_cryptag_finish(ompi_coll_cryptag_call_t *call);
/* Prints the message, and ends the job.  NULL: another rank does both, and is given
 * time for it. */
void ompi_coll_cryptag_end_job(ompi_communicator_t *comm, const char *topic, ...) __attribute__((noreturn));
void ompi_coll_cryptag_no_memory(ompi_communicator_t *comm, size_t bytes) __attribute__((noreturn));

/* ---- the algorithms ---- */

typedef void (*ompi_coll_cryptag_run_fn_t)(ompi_coll_cryptag_call_t *call);

#define OMPI_COLL_CRYPTAG_DECLARE_RUN(name, function, word) void ompi_coll_cryptag_##function(ompi_coll_cryptag_call_t *call);
#define OMPI_COLL_CRYPTAG_DECLARE_NAMED(name, word)
OPAL_CRYPT_ALLGATHERS(OMPI_COLL_CRYPTAG_DECLARE_RUN, OMPI_COLL_CRYPTAG_DECLARE_NAMED)

#endif
