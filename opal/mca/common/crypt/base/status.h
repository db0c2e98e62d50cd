/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The status page: what a process of a job shows to `mpicrypt ps` on the same node.
 *
 *     /dev/shm/ompi-crypt-status.UID.JOB.RANK.PID, 0600, mapped by its owner
 *
 *     | page: process, written once | current | snapshot 0 | snapshot 1 |
 *
 * The owner fills the snapshot that is not current, and then increments `current`, whose lowest bit selects the complete
 * one.  So a reader finds a complete snapshot even if the owner was stopped while writing, and needs nothing from it.
 *
 * While it lives, the owner holds a POSIX lock on the file, which no forked child has: the process of a page without
 * the lock has ended.
 *
 * A page holds no key and no payload.  A reader trusts it no more than its owner: every field is checked for its
 * range, and texts are shown with opal_crypt_status_text.
 *
 * The layout is for one machine, in its own byte order: a reader of another version or byte order refuses it by
 * `magic` and `version`.
 */
#ifndef OPAL_CRYPT_BASE_STATUS_H
#define OPAL_CRYPT_BASE_STATUS_H

#include "base.h"

#include <sys/types.h>

#pragma GCC visibility push(default)

#define OPAL_CRYPT_STATUS_MAGIC     UINT64_C(0x6f6d70692d637374)
#define OPAL_CRYPT_STATUS_DIRECTORY "/dev/shm"
#define OPAL_CRYPT_STATUS_PREFIX    "ompi-crypt-status."

enum {
    OPAL_CRYPT_STATUS_VERSION = 3,
    OPAL_CRYPT_STATUS_PEERS = 64,       /* the most that a snapshot lists */
    OPAL_CRYPT_STATUS_WAITS = 12
};

typedef enum {
    OPAL_CRYPT_STATUS_STARTING,         /* MPI_Init */
    OPAL_CRYPT_STATUS_RUNNING,
    OPAL_CRYPT_STATUS_ENDING,           /* MPI_Finalize */
    OPAL_CRYPT_STATUS_PHASES
} opal_crypt_status_phase_t;

typedef enum {
    OPAL_CRYPT_STATUS_NOTHING,
    OPAL_CRYPT_STATUS_RECEIVE,
    OPAL_CRYPT_STATUS_SEND,
    OPAL_CRYPT_STATUS_PROBE,
    OPAL_CRYPT_STATUS_COLLECTIVE,       /* of coll/cryptag */
    OPAL_CRYPT_STATUS_CONTACT,          /* a first contact: waiting for what `text` says, from `process` */
    OPAL_CRYPT_STATUS_TAKE,             /* for `process` to take `bytes` that were sent to it */
    OPAL_CRYPT_STATUS_KINDS
} opal_crypt_status_kind_t;

/* How a message is sent. */
typedef enum {
    OPAL_CRYPT_STATUS_FRAME,            /* sealed, in one piece */
    OPAL_CRYPT_STATUS_CHOPPED,          /* sealed, in segments */
    OPAL_CRYPT_STATUS_LOCAL,            /* within the node */
    OPAL_CRYPT_STATUS_BELOW,            /* by ob1, sealed by btl/crypt below it */
    OPAL_CRYPT_STATUS_PROTOCOLS
} opal_crypt_status_protocol_t;

typedef enum {
    OPAL_CRYPT_STATUS_UNKNOWN,          /* known by name only, no contact yet */
    OPAL_CRYPT_STATUS_MEETING,          /* waiting for its record */
    OPAL_CRYPT_STATUS_ON_NODE,
    OPAL_CRYPT_STATUS_SEALED,
    OPAL_CRYPT_STATUS_REFUSED,
    OPAL_CRYPT_STATUS_STATES
} opal_crypt_status_state_t;

enum { OPAL_CRYPT_STATUS_ANY = -1, OPAL_CRYPT_STATUS_FOREIGN = -2 };

/* Times are nanoseconds of CLOCK_MONOTONIC. */
typedef struct opal_crypt_status_wait {
    int64_t since;                      /* when it was first seen; it may have begun a little earlier */
    uint64_t bytes;                     /* of the message, or room in the buffer */
    uint64_t unmatched_bytes;
    int32_t kind, protocol;
    int32_t peer, tag;                  /* a rank of the communicator, or ANY; INT32_MIN: any tag */
    int32_t process;                    /* the peer's rank in MPI_COMM_WORLD, ANY or FOREIGN */
    uint8_t blocking;                   /* the process is inside this call */
    uint8_t queued_unmatched;           /* an unexpected message that does not match this receive is queued: */
    uint8_t asked;                      /* the queue was checked: unless `queued_unmatched`, nothing else has arrived */
    uint8_t pad;
    int32_t unmatched_peer, unmatched_tag; /* not yet authenticated by pml/crypt */
    char comm[64];
    char text[64];                      /* the collective, or what is awaited */
} opal_crypt_status_wait_t;

typedef struct opal_crypt_status_peer {
    uint32_t rank;                      /* in MPI_COMM_WORLD */
    int32_t state;
    uint64_t sent;                      /* sealed messages to it; over btl/crypt: records, as in `accepted` */
    uint64_t highest, accepted;         /* serial numbers of its messages: the highest plus one, how many */
    uint64_t missing;                   /* the lowest that has not arrived */
    uint64_t window_bytes;              /* memory for those above it */
    uint64_t epoch_out, epoch_in;
    uint32_t sends, receives;           /* pending, of ours */
    uint32_t queued;                    /* of the sends: those with segments not sent yet */
    uint32_t held;                      /* its messages that a probe fetched ahead of their receives */
    uint32_t ahead_bytes;               /* sent, but not known to be received */
    uint32_t foreign;                   /* of another job */
} opal_crypt_status_peer_t;

typedef struct opal_crypt_status_snapshot {
    int64_t updated, updated_real;      /* the latter: since 1970 */
    int64_t phase_since, active;        /* `active`: when a message last began or ended; over btl/crypt also a record */
    int32_t phase;
    uint32_t receives;                  /* pending */
    uint32_t sends[OPAL_CRYPT_STATUS_PROTOCOLS];
    uint32_t held;
    uint32_t sealed, on_node;           /* peers met */
    uint32_t incomplete;                /* more was pending than one update covers */
    uint32_t wait_count, peer_count, peers_left_out;
    uint32_t ranks;                     /* of MPI_COMM_WORLD; 0: not known */
    char aead[32];                      /* the provider; empty: none needed yet */
    opal_crypt_status_wait_t waits[OPAL_CRYPT_STATUS_WAITS];
    opal_crypt_status_peer_t peers[OPAL_CRYPT_STATUS_PEERS];
} opal_crypt_status_snapshot_t;

typedef struct opal_crypt_status_who {
    uint64_t magic;
    uint32_t version, bytes;            /* of the file */
    uint32_t uid, pid;
    uint64_t ticks;                     /* start time of the process, as in /proc/PID/stat */
    uint32_t rank;                      /* in MPI_COMM_WORLD */
    uint32_t over_btl;                  /* btl/crypt seals: a peer is a connection, and its counts are records */
    char job[256];
    char host[64];
    char method[16];                    /* how processes authenticate */
    char pml[16];                       /* the PML that carries the messages */
    char protection[256];               /* what protects its messages, one line */
} opal_crypt_status_who_t;

typedef struct opal_crypt_status_page {
    opal_crypt_status_who_t who;
    uint64_t current;
    opal_crypt_status_snapshot_t snapshots[2];
} opal_crypt_status_page_t;

_Static_assert(sizeof(opal_crypt_status_who_t) == 648, "layout");
_Static_assert(sizeof(opal_crypt_status_wait_t) == 184, "layout");
_Static_assert(sizeof(opal_crypt_status_peer_t) == 88, "layout");
_Static_assert(sizeof(opal_crypt_status_page_t) <= 20 * 1024, "a page is small");

/* The start time of a process in ticks, and its state (R, S, D, T ...); 0 if there is no such process. */
uint64_t opal_crypt_status_ticks(pid_t pid, char *state);

/* ---- the owner ---- */

typedef struct opal_crypt_status opal_crypt_status_t;

/* In `who`, the caller sets rank and texts; the rest is set here.  NULL: no page; `error` has the errno. */
opal_crypt_status_t *opal_crypt_status_make(const char *directory, const opal_crypt_status_who_t *who,
                                            int *error);
/* The snapshot to fill, all zeros; _publish makes it current.  One thread at a time. */
opal_crypt_status_snapshot_t *opal_crypt_status_next(opal_crypt_status_t *status);
void opal_crypt_status_publish(opal_crypt_status_t *status);
void opal_crypt_status_remove(opal_crypt_status_t *status);                 /* NULL allowed */

/* ---- a reader ---- */

/* What a reader knows of one process. */
typedef struct opal_crypt_status_process {
    opal_crypt_status_who_t who;
    opal_crypt_status_snapshot_t snapshot;
    int64_t now;                        /* when it was read, on its node */
    int32_t gone;                       /* the process has ended */
    char state;                         /* of the process; 0: unknown */
    char pad[3];
} opal_crypt_status_process_t;

typedef enum {
    OPAL_CRYPT_STATUS_GOOD,
    OPAL_CRYPT_STATUS_NONE,             /* it has just disappeared */
    OPAL_CRYPT_STATUS_BAD               /* see `why` */
} opal_crypt_status_rc_t;

/* Read page NAME of an open directory.  A BAD one with `gone` set and no magic number was never finished. */
opal_crypt_status_rc_t opal_crypt_status_read(int directory, const char *name,
                                              opal_crypt_status_process_t *process, char *why, size_t why_bytes);

/* Remove this user's pages of ended processes that are older than an hour: those of a job that ended recently may
 * still be of interest. */
void opal_crypt_status_sweep(const char *directory);

/* Checks that counts, kinds and ranks are in range, and that texts end: for anything that came from a page, by any
 * route. */
bool opal_crypt_status_valid(opal_crypt_status_process_t *process, char *why, size_t why_bytes);

/* Copy `text` without anything that a terminal would take for a command, into `capacity` bytes. */
const char *opal_crypt_status_text(const char *text, char *shown, size_t capacity);

#pragma GCC visibility pop

#endif
