/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Copies between the user's buffers and packed blocks.
 */
#include "coll_cryptag.h"

#include <string.h>

void ompi_coll_cryptag_device_check(ompi_coll_cryptag_call_t *call, const void *buffer, const ompi_datatype_t *type,
                                    size_t bytes)
{
    if (MPI_IN_PLACE != buffer && 0 != bytes
        && (OMPI_SUCCESS != ompi_common_cryptmpi_device_check(buffer, type)
            || ompi_common_cryptmpi_device_hidden(buffer, type))) {
        ompi_coll_cryptag_end_job(call->comm, "device-buffer", ompi_comm_rank(call->comm), call->comm->c_name);
    }
}

static char *place_of(const ompi_coll_cryptag_user_t *user, int rank)
{
    ptrdiff_t elements = user->rcounts ? ompi_common_cryptmpi_disp(user->disps, rank)
                                       : (ptrdiff_t) rank * (ptrdiff_t) user->rcount;
    return user->rbuf + elements * user->extent;
}

size_t ompi_coll_cryptag_user_count(const ompi_coll_cryptag_user_t *user, int rank)
{
    return user->rcounts ? ompi_common_cryptmpi_count(user->rcounts, rank) : user->rcount;
}

/* A rank that passes two different lengths for its block takes part with zeros, so that no
 * other waits for it, and gets the error at the end. */
void ompi_coll_cryptag_take_own(ompi_coll_cryptag_call_t *call, uint8_t *to)
{
    const ompi_coll_cryptag_user_t *user = &call->user;
    const int rank = call->topo->rank;
    const size_t bytes = ompi_coll_cryptag_block_bytes(call, rank);
    int rc;

    if (MPI_IN_PLACE != user->sbuf && ompi_common_cryptmpi_bytes(user->sdtype, user->scount) != bytes) {
        memset(to, 0, bytes);
        rc = MPI_ERR_TRUNCATE;
    } else if (MPI_IN_PLACE != user->sbuf) {
        rc = ompi_common_cryptmpi_pack(user->sbuf, user->scount, user->sdtype, 0, bytes, to);
    } else if (user->dense && (uint8_t *) place_of(user, rank) == to) {
        return;
    } else {
        rc = ompi_common_cryptmpi_pack(place_of(user, rank), ompi_coll_cryptag_user_count(user, rank), user->rdtype, 0, bytes, to);
    }
    ompi_coll_cryptag_note(call, rc);
}

void ompi_coll_cryptag_deliver(ompi_coll_cryptag_call_t *call, int rank, const uint8_t *from)
{
    const ompi_coll_cryptag_user_t *user = &call->user;
    const size_t bytes = ompi_coll_cryptag_block_bytes(call, rank);
    int rc;

    if (user->dense) {
        memcpy(user->rbuf + call->offset[rank], from, bytes);
        return;
    }
    rc = ompi_common_cryptmpi_unpack(place_of(user, rank), ompi_coll_cryptag_user_count(user, rank), user->rdtype, 0, bytes, from);
    ompi_coll_cryptag_note(call, rc);
}

int ompi_coll_cryptag_run_parts(const ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_run_t *run,
                                ompi_coll_cryptag_part_t parts[2])
{
    const int p = call->topo->ranks, end = run->first + run->count, split = end < p ? end : p;
    size_t bytes = call->offset[split] - call->offset[run->first];

    parts[0] = (ompi_coll_cryptag_part_t) { ompi_coll_cryptag_block(call, run->first), bytes, bytes };
    if (end <= p) {
        return 1;
    }
    bytes = call->offset[end - p];
    parts[1] = (ompi_coll_cryptag_part_t) { call->plain, bytes, bytes };
    return 2;
}

/* Unpacking zeros touches exactly the bytes that belong to the message. */
void ompi_coll_cryptag_wipe(ompi_coll_cryptag_call_t *call)
{
    const int ranks = call->topo->ranks;
    const size_t longest = ompi_coll_cryptag_longest_block(call);
    uint8_t *zeros = ompi_coll_cryptag_scratch(call, longest);

    memset(zeros, 0, longest);
    for (int i = 0; i < ranks; i++) {
        if (i != call->topo->rank || MPI_IN_PLACE != call->user.sbuf) {
            ompi_coll_cryptag_deliver(call, i, zeros);
        }
    }
}
