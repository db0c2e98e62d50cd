/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * pml/crypt: a PML that encrypts (seals) messages to other nodes and passes them to
 * a host PML (ob1, ucx or cm), which it loads itself.
 *
 * The life of a message
 *   send.c    pack + seal --> host           recv.c       host --> open, accept, unpack
 *   chop_send.c, chop_recv.c                 the same of a large one: a first part, and segments
 *   node.c    both ways, within this node    accept.c     seen before?  in MPI's order?
 *   probe.c, held.c  messages held for later
 *   request.c what the application holds     ops.c        one operation at the host
 *   cut.c     how a large message is cut     team.c       sealing and opening by other threads
 *   stage.c   staging, from pools            final.c      the end: did all arrive?
 *   ahead.c   how far a sender may run ahead
 *   mtl.c     what is different where the host is cm
 *   progress.c  what waits for the progress function
 *   look.c    what is pending, gathered to be shown: by status.c on the page that
 *             `mpicrypt ps` reads, by dump.c as text
 *
 * Rules that hold everywhere
 *   - The peer table (common/cryptmpi) decides what is sealed and what may stay
 *     plain, never a header.
 *   - A completion callback never blocks.  Only two locks are held across calls of
 *     the host: the peer's send lock and the communicator's lock.  No callback takes
 *     them; and progress inside such a call, with non-blocking collectives, needs
 *     none (ompi_pml_crypt_host_lock), unless an operation of the user's does.
 *   - A request completes after the last byte verified, or with an error after
 *     every byte of the message was wiped.
 */
#ifndef MCA_PML_CRYPT_H
#define MCA_PML_CRYPT_H

#include "ompi/mca/common/cryptmpi/cryptmpi.h"

#include "opal/class/opal_free_list.h"
#include "ompi/errhandler/errcode-internal.h"
#include "ompi/mca/pml/base/pml_base_request.h"
#include "ompi/message/message.h"
#include "ompi/runtime/mpiruntime.h"

#include "opal/mca/common/crypt/wire/model.h"
#include "opal/mca/common/crypt/wire/tags.h"
#include "opal/mca/common/crypt/base/team.h"
#include "pml_crypt_message.h"

BEGIN_C_DECLS

/* ---- component ---- */

typedef struct ompi_pml_crypt_params {
    char *host;
    bool raise_limits;              /* hook/crypt has acted on btl/tcp's before */
    unsigned chop_min;              /* a longer message is chopped; also the plaintext in its first part */
    unsigned chunk_size;
    unsigned k, t;                  /* 0: by the table, the model, or chunk_size */
    char *t_table, *model_comm, *model_enc;
    char *team;                     /* pool or openmp */
    unsigned comm_threads;          /* hardware threads left to communication */
    unsigned max_outstanding;       /* long sends; from so many on k is 1 */
    unsigned in_flight;             /* sealed segments of this process that the host may hold */
    unsigned verbose;
} ompi_pml_crypt_params_t;

/* Stages that workers have, in the order in which they were given; take() has
 * the oldest if it is done, else NULL.  `count` may be read at any time. */
typedef struct ompi_pml_crypt_line {
    struct ompi_pml_crypt_stage *first, *last;
    pthread_mutex_t lock;
    volatile int count;
} ompi_pml_crypt_line_t;

typedef struct ompi_pml_crypt_state {
    ompi_pml_crypt_params_t params;
    const char *host_name;          /* what pml_crypt_host says, or auto has chosen */
    mca_pml_base_module_t host;     /* a copy: its functions are called directly */
    size_t stage_bytes;             /* the largest first part */
    size_t room_least;              /* of a receive at the host, however short what comes is (mtl.c) */
    size_t local_inline;            /* a longer message to this node follows its frame as it is */
    unsigned tag_bits;              /* of a tag that the host compares */
    opal_crypt_tags_t tags;
    bool eager;                     /* a segment of up to chunk_size bytes leaves whether it is waited for or not */
    bool sends_later;               /* the host's callbacks are no place to send from: ucx, cm */
    bool mtl;                       /* the host is cm, which gives messages to an MTL (mtl.c) */
    opal_free_list_t requests;
    bool lists;
    ompi_common_cryptmpi_atomic32_t outstanding;    /* chopped sends that are not finished */
    opal_crypt_team_t *team; /* NULL: one thread does it all */
    ompi_pml_crypt_line_t sealing, opening;
    uint64_t active;                /* messages that began or ended, roughly: whether it changes is what counts */
    struct ompi_pml_crypt_request *made;    /* all that the free list ever made */
    struct {                        /* lengths of lists of others than their files, to look at without their locks */
        volatile int polled, deferred, queued, arriving;
    } waiting;
} ompi_pml_crypt_state_t;

extern ompi_common_cryptmpi_pml_component_t mca_pml_crypt_component;
extern mca_pml_base_module_t ompi_pml_crypt_module;
extern ompi_pml_crypt_state_t ompi_pml_crypt;

/* The lock of a peer or a communicator, across a call of the host.  Open MPI's own messages, whose tags are below
 * MPI_ANY_TAG, need none: those of one communicator and tag come from one thread at a time, and who probes for one
 * (the report) takes it by a matched receive.  Nor may they have one: a call of the host may make progress (a probe; from
 * 5.0 on any of cm's; a buffered send whose buffer is full), which begins such messages, and two threads would wait for each
 * other's lock.  Of tags from 0 up, progress begins those of MPI_Comm_create_group and, from 5.0 on, of partitioned
 * communication, each of them in one thread at a time. */
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

/* `name` is what is wanted, and becomes what is there. */
mca_pml_base_module_t *ompi_pml_crypt_host_load(const char **name, bool progress_threads, bool mpi_threads);
int ompi_pml_crypt_host_finalize(void);
void ompi_pml_crypt_limits_fit(ompi_pml_crypt_params_t *params);    /* defaults where nothing is raised */
void ompi_pml_crypt_limits_ucx_raise(void); /* before host_load; restore after it */
void ompi_pml_crypt_limits_ucx_restore(const char *host);
bool ompi_pml_crypt_limits_ucx_raised(void);
void ompi_pml_crypt_limits_raise(void);     /* after host_load, before the host has peers */
bool ompi_pml_crypt_limits_eager(size_t wire_bytes);    /* a message of this length leaves eagerly; after raise */
void ompi_pml_crypt_host_close(void);
bool ompi_pml_crypt_fault_tolerant(void);   /* refused, with a message */

/* ---- the host cm: mtl.c ---- */

enum { OMPI_PML_CRYPT_MTL_ROOM = 1 << 16 };
bool ompi_pml_crypt_mtl_fits(void);         /* false after a text */
const char *ompi_pml_crypt_mtl_name(void);  /* NULL: another host */
int ompi_pml_crypt_mtl_send(const void *buffer, size_t count, ompi_datatype_t *type, int dst, int tag,
                            mca_pml_base_send_mode_t mode, ompi_communicator_t *comm);

/* ---- pml_crypt_transport.c: crypt_transport=btl ---- */

/* NULL after a text. */
mca_pml_base_module_t *ompi_pml_crypt_transport_start(bool progress_threads, bool mpi_threads);
void ompi_pml_crypt_find_threads(bool mpi_threads);
const char *ompi_pml_crypt_agreed(void);    /* the parameters that all processes must have alike */
int ompi_pml_crypt_cryptag_priority(void);
int ompi_pml_crypt_audit(void);
int ompi_pml_crypt_audit_transport(void);   /* of what btl/crypt does not look at itself */
void ompi_pml_crypt_audit_osc(void);
void ompi_pml_crypt_audit_osc_end(void);
/* True: act on it.  Shown if fatal, or if crypt_audit is warn (then false). */
bool ompi_pml_crypt_audit_finding(const char *component, const char *remedy, bool fatal);
void ompi_pml_crypt_disable(void);

/* ---- one operation at the host ---- */

struct ompi_pml_crypt_request;
struct ompi_pml_crypt_op;
typedef void (*ompi_pml_crypt_done_fn_t)(struct ompi_pml_crypt_op *op, const ompi_status_public_t *status);

/* `done` runs exactly once for every operation that was handed over without
 * error: in a callback, or before the call that started it returns. */
typedef struct ompi_pml_crypt_op {
    ompi_pml_crypt_done_fn_t done;
    struct ompi_pml_crypt_request *request;
    ompi_request_t *inner;          /* while the host has it */
    struct ompi_pml_crypt_op *behind;   /* of those that are polled */
    uint32_t segment;
} ompi_pml_crypt_op_t;

int ompi_pml_crypt_op_send(ompi_pml_crypt_op_t *op, const void *buffer, size_t count, ompi_datatype_t *type,
                           int peer, int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm);
int ompi_pml_crypt_op_recv(ompi_pml_crypt_op_t *op, void *buffer, size_t count, ompi_datatype_t *type,
                           int peer, int tag, ompi_communicator_t *comm);
int ompi_pml_crypt_op_imrecv(ompi_pml_crypt_op_t *op, void *buffer, size_t count, ompi_message_t **message);
int ompi_pml_crypt_op_poll(void);       /* those of imrecv, from the progress function */

/* Staging: an operation with a buffer.  `bytes` is cache-line aligned plus 8,
 * so that the payload behind an 8-byte header is aligned. */
typedef struct ompi_pml_crypt_stage {
    opal_free_list_item_t super;
    ompi_pml_crypt_op_t op;
    opal_free_list_t *home;         /* NULL: freed */
    struct ompi_pml_crypt_held *owner;
    uint8_t *bytes;
    size_t cold_bytes;              /* not 0: its pages go back to the kernel when it is returned */
    uint32_t era;                   /* when it was sent (chop_send.c) */
    /* while a worker has it (team.c) */
    opal_crypt_job_t job;
    struct ompi_pml_crypt_stage *behind;
    void *plain;                    /* sealed from, or opened to; may be `bytes` */
    size_t wire_bytes;
    int rc;
} ompi_pml_crypt_stage_t;
OBJ_CLASS_DECLARATION(ompi_pml_crypt_stage_t);

/* Cancelling what a request has at the host, and taking its staging from it: the
 * other thread finds all of it or nothing. */
int ompi_pml_crypt_op_cancel(ompi_pml_crypt_stage_t *const *place, int flag);
ompi_pml_crypt_stage_t *ompi_pml_crypt_op_leave(ompi_pml_crypt_stage_t **place);

int ompi_pml_crypt_stages_start(void);
void ompi_pml_crypt_stages_stop(void);      /* after start, also after one that failed */
ompi_pml_crypt_stage_t *ompi_pml_crypt_stage_get(void);                 /* to receive a first part */
/* Of the buffer that the host gets to receive up to this many bytes. */
static inline size_t ompi_pml_crypt_room_of(size_t wire_bytes)
{
    return wire_bytes < ompi_pml_crypt.room_least ? ompi_pml_crypt.room_least : wire_bytes;
}
/* To send; NULL when as much as may be is sealed already. */
ompi_pml_crypt_stage_t *ompi_pml_crypt_frame_get(size_t wire_bytes);
ompi_pml_crypt_stage_t *ompi_pml_crypt_stage_of(size_t wire_bytes);     /* of no pool; NULL: there is no memory */
void ompi_pml_crypt_stage_return(ompi_pml_crypt_stage_t *stage);

/* ---- requests ---- */

typedef struct ompi_pml_crypt_request {
    mca_pml_base_request_t base;
    ompi_pml_crypt_message_t m;
    mca_pml_base_send_mode_t mode;
    ompi_pml_crypt_stage_t *first;          /* staging of the first part */
    ompi_pml_crypt_op_t rest;               /* the body of a large local message */
    void *body;                             /* it goes here when the buffer is too small */
    void *bsend;                            /* our piece of the buffer that the user attached */
    ompi_common_cryptmpi_atomic32_t pending;/* operations at the host, and one for the starter */
    ompi_common_cryptmpi_atomic32_t life;   /* done | freed, and completions under way */
    bool hidden;                            /* nobody waits for it: the tail of a buffered send */
    struct ompi_pml_crypt_request *made;    /* the one made before it */
    int64_t seen;                           /* since when it is pending, by the status page; 0: not seen yet */
    /* chopped messages */
    opal_crypt_chop_t *chop;
    opal_crypt_shape_t shape;
    ompi_common_cryptmpi_stream_t *stream;  /* of a buffer that is not one run of memory; or NULL */
    opal_list_item_t queued;                /* in the queue of senders, of deferred receives, or of those arriving */
    uint32_t next_segment;
    uint32_t run_ahead;                     /* so many segments leave before the gate is open */
    ompi_common_cryptmpi_atomic32_t work, window, gate_open, left;
    bool tells;                             /* first_out says that a receive matched */
    bool parked;                            /* out of the queue, until the gate opens */
    bool stuck;                             /* its segments do not move */
    uint32_t ahead;                         /* bytes that it takes off the peer's count when it tells */
    struct ompi_pml_crypt_stream *fence;    /* and of this one it then tells, too */
    unsigned threads;                       /* t: more than 1 is the team's */
    int chop_tag;
    int failure;                            /* of any segment, or the body: it did not authenticate */
    int host_error;                         /* the same: the host could not bring it; an MPI code */
} ompi_pml_crypt_request_t;
OBJ_CLASS_DECLARATION(ompi_pml_crypt_request_t);

/* The end of the job, with this text about so many bytes: a peer would wait. */
void ompi_pml_crypt_no_memory(const ompi_pml_crypt_request_t *r, const char *topic, size_t bytes) OPAL_CRYPT_RARE
    __attribute__((noreturn));

/* Staging for a segment of this request; ends the job when there is no memory. */
ompi_pml_crypt_stage_t *ompi_pml_crypt_chunk_get(const ompi_pml_crypt_request_t *r, size_t wire_bytes);

ompi_pml_crypt_request_t *ompi_pml_crypt_request_new(mca_pml_base_request_type_t type, const void *buffer,
                                                     size_t count, ompi_datatype_t *datatype, int peer, int tag,
                                                     ompi_communicator_t *comm, bool persistent);
void ompi_pml_crypt_request_begin(ompi_pml_crypt_request_t *r);     /* inactive -> active, pending = 1 */
void ompi_pml_crypt_request_put(ompi_pml_crypt_request_t *r);       /* one pending less; the last completes */
/* It did not start: given back, or, a persistent one, inactive again. */
void ompi_pml_crypt_request_drop(ompi_pml_crypt_request_t *r) OPAL_CRYPT_RARE;
void ompi_pml_crypt_request_hide(ompi_pml_crypt_request_t *r);      /* nobody will wait for it or free it */
int ompi_pml_crypt_request_wait(ompi_pml_crypt_request_t *r, ompi_status_public_t *status);

bool ompi_pml_crypt_request_pending(const ompi_pml_crypt_request_t *r);     /* of any that was made */

/* A message begins or ends.  With several threads one may be lost. */
static inline void ompi_pml_crypt_act(void)
{
    __atomic_store_n(&ompi_pml_crypt.active, __atomic_load_n(&ompi_pml_crypt.active, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* ---- to be seen from outside ---- */

void ompi_pml_crypt_status_start(void);
void ompi_pml_crypt_status_lists(bool ready);       /* requests and communicators are there, or are about to go */
void ompi_pml_crypt_status_stop(void);
void ompi_pml_crypt_status_look(void);
void ompi_pml_crypt_status_now(opal_crypt_status_moment_t *moment);             /* into memory of the caller, zeros before */
extern unsigned ompi_pml_crypt_status_calls;
/* From the progress function. */
static inline void ompi_pml_crypt_status_tick(void)
{
    enum { CALLS = 32 };
    const unsigned calls = __atomic_load_n(&ompi_pml_crypt_status_calls, __ATOMIC_RELAXED) + 1;

    __atomic_store_n(&ompi_pml_crypt_status_calls, calls, __ATOMIC_RELAXED);
    if (OPAL_UNLIKELY(0 == calls % CALLS)) {
        ompi_pml_crypt_status_look();
    }
}

/* ---- pml_crypt_look_btl.c: with crypt_transport=btl.  False: not now. ---- */
bool ompi_pml_crypt_look_btl(opal_crypt_status_moment_t *moment, int64_t now, uint64_t *moved);   /* changes with each record */
void ompi_pml_crypt_look_btl_start(void);                   /* ob1's progress function does not call us */
void ompi_pml_crypt_look_btl_stop(void);

/* What is pending, and the peers.  `lists`: there are requests to look at.  One at a time. */
void ompi_pml_crypt_look(opal_crypt_status_moment_t *moment, int64_t now, bool lists);
/* The messages that a probe took ahead of their receives; -1: the communicator is busy. */
int ompi_pml_crypt_held_count(ompi_common_cryptmpi_comm_t *c, int source, int *tag, size_t *bytes);

/* pml_crypt_verbose: how a message is sent, a line each. */
static inline bool ompi_pml_crypt_says_messages(void)
{
    return OPAL_UNLIKELY(ompi_pml_crypt.params.verbose >= OPAL_CRYPTPROC_SAY_MESSAGES);
}

/* ---- sending ---- */

/* An error: the host has nothing of it, and the request is the caller's to drop. */
int ompi_pml_crypt_start_send(ompi_pml_crypt_request_t *r);
void ompi_pml_crypt_sent(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status);     /* all of a frame, or a body */
int ompi_pml_crypt_chop_send(ompi_pml_crypt_request_t *r);          /* takes the peer's send lock itself */
void ompi_pml_crypt_queue_start(void);
void ompi_pml_crypt_queue_stop(void);
void ompi_pml_crypt_pump(void);
void ompi_pml_crypt_pump_stalled(void);     /* from the progress function */

/* ---- how far a sender may run ahead of its receiver ---- */

typedef enum {
    OMPI_PML_CRYPT_LATE,            /* nothing may: the first part goes without payload, and tells */
    OMPI_PML_CRYPT_AHEAD,
    OMPI_PML_CRYPT_AHEAD_TELLS      /* and its first part has to tell when it has matched */
} ompi_pml_crypt_ahead_t;

enum { OMPI_PML_CRYPT_NOTHING_AHEAD = 0 };

/* May `bytes` of this message leave before it has matched?  `tells`:
 * its first part does so anyway. */
ompi_pml_crypt_ahead_t ompi_pml_crypt_ahead_take(ompi_pml_crypt_request_t *r, uint32_t bytes, bool tells);
void ompi_pml_crypt_ahead_told(ompi_pml_crypt_request_t *r);
uint32_t ompi_pml_crypt_ahead_bytes(const ompi_common_cryptmpi_peer_t *peer);  /* to be shown */

/* ---- how a long message is cut ---- */

bool ompi_pml_crypt_cut_start(void);        /* says itself what is wrong with a parameter */
unsigned ompi_pml_crypt_cut_threads(void);  /* the largest t of any message */
/* Bytes of a segment, and t, for a message of which `rest` bytes are behind the first part. */
uint32_t ompi_pml_crypt_cut(uint64_t plain_bytes, uint64_t rest, unsigned outstanding, unsigned *threads);
unsigned ompi_pml_crypt_cut_open(uint64_t plain_bytes);     /* t of the receiver */

/* ---- the team ---- */

int ompi_pml_crypt_team_start(void);
void ompi_pml_crypt_team_stop(void);         /* what workers still have is done, and left */
void ompi_pml_crypt_team_seal(ompi_pml_crypt_line_t *line, ompi_pml_crypt_stage_t *stage);
void ompi_pml_crypt_team_open(ompi_pml_crypt_line_t *line, ompi_pml_crypt_stage_t *stage);
ompi_pml_crypt_stage_t *ompi_pml_crypt_team_take(ompi_pml_crypt_line_t *line);

/* How many segments may be on their way for a message sealed or opened by t. */
static inline int32_t ompi_pml_crypt_room(unsigned least, unsigned threads)
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

/* ---- receiving ---- */

typedef struct ompi_pml_crypt_held ompi_pml_crypt_held_t;

/* What came in, decided once: the peer table says what it may be, and its header which of that. */
typedef enum {
    OMPI_PML_CRYPT_IS_DIRECT,
    OMPI_PML_CRYPT_IS_FIRST,
    OMPI_PML_CRYPT_IS_LOCAL,            /* within this node, not looked into yet */
    OMPI_PML_CRYPT_IS_LOCAL_LARGE,      /* and its body follows */
    OMPI_PML_CRYPT_IS_STRANGERS,        /* of a process that was never spoken to */
    OMPI_PML_CRYPT_IS_FORGED,
    OMPI_PML_CRYPT_IS_NOTHING           /* cancelled, or lost by the host */
} ompi_pml_crypt_what_t;

/* Of what arrived WHOLE: m->in and m->peer are set. */
static inline ompi_pml_crypt_what_t ompi_pml_crypt_what(const ompi_pml_crypt_message_t *m, const uint8_t *frame)
{
    const size_t wire_bytes = m->in.wire_bytes;
    const int type = opal_crypt_frame_type(frame, wire_bytes);

    switch (ompi_common_cryptmpi_kind(m->peer)) {
    case OMPI_COMMON_CRYPTMPI_SEALED:
        return OPAL_CRYPT_FRAME_DIRECT == type && wire_bytes >= OPAL_CRYPT_DIRECT_OVERHEAD ? OMPI_PML_CRYPT_IS_DIRECT
               : OPAL_CRYPT_FRAME_FIRST == type && wire_bytes >= OPAL_CRYPT_FIRST_OVERHEAD ? OMPI_PML_CRYPT_IS_FIRST
                                                                                           : OMPI_PML_CRYPT_IS_FORGED;
    case OMPI_COMMON_CRYPTMPI_LOCAL:
        return OPAL_CRYPT_FRAME_LOCAL_LARGE == type ? OMPI_PML_CRYPT_IS_LOCAL_LARGE : OMPI_PML_CRYPT_IS_LOCAL;
    default:
        return OMPI_PML_CRYPT_IS_STRANGERS;
    }
}

int ompi_pml_crypt_start_recv(ompi_pml_crypt_request_t *r);
void ompi_pml_crypt_first_in(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status);
void ompi_pml_crypt_open_first_part(ompi_pml_crypt_request_t *r, ompi_pml_crypt_what_t what);

/* Open and accept what is DIRECT, or FIRST; OPAL_CRYPT_OK, or why it is refused, and then all of it is
 * wiped.  *packed: where the text lies, if it is not in its place in the buffer yet; else NULL. */
int ompi_pml_crypt_open_direct(ompi_pml_crypt_message_t *m, uint8_t *frame, const uint8_t **packed);
int ompi_pml_crypt_open_first(ompi_pml_crypt_message_t *m, uint8_t *frame, const uint8_t **packed,
                              opal_crypt_shape_t *shape, uint64_t *counter, opal_crypt_chop_t **chop);
/* A message of total_bytes: its length, or that the buffer is too short; and the first bytes of it, which are
 * still `packed`. */
void ompi_pml_crypt_deliver(ompi_pml_crypt_message_t *m, uint64_t total_bytes, const uint8_t *packed, size_t packed_bytes);
void ompi_pml_crypt_fail(ompi_pml_crypt_message_t *m, int rc) OPAL_CRYPT_RARE;      /* report, set the status */
void ompi_pml_crypt_wipe_buffer(const ompi_pml_crypt_message_t *m, size_t plain_bytes) OPAL_CRYPT_RARE;

/* Where text of this length is opened to: the buffer, if it fits in there as it is; else over the
 * ciphertext, behind the header. */
static inline uint8_t *ompi_pml_crypt_place(const ompi_pml_crypt_message_t *m, size_t plain_bytes, uint8_t *frame,
                                            size_t header, size_t *room, const uint8_t **packed)
{
    uint8_t *place = plain_bytes > 0 && plain_bytes <= m->plain_bytes
                         ? ompi_common_cryptmpi_contiguous(m->buffer, m->type, m->count) : NULL;

    *packed = NULL != place ? NULL : frame + header;
    *room = NULL != place ? m->plain_bytes : ompi_pml_crypt.stage_bytes - header;
    return NULL != place ? place : frame + header;
}

/* ---- seen before?  in MPI's order? ---- */

/* A receive, or a probe that takes a message, has a serial from here until it is given back. */
void ompi_pml_crypt_serial_take(ompi_pml_crypt_message_t *m, bool any_tag);
void ompi_pml_crypt_serial_drop(ompi_pml_crypt_message_t *m);
/* What was opened, with `rc`: OPAL_CRYPT_OK, or why it is refused.  The serial is given back. */
int ompi_pml_crypt_accept(ompi_pml_crypt_message_t *m, const opal_crypt_envelope_t *envelope, int rc, uint64_t counter);

/* ---- within this node ---- */

int ompi_pml_crypt_local_frame(const ompi_pml_crypt_message_t *m, uint8_t *frame, size_t *wire_bytes);
int ompi_pml_crypt_local_send(ompi_pml_crypt_request_t *r);         /* a frame, then the message as it is */
int ompi_pml_crypt_local_open(ompi_pml_crypt_message_t *m, const uint8_t *frame);
void ompi_pml_crypt_local_recv(ompi_pml_crypt_request_t *r);
/* For a probe, which leaves the frame as it came: the length of the message; OPAL_CRYPT_OK or ERR_AUTH. */
int ompi_pml_crypt_local_look(const ompi_pml_crypt_message_t *m, const uint8_t *frame, size_t *plain_bytes);

/* ---- chopped ---- */

void ompi_pml_crypt_chop_recv(ompi_pml_crypt_request_t *r);         /* opens the first part */
/* The first part was opened; `packed` is what of it is not in its place. */
void ompi_pml_crypt_chop_go_on(ompi_pml_crypt_request_t *r, const uint8_t *packed, uint64_t counter);
void ompi_pml_crypt_arriving_start(void);
void ompi_pml_crypt_arriving_stalled(void); /* from the progress function */
int ompi_pml_crypt_opened(void);            /* from the progress function: what workers have opened */

/* ---- progress ---- */

/* It waits for the progress function, which may ask the runtime for its peer. */
void ompi_pml_crypt_defer(ompi_pml_crypt_request_t *r) OPAL_CRYPT_RARE;
int ompi_pml_crypt_progress(void);

/* ---- held messages ---- */

/* A held message for this receive, or NULL; under the communicator's lock. */
ompi_pml_crypt_held_t *ompi_pml_crypt_held_take(ompi_common_cryptmpi_comm_t *c, int source, int tag);
int ompi_pml_crypt_held_recv(ompi_pml_crypt_request_t *r, ompi_pml_crypt_held_t *held);
void ompi_pml_crypt_held_drop_all(ompi_common_cryptmpi_comm_t *c);

/* What the host gets for a tag of the application's, or of Open MPI's.  Requests, envelopes
 * and statuses have the tag as it is; whatever asks the host has this one. */
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
