/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A ring of long blocks, one lane of C-Ring, piece by piece: each piece is sealed
 * when first sent, and forwarded and opened when it has arrived, and stays in the
 * caches meanwhile.  Whole blocks would go through memory four times.
 *
 *     step      0         1           2            3
 *     sent      own 0     own 1       own 2        own 3       round 0
 *                         last's 0    last's 1     last's 2    round 1
 *                                     before it 0  ...         round 2
 *
 * Round i of the ring is i steps behind round 0: a piece that is forwarded in a step has
 * arrived in the step before, and is opened meanwhile.  Blocks may differ in length.
 */
#include "coll_cryptag.h"

typedef struct {
    ompi_coll_cryptag_call_t *call;
    const int *members, *owners;        /* by node; the owner of a block may be -1 */
    int nodes, node;
    size_t most, overhead;              /* plaintext of a piece, and what sealing adds */
    uint8_t *own[2], *came[2];          /* sealed, in this step and the one before: a place for each round */
    ompi_coll_cryptag_part_t *parts;    /* of the messages of a step */
} stream_t;

static uint32_t pieces_of(const stream_t *stream, int owner)
{
    size_t bytes = owner < 0 ? 0 : ompi_coll_cryptag_block_bytes(stream->call, owner);

    return owner < 0 ? 0 : bytes <= stream->most ? 1 : (uint32_t) ((bytes + stream->most - 1) / stream->most);
}

/* Piece `index` of the block of a rank, if there is one. */
typedef struct {
    int owner;
    uint32_t index, count;
    size_t first, bytes;
} piece_t;

static bool piece_at(const stream_t *stream, int node, long index, piece_t *piece)
{
    const int owner = stream->owners[node];
    const uint32_t count = pieces_of(stream, owner);
    size_t bytes, each;

    if (index < 0 || index >= (long) count) {
        return false;
    }
    bytes = ompi_coll_cryptag_block_bytes(stream->call, owner);
    each = ompi_coll_cryptag_even_part(bytes, stream->most);
    *piece = (piece_t) { owner, (uint32_t) index, count, (size_t) index * each, each };
    if (bytes - piece->first < each) {
        piece->bytes = bytes - piece->first;
    }
    return true;
}

/* The node whose block round i of a step brings to (sends from) us. */
static int node_of_round(const stream_t *stream, int round, bool received)
{
    return (stream->node - round - (received ? 1 : 0) + stream->nodes) % stream->nodes;
}

static uint8_t *stream_slot(const stream_t *stream, long step, int round)
{
    return stream->came[step & 1] + (size_t) round * (stream->most + stream->overhead);
}

static uint8_t *plain_of(const stream_t *stream, const piece_t *piece)
{
    return ompi_coll_cryptag_block(stream->call, piece->owner) + piece->first;
}

static ompi_coll_cryptag_part_t part_of(const stream_t *stream, const piece_t *piece, uint8_t *apart)
{
    return (ompi_coll_cryptag_part_t) { ompi_coll_cryptag_sealed_at(stream->call, plain_of(stream, piece), apart),
                                        piece->bytes + stream->overhead, piece->bytes };
}

static void post_received(stream_t *stream, long step)
{
    const int from = stream->members[node_of_round(stream, 0, true)];
    piece_t piece;

    for (int round = 0; round < stream->nodes - 1; round++) {
        if (piece_at(stream, node_of_round(stream, round, true), step - round, &piece)) {
            ompi_coll_cryptag_part_t *part = &stream->parts[2 * round];

            *part = part_of(stream, &piece, stream_slot(stream, step, round));
            ompi_coll_cryptag_recv(stream->call, from, OMPI_COLL_CRYPTAG_SEALED, part, 1);
        }
    }
}

static void post_sent(stream_t *stream, long step)
{
    const int to = stream->members[(stream->node + 1) % stream->nodes];
    piece_t piece;

    for (int round = 0; round < stream->nodes - 1; round++) {
        ompi_coll_cryptag_part_t *part = &stream->parts[2 * round + 1];

        if (!piece_at(stream, node_of_round(stream, round, false), step - round, &piece)) {
            continue;
        }
        *part = part_of(stream, &piece, round > 0 ? stream_slot(stream, step - 1, round - 1) : stream->own[step & 1]);
        if (0 == round) {
            const ompi_coll_cryptag_name_t name = { piece.owner, OPAL_CRYPT_TO_ALL, 0 };
            ompi_coll_cryptag_seal_piece(stream->call, &name, piece.index, piece.count, plain_of(stream, &piece),
                                         piece.bytes, part->base);
        }
        ompi_coll_cryptag_send(stream->call, to, OMPI_COLL_CRYPTAG_SEALED, part, 1);
    }
}

static void open_received(stream_t *stream, long step)
{
    piece_t piece;

    for (int round = 0; round < stream->nodes - 1; round++) {
        if (piece_at(stream, node_of_round(stream, round, true), step - round, &piece)) {
            const ompi_coll_cryptag_name_t name = { piece.owner, OPAL_CRYPT_TO_ALL, 0 };
            const ompi_coll_cryptag_part_t part = part_of(stream, &piece, stream_slot(stream, step, round));
            ompi_coll_cryptag_open_piece(stream->call, &name, piece.index, piece.count, part.base,
                                         plain_of(stream, &piece), piece.bytes);
        }
    }
}

void ompi_coll_cryptag_stream(ompi_coll_cryptag_call_t *call, const int *members, const int *owners)
{
    const size_t capacity = mca_coll_cryptag_component.fragment, overhead = ompi_coll_cryptag_overhead(call);
    const int nodes = call->topo->nodes;
    const size_t rounds = (size_t) nodes - 1;
    stream_t stream = {
        .call = call, .members = members, .owners = owners, .nodes = nodes, .node = call->topo->node,
        .most = capacity - overhead, .overhead = overhead,
    };
    long steps = 0;

    for (int i = 0; i < 2; i++) {
        stream.own[i] = ompi_coll_cryptag_scratch(call, capacity);
        stream.came[i] = ompi_coll_cryptag_scratch(call, rounds * capacity);
    }
    stream.parts = ompi_coll_cryptag_scratch(call, 2 * rounds * sizeof(*stream.parts));
    for (int node = 0; node < nodes; node++) {
        long needed = (long) pieces_of(&stream, owners[node]) + nodes - 2;
        steps = needed > steps ? needed : steps;
    }
    for (long step = 0; step <= steps; step++) {
        if (step < steps) {
            post_received(&stream, step);
            post_sent(&stream, step);
        }
        if (step > 0) {
            open_received(&stream, step - 1);
        }
        ompi_coll_cryptag_wait(call);
    }
}
