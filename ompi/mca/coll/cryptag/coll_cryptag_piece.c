/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sealing and opening: with the group key for all ranks, or with keys of the two ranks
 * for one receiver.  An item longer than piece_max is sealed as several pieces, one
 * after the other:
 *
 *     | counter 8 | ciphertext | tag 16 | counter 8 | ciphertext | tag 16 | ...
 *
 * The AAD fully identifies a piece: group, collective, operation, algorithm,
 * origin, destination, which item of this origin, which piece of how many, and
 * its length.  So a piece is only accepted in its own place.
 *
 * Over btl/crypt nothing is sealed here: a communicator has no key, a piece is its
 * plaintext, and everything goes to the selected PML.  So unsealed data can never reach
 * the host PML below pml/crypt, where nothing would seal it any more.
 */
#include "coll_cryptag.h"

#include <string.h>

#include "ompi/mca/pml/pml.h"

/* ---- do we seal?  if we have the key ---- */

bool ompi_coll_cryptag_seals(const ompi_coll_cryptag_call_t *call)
{
    return NULL != call->module->group;
}

const mca_pml_base_module_t *ompi_coll_cryptag_carrier(const ompi_coll_cryptag_call_t *call,
                                                       ompi_coll_cryptag_form_t form)
{
    return OMPI_COLL_CRYPTAG_SEALED == form && ompi_coll_cryptag_seals(call) ? ompi_common_cryptmpi_host() : &mca_pml;
}

uint8_t *ompi_coll_cryptag_sealed_at(const ompi_coll_cryptag_call_t *call, uint8_t *plain, uint8_t *apart)
{
    return ompi_coll_cryptag_seals(call) ? apart : plain;
}

size_t ompi_coll_cryptag_overhead(const ompi_coll_cryptag_call_t *call)
{
    return ompi_coll_cryptag_seals(call) ? OPAL_CRYPT_PIECE_OVERHEAD : 0;
}

/* Copy, unless it is in place already. */
static void as_it_is(void *to, const void *from, size_t bytes)
{
    if (to != from) {
        memcpy(to, from, bytes);
    }
}

/* ---- pieces ---- */

static uint32_t pieces_of(size_t plain_bytes)
{
    size_t most = ompi_coll_cryptag_piece_max();

    return plain_bytes <= most ? 1 : (uint32_t) ((plain_bytes + most - 1) / most);
}

size_t ompi_coll_cryptag_sealed_bytes(const ompi_coll_cryptag_call_t *call, size_t plain_bytes)
{
    return plain_bytes + (size_t) pieces_of(plain_bytes) * ompi_coll_cryptag_overhead(call);
}

/* index runs over the items of one origin: (index, count) gives item and piece. */
static opal_crypt_piece_t describe(const ompi_coll_cryptag_call_t *call,
                                   const ompi_coll_cryptag_name_t *name, uint32_t index, uint32_t count,
                                   size_t plain_bytes)
{
    return (opal_crypt_piece_t) {
        .sequence = call->sequence,
        .operation = (uint8_t) call->operation,
        .algorithm = (uint8_t) call->algorithm,
        .origin = (uint32_t) name->origin,
        .destination = name->destination,
        .index = name->item * count + index,
        .count = count,
        .plain_bytes = plain_bytes,
    };
}

/* NULL: the peer was refused, which has been shown and fails the call. */
static opal_crypt_session_t *session_with(ompi_coll_cryptag_call_t *call, int rank)
{
    opal_crypt_session_t *session;
    const int rc = ompi_common_cryptmpi_session(ompi_comm_peer_lookup(call->comm, rank), &session);

    ompi_coll_cryptag_note(call, rc);
    return session;
}

/* With the group's keys, or with those of the two ranks. */
static int seal_as(ompi_coll_cryptag_call_t *call, const opal_crypt_piece_t *piece, const void *plain, uint8_t *sealed)
{
    opal_crypt_group_t *group = call->module->group;
    opal_crypt_session_t *session;

    if (OPAL_CRYPT_TO_ALL == piece->destination) {
        return opal_crypt_piece_seal(group, piece, plain, sealed);
    }
    session = session_with(call, (int) piece->destination);
    return NULL == session ? OPAL_CRYPT_ERR_PEER : opal_crypt_piece_seal_to(group, session, piece, plain, sealed);
}

static int open_as(ompi_coll_cryptag_call_t *call, const opal_crypt_piece_t *piece, const uint8_t *sealed, void *plain)
{
    opal_crypt_group_t *group = call->module->group;
    opal_crypt_session_t *session;

    if (OPAL_CRYPT_TO_ALL == piece->destination) {
        return opal_crypt_piece_open(group, piece, sealed, plain);
    }
    session = session_with(call, (int) piece->origin);
    return NULL == session ? OPAL_CRYPT_ERR_PEER : opal_crypt_piece_open_from(group, session, piece, sealed, plain);
}

/* If the peer was refused, the reason has been shown. */
static void failed(ompi_coll_cryptag_call_t *call, int rc, int rank)
{
    if (OPAL_CRYPT_ERR_PEER != rc) {
        ompi_coll_cryptag_fail(call, rc, rank);
    }
}

void ompi_coll_cryptag_seal_piece(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_name_t *name,
                                  uint32_t index, uint32_t count, const void *plain, size_t plain_bytes,
                                  uint8_t *sealed)
{
    const opal_crypt_piece_t piece = describe(call, name, index, count, plain_bytes);
    int rc;

    if (!ompi_coll_cryptag_seals(call)) {
        as_it_is(sealed, plain, plain_bytes);
        return;
    }
    rc = seal_as(call, &piece, plain, sealed);
    if (OPAL_CRYPT_OK != rc) {
        memset(sealed, 0, plain_bytes + OPAL_CRYPT_PIECE_OVERHEAD);
        failed(call, rc, call->topo->rank);
    }
    call->metrics.r_e += 0 == index ? 1 : 0;
    call->metrics.s_e += plain_bytes;
}

void ompi_coll_cryptag_open_piece(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_name_t *name,
                                  uint32_t index, uint32_t count, const uint8_t *sealed, void *plain,
                                  size_t plain_bytes)
{
    const opal_crypt_piece_t piece = describe(call, name, index, count, plain_bytes);
    int rc;

    if (!ompi_coll_cryptag_seals(call)) {
        as_it_is(plain, sealed, plain_bytes);
        return;
    }
    rc = open_as(call, &piece, sealed, plain);
    if (OPAL_CRYPT_OK != rc) {
        memset(plain, 0, plain_bytes);
        failed(call, rc, name->origin);
    }
    call->metrics.r_d += 0 == index ? 1 : 0;
    call->metrics.s_d += plain_bytes;
}

void ompi_coll_cryptag_seal(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_name_t *name,
                            const void *plain, size_t plain_bytes, uint8_t *sealed)
{
    const size_t most = ompi_coll_cryptag_piece_max(), step = most + ompi_coll_cryptag_overhead(call);
    const uint32_t count = pieces_of(plain_bytes);
    const uint8_t *from = plain;

    for (uint32_t i = 0; i < count; i++) {
        size_t bytes = i + 1 < count ? most : plain_bytes - i * most;

        ompi_coll_cryptag_seal_piece(call, name, i, count, from + i * most, bytes,
                                     sealed + i * step);
    }
}

void ompi_coll_cryptag_open(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_name_t *name,
                            const uint8_t *sealed, void *plain, size_t plain_bytes)
{
    const size_t most = ompi_coll_cryptag_piece_max(), step = most + ompi_coll_cryptag_overhead(call);
    const uint32_t count = pieces_of(plain_bytes);
    uint8_t *to = plain;

    for (uint32_t i = 0; i < count; i++) {
        size_t bytes = i + 1 < count ? most : plain_bytes - i * most;

        ompi_coll_cryptag_open_piece(call, name, i, count, sealed + i * step, to + i * most, bytes);
    }
}
