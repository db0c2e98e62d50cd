/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * tests/vectors/refused-v1.txt, which another implementation wrote: records, frames and records of TLS that a holder of
 * the keys has made, each of which departs from its format in one way.  All are refused, but those named good.
 */
#include "unit.h"

#include "opal/mca/common/crypt/identity/record.h"
#include "opal/mca/common/crypt/tls/records.h"
#include "sessions.h"
#include "vectors.h"

#define MOST 20000

static uint8_t prk[32], pair[96];

static bool record_opens(const vector_block_t *vector)
{
    static uint8_t bytes[MOST];
    opal_crypt_record_t record;
    size_t count = vector_bytes(vector, "a_record", bytes, MOST);

    return OPAL_CRYPT_OK == opal_crypt_record_parse(bytes, count, &record);
}

/* The receiver of the vectors' pair. */
static opal_crypt_session_t *session_of_pair(void)
{
    opal_crypt_secrets_t secrets;

    fill(&secrets, sizeof(secrets), 1);
    UNIT_REQUIRE(0 == opal_crypt_kdf_expand(prk, OPAL_CRYPT_LABEL_DIRECTION, pair, sizeof(pair), secrets.in.direct, 32));
    UNIT_REQUIRE(0 == opal_crypt_kdf_expand(prk, OPAL_CRYPT_LABEL_CHOP, pair, sizeof(pair), secrets.in.chop, 32));
    return session_from(&secrets, OPAL_AEAD_AES_128_GCM, 20);
}

static bool frame_opens(const vector_block_t *vector, const char *kind)
{
    static uint8_t frame[MOST], plain[MOST];
    static const uint8_t zeros[MOST];
    opal_crypt_session_t *session = session_of_pair();
    opal_crypt_chop_t *chop = NULL;
    opal_crypt_shape_t shape;
    uint8_t context[16];
    uint64_t counter, sent = 0;
    int rc;

    size_t bytes = vector_bytes(vector, "frame", frame, MOST);
    UNIT_REQUIRE(16 == vector_bytes(vector, "context", context, sizeof(context)));
    const opal_crypt_envelope_t envelope = {opal_crypt_get64(context), opal_crypt_get64(context + 8),
                                            (uint32_t) atoi(vector_text(vector, "generation")), atoi(vector_text(vector, "tag"))};
    memset(plain, 0, sizeof(plain));
    if (0 == strcmp(kind, "direct")) {
        rc = opal_crypt_direct_open(session, &envelope, frame, bytes, plain, MOST, &counter);
    } else if (0 == strcmp(kind, "final")) {
        rc = opal_crypt_final_open(session, &envelope, frame, bytes, &sent, &counter);
    } else {
        rc = opal_crypt_first_open(session, &envelope, frame, bytes, plain, MOST, &shape, &counter, &chop);
    }
    UNIT_CHECK(OPAL_CRYPT_OK == rc || (NULL == chop && 0 == memcmp(plain, zeros, MOST)));
    opal_crypt_chop_end(chop);
    opal_crypt_session_destroy(session);
    return OPAL_CRYPT_OK == rc;
}

static bool tls_opens(const vector_block_t *vector)
{
    static uint8_t wire[MOST], plain[MOST];
    opal_crypt_tls_record_kind_t kind = OPAL_CRYPT_TLS_RECORD_CLOSED;
    opal_crypt_tls_records_t *records = NULL;
    uint8_t secret[32];
    size_t count, one = 0, plain_bytes = 0;

    UNIT_REQUIRE(32 == vector_bytes(vector, "secret", secret, sizeof(secret)));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_create(&opal_aead_openssl_module, OPAL_AEAD_AES_128_GCM, 1 << 20, secret,
                                                                secret, &records));
    count = vector_bytes(vector, "record", wire, MOST);
    int rc = opal_crypt_tls_records_next(records, wire, count, &one);
    if (OPAL_CRYPT_OK == rc) {
        UNIT_CHECK(one == count);
        rc = opal_crypt_tls_records_open(records, wire, one, plain, MOST, &plain_bytes, &kind);
    }
    UNIT_CHECK(OPAL_CRYPT_OK == rc ? OPAL_CRYPT_TLS_RECORD_DATA == kind && 4 == plain_bytes : OPAL_CRYPT_ERR_AUTH == rc);
    opal_crypt_tls_records_destroy(records);
    return OPAL_CRYPT_OK == rc;
}

int main(void)
{
    FILE *file = vector_file("refused-v1.txt");
    vector_block_t vector = {.count = 0};
    unsigned good = 0, refused = 0;

    UNIT_REQUIRE(0 == opal_aead_openssl_init());
    while (vector_next(file, &vector)) {
        const char *kind = vector_text(&vector, "kind");

        if (0 == strcmp(kind, "pair")) {
            vector_bytes(&vector, "prk", prk, 32);
            vector_bytes(&vector, "pk_src", pair, 32);
            vector_bytes(&vector, "pk_dst", pair + 32, 32);
            vector_bytes(&vector, "th", pair + 64, 32);
            continue;
        }
        const char *name = vector_text(&vector, "name");
        const bool right = NULL != strstr(name, "good");
        UNIT_GROUP("%s: %s", kind, name);
        UNIT_CHECK(right == (0 == strcmp(kind, "record") ? record_opens(&vector)
                             : 0 == strcmp(kind, "tls")  ? tls_opens(&vector)
                                                         : frame_opens(&vector, kind)));
        good += right;
        refused += !right;
    }
    vector_clear(&vector);
    fclose(file);
    UNIT_GROUP("%u good, %u refused", good, refused);
    UNIT_CHECK(7 == good && 60 == refused);
    opal_crypt_secmem_finalize();
    return unit_done();
}
