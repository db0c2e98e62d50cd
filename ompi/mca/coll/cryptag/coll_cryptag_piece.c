/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sealing and opening with the group key.  What is longer than
 * coll_cryptag_piece_max is sealed as several pieces, one behind the other:
 *
 *     | counter 8 | ciphertext | tag 16 | counter 8 | ciphertext | tag 16 | ...
 *
 * The AAD names the place of a piece completely: group, collective, operation,
 * algorithm, origin, destination, which item of this origin, which piece of
 * how many, and how long.  So a piece fits nowhere but where it belongs.
 */
#include "coll_cryptag.h"

#include <string.h>

static uint32_t pieces_of(size_t plain_bytes)
{
    size_t most = mca_coll_cryptag_component.piece_max;

    return plain_bytes <= most ? 1 : (uint32_t) ((plain_bytes + most - 1) / most);
}

size_t ompi_coll_cryptag_sealed_bytes(size_t plain_bytes)
{
    return plain_bytes + (size_t) pieces_of(plain_bytes) * OPAL_CRYPT_PIECE_OVERHEAD;
}

/* index runs over the items of one origin: (index, count) gives item and piece. */
static opal_common_crypt_piece_t describe(const ompi_coll_cryptag_call_t *call,
                                          const ompi_coll_cryptag_name_t *name, uint32_t count)
{
    return (opal_common_crypt_piece_t) {
        .sequence = call->sequence,
        .operation = (uint8_t) call->operation,
        .algorithm = (uint8_t) call->algorithm,
        .origin = (uint32_t) name->origin,
        .destination = name->destination,
        .index = name->item * count,
        .count = count,
    };
}

void ompi_coll_cryptag_seal(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_name_t *name,
                            const void *plain, size_t plain_bytes, uint8_t *sealed)
{
    uint32_t count = pieces_of(plain_bytes);
    opal_common_crypt_piece_t piece = describe(call, name, count);
    const uint8_t *from = plain;
    size_t left = plain_bytes;

    for (uint32_t i = 0; i < count; i++, piece.index++) {
        int rc;

        piece.plain_bytes = i + 1 < count ? mca_coll_cryptag_component.piece_max : left;
        rc = opal_common_crypt_piece_seal(call->module->group, &piece, from, sealed);
        if (OPAL_CRYPT_OK != rc) {
            memset(sealed, 0, piece.plain_bytes + OPAL_CRYPT_PIECE_OVERHEAD);
            ompi_coll_cryptag_fail(call, rc, call->topo->rank);
        }
        from += piece.plain_bytes;
        left -= piece.plain_bytes;
        sealed += piece.plain_bytes + OPAL_CRYPT_PIECE_OVERHEAD;
    }
    call->metrics.r_e += count;
    call->metrics.s_e += plain_bytes;
}

void ompi_coll_cryptag_open(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_name_t *name,
                            const uint8_t *sealed, void *plain, size_t plain_bytes)
{
    uint32_t count = pieces_of(plain_bytes);
    opal_common_crypt_piece_t piece = describe(call, name, count);
    uint8_t *to = plain;
    size_t left = plain_bytes;

    for (uint32_t i = 0; i < count; i++, piece.index++) {
        int rc;

        piece.plain_bytes = i + 1 < count ? mca_coll_cryptag_component.piece_max : left;
        rc = opal_common_crypt_piece_open(call->module->group, &piece, sealed, to);
        if (OPAL_CRYPT_OK != rc) {
            memset(to, 0, piece.plain_bytes);
            ompi_coll_cryptag_fail(call, rc, name->origin);
        }
        to += piece.plain_bytes;
        left -= piece.plain_bytes;
        sealed += piece.plain_bytes + OPAL_CRYPT_PIECE_OVERHEAD;
    }
    call->metrics.r_d += count;
    call->metrics.s_d += plain_bytes;
}
