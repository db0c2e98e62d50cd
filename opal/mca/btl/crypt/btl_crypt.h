/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * btl/crypt, the half that OPAL sees.  docs/design/009-transport.rst.
 *
 *     component   parameters; may it run here?
 *     module      the table of functions; progress
 *     frag        descriptors: alloc, prepare_src, send, sendi, put
 *     endpoint    peers: what is queued for one, and over which connection it goes
 *     claim       who says that it is a peer: its record, and what a false claim leaves behind
 *     leave       the end of one: it leaves, or has failed
 *     meet        who connects, which connection is kept
 *     look        what of peers is shown to `mpicrypt ps`
 */
#ifndef OPAL_BTL_CRYPT_H
#define OPAL_BTL_CRYPT_H

#include "btl_crypt_compat.h"
#include "btl_crypt_listen.h"

#include <pthread.h>

#include "opal/class/opal_free_list.h"

#define OPAL_BTL_CRYPT_HELP "help-opal-btl-crypt.txt"
#define OPAL_BTL_CRYPT_NO_COMMON_GROUP "tls-group"  /* a topic of our own; all others are the core's */

/* A peer.  Made by add_procs, or when it connects to us. */
typedef struct mca_btl_base_endpoint_t {
    opal_list_item_t super;
    opal_process_name_t name;
    opal_proc_t *proc;                          /* NULL before add_procs */
    int64_t met;                                /* for its record; 0: it is of our job */

    /* What its record said.  By the thread that makes progress, as all that follows. */
    opal_crypt_schedule_t *schedule;            /* NULL: it was refused, is missing, or was not asked for yet */
    opal_crypt_why_t *why;                      /* if it was refused, or is missing */
    uint64_t ask_at;                            /* from then on strangers' claims have it looked for again; real time, as claimed_at */
    opal_cryptproc_search_t *search;            /* of a claim, not over */
    uint64_t claimed_at;                        /* in `claimed` */
    opal_crypt_tls_name_t tls_name;
    opal_crypt_tls_group_t group;               /* of our connections */
    uint32_t heard;                             /* the last attempt of its own that was answered */

    /* Our attempts to connect.  Times are polled time. */
    opal_btl_crypt_link_t *connecting;
    int next_address;
    bool silent;                                /* one of its addresses did not answer in this turn */
    bool said_refused, said_why;
    uint64_t patience, deadline;                /* with an address */
    uint64_t retry_at;
    uint64_t give_up_at;                        /* 0: not all of its addresses have refused us */
    uint64_t tick_at;
    opal_cryptproc_wait_t wait;
    int64_t seen_since;                         /* by look: since when it is waited for; 0: it is not */
    uint64_t seen_mark;                         /* what would have changed if it went on */

    /* Under the lock. */
    opal_btl_crypt_link_t *link;                /* OPEN */
    opal_btl_crypt_queue_t waiting;             /* for it */
    bool busy, leaving, counted;
    bool replaced;                              /* its last connection was; what waits is for the next one */
    unsigned copies;                            /* of those */
    _Atomic bool failed;                        /* with fault tolerance: there will be no other connection */
    struct mca_btl_base_endpoint_t *next_busy;
} opal_btl_crypt_endpoint_t;

OBJ_CLASS_DECLARATION(opal_btl_crypt_endpoint_t);

enum { OPAL_BTL_CRYPT_EVENTS = 64 };
enum { OPAL_BTL_CRYPT_CLAIMED = 64 };
enum { OPAL_BTL_CRYPT_KTLS_OFF, OPAL_BTL_CRYPT_KTLS_AUTO };

typedef struct opal_btl_crypt_module {
    mca_btl_base_module_t super;
    unsigned port_min, port_range, replace_after;       /* parameters */
    int pq, ktls;                               /* of component.c */
    int stream;

    bool started;
    bool tolerant;                              /* Open MPI's fault tolerance (ULFM) is on */
    uintptr_t progressor;                       /* the thread that makes progress; 0: none */
    bool some_leave;                            /* by the progressor */
    bool said_starved;
    uint32_t attempts;                          /* connections that we have begun */
    pthread_mutex_t lock;                       /* what is sent: never held in a callback */
    mca_btl_base_module_error_cb_fn_t error_cb;
    opal_crypt_tls_t *tls;
    opal_btl_crypt_engine_t engine;
    opal_btl_crypt_listener_t listener;
    opal_btl_crypt_addresses_t own;
    uint32_t job_size;
    opal_list_t endpoints;                      /* under the lock */
    /* Peers in whose names somebody has said hello, and none has said a right one: by age, with progress. */
    opal_btl_crypt_endpoint_t *claimed[OPAL_BTL_CRYPT_CLAIMED];
    int claimed_count;
    opal_btl_crypt_endpoint_t *busy;            /* under the lock, but for any_busy */

    int epoll;
    void *events[OPAL_BTL_CRYPT_EVENTS];        /* connections that have something, of one call of progress */
    uint32_t event_bits[OPAL_BTL_CRYPT_EVENTS];
    int event_count;

    opal_free_list_t little, eager, max, user;
} opal_btl_crypt_module_t;

extern OPAL_DECLSPEC mca_btl_base_component_t mca_btl_crypt_component;
extern opal_btl_crypt_module_t opal_btl_crypt;

/* ---- btl_crypt_component.c ---- */

/* After a text: end the job. */
void opal_btl_crypt_end_job(void) __attribute__((noreturn));

/* ---- btl_crypt_tcp.c ---- */

/* Where to listen: lists of interfaces and networks (NULL: not set), and ports. */
typedef struct opal_btl_crypt_places {
    char *include, *exclude;
    unsigned port_min, port_range;
} opal_btl_crypt_places_t;

void opal_btl_crypt_places(const opal_btl_crypt_module_t *m, opal_btl_crypt_places_t *places);
void opal_btl_crypt_places_free(opal_btl_crypt_places_t *places);

/* ---- btl_crypt_module.c ---- */

bool opal_btl_crypt_module_start(void);
int opal_btl_crypt_progress(void);

/* Progress is ours until `give`: nobody reads, connects or calls back.  False: it is already, and this is a callback. */
bool opal_btl_crypt_progress_take(void);
bool opal_btl_crypt_progress_try(void);                     /* false: somebody else's */
void opal_btl_crypt_progress_give(void);

/* With progress: once for all connections and all that are busy. */
int opal_btl_crypt_go_round(void);

/* What has come over a connection, and the answer to its last frame. */
void opal_btl_crypt_take_in(opal_btl_crypt_link_t *link);
/* Given up, or, with fault tolerance, known to Open MPI to have failed. */
bool opal_btl_crypt_has_failed(const opal_btl_crypt_endpoint_t *endpoint);

/* Wait for those that the connection needs; no longer, before it is destroyed. */
void opal_btl_crypt_watch(opal_btl_crypt_link_t *link);     /* one that cannot be watched has FAILED */
void opal_btl_crypt_unwatch(opal_btl_crypt_link_t *link);

/* ---- btl_crypt_frag.c ---- */

bool opal_btl_crypt_frags_start(void);
void opal_btl_crypt_frags_stop(void);

mca_btl_base_descriptor_t *opal_btl_crypt_alloc(mca_btl_base_module_t *btl, opal_btl_crypt_endpoint_t *endpoint, uint8_t order,
                                                size_t size, uint32_t flags);
int opal_btl_crypt_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor);
mca_btl_base_descriptor_t *opal_btl_crypt_prepare_src(mca_btl_base_module_t *btl, opal_btl_crypt_endpoint_t *endpoint,
                                                      opal_convertor_t *convertor, uint8_t order, size_t reserve, size_t *size,
                                                      uint32_t flags);
int opal_btl_crypt_send(mca_btl_base_module_t *btl, opal_btl_crypt_endpoint_t *endpoint, mca_btl_base_descriptor_t *descriptor,
                        mca_btl_base_tag_t tag);
int opal_btl_crypt_sendi(mca_btl_base_module_t *btl, opal_btl_crypt_endpoint_t *endpoint, opal_convertor_t *convertor,
                         void *header, size_t header_size, size_t payload_size, uint8_t order, uint32_t flags,
                         mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor);
int opal_btl_crypt_put(mca_btl_base_module_t *btl, opal_btl_crypt_endpoint_t *endpoint, void *local_address,
                       uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                       mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
                       mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata);

/* Its bytes are out of our hands: say so to whoever sent them. */
void opal_btl_crypt_frag_done(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_item_t *item);
/* They will not arrive. */
void opal_btl_crypt_frag_lost(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_item_t *item);

/* ---- btl_crypt_endpoint.c ---- */

int opal_btl_crypt_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                             opal_btl_crypt_endpoint_t **endpoints, struct opal_bitmap_t *reachable);

/* Of a name that somebody claims.  NULL: of no process that may be heard, or, unless it is made here, that is known;
 * or there is no memory. */
opal_btl_crypt_endpoint_t *opal_btl_crypt_endpoint_claimed(const opal_crypt_tls_identity_t *identity, bool make);

/* Its record, which we need: wait for it.  False: it is refused, or missing, and `why` says so. */
bool opal_btl_crypt_endpoint_ask(opal_btl_crypt_endpoint_t *endpoint);

/* ---- btl_crypt_claim.c ---- */

/* Somebody claims to be this peer: is its record here?  False: it was refused, or is looked for, or enough others are; the peer
 * comes again.  The endpoints of others may be gone then. */
bool opal_btl_crypt_claim(opal_btl_crypt_endpoint_t *endpoint);
/* Is there room for one more? */
bool opal_btl_crypt_claim_room(void);
/* The outcome of a look for its record, which is the endpoint's then. */
bool opal_btl_crypt_claim_settle(opal_btl_crypt_endpoint_t *endpoint, int rc, opal_crypt_why_t *why);
/* It was the peer, or we need it, or it leaves: no claim any more. */
void opal_btl_crypt_claim_over(opal_btl_crypt_endpoint_t *endpoint);

/* Without the lock; a later look sees what this one missed. */
static inline bool opal_btl_crypt_any_busy(void)
{
    return NULL != __atomic_load_n(&opal_btl_crypt.busy, __ATOMIC_RELAXED);
}

/* Under the lock: progress has to look after it. */
void opal_btl_crypt_endpoint_busy(opal_btl_crypt_endpoint_t *endpoint);

/* All that are busy: connect, reap, call back.  How much was done. */
int opal_btl_crypt_endpoints_progress(void);

/* What is behind us of those that were sent over this connection.  With the lock, which is given up for callbacks. */
int opal_btl_crypt_endpoint_reap(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link);

/* ---- btl_crypt_leave.c ---- */

int opal_btl_crypt_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                             opal_btl_crypt_endpoint_t **endpoints);

/* Those that del_procs has named.  With progress. */
void opal_btl_crypt_endpoints_leave(void);

/* Of a connection that is over: what it has not taken waits, for whoever says that it is lost.  With the lock. */
void opal_btl_crypt_endpoint_keep(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link);

/* A text of our help file with the names of both processes, their nodes and the reason; or why its record is refused. */
void opal_btl_crypt_endpoint_show(const opal_btl_crypt_endpoint_t *endpoint, const char *reason, const char *topic);

/* No connection, and none will come.  Ends the job; with fault tolerance the peer has failed, and its callers go on. */
void opal_btl_crypt_endpoint_broken(opal_btl_crypt_endpoint_t *endpoint, const char *reason);

/* To a peer that has failed, sent before, or by another thread since.  With the lock, which is given up for callbacks. */
int opal_btl_crypt_endpoint_lose(opal_btl_crypt_endpoint_t *endpoint);

/* ---- btl_crypt_look.c ---- */

/* What a first contact waits for. */
const char *opal_btl_crypt_awaited(const opal_btl_crypt_endpoint_t *endpoint);
/* For whoever wants to know (verbose 10): this connection is the one. */
void opal_btl_crypt_say_met(const opal_btl_crypt_endpoint_t *endpoint, const opal_btl_crypt_link_t *link);
/* For opal_cryptproc_transport_look. */
bool opal_btl_crypt_look(int64_t now, opal_cryptproc_peer_visit_t visit, void *context);

/* ---- btl_crypt_meet.c ---- */

/* Something waits for a connection: make one, and look after our attempts. */
void opal_btl_crypt_seek(opal_btl_crypt_endpoint_t *endpoint);
void opal_btl_crypt_begin_anew(opal_btl_crypt_endpoint_t *endpoint);    /* as if none had been made */

/* For opal_crypt_handshake_accept. */
int opal_btl_crypt_find(void *arg, const opal_crypt_tls_identity_t *identity, opal_crypt_tls_group_t *group,
                        opal_crypt_tls_psk_t *psk);

/* Something has happened to a connection. */
void opal_btl_crypt_settle(opal_btl_crypt_link_t *link);

/* Not watched any more, and gone. */
void opal_btl_crypt_drop(opal_btl_crypt_link_t *link);

#endif
