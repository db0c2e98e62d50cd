/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * btl/crypt, the half that OPAL sees.  docs/design/009-transport.rst.
 *
 *     component   parameters; may it run here?
 *     module      the table of functions; progress
 *     frag        descriptors: alloc, prepare_src, send, sendi, put
 *     post        over which connections they go
 *     endpoint    peers, the connection of each, and what is queued for it
 *     claim       connections that claim a peer's name: its record, and the limits on false claims
 *     leave       the end of a peer: del_procs or failure
 *     meet        which side connects, and which connection is kept
 *     rails       further connections of a peer, for long messages
 *     snapshot    what `mpicrypt ps` shows of the peers
 */
#ifndef OPAL_BTL_CRYPT_H
#define OPAL_BTL_CRYPT_H

#include "btl_crypt_compat.h"
#include "btl_crypt_listen.h"

#include <pthread.h>

#include "opal/class/opal_free_list.h"

#define OPAL_BTL_CRYPT_HELP "help-opal-btl-crypt.txt"
#define OPAL_BTL_CRYPT_NO_COMMON_GROUP "tls-group"  /* a topic of our own; all others are the core's */

/* A peer.  Made by add_procs, or when it connects to us.  Each further rail of it is one more of these, which meets,
 * sends and is replaced by itself; `main` is the peer, and its own rail 0. */
typedef struct mca_btl_base_endpoint_t {
    opal_list_item_t super;
    opal_process_name_t name;
    opal_proc_t *proc;                          /* NULL before add_procs */
    struct mca_btl_base_endpoint_t *main;
    uint16_t rail;
    int64_t met;                                /* when we met it, to check its record against; 0: it is in our job */

    /* From its record.  Only the progress thread uses this and all that follows. */
    opal_crypt_schedule_t *schedule;            /* NULL: refused, missing, or not requested yet */
    opal_crypt_why_t *why;                      /* the reason, if it was refused or is missing */
    uint64_t ask_at;                            /* no lookup for a claim before; real time, as claimed_at */
    opal_cryptproc_search_t *search;            /* the lookup in progress for a claim */
    uint64_t claimed_at;                        /* when it entered `claimed` */
    opal_crypt_tls_name_t tls_name;
    opal_crypt_tls_group_t group;               /* of our connections */
    uint32_t heard;                             /* the last of the peer's own attempts that was answered */

    /* Our attempts to connect.  Times are polled time. */
    opal_btl_crypt_link_t *connecting;
    int next_address;
    bool silent;                                /* one of its addresses did not answer in this round */
    bool said_refused, said_why;
    uint64_t patience, deadline;                /* with the current address */
    uint64_t retry_at;
    uint64_t give_up_at;                        /* 0: not all of its addresses have refused us */
    uint64_t tick_at;
    opal_cryptproc_wait_t wait;
    int tries;                                  /* of a further rail, that failed */
    bool wanted, gone;                          /* a further rail: we connect it; it is not to be connected again */
    int64_t waits_since;                        /* used by snapshot: since when something waits for it; 0: nothing */
    uint64_t waits_mark;                        /* would have changed if there had been progress */

    /* Protected by the lock. */
    opal_btl_crypt_link_t *link;                /* OPEN */
    opal_btl_crypt_queue_t waiting;             /* for that connection */
    bool busy, leaving, counted;
    uint64_t sent, joined;                      /* a further rail: its frames so far; those that a join has named */
    bool replaced;                              /* its last connection was; what waits goes over the next one */
    unsigned copies;                            /* of fire-and-forget sends, waiting during a replacement */
    bool has_long, railed;                      /* main: it was sent a long message; it has further rails */
    unsigned turn;                              /* main: the rail of the last long fragment */
    struct mca_btl_base_endpoint_t *rails[OPAL_BTL_CRYPT_RAILS];        /* main: from 1 on; made by the progress thread */
    opal_btl_crypt_order_t order;               /* main: progress thread, but for `session` */
    _Atomic bool failed;                        /* with fault tolerance: no further connection will come */
    struct mca_btl_base_endpoint_t *next_busy;
} opal_btl_crypt_endpoint_t;

OBJ_CLASS_DECLARATION(opal_btl_crypt_endpoint_t);

enum { OPAL_BTL_CRYPT_EVENTS = 64 };
enum { OPAL_BTL_CRYPT_CLAIMED = 64 };
enum { OPAL_BTL_CRYPT_KTLS_OFF, OPAL_BTL_CRYPT_KTLS_AUTO };

typedef struct opal_btl_crypt_module {
    mca_btl_base_module_t super;
    unsigned port_min, port_range, replace_after, links;        /* parameters */
    int pq, ktls;                               /* numbers of component.c's words */
    int stream;

    bool started;
    bool tolerant;                              /* Open MPI's fault tolerance (ULFM) is on */
    uintptr_t progressor;                       /* the thread that makes progress; 0: none */
    bool some_leave;                            /* only the progress thread uses it */
    bool said_starved;
    uint32_t attempts;                          /* connections that we have started */
    pthread_mutex_t lock;                       /* protects what is sent; never held during a callback */
    mca_btl_base_module_error_cb_fn_t error_cb;
    opal_crypt_tls_t *tls;
    opal_btl_crypt_engine_t engine;
    opal_btl_crypt_listener_t listener;
    opal_btl_crypt_addresses_t own;
    uint32_t job_size;
    opal_list_t endpoints;                      /* under the lock */
    /* Peers that were claimed, but never by a connection that authenticated.  Oldest first; with progress. */
    opal_btl_crypt_endpoint_t *claimed[OPAL_BTL_CRYPT_CLAIMED];
    int claimed_count;
    opal_btl_crypt_endpoint_t *busy;            /* protected by the lock, except in any_busy */

    int epoll;
    void *events[OPAL_BTL_CRYPT_EVENTS];        /* ready connections, during one call of progress */
    uint32_t event_bits[OPAL_BTL_CRYPT_EVENTS];
    int event_count;

    opal_free_list_t little, eager, max, user;
} opal_btl_crypt_module_t;

extern OPAL_DECLSPEC mca_btl_base_component_t mca_btl_crypt_component;
extern opal_btl_crypt_module_t opal_btl_crypt;

/* ---- btl_crypt_component.c ---- */

/* Called after the error text: end the job. */
void opal_btl_crypt_end_job(void) __attribute__((noreturn));

/* ---- btl_crypt_tcp.c ---- */

/* Where to listen: lists of interfaces and networks (NULL: not set), and ports. */
typedef struct opal_btl_crypt_listen_options {
    char *include, *exclude;
    unsigned port_min, port_range;
} opal_btl_crypt_listen_options_t;

void opal_btl_crypt_listen_options(const opal_btl_crypt_module_t *m, opal_btl_crypt_listen_options_t *options);
void opal_btl_crypt_listen_options_free(opal_btl_crypt_listen_options_t *options);

/* ---- btl_crypt_module.c ---- */

bool opal_btl_crypt_module_start(void);
int opal_btl_crypt_progress(void);

/* Take progress until `give`: no other thread reads or calls back.  False: we have it, and are in a callback. */
bool opal_btl_crypt_progress_take(void);
bool opal_btl_crypt_progress_try(void);                     /* false: another thread has it */
void opal_btl_crypt_progress_give(void);

/* Progress thread only: one pass over all ready connections and all busy peers. */
int opal_btl_crypt_go_round(void);

/* Read what has arrived on a connection, and answer its last frame. */
void opal_btl_crypt_take_in(opal_btl_crypt_link_t *link);
/* The peer was given up or, with fault tolerance, Open MPI knows that it has failed. */
bool opal_btl_crypt_has_failed(const opal_btl_crypt_endpoint_t *endpoint);

/* Watch the events that the connection needs; unwatch before it is destroyed. */
void opal_btl_crypt_watch(opal_btl_crypt_link_t *link);     /* FAILED if it cannot be watched */
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

typedef struct opal_btl_crypt_frag {
    mca_btl_base_descriptor_t base;
    mca_btl_base_segment_t segments[2];
    opal_btl_crypt_item_t item;
    opal_free_list_t *list;
    mca_btl_base_rdma_completion_fn_t put_done;         /* NULL: not a put */
    void *put_from, *put_context, *put_data;
    bool is_copy;
    struct opal_btl_crypt_frag *whole;                  /* of a part of a put, also of the first, which is itself that; or NULL */
    int parts, status;                                  /* of the whole: those that are not done; what became of them */
} __attribute__((aligned(16))) opal_btl_crypt_frag_t;

/* Take one with room for `bytes`, or without any for 0.  NULL: too long, or no memory. */
opal_btl_crypt_frag_t *opal_btl_crypt_frag_take(size_t bytes, uint32_t flags);

/* All its bytes have left our memory: report completion to the sender. */
void opal_btl_crypt_frag_done(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_item_t *item);
/* They will not arrive: report the failure. */
void opal_btl_crypt_frag_lost(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_item_t *item);

/* ---- btl_crypt_post.c ---- */

/* Send it, or let it wait for a connection.  Returns 1 if it is complete at once, else 0 or an error. */
int opal_btl_crypt_post_fragment(opal_btl_crypt_endpoint_t *main, opal_btl_crypt_item_t *item);
/* The same, for a put; 0 or an error.  Its callback may run within this call. */
int opal_btl_crypt_post_put(opal_btl_crypt_endpoint_t *main, opal_btl_crypt_frag_t *frag, uint8_t *from, uint64_t to, size_t bytes);

/* With the lock: what is sent next over rail 0 comes after all that was sent over the others.  False: no memory. */
bool opal_btl_crypt_join(opal_btl_crypt_endpoint_t *main);
/* With the lock: that is so, without a join. */
bool opal_btl_crypt_is_joined(const opal_btl_crypt_endpoint_t *main);
/* Copy the unsealed rest of a fire-and-forget send into a fragment of our own.  NULL: too long, or no memory. */
opal_btl_crypt_item_t *opal_btl_crypt_copy_of(opal_btl_crypt_endpoint_t *endpoint, const opal_btl_crypt_item_t *item);

/* ---- btl_crypt_endpoint.c ---- */

int opal_btl_crypt_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                             opal_btl_crypt_endpoint_t **endpoints, struct opal_bitmap_t *reachable);

/* Find the peer of a claimed name, or make it.  NULL: not an acceptable name, or unknown and not to be made, or no
 * memory; or a further rail of a peer that we are not connected with. */
opal_btl_crypt_endpoint_t *opal_btl_crypt_endpoint_claimed(const opal_crypt_tls_identity_t *identity, bool make);

/* Fetch the record of a peer that we need, and wait.  False: refused or missing, and `why` has the reason. */
bool opal_btl_crypt_endpoint_ask(opal_btl_crypt_endpoint_t *endpoint);

/* ---- btl_crypt_claim.c ---- */

/* A connection claims to be this peer: is its record here?  False: refused, still looked up, or too many lookups; the
 * peer will retry.  May free other claimed endpoints. */
bool opal_btl_crypt_claim(opal_btl_crypt_endpoint_t *endpoint);
/* Can one more claim be taken? */
bool opal_btl_crypt_claim_allowed(void);
/* Take over the result of a record lookup. */
bool opal_btl_crypt_claim_finish(opal_btl_crypt_endpoint_t *endpoint, int rc, opal_crypt_why_t *why);
/* The peer has authenticated, or we need it, or it leaves: it is no longer a mere claim. */
void opal_btl_crypt_claim_over(opal_btl_crypt_endpoint_t *endpoint);

/* Without the lock; what one call misses, a later one sees. */
static inline bool opal_btl_crypt_any_busy(void)
{
    return NULL != __atomic_load_n(&opal_btl_crypt.busy, __ATOMIC_RELAXED);
}

/* With the lock held: let progress attend to this peer. */
void opal_btl_crypt_endpoint_busy(opal_btl_crypt_endpoint_t *endpoint);

/* For all busy peers: connect, reap, call back.  Returns how many items were completed. */
int opal_btl_crypt_endpoints_progress(void);

/* Complete the items that this connection has sent.  With the lock, which is released during callbacks. */
int opal_btl_crypt_endpoint_reap(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link);

/* ---- btl_crypt_leave.c ---- */

int opal_btl_crypt_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                             opal_btl_crypt_endpoint_t **endpoints);

/* Finish the peers that del_procs has named.  Progress thread only. */
void opal_btl_crypt_endpoints_leave(void);

/* A connection is over: queue its unsent items again, to be resent or reported as lost.  With the lock. */
void opal_btl_crypt_endpoint_keep(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link);

/* Show a help text with both processes' names, their nodes and the reason; or why the record is refused. */
void opal_btl_crypt_endpoint_show(const opal_btl_crypt_endpoint_t *endpoint, const char *reason, const char *topic);

/* No connection, and none will come.  Ends the job; with fault tolerance marks the peer as failed, and returns. */
void opal_btl_crypt_endpoint_broken(opal_btl_crypt_endpoint_t *endpoint, const char *reason);

/* Report what was queued for a failed peer, also since then, as lost.  With the lock, released during callbacks. */
int opal_btl_crypt_endpoint_lose(opal_btl_crypt_endpoint_t *endpoint);

/* ---- btl_crypt_rails.c ---- */

/* May further rails be connected?  While the first one is open, or replaced. */
bool opal_btl_crypt_rails_may(const opal_btl_crypt_endpoint_t *main);
/* May this connection be made? */
bool opal_btl_crypt_rail_may(const opal_btl_crypt_endpoint_t *endpoint);
/* A further rail that cannot be connected, and on which neither end counts: the peer does without.  Progress thread only,
 * which alone lets something wait for a further rail. */
static inline bool opal_btl_crypt_rail_is_spare(const opal_btl_crypt_endpoint_t *endpoint)
{
    return endpoint->rail > 0 && NULL == endpoint->waiting.first && endpoint->rail != endpoint->main->order.awaited;
}
/* May this new descriptor be a further rail's?  Not while first contacts may need it. */
bool opal_btl_crypt_rail_affordable(int fd);
/* How many rails we want with this peer, with the first: both ends have to. */
unsigned opal_btl_crypt_rails_count(const opal_btl_crypt_endpoint_t *main);
/* Find a rail of a peer, or make it.  NULL: no memory. */
opal_btl_crypt_endpoint_t *opal_btl_crypt_rail(opal_btl_crypt_endpoint_t *main, uint16_t rail);
/* The first long message: connect the others. */
void opal_btl_crypt_rails_begin(opal_btl_crypt_endpoint_t *main);
/* The addresses for this rail, from all those of the peer. */
void opal_btl_crypt_rail_addresses(const opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_addresses_t *addresses);
/* With the lock: the first connection is new, and not in place of another one; order begins again. */
void opal_btl_crypt_rails_anew(opal_btl_crypt_endpoint_t *main, const opal_crypt_tls_identity_t *identity);
/* A new session: drop the peer's unfinished handshakes of further rails. */
void opal_btl_crypt_rails_forget(const opal_btl_crypt_endpoint_t *main);
/* Drop all connections of a peer, and attempts: what is not sent waits.  Returns whether something does. */
bool opal_btl_crypt_rails_end(opal_btl_crypt_endpoint_t *main);
/* Read on where other rails were waited for: not all at once, if there is much; what is left makes its rail busy. */
void opal_btl_crypt_rails_read(opal_btl_crypt_endpoint_t *main);

/* ---- btl_crypt_snapshot.c ---- */

/* What the first contact is waiting for. */
const char *opal_btl_crypt_awaited(const opal_btl_crypt_endpoint_t *endpoint);
/* crypt_verbose 10: this connection is the one in use. */
void opal_btl_crypt_say_met(const opal_btl_crypt_endpoint_t *endpoint, const opal_btl_crypt_link_t *link);
/* For opal_cryptproc_transport_snapshot. */
bool opal_btl_crypt_snapshot(int64_t now, opal_cryptproc_peer_visit_t visit, void *context);

/* ---- btl_crypt_meet.c ---- */

/* Items wait for a connection: start one, and drive our attempts. */
void opal_btl_crypt_seek(opal_btl_crypt_endpoint_t *endpoint);
/* A connection is over: its peer has none, and what was not sent waits.  Returns whether something was lost with it. */
bool opal_btl_crypt_detach(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link);
void opal_btl_crypt_begin_anew(opal_btl_crypt_endpoint_t *endpoint);    /* as if no attempt had been made */

/* For opal_crypt_handshake_accept. */
int opal_btl_crypt_find(void *arg, const opal_crypt_tls_identity_t *identity, opal_crypt_tls_group_t *group,
                        opal_crypt_tls_psk_t *psk);

/* The state of a connection may have changed: act on it. */
void opal_btl_crypt_handle_state(opal_btl_crypt_link_t *link);

/* Stop watching the connection and destroy it. */
void opal_btl_crypt_drop(opal_btl_crypt_link_t *link);

#endif
