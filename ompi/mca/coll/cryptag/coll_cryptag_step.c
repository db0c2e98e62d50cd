/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The messages of one communication step.  The parts of a message travel
 * together up to STAGE_MAX bytes in all (through a staging buffer unless they
 * are adjacent), else each by itself: sender and receiver decide that from the
 * sizes alone.  In setup they always travel together, as only setup finds out
 * whether the ranks have the same maximum.
 */
#include "coll_cryptag.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/mca/pml/pml.h"

enum { STAGE_MAX = 65536 };

/* What a posted request will bring; bytes is SIZE_MAX for a send. */
struct ompi_coll_cryptag_arrival {
    int peer;
    ompi_coll_cryptag_form_t form;
    size_t bytes;
    uint8_t *staged;                        /* to be copied to the parts, or NULL */
    const ompi_coll_cryptag_part_t *parts;
    int count;
};

static void grow_step(ompi_coll_cryptag_call_t *call)
{
    ompi_coll_cryptag_step_t *step = &call->module->step;
    int capacity = 0 == step->capacity ? 64 : 2 * step->capacity;
    void *requests, *arrivals;

    if (step->count < step->capacity) {
        return;
    }
    requests = realloc(step->requests, (size_t) capacity * sizeof(*step->requests));
    if (NULL == requests) {
        ompi_coll_cryptag_no_memory(call->comm, (size_t) capacity * sizeof(*step->requests));
    }
    step->requests = requests;
    arrivals = realloc(step->arrivals, (size_t) capacity * sizeof(*step->arrivals));
    if (NULL == arrivals) {
        ompi_coll_cryptag_no_memory(call->comm, (size_t) capacity * sizeof(*step->arrivals));
    }
    step->arrivals = arrivals;
    step->capacity = capacity;
}

static void post_send(ompi_coll_cryptag_call_t *call, int peer, ompi_coll_cryptag_form_t form,
                      const void *base, size_t count, ompi_datatype_t *dtype, mca_pml_base_send_mode_t mode)
{
    ompi_coll_cryptag_step_t *step = &call->module->step;
    int rc;

    grow_step(call);
    rc = ompi_coll_cryptag_carrier(call, form)->pml_isend(base, count, dtype, peer, call->tag, mode, call->comm,
                                  &step->requests[step->count]);
    if (OMPI_SUCCESS != rc) {
        step->requests[step->count] = MPI_REQUEST_NULL;
        ompi_coll_cryptag_note(call, rc);
    }
    step->arrivals[step->count++] = (ompi_coll_cryptag_arrival_t) { .peer = peer, .bytes = SIZE_MAX };
}

static void post_recv(ompi_coll_cryptag_call_t *call, int peer, ompi_coll_cryptag_form_t form,
                      void *base, size_t count, ompi_datatype_t *dtype,
                      const ompi_coll_cryptag_arrival_t *arrival)
{
    ompi_coll_cryptag_step_t *step = &call->module->step;
    int rc;

    grow_step(call);
    rc = ompi_coll_cryptag_carrier(call, form)->pml_irecv(base, count, dtype, peer, call->tag, call->comm,
                                  &step->requests[step->count]);
    if (OMPI_SUCCESS != rc) {
        step->requests[step->count] = MPI_REQUEST_NULL;
        ompi_coll_cryptag_note(call, rc);
    }
    step->arrivals[step->count] = *arrival;
    step->arrivals[step->count++].form = form;
}

/* Sealed bytes go to the host in fragments that it sends eagerly, which is faster
 * than its rendezvous; all but the last have the same size. */
static size_t fragment_of(ompi_coll_cryptag_form_t form, size_t bytes)
{
    return OMPI_COLL_CRYPTAG_SEALED == form ? ompi_coll_cryptag_even_part(bytes, mca_coll_cryptag_component.fragment)
                                            : bytes;
}

static void send_bytes(ompi_coll_cryptag_call_t *call, int peer, ompi_coll_cryptag_form_t form,
                       const uint8_t *base, size_t bytes, mca_pml_base_send_mode_t last)
{
    const size_t most = fragment_of(form, bytes);

    do {
        size_t fragment = bytes < most ? bytes : most;

        post_send(call, peer, form, base, fragment, MPI_BYTE, fragment < bytes ? MCA_PML_BASE_SEND_STANDARD : last);
        base += fragment;
        bytes -= fragment;
    } while (bytes > 0);
}

/* When the last fragment arrives, staged bytes are copied to the parts; a fragment of
 * the wrong length spoils all parts of the message. */
static void recv_bytes(ompi_coll_cryptag_call_t *call, int peer, ompi_coll_cryptag_form_t form, uint8_t *base,
                       const ompi_coll_cryptag_arrival_t *message)
{
    ompi_coll_cryptag_arrival_t arrival = *message;
    const size_t most = fragment_of(form, message->bytes);
    size_t left = message->bytes;

    do {
        size_t fragment = left < most ? left : most;

        arrival.bytes = fragment;
        arrival.staged = fragment == left ? message->staged : NULL;
        post_recv(call, peer, form, base, fragment, MPI_BYTE, &arrival);
        base += fragment;
        left -= fragment;
    } while (left > 0);
}

typedef struct {
    size_t wire_bytes;
    bool together;      /* one message */
    bool adjacent;      /* needs no staging here */
} shape_t;

static shape_t shape_of(const ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_part_t *parts, int count)
{
    shape_t shape = { .adjacent = true };

    for (int i = 0; i < count; i++) {
        shape.wire_bytes += parts[i].wire_bytes;
        shape.adjacent = shape.adjacent
                         && (0 == i || parts[i - 1].base + parts[i - 1].wire_bytes == parts[i].base);
    }
    shape.together = 1 == count || !call->module->ready || shape.wire_bytes <= STAGE_MAX;
    return shape;
}

static void send_parts(ompi_coll_cryptag_call_t *call, int peer, ompi_coll_cryptag_form_t form,
                       const ompi_coll_cryptag_part_t *parts, int count, mca_pml_base_send_mode_t last)
{
    shape_t shape = shape_of(call, parts, count);
    uint8_t *staged, *end;

    for (int i = 0; i < count; i++) {
        call->metrics.s_c += parts[i].plain_bytes;
    }
    if (!shape.together) {
        for (int i = 0; i < count; i++) {
            send_bytes(call, peer, form, parts[i].base, parts[i].wire_bytes, last);
        }
    } else if (shape.adjacent && count > 0) {
        send_bytes(call, peer, form, parts[0].base, shape.wire_bytes, last);
    } else if (count > 0) {
        staged = end = ompi_coll_cryptag_scratch(call, shape.wire_bytes);
        for (int i = 0; i < count; i++) {
            memcpy(end, parts[i].base, parts[i].wire_bytes);
            end += parts[i].wire_bytes;
        }
        send_bytes(call, peer, form, staged, shape.wire_bytes, last);
    }
}

void ompi_coll_cryptag_send(ompi_coll_cryptag_call_t *call, int peer, ompi_coll_cryptag_form_t form,
                            const ompi_coll_cryptag_part_t *parts, int count)
{
    send_parts(call, peer, form, parts, count, MCA_PML_BASE_SEND_STANDARD);
}

void ompi_coll_cryptag_send_awaited(ompi_coll_cryptag_call_t *call, int peer, ompi_coll_cryptag_form_t form,
                                    const ompi_coll_cryptag_part_t *part)
{
    send_parts(call, peer, form, part, 1, MCA_PML_BASE_SEND_SYNCHRONOUS);
}

void ompi_coll_cryptag_recv(ompi_coll_cryptag_call_t *call, int peer, ompi_coll_cryptag_form_t form,
                            const ompi_coll_cryptag_part_t *parts, int count)
{
    shape_t shape = shape_of(call, parts, count);
    ompi_coll_cryptag_arrival_t arrival = { .peer = peer, .parts = parts, .count = count };

    if (!shape.together) {
        for (int i = 0; i < count; i++) {
            arrival.parts = &parts[i];
            arrival.count = 1;
            arrival.bytes = parts[i].wire_bytes;
            recv_bytes(call, peer, form, parts[i].base, &arrival);
        }
    } else if (count > 0) {
        arrival.bytes = shape.wire_bytes;
        if (!shape.adjacent) {
            arrival.staged = ompi_coll_cryptag_scratch(call, shape.wire_bytes);
        }
        recv_bytes(call, peer, form, shape.adjacent ? parts[0].base : arrival.staged, &arrival);
    }
}

void ompi_coll_cryptag_send_typed(ompi_coll_cryptag_call_t *call, int peer, const void *base, size_t count,
                                  ompi_datatype_t *dtype, size_t bytes)
{
    call->metrics.s_c += bytes;
    post_send(call, peer, OMPI_COLL_CRYPTAG_PLAIN, base, count, dtype, MCA_PML_BASE_SEND_STANDARD);
}

void ompi_coll_cryptag_recv_typed(ompi_coll_cryptag_call_t *call, int peer, void *base, size_t count,
                                  ompi_datatype_t *dtype, size_t bytes)
{
    const ompi_coll_cryptag_arrival_t arrival = { .peer = peer, .bytes = bytes };

    post_recv(call, peer, OMPI_COLL_CRYPTAG_PLAIN, base, count, dtype, &arrival);
}

/* A message of the wrong length is not what the peer sent: its content is
 * discarded. */
static void check_arrival(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_arrival_t *arrival,
                          const ompi_status_public_t *status)
{
    const uint8_t *from = arrival->staged;
    const bool right = MPI_SUCCESS == status->MPI_ERROR && status->_ucount == arrival->bytes;

    if (MPI_SUCCESS != status->MPI_ERROR && MPI_ERR_TRUNCATE != status->MPI_ERROR) {
        ompi_coll_cryptag_note(call, status->MPI_ERROR);
    } else if (!right && (!ompi_coll_cryptag_seals(call) || OMPI_COLL_CRYPTAG_PLAIN == arrival->form)) {
        /* An error in the program: the transport has authenticated it.  Parts may be passed on, as zeros. */
        if (0 == arrival->count) {
            ompi_coll_cryptag_mistaken(call);
        } else {
            ompi_coll_cryptag_note(call, MPI_ERR_TRUNCATE);
        }
        call->spoiled = call->spoiled || OMPI_COLL_CRYPTAG_SEALED == arrival->form;
    } else if (!right) {
        ompi_coll_cryptag_fail(call, OPAL_CRYPT_ERR_AUTH, arrival->peer);
    }
    for (int i = 0; i < arrival->count; i++) {
        if (!right) {
            memset(arrival->parts[i].base, 0, arrival->parts[i].wire_bytes);
        } else if (NULL != from) {
            memcpy(arrival->parts[i].base, from, arrival->parts[i].wire_bytes);
            from += arrival->parts[i].wire_bytes;
        }
    }
}

void ompi_coll_cryptag_wait(ompi_coll_cryptag_call_t *call)
{
    ompi_coll_cryptag_step_t *step = &call->module->step;
    ompi_common_cryptmpi_inside_t inside = {.kind = OPAL_CRYPT_STATUS_COLLECTIVE, .tag = call->tag, .comm = call->comm,
                                            .text = ompi_coll_cryptag_operation_name(call->operation)};
    ompi_status_public_t status;

    if (0 == step->count) {
        return;
    }
    ompi_common_cryptmpi_enter(&inside);
    for (int i = 0; i < step->count; i++) {
        const bool posted = MPI_REQUEST_NULL != step->requests[i];     /* if not, the call has the reason */
        int rc;

        inside.peer = step->arrivals[i].peer;
        status = (ompi_status_public_t) { .MPI_ERROR = MPI_SUCCESS };
        rc = posted ? ompi_common_cryptmpi_request_end(&step->requests[i], &status) : OMPI_ERROR;
        if (SIZE_MAX != step->arrivals[i].bytes) {
            status.MPI_ERROR = OMPI_SUCCESS != rc ? rc : status.MPI_ERROR;
            check_arrival(call, &step->arrivals[i], &status);
        } else {
            ompi_coll_cryptag_note(call, rc);
        }
    }
    ompi_common_cryptmpi_leave(&inside);
    step->count = 0;
    call->metrics.r_c++;
}

void ompi_coll_cryptag_step_free(ompi_coll_cryptag_step_t *step)
{
    free(step->requests);
    free(step->arrivals);
}
