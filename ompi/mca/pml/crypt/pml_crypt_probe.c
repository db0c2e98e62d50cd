/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Probes and matched receives.  For a message from another node, a probe reports what
 * was sealed there: source, tag and length.  See held.c for the messages that must
 * leave the host's queue for it.
 */
#include "pml_crypt_held.h"

#include "opal/runtime/opal_progress.h"

/* What one probe of a communicator's messages found. */
typedef struct probed {
    bool matched;
    ompi_status_public_t status;        /* of what matched */
    ompi_pml_crypt_held_t *taken;       /* by a matched probe */
    int refused;                        /* an OPAL_CRYPT_ERR: one of this source and tag was refused, and dropped */
    int source, tag;
} probed_t;

static bool is_sealed(const ompi_common_cryptmpi_peer_t *peer)
{
    return OMPI_COMMON_CRYPTMPI_SEALED == ompi_common_cryptmpi_kind(peer);
}

static void report(probed_t *probed, int source, int tag, size_t plain_bytes)
{
    probed->matched = true;
    probed->status = (ompi_status_public_t){.MPI_SOURCE = source, .MPI_TAG = tag, ._ucount = plain_bytes,
                                            .MPI_ERROR = MPI_SUCCESS};
}

static void refuse(probed_t *probed, int rc, int source, int tag)
{
    probed->refused = rc;
    probed->source = source;
    probed->tag = tag;
}

/* ---- within this node: how long is it? ---- */

static bool length_is_enough(size_t wire_bytes)
{
    return OPAL_CRYPT_LOCAL_LARGE_BYTES != wire_bytes;
}

static size_t less_overhead(size_t wire_bytes)
{
    return wire_bytes > OPAL_CRYPT_LOCAL_HEADER ? wire_bytes - OPAL_CRYPT_LOCAL_HEADER : 0;
}

/* ---- a held message ---- */

/* Fetch and open the message, as far as needed.  If it is neither known nor refused afterwards,
 * it is still on its way.  Returns an error of the host. */
static int learn(ompi_pml_crypt_held_t *held, int *refused)
{
    ompi_pml_crypt_message_t *m = &held->m;
    int rc;

    if (!is_sealed(m->peer) && length_is_enough(held->claimed_bytes)) {
        held->plain_bytes = less_overhead(held->claimed_bytes);
        held->known = true;
        return OMPI_SUCCESS;
    }
    if (held->claimed_bytes > ompi_pml_crypt.stage_bytes) {
        (void) ompi_pml_crypt_held_fetch(held);     /* only to be dropped */
        *refused = opal_crypt_frame_refused();
        return OMPI_SUCCESS;
    }
    rc = ompi_pml_crypt_held_fetch(held);
    if (OMPI_SUCCESS != rc || !ompi_pml_crypt_held_is_in(held)) {
        return rc;
    }
    m->in = ompi_pml_crypt_arrival(m->c, m->rank, m->tag, &held->status, ompi_pml_crypt.stage_bytes);
    if (OMPI_PML_CRYPT_FORGED == m->in.state) {
        *refused = opal_crypt_frame_refused();
    } else if (OMPI_PML_CRYPT_WHOLE != m->in.state) {
        return MPI_SUCCESS == m->in.error ? MPI_ERR_INTERN : m->in.error;
    } else if (is_sealed(m->peer)) {
        *refused = ompi_pml_crypt_held_open(held);
    } else {            /* the receive will check it again */
        *refused = ompi_pml_crypt_local_probe(m, held->stage->bytes, &held->plain_bytes);
        held->known = OPAL_CRYPT_OK == *refused;
    }
    return OMPI_SUCCESS;
}

/* This is the message that was asked for.  A refused one is dropped: no later probe finds it. */
static int probe_held(ompi_common_cryptmpi_comm_t *c, ompi_pml_crypt_held_t *held, bool take, probed_t *probed)
{
    int refused = OPAL_CRYPT_OK, rc = held->known ? OMPI_SUCCESS : learn(held, &refused);

    if (OMPI_SUCCESS != rc || OPAL_CRYPT_OK != refused) {
        refuse(probed, refused, held->m.rank, held->m.tag);
        opal_list_remove_item(&c->held, &held->super);
        ompi_pml_crypt_held_drop(held);
        return rc;
    }
    if (held->known) {
        report(probed, held->m.rank, held->m.tag, held->plain_bytes);
        if (take) {
            opal_list_remove_item(&c->held, &held->super);
            probed->taken = held;
        }
    }
    return OMPI_SUCCESS;
}

/* ---- taking from the host's queue ---- */

/* May the message that a probe for this tag found stay there? */
static bool stays(const ompi_common_cryptmpi_peer_t *peer, size_t wire_bytes)
{
    return !is_sealed(peer) && length_is_enough(wire_bytes);
}

/* Take all messages of this source up to the first one with this tag. */
static int take_prefix(ompi_common_cryptmpi_comm_t *c, int source, int tag, ompi_pml_crypt_held_t **wanted)
{
    const bool any_tag = tag >= 0;
    const int asked = any_tag ? MPI_ANY_TAG : tag, host_asked = ompi_pml_crypt_host_tag(asked);

    *wanted = NULL;
    while (NULL == *wanted) {
        ompi_status_public_t status = {.MPI_ERROR = MPI_SUCCESS};
        ompi_message_t *message = NULL;
        ompi_pml_crypt_held_t *held;
        int found = 0, rc = ompi_pml_crypt.mtl
                                ? ompi_pml_crypt.host.pml_iprobe(source, host_asked, c->comm, &found, &status)
                                : ompi_pml_crypt.host.pml_improbe(source, host_asked, c->comm, &found, &message, &status);

        if (OMPI_SUCCESS != rc || !found) {
            return rc;
        }
        held = ompi_pml_crypt_held_new(c, message, source, ompi_pml_crypt_tag_of(asked, &status), status._ucount, any_tag);
        opal_list_append(&c->held, &held->super);
        rc = ompi_pml_crypt.mtl ? ompi_pml_crypt_held_fetch(held) : OMPI_SUCCESS;
        if (OMPI_SUCCESS != rc) {
            opal_list_remove_item(&c->held, &held->super);
            ompi_pml_crypt_held_drop(held);
            return rc;
        }
        if (held->m.tag == tag) {
            *wanted = held;
        }
    }
    return OMPI_SUCCESS;
}

/* Does the host have one?  A peer that cannot be authenticated is an error: waiting for its message would never end. */
static int ask(ompi_common_cryptmpi_comm_t *c, int source, int tag, int *matched, ompi_status_public_t *status)
{
    ompi_common_cryptmpi_peer_t *peer;
    int rc = MPI_ANY_SOURCE == source ? OMPI_SUCCESS : ompi_pml_crypt_peer(c, source, &peer);

    *matched = 0;
    return OMPI_SUCCESS != rc ? rc
         : ompi_pml_crypt.host.pml_iprobe(source, ompi_pml_crypt_host_tag(tag), c->comm, matched, status);
}

static bool holds(ompi_common_cryptmpi_comm_t *c, int source, int tag)
{
    bool found;

    ompi_common_cryptmpi_lock_acquire(&c->lock);
    found = NULL != ompi_pml_crypt_held_find(c, source, tag);
    ompi_common_cryptmpi_lock_release(&c->lock);
    return found;
}

/* With threads, before taking the lock: a host that finds nothing makes progress, in which a user-defined reduction may
 * wait for a lock of the application, whose holder may wait for ours.  (cm makes progress when it finds something, too,
 * then under our lock: docs/fabrics.rst.)  What the host no longer has, another probe may have taken meanwhile. */
static int worth_probing(ompi_common_cryptmpi_comm_t *c, int source, int tag, int *worth)
{
    ompi_status_public_t status = {.MPI_ERROR = MPI_SUCCESS};
    int rc = OMPI_SUCCESS;

    *worth = holds(c, source, tag);
    if (!*worth) {
        rc = ask(c, source, tag, worth, &status);
    }
    if (OMPI_SUCCESS == rc && !*worth) {
        *worth = holds(c, source, tag);
    }
    return rc;
}

/* One probe, under the communicator's lock: is there an authentic message of known length?
 * `take`: a matched probe gets it; else it stays. */
static int probe_locked(ompi_common_cryptmpi_comm_t *c, int source, int tag, bool take, probed_t *probed)
{
    ompi_pml_crypt_held_t *held = ompi_pml_crypt_held_find(c, source, tag);
    ompi_status_public_t status = {.MPI_ERROR = MPI_SUCCESS};
    ompi_common_cryptmpi_peer_t *peer;
    ompi_pml_crypt_arrival_t arrival;
    int rc, matched;

    if (NULL == held) {
        rc = ask(c, source, tag, &matched, &status);
        if (OMPI_SUCCESS != rc || !matched) {
            return rc;
        }
        arrival = ompi_pml_crypt_arrival(c, source, tag, &status, SIZE_MAX);
        if (OMPI_PML_CRYPT_WHOLE != arrival.state) {        /* no valid source, by which it could be taken: it stays */
            refuse(probed, opal_crypt_frame_refused(), arrival.source, arrival.tag);
            return OMPI_SUCCESS;
        }
        rc = ompi_pml_crypt_peer(c, arrival.source, &peer);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        if (!take && stays(peer, arrival.wire_bytes)) {
            report(probed, arrival.source, arrival.tag, less_overhead(arrival.wire_bytes));
            return OMPI_SUCCESS;
        }
        rc = take_prefix(c, arrival.source, arrival.tag, &held);
        if (OMPI_SUCCESS != rc || NULL == held) {
            return rc;
        }
    }
    return probe_held(c, held, take, probed);
}

/* A failed probe makes progress: for a caller that only repeats it, a message that is
 * being fetched arrives in no other way. */
static int probe_once(int source, int tag, ompi_communicator_t *comm, int *matched, ompi_status_public_t *status,
                      ompi_pml_crypt_held_t **taken)
{
    ompi_common_cryptmpi_comm_t *c = ompi_common_cryptmpi_comm(comm);
    probed_t probed = {.refused = OPAL_CRYPT_OK};
    int rc = OMPI_SUCCESS, worth = 1;

    if (OPAL_UNLIKELY(opal_cryptproc_threaded())) {
        rc = worth_probing(c, source, tag, &worth);
    }
    if (OMPI_SUCCESS == rc && worth) {
        ompi_common_cryptmpi_lock_acquire(&c->lock);
        rc = probe_locked(c, source, tag, NULL != taken, &probed);
        ompi_common_cryptmpi_lock_release(&c->lock);
    }
    *matched = probed.matched;
    if (NULL != taken) {
        *taken = probed.taken;
    }
    if (probed.matched && MPI_STATUS_IGNORE != status) {
        OMPI_COPY_STATUS(status, probed.status, false);
    }
    if (OPAL_CRYPT_OK != probed.refused) {
        return ompi_common_cryptmpi_auth_failure(comm, probed.source, probed.tag, probed.refused);
    }
    if (OMPI_SUCCESS == rc && !probed.matched) {
        opal_progress();
    }
    return rc;
}

/* ---- the module's functions ---- */

int ompi_pml_crypt_iprobe(int src, int tag, ompi_communicator_t *comm, int *matched, ompi_status_public_t *status)
{
    return probe_once(src, tag, comm, matched, status, NULL);
}

int ompi_pml_crypt_probe(int src, int tag, ompi_communicator_t *comm, ompi_status_public_t *status)
{
    ompi_common_cryptmpi_inside_t inside = {.kind = OPAL_CRYPT_STATUS_PROBE, .peer = src, .tag = tag, .comm = comm};
    int matched = 0, rc;

    ompi_common_cryptmpi_enter(&inside);
    do {
        rc = probe_once(src, tag, comm, &matched, status, NULL);
    } while (OMPI_SUCCESS == rc && !matched);
    ompi_common_cryptmpi_leave(&inside);
    return rc;
}

int ompi_pml_crypt_improbe(int src, int tag, ompi_communicator_t *comm, int *matched, ompi_message_t **message,
                           ompi_status_public_t *status)
{
    ompi_pml_crypt_held_t *held = NULL;
    int rc = probe_once(src, tag, comm, matched, status, &held);

    if (OMPI_SUCCESS == rc && *matched) {
        *message = ompi_message_alloc();
        OBJ_RETAIN(comm);               /* it may be freed before the message is received */
        (*message)->comm = comm;
        (*message)->req_ptr = held;
        (*message)->peer = held->m.rank;
        (*message)->count = held->plain_bytes;
    }
    return rc;
}

int ompi_pml_crypt_mprobe(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message,
                          ompi_status_public_t *status)
{
    ompi_common_cryptmpi_inside_t inside = {.kind = OPAL_CRYPT_STATUS_PROBE, .peer = src, .tag = tag, .comm = comm};
    int matched = 0, rc;

    ompi_common_cryptmpi_enter(&inside);
    do {
        rc = ompi_pml_crypt_improbe(src, tag, comm, &matched, message, status);
    } while (OMPI_SUCCESS == rc && !matched);
    ompi_common_cryptmpi_leave(&inside);
    return rc;
}

int ompi_pml_crypt_imrecv(void *buffer, size_t count, ompi_datatype_t *type, ompi_message_t **message,
                          ompi_request_t **request)
{
    ompi_pml_crypt_held_t *held = (*message)->req_ptr;
    ompi_communicator_t *comm = (*message)->comm;
    int rc = ompi_common_cryptmpi_device_check(buffer, type);
    ompi_pml_crypt_request_t *r;

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    r = ompi_pml_crypt_request_new(MCA_PML_REQUEST_RECV, buffer, count, type, held->m.rank, held->m.tag,
                                   comm, false);
    OBJ_RELEASE(comm);                  /* the request holds its own reference */
    ompi_pml_crypt_request_begin(r);
    rc = ompi_pml_crypt_held_recv(r, held);
    ompi_message_return(*message);
    *message = MPI_MESSAGE_NULL;
    if (OMPI_SUCCESS != rc) {
        ompi_pml_crypt_serial_drop(&r->m);
        ompi_pml_crypt_request_drop(r);
        return rc;
    }
    *request = &r->base.req_ompi;
    return OMPI_SUCCESS;
}

int ompi_pml_crypt_mrecv(void *buffer, size_t count, ompi_datatype_t *type, ompi_message_t **message,
                         ompi_status_public_t *status)
{
    ompi_request_t *request;
    int rc = ompi_pml_crypt_imrecv(buffer, count, type, message, &request);

    return OMPI_SUCCESS != rc ? rc : ompi_pml_crypt_request_wait((ompi_pml_crypt_request_t *) request, status);
}
