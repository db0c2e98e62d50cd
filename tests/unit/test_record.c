/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Parsing records: every length cut, every byte flipped, every bound.
 */
#include "tests/unit/crypt_fixture.h"

#include "opal/mca/common/crypt/identity/local_object.h"

static const char psk_other[] = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";

/* A copy of exactly `bytes`, so that a sanitizer sees a read behind it. */
static uint8_t *exact(const uint8_t *from, size_t bytes)
{
    uint8_t *copy = malloc(bytes ? bytes : 1);

    UNIT_REQUIRE(NULL != copy);
    memcpy(copy, from, bytes);
    return copy;
}

static void test_lengths(const opal_crypt_local_t *local, const opal_crypt_local_t *peer)
{
    size_t bytes;
    const uint8_t *record = opal_crypt_local_record(peer, &bytes);
    uint8_t longer[OPAL_CRYPT_RECORD_MAX + 1] = { 0 };

    UNIT_GROUP("every length but the right one is refused");
    for (size_t cut = 0; cut < bytes; ++cut) {
        uint8_t *copy = exact(record, cut);
        opal_crypt_record_t views;

        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_record_parse(copy, cut, &views));
        UNIT_CHECK(fixture_record_refused(local, copy, cut, NULL, 0 == cut ? "record-missing" : "record-malformed",
                                          ""));
        free(copy);
    }
    memcpy(longer, record, bytes);
    UNIT_CHECK(fixture_record_refused(local, longer, bytes + 1, NULL, "record-malformed", ""));
    UNIT_CHECK(fixture_record_refused(local, longer, sizeof(longer), NULL, "record-malformed", ""));
}

/* Whatever byte of a record is changed: it is refused, by one reason or another. */
static void test_flips(const opal_crypt_local_t *local, const opal_crypt_local_t *peer)
{
    size_t bytes;
    const uint8_t *record = opal_crypt_local_record(peer, &bytes);

    UNIT_GROUP("every byte flipped, in every bit, is refused");
    for (size_t at = 0; at < bytes; ++at) {
        for (int bit = 0; bit < 8; ++bit) {
            uint8_t *copy = exact(record, bytes);
            opal_crypt_schedule_t *schedule = NULL;
            opal_crypt_why_t why = { .topic = NULL };

            copy[at] ^= (uint8_t) (1u << bit);
            UNIT_CHECK(OPAL_CRYPT_ERR_PEER
                       == opal_crypt_schedule_create(local, copy, bytes, NULL, &schedule, &why));
            UNIT_CHECK(NULL == schedule && NULL != why.topic && 0 == strncmp(why.topic, "record-", 7));
            free(copy);
        }
    }
}

static void test_bounds(const opal_crypt_local_t *peer)
{
    uint8_t out[OPAL_CRYPT_RECORD_MAX], *copy;
    opal_crypt_record_t record = peer->record, views;
    char agreed[OPAL_CRYPT_RECORD_AGREED_MAX + 1], name[OPAL_CRYPT_RECORD_NAME_MAX + 1];
    size_t bytes, n = record.name_bytes;

    UNIT_GROUP("pack refuses what does not fit");
    memset(agreed, 'a', sizeof(agreed));
    memset(name, 'n', sizeof(name));
    record.agreed = agreed;
    record.agreed_bytes = OPAL_CRYPT_RECORD_AGREED_MAX;
    record.name = name;
    record.name_bytes = OPAL_CRYPT_RECORD_NAME_MAX;
    bytes = opal_crypt_record_pack(&record, out, sizeof(out));
    UNIT_CHECK(OPAL_CRYPT_RECORD_FIXED + 1024 + 255 + 32 == bytes && 61 == OPAL_CRYPT_RECORD_FIXED);
    UNIT_CHECK(0 == opal_crypt_record_pack(&record, out, bytes - 1));
    UNIT_CHECK(bytes == opal_crypt_record_pack(&record, out, bytes));
    record.agreed_bytes++;
    UNIT_CHECK(0 == opal_crypt_record_pack(&record, out, sizeof(out)));
    record.agreed_bytes--;
    record.name_bytes++;
    UNIT_CHECK(0 == opal_crypt_record_pack(&record, out, sizeof(out)));
    record.name_bytes = 0;
    UNIT_CHECK(0 == opal_crypt_record_pack(&record, out, sizeof(out)));
    record.name_bytes = 1;
    record.kex = 3;
    UNIT_CHECK(0 == opal_crypt_record_pack(&record, out, sizeof(out)));

    UNIT_GROUP("parse refuses unknown flags and key agreements, zeros in texts");
    bytes = peer->byte_count;
    copy = exact(peer->bytes, bytes);
    copy[15 + n] = 0x80;                                    /* flags */
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_record_parse(copy, bytes, &views));
    copy[15 + n] = 0;
    copy[12 + n] = 9;                                       /* key agreement */
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_record_parse(copy, bytes, &views));
    copy[12 + n] = OPAL_CRYPT_KEX_X25519;
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_record_parse(copy, bytes, &views));
    copy[4] = 0;                                            /* in the name */
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_record_parse(copy, bytes, &views));
    copy[4] = 'x';
    copy[59 + n + 3] = 0;                                   /* in the agreed parameters */
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_record_parse(copy, bytes, &views));
    free(copy);

    UNIT_GROUP("a name that is not printable is shown as question marks");
    memcpy(name, "a\x1b[2Jb\xff", 7);
    record = peer->record;
    record.name = name;
    record.name_bytes = 7;
    opal_crypt_record_title(&record, agreed, sizeof(agreed));
    UNIT_CHECK(0 == strcmp(agreed, "a?[2Jb? rank 1"));
}

static void test_extensions(const opal_crypt_local_t *local, const opal_crypt_options_t *options)
{
    const opal_crypt_extension_t known = { .type = OPAL_CRYPT_EXTENSION_REPORT },
                                        later = { .type = 7, .bytes = (const uint8_t *) "later", .count = 5 },
                                        asked = { .type = 8, .critical = true };
    static const uint8_t listens[OPAL_CRYPT_TRANSPORT_MAX + 1] = {1, 2, 3};
    opal_crypt_options_t reports = *options, too_long = *options;
    opal_crypt_extension_t found;
    opal_crypt_peer_info_t info;
    opal_crypt_local_t *peer;
    opal_crypt_record_t views;
    uint8_t list[OPAL_CRYPT_RECORD_EXTENSIONS_MAX + 1], out[OPAL_CRYPT_RECORD_MAX];
    size_t used = 0, bytes;

    UNIT_GROUP("an extension: what one side sets, the other sees");
    reports.report = true;
    reports.transport = listens;
    reports.transport_bytes = OPAL_CRYPT_TRANSPORT_MAX;
    peer = fixture_local(&reports, 1);
    opal_crypt_record_info(local, &peer->record, &info);
    UNIT_CHECK(info.report && opal_crypt_record_extension(&peer->record, OPAL_CRYPT_EXTENSION_REPORT, &found));
    UNIT_CHECK(OPAL_CRYPT_TRANSPORT_MAX == info.transport_bytes);
    UNIT_EQUAL_BYTES(info.transport, listens, OPAL_CRYPT_TRANSPORT_MAX);
    opal_crypt_record_info(peer, &local->record, &info);
    UNIT_CHECK(!info.report && 0 == info.transport_bytes
               && !opal_crypt_record_extension(&local->record, OPAL_CRYPT_EXTENSION_REPORT, &found));
    opal_crypt_schedule_destroy(fixture_schedule(local, peer));             /* they need not be alike */
    test_lengths(local, peer);
    test_flips(local, peer);
    too_long.transport = listens;
    too_long.transport_bytes = sizeof(listens);
    UNIT_CHECK(fixture_local_refused(&too_long, "record-too-long", "161 bytes"));

    UNIT_GROUP("a list is made in order, and within its room");
    UNIT_CHECK(opal_crypt_extension_put(list, sizeof(list), &used, &known));
    UNIT_CHECK(!opal_crypt_extension_put(list, sizeof(list), &used, &known) && 4 == used);
    UNIT_CHECK(!opal_crypt_extension_put(list, 12, &used, &later) && 4 == used);
    UNIT_CHECK(opal_crypt_extension_put(list, 13, &used, &later) && 13 == used);
    views = peer->record;
    views.extensions = list;
    views.extensions_bytes = used;
    UNIT_CHECK(0 == opal_crypt_record_unknown(&views) && opal_crypt_record_extension(&views, 7, &found));
    UNIT_CHECK(opal_crypt_extension_put(list, sizeof(list), &used, &asked) && 17 == used);
    views.extensions_bytes = used;
    UNIT_CHECK(8 == opal_crypt_record_unknown(&views));
    bytes = opal_crypt_record_pack(&views, out, sizeof(out));
    UNIT_CHECK(peer->record.body_bytes - peer->record.extensions_bytes + 17 == bytes);

    UNIT_GROUP("pack refuses a list that is none");
    views.extensions_bytes = used - 1;
    UNIT_CHECK(0 == opal_crypt_record_pack(&views, out, sizeof(out)));
    views.extensions_bytes = sizeof(list);
    UNIT_CHECK(0 == opal_crypt_record_pack(&views, out, sizeof(out)));
    opal_crypt_local_destroy(peer);
}

static void test_version(const opal_crypt_local_t *local, const opal_crypt_local_t *peer)
{
    uint8_t *copy = exact(peer->bytes, peer->byte_count);

    UNIT_GROUP("another version is named, whatever follows its first fields");
    copy[1] = 2;
    UNIT_CHECK(fixture_record_refused(local, copy, peer->byte_count, NULL, "record-version", "1 here, 2 there"));
    UNIT_CHECK(fixture_record_refused(local, copy, 11 + peer->record.name_bytes, NULL, "record-version",
                                      "4711 rank 1"));
    copy[0] = 0xff;
    UNIT_CHECK(fixture_record_refused(local, copy, peer->byte_count, NULL, "record-version", "65282 there"));
    free(copy);
}

int main(void)
{
    opal_crypt_options_t options = fixture_options(OPAL_CRYPT_AUTH_PSK);
    opal_crypt_local_t *local, *peer, *unauthenticated;

    fixture_begin();
    options.psk_file = fixture_file("psk", FIXTURE_PSK, 0600);
    local = fixture_local(&options, 0);
    peer = fixture_local(&options, 1);
    options.psk_file = fixture_file("other", psk_other, 0600);
    unauthenticated = fixture_local(&options, 1);

    opal_crypt_schedule_destroy(fixture_schedule(local, peer));
    test_lengths(local, peer);
    test_flips(local, peer);
    test_bounds(peer);
    options.psk_file = fixture_path("psk");
    test_extensions(local, &options);
    test_version(local, peer);

    UNIT_GROUP("the holder of another psk is refused");
    UNIT_CHECK(fixture_peer_refused(local, unauthenticated, "record-authenticator", "4711 rank 1"));
    UNIT_CHECK(!fixture_peer_refused(local, peer, "record-authenticator", ""));

    opal_crypt_local_destroy(local);
    opal_crypt_local_destroy(peer);
    opal_crypt_local_destroy(unauthenticated);
    opal_crypt_secmem_finalize();
    return unit_done();
}
