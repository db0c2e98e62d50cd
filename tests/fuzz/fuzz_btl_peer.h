/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A peer that has the keys and sends what it likes.  Its records:
 *
 *     | 1 | our end: 0 listens, 1 connects | record ... |
 *     record = | how 1 | type 1 | n 1 | bytes n | zeros 2 | piece 2 |
 *
 * The plaintext is bytes and zeros.  `how`: 1 it is left out, 2 sent twice, 4 changed in a byte.  What is
 * sealed so far goes out in pieces; what is less than one waits for more.
 *
 * A second reader of frames, written from docs/transport-format.rst, says what must become of each record:
 * what is delivered, what is written where, and in which state the connection is.
 */
#ifndef TESTS_FUZZ_BTL_PEER_H
#define TESTS_FUZZ_BTL_PEER_H

#include "fuzz_btl.h"

#include "opal/mca/common/crypt/base/box.h"
#include "opal/mca/common/crypt/tls/records_object.h"

enum {
    PEER_ARENA = 1 << 16, PEER_WIRE = 2 << 20, PEER_FRAGMENTS = 2000, PEER_NO_TAG = 99,
    PEER_LEFT_OUT = 1, PEER_TWICE = 2, PEER_CHANGED = 4
};

typedef enum { PEER_GOOD, PEER_ENDED, PEER_FAILED, PEER_BROKEN } peer_fate_t;     /* BROKEN: the next record does not open */

typedef struct peer {
    fuzz_owner_t owner;
    opal_btl_crypt_link_t *link;                    /* ours */
    opal_crypt_tls_records_t *records;              /* its own */
    int fd;
    size_t wire_bytes, sent_bytes;

    /* What must become of it. */
    peer_fate_t fate;
    bool hello, last, skipped, behind;              /* a record is missing; there are bytes behind the end */
    uint64_t left;                                  /* of the frame */
    uint8_t *put_at;                                /* in the shadow; NULL: no put */
    unsigned begun, delivered;
    struct { uint8_t tag; size_t at, bytes; } fragments[PEER_FRAGMENTS];
    size_t told_bytes;
} peer_t;

/* Where puts may go; what must be there; all fragments; what is on the wire. */
static uint8_t peer_arena[PEER_ARENA], peer_shadow[PEER_ARENA], peer_told[PEER_WIRE], peer_wire[PEER_WIRE];
static peer_t peer;

static bool peer_deliver(fuzz_owner_t *owner, uint8_t tag, const uint8_t *bytes, size_t count)
{
    const unsigned i = peer.delivered++;

    FUZZ_CHECK(owner == &peer.owner && i < peer.begun && tag == peer.fragments[i].tag && count == peer.fragments[i].bytes);
    FUZZ_CHECK(0 == memcmp(bytes, peer_told + peer.fragments[i].at, count));
    return PEER_NO_TAG != tag;
}

/* ---- what must become of it ---- */

/* All of a frame's bytes go to what is written, or to what is told. */
static void expect_bytes(const uint8_t *bytes, size_t count)
{
    if (NULL != peer.put_at) {
        memcpy(peer.put_at, bytes, count);
        peer.put_at += count;
    } else {
        memcpy(peer_told + peer.told_bytes, bytes, count);
        peer.told_bytes += count;
    }
    peer.left -= count;
    if (0 == peer.left) {
        if (NULL == peer.put_at && PEER_NO_TAG == peer.fragments[peer.begun - 1].tag) {
            peer.fate = PEER_FAILED;
        }
        peer.put_at = NULL;
    }
}

static void expect_fragment(const uint8_t *plain, size_t count)
{
    const size_t bytes = count < 8 ? 0 : opal_crypt_get32(plain + 4);

    if (!peer.hello || count < 8 || 0 != plain[2] || 0 != plain[3] || bytes > 1048576 || count - 8 > bytes) {
        peer.fate = PEER_FAILED;
        return;
    }
    peer.fragments[peer.begun].tag = plain[1];
    peer.fragments[peer.begun].at = peer.told_bytes;
    peer.fragments[peer.begun++].bytes = bytes;
    peer.left = bytes;
    expect_bytes(plain + 8, count - 8);
}

/* Is this the header of a put that would be believed? */
static bool is_put(const uint8_t *plain, size_t count)
{
    return count >= 24 && 0 == memcmp(plain, "\2\0\0\0\0\0\0", 8) && 0 != opal_crypt_get64(plain + 8)
           && 0 != opal_crypt_get64(plain + 16) && opal_crypt_get64(plain + 16) <= UINT64_C(1) << 40
           && opal_crypt_get64(plain + 8) <= UINT64_MAX - opal_crypt_get64(plain + 16);
}

static void expect_put(const uint8_t *plain, size_t count)
{
    const uint64_t bytes = count < 24 ? 0 : opal_crypt_get64(plain + 16);

    if (!peer.hello || !is_put(plain, count) || count - 24 > bytes) {
        peer.fate = PEER_FAILED;
        return;
    }
    peer.put_at = peer_shadow + (opal_crypt_get64(plain + 8) - (uintptr_t) peer_arena);
    peer.left = bytes;
    expect_bytes(plain + 24, count - 24);
}

static void expect_data(const uint8_t *plain, size_t count)
{
    if (count > 16384 || 0 == count || peer.last || (peer.left > 0 && count > peer.left)) {
        peer.fate = PEER_FAILED;
    } else if (peer.left > 0) {
        expect_bytes(plain, count);
    } else if (1 == plain[0]) {
        expect_fragment(plain, count);
    } else if (2 == plain[0]) {
        expect_put(plain, count);
    } else if (!peer.hello && 8 == count && 0 == memcmp(plain, "\3\1\1", 3) && plain[3] <= 1 && 0 == memcmp(plain + 4, "\0\0\0", 4)) {
        peer.hello = true;
    } else if (peer.hello && 8 == count && 0 == memcmp(plain, "\4\0\0\0\0\0\0", 8)) {
        peer.last = true;
    } else {
        peer.fate = PEER_FAILED;
    }
}

static void expect_record(unsigned type, const uint8_t *plain, size_t count)
{
    peer.behind |= PEER_ENDED == peer.fate;
    if (PEER_GOOD != peer.fate) {
        return;
    }
    if (RECORD_DATA == type) {
        expect_data(plain, count);
    } else if (RECORD_ALERT == type && 2 == count && 0 == memcmp(plain, "\1", 2)) {
        peer.fate = peer.left > 0 ? PEER_FAILED : PEER_ENDED;
    } else if (RECORD_HANDSHAKE != type || 5 != count || 0 != memcmp(plain, "\x18\0\0\1", 5)) {
        peer.fate = PEER_FAILED;
    }
}

/* ---- its records ---- */

/* A put that would be believed goes to the arena, whatever it says: anywhere else is allowed, too. */
static void tame(uint8_t *plain, size_t count)
{
    size_t at;

    if (is_put(plain, count)) {
        at = opal_crypt_get64(plain + 8) % PEER_ARENA;
        opal_crypt_put64(plain + 8, (uintptr_t) peer_arena + at);
        opal_crypt_put64(plain + 16, 1 + (opal_crypt_get64(plain + 16) - 1) % (PEER_ARENA - at));
    }
}

/* `plain` has room for the type.  The length of the record. */
static size_t peer_seal(unsigned type, uint8_t *plain, size_t count, uint8_t *wire)
{
    record_direction_t *out = &peer.records->out;
    opal_crypt_box_t box = {.aead = peer.records->aead, .key = out->key, .id = out->id, .bound = wire, .bound_bytes = 5};

    memcpy(wire, "\x17\3\3", 3);
    opal_crypt_put16(wire + 3, (uint16_t) (count + 17));
    plain[count] = (uint8_t) type;
    opal_crypt_nonce_record(out->iv, out->sequence++, box.nonce);
    FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_box_seal(&box, plain, count + 1, wire + 5, wire + 5 + count + 1));
    if (RECORD_HANDSHAKE == type && 5 == count && 0 == memcmp(plain, opal_crypt_tls_record_key_update, 5)) {
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_record_renew(peer.records, out));
    }
    return count + OPAL_CRYPT_TLS_RECORD_OVERHEAD;
}

static void peer_record(fuzz_input_t *in, unsigned how)
{
    static uint8_t plain[OPAL_CRYPT_TLS_RECORD_PLAIN_MAX + 2];
    uint8_t *wire = peer_wire + peer.wire_bytes;
    const unsigned type = take8(in);
    size_t count = take8(in), record;
    const uint8_t *bytes = take_bytes(in, &count);

    memcpy(plain, bytes, count);
    memset(plain + count, 0, sizeof(plain) - count);
    count += take16(in);
    count = count < sizeof(plain) ? count : sizeof(plain) - 1;
    tame(plain, count);
    if (0 != (how & PEER_LEFT_OUT)) {
        peer.skipped = true;
    } else if (peer.skipped && PEER_GOOD == peer.fate) {
        peer.fate = PEER_BROKEN;
    } else if (0 != (how & PEER_CHANGED)) {
        peer.behind |= PEER_ENDED == peer.fate;
        peer.fate = PEER_GOOD == peer.fate ? PEER_BROKEN : peer.fate;
    } else {
        expect_record(type, plain, count);
    }
    record = peer_seal(type, plain, count, wire);
    if (0 != (how & PEER_CHANGED)) {
        wire[(how >> 3) * record / 32] ^= (uint8_t) (1u << (how >> 5));
    }
    if (0 != (how & PEER_TWICE) && 0 == (how & PEER_LEFT_OUT)) {
        memcpy(wire + record, wire, record);
        record *= 2;
        peer.behind |= PEER_ENDED == peer.fate;
        peer.fate = PEER_GOOD == peer.fate ? PEER_BROKEN : peer.fate;
    }
    peer.wire_bytes += 0 != (how & PEER_LEFT_OUT) ? 0 : record;
}

static size_t peer_unsent(void)
{
    return peer.wire_bytes - peer.sent_bytes;
}

/* In pieces, but not in very many. */
static void peer_send(size_t piece)
{
    const size_t least = peer_unsent() / 100;

    piece = piece < least ? least : piece;
    while (peer_unsent() >= piece && fuzz_readable(peer.link)) {
        FUZZ_CHECK((ssize_t) piece == send(peer.fd, peer_wire + peer.sent_bytes, piece, MSG_NOSIGNAL));
        peer.sent_bytes += piece;
        opal_btl_crypt_link_read(peer.link);
        if (peer.link->last_came) {
            opal_btl_crypt_link_pump(peer.link);
        }
    }
}

/* ---- the end ---- */

/* Where a put was cut, anything may stand. */
static void check_arena(void)
{
    const size_t hole = NULL == peer.put_at ? PEER_ARENA : (size_t) (peer.put_at - peer_shadow);
    const size_t behind = NULL == peer.put_at ? PEER_ARENA : hole + (size_t) peer.left;

    FUZZ_CHECK(0 == memcmp(peer_arena, peer_shadow, hole));
    FUZZ_CHECK(0 == memcmp(peer_arena + behind, peer_shadow + behind, PEER_ARENA - behind));
}

static void check_fate(void)
{
    const opal_btl_crypt_state_t state = peer.link->state;

    FUZZ_CHECK(peer.delivered == peer.begun - (peer.left > 0 && NULL == peer.put_at));
    switch (peer.fate) {
    case PEER_GOOD: FUZZ_CHECK(state == (peer.hello || peer.link->listens ? OPAL_BTL_CRYPT_OPEN : OPAL_BTL_CRYPT_HELLO_SENT)); break;
    case PEER_ENDED: FUZZ_CHECK(OPAL_BTL_CRYPT_ENDED == state || (peer.behind && OPAL_BTL_CRYPT_FAILED == state)); break;
    case PEER_FAILED: FUZZ_CHECK(OPAL_BTL_CRYPT_FAILED == state); break;
    case PEER_BROKEN: FUZZ_CHECK(OPAL_BTL_CRYPT_FAILED == state || (fuzz_readable(peer.link) && NULL != peer.link->rest)); break;
    }
    fuzz_ended += OPAL_BTL_CRYPT_ENDED == state;
    if (OPAL_BTL_CRYPT_FAILED == state) {
        opal_btl_crypt_link_read(peer.link);
        opal_btl_crypt_link_pump(peer.link);
        FUZZ_CHECK(OPAL_BTL_CRYPT_FAILED == peer.link->state && NULL != peer.link->reason);
        FUZZ_CHECK(peer.delivered == peer.begun - (peer.left > 0 && NULL == peer.put_at));
    }
}

static void fuzz_peer(fuzz_input_t *in)
{
    const bool listens = 0 == take8(in) % 2;
    int pair[2];

    fuzz_pair(pair, 0);
    memset(&peer, 0, sizeof(peer));
    memset(peer_arena, 0xa5, sizeof(peer_arena));
    memset(peer_shadow, 0xa5, sizeof(peer_shadow));
    peer.owner.deliver = peer_deliver;
    peer.fd = pair[0];
    peer.link = fuzz_end(pair[1], listens, OPAL_CRYPT_TLS_RECORDS_RENEW, &peer.owner);
    peer.records = fuzz_records(!listens, OPAL_CRYPT_TLS_RECORDS_RENEW);
    opal_btl_crypt_link_send_hello(peer.link);
    while (in->at < in->end && peer.begun < PEER_FRAGMENTS && PEER_WIRE - peer.wire_bytes > 2 * OPAL_CRYPT_TLS_RECORD_MAX + 2) {
        const unsigned how = take8(in);

        peer_record(in, how);
        peer_send(1 + take16(in));
    }
    while (peer_unsent() > 0 && fuzz_readable(peer.link)) {
        peer_send(peer_unsent() < 30000 ? peer_unsent() : 30000);
    }
    check_fate();
    check_arena();
    opal_btl_crypt_link_destroy(peer.link);
    opal_crypt_tls_records_destroy(peer.records);
    close(peer.fd);
}

#endif
