/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Opening, the mirror of seal.c: one record, the next of its connection, or the end.  A record that was deleted,
 * repeated, reordered or changed does not open under the expected sequence number; nothing is tried twice.
 *
 *     wire  | header | ciphertext n + 1 | tag |     -->   plain  | plaintext n |
 *
 * It is opened in the caller's memory or, if the program may read there before the tag has verified, over the
 * ciphertext, and then copied.
 */
#include "records_object.h"
#include "opal/mca/common/crypt/base/box.h"
#include "opal/mca/common/crypt/base/constant.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdatomic.h>

#define HEADER  OPAL_CRYPT_TLS_RECORD_HEADER
#define TAG     OPAL_AEAD_TAG_BYTES
#define MOST    OPAL_CRYPT_TLS_RECORD_PLAIN_MAX
#define SMALL   64                      /* KeyUpdate and alert are smaller: they never touch the caller's memory */

/* A malformed record counts like one that does not open. */
OPAL_CRYPT_RARE
static int refuse_record(opal_crypt_tls_records_t *records)
{
    return opal_crypt_tls_record_break(records, &records->in, opal_crypt_count_failed());
}

static int may_open_more(const opal_crypt_tls_records_t *records)
{
    return opal_crypt_forked() ? OPAL_CRYPT_ERR_FORKED : opal_crypt_tls_record_ready(records, &records->in);
}

int opal_crypt_tls_records_next(opal_crypt_tls_records_t *records, const uint8_t *wire, size_t bytes,
                                size_t *record_bytes)
{
    int rc = may_open_more(records);
    size_t said;

    *record_bytes = 0;
    if (OPAL_CRYPT_OK != rc || 0 == bytes) {
        return rc;
    }
    if (RECORD_DATA != wire[0] || (bytes > 1 && 3 != wire[1]) || (bytes > 2 && 3 != wire[2])) {
        return refuse_record(records);
    }
    if (bytes < HEADER) {
        return OPAL_CRYPT_OK;
    }
    said = opal_crypt_get16(wire + 3);
    /* At least one byte, its type and the tag. */
    if (said < 1 + 1 + TAG || said > OPAL_CRYPT_TLS_RECORD_MAX - HEADER) {
        return refuse_record(records);
    }
    *record_bytes = HEADER + said;
    return OPAL_CRYPT_OK;
}

/* It has verified; `type` and `plain` are its contents.  If the caller lacks room, nothing has happened. */
static int take_record(opal_crypt_tls_records_t *records, uint8_t type, const uint8_t *plain, size_t plain_bytes,
                       size_t capacity, opal_crypt_tls_record_kind_t *kind)
{
    record_direction_t *in = &records->in;

    if (RECORD_DATA == type && plain_bytes > capacity) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    ++in->sequence;
    if (RECORD_DATA == type) {
        *kind = OPAL_CRYPT_TLS_RECORD_DATA;
        return in->sequence < OPAL_CRYPT_TLS_RECORDS_BEAR ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH;
    }
    if (RECORD_HANDSHAKE == type && RECORD_KEY_UPDATE_BYTES == plain_bytes
        && 0 == memcmp(plain, opal_crypt_tls_record_key_update, plain_bytes)) {
        *kind = OPAL_CRYPT_TLS_RECORD_RENEWED;
        return opal_crypt_tls_record_renew(records, in);
    }
    if (RECORD_ALERT == type && RECORD_CLOSE_BYTES == plain_bytes
        && 0 == memcmp(plain, opal_crypt_tls_record_close_notify, plain_bytes)) {
        *kind = OPAL_CRYPT_TLS_RECORD_CLOSED;
        records->closed = true;
        (void) opal_crypt_tls_record_end(records, in, OPAL_CRYPT_ERR_ORDER);
        return OPAL_CRYPT_OK;
    }
    return OPAL_CRYPT_ERR_AUTH;         /* tickets, alerts, padding, requests for a KeyUpdate */
}

/* Open at `to`, which has room for the type as well. */
static int open_record(opal_crypt_tls_records_t *records, const uint8_t *wire, size_t plain_bytes, size_t capacity,
                       uint8_t *to, opal_crypt_tls_record_kind_t *kind)
{
    record_direction_t *in = &records->in;
    opal_crypt_box_t box = {.aead = records->aead, .key = in->key, .id = in->id, .bound = wire, .bound_bytes = HEADER};
    uint8_t type;
    int rc;

    opal_crypt_nonce_record(in->iv, in->sequence, box.nonce);
    rc = opal_crypt_box_open(&box, wire + HEADER, plain_bytes + 1, wire + HEADER + plain_bytes + 1, to);
    type = to[plain_bytes];
    to[plain_bytes] = 0;
    if (OPAL_CRYPT_OK == rc) {
        OPAL_CRYPT_PUBLIC(&type, sizeof(type));         /* what happens next shows both */
        OPAL_CRYPT_PUBLIC(to, RECORD_DATA != type ? plain_bytes : 0);
        rc = take_record(records, type, to, plain_bytes, capacity, kind);
        rc = OPAL_CRYPT_ERR_AUTH == rc ? opal_crypt_count_failed() : rc;
    }
    if (OPAL_CRYPT_OK != rc || OPAL_CRYPT_TLS_RECORD_DATA != *kind) {
        opal_crypt_wipe(to, plain_bytes);
    }
    return OPAL_CRYPT_OK == rc || OPAL_CRYPT_ERR_CONFIG == rc ? rc : opal_crypt_tls_record_break(records, in, rc);
}

OPAL_CRYPT_OFTEN
int opal_crypt_tls_records_open(opal_crypt_tls_records_t *records, uint8_t *wire, size_t record_bytes, void *plain,
                                size_t capacity, size_t *plain_bytes, opal_crypt_tls_record_kind_t *kind)
{
    uint8_t small[SMALL + 1], *to;
    size_t said, bytes;
    int rc = opal_crypt_tls_records_next(records, wire, record_bytes, &said);

    *plain_bytes = 0;
    *kind = OPAL_CRYPT_TLS_RECORD_DATA;
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    if (said != record_bytes) {
        return refuse_record(records);
    }
    bytes = said - OPAL_CRYPT_TLS_RECORD_OVERHEAD;
    if (bytes > capacity && bytes > RECORD_KEY_UPDATE_BYTES) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    to = bytes <= SMALL ? small : bytes < capacity ? plain : wire + HEADER;
    rc = open_record(records, wire, bytes, capacity, to, kind);
    if (OPAL_CRYPT_OK == rc && OPAL_CRYPT_TLS_RECORD_DATA == *kind) {
        if (to != plain) {
            memcpy(plain, to, bytes);
        }
        *plain_bytes = bytes;
    }
    if (to == small) {
        opal_crypt_wipe(small, sizeof(small));
    }
    return rc;
}

/* ---- runs ---- */

enum { RUN_LEAST = 4 };                 /* fewest records worth sharing */

typedef struct opened_run {
    const opal_crypt_tls_records_t *records;
    uint8_t *wire, *plain;
    _Atomic int rc;
} opened_run_t;

static void open_turn(void *argument, unsigned index)
{
    opened_run_t *run = argument;
    const record_direction_t *in = &run->records->in;
    uint8_t *wire = run->wire + (size_t) index * OPAL_CRYPT_TLS_RECORD_MAX, *plain = wire + HEADER;
    opal_crypt_box_t box = {.aead = run->records->aead, .key = in->key, .id = in->id, .bound = wire, .bound_bytes = HEADER};
    int rc;

    opal_crypt_nonce_record(in->iv, in->sequence + index, box.nonce);
    rc = opal_crypt_box_open(&box, plain, MOST + 1, plain + MOST + 1, plain);
    if (OPAL_CRYPT_OK == rc && RECORD_DATA != plain[MOST]) {
        rc = opal_crypt_count_failed();
    }
    if (OPAL_CRYPT_OK == rc) {
        memcpy(run->plain + (size_t) index * MOST, plain, MOST);
    } else {
        atomic_store(&run->rc, rc);
    }
}

/* How many complete records of the largest size begin here, up to what this direction accepts. */
static unsigned opened_run_records(const opal_crypt_tls_records_t *records, const uint8_t *wire, size_t bytes,
                                   size_t capacity)
{
    static const uint8_t largest[HEADER] = {RECORD_DATA, 3, 3, (MOST + 1 + TAG) >> 8, (MOST + 1 + TAG) & 0xff};
    const uint64_t borne = OPAL_CRYPT_TLS_RECORDS_BEAR - 1 - records->in.sequence;
    unsigned count = 0;

    while (bytes >= OPAL_CRYPT_TLS_RECORD_MAX && capacity >= MOST && count < borne && count < OPAL_CRYPT_SHARE_TURNS_MAX
           && 0 == memcmp(wire, largest, HEADER)) {
        count++;
        wire += OPAL_CRYPT_TLS_RECORD_MAX;
        bytes -= OPAL_CRYPT_TLS_RECORD_MAX;
        capacity -= MOST;
    }
    return count;
}

int opal_crypt_tls_records_open_run(opal_crypt_tls_records_t *records, uint8_t *wire, size_t bytes, void *plain,
                                    size_t capacity, size_t *taken, size_t *plain_bytes)
{
    opened_run_t run = {records, wire, plain, OPAL_CRYPT_OK};
    int rc = may_open_more(records);
    unsigned turns;

    *taken = *plain_bytes = 0;
    if (OPAL_CRYPT_OK != rc || NULL == records->in.share) {
        return rc;
    }
    turns = opened_run_records(records, wire, bytes, capacity);
    if (turns < RUN_LEAST) {
        return OPAL_CRYPT_OK;
    }
    opal_crypt_share_run(records->in.share, turns, open_turn, &run);
    rc = atomic_load(&run.rc);
    if (OPAL_CRYPT_OK != rc) {
        return opal_crypt_tls_record_break(records, &records->in, rc);
    }
    records->in.sequence += turns;
    *taken = (size_t) turns * OPAL_CRYPT_TLS_RECORD_MAX;
    *plain_bytes = (size_t) turns * MOST;
    return OPAL_CRYPT_OK;
}

bool opal_crypt_tls_records_closed(const opal_crypt_tls_records_t *records)
{
    return records->closed;
}
