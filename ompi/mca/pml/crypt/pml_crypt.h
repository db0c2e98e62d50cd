/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * pml/crypt: a PML that encrypts (seals) messages to other nodes and passes them to
 * a host PML (ob1, ucx or cm), which it loads itself.
 * README.md says which file holds what.
 *
 * Headers, besides this one, which all files include
 *   message.h, request.h  what a message is, and what is under way; included here
 *   host.h    before the first message       recv.h, held.h  the receiving half
 *
 * Rules that hold everywhere
 *   - The peer table (common/cryptmpi) decides what is sealed and what may stay
 *     plain, never a header.
 *   - A completion callback never blocks.  Only two locks are held across calls of
 *     the host: the peer's send lock and the communicator's lock.  No callback takes
 *     them; and progress inside such a call (non-blocking collectives) needs
 *     neither (ompi_pml_crypt_host_lock), unless a user-defined reduction does.
 *   - A request completes after the last byte verified, or with an error after
 *     every byte of the message was wiped.
 */
#ifndef MCA_PML_CRYPT_H
#define MCA_PML_CRYPT_H

#include "ompi/mca/common/cryptmpi/cryptmpi.h"

#include "ompi/errhandler/errcode-internal.h"
#include "ompi/runtime/mpiruntime.h"

#include "opal/mca/common/crypt/wire/rule.h"
#include "opal/mca/common/crypt/wire/tags.h"
#include "pml_crypt_message.h"
#include "pml_crypt_request.h"

BEGIN_C_DECLS

/* ---- component ---- */

typedef struct ompi_pml_crypt_params {
    char *host;
    unsigned chop_min;              /* a longer message is chopped; also the plaintext in its first part */
    unsigned chunk_size;
    char *t;                        /* threads: a number, or by size (pml_crypt_cut.c) */
    char *team;                     /* pool or openmp */
} ompi_pml_crypt_params_t;

/* Stages handed to workers, in order; take() returns the oldest if it is done,
 * else NULL.  `count` may be read without the lock. */
typedef struct ompi_pml_crypt_line {
    struct ompi_pml_crypt_stage *first, *last;
    pthread_mutex_t lock;
    volatile int count;
} ompi_pml_crypt_line_t;

typedef struct ompi_pml_crypt_state {
    ompi_pml_crypt_params_t params;
    const char *host_name;          /* from pml_crypt_host, or chosen by auto */
    mca_pml_base_module_t host;     /* a copy: its functions are called directly */
    size_t stage_bytes;             /* the largest first part */
    size_t capacity_least;          /* smallest buffer for a receive at the host (mtl.c) */
    size_t local_inline;            /* a longer message within this node is sent as it is, after its frame */
    unsigned tag_bits;              /* that the host compares in a tag */
    opal_crypt_tags_t tags;
    bool eager;                     /* the host sends a segment of up to chunk_size bytes eagerly */
    bool sends_later;               /* not from the host's callbacks: ucx, cm */
    bool mtl;                       /* the host is cm, which gives messages to an MTL (mtl.c) */
    opal_free_list_t requests;
    bool lists;
    bool over;                      /* MPI_Finalize frees communicators and processes: nothing more is sent or received */
    ompi_common_cryptmpi_atomic32_t outstanding;    /* chopped sends that are not finished */
    opal_crypt_team_t *team; /* NULL: one thread does it all */
    ompi_pml_crypt_line_t sealing, opening;
    ompi_pml_crypt_line_t fetching, landing;        /* copies from, and to, the memory of accelerators */
    uint64_t active;                /* messages that began or ended, roughly: only a change of it matters */
    struct ompi_pml_crypt_request *made;    /* all requests that the free list ever made */
    struct {                        /* lengths of lists that are private to other files; read without their locks */
        volatile int polled, deferred, queued, arriving;
        ompi_common_cryptmpi_atomic32_t copying;    /* `fetching` and `landing` */
    } waiting;
} ompi_pml_crypt_state_t;

extern ompi_common_cryptmpi_pml_component_t mca_pml_crypt_component;
extern mca_pml_base_module_t ompi_pml_crypt_module;
extern ompi_pml_crypt_state_t ompi_pml_crypt;

/* The lock of a peer or a communicator, held across a call of the host.  Open MPI's own messages, whose tags are below
 * MPI_ANY_TAG, need no lock: those of one communicator and tag come from one thread at a time, and the report, which
 * probes for one, takes it by a matched receive.  Nor may they take one: a call of the host may make progress (a probe;
 * from 5.0 on any call of cm; a buffered send whose buffer is full), which starts such messages, and two threads would
 * deadlock.  With tags of 0 and above, progress starts only messages of MPI_Comm_create_group and, from 5.0 on, of
 * partitioned communication, each in one thread at a time. */
static inline void ompi_pml_crypt_host_lock(ompi_common_cryptmpi_lock_t *lock, int tag)
{
    if (tag >= MPI_ANY_TAG) {
        ompi_common_cryptmpi_lock_acquire(lock);
    }
}

static inline void ompi_pml_crypt_host_unlock(ompi_common_cryptmpi_lock_t *lock, int tag)
{
    if (tag >= MPI_ANY_TAG) {
        ompi_common_cryptmpi_lock_release(lock);
    }
}

/* The size of the buffer that the host gets to receive up to this many bytes. */
static inline size_t ompi_pml_crypt_capacity_of(size_t wire_bytes)
{
    return wire_bytes < ompi_pml_crypt.capacity_least ? ompi_pml_crypt.capacity_least : wire_bytes;
}

/* Count a message that begins or ends.  With several threads, a count may be lost. */
static inline void ompi_pml_crypt_act(void)
{
    __atomic_store_n(&ompi_pml_crypt.active, __atomic_load_n(&ompi_pml_crypt.active, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* ---- the status page ---- */

void ompi_pml_crypt_status_start(void);
void ompi_pml_crypt_status_lists(bool ready);       /* requests and communicators exist, or are about to be freed */
void ompi_pml_crypt_status_stop(void);
void ompi_pml_crypt_status_update(void);
void ompi_pml_crypt_status_now(opal_crypt_status_snapshot_t *snapshot);         /* into the caller's zeroed memory */
extern unsigned ompi_pml_crypt_status_calls;
/* From the progress function. */
static inline void ompi_pml_crypt_status_tick(void)
{
    enum { CALLS = 32 };
    const unsigned calls = __atomic_load_n(&ompi_pml_crypt_status_calls, __ATOMIC_RELAXED) + 1;

    __atomic_store_n(&ompi_pml_crypt_status_calls, calls, __ATOMIC_RELAXED);
    if (OPAL_UNLIKELY(0 == calls % CALLS)) {
        ompi_pml_crypt_status_update();
    }
}

/* ---- pml_crypt_snapshot_btl.c: with crypt_transport=btl.  False: busy, try again later. ---- */
bool ompi_pml_crypt_snapshot_btl(opal_crypt_status_snapshot_t *snapshot, int64_t now, bool lists,
                                 uint64_t *moved);  /* changes with each record, and message */
void ompi_pml_crypt_snapshot_btl_start(void);               /* ob1's progress function does not call us */
void ompi_pml_crypt_snapshot_btl_stop(void);

/* What is pending, and the peers.  `lists`: requests exist.  One caller at a time. */
void ompi_pml_crypt_snapshot(opal_crypt_status_snapshot_t *snapshot, int64_t now, bool lists);
/* The number of messages that a probe took ahead of their receives; -1: the communicator is busy. */
int ompi_pml_crypt_held_count(ompi_common_cryptmpi_comm_t *c, int source, int *tag, size_t *bytes);

/* crypt_verbose: how a message is sent, a line each. */
static inline bool ompi_pml_crypt_says_messages(void)
{
    return OPAL_UNLIKELY(opal_cryptproc_params.verbose >= OPAL_CRYPTPROC_SAY_MESSAGES);
}

/* ---- sending ---- */

/* After an error the host has nothing of the message, and the caller drops the request. */
int ompi_pml_crypt_start_send(ompi_pml_crypt_request_t *r);
void ompi_pml_crypt_sent(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status);     /* a frame, or a body */
int ompi_pml_crypt_chop_send(ompi_pml_crypt_request_t *r);          /* takes the peer's send lock itself */
void ompi_pml_crypt_queue_start(void);
void ompi_pml_crypt_queue_stop(void);
void ompi_pml_crypt_pump(void);
void ompi_pml_crypt_pump_stalled(void);     /* from the progress function */

/* ---- how far a sender may run ahead of its receiver ---- */

typedef enum {
    OMPI_PML_CRYPT_LATE,            /* nothing may: the first part goes without payload, and reports its match */
    OMPI_PML_CRYPT_AHEAD,
    OMPI_PML_CRYPT_AHEAD_ACKS      /* and the first part must report its match */
} ompi_pml_crypt_ahead_t;

enum { OMPI_PML_CRYPT_NOTHING_AHEAD = 0 };

/* May `bytes` of this message leave before it has matched?  `acks`:
 * its first part reports its match anyway. */
ompi_pml_crypt_ahead_t ompi_pml_crypt_ahead_take(ompi_pml_crypt_request_t *r, uint32_t bytes, bool acks);
void ompi_pml_crypt_ahead_told(ompi_pml_crypt_request_t *r);
uint32_t ompi_pml_crypt_ahead_bytes(const ompi_common_cryptmpi_peer_t *peer);  /* to be shown */

/* ---- how a long message is cut ---- */

bool ompi_pml_crypt_cut_start(void);        /* prints what is wrong with a parameter */
unsigned ompi_pml_crypt_cut_threads(void);  /* the largest t of any message */
/* Bytes of a segment, and t, for a message with `rest` bytes after the first part. */
uint32_t ompi_pml_crypt_cut(uint64_t plain_bytes, uint64_t rest, unsigned outstanding, unsigned *threads);
unsigned ompi_pml_crypt_cut_open(uint64_t plain_bytes);     /* t of the receiver */

/* ---- the team ---- */

int ompi_pml_crypt_team_start(void);
void ompi_pml_crypt_team_stop(void);         /* workers finish what they have; it is not collected */
void ompi_pml_crypt_team_seal(ompi_pml_crypt_line_t *line, ompi_pml_crypt_stage_t *stage);
void ompi_pml_crypt_team_open(ompi_pml_crypt_line_t *line, ompi_pml_crypt_stage_t *stage);
void ompi_pml_crypt_team_copy(ompi_pml_crypt_line_t *line, ompi_pml_crypt_stage_t *stage);     /* a copy may be in flight: no worker */
ompi_pml_crypt_stage_t *ompi_pml_crypt_team_take(ompi_pml_crypt_line_t *line);

/* How many segments may be in flight for a message sealed or opened by t threads. */
static inline int32_t ompi_pml_crypt_window(unsigned least, unsigned threads)
{
    return (int32_t) (threads > 1 && 2 * threads > least ? 2 * threads : least);
}

/* ---- the end ---- */

void ompi_pml_crypt_final_send(void);       /* once MPI_Finalize has begun */
void ompi_pml_crypt_final_take(void);       /* after its barrier */

static inline bool ompi_pml_crypt_ending(void)
{
    return OPAL_UNLIKELY(ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT);
}

/* ---- within this node ---- */

int ompi_pml_crypt_local_frame(const ompi_pml_crypt_message_t *m, uint8_t *frame, size_t *wire_bytes);
int ompi_pml_crypt_local_send(ompi_pml_crypt_request_t *r);         /* a frame, then the message as it is */
int ompi_pml_crypt_local_open(ompi_pml_crypt_message_t *m, const uint8_t *frame);
void ompi_pml_crypt_local_recv(ompi_pml_crypt_request_t *r);
/* For a probe, leaving the frame as it is: the length of the message; OPAL_CRYPT_OK or ERR_AUTH. */
int ompi_pml_crypt_local_probe(const ompi_pml_crypt_message_t *m, const uint8_t *frame, size_t *plain_bytes);

/* ---- progress ---- */

/* Leave a request to the progress function, which may ask the runtime for its peer. */
void ompi_pml_crypt_deferred_start(void);
void ompi_pml_crypt_defer(ompi_pml_crypt_request_t *r) OPAL_CRYPT_RARE;
int ompi_pml_crypt_progress(void);

/* ---- what sending and receiving share ---- */

/* The tag at the host for one of the application's, or of Open MPI's.  Requests, envelopes and
 * statuses keep the original; only calls of the host use this one. */
static inline int ompi_pml_crypt_host_tag(int tag)
{
    return OPAL_LIKELY(tag >= ompi_pml_crypt.tags.floor) ? tag
                                                         : opal_crypt_tags_below(&ompi_pml_crypt.tags, tag);
}

/* The peer of a rank, resolved; OMPI_SUCCESS or the error that was shown. */
static inline int ompi_pml_crypt_peer(ompi_common_cryptmpi_comm_t *c, int rank, ompi_common_cryptmpi_peer_t **peer)
{
    *peer = ompi_common_cryptmpi_comm_peer(c, rank);
    return OPAL_LIKELY(OMPI_COMMON_CRYPTMPI_UNKNOWN != ompi_common_cryptmpi_kind(*peer))
               ? OMPI_SUCCESS
               : ompi_common_cryptmpi_resolve(ompi_comm_peer_lookup(c->comm, rank), *peer);
}

/* ---- the module's functions (pml.h) ---- */

int ompi_pml_crypt_add_procs(ompi_proc_t **procs, size_t count);
int ompi_pml_crypt_del_procs(ompi_proc_t **procs, size_t count);
int ompi_pml_crypt_enable(bool enable);
void ompi_pml_crypt_name_back(void);        /* after select() */
int ompi_pml_crypt_add_comm(ompi_communicator_t *comm);
int ompi_pml_crypt_del_comm(ompi_communicator_t *comm);
int ompi_pml_crypt_isend_init(const void *buffer, size_t count, ompi_datatype_t *type, int dst, int tag,
                              mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request);
int ompi_pml_crypt_isend(const void *buffer, size_t count, ompi_datatype_t *type, int dst, int tag,
                         mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request);
int ompi_pml_crypt_send(const void *buffer, size_t count, ompi_datatype_t *type, int dst, int tag,
                        mca_pml_base_send_mode_t mode, ompi_communicator_t *comm);
int ompi_pml_crypt_irecv_init(void *buffer, size_t count, ompi_datatype_t *type, int src, int tag,
                              ompi_communicator_t *comm, ompi_request_t **request);
int ompi_pml_crypt_irecv(void *buffer, size_t count, ompi_datatype_t *type, int src, int tag,
                         ompi_communicator_t *comm, ompi_request_t **request);
int ompi_pml_crypt_recv(void *buffer, size_t count, ompi_datatype_t *type, int src, int tag,
                        ompi_communicator_t *comm, ompi_status_public_t *status);
int ompi_pml_crypt_start(size_t count, ompi_request_t **requests);
int ompi_pml_crypt_iprobe(int src, int tag, ompi_communicator_t *comm, int *matched, ompi_status_public_t *status);
int ompi_pml_crypt_probe(int src, int tag, ompi_communicator_t *comm, ompi_status_public_t *status);
int ompi_pml_crypt_improbe(int src, int tag, ompi_communicator_t *comm, int *matched, ompi_message_t **message,
                           ompi_status_public_t *status);
int ompi_pml_crypt_mprobe(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message,
                          ompi_status_public_t *status);
int ompi_pml_crypt_imrecv(void *buffer, size_t count, ompi_datatype_t *type, ompi_message_t **message,
                          ompi_request_t **request);
int ompi_pml_crypt_mrecv(void *buffer, size_t count, ompi_datatype_t *type, ompi_message_t **message,
                         ompi_status_public_t *status);
int ompi_pml_crypt_dump(ompi_communicator_t *comm, int verbose);

END_C_DECLS

#endif
