/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Two ends of a handshake in one process, with the test carrying the bytes between
 * them.
 */
#ifndef TESTS_UNIT_TLS_ENDS_H
#define TESTS_UNIT_TLS_ENDS_H

#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/tls/handshake.h"
#include "tests/unit/unit.h"

extern opal_aead_module_t opal_aead_openssl_module;
int opal_aead_openssl_init(void);

/* What somebody sent. */
typedef struct flight {
    size_t bytes;
    uint8_t data[8192];
} flight_t;

static inline opal_crypt_tls_name_t tls_name(uint32_t rank)
{
    opal_crypt_tls_name_t name;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_name_make("4711", rank, 0, &name));
    return name;
}

/* Rank 1 connects to rank 0. */
static inline opal_crypt_tls_identity_t tls_identity(void)
{
    return (opal_crypt_tls_identity_t) {.claimed = tls_name(1), .wanted = tls_name(0), .link = 0, .attempt = 1};
}

static inline opal_crypt_tls_psk_t tls_psk(uint8_t with)
{
    opal_crypt_tls_psk_t psk;

    memset(&psk, with, sizeof(psk));
    return psk;
}

/* Of both ends: what a pair has agreed on. */
static opal_crypt_tls_group_t tls_group;

/* NULL where this OpenSSL lacks it. */
static inline opal_crypt_tls_t *tls_of(opal_aead_cipher_t cipher, opal_crypt_tls_group_t group)
{
    opal_crypt_why_t why = {.topic = "none"};
    opal_crypt_tls_t *tls = NULL;
    const int rc = opal_crypt_tls_create(cipher, &tls, &why);

    UNIT_REQUIRE(0 == opal_aead_openssl_init());
    tls_group = group;
    if (OPAL_CRYPT_OK != rc) {
        UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == rc && NULL == tls && 0 == strcmp("tls-missing", why.topic));
        printf("  %s: %s\n", why.topic, why.detail);
    } else if (0 == (opal_crypt_tls_groups(tls) & opal_crypt_tls_group_bit(group))) {
        printf("  group %u is missing\n", (unsigned) group);
        opal_crypt_tls_destroy(tls);
        tls = NULL;
    }
    return tls;
}

/* The listener's job: it has rank 1 only, and counts how often it is asked. */
typedef struct job {
    opal_crypt_tls_psk_t psk;
    unsigned asked;
} job_t;

static inline int job_find(void *arg, const opal_crypt_tls_identity_t *identity, opal_crypt_tls_group_t *group,
                           opal_crypt_tls_psk_t *psk)
{
    const opal_crypt_tls_name_t member = tls_name(1);
    job_t *job = arg;

    ++job->asked;
    if (!opal_crypt_tls_name_equal(&identity->claimed, &member)) {
        return OPAL_CRYPT_ERR_PEER;
    }
    *group = tls_group;
    *psk = job->psk;
    return OPAL_CRYPT_OK;
}

/* The PSK by its address: a call by value could leave a copy in the frame of the caller (ARM), where a search finds it. */
static inline opal_crypt_handshake_t *tls_connect(const opal_crypt_tls_t *tls, const opal_crypt_tls_psk_t *psk)
{
    const opal_crypt_tls_identity_t identity = tls_identity();
    opal_crypt_handshake_t *handshake = NULL;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_handshake_connect(tls, tls_group, &identity, psk, &handshake));
    return handshake;
}

static inline opal_crypt_handshake_t *tls_accept(const opal_crypt_tls_t *tls, job_t *job)
{
    const opal_crypt_tls_name_t own = tls_name(0);
    opal_crypt_handshake_t *handshake = NULL;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_handshake_accept(tls, &own, job_find, job, &handshake));
    return handshake;
}

/* All that it wants to send. */
static inline flight_t tls_output(opal_crypt_handshake_t *handshake)
{
    flight_t flight = {0};
    const uint8_t *bytes = opal_crypt_handshake_output(handshake, &flight.bytes);

    UNIT_REQUIRE(flight.bytes <= sizeof(flight.data));
    memcpy(flight.data, bytes, flight.bytes);
    opal_crypt_handshake_sent(handshake, flight.bytes);
    return flight;
}

/* Feed it in pieces of this length; returns how many bytes were not taken. */
static inline size_t tls_input(opal_crypt_handshake_t *handshake, const flight_t *flight, size_t piece)
{
    size_t at = 0;

    while (at < flight->bytes) {
        const size_t now = flight->bytes - at < piece ? flight->bytes - at : piece;
        size_t taken = 0;
        const int rc = opal_crypt_handshake_feed(handshake, flight->data + at, now, &taken);

        UNIT_CHECK(taken <= now);
        at += taken;
        if (OPAL_CRYPT_OK != rc || taken < now) {
            break;
        }
    }
    return flight->bytes - at;
}

#define TLS_STATE(handshake, which) (OPAL_CRYPT_HANDSHAKE_##which == opal_crypt_handshake_state(handshake))

/* Refused, for good: nothing more goes in, nothing comes out. */
static inline bool tls_refused(opal_crypt_handshake_t *handshake)
{
    opal_crypt_tls_records_t *records = NULL;
    size_t taken = 7, bytes = 7;

    opal_crypt_handshake_output(handshake, &bytes);
    return TLS_STATE(handshake, REFUSED) && 0 == bytes && 0 == opal_crypt_handshake_wants(handshake)
           && OPAL_CRYPT_ERR_AUTH == opal_crypt_handshake_feed(handshake, "x", 1, &taken) && 0 == taken
           && OPAL_CRYPT_OK != opal_crypt_handshake_records(handshake, &opal_aead_openssl_module, &records)
           && NULL == records && 0 != opal_crypt_handshake_reason(handshake)[0];
}

/* A whole handshake with good ends; false if one of them is not done. */
static inline bool tls_shake(opal_crypt_handshake_t *client, opal_crypt_handshake_t *server, size_t piece)
{
    flight_t flight = tls_output(client);

    if (0 != tls_input(server, &flight, piece)) {
        return false;
    }
    flight = tls_output(server);
    if (0 != tls_input(client, &flight, piece)) {
        return false;
    }
    flight = tls_output(client);
    return 0 == tls_input(server, &flight, piece) && TLS_STATE(client, DONE) && TLS_STATE(server, DONE);
}

/* `data` as records of `from`, opened one by one by `to`: do the same bytes come out? */
static inline bool tls_carry(opal_crypt_tls_records_t *from, opal_crypt_tls_records_t *to, const uint8_t *data, size_t bytes)
{
    const size_t capacity = opal_crypt_tls_records_bytes(from, bytes);
    const struct iovec piece = {(void *) (uintptr_t) data, bytes};
    uint8_t *wire = malloc(capacity), *back = malloc(bytes + 1);
    opal_crypt_tls_record_kind_t kind;
    size_t wire_bytes = 0, at = 0, got = 0, one, plain;
    bool good = OPAL_CRYPT_OK == opal_crypt_tls_records_seal(from, &piece, 1, wire, capacity, &wire_bytes) && wire_bytes <= capacity;

    while (good && at < wire_bytes) {
        good = OPAL_CRYPT_OK == opal_crypt_tls_records_next(to, wire + at, wire_bytes - at, &one)
               && one > 0 && one <= wire_bytes - at
               && OPAL_CRYPT_OK == opal_crypt_tls_records_open(to, wire + at, one, back + got, bytes - got, &plain, &kind)
               && OPAL_CRYPT_TLS_RECORD_CLOSED != kind;
        at += one;
        got += plain;
    }
    good = good && got == bytes && 0 == memcmp(back, data, bytes);
    free(wire);
    free(back);
    return good;
}

#endif
