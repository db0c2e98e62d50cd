/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One connection, without MPI: a socket, from the first byte of the handshake to its end.
 *
 *     connects   CONNECTING  SHAKING  GREETING  OPEN  ENDED        listens   SHAKING  ANSWERED  AUTHENTICATED  OPEN  ENDED
 *
 * GREETING: our hello is out, and the other end has not said whether it keeps this connection.
 * ANSWERED: its ClientHello was right, and nobody but the one that it names could have made it.
 * AUTHENTICATED: we have to say so: greet, or decline.  From any state to FAILED, for good.
 *
 * An OPEN connection that has carried enough is replaced: an end sends a last frame and close_notify, the other one does so,
 * too, and it has ENDED at each when it has received both and written its own.  What is queued is for the next one.
 *
 * Threads: `drive`, `read`, `greet`, and all that makes or ends a connection by one at a time; `post`, `pump` and `reap`
 * under a lock of the caller, which greet needs as well.
 */
#ifndef OPAL_BTL_CRYPT_LINK_H
#define OPAL_BTL_CRYPT_LINK_H

#include "btl_crypt_frame.h"
#include "btl_crypt_ring.h"

#include "opal/mca/common/crypt/tls/handshake.h"
#include "opal/mca/common/crypt/tls/records.h"

/* What one read brings at most, with the rest of the one before. */
#define OPAL_BTL_CRYPT_WIRE         (((size_t) 256 << 10) + OPAL_CRYPT_TLS_RECORD_MAX)
/* Rings: of the first ones, and of those that come when all together have reached the limit. */
#define OPAL_BTL_CRYPT_RING         ((size_t) 256 << 10)
#define OPAL_BTL_CRYPT_RING_SMALL   ((size_t) 17 << 10)
#define OPAL_BTL_CRYPT_RINGS_MAX    ((size_t) 8 << 20)
/* Records of a key that cannot be renewed, where a kernel seals or opens; of a server before the client's hello, who may
 * say so then. */
#define OPAL_BTL_CRYPT_KERNEL_MOST  (OPAL_CRYPT_TLS_RECORDS_BEAR / 2)
#define OPAL_BTL_CRYPT_EARLY_MOST   (OPAL_CRYPT_TLS_RECORDS_RENEW / 2)
/* What a kernel is given, or asked for, in one call. */
#define OPAL_BTL_CRYPT_PIECE_MAX    ((size_t) 1 << 20)
/* What was sealed is done with if so little is in front of it. */
#define OPAL_BTL_CRYPT_MARK         ((uint64_t) 32 << 10)
#define OPAL_BTL_CRYPT_SPARES       4

typedef struct opal_btl_crypt_link opal_btl_crypt_link_t;

/* Buffers of one size that are free for whoever is next.  They begin with a page: the kernel's copies to and from what malloc
 * gives, 16 bytes behind one, were seen to be slower. */
typedef struct opal_btl_crypt_spares {
    uint8_t *bytes[OPAL_BTL_CRYPT_SPARES];
    int count;
} opal_btl_crypt_spares_t;

/* NULL: there is no memory. */
uint8_t *opal_btl_crypt_spares_take(opal_btl_crypt_spares_t *spares, size_t bytes);
void opal_btl_crypt_spares_give(opal_btl_crypt_spares_t *spares, uint8_t *bytes);

/* What all connections of a process share. */
typedef struct opal_btl_crypt_engine {
    const opal_crypt_tls_t *tls;
    const opal_aead_module_t *aead;
    opal_crypt_tls_name_t own;
    /* A fragment has come; its bytes are valid during the call, and aligned to 8.  False: no such tag. */
    bool (*deliver)(opal_btl_crypt_link_t *link, uint8_t tag, void *bytes, size_t count);

    uint8_t *wire;                                  /* what was read last */
    opal_btl_crypt_spares_t frames;                 /* usual buffers for fragments that arrive */
    opal_btl_crypt_spares_t rings;                  /* of the large ones, under the caller's lock, as the next */
    size_t ring_bytes;                              /* of all that are in use */
    unsigned threads;                               /* that seal or open a long message together; 0: one */
    opal_crypt_team_t *team;
    opal_crypt_share_t *sealing, *opening;          /* NULL: without a team */
    bool kernel;                                    /* where the kernel seals and opens, it may */
    uint64_t records_most;                          /* a connection sends no more, but is replaced; 0: it is not */
} opal_btl_crypt_engine_t;

/* What is to be sent: the caller's until it was reaped, with the memory that it names. */
typedef struct opal_btl_crypt_item {
    struct opal_btl_crypt_item *next;
    struct iovec pieces[3];                         /* the first is `header` */
    int count;
    uint64_t bytes, sealed;                         /* of all pieces */
    uint64_t end;                                   /* where it ends in what the connection sealed */
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
    OPAL_BTL_CRYPT_GREETING,
    OPAL_BTL_CRYPT_OPEN,
    OPAL_BTL_CRYPT_ENDED,                           /* the other end closed it, as it should be */
    OPAL_BTL_CRYPT_FAILED
} opal_btl_crypt_state_t;

struct opal_btl_crypt_link {
    opal_btl_crypt_engine_t *engine;
    void *owner;                                    /* the caller's */
    int fd;
    _Atomic opal_btl_crypt_state_t state;           /* who sends looks at it while somebody reads */
    bool listens;
    _Atomic bool hello_came, last_came, closed_came;
    bool kernel_out, kernel_in;                     /* it seals, it opens */
    bool kernel_said_last, keeps_key;
    _Atomic bool peer_kernel;                       /* a kernel opens what we send */
    bool wants_write;                               /* the socket was full */
    _Atomic bool deaf;                              /* the other end takes nothing more; what it sent is still read */
    bool closing;                                   /* by us, for good: it is not replaced any more */
    uint32_t armed;                                 /* the caller's: events that it waits for */
    uint64_t born;                                  /* the caller's */
    const char *_Atomic reason;                     /* of FAILED, in English */
    opal_crypt_handshake_t *handshake;
    opal_crypt_tls_records_t *records;
    opal_crypt_tls_identity_t identity;             /* right from ANSWERED, GREETING on; certain from AUTHENTICATED on */

    /* out */
    opal_btl_crypt_ring_t ring;
    opal_btl_crypt_queue_t queue;                   /* not, or in part, sealed */
    opal_btl_crypt_queue_t sealed;                  /* not written */
    uint64_t sealed_bytes, written_bytes;
    uint64_t records_sent;
    bool last_sent;                                 /* and close_notify: nothing is sealed any more */
    opal_btl_crypt_item_t hello;

    /* in */
    uint8_t *rest;                                  /* the beginning of a record */
    size_t rest_bytes;
    uint8_t *frame;                                 /* header and fragment */
    size_t frame_room, frame_have, frame_bytes;
    uint8_t frame_tag;
    uint8_t *put_at;
    uint64_t put_left;
    uint64_t kernel_reads;                          /* that brought something */
};

/* ---- btl_crypt_link.c ---- */

bool opal_btl_crypt_engine_start(opal_btl_crypt_engine_t *engine);      /* tls, aead, own, deliver are filled */
void opal_btl_crypt_engine_stop(opal_btl_crypt_engine_t *engine);       /* after its connections */

/* `fd` is ours from now on, and does not block.  NULL: no memory, and it is closed. */
opal_btl_crypt_link_t *opal_btl_crypt_link_connect(opal_btl_crypt_engine_t *engine, int fd, opal_crypt_tls_group_t group,
                                                   const opal_crypt_tls_identity_t *identity, const opal_crypt_tls_psk_t *psk);
opal_btl_crypt_link_t *opal_btl_crypt_link_accept(opal_btl_crypt_engine_t *engine, int fd, opal_crypt_handshake_find_t find,
                                                  void *arg);

/* The socket can be read or written: go on to AUTHENTICATED, GREETING, or nowhere. */
void opal_btl_crypt_link_drive(opal_btl_crypt_link_t *link);

/* AUTHENTICATED: say hello, and the connection is OPEN; or that another one is kept, and it has ENDED. */
void opal_btl_crypt_link_greet(opal_btl_crypt_link_t *link);
void opal_btl_crypt_link_decline(opal_btl_crypt_link_t *link);

/* OPEN: write what is in the ring, for at most so many milliseconds, and close_notify.  False: it did not go. */
bool opal_btl_crypt_link_close(opal_btl_crypt_link_t *link, int milliseconds);

/* What is still queued is dropped.  NULL allowed. */
void opal_btl_crypt_link_destroy(opal_btl_crypt_link_t *link);

void opal_btl_crypt_link_fail(opal_btl_crypt_link_t *link, const char *reason);
#define OPAL_BTL_CRYPT_CHANGED "a record was changed, repeated, or left out"
/* OPEN or GREETING, and nothing else, becomes ENDED: somebody who sends may find that it has failed at the same time. */
void opal_btl_crypt_link_ended(opal_btl_crypt_link_t *link);

/* ---- btl_crypt_out.c ---- */

/* A frame, of a header and up to two pieces of the caller's. */
void opal_btl_crypt_item_make(opal_btl_crypt_item_t *item, const opal_btl_crypt_frame_t *frame, const struct iovec *pieces,
                              int count);

/* To an OPEN connection.  True: done with, all of it is sealed.  False: reap will say so.  A connection that fails
 * here says so by its state. */
bool opal_btl_crypt_link_post(opal_btl_crypt_link_t *link, opal_btl_crypt_item_t *item);

/* Seal and write, as far as it goes; after a read that has brought the last frame, too, which is answered. */
void opal_btl_crypt_link_pump(opal_btl_crypt_link_t *link);
bool opal_btl_crypt_link_has_more(const opal_btl_crypt_link_t *link);      /* of this connection */

/* Nothing that is posted now goes over this connection: it is being replaced. */
bool opal_btl_crypt_link_is_last(const opal_btl_crypt_link_t *link);
/* What is posted now on an idle link is sealed at once. */
bool opal_btl_crypt_link_seals_now(const opal_btl_crypt_link_t *link);

/* The next item that is done with, or NULL. */
opal_btl_crypt_item_t *opal_btl_crypt_link_reap(opal_btl_crypt_link_t *link);

void opal_btl_crypt_queue_append(opal_btl_crypt_queue_t *queue, opal_btl_crypt_item_t *item);
void opal_btl_crypt_queue_prepend(opal_btl_crypt_queue_t *queue, opal_btl_crypt_queue_t *before);
opal_btl_crypt_item_t *opal_btl_crypt_queue_take(opal_btl_crypt_queue_t *queue);

/* Inside: a write has failed, see errno; the bytes of an item from `sealed` on, at most so many; is all of it sealed? */
void opal_btl_crypt_link_refused(opal_btl_crypt_link_t *link);
int opal_btl_crypt_item_part(const opal_btl_crypt_item_t *item, size_t bytes, struct iovec part[3]);
void opal_btl_crypt_link_item_sealed(opal_btl_crypt_link_t *link, opal_btl_crypt_item_t *item);
bool opal_btl_crypt_link_last_is_due(const opal_btl_crypt_link_t *link);

/* ---- btl_crypt_kernel.c ---- */

/* After the handshake.  `end` says close_notify. */
void opal_btl_crypt_kernel_takes(opal_btl_crypt_link_t *link);
bool opal_btl_crypt_kernel_end(opal_btl_crypt_link_t *link);
bool opal_btl_crypt_kernel_write(opal_btl_crypt_link_t *link);
void opal_btl_crypt_kernel_read(opal_btl_crypt_link_t *link);

/* ---- btl_crypt_in.c ---- */

/* Inside: the sealed end has come; so much plaintext has. */
void opal_btl_crypt_link_closed(opal_btl_crypt_link_t *link);
void opal_btl_crypt_link_cut(opal_btl_crypt_link_t *link);
void opal_btl_crypt_link_stream(opal_btl_crypt_link_t *link, const uint8_t *bytes, size_t count);

/* The socket of a GREETING or OPEN connection can be read: open what came, and deliver it. */
void opal_btl_crypt_link_read(opal_btl_crypt_link_t *link);

#endif
