/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sealing, into the caller's ring.  The plaintext of a record is followed by its type, which cannot be written into a
 * buffer that is not ours.  So a long piece is sealed from the caller's memory, joined with the type, if the provider
 * can do that.  Otherwise, and if it is short, it is copied to its place in the ring, and sealed there.
 *
 *     pieces | plaintext n | + type    -->   | header | ciphertext n + 1 | tag |     <--    | ... | plaintext n | type |
 *
 * A run of whole records has all places and sequence numbers assigned in advance, so that several threads can seal it.
 */
#include "records_object.h"
#include "opal/mca/common/crypt/base/box.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdatomic.h>

#define HEADER  OPAL_CRYPT_TLS_RECORD_HEADER
#define TAG     OPAL_AEAD_TAG_BYTES
#define MOST    OPAL_CRYPT_TLS_RECORD_PLAIN_MAX

enum {
    COPIED = 1024,      /* below that copying is cheaper than joining */
    PIECES = 4,         /* with more of them, they are copied */
    RUN_LEAST = 4       /* fewest records worth sharing */
};

const uint8_t opal_crypt_tls_record_key_update[RECORD_KEY_UPDATE_BYTES] = {24, 0, 0, 1, 0};
const uint8_t opal_crypt_tls_record_close_notify[RECORD_CLOSE_BYTES] = {1, 0};

/* `pieces`: the plaintext and its type, plain_bytes + 1. */
OPAL_CRYPT_OFTEN
static int seal_pieces(const opal_crypt_tls_records_t *records, uint64_t sequence, const opal_aead_piece_t *pieces, int count,
                       size_t plain_bytes, uint8_t *wire)
{
    const record_direction_t *out = &records->out;
    opal_crypt_box_t box = {
        .aead = records->aead, .key = out->key, .id = out->id, .bound = wire, .bound_bytes = HEADER};

    wire[0] = RECORD_DATA;
    wire[1] = wire[2] = 3;
    opal_crypt_put16(wire + 3, (uint16_t) (plain_bytes + 1 + TAG));
    opal_crypt_nonce_record(out->iv, sequence, box.nonce);
    return opal_crypt_box_seal_joined(&box, pieces, count, wire + HEADER, wire + HEADER + plain_bytes + 1);
}

/* The plaintext is already in place. */
OPAL_CRYPT_OFTEN
static int seal_record(const opal_crypt_tls_records_t *records, uint64_t sequence, uint8_t type, size_t plain_bytes,
                       uint8_t *wire)
{
    wire[HEADER + plain_bytes] = type;
    return seal_pieces(records, sequence, &(opal_aead_piece_t) {wire + HEADER, plain_bytes + 1}, 1, plain_bytes, wire);
}

/* The last record of a key announces the next. */
OPAL_CRYPT_RARE
static int seal_renewal(opal_crypt_tls_records_t *records, uint8_t *wire)
{
    int rc;

    memcpy(wire + HEADER, opal_crypt_tls_record_key_update, RECORD_KEY_UPDATE_BYTES);
    rc = seal_record(records, records->out.sequence++, RECORD_HANDSHAKE, RECORD_KEY_UPDATE_BYTES, wire);
    return OPAL_CRYPT_OK == rc ? opal_crypt_tls_record_renew(records, &records->out) : rc;
}

/* A position in the joined pieces. */
typedef struct stream {
    const struct iovec *piece;
    size_t offset;
} stream_t;

static stream_t stream_at(const struct iovec *pieces, size_t offset)
{
    for (; offset > 0 && offset >= pieces->iov_len; ++pieces) {
        offset -= pieces->iov_len;
    }
    return (stream_t) {pieces, offset};
}

/* The next contiguous part, of at most `bytes`. */
static opal_aead_piece_t take_piece(stream_t *stream, size_t bytes)
{
    const size_t left = stream->piece->iov_len - stream->offset, now = left < bytes ? left : bytes;
    const opal_aead_piece_t taken = {(const uint8_t *) stream->piece->iov_base + stream->offset, now};

    stream->offset += now;
    if (stream->offset == stream->piece->iov_len) {
        ++stream->piece;
        stream->offset = 0;
    }
    return taken;
}

/* Seal the next `bytes` as one record. */
OPAL_CRYPT_OFTEN
static int seal_copied(const opal_crypt_tls_records_t *records, uint64_t sequence, stream_t stream, size_t bytes, uint8_t *wire)
{
    opal_aead_piece_t piece;

    for (size_t done = 0; done < bytes; done += piece.bytes) {
        piece = take_piece(&stream, bytes - done);
        if (piece.bytes > 0) {
            memcpy(wire + HEADER + done, piece.base, piece.bytes);
        }
    }
    return seal_record(records, sequence, RECORD_DATA, bytes, wire);
}

OPAL_CRYPT_OFTEN
static int seal_in_place(const opal_crypt_tls_records_t *records, uint64_t sequence, stream_t stream, size_t bytes, uint8_t *wire)
{
    static const uint8_t type = RECORD_DATA;
    opal_aead_piece_t pieces[PIECES + 1];
    int count = 0;

    for (size_t done = 0; done < bytes; done += pieces[count++].bytes) {
        pieces[count] = take_piece(&stream, bytes - done);
    }
    pieces[count++] = (opal_aead_piece_t) {&type, 1};
    return seal_pieces(records, sequence, pieces, count, bytes, wire);
}

/* Seal `bytes` of the joined pieces, from `offset` on, as one record. */
OPAL_CRYPT_OFTEN
static int seal_data(const opal_crypt_tls_records_t *records, uint64_t sequence, const struct iovec *pieces, int count, size_t offset,
                     size_t bytes, uint8_t *wire)
{
    const stream_t stream = stream_at(pieces, offset);

    return bytes < COPIED || count > PIECES || NULL == records->aead->seal_joined
               ? seal_copied(records, sequence, stream, bytes, wire) : seal_in_place(records, sequence, stream, bytes, wire);
}

/* ---- runs ---- */

typedef struct sealed_run {
    const opal_crypt_tls_records_t *records;
    uint64_t sequence;
    const struct iovec *pieces;
    int count;
    size_t offset;
    uint8_t *wire;
    _Atomic int rc;
} sealed_run_t;

static void seal_turn(void *argument, unsigned index)
{
    sealed_run_t *run = argument;
    const int rc = seal_data(run->records, run->sequence + index, run->pieces, run->count, run->offset + (size_t) index * MOST, MOST,
                             run->wire + (size_t) index * OPAL_CRYPT_TLS_RECORD_MAX);

    if (OPAL_CRYPT_OK != rc) {
        atomic_store(&run->rc, rc);
    }
}

/* How many of the next records can be shared: whole ones under one key. */
static unsigned sealed_run_records(const opal_crypt_tls_records_t *records, size_t left)
{
    const uint64_t under_key = records->renew - 1 - records->out.sequence, whole = left / MOST;
    const uint64_t run = whole < under_key ? whole : under_key;

    return NULL == records->out.share || run < RUN_LEAST ? 0
           : run < OPAL_CRYPT_SHARE_TURNS_MAX           ? (unsigned) run
                                                        : OPAL_CRYPT_SHARE_TURNS_MAX;
}

static int seal_run(opal_crypt_tls_records_t *records, unsigned turns, const struct iovec *pieces, int count, size_t offset,
                    uint8_t *wire)
{
    sealed_run_t run = {records, records->out.sequence, pieces, count, offset, wire, OPAL_CRYPT_OK};

    opal_crypt_share_run(records->out.share, turns, seal_turn, &run);
    return atomic_load(&run.rc);
}

/* ---- many records ---- */

size_t opal_crypt_tls_records_bytes(const opal_crypt_tls_records_t *records, size_t plain_bytes)
{
    const size_t count = plain_bytes / MOST + (0 != plain_bytes % MOST);
    size_t more = count * OPAL_CRYPT_TLS_RECORD_OVERHEAD;

    /* One KeyUpdate for each renew - 1 records of data, and one that may be due now. */
    more += 0 == count ? 0 : (count / (records->renew - 1) + 1) * OPAL_CRYPT_TLS_RECORD_KEY_UPDATE;
    return plain_bytes > SIZE_MAX - more ? SIZE_MAX : plain_bytes + more;
}

/* The sum of the pieces; SIZE_MAX on overflow. */
static size_t joined(const struct iovec *pieces, int count)
{
    size_t sum = 0;

    for (int i = 0; i < count; ++i) {
        if (pieces[i].iov_len >= SIZE_MAX - sum) {
            return SIZE_MAX;
        }
        sum += pieces[i].iov_len;
    }
    return sum;
}

static int may_seal_more(const opal_crypt_tls_records_t *records)
{
    return opal_crypt_forked() ? OPAL_CRYPT_ERR_FORKED : opal_crypt_tls_record_ready(records, &records->out);
}

OPAL_CRYPT_OFTEN
int opal_crypt_tls_records_seal(opal_crypt_tls_records_t *records, const struct iovec *pieces, int count,
                                uint8_t *wire, size_t capacity, size_t *wire_bytes)
{
    const size_t all = joined(pieces, count);
    size_t left = all;
    uint8_t *at = wire;
    int rc = may_seal_more(records);

    *wire_bytes = 0;
    if (OPAL_CRYPT_OK == rc && (0 == left || capacity < opal_crypt_tls_records_bytes(records, left) || SIZE_MAX == left)) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    while (OPAL_CRYPT_OK == rc && left > 0) {
        unsigned turns;

        if (records->out.sequence == records->renew - 1) {
            rc = seal_renewal(records, at);
            at += OPAL_CRYPT_TLS_RECORD_KEY_UPDATE;
        }
        turns = sealed_run_records(records, left);
        if (OPAL_CRYPT_OK == rc && turns > 0) {
            rc = seal_run(records, turns, pieces, count, all - left, at);
            at += (size_t) turns * OPAL_CRYPT_TLS_RECORD_MAX;
            left -= (size_t) turns * MOST;
            records->out.sequence += turns;
        } else if (OPAL_CRYPT_OK == rc) {
            const size_t now = left < MOST ? left : MOST;

            rc = seal_data(records, records->out.sequence++, pieces, count, all - left, now, at);
            at += now + OPAL_CRYPT_TLS_RECORD_OVERHEAD;
            left -= now;
        }
    }
    if (OPAL_CRYPT_OK != rc) {
        /* A record may still be plaintext. */
        opal_crypt_wipe(wire, (size_t) (at - wire));
        return opal_crypt_tls_record_break(records, &records->out, rc);
    }
    *wire_bytes = (size_t) (at - wire);
    return OPAL_CRYPT_OK;
}

int opal_crypt_tls_records_close(opal_crypt_tls_records_t *records, uint8_t wire[OPAL_CRYPT_TLS_RECORD_CLOSE])
{
    int rc = may_seal_more(records);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    memcpy(wire + HEADER, opal_crypt_tls_record_close_notify, RECORD_CLOSE_BYTES);
    rc = seal_record(records, records->out.sequence++, RECORD_ALERT, RECORD_CLOSE_BYTES, wire);
    if (OPAL_CRYPT_OK != rc) {
        return opal_crypt_tls_record_break(records, &records->out, rc);
    }
    (void) opal_crypt_tls_record_end(records, &records->out, OPAL_CRYPT_ERR_EXHAUSTED);
    return OPAL_CRYPT_OK;
}
