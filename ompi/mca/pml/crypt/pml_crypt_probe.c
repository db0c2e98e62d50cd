/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Probes and matched receives.  What a probe reports is the plaintext: its
 * length, too.  See held.c for the messages that must leave the host's queue
 * for it.
 */
#include "pml_crypt_held.h"

#include "opal/runtime/opal_progress.h"

/* ---- how long is it? ---- */

static bool length_is_enough(const ompi_common_cryptmpi_peer_t *peer, size_t wire_bytes)
{
    return OMPI_COMMON_CRYPTMPI_SEALED == peer->kind
               ? wire_bytes <= ompi_pml_crypt.params.chop_min + OPAL_CRYPT_DIRECT_OVERHEAD
               : OPAL_CRYPT_LOCAL_LARGE_BYTES != wire_bytes;
}

static size_t less_overhead(const ompi_common_cryptmpi_peer_t *peer, size_t wire_bytes)
{
    size_t overhead = OMPI_COMMON_CRYPTMPI_SEALED == peer->kind ? OPAL_CRYPT_DIRECT_OVERHEAD
                                                                 : OPAL_CRYPT_LOCAL_HEADER;
    return wire_bytes > overhead ? wire_bytes - overhead : 0;
}

/* From the first part, which stays as it came: the receive will open it again.
 * A part that does not authenticate has length 0 here, and fails the receive. */
static size_t total_of(ompi_common_cryptmpi_comm_t *c, const ompi_common_cryptmpi_peer_t *peer,
                       const ompi_pml_crypt_held_t *held)
{
    const uint8_t *frame = held->stage->bytes;
    size_t wire_bytes = held->status._ucount, total_bytes = 0;
    int type = opal_common_crypt_frame_type(frame, wire_bytes);

    if (OMPI_COMMON_CRYPTMPI_SEALED != peer->kind) {
        return OPAL_CRYPT_FRAME_LOCAL_LARGE == type
                       && OPAL_CRYPT_OK == opal_common_crypt_local_check(peer->token_in, type, frame, wire_bytes)
                   ? opal_common_crypt_get64(frame + OPAL_CRYPT_LOCAL_HEADER)
                   : less_overhead(peer, wire_bytes);
    }
    if (OPAL_CRYPT_FRAME_FIRST == type && wire_bytes >= OPAL_CRYPT_FIRST_OVERHEAD) {
        ompi_pml_crypt_stage_t *scratch = ompi_pml_crypt_stage_get();
        opal_common_crypt_envelope_t envelope;
        opal_common_crypt_shape_t shape;
        opal_common_crypt_chop_t *chop;
        uint64_t counter;

        ompi_pml_crypt_envelope(c, held->tag, &envelope);
        if (OPAL_CRYPT_OK == opal_common_crypt_first_open(peer->session, &envelope, frame, wire_bytes,
                                                          scratch->bytes, &shape, &counter, &chop)) {
            total_bytes = shape.total_bytes;
            opal_common_crypt_chop_end(chop);
        }
        ompi_pml_crypt_stage_return(scratch);
    }
    return total_bytes;
}

/* Is the length of a held message known by now?  Fetches what is missing. */
static bool learn_length(ompi_common_cryptmpi_comm_t *c, ompi_pml_crypt_held_t *held)
{
    ompi_common_cryptmpi_peer_t *peer = ompi_common_cryptmpi_comm_peer(c, held->source);

    if (held->known) {
        return true;
    }
    if (length_is_enough(peer, held->wire_bytes)) {
        held->plain_bytes = less_overhead(peer, held->wire_bytes);
        return held->known = true;
    }
    if (OMPI_SUCCESS != ompi_pml_crypt_held_fetch(held) || OMPI_PML_CRYPT_HELD_ARRIVED != held->taker) {
        return false;
    }
    held->plain_bytes = total_of(c, peer, held);
    return held->known = true;
}

static void report(const ompi_pml_crypt_held_t *held, ompi_status_public_t *status)
{
    *status = (ompi_status_public_t){.MPI_SOURCE = held->source, .MPI_TAG = held->tag,
                                     ._ucount = held->plain_bytes, .MPI_ERROR = MPI_SUCCESS};
}

/* ---- taking from the host's queue ---- */

/* May the message that a probe for this tag found stay there? */
static bool stays(const ompi_common_cryptmpi_peer_t *peer, int tag, size_t wire_bytes)
{
    return length_is_enough(peer, wire_bytes)
           && (MPI_ANY_TAG != tag || OMPI_COMMON_CRYPTMPI_SEALED != peer->kind);
}

/* Everything of this source up to the first message with this tag. */
static int take_prefix(ompi_common_cryptmpi_comm_t *c, int source, int tag, ompi_pml_crypt_held_t **wanted)
{
    *wanted = NULL;
    while (NULL == *wanted) {
        ompi_status_public_t status = {.MPI_ERROR = MPI_SUCCESS};
        ompi_message_t *message = NULL;
        ompi_pml_crypt_held_t *held;
        int found = 0;
        bool any_tag = tag >= 0;
        int rc = ompi_pml_crypt.host.pml_improbe(source, any_tag ? MPI_ANY_TAG : tag, c->comm, &found, &message, &status);
        if (OMPI_SUCCESS != rc || !found) {
            return rc;
        }
        status.MPI_TAG = any_tag ? status.MPI_TAG : tag;
        held = ompi_pml_crypt_held_new(c, message, &status, any_tag);
        opal_list_append(&c->held, &held->super);
        if (held->tag == tag) {
            *wanted = held;
        }
    }
    return OMPI_SUCCESS;
}

/* One look, under the communicator's lock: is there a message, with its length
 * known?  `taken` is where a matched probe gets it; NULL leaves it in place. */
static int look(ompi_common_cryptmpi_comm_t *c, int source, int tag, int *matched, ompi_status_public_t *status,
                ompi_pml_crypt_held_t **taken)
{
    ompi_pml_crypt_held_t *held = ompi_pml_crypt_held_find(c, source, tag);
    ompi_common_cryptmpi_peer_t *peer;
    int rc;

    *matched = 0;
    if (NULL == held) {
        rc = ompi_pml_crypt.host.pml_iprobe(source, tag, c->comm, matched, status);
        if (OMPI_SUCCESS != rc || !*matched) {
            return rc;
        }
        *matched = 0;
        status->MPI_TAG = ompi_pml_crypt_tag_of(tag, status);
        rc = ompi_pml_crypt_peer(c, status->MPI_SOURCE, &peer);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        if (NULL == taken && stays(peer, tag, status->_ucount)) {
            status->_ucount = less_overhead(peer, status->_ucount);
            *matched = 1;
            return OMPI_SUCCESS;
        }
        rc = take_prefix(c, status->MPI_SOURCE, status->MPI_TAG, &held);
        if (OMPI_SUCCESS != rc || NULL == held) {
            return rc;
        }
    }
    if (learn_length(c, held)) {
        *matched = 1;
        report(held, status);
        if (NULL != taken) {
            opal_list_remove_item(&c->held, &held->super);
            *taken = held;
        }
    }
    return OMPI_SUCCESS;
}

/* Whoever only asks again and again has to get on, too: a message that is being
 * fetched arrives by progress alone. */
static int probe_once(int source, int tag, ompi_communicator_t *comm, int *matched, ompi_status_public_t *status,
                      ompi_pml_crypt_held_t **taken)
{
    ompi_common_cryptmpi_comm_t *c = ompi_common_cryptmpi_comm(comm);
    ompi_status_public_t found = {.MPI_ERROR = MPI_SUCCESS};
    int rc;

    ompi_common_cryptmpi_lock_acquire(&c->lock);
    rc = look(c, source, tag, matched, &found, taken);
    ompi_common_cryptmpi_lock_release(&c->lock);
    if (*matched && MPI_STATUS_IGNORE != status) {
        OMPI_COPY_STATUS(status, found, false);
    }
    if (OMPI_SUCCESS == rc && !*matched) {
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
    int matched = 0, rc = probe_once(src, tag, comm, &matched, status, NULL);

    while (OMPI_SUCCESS == rc && !matched) {
        rc = probe_once(src, tag, comm, &matched, status, NULL);
    }
    return rc;
}

int ompi_pml_crypt_improbe(int src, int tag, ompi_communicator_t *comm, int *matched, ompi_message_t **message,
                           ompi_status_public_t *status)
{
    ompi_pml_crypt_held_t *held = NULL;
    int rc = probe_once(src, tag, comm, matched, status, &held);

    if (OMPI_SUCCESS == rc && *matched) {
        *message = ompi_message_alloc();
        (*message)->comm = comm;
        (*message)->req_ptr = held;
        (*message)->peer = held->source;
        (*message)->count = held->plain_bytes;
    }
    return rc;
}

int ompi_pml_crypt_mprobe(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message,
                          ompi_status_public_t *status)
{
    int matched = 0, rc = ompi_pml_crypt_improbe(src, tag, comm, &matched, message, status);

    while (OMPI_SUCCESS == rc && !matched) {
        rc = ompi_pml_crypt_improbe(src, tag, comm, &matched, message, status);
    }
    return rc;
}

int ompi_pml_crypt_imrecv(void *buffer, size_t count, ompi_datatype_t *type, ompi_message_t **message,
                          ompi_request_t **request)
{
    ompi_pml_crypt_held_t *held = (*message)->req_ptr;
    int rc = ompi_common_cryptmpi_device_check(buffer);
    ompi_pml_crypt_request_t *r;

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    r = ompi_pml_crypt_request_new(MCA_PML_REQUEST_RECV, buffer, count, type, held->source, held->tag,
                                   (*message)->comm, false);
    ompi_pml_crypt_request_begin(r);
    rc = ompi_pml_crypt_held_recv(r, held);
    ompi_message_return(*message);
    *message = MPI_MESSAGE_NULL;
    if (OMPI_SUCCESS != rc) {
        opal_common_crypt_serial_drop(r->c->serials, r->serial);
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
