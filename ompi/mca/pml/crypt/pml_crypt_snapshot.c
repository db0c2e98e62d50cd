/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What is pending, and with whom: gathered for the status page and for pml_dump.
 *
 *     1. the requests that the free list ever made: those in use, the oldest of them
 *     2. the calls that block
 *     3. what has arrived instead: messages that a probe took, and one that the host would
 *        give to a receive for any tag
 *     4. the peers: those that something waits for, then those that changed last
 */
#include "pml_crypt_waits.h"

#include <stddef.h>
#include <string.h>

enum {
    REQUESTS = 4096,                    /* at most, that are scanned */
    TALLIES = 256
};

typedef struct tally {
    const ompi_common_cryptmpi_peer_t *peer;
    uint32_t sends, receives, queued, held;
} tally_t;

typedef struct scan {
    ompi_pml_crypt_waits_t waits;
    tally_t tallies[TALLIES];
    int64_t changed[OPAL_CRYPT_STATUS_PEERS];       /* how much each of the snapshot's peers is worth showing */
} scan_t;

static tally_t *tally_of(scan_t *scan, const ompi_common_cryptmpi_peer_t *peer, bool make)
{
    size_t at = ((uintptr_t) peer >> 6) % TALLIES;

    for (unsigned tries = 0; NULL != peer && tries < TALLIES / 2; tries++, at = (at + 1) % TALLIES) {
        if (peer == scan->tallies[at].peer) {
            return &scan->tallies[at];
        }
        if (NULL == scan->tallies[at].peer) {
            scan->tallies[at].peer = make ? peer : NULL;
            return make ? &scan->tallies[at] : NULL;
        }
    }
    return NULL;
}

/* ---- requests ---- */

static int32_t protocol_of(const ompi_pml_crypt_request_t *r, const ompi_common_cryptmpi_peer_t *peer)
{
    return NULL != peer && OMPI_COMMON_CRYPTMPI_LOCAL == ompi_common_cryptmpi_kind(peer) ? OPAL_CRYPT_STATUS_LOCAL
           : NULL != r->chop ? OPAL_CRYPT_STATUS_CHOPPED : OPAL_CRYPT_STATUS_FRAME;
}

static void scan_request(scan_t *scan, ompi_pml_crypt_request_t *r)
{
    const bool sends = MCA_PML_REQUEST_SEND == r->base.req_type;
    ompi_common_cryptmpi_peer_t *peer = r->m.peer;
    const int32_t protocol = sends ? protocol_of(r, peer) : 0;
    int64_t since = __atomic_load_n(&r->pending_since, __ATOMIC_RELAXED);
    tally_t *tally = tally_of(scan, peer, true);
    ompi_pml_crypt_named_t *named;

    if (0 == since) {
        since = scan->waits.now;
        __atomic_store_n(&r->pending_since, since, __ATOMIC_RELAXED);
    }
    if (sends) {
        scan->waits.snapshot->sends[protocol]++;
    } else {
        scan->waits.snapshot->receives++;
    }
    if (NULL != tally) {
        tally->sends += sends;
        tally->receives += !sends;
        tally->queued += sends && NULL != r->chop && r->next_segment <= r->shape.count;
    }
    named = ompi_pml_crypt_waits_place(&scan->waits, sends, since);
    if (NULL != named) {
        *named = (ompi_pml_crypt_named_t){
            .wait = {.since = since, .bytes = r->m.plain_bytes, .protocol = protocol, .peer = r->m.rank, .tag = r->m.tag,
                     .kind = sends ? OPAL_CRYPT_STATUS_SEND : OPAL_CRYPT_STATUS_RECEIVE}, .at = r->m.c};
    }
}

static void scan_requests(scan_t *scan)
{
    ompi_pml_crypt_request_t *r = __atomic_load_n(&ompi_pml_crypt.made, __ATOMIC_ACQUIRE);

    for (unsigned i = 0; NULL != r && i < REQUESTS; i++, r = r->made) {
        if (ompi_pml_crypt_request_pending(r)) {
            scan_request(scan, r);
        }
    }
    scan->waits.snapshot->incomplete = NULL != r;
}

/* Messages that a probe has taken. */
static void scan_held(ompi_pml_crypt_waits_t *waits, ompi_pml_crypt_named_t *named)
{
    scan_t *scan = (scan_t *) ((char *) waits - offsetof(scan_t, waits));
    opal_crypt_status_wait_t *w = &named->wait;
    size_t bytes = 0;
    int tag = 0, count;

    if (OPAL_CRYPT_STATUS_RECEIVE != w->kind && OPAL_CRYPT_STATUS_PROBE != w->kind) {
        return;
    }
    count = ompi_pml_crypt_held_count(named->c, OPAL_CRYPT_STATUS_ANY == w->peer ? MPI_ANY_SOURCE : w->peer, &tag, &bytes);
    if (count > 0) {
        w->queued_unmatched = 1;
        w->unmatched_peer = w->peer;
        w->unmatched_tag = tag;
        w->unmatched_bytes = bytes;
        waits->snapshot->held += (uint32_t) count;
        if (w->peer >= 0 && w->peer < named->c->peer_count) {
            tally_t *tally = tally_of(scan, named->c->members[w->peer].peer, true);

            if (NULL != tally) {
                tally->held = (uint32_t) count;
            }
        }
    }
}

/* ---- peers ---- */

static int32_t state_of(const scan_t *scan, const ompi_common_cryptmpi_peer_t *peer, bool foreign)
{
    switch (ompi_common_cryptmpi_kind(peer)) {
    case OMPI_COMMON_CRYPTMPI_LOCAL:
        return OPAL_CRYPT_STATUS_ON_NODE;
    case OMPI_COMMON_CRYPTMPI_SEALED:
        return OPAL_CRYPT_STATUS_SEALED;
    default:
        return OMPI_SUCCESS != peer->failure ? OPAL_CRYPT_STATUS_REFUSED
               : scan->waits.meeting == (foreign ? OPAL_CRYPT_STATUS_FOREIGN : (int) peer->name.vpid) ? OPAL_CRYPT_STATUS_MEETING
                                                                                               : OPAL_CRYPT_STATUS_UNKNOWN;
    }
}

static void fill_peer(scan_t *scan, ompi_common_cryptmpi_peer_t *peer, const tally_t *tally, opal_crypt_status_peer_t *shown)
{
    opal_crypt_session_state_t state = {0};

    memset(shown, 0, sizeof(*shown));
    shown->rank = peer->name.vpid;
    shown->foreign = peer->name.jobid != OPAL_PROC_MY_NAME.jobid;
    shown->state = state_of(scan, peer, 0 != shown->foreign);
    if (OPAL_CRYPT_STATUS_SEALED == shown->state && NULL != peer->session) {
        opal_crypt_session_snapshot(peer->session, &state);
        shown->sent = state.sent;
        shown->highest = state.highest;
        shown->accepted = state.accepted;
        shown->missing = state.missing;
        shown->window_bytes = state.window_bytes;
        shown->epoch_out = state.epoch_out;
        shown->epoch_in = state.epoch_in;
    }
    shown->ahead_bytes = ompi_pml_crypt_ahead_bytes(peer);
    if (NULL != tally) {
        shown->sends = tally->sends;
        shown->receives = tally->receives;
        shown->queued = tally->queued;
        shown->held = tally->held;
    }
}

/* The slot for a peer: a free one, or that of a peer that is worth less; -1: none. */
static int slot_for(scan_t *scan, int64_t worth)
{
    int least = 0;

    if (scan->waits.snapshot->peer_count < OPAL_CRYPT_STATUS_PEERS) {
        return (int) scan->waits.snapshot->peer_count++;
    }
    scan->waits.snapshot->peers_left_out++;
    for (int i = 1; i < OPAL_CRYPT_STATUS_PEERS; i++) {
        least = scan->changed[i] < scan->changed[least] ? i : least;
    }
    return scan->changed[least] < worth ? least : -1;
}

static void scan_peer(ompi_common_cryptmpi_peer_t *peer, void *context)
{
    scan_t *scan = context;
    const tally_t *tally = tally_of(scan, peer, false);
    opal_crypt_status_peer_t shown;
    int64_t worth;
    uint64_t sum;
    int at;

    fill_peer(scan, peer, tally, &shown);
    if (OPAL_CRYPT_STATUS_UNKNOWN == shown.state && NULL == tally) {
        return;
    }
    scan->waits.snapshot->sealed += OPAL_CRYPT_STATUS_SEALED == shown.state;
    scan->waits.snapshot->on_node += OPAL_CRYPT_STATUS_ON_NODE == shown.state;
    if (shown.epoch_out + shown.epoch_in != peer->epochs) {
        peer->epochs = shown.epoch_out + shown.epoch_in;
        opal_cryptproc_happened(OPAL_CRYPTPROC_REKEYED, (int) shown.rank, (int) shown.epoch_out, (int) shown.epoch_in);
        opal_output_verbose(OPAL_CRYPTPROC_SAY_CHOICES, opal_cryptproc_stream,
                            "pml:crypt: rank %u: epoch %llu out, %llu in", shown.rank, (unsigned long long) shown.epoch_out,
                            (unsigned long long) shown.epoch_in);
    }
    sum = 3 * shown.sent + shown.accepted;
    if (sum != peer->shown) {
        peer->shown = sum;
        peer->changed = scan->waits.now;
    }
    worth = NULL != tally || OPAL_CRYPT_STATUS_SEALED < shown.state || OPAL_CRYPT_STATUS_MEETING == shown.state
                ? INT64_MAX : peer->changed;
    at = slot_for(scan, worth);
    if (at >= 0) {
        scan->changed[at] = worth;
        scan->waits.snapshot->peers[at] = shown;
    }
}

/* ---- all of it ---- */

void ompi_pml_crypt_snapshot(opal_crypt_status_snapshot_t *snapshot, int64_t now, bool lists)
{
    static scan_t scan;                 /* one caller at a time */
    const opal_aead_module_t *aead = opal_cryptproc_params.options.aead;

    memset(&scan, 0, sizeof(scan));
    ompi_pml_crypt_waits_begin(&scan.waits, snapshot, now);
    scan.waits.held = scan_held;
    if (lists) {
        scan_requests(&scan);
    }
    ompi_pml_crypt_waits_add_inside(&scan.waits);
    ompi_pml_crypt_waits_add_requests(&scan.waits);
    ompi_common_cryptmpi_peers_visit(scan_peer, &scan);
    if (NULL != aead) {
        opal_cryptproc_cut(snapshot->aead, sizeof(snapshot->aead), aead->name);
    }
}
