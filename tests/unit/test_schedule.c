/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Records and the key schedule against tests/vectors/records-v1.txt, which an
 * independent script made from the specification.
 */
#include "tests/unit/crypt_fixture.h"
#include "tests/unit/vectors.h"

#include "opal/mca/common/crypt/identity/local_object.h"

static opal_crypt_auth_t method_of(const char *name)
{
    for (opal_crypt_auth_t auth = OPAL_CRYPT_AUTH_NONE; auth <= OPAL_CRYPT_AUTH_X509; auth++) {
        if (0 == strcmp(name, opal_crypt_auth_name(auth))) {
            return auth;
        }
    }
    UNIT_REQUIRE(!"a method");
    return OPAL_CRYPT_AUTH_AUTO;
}

/* A local object that has the vector's secrets in the place of drawn ones. */
static void load(const vector_block_t *block, const char *who, opal_crypt_local_t *local)
{
    opal_crypt_options_t options = fixture_options(OPAL_CRYPT_AUTH_AUTO);
    bool x25519 = 0 == strcmp(vector_text(block, "kex"), "x25519");
    opal_crypt_why_t why = { .topic = NULL };
    char name[16];
    uint8_t private[32];

    memset(local, 0, sizeof(*local));
    options.auth = method_of(vector_text(block, "method"));
    options.psk_file = fixture_file("psk", vector_text(block, "psk"), 0600);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_auth_select(&options, &local->method, &why));
    UNIT_REQUIRE(OPAL_CRYPT_OK == local->method->open(&options, &local->auth_state, NULL, &why));

    snprintf(name, sizeof(name), "%s_private", who);
    vector_bytes(block, name, private, sizeof(private));
    local->pair.kex = x25519 ? OPAL_CRYPT_KEX_X25519 : OPAL_CRYPT_KEX_P256;
    local->pair.private = opal_crypt_secmem_alloc(32);
    for (int i = 0; i < 32; ++i) {
        local->pair.private[i] = private[x25519 ? i : 31 - i];
    }
    snprintf(name, sizeof(name), "%s_public", who);
    vector_bytes(block, name, local->pair.public, sizeof(local->pair.public));

    snprintf(name, sizeof(name), "%s_record", who);
    local->bytes = malloc(OPAL_CRYPT_RECORD_MAX);
    local->byte_count = vector_bytes(block, name, local->bytes, OPAL_CRYPT_RECORD_MAX);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_record_parse(local->bytes, local->byte_count, &local->record));
    UNIT_EQUAL_BYTES(local->record.public_key, local->pair.public, local->record.public_bytes);
}

static void unload(opal_crypt_local_t *local)
{
    if (NULL != local->auth_state) {
        local->method->close(local->auth_state);
    }
    opal_crypt_keypair_wipe(&local->pair);
    free(local->bytes);
}

/* Packing what was parsed, and signing it, gives the vector's bytes again. */
static void check_record(const opal_crypt_local_t *local)
{
    uint8_t again[OPAL_CRYPT_RECORD_MAX];
    size_t bytes = opal_crypt_record_pack(&local->record, again, sizeof(again));
    size_t signed_bytes = 0;
    opal_crypt_why_t why;

    UNIT_CHECK(bytes == local->record.body_bytes);
    UNIT_EQUAL_BYTES(again, local->bytes, bytes);
    UNIT_CHECK(OPAL_CRYPT_OK == local->method->sign(local->auth_state, again, bytes, again + bytes,
                                                    sizeof(again) - bytes, &signed_bytes, &why));
    UNIT_CHECK(signed_bytes == local->record.authenticator_bytes);
    UNIT_EQUAL_BYTES(again + bytes, local->record.authenticator, signed_bytes);
}

static void check_keys(const vector_block_t *block, const opal_crypt_local_t *local,
                       const opal_crypt_local_t *peer, const char *out, const char *in)
{
    static const struct {
        opal_crypt_label_t label;
        const char *name;
    } labels[] = {
        { OPAL_CRYPT_LABEL_DIRECTION, "direction" },
        { OPAL_CRYPT_LABEL_CHOP, "chop" },
        { OPAL_CRYPT_LABEL_LOCAL_TOKEN, "local_token" },
    };
    opal_crypt_schedule_t *schedule = fixture_schedule(local, peer);
    uint8_t want[32], got[32];
    char name[64];

    UNIT_REQUIRE(NULL != schedule);
    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); ++i) {
        for (int direction = OPAL_CRYPT_OUT; direction <= OPAL_CRYPT_IN; ++direction) {
            snprintf(name, sizeof(name), "%s_%s", labels[i].name, OPAL_CRYPT_OUT == direction ? out : in);
            vector_bytes(block, name, want, sizeof(want));
            UNIT_CHECK(OPAL_CRYPT_OK
                       == opal_crypt_schedule_expand(schedule, labels[i].label,
                                                     (opal_crypt_direction_t) direction, got, 32));
            UNIT_EQUAL_BYTES(want, got, 32);
        }
    }
    vector_bytes(block, "short_ab", want, sizeof(want));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_schedule_expand(schedule, OPAL_CRYPT_LABEL_DIRECTION,
                                                           'a' == out[0] ? OPAL_CRYPT_OUT : OPAL_CRYPT_IN,
                                                           got, 16));
    UNIT_EQUAL_BYTES(want, got, 16);
    opal_crypt_schedule_destroy(schedule);
}

/* Refused, for what is wrong with its extensions. */
static void check_refused(const vector_block_t *block, const opal_crypt_local_t *local)
{
    bool critical = 0 == strcmp("unknown critical", vector_text(block, "refused"));
    uint8_t record[OPAL_CRYPT_RECORD_MAX];
    size_t bytes = vector_bytes(block, "a_record", record, sizeof(record));
    opal_crypt_schedule_t *schedule = NULL;
    opal_crypt_why_t why = { .topic = NULL };

    UNIT_CHECK(OPAL_CRYPT_ERR_PEER == opal_crypt_schedule_create(local, record, bytes, NULL, &schedule, &why));
    UNIT_CHECK(NULL == schedule && fixture_said(&why, critical ? "record-extension" : "record-malformed",
                                                critical ? "type 2" : "are not a record"));
}

int main(void)
{
    FILE *file = vector_file("records-v1.txt");
    vector_block_t block = { .count = 0 };
    opal_crypt_options_t none = fixture_options(OPAL_CRYPT_AUTH_NONE);
    opal_crypt_local_t *local;
    int cases = 0, refused = 0, a_first = 0;

    fixture_begin();
    none.agreed = NULL;
    local = fixture_local(&none, 7);
    while (vector_next(file, &block)) {
        opal_crypt_local_t a, b;

        if (vector_has(&block, "refused")) {
            UNIT_GROUP("refused: %s", vector_text(&block, "refused"));
            check_refused(&block, local);
            ++refused;
            continue;
        }

        UNIT_GROUP("case %s", vector_text(&block, "case"));
        load(&block, "a", &a);
        load(&block, "b", &b);
        check_record(&a);
        check_record(&b);
        check_keys(&block, &a, &b, "ab", "ba");
        check_keys(&block, &b, &a, "ba", "ab");
        a_first += memcmp(a.pair.public, b.pair.public, 32) < 0;
        unload(&a);
        unload(&b);
        ++cases;
    }
    fclose(file);
    UNIT_GROUP("the vectors hold both orders of public keys");
    UNIT_CHECK(7 == cases && 11 == refused && a_first > 0 && a_first < cases);
    opal_crypt_local_destroy(local);
    opal_crypt_secmem_finalize();
    return unit_done();
}
