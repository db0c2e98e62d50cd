/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a stranger, and what the holder of a key, can send on a connection:
 *
 *     | 0 | piece 1 | bytes |      to a listener, which gets them in pieces
 *     | 1 | piece 1 | bytes |      to a process that connects
 *     | 2 | bytes |                records, under secrets that corpus-tls knows
 *     | 3 | plaintext | type |     sealed here, and opened
 *
 * Nobody gets through a handshake without the ephemeral key; no more than the limit is taken, and a refusal
 * stays one.  A record that opens is, byte by byte, what we would have sealed.
 */
#include "fuzz.h"

#include "opal/mca/common/crypt/base/box.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/tls/handshake.h"
#include "opal/mca/common/crypt/tls/records_object.h"

extern opal_aead_module_t opal_aead_openssl_module;
int opal_aead_openssl_init(void);

static opal_crypt_tls_t *tls;
static opal_crypt_tls_identity_t identity;
static unsigned long fuzz_answered, fuzz_opened;

static void begin(void)
{
    if (NULL == tls) {
        FUZZ_CHECK(0 == opal_aead_openssl_init());
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_create(OPAL_AEAD_AES_128_GCM, &tls, NULL));
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_name_make("4711", 1, 0, &identity.claimed));
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_name_make("4711", 0, 0, &identity.wanted));
    }
}

static int find(void *arg, const opal_crypt_tls_identity_t *claim, opal_crypt_tls_group_t *group, opal_crypt_tls_psk_t *psk)
{
    (void) arg;
    FUZZ_CHECK(opal_crypt_tls_name_equal(&claim->wanted, &identity.wanted));
    if (!opal_crypt_tls_name_equal(&claim->claimed, &identity.claimed)) {
        return OPAL_CRYPT_ERR_PEER;
    }
    *group = OPAL_CRYPT_TLS_X25519;
    memset(psk, 7, sizeof(*psk));
    return OPAL_CRYPT_OK;
}

static void handshake(bool listens, size_t piece, const uint8_t *data, size_t size)
{
    opal_crypt_tls_psk_t psk;
    opal_crypt_handshake_t *end = NULL;
    size_t at = 0, taken, bytes;
    int rc = OPAL_CRYPT_OK;

    memset(&psk, 7, sizeof(psk));
    FUZZ_CHECK(OPAL_CRYPT_OK == (listens ? opal_crypt_handshake_accept(tls, &identity.wanted, find, NULL, &end)
                                         : opal_crypt_handshake_connect(tls, OPAL_CRYPT_TLS_X25519, &identity, &psk, &end)));
    opal_crypt_handshake_output(end, &bytes);
    FUZZ_CHECK(listens == (0 == bytes));
    opal_crypt_handshake_sent(end, bytes);
    while (at < size && OPAL_CRYPT_OK == rc) {
        const size_t now = size - at < piece ? size - at : piece;
        rc = opal_crypt_handshake_feed(end, data + at, now, &taken);
        FUZZ_CHECK(taken <= now && (OPAL_CRYPT_OK != rc || taken == now));
        at += taken;
    }
    opal_crypt_handshake_output(end, &bytes);
    FUZZ_CHECK(at <= OPAL_CRYPT_HANDSHAKE_INPUT_MAX && OPAL_CRYPT_HANDSHAKE_DONE != opal_crypt_handshake_state(end));
    FUZZ_CHECK((OPAL_CRYPT_OK == rc) == (opal_crypt_handshake_wants(end) > 0));
    if (OPAL_CRYPT_OK != rc) {
        FUZZ_CHECK(0 == bytes && OPAL_CRYPT_HANDSHAKE_REFUSED == opal_crypt_handshake_state(end));
        FUZZ_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_handshake_feed(end, data, size, &taken) && 0 == taken);
    }
    fuzz_answered += bytes > 0;
    opal_crypt_handshake_destroy(end);
}

/* From the same secret in both directions: what one seals the other, and it itself, opens. */
static opal_crypt_tls_records_t *records(void)
{
    opal_crypt_tls_records_t *made = NULL;
    uint8_t secret[32];

    memset(secret, 9, sizeof(secret));
    FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_create(&opal_aead_openssl_module, OPAL_AEAD_AES_128_GCM,
                                                              OPAL_CRYPT_TLS_RECORDS_RENEW, secret, secret, &made));
    return made;
}

/* One record; false at the end, or when it was refused. */
static bool one_record(opal_crypt_tls_records_t *in, opal_crypt_tls_records_t *mirror, uint8_t *wire, size_t size, size_t *bytes)
{
    static uint8_t original[OPAL_CRYPT_TLS_RECORD_MAX], again[OPAL_CRYPT_TLS_RECORD_MAX + 64], plain[OPAL_CRYPT_TLS_RECORD_PLAIN_MAX];
    opal_crypt_tls_record_kind_t kind;
    size_t plain_bytes, again_bytes;
    int rc = opal_crypt_tls_records_next(in, wire, size, bytes);

    if (OPAL_CRYPT_OK != rc || 0 == *bytes || *bytes > size) {
        return false;
    }
    FUZZ_CHECK(*bytes <= sizeof(original));
    memcpy(original, wire, *bytes);
    memset(plain, 0, sizeof(plain));            /* as it stays unless the record verifies */
    rc = opal_crypt_tls_records_open(in, wire, *bytes, plain, *bytes - OPAL_CRYPT_TLS_RECORD_OVERHEAD, &plain_bytes, &kind);
    if (OPAL_CRYPT_OK != rc) {
        FUZZ_CHECK(OPAL_CRYPT_ERR_AUTH == rc && 0 == plain_bytes);
        FUZZ_CHECK(opal_crypt_all_zero(plain, *bytes - OPAL_CRYPT_TLS_RECORD_OVERHEAD) && opal_crypt_all_zero(in->in.secret, 48));
        FUZZ_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_tls_records_next(in, original, *bytes, &plain_bytes));
        return false;
    }
    ++fuzz_opened;
    if (OPAL_CRYPT_TLS_RECORD_DATA == kind) {
        const struct iovec piece = {plain, plain_bytes};
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_seal(mirror, &piece, 1, again, sizeof(again), &again_bytes));
        FUZZ_CHECK(again_bytes == *bytes && 0 == memcmp(original, again, again_bytes));
    } else if (OPAL_CRYPT_TLS_RECORD_RENEWED == kind) {
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_record_renew(mirror, &mirror->out));
    } else {
        FUZZ_CHECK(opal_crypt_tls_records_closed(in) && OPAL_CRYPT_OK == opal_crypt_tls_records_close(mirror, again));
        FUZZ_CHECK(0 == memcmp(original, again, *bytes));
        return false;
    }
    return true;
}

static void stream(const uint8_t *data, size_t size)
{
    opal_crypt_tls_records_t *in = records(), *mirror = records();
    uint8_t *wire = malloc(size + 1);
    size_t at = 0, bytes;

    FUZZ_CHECK(NULL != wire);
    memcpy(wire, data, size);
    while (at < size && one_record(in, mirror, wire + at, size - at, &bytes)) {
        at += bytes;
    }
    free(wire);
    opal_crypt_tls_records_destroy(in);
    opal_crypt_tls_records_destroy(mirror);
}

/* The key's holder seals anything. */
static void insider(const uint8_t *data, size_t size)
{
    opal_crypt_tls_records_t *from = records();
    opal_crypt_box_t box = {.aead = from->aead, .key = from->out.key, .id = from->out.id, .bound_bytes = 5};
    uint8_t *wire = malloc(size + 21);

    FUZZ_CHECK(NULL != wire);
    memcpy(wire, "\x17\x03\x03", 3);
    opal_crypt_put16(wire + 3, (uint16_t) (size + 16));
    box.bound = wire;
    opal_crypt_nonce_record(from->out.iv, 0, box.nonce);
    FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_box_seal(&box, data, size, wire + 5, wire + 5 + size));
    stream(wire, size + 21);
    free(wire);
    opal_crypt_tls_records_destroy(from);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    begin();
    if (size < 2) {
        return 0;
    }
    switch (data[0]) {
    case 0:
    case 1: handshake(0 == data[0], 1 + (size_t) data[1], data + 2, size - 2); break;
    case 2: stream(data + 1, size - 1); break;
    case 3: if (size - 1 <= OPAL_CRYPT_TLS_RECORD_PLAIN_MAX + 1) { insider(data + 1, size - 1); } break;
    default: break;
    }
    return 0;
}
