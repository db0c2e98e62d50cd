/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What pml/crypt, coll/cryptag and fs/crypt share on top of common/cryptproc, which needs no MPI:
 * peers and how to reach them, communicators, the host PML, failures.
 *
 *     a peer's name -> schedule (cryptproc) -> session (cryptmpi_peer.c)
 *         -> communicators (cryptmpi_comm.c, cryptmpi_generation.c) -> group keys (cryptmpi_group.c)
 *
 * Life cycle: pml/crypt calls start in its init, and stop in its finalize.  Other components
 * only query.
 */
#ifndef OMPI_COMMON_CRYPTMPI_H
#define OMPI_COMMON_CRYPTMPI_H

#include "cryptmpi_compat.h"

#include "opal/class/opal_list.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/request/request.h"

#include "opal/mca/common/crypt/wire/frame.h"
#include "opal/mca/common/crypt/wire/group.h"
#include "opal/mca/common/crypt/base/parameter.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/wire/session.h"
#include "opal/mca/common/crypt/base/status.h"
#include "opal/mca/common/crypt/wire/tags.h"
#include "opal/mca/common/cryptproc/cryptproc.h"

BEGIN_C_DECLS

/* A parameter of pml/crypt that hook/crypt must know earlier.  What "auto" will choose is not known yet. */
#define OMPI_COMMON_CRYPTMPI_HOST_HELP (opal_crypt_parameter_row("pml_crypt_host")->help)
#define OMPI_COMMON_CRYPTMPI_HOST "auto"
#define OMPI_COMMON_CRYPTMPI_RAISED_LIMIT "262144"
#define OMPI_COMMON_CRYPTMPI_ENDPOINT_CACHE "17408"     /* 16 KiB, and headers */

/* ---- start and stop ---- */

/* opal_cryptproc_start, and what peers and communicators need.  Prints what went wrong. */
OMPI_DECLSPEC int ompi_common_cryptmpi_start(const char *agreed);
OMPI_DECLSPEC void ompi_common_cryptmpi_stop(void);

/* The host PML, which carries what is sealed already or stays on the node.
 * NULL until pml/crypt is initialized: until then nothing may be sent. */
OMPI_DECLSPEC void ompi_common_cryptmpi_set_host(const mca_pml_base_module_t *host, const char *name);
OMPI_DECLSPEC const mca_pml_base_module_t *ompi_common_cryptmpi_host(void);
OMPI_DECLSPEC const char *ompi_common_cryptmpi_host_name(void);
static inline bool ompi_common_cryptmpi_active(void) { return NULL != ompi_common_cryptmpi_host(); }

/* ---- what protects the messages: cryptproc_policy.h ---- */

/* May ob1 be the host of pml/crypt, as pml_crypt_host says? */
OMPI_DECLSPEC bool ompi_common_cryptmpi_host_may_be_ob1(void);
/* Has this node a device for RDMA, or of another fabric than Ethernet? */
OMPI_DECLSPEC bool ompi_common_cryptmpi_fabric(void);
/* hook/crypt, before any network opens: decides, and sets the list of BTLs.  False after a message: end the job. */
OMPI_DECLSPEC bool ompi_common_cryptmpi_transport_choose(void);
/* pml/crypt, before it loads the named host, and once one was selected.  False after a message, too. */
OMPI_DECLSPEC bool ompi_common_cryptmpi_transport_begin(const char *host);
OMPI_DECLSPEC bool ompi_common_cryptmpi_transport_confirm(const char *host);
/* What was decided, and why; neither is true until the host has been selected. */
OMPI_DECLSPEC bool ompi_common_cryptmpi_transport_is_btl(void);
OMPI_DECLSPEC bool ompi_common_cryptmpi_transport_is_pml(void);
OMPI_DECLSPEC const char *ompi_common_cryptmpi_transport_why(void);
OMPI_DECLSPEC void ompi_common_cryptmpi_transport_refuse(const char *why);
/* Where pml/crypt seals messages: is btl/crypt to carry windows between nodes?  And the row of the policy that says so,
 * after a decision. */
OMPI_DECLSPEC bool ompi_common_cryptmpi_windows_over_btl(void);
OMPI_DECLSPEC const opal_cryptproc_policy_row_t *ompi_common_cryptmpi_windows(void);
/* The same for the report and doctor, which must not promise what crypt_audit=warn gives up. */
OMPI_DECLSPEC void ompi_common_cryptmpi_windows_text(char *text, size_t bytes);
/* pml/crypt: everything is sealed by btl/crypt, which has been checked. */
OMPI_DECLSPEC void ompi_common_cryptmpi_set_over_btl(bool over);
OMPI_DECLSPEC bool ompi_common_cryptmpi_over_btl(void);

/* One line for users and auditors.  `keys`: how they were agreed on; NULL: as this process would.  Empty until the
 * decision was made. */
enum { OMPI_COMMON_CRYPTMPI_PROTECTION = 256 };
OMPI_DECLSPEC void ompi_common_cryptmpi_protection(const char *keys, char text[OMPI_COMMON_CRYPTMPI_PROTECTION]);
/* Names of parameters that were set but have no effect over btl/crypt; or "". */
OMPI_DECLSPEC void ompi_common_cryptmpi_unused(char *text, size_t bytes);
OMPI_DECLSPEC int ompi_common_cryptmpi_protection_register(void);       /* for MPI_T */

/* ---- the report: crypt_report ---- */

/* Begin to measure, if a report was asked for.  Prints what is wrong with the parameter.
 * Called by start, or by pml/crypt where it does not call start. */
OMPI_DECLSPEC int ompi_common_cryptmpi_report_start(void);
/* hook/crypt is loaded, and will call report at MPI_Finalize. */
OMPI_DECLSPEC void ompi_common_cryptmpi_report_hooked(void);
/* The limits of a transport were raised, for the report. */
typedef enum {
    OMPI_COMMON_CRYPTMPI_RAISED_TCP,
    OMPI_COMMON_CRYPTMPI_RAISED_SM,
    OMPI_COMMON_CRYPTMPI_RAISED_UCX,
    OMPI_COMMON_CRYPTMPI_RAISED_COUNT
} ompi_common_cryptmpi_raised_t;
OMPI_DECLSPEC void ompi_common_cryptmpi_report_raised(ompi_common_cryptmpi_raised_t transport);

/* pml/crypt: how a message was chopped, for the report. */
OMPI_DECLSPEC void ompi_common_cryptmpi_report_cut(unsigned threads, uint32_t segments);

/* At the start of MPI_Finalize, and after its barrier: rank 0 of MPI_COMM_WORLD
 * writes the report. */
OMPI_DECLSPEC void ompi_common_cryptmpi_report(void);
OMPI_DECLSPEC void ompi_common_cryptmpi_report_end(void);

/* ---- which processes have hook/crypt ---- */

/* hook/crypt: this process has it, and will answer when a file is opened.  Called once Open MPI
 * has its runtime, before MPI_Init exchanges what was published; holds until forget. */
OMPI_DECLSPEC void ompi_common_cryptmpi_everywhere_publish(void);
OMPI_DECLSPEC void ompi_common_cryptmpi_everywhere_forget(void);

/* Do all processes of a communicator have it, in our version?  Asks the runtime; all of them get the same
 * answer.  SILENT, after which the job has to end: the runtime knows nothing about a process.  *lacks: the
 * lowest rank without it, or the one that nothing is known about, or -1. */
typedef enum {
    OMPI_COMMON_CRYPTMPI_EVERYWHERE,
    OMPI_COMMON_CRYPTMPI_IN_PARTS,
    OMPI_COMMON_CRYPTMPI_NOWHERE,
    OMPI_COMMON_CRYPTMPI_SILENT
} ompi_common_cryptmpi_everywhere_t;
OMPI_DECLSPEC ompi_common_cryptmpi_everywhere_t ompi_common_cryptmpi_everywhere(const ompi_communicator_t *comm, int *lacks);

/* `path` cannot be used because of rank `lacks`.  Processes without hook/crypt cannot be told,
 * so the job ends. */
OMPI_DECLSPEC void ompi_common_cryptmpi_everywhere_abort(ompi_common_cryptmpi_everywhere_t where, const char *path,
                                                         ompi_communicator_t *comm, int lacks);

/* MPI_File_set_info asked for encryption too late, and can neither fail nor tell the other processes. */
OMPI_DECLSPEC void ompi_common_cryptmpi_late_info_abort(const char *path, const char *key);

/* ---- peers ---- */

typedef enum {
    OMPI_COMMON_CRYPTMPI_UNKNOWN = 0,   /* not resolved yet */
    OMPI_COMMON_CRYPTMPI_LOCAL,         /* same node or ourselves, reached by shared memory alone */
    OMPI_COMMON_CRYPTMPI_SEALED
} ompi_common_cryptmpi_kind_t;

typedef struct ompi_common_cryptmpi_peer {
    opal_list_item_t super;
    opal_process_name_t name;
    int kind;                           /* ompi_common_cryptmpi_kind() */
    opal_crypt_session_t *session;
    const opal_crypt_token_t *token_out, *token_in;
    ompi_common_cryptmpi_lock_t send_lock; /* counter and hand-over to the host, together */
    uint64_t local_id;                  /* the next large local message's, atomic */
    int64_t met;                        /* when we connected to its job; 0: our own job */
    int failure;                        /* why resolve failed; it is not tried again */
    struct ompi_common_cryptmpi_ahead *ahead;   /* pml/crypt's; NULL, or freed with the entry */
    opal_list_t arriving;               /* pml/crypt: messages whose segments are not received yet */
    unsigned receiving;                 /* how many messages' segments are */
    struct ompi_common_cryptmpi_peer *crowded;  /* next of the peers that ever had messages in `arriving` */
    bool is_crowded, admitting;
    uint64_t shown;                     /* status page: a sum of what it showed, and when that changed */
    int64_t changed;
    uint64_t epochs;                    /* the latest that were reported */
} ompi_common_cryptmpi_peer_t;
OBJ_CLASS_DECLARATION(ompi_common_cryptmpi_peer_t);

/* It is set last: a thread that sees a known kind sees the session, too. */
static inline ompi_common_cryptmpi_kind_t ompi_common_cryptmpi_kind(const ompi_common_cryptmpi_peer_t *peer)
{
    return (ompi_common_cryptmpi_kind_t) __atomic_load_n(&peer->kind, __ATOMIC_ACQUIRE);
}

/* The entry of a process, made when it is first asked for; it outlives
 * del_procs.  Never blocks. */
OMPI_DECLSPEC ompi_common_cryptmpi_peer_t *ompi_common_cryptmpi_peer(ompi_proc_t *proc);

/* Fetch the peer's record, agree on keys, decide its kind.  May block on the
 * runtime: never call it in a completion callback.  A refusal has been shown
 * when this returns. */
OMPI_DECLSPEC int ompi_common_cryptmpi_resolve(ompi_proc_t *proc, ompi_common_cryptmpi_peer_t *peer) OPAL_CRYPT_RARE;

/* The SEALED peers of our own job with a session: their number, and an array for
 * the caller to free. */
OMPI_DECLSPEC size_t ompi_common_cryptmpi_sealed_peers(ompi_common_cryptmpi_peer_t ***peers);

/* The numbers of peers with a session: SEALED ones, and LOCAL ones. */
void ompi_common_cryptmpi_peers_count(uint64_t *sealed, uint64_t *local);

OMPI_DECLSPEC bool ompi_common_cryptmpi_is_local(ompi_proc_t *proc);
/* Do all BTLs that may reach this process stay on the node?  Call it only where Open MPI has
 * initialized BML. */
OMPI_DECLSPEC bool ompi_common_cryptmpi_btls_local(ompi_proc_t *proc);
OMPI_DECLSPEC int ompi_common_cryptmpi_session(ompi_proc_t *proc, opal_crypt_session_t **session);

/* Call `visit` for each peer; it must not block, nor call this again. */
OMPI_DECLSPEC void ompi_common_cryptmpi_peers_visit(void (*visit)(ompi_common_cryptmpi_peer_t *peer, void *context),
                                                    void *context);
/* This process for the status page: job, rank, host, method, PML. */
OMPI_DECLSPEC void ompi_common_cryptmpi_describe(opal_crypt_status_who_t *who);

/* For pml/crypt: a new communicator, before its first message.  Processes of
 * another job may be in it. */
OMPI_DECLSPEC int ompi_common_cryptmpi_meet(const ompi_communicator_t *comm);

/* ---- communicators ---- */

/* A member of the remote group; filled when first used. */
typedef struct ompi_common_cryptmpi_member {
    ompi_common_cryptmpi_peer_t *peer;  /* set last */
    uint32_t generation;                /* the context id's, for this peer and us */
} ompi_common_cryptmpi_member_t;

typedef struct ompi_common_cryptmpi_comm {
    ompi_communicator_t *comm;
    uint64_t context_high, context_low;
    ompi_common_cryptmpi_lock_t lock;   /* serials and posting; the held messages */
    opal_crypt_serials_t *serials;
    opal_list_t held;                   /* messages taken from the host ahead of their receives */
    ompi_common_cryptmpi_member_t *members;
    int peer_count;
    opal_crypt_group_t *group;          /* for collectives, made when first used */
    bool at_host;                       /* atomic: pml/crypt's host has it, too, and may be probed */
    bool is_window;                     /* osc/pt2pt's: it receives into memory that the program may read */
} ompi_common_cryptmpi_comm_t;

OMPI_DECLSPEC int ompi_common_cryptmpi_comm_add(ompi_communicator_t *comm);
/* For the status page only: messages of this communicator are not ours (btl/crypt seals them). */
OMPI_DECLSPEC int ompi_common_cryptmpi_comm_note(ompi_communicator_t *comm);
OMPI_DECLSPEC void ompi_common_cryptmpi_comm_del(ompi_communicator_t *comm);
OMPI_DECLSPEC ompi_common_cryptmpi_comm_t *ompi_common_cryptmpi_comm(const ompi_communicator_t *comm);

OMPI_DECLSPEC ompi_common_cryptmpi_peer_t *ompi_common_cryptmpi_comm_fill(ompi_common_cryptmpi_comm_t *c, int rank)
    OPAL_CRYPT_RARE;

static inline ompi_common_cryptmpi_peer_t *ompi_common_cryptmpi_comm_peer(ompi_common_cryptmpi_comm_t *c, int rank)
{
    ompi_common_cryptmpi_peer_t *peer = __atomic_load_n(&c->members[rank].peer, __ATOMIC_ACQUIRE);
    return OPAL_LIKELY(NULL != peer) ? peer : ompi_common_cryptmpi_comm_fill(c, rank);
}

/* `rank`: one that _comm_peer was called for. */
static inline opal_crypt_envelope_t ompi_common_cryptmpi_envelope(const ompi_common_cryptmpi_comm_t *c, int rank,
                                                                  int tag)
{
    return (opal_crypt_envelope_t){c->context_high, c->context_low, c->members[rank].generation, tag};
}

/* Reserved tags (crypt/wire/tags.h): for group keys, for the final counters (pml/crypt),
 * and for the lines of the report. */
#define OMPI_COMMON_CRYPTMPI_TAG_GROUP  OPAL_CRYPT_TAG_FIXED(16)
#define OMPI_COMMON_CRYPTMPI_TAG_FINAL  OPAL_CRYPT_TAG_FIXED(17)
#define OMPI_COMMON_CRYPTMPI_TAG_REPORT OPAL_CRYPT_TAG_FIXED(18)

/* Collective over `comm` (an intracommunicator), at its first sealed collective.
 * The communicator owns the group, and frees it.  Prints what went wrong; the
 * other ranks may be waiting then, so the caller ends the job. */
OMPI_DECLSPEC int ompi_common_cryptmpi_group(ompi_communicator_t *comm, opal_crypt_group_t **group);

/* For the status page: between these two calls no communicator is removed. */
OMPI_DECLSPEC void ompi_common_cryptmpi_comms_hold(void);
OMPI_DECLSPEC void ompi_common_cryptmpi_comms_release(void);
/* Is this pointer one of our entries, or the communicator of one?  NULL: no.  Call it while held. */
OMPI_DECLSPEC ompi_common_cryptmpi_comm_t *ompi_common_cryptmpi_comm_known(const void *pointer);
OMPI_DECLSPEC void ompi_common_cryptmpi_comms_stop(void);

/* ---- calls that block, for the status page ---- */

/* What a process waits for inside a call, on the caller's stack.  pml/crypt's status page
 * shows it (pml_crypt_status.c). */
typedef struct ompi_common_cryptmpi_inside {
    struct ompi_common_cryptmpi_inside *outer;
    int kind;                           /* OPAL_CRYPT_STATUS_RECEIVE ... */
    int peer, tag;                      /* a rank of `comm`; for a first contact: of MPI_COMM_WORLD */
    const ompi_communicator_t *comm;    /* NULL: none */
    size_t bytes;
    const char *text;
    int64_t since;                      /* set by the page: when it saw this first */
} ompi_common_cryptmpi_inside_t;

/* Count a first contact that waits for the runtime as one of them, or no longer. */
OMPI_DECLSPEC void ompi_common_cryptmpi_waits_show(bool on);

extern OMPI_DECLSPEC ompi_common_cryptmpi_inside_t *ompi_common_cryptmpi_innermost;
OMPI_DECLSPEC void ompi_common_cryptmpi_inside_threaded(ompi_common_cryptmpi_inside_t *inside, bool enter) OPAL_CRYPT_RARE;

static inline void ompi_common_cryptmpi_enter(ompi_common_cryptmpi_inside_t *inside)
{
    inside->since = 0;
    if (OPAL_UNLIKELY(opal_cryptproc_threaded())) {
        ompi_common_cryptmpi_inside_threaded(inside, true);
        return;
    }
    inside->outer = ompi_common_cryptmpi_innermost;
    ompi_common_cryptmpi_innermost = inside;
}

static inline void ompi_common_cryptmpi_leave(ompi_common_cryptmpi_inside_t *inside)
{
    if (OPAL_UNLIKELY(opal_cryptproc_threaded())) {
        ompi_common_cryptmpi_inside_threaded(inside, false);
        return;
    }
    ompi_common_cryptmpi_innermost = inside->outer;
}

/* Call `visit` for each call that blocks, the innermost first; the same rules as for peers. */
OMPI_DECLSPEC void ompi_common_cryptmpi_insides_visit(void (*visit)(ompi_common_cryptmpi_inside_t *inside, void *context),
                                                      void *context);

/* Wait for a request and free it, even if it ended with an error: Open MPI keeps such a request, which keeps
 * its communicator. */
OMPI_DECLSPEC int ompi_common_cryptmpi_request_end(ompi_request_t **request, ompi_status_public_t *status);

/* ---- datatypes ---- */

/* Bytes of `count` elements when packed. */
static inline size_t ompi_common_cryptmpi_bytes(const ompi_datatype_t *type, size_t count)
{
    size_t size;
    opal_datatype_type_size(&type->super, &size);
    return size * count;
}

/* The address of the first byte if the elements are contiguous and in memory of the host, else NULL. */
OMPI_DECLSPEC void *ompi_common_cryptmpi_contiguous(const void *buffer, const ompi_datatype_t *type, size_t count);
/* The same for memory of an accelerator, from 5.0 on. */
OMPI_DECLSPEC char *ompi_common_cryptmpi_device_contiguous(const void *buffer, const ompi_datatype_t *type, size_t count);

/* Packed bytes [offset, offset + bytes) of the buffer, from or to `packed`. */
OMPI_DECLSPEC int ompi_common_cryptmpi_pack(const void *buffer, size_t count, ompi_datatype_t *type,
                                            size_t offset, size_t bytes, void *packed);
OMPI_DECLSPEC int ompi_common_cryptmpi_unpack(void *buffer, size_t count, ompi_datatype_t *type,
                                              size_t offset, size_t bytes, const void *packed);

/* The same for pieces of one message, best in order: the next one begins where the last
 * ended.  When receiving, `bytes` is the sum of all pieces: after these, a partial element is
 * stored, too.  NULL when out of memory: use the functions above then. */
typedef struct ompi_common_cryptmpi_stream ompi_common_cryptmpi_stream_t;
OMPI_DECLSPEC ompi_common_cryptmpi_stream_t *ompi_common_cryptmpi_stream_open(const void *buffer, size_t count,
                                                                              const ompi_datatype_t *type, bool sending,
                                                                              size_t bytes);
OMPI_DECLSPEC void ompi_common_cryptmpi_stream_close(ompi_common_cryptmpi_stream_t *stream);     /* NULL allowed */
OMPI_DECLSPEC int ompi_common_cryptmpi_stream_pack(ompi_common_cryptmpi_stream_t *stream, size_t offset, size_t bytes,
                                                   void *packed);
OMPI_DECLSPEC int ompi_common_cryptmpi_stream_unpack(ompi_common_cryptmpi_stream_t *stream, size_t offset, size_t bytes,
                                                     const void *packed);

/* ---- buffers of accelerators ---- */

extern OMPI_DECLSPEC bool ompi_common_cryptmpi_device_possible;
OMPI_DECLSPEC void ompi_common_cryptmpi_device_start(void);
OMPI_DECLSPEC bool ompi_common_cryptmpi_device_has(const void *address);
OMPI_DECLSPEC int ompi_common_cryptmpi_device_refuse(const void *buffer);
void ompi_common_cryptmpi_device_convertor(struct opal_convertor_t *convertor);
/* A piece of a long message.  NULL: it was copied.  Else, only if `pinned`, the copy is asynchronous: pass the result to
 * done() until that returns true.  A copy that fails, or does not complete, ends the job. */
OMPI_DECLSPEC void *ompi_common_cryptmpi_device_copy(void *to, const void *from, size_t bytes, bool to_device, bool pinned);
OMPI_DECLSPEC bool ompi_common_cryptmpi_device_done(void *copy);
/* Lock memory of the host, in whole pages, for asynchronous copies, until the process ends; false: it is not locked. */
OMPI_DECLSPEC bool ompi_common_cryptmpi_device_pin(const void *device, void *memory, size_t bytes);

/* Is this in the memory of an accelerator?  Costs nothing on a machine without one. */
static inline bool ompi_common_cryptmpi_on_device(const void *address)
{
    return OPAL_UNLIKELY(ompi_common_cryptmpi_device_possible) && ompi_common_cryptmpi_device_has(address);
}

/* Is the data there, although `buffer` is not (MPI_BOTTOM)?  Open MPI, which asks about `buffer`, would let the processor
 * touch it. */
static inline bool ompi_common_cryptmpi_device_hidden(const void *buffer, const ompi_datatype_t *type)
{
    return ompi_common_cryptmpi_on_device((const char *) buffer + type->super.true_lb)
           && !ompi_common_cryptmpi_on_device(buffer);
}

/* OMPI_SUCCESS, or an error after a message if this Open MPI cannot copy the buffer to memory of the host. */
static inline int ompi_common_cryptmpi_device_check(const void *buffer, const ompi_datatype_t *type)
{
    return OMPI_COMMON_CRYPTMPI_ACCELERATOR || !ompi_common_cryptmpi_on_device((const char *) buffer + type->super.true_lb)
               ? OMPI_SUCCESS : ompi_common_cryptmpi_device_refuse(buffer);
}

/* ---- failures ---- */

/* A message from `rank` did not authenticate.  Under crypt_on_auth_failure =
 * abort this prints one message and ends the job; else it returns an error of our
 * own MPI class, to be put into the status.  Never prints key material. */
OMPI_DECLSPEC int ompi_common_cryptmpi_auth_failure(ompi_communicator_t *comm, int rank, int tag, int rc)
    OPAL_CRYPT_RARE;

/* As with abort, whatever is set: the peer cannot be told, and would wait for ever. */
OMPI_DECLSPEC void ompi_common_cryptmpi_end_job(ompi_communicator_t *comm, int rank, int tag, int rc) OPAL_CRYPT_RARE;

/* That error, for ranks that hear about a failure from others. */
OMPI_DECLSPEC int ompi_common_cryptmpi_error(void);

END_C_DECLS

#endif
