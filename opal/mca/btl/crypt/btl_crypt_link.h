/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One connection, without MPI: a socket, from the first byte of the handshake to the end.
 *
 *     connects   CONNECTING  SHAKING  HELLO_SENT  OPEN  ENDED        listens   SHAKING  ANSWERED  AUTHENTICATED  OPEN  ENDED
 *
 * HELLO_SENT: our hello is out; the other end has not yet said whether it keeps this connection.
 * ANSWERED: the ClientHello was right, and only the process that it names can have made it.
 * AUTHENTICATED: we must reply: send_hello, or decline.  Any state can go to FAILED, which is final.
 *
 * A peer may have several, its rails, by the number in the identity.  Rail 0 is the one whose order counts:
 *
 *     rail 0     fragment, put, | join 1, 7 | fragment ...                     waits at the join until rail 1 has carried 7 frames
 *     rail 1     put, put, fragment ...                                        a put goes where it says; a fragment waits
 *                                                                              until rail 0 is at the join that calls for it
 *
 * An OPEN connection that has carried enough is replaced: one end sends a last frame and close_notify, the other
 * replies alike, and each has ENDED once it has received both and written its own.  Queued items go over the next one.
 *
 * Threads: `drive`, `read`, `send_hello`, and whatever makes or ends a connection, by one thread at a time; `post`, `pump`
 * and `reap` under a lock of the caller, which send_hello needs as well.
 */
#ifndef OPAL_BTL_CRYPT_LINK_H
#define OPAL_BTL_CRYPT_LINK_H

#include "btl_crypt_frame.h"
#include "btl_crypt_ring.h"

#include "opal/mca/common/crypt/base/base.h"
#include "opal/mca/common/crypt/tls/handshake.h"
#include "opal/mca/common/crypt/tls/records.h"

/* The most that one read brings, with the rest of the one before. */
#define OPAL_BTL_CRYPT_WIRE         (((size_t) 256 << 10) + OPAL_CRYPT_TLS_RECORD_MAX)
/* Ring sizes: large at first, small once all rings together reach the maximum. */
#define OPAL_BTL_CRYPT_RING         ((size_t) 256 << 10)
#define OPAL_BTL_CRYPT_RING_SMALL   ((size_t) 17 << 10)
#define OPAL_BTL_CRYPT_RINGS_MAX    ((size_t) 8 << 20)
/* Records per key where a kernel seals or opens, since such a key cannot be renewed; and records that a server sends
 * before the client's hello, which may say that a kernel opens them. */
#define OPAL_BTL_CRYPT_KERNEL_MOST  (OPAL_CRYPT_TLS_RECORDS_BEAR / 2)
#define OPAL_BTL_CRYPT_EARLY_MOST   (OPAL_CRYPT_TLS_RECORDS_RENEW / 2)
/* The most that a kernel is given, or asked for, in one call. */
#define OPAL_BTL_CRYPT_PIECE_MAX    ((size_t) 1 << 20)
/* An item is complete once at most this many bytes are ahead of its end in the ring. */
#define OPAL_BTL_CRYPT_MARK         ((uint64_t) 32 << 10)
#define OPAL_BTL_CRYPT_SPARES       4

typedef struct opal_btl_crypt_link opal_btl_crypt_link_t;

/* Free buffers of one size, for reuse.  They are page-aligned: the kernel's copies to and from malloc's memory, 16
 * bytes past a page boundary, were measured to be slower. */
typedef struct opal_btl_crypt_spares {
    uint8_t *bytes[OPAL_BTL_CRYPT_SPARES];
    int count;
} opal_btl_crypt_spares_t;

/* NULL: no memory. */
uint8_t *opal_btl_crypt_spares_take(opal_btl_crypt_spares_t *spares, size_t bytes);
void opal_btl_crypt_spares_give(opal_btl_crypt_spares_t *spares, uint8_t *bytes);

/* Shared by all connections of a process. */
typedef struct opal_btl_crypt_engine {
    const opal_crypt_tls_t *tls;
    const opal_aead_module_t *aead;
    opal_crypt_tls_name_t own;
    /* Called with a fragment; its bytes are valid during the call, and aligned to 8.  False: no such tag. */
    bool (*deliver)(opal_btl_crypt_link_t *link, uint8_t tag, void *bytes, size_t count);

    uint8_t *wire;                                  /* the last read */
    opal_btl_crypt_spares_t frames;                 /* usual buffers for fragments that arrive */
    opal_btl_crypt_spares_t rings;                  /* large ones only, under the caller's lock, as the next field */
    size_t ring_bytes;                              /* of all rings in use */
    unsigned threads;                               /* the threads that seal or open a long message together; 0: one */
    opal_crypt_team_t *team;
    opal_crypt_share_t *sealing, *opening;          /* NULL: without a team */
    bool kernel;                                    /* the kernel may seal and open, if it can */
    uint64_t records_most;                          /* after these a connection is replaced; 0: never */
} opal_btl_crypt_engine_t;

/* What has come over the rails of a peer, for `read` only. */
typedef struct opal_btl_crypt_order {
    uint64_t session;                               /* what a join must name */
    uint64_t done[OPAL_BTL_CRYPT_RAILS];            /* fragments and puts that are complete */
    uint16_t awaited;                               /* rail 0 stands at a join, and waits for this one; 0: it goes on */
    uint64_t until;                                 /* it has carried this many */
} opal_btl_crypt_order_t;

/* The session of a peer's rails, from the identity of its first connection: its attempt, and who made it. */
static inline uint64_t opal_btl_crypt_session(const opal_crypt_tls_identity_t *identity)
{
    const uint32_t who = opal_crypt_get32(identity->claimed.nspace) + identity->claimed.rank;

    return (uint64_t) identity->attempt << 32 | who;
}

/* An item to be sent: the caller's again, with the memory it refers to, once reaped. */
typedef struct opal_btl_crypt_item {
    struct opal_btl_crypt_item *next;
    struct iovec pieces[3];                         /* the first is `header` */
    int count;
    uint64_t bytes, sealed;                         /* in all pieces */
    uint64_t end;                                   /* where it ends, in bytes sealed on this connection */
    uint8_t header[OPAL_BTL_CRYPT_HEADER_MAX];
} opal_btl_crypt_item_t;

typedef struct opal_btl_crypt_queue {
    opal_btl_crypt_item_t *first, *last;
} opal_btl_crypt_queue_t;

typedef enum {
    OPAL_BTL_CRYPT_CONNECTING,
    OPAL_BTL_CRYPT_SHAKING,
    OPAL_BTL_CRYPT_ANSWERED,
    OPAL_BTL_CRYPT_AUTHENTICATED,
    OPAL_BTL_CRYPT_HELLO_SENT,
    OPAL_BTL_CRYPT_OPEN,
    OPAL_BTL_CRYPT_ENDED,                           /* properly closed by the other end */
    OPAL_BTL_CRYPT_FAILED
} opal_btl_crypt_state_t;

struct opal_btl_crypt_link {
    opal_btl_crypt_engine_t *engine;
    void *owner;                                    /* for the caller */
    opal_btl_crypt_order_t *order;                  /* of all rails of this peer; NULL: there is one */
    int fd;
    _Atomic opal_btl_crypt_state_t state;           /* senders look at it while another thread reads */
    bool listens;
    _Atomic bool hello_came, last_came, closed_came;
    bool kernel_out, kernel_in;                     /* a kernel seals, a kernel opens */
    bool kernel_said_last, keeps_key;
    _Atomic bool peer_kernel;                       /* a kernel opens what we send */
    bool wants_write;                               /* the socket was full */
    _Atomic bool peer_closed;                        /* the other end takes nothing more; its data is still read */
    bool closing;                                   /* by us, for good: it is not replaced any more */
    uint32_t armed;                                 /* for the caller: events that it waits for */
    uint64_t born;                                  /* for the caller */
    const char *_Atomic reason;                     /* of FAILED, in English */
    opal_crypt_handshake_t *handshake;
    opal_crypt_tls_records_t *records;
    opal_crypt_tls_identity_t identity;             /* right from ANSWERED, HELLO_SENT on; sure from AUTHENTICATED on */

    /* out */
    opal_btl_crypt_ring_t ring;
    opal_btl_crypt_queue_t queue;                   /* not yet sealed, or only in part */
    opal_btl_crypt_queue_t sealed;                  /* not yet written */
    uint64_t sealed_bytes, written_bytes;
    uint64_t records_sent;
    bool last_sent;                                 /* with close_notify: nothing more is sealed */
    opal_btl_crypt_item_t hello;

    /* in */
    uint8_t *rest;                                  /* an incomplete record */
    size_t rest_bytes;
    uint8_t *frame;                                 /* header and fragment */
    size_t frame_capacity, frame_have, frame_bytes;
    uint8_t frame_tag;
    bool holds;                                     /* the fragment there is complete, but its turn has not come */
    bool paused;                                    /* `rest` may have whole records */
    uint8_t *put_at;
    uint64_t put_left;
    uint64_t kernel_reads;                          /* those that brought something */
};

/* ---- btl_crypt_link.c ---- */

bool opal_btl_crypt_engine_start(opal_btl_crypt_engine_t *engine);      /* expects tls, aead, own and deliver */
void opal_btl_crypt_engine_stop(opal_btl_crypt_engine_t *engine);       /* after all its connections */

/* Takes over `fd`, which must not block.  NULL: no memory; `fd` is closed. */
opal_btl_crypt_link_t *opal_btl_crypt_link_connect(opal_btl_crypt_engine_t *engine, int fd, opal_crypt_tls_group_t group,
                                                   const opal_crypt_tls_identity_t *identity, const opal_crypt_tls_psk_t *psk);
opal_btl_crypt_link_t *opal_btl_crypt_link_accept(opal_btl_crypt_engine_t *engine, int fd, opal_crypt_handshake_find_t find,
                                                  void *arg);

/* The socket is readable or writable: go on to AUTHENTICATED or HELLO_SENT, if possible. */
void opal_btl_crypt_link_drive(opal_btl_crypt_link_t *link);

/* AUTHENTICATED: send hello, and the connection is OPEN; or close it, as another one is kept, and it has ENDED. */
void opal_btl_crypt_link_send_hello(opal_btl_crypt_link_t *link);
void opal_btl_crypt_link_decline(opal_btl_crypt_link_t *link);

/* OPEN: write what is in the ring, for at most this time, then close_notify.  False: not all was sent. */
bool opal_btl_crypt_link_close(opal_btl_crypt_link_t *link, int milliseconds);

/* Drops what is still queued.  NULL allowed. */
void opal_btl_crypt_link_destroy(opal_btl_crypt_link_t *link);

void opal_btl_crypt_link_fail(opal_btl_crypt_link_t *link, const char *reason);
#define OPAL_BTL_CRYPT_CHANGED "a record was changed, repeated, or left out"
/* Only OPEN or HELLO_SENT becomes ENDED: a sender may find at the same time that the connection has failed. */
void opal_btl_crypt_link_ended(opal_btl_crypt_link_t *link);

/* ---- btl_crypt_out.c ---- */

/* Make an item from a frame: its header and up to two pieces of the caller's. */
void opal_btl_crypt_item_make(opal_btl_crypt_item_t *item, const opal_btl_crypt_frame_t *frame, const struct iovec *pieces,
                              int count);

/* Send over an OPEN connection.  True: complete, all of it is sealed.  False: reap will return it.  A failure shows in
 * the connection's state. */
bool opal_btl_crypt_link_post(opal_btl_crypt_link_t *link, opal_btl_crypt_item_t *item);

/* Seal and write as much as possible; also after a read that brought the last frame, to answer it. */
void opal_btl_crypt_link_pump(opal_btl_crypt_link_t *link);
bool opal_btl_crypt_link_has_more(const opal_btl_crypt_link_t *link);      /* for this connection */

/* Nothing posted now goes over this connection: it is being replaced. */
bool opal_btl_crypt_link_is_last(const opal_btl_crypt_link_t *link);
/* On an idle link, what is posted now is sealed at once. */
bool opal_btl_crypt_link_seals_now(const opal_btl_crypt_link_t *link);

/* The next completed item, or NULL. */
opal_btl_crypt_item_t *opal_btl_crypt_link_reap(opal_btl_crypt_link_t *link);

void opal_btl_crypt_queue_append(opal_btl_crypt_queue_t *queue, opal_btl_crypt_item_t *item);
void opal_btl_crypt_queue_prepend(opal_btl_crypt_queue_t *queue, opal_btl_crypt_queue_t *before);
opal_btl_crypt_item_t *opal_btl_crypt_queue_take(opal_btl_crypt_queue_t *queue);

/* Internal: a write failed, see errno; at most `bytes` of an item from `sealed` on; move on a sealed item. */
void opal_btl_crypt_link_refused(opal_btl_crypt_link_t *link);
int opal_btl_crypt_item_part(const opal_btl_crypt_item_t *item, size_t bytes, struct iovec part[3]);
void opal_btl_crypt_link_item_sealed(opal_btl_crypt_link_t *link, opal_btl_crypt_item_t *item);
bool opal_btl_crypt_link_last_is_due(const opal_btl_crypt_link_t *link);

/* ---- btl_crypt_kernel.c ---- */

/* After the handshake.  `end` sends close_notify. */
void opal_btl_crypt_kernel_takes(opal_btl_crypt_link_t *link);
bool opal_btl_crypt_kernel_end(opal_btl_crypt_link_t *link);
bool opal_btl_crypt_kernel_write(opal_btl_crypt_link_t *link);
void opal_btl_crypt_kernel_read(opal_btl_crypt_link_t *link);

/* ---- btl_crypt_in.c ---- */

/* It waits for other rails: reading would change nothing. */
bool opal_btl_crypt_link_waits(const opal_btl_crypt_link_t *link);
/* It has waited, and can be read on without its socket's being readable. */
bool opal_btl_crypt_link_resumes(const opal_btl_crypt_link_t *link);

/* Internal: close_notify has come; the stream has ended; plaintext has come; bytes of a put are at their address. */
void opal_btl_crypt_link_closed(opal_btl_crypt_link_t *link);
void opal_btl_crypt_link_cut(opal_btl_crypt_link_t *link);
void opal_btl_crypt_link_stream(opal_btl_crypt_link_t *link, const uint8_t *bytes, size_t count);
void opal_btl_crypt_link_put_came(opal_btl_crypt_link_t *link, size_t bytes);

/* The socket of a HELLO_SENT or OPEN connection is readable: open what came, and deliver it. */
void opal_btl_crypt_link_read(opal_btl_crypt_link_t *link);

#endif
