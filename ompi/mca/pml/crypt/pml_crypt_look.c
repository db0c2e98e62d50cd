/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What is pending, and with whom: gathered for the status page and for pml_dump.
 *
 *     1. the requests that the free list ever made: those in use, the oldest of them
 *     2. the calls that block
 *     3. what lies there instead: messages that a probe took, and one that the host would
 *        give to a receive for any tag
 *     4. the peers: those that something waits for, then those that changed last
 *
 * Other threads go on meanwhile.  Of a request only numbers are taken, and its communicator is
 * followed only while none can go.  A number may have changed since: it is checked before it
 * is used for more than to be shown.
 */
#include "pml_crypt.h"

#include <limits.h>
#include <string.h>

enum {
    REQUESTS = 4096,                    /* that are looked at */
    OLDEST = 4,                         /* receives, and sends, that are named */
    TALLIES = 256,
    SECOND = 1000000000                 /* a receive that is younger is not looked into */
};

/* A wait that is named, and its communicator. */
typedef struct named {
    opal_crypt_status_wait_t wait;
    ompi_common_cryptmpi_comm_t *c;     /* may be gone, unless `comm` is set */
    const ompi_communicator_t *comm;
    ompi_communicator_t *retained;      /* that of a call that blocks, which another thread may leave */
} named_t;

typedef struct tally {
    const ompi_common_cryptmpi_peer_t *peer;
    uint32_t sends, receives, queued, held;
} tally_t;

typedef struct look {
    opal_crypt_status_moment_t *moment;
    int64_t now;
    named_t receives[OLDEST], sends[OLDEST], inside[OLDEST];
    unsigned receive_count, send_count, inside_count;
    int meeting;                        /* the process of a first contact, or ANY */
    tally_t tallies[TALLIES];
    int64_t changed[OPAL_CRYPT_STATUS_PEERS];       /* of the moment's peers: how much each is worth naming */
} look_t;

static tally_t *tally_of(look_t *look, const ompi_common_cryptmpi_peer_t *peer, bool make)
{
    size_t at = ((uintptr_t) peer >> 6) % TALLIES;

    for (unsigned tries = 0; NULL != peer && tries < TALLIES / 2; tries++, at = (at + 1) % TALLIES) {
        if (peer == look->tallies[at].peer) {
            return &look->tallies[at];
        }
        if (NULL == look->tallies[at].peer) {
            look->tallies[at].peer = make ? peer : NULL;
            return make ? &look->tallies[at] : NULL;
        }
    }
    return NULL;
}

/* ---- requests ---- */

/* Among the oldest, if it is older than the youngest of them. */
static named_t *place_for(named_t *oldest, unsigned *count, int64_t since)
{
    unsigned youngest = 0;

    if (*count < OLDEST) {
        return &oldest[(*count)++];
    }
    for (unsigned i = 1; i < OLDEST; i++) {
        youngest = oldest[i].wait.since > oldest[youngest].wait.since ? i : youngest;
    }
    return since < oldest[youngest].wait.since ? &oldest[youngest] : NULL;
}

static int32_t protocol_of(const ompi_pml_crypt_request_t *r, const ompi_common_cryptmpi_peer_t *peer)
{
    return NULL != peer && OMPI_COMMON_CRYPTMPI_LOCAL == ompi_common_cryptmpi_kind(peer) ? OPAL_CRYPT_STATUS_LOCAL
           : NULL != r->chop ? OPAL_CRYPT_STATUS_CHOPPED : OPAL_CRYPT_STATUS_FRAME;
}

static void look_at_request(look_t *look, ompi_pml_crypt_request_t *r)
{
    const bool sends = MCA_PML_REQUEST_SEND == r->base.req_type;
    ompi_common_cryptmpi_peer_t *peer = r->m.peer;
    const int32_t protocol = sends ? protocol_of(r, peer) : 0;
    int64_t since = __atomic_load_n(&r->seen, __ATOMIC_RELAXED);
    tally_t *tally = tally_of(look, peer, true);
    named_t *named;

    if (0 == since) {
        since = look->now;
        __atomic_store_n(&r->seen, since, __ATOMIC_RELAXED);
    }
    if (sends) {
        look->moment->sends[protocol]++;
    } else {
        look->moment->receives++;
    }
    if (NULL != tally) {
        tally->sends += sends;
        tally->receives += !sends;
        tally->queued += sends && NULL != r->chop && r->next_segment <= r->shape.count;
    }
    named = sends ? place_for(look->sends, &look->send_count, since) : place_for(look->receives, &look->receive_count, since);
    if (NULL != named) {
        *named = (named_t){.wait = {.since = since, .bytes = r->m.plain_bytes, .protocol = protocol,
                                    .kind = sends ? OPAL_CRYPT_STATUS_SEND : OPAL_CRYPT_STATUS_RECEIVE,
                                    .peer = r->m.rank, .tag = r->m.tag}, .c = r->m.c};
    }
}

static void look_at_requests(look_t *look)
{
    ompi_pml_crypt_request_t *r = __atomic_load_n(&ompi_pml_crypt.made, __ATOMIC_ACQUIRE);

    for (unsigned i = 0; NULL != r && i < REQUESTS; i++, r = r->made) {
        if (ompi_pml_crypt_request_pending(r)) {
            look_at_request(look, r);
        }
    }
    look->moment->incomplete = NULL != r;
}

/* ---- calls that block ---- */

static void look_inside(ompi_common_cryptmpi_inside_t *inside, void *context)
{
    look_t *look = context;
    named_t *named;

    if (0 == inside->since) {
        inside->since = look->now;
    }
    if (OPAL_CRYPT_STATUS_CONTACT == inside->kind) {
        look->meeting = inside->peer;
    }
    if (look->inside_count >= OLDEST) {
        return;
    }
    named = &look->inside[look->inside_count++];
    *named = (named_t){.wait = {.since = inside->since, .bytes = inside->bytes, .kind = inside->kind, .peer = inside->peer,
                                .tag = inside->tag, .blocking = 1}, .comm = inside->comm,
                       .retained = (ompi_communicator_t *) (uintptr_t) inside->comm};
    if (NULL != named->retained) {
        OBJ_RETAIN(named->retained);
    }
    if (NULL != inside->text) {
        opal_cryptproc_cut(named->wait.text, sizeof(named->wait.text), inside->text);
    }
}

/* ---- communicators ---- */

static const char *collective_of(int tag)
{
    static const char *const names[] = {"all-gather", "all-gather", "all-reduce", "all-to-all", "all-to-all", "all-to-all",
                                        "barrier", "broadcast", "exclusive scan", "gather", "gather", "reduce",
                                        "reduce-scatter", "reduce-scatter", "scan", "scatter", "scatter"};
    const int first = -10;              /* coll_tags.h, the same in 4.1 and 5.0 */

    return tag > first || tag <= first - (int) (sizeof(names) / sizeof(names[0])) ? tag < 0 ? "collective" : NULL
                                                                               : names[first - tag];
}

/* Of a rank of the communicator; where it is gone, there is nobody. */
static int32_t process_of(const ompi_communicator_t *comm, int peer)
{
    opal_process_name_t name;

    if (peer < 0 || peer >= ompi_group_size(comm->c_remote_group)) {
        return OPAL_CRYPT_STATUS_ANY;
    }
    name = ompi_group_get_proc_name(comm->c_remote_group, peer);
    return name.jobid == OPAL_PROC_MY_NAME.jobid ? (int32_t) name.vpid : OPAL_CRYPT_STATUS_FOREIGN;
}

static void name_comm(named_t *named)
{
    opal_crypt_status_wait_t *w = &named->wait;
    const ompi_communicator_t *comm = named->comm;
    const char *collective = collective_of(w->tag);

    w->process = OPAL_CRYPT_STATUS_CONTACT == w->kind ? w->peer : OPAL_CRYPT_STATUS_ANY;
    if (OPAL_CRYPT_STATUS_CONTACT == w->kind) {
        w->peer = OPAL_CRYPT_STATUS_ANY;
        return;
    }
    if (MPI_ANY_TAG == w->tag) {
        w->tag = INT_MIN;
    } else if (NULL != collective && '\0' == w->text[0]) {
        opal_cryptproc_cut(w->text, sizeof(w->text), collective);
    }
    if (NULL != comm) {
        w->process = process_of(comm, w->peer);
        opal_cryptproc_cut(w->comm, sizeof(w->comm), comm->c_name);
        if (w->blocking) {
            named->c = ompi_common_cryptmpi_comm(comm);
        }
    }
    w->peer = w->peer < 0 ? OPAL_CRYPT_STATUS_ANY : w->peer;
}

/* Messages that a probe has taken. */
static void look_at_held(look_t *look, named_t *named)
{
    opal_crypt_status_wait_t *w = &named->wait;
    size_t bytes = 0;
    int tag = 0, count;

    if (OPAL_CRYPT_STATUS_RECEIVE != w->kind && OPAL_CRYPT_STATUS_PROBE != w->kind) {
        return;
    }
    count = ompi_pml_crypt_held_count(named->c, OPAL_CRYPT_STATUS_ANY == w->peer ? MPI_ANY_SOURCE : w->peer, &tag, &bytes);
    if (count > 0) {
        w->lies = 1;
        w->lying_peer = w->peer;
        w->lying_tag = tag;
        w->lying_bytes = bytes;
        look->moment->held += (uint32_t) count;
        if (w->peer >= 0 && w->peer < named->c->peer_count) {
            tally_t *tally = tally_of(look, named->c->members[w->peer].peer, true);

            if (NULL != tally) {
                tally->held = (uint32_t) count;
            }
        }
    }
}

/* What the host has for this source.  It stays there.  The host makes progress, in which a
 * communicator may go: ours is retained; and in which others are met: a first contact that waits holds that lock. */
static void ask_host(opal_crypt_status_wait_t *w, ompi_communicator_t *comm, int peer_count)
{
    ompi_status_public_t status = {.MPI_ERROR = MPI_SUCCESS};
    const int source = OPAL_CRYPT_STATUS_ANY == w->peer ? MPI_ANY_SOURCE : w->peer;
    int found = 0;

    if (OMPI_SUCCESS == ompi_pml_crypt.host.pml_iprobe(source, ompi_pml_crypt_host_tag(MPI_ANY_TAG), comm, &found, &status)
        && found && status.MPI_TAG != w->tag && (unsigned) status.MPI_SOURCE < (unsigned) peer_count) {
        w->lies = 1;
        w->lying_peer = status.MPI_SOURCE;
        w->lying_tag = status.MPI_TAG;
        w->lying_bytes = status._ucount > OPAL_CRYPT_LOCAL_HEADER ? status._ucount - OPAL_CRYPT_LOCAL_HEADER : 0;
    }
}

/* cm's probe waits until its completion was read, which with threads may be up to a caller of this one: from 5.0 on mtl/ofi
 * makes progress of everything in a callback, under the lock by which completions are read. */
static bool may_ask_host(void)
{
    return !(ompi_pml_crypt.mtl && opal_cryptproc_threaded());
}

/* `c` is not certain to be the communicator that was waited in: another may lie there now, which has fewer processes. */
static bool worth_asking(const look_t *look, const opal_crypt_status_wait_t *w, const ompi_common_cryptmpi_comm_t *c)
{
    return __atomic_load_n(&c->at_host, __ATOMIC_ACQUIRE) && w->peer >= OPAL_CRYPT_STATUS_ANY && w->peer < c->peer_count
           && may_ask_host() && OPAL_CRYPT_STATUS_ANY == look->meeting && !w->lies && w->tag >= 0 && look->now - w->since >= SECOND
           && (OPAL_CRYPT_STATUS_RECEIVE == w->kind || OPAL_CRYPT_STATUS_PROBE == w->kind);
}

/* Until its destructor has come as far as this component, a communicator is still in the list. */
static ompi_communicator_t *retain_living(ompi_communicator_t *comm)
{
    opal_object_t *object = (opal_object_t *) comm;
    int32_t count = object->obj_reference_count;

    while (count > 0) {
        if (opal_atomic_compare_exchange_strong_32(&object->obj_reference_count, &count, count + 1)) {
            return comm;
        }
    }
    return NULL;
}

static void look_at_comm(look_t *look, named_t *named)
{
    ompi_communicator_t *ask = NULL;
    int peer_count = 0;

    ompi_common_cryptmpi_comms_hold();
    if (NULL == named->comm && NULL != named->c && ompi_common_cryptmpi_comm_known(named->c)) {
        named->comm = named->c->comm;
    }
    name_comm(named);
    if (NULL != named->comm && NULL != named->c) {
        look_at_held(look, named);
        if (worth_asking(look, &named->wait, named->c)) {
            ask = retain_living(named->c->comm);
            peer_count = named->c->peer_count;
        }
    }
    ompi_common_cryptmpi_comms_release();
    if (NULL != ask) {
        ask_host(&named->wait, ask, peer_count);
        OBJ_RELEASE(ask);
    }
    look->moment->waits[look->moment->wait_count++] = named->wait;
}

/* ---- peers ---- */

static int32_t state_of(const look_t *look, const ompi_common_cryptmpi_peer_t *peer, bool foreign)
{
    switch (ompi_common_cryptmpi_kind(peer)) {
    case OMPI_COMMON_CRYPTMPI_LOCAL:
        return OPAL_CRYPT_STATUS_ON_NODE;
    case OMPI_COMMON_CRYPTMPI_SEALED:
        return OPAL_CRYPT_STATUS_SEALED;
    default:
        return OMPI_SUCCESS != peer->failure ? OPAL_CRYPT_STATUS_REFUSED
               : look->meeting == (foreign ? OPAL_CRYPT_STATUS_FOREIGN : (int) peer->name.vpid) ? OPAL_CRYPT_STATUS_MEETING
                                                                                               : OPAL_CRYPT_STATUS_UNKNOWN;
    }
}

static void fill_peer(look_t *look, ompi_common_cryptmpi_peer_t *peer, const tally_t *tally, opal_crypt_status_peer_t *shown)
{
    opal_crypt_session_state_t state = {0};

    memset(shown, 0, sizeof(*shown));
    shown->rank = peer->name.vpid;
    shown->foreign = peer->name.jobid != OPAL_PROC_MY_NAME.jobid;
    shown->state = state_of(look, peer, 0 != shown->foreign);
    if (OPAL_CRYPT_STATUS_SEALED == shown->state && NULL != peer->session) {
        opal_crypt_session_look(peer->session, &state);
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

/* Where it is named: a free place, or that of one that is worth less. */
static int room_for(look_t *look, int64_t worth)
{
    int least = 0;

    if (look->moment->peer_count < OPAL_CRYPT_STATUS_PEERS) {
        return (int) look->moment->peer_count++;
    }
    look->moment->peers_left_out++;
    for (int i = 1; i < OPAL_CRYPT_STATUS_PEERS; i++) {
        least = look->changed[i] < look->changed[least] ? i : least;
    }
    return look->changed[least] < worth ? least : -1;
}

static void look_at_peer(ompi_common_cryptmpi_peer_t *peer, void *context)
{
    look_t *look = context;
    const tally_t *tally = tally_of(look, peer, false);
    opal_crypt_status_peer_t shown;
    int64_t worth;
    uint64_t sum;
    int at;

    fill_peer(look, peer, tally, &shown);
    if (OPAL_CRYPT_STATUS_UNKNOWN == shown.state && NULL == tally) {
        return;
    }
    look->moment->sealed += OPAL_CRYPT_STATUS_SEALED == shown.state;
    look->moment->on_node += OPAL_CRYPT_STATUS_ON_NODE == shown.state;
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
        peer->changed = look->now;
    }
    worth = NULL != tally || OPAL_CRYPT_STATUS_SEALED < shown.state || OPAL_CRYPT_STATUS_MEETING == shown.state
                ? INT64_MAX : peer->changed;
    at = room_for(look, worth);
    if (at >= 0) {
        look->changed[at] = worth;
        look->moment->peers[at] = shown;
    }
}

/* ---- all of it ---- */

void ompi_pml_crypt_look(opal_crypt_status_moment_t *moment, int64_t now, bool lists)
{
    static look_t look;                 /* one at a time */
    const opal_aead_module_t *aead = opal_cryptproc_params.options.aead;

    memset(&look, 0, sizeof(look));
    look.moment = moment;
    look.now = now;
    look.meeting = OPAL_CRYPT_STATUS_ANY;
    if (lists) {
        look_at_requests(&look);
    }
    ompi_common_cryptmpi_insides_look(look_inside, &look);
    for (unsigned i = 0; i < look.inside_count; i++) {
        look_at_comm(&look, &look.inside[i]);
        if (NULL != look.inside[i].retained) {
            OBJ_RELEASE(look.inside[i].retained);
        }
    }
    for (unsigned i = 0; i < look.receive_count; i++) {
        look_at_comm(&look, &look.receives[i]);
    }
    for (unsigned i = 0; i < look.send_count; i++) {
        look_at_comm(&look, &look.sends[i]);
    }
    ompi_common_cryptmpi_peers_look(look_at_peer, &look);
    if (NULL != aead) {
        opal_cryptproc_cut(moment->aead, sizeof(moment->aead), aead->name);
    }
}
