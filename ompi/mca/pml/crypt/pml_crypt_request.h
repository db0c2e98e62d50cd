/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What is under way: an operation at the host, its staging, and the request that the application holds.
 * All files of the component include it, through pml_crypt.h.
 */
#ifndef MCA_PML_CRYPT_REQUEST_H
#define MCA_PML_CRYPT_REQUEST_H

#include "opal/class/opal_free_list.h"
#include "ompi/mca/pml/base/pml_base_request.h"
#include "ompi/message/message.h"

#include "opal/mca/common/crypt/base/team.h"
#include "pml_crypt_message.h"

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
    struct ompi_pml_crypt_op *behind;   /* next of those that are polled */
    uint32_t segment;
} ompi_pml_crypt_op_t;

int ompi_pml_crypt_op_send(ompi_pml_crypt_op_t *op, const void *buffer, size_t count, ompi_datatype_t *type,
                           int peer, int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm);
int ompi_pml_crypt_op_recv(ompi_pml_crypt_op_t *op, void *buffer, size_t count, ompi_datatype_t *type,
                           int peer, int tag, ompi_communicator_t *comm);
int ompi_pml_crypt_op_imrecv(ompi_pml_crypt_op_t *op, void *buffer, size_t count, ompi_message_t **message);
void ompi_pml_crypt_ops_start(void);
int ompi_pml_crypt_op_poll(void);       /* those that are polled; from the progress function */
bool ompi_pml_crypt_called_back(void);  /* is this thread within a callback of the host? */

/* Staging: an operation with a buffer.  `bytes` begins 8 bytes before a cache
 * line, so that the payload behind an 8-byte header is aligned. */
typedef struct ompi_pml_crypt_stage {
    opal_free_list_item_t super;
    ompi_pml_crypt_op_t op;
    opal_free_list_t *home;         /* NULL: freed */
    struct ompi_pml_crypt_held *owner;
    uint8_t *bytes;
    size_t cold_bytes;              /* not 0: its pages go back to the kernel when it is returned */
    void *copy;                     /* the asynchronous copy from or to an accelerator's memory that is in flight; or NULL */
    bool pinned;                    /* locked for such copies */
    uint32_t stalls;                /* how many there had been when it was sent (chop_send.c) */
    /* while a worker has it (team.c) */
    opal_crypt_job_t job;
    struct ompi_pml_crypt_stage *behind;
    void *plain;                    /* the plaintext's place; may be `bytes` */
    size_t wire_bytes;
    int rc;
} ompi_pml_crypt_stage_t;
OBJ_CLASS_DECLARATION(ompi_pml_crypt_stage_t);

/* Cancel a request's operation at the host, and take the request's stage: each is
 * atomic for a thread that does the other. */
int ompi_pml_crypt_op_cancel(ompi_pml_crypt_stage_t *const *place, int flag);
ompi_pml_crypt_stage_t *ompi_pml_crypt_op_leave(ompi_pml_crypt_stage_t **place);

int ompi_pml_crypt_stages_start(void);
void ompi_pml_crypt_stages_stop(void);      /* after start, also after one that failed */
ompi_pml_crypt_stage_t *ompi_pml_crypt_stage_get(void);                 /* to receive a first part */
/* To send; NULL when the limit of sealed frames is reached. */
ompi_pml_crypt_stage_t *ompi_pml_crypt_frame_get(size_t wire_bytes);
ompi_pml_crypt_stage_t *ompi_pml_crypt_stage_of(size_t wire_bytes);     /* not from a pool; NULL: out of memory */
void ompi_pml_crypt_stage_return(ompi_pml_crypt_stage_t *stage);
/* Copy between an accelerator's memory and `bytes`; may return before the copy has completed.  Has it? */
void ompi_pml_crypt_stage_copy(ompi_pml_crypt_stage_t *stage, char *device, size_t bytes, bool to_device);
bool ompi_pml_crypt_stage_copied(ompi_pml_crypt_stage_t *stage);

/* ---- requests ---- */

typedef struct ompi_pml_crypt_request {
    mca_pml_base_request_t base;
    ompi_pml_crypt_message_t m;
    mca_pml_base_send_mode_t mode;
    ompi_pml_crypt_stage_t *first;          /* staging of the first part */
    ompi_pml_crypt_op_t rest;               /* the body of a large local message */
    void *body;                             /* its place when the user's buffer is too small */
    void *bsend;                            /* our part of the user's attached buffer */
    ompi_common_cryptmpi_atomic32_t pending;/* operations at the host, and one for the starter */
    ompi_common_cryptmpi_atomic32_t state;  /* done | freed, and completions under way */
    bool hidden;                            /* nobody waits for it: the tail of a buffered send */
    struct ompi_pml_crypt_request *made;    /* the one made before it */
    int64_t pending_since;                  /* when the status page first saw it pending; 0: not yet */
    /* chopped messages */
    opal_crypt_chop_t *chop;
    opal_crypt_shape_t shape;
    ompi_common_cryptmpi_stream_t *stream;  /* for a non-contiguous buffer; or NULL */
    char *device;                           /* the first byte, of contiguous elements in an accelerator's memory; or NULL */
    opal_list_item_t queued;                /* in the queue of senders, of deferred receives, or of those arriving */
    uint32_t next_segment;
    uint32_t run_ahead;                     /* segments that may leave without credit */
    ompi_common_cryptmpi_atomic32_t work, window, has_credit, left;
    bool acks_match;                        /* sent synchronously: first_out means a match */
    bool waits_for_credit;                  /* out of the queue, until the first part has matched */
    bool stalled;                           /* its segments do not move */
    uint32_t ahead;                         /* bytes to take off the peer's count at its match */
    struct ompi_pml_crypt_stream *confirms; /* whose earlier messages have matched then, too */
    unsigned threads;                       /* t; more than 1: for the team */
    int chop_tag;
    int failure;                            /* a segment, or the body, did not authenticate */
    int host_error;                         /* the host could not deliver one; an MPI code */
} ompi_pml_crypt_request_t;
OBJ_CLASS_DECLARATION(ompi_pml_crypt_request_t);

/* End the job, with this message about `bytes`: a peer would wait for ever. */
void ompi_pml_crypt_no_memory(const ompi_pml_crypt_request_t *r, const char *topic, size_t bytes) OPAL_CRYPT_RARE
    __attribute__((noreturn));

/* Staging for a segment of this request; ends the job when out of memory. */
ompi_pml_crypt_stage_t *ompi_pml_crypt_chunk_get(const ompi_pml_crypt_request_t *r, size_t wire_bytes);

ompi_pml_crypt_request_t *ompi_pml_crypt_request_new(mca_pml_base_request_type_t type, const void *buffer,
                                                     size_t count, ompi_datatype_t *datatype, int peer, int tag,
                                                     ompi_communicator_t *comm, bool persistent);
void ompi_pml_crypt_request_begin(ompi_pml_crypt_request_t *r);     /* inactive -> active, pending = 1 */
void ompi_pml_crypt_request_put(ompi_pml_crypt_request_t *r);       /* decrement pending; at 0, complete */
/* It did not start: give it back or, if it is persistent, make it inactive again. */
void ompi_pml_crypt_request_drop(ompi_pml_crypt_request_t *r) OPAL_CRYPT_RARE;
void ompi_pml_crypt_request_hide(ompi_pml_crypt_request_t *r);      /* nobody will wait for it or free it */
int ompi_pml_crypt_request_wait(ompi_pml_crypt_request_t *r, ompi_status_public_t *status);

bool ompi_pml_crypt_request_pending(const ompi_pml_crypt_request_t *r);     /* for any that was ever made */

#endif
