/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Two processes agree; everything in which they may differ is refused by
 * name; the order of crypt_auth=auto.
 */
#include "tests/unit/crypt_fixture.h"

#include <openssl/provider.h>

#include "opal/mca/common/crypt/identity/local_object.h"

/* Both ends of a pair have the same keys, other ones for each direction. */
static void check_agreement(const opal_crypt_local_t *a, const opal_crypt_local_t *b)
{
    opal_crypt_schedule_t *at_a = fixture_schedule(a, b), *at_b = fixture_schedule(b, a);
    uint8_t a_out[32], a_in[32], b_out[32], b_in[32];

    UNIT_REQUIRE(NULL != at_a && NULL != at_b);
    for (int label = OPAL_CRYPT_LABEL_DIRECTION; label <= OPAL_CRYPT_LABEL_LOCAL_TOKEN; ++label) {
        opal_crypt_label_t use = (opal_crypt_label_t) label;

        UNIT_CHECK(0 == opal_crypt_schedule_expand(at_a, use, OPAL_CRYPT_OUT, a_out, 32));
        UNIT_CHECK(0 == opal_crypt_schedule_expand(at_a, use, OPAL_CRYPT_IN, a_in, 32));
        UNIT_CHECK(0 == opal_crypt_schedule_expand(at_b, use, OPAL_CRYPT_OUT, b_out, 32));
        UNIT_CHECK(0 == opal_crypt_schedule_expand(at_b, use, OPAL_CRYPT_IN, b_in, 32));
        UNIT_EQUAL_BYTES(a_out, b_in, 32);
        UNIT_EQUAL_BYTES(a_in, b_out, 32);
        UNIT_CHECK(0 != memcmp(a_out, a_in, 32));
    }
    UNIT_CHECK(opal_crypt_schedule_peer(at_a)->rank == b->record.rank);
    UNIT_CHECK(0 == strcmp(opal_crypt_schedule_peer(at_a)->nspace, "4711"));
    UNIT_EQUAL_BYTES(opal_crypt_schedule_peer(at_a)->key_hash, opal_crypt_local_key_hash(b), 32);
    opal_crypt_schedule_destroy(at_a);
    opal_crypt_schedule_destroy(at_b);
}

static void test_agreement(opal_crypt_options_t options, const char *title)
{
    opal_crypt_local_t *a = fixture_local(&options, 0), *b = fixture_local(&options, 1);
    opal_crypt_local_t *again = fixture_local(&options, 1);

    UNIT_GROUP("%s: two processes agree, a new key pair gives new keys", title);
    UNIT_CHECK(options.auth == opal_crypt_local_auth(a));
    check_agreement(a, b);
    check_agreement(a, again);
    UNIT_CHECK(0 != memcmp(b->pair.public, again->pair.public, 32));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
    opal_crypt_local_destroy(again);
}

static void differs(opal_crypt_options_t ours, opal_crypt_options_t theirs,
                    const char *topic, const char *part)
{
    opal_crypt_local_t *a = fixture_local(&ours, 0), *b = fixture_local(&theirs, 1);

    UNIT_GROUP("differs: %s", part);
    UNIT_CHECK(fixture_peer_refused(a, b, topic, part));
    UNIT_CHECK(fixture_peer_refused(a, b, topic, "4711 rank 1"));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

static void test_differences(opal_crypt_options_t psk)
{
    opal_crypt_options_t theirs = psk;

    theirs.auth = OPAL_CRYPT_AUTH_NONE;
    differs(psk, theirs, "record-method", "crypt_auth): psk here, none there");
    theirs = psk;
    theirs.cipher = OPAL_AEAD_AES_256_GCM;
    differs(psk, theirs, "record-parameter", "AES-128-GCM here, AES-256-GCM there");
    theirs = psk;
    theirs.epoch_shift = 4;
    differs(psk, theirs, "record-parameter", "2^20 here, 2^4 there");
    theirs = psk;
    theirs.scope_all = true;
    differs(psk, theirs, "record-parameter", "crypt_scope: internode here, all there");
    theirs = psk;
    theirs.agreed = "pml_crypt_chunk_size=106400;pml_crypt_chop_min=32768";
    differs(psk, theirs, "record-parameter", "pml_crypt_chop_min=65536 here, pml_crypt_chop_min=32768 there");
    theirs.agreed = "pml_crypt_chunk_size=106400";
    differs(psk, theirs, "record-parameter", "pml_crypt_chop_min=65536 here, nothing there");
    differs(theirs, psk, "record-parameter", "nothing here, pml_crypt_chop_min=65536 there");
    theirs.agreed = "pml_crypt_chunk_size=106400;ucx_limits=raised;pml_crypt_chop_min=65536";
    differs(psk, theirs, "record-parameter", "parameter: nothing here, ucx_limits=raised there");
    differs(theirs, psk, "record-parameter", "parameter: ucx_limits=raised here, nothing there");
    theirs.agreed = "pml_crypt_chop_min=65536;pml_crypt_chunk_size=106400";
    differs(psk, theirs, "record-parameter", "in another order");
    theirs.agreed = NULL;
    differs(psk, theirs, "record-parameter", "pml_crypt_chunk_size=106400 here, nothing there");
    theirs.agreed = "pml_crypt_chunk_size=106400;pml_crypt_chop_min=65536;";
    differs(psk, theirs, "record-parameter", "in another order or more than once");
    theirs.agreed = "ompi-crypt=1.2.3;pml_crypt_chunk_size=1";
    theirs.scope_all = true;
    differs(psk, theirs, "record-version", "ompi-crypt unknown here, 1.2.3 there");
    psk.agreed = "ompi-crypt=1.2.30";
    differs(psk, theirs, "record-version", "ompi-crypt 1.2.30 here, 1.2.3 there");
    psk.agreed = "pml_crypt_chunk_size=1;ompi-crypt=1.2.3";
    differs(psk, theirs, "record-parameter", "crypt_scope: internode here, all there");
}

static void test_psk_paths(opal_crypt_options_t psk)
{
    opal_crypt_local_t *a = fixture_local(&psk, 0), *b = fixture_local(&psk, 1), *beside;
    opal_crypt_identity_t identity = fixture_identity(0);
    opal_crypt_expect_t expect = { .nspace = "4711", .rank = 1 };
    opal_crypt_schedule_t *schedule = NULL;
    opal_crypt_peer_info_t info;
    opal_crypt_why_t why;

    UNIT_GROUP("a record in another process's place is refused");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_schedule_create(a, b->bytes, b->byte_count, &expect, &schedule, &why));
    opal_crypt_schedule_destroy(schedule);
    expect.rank = 2;
    UNIT_CHECK(fixture_record_refused(a, b->bytes, b->byte_count, &expect, "record-other-process", "4711 rank 2"));
    expect = (opal_crypt_expect_t) { .nspace = "471", .rank = 1 };
    UNIT_CHECK(fixture_record_refused(a, b->bytes, b->byte_count, &expect, "record-other-process", "471 rank 1"));

    UNIT_GROUP("no record: the process that was asked for is named");
    UNIT_CHECK(fixture_record_refused(a, NULL, 0, &expect, "record-missing", "471 rank 1"));

    UNIT_GROUP("our own record is refused");
    UNIT_CHECK(fixture_record_refused(a, a->bytes, a->byte_count, NULL, "record-reflected", ""));

    UNIT_GROUP("what a record says: same node only if boot id and nonce agree");
    opal_crypt_record_info(a, &b->record, &info);
    UNIT_CHECK(!info.same_node && 1 == info.rank && 0 == info.instance);
    identity.rank = 3;
    identity.instance = 8;
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_local_create(&psk, &identity, &beside, &why));
    opal_crypt_record_info(a, &beside->record, &info);
    UNIT_CHECK(info.same_node && 3 == info.rank && 8 == info.instance);
    opal_crypt_local_destroy(beside);
    identity.boot_id[5] ^= 1;
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_local_create(&psk, &identity, &beside, &why));
    opal_crypt_record_info(a, &beside->record, &info);
    UNIT_CHECK(!info.same_node);
    opal_crypt_local_destroy(beside);
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

static bool differ(const opal_crypt_local_t *local, int64_t created, int64_t needed, const char *text)
{
    opal_crypt_peer_info_t peer = { .nspace = "job", .rank = 5, .created = created };
    opal_crypt_why_t why = { .topic = NULL };
    bool is = opal_crypt_clocks_differ(local, &peer, needed, &why);

    UNIT_CHECK(is == (NULL != why.topic));
    return is && fixture_said(&why, "clocks-differ", text) && fixture_said(&why, "clocks-differ", "job rank 5");
}

static void test_clocks(opal_crypt_options_t psk)
{
    opal_crypt_local_t *a = fixture_local(&psk, 0);
    const int64_t met = a->created + 500000;

    UNIT_GROUP("clocks that differ by more than an hour are named");
    a->created = 1700000000;
    UNIT_CHECK(!differ(a, a->created - 3600, 0, "") && !differ(a, a->created + 3600, 0, ""));
    UNIT_CHECK(differ(a, a->created + 3601, 0, "2023-11-14 22:13:20 UTC"));
    UNIT_CHECK(differ(a, a->created - 3601, 0, "2023-11-14 21:13:19 UTC"));
    UNIT_CHECK(differ(a, INT64_MAX, 0, "in no known year"));
    UNIT_CHECK(differ(a, INT64_MIN, 0, ""));

    UNIT_GROUP("who is met later may have begun long before, but not later");
    UNIT_CHECK(!differ(a, a->created, met, "") && !differ(a, met + 3600, met, ""));
    UNIT_CHECK(differ(a, met + 3601, met, ""));
    opal_crypt_local_destroy(a);
}

/* Behind the public key of this record are two lengths, of nothing. */
static void test_weak_key(void)
{
    opal_crypt_options_t none = fixture_options(OPAL_CRYPT_AUTH_NONE);
    opal_crypt_local_t *a = fixture_local(&none, 0), *b = fixture_local(&none, 1);
    size_t at = b->byte_count - 4 - 2 - 32;

    UNIT_GROUP("a public key that gives a secret of zeros is refused");
    UNIT_EQUAL_BYTES(b->bytes + at, b->pair.public, 32);
    memset(b->bytes + at, 0, 32);
    UNIT_CHECK(fixture_peer_refused(a, b, "record-weak-key", "X25519"));

    UNIT_GROUP("none takes no authenticator");
    opal_crypt_put32(b->bytes + b->byte_count - 4, 1);
    UNIT_CHECK(fixture_record_refused(a, b->bytes, b->byte_count + 1, NULL, "record-authenticator", ""));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

/* Without an authenticator both records are still a part of every key: a process that is shown
 * another record than was sent has other keys, and opens nothing. */
static void test_none_changed(void)
{
    opal_crypt_options_t none = fixture_options(OPAL_CRYPT_AUTH_NONE);
    opal_crypt_local_t *a = fixture_local(&none, 0), *b = fixture_local(&none, 1);
    opal_crypt_schedule_t *at_a, *at_b = fixture_schedule(b, a);
    uint8_t sent[32], expected[32];
    size_t taken = 0;

    UNIT_GROUP("none: every byte of a record changed is refused, or gives other keys");
    UNIT_REQUIRE(NULL != at_b);
    UNIT_CHECK(0 == opal_crypt_schedule_expand(at_b, OPAL_CRYPT_LABEL_DIRECTION, OPAL_CRYPT_OUT, sent, 32));
    for (size_t i = 0; i < b->byte_count; ++i) {
        b->bytes[i] ^= 1;
        if (OPAL_CRYPT_OK == opal_crypt_schedule_create(a, b->bytes, b->byte_count, NULL, &at_a, NULL)) {
            UNIT_CHECK(0 == opal_crypt_schedule_expand(at_a, OPAL_CRYPT_LABEL_DIRECTION, OPAL_CRYPT_IN, expected, 32));
            UNIT_CHECK(0 != memcmp(sent, expected, 32));
            opal_crypt_schedule_destroy(at_a);
            ++taken;
        }
        b->bytes[i] ^= 1;
    }
    UNIT_CHECK(taken >= 32 + 8 + 16 + 16);      /* the public key, when it was made, where */
    opal_crypt_schedule_destroy(at_b);
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

static void test_warnings(opal_crypt_options_t psk)
{
    opal_crypt_options_t none = fixture_options(OPAL_CRYPT_AUTH_NONE);
    opal_crypt_local_t *a = fixture_local(&none, 0), *b = fixture_local(&psk, 0);

    UNIT_GROUP("none warns, psk does not");
    UNIT_REQUIRE(NULL != opal_crypt_local_warning(a));
    UNIT_CHECK(0 == strcmp(opal_crypt_local_warning(a)->topic, "auth-none"));
    UNIT_CHECK(NULL == opal_crypt_local_warning(b));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

static void test_options(opal_crypt_options_t psk)
{
    opal_crypt_identity_t identity = fixture_identity(0);
    opal_crypt_local_t *local;
    opal_crypt_why_t why;
    char text[1100];

    UNIT_GROUP("names and parameters that do not fit into a record");
    memset(text, 'x', sizeof(text));
    text[1025] = 0;
    psk.agreed = text;
    UNIT_CHECK(fixture_local_refused(&psk, "record-too-long", "1025"));
    text[1024] = 0;
    psk.agreed = "";
    identity.nspace = text;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_local_create(&psk, &identity, &local, &why));
    UNIT_CHECK(fixture_said(&why, "record-too-long", "1024"));
    identity.nspace = "";
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_local_create(&psk, &identity, &local, &why));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_local_create(&psk, &identity, &local, NULL));
}

/* A process keeps the mode that it began with; a system without the FIPS provider reports that. */
static void test_fips(bool begun)
{
    opal_crypt_options_t options = fixture_options(OPAL_CRYPT_AUTH_NONE);

    options.fips = true;
    UNIT_GROUP("crypt_fips=1 %s", begun ? "after keys were made without" : "without a FIPS provider");
    if (!begun && OSSL_PROVIDER_available(NULL, "fips")) {
        printf("  skipped: there is one\n");
        return;
    }
    UNIT_CHECK(fixture_local_refused(&options, begun ? "fips-too-late" : "fips-no-provider", "OpenSSL 3"));
}

static void test_instances(opal_crypt_options_t psk)
{
    UNIT_GROUP("each life of a process has a number, which its record tells");
    for (uint32_t instance = 0; instance < 3; ++instance) {
        opal_crypt_identity_t identity = fixture_identity(0);
        opal_crypt_local_t *local = NULL;

        identity.instance = opal_crypt_instance();
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_local_create(&psk, &identity, &local, NULL));
        UNIT_CHECK(instance == local->record.instance);
        opal_crypt_local_destroy(local);
    }
}

static void test_names(void)
{
    static const char *const names[] = { "auto", "none", "psk", "munge", "x509" };

    UNIT_GROUP("names of methods");
    for (int i = 0; i < 5; ++i) {
        UNIT_CHECK(0 == strcmp(names[i], opal_crypt_auth_name((opal_crypt_auth_t) i)));
    }
}

int main(void)
{
    opal_crypt_options_t psk = fixture_options(OPAL_CRYPT_AUTH_PSK);

    fixture_begin();
    psk.psk_file = fixture_file("psk", FIXTURE_PSK "\n", 0600);
    test_fips(false);
    test_agreement(psk, "psk");
    test_agreement(fixture_options(OPAL_CRYPT_AUTH_NONE), "none");
    test_differences(psk);
    test_psk_paths(psk);
    test_clocks(psk);
    test_weak_key();
    test_none_changed();
    test_warnings(psk);
    test_options(psk);
    test_instances(psk);
    test_names();
    test_fips(true);
    opal_crypt_secmem_finalize();
    return unit_done();
}
