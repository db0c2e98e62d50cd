/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * tests/vectors/transport-v1.txt, which another implementation wrote: addresses in records of processes, valid and
 * invalid headers of frames, and everything that the two ends of a connection send, from their hellos to close_notify.
 */
#include "tls_ends.h"
#include "vectors.h"

#include "opal/mca/btl/crypt/btl_crypt_address.h"
#include "opal/mca/btl/crypt/btl_crypt_frame.h"
#include "opal/mca/common/crypt/tls/records.h"

enum { LONG_PUT = 4097, LONG_PUT_NUMBER = 3 };      /* the one record whose plaintext the file does not have */

static uint64_t field(const vector_block_t *vector, const char *name)
{
    return vector_has(vector, name) ? strtoull(vector_text(vector, name), NULL, 10) : 0;
}

static void addresses(const vector_block_t *vector)
{
    opal_btl_crypt_addresses_t found;
    uint8_t bytes[OPAL_BTL_CRYPT_ADDRESSES_BYTES + 1], again[OPAL_BTL_CRYPT_ADDRESSES_BYTES], numbers[8];
    const size_t length = vector_bytes(vector, "addresses", bytes, sizeof(bytes));
    const size_t count = vector_bytes(vector, "groups", numbers, sizeof(numbers));
    opal_crypt_tls_groups_t known = 0, all = 0;

    UNIT_CHECK(opal_btl_crypt_address_unpack(bytes, length, &found));
    UNIT_CHECK(found.port == field(vector, "port"));
    for (size_t at = 0; at < count; at += 2) {
        known |= opal_crypt_tls_group_bit(opal_crypt_get16(numbers + at));
        all += 0 != opal_crypt_tls_group_bit(opal_crypt_get16(numbers + at)) ? 2 : 0;
    }
    UNIT_CHECK(found.groups == known);
    if (all == count) {
        UNIT_CHECK(length == opal_btl_crypt_address_pack(&found, again));
        UNIT_EQUAL_BYTES(again, bytes, length);
    }
}

static void header(const vector_block_t *vector)
{
    const opal_btl_crypt_frame_t frame = {.type = (opal_btl_crypt_type_t) field(vector, "type"), .tag = (uint8_t) field(vector, "tag"),
                                          .address = field(vector, "address"), .bytes = field(vector, "bytes"),
                                          .kernel = 0 != field(vector, "kernel")};
    uint8_t expected[OPAL_BTL_CRYPT_HEADER_MAX], packed[OPAL_BTL_CRYPT_HEADER_MAX];
    const size_t bytes = vector_bytes(vector, "header", expected, sizeof(expected));
    opal_btl_crypt_frame_t back;

    UNIT_CHECK(bytes == opal_btl_crypt_frame_pack(&frame, packed));
    UNIT_EQUAL_BYTES(packed, expected, bytes);
    UNIT_CHECK(bytes == opal_btl_crypt_frame_unpack(expected, bytes, &back));
    UNIT_CHECK(back.type == frame.type && back.tag == frame.tag && back.address == frame.address && back.bytes == frame.bytes
               && back.kernel == frame.kernel);
}

static void no_header(const vector_block_t *vector)
{
    uint8_t record[64];
    const size_t bytes = vector_bytes(vector, "record", record, sizeof(record));
    opal_btl_crypt_frame_t frame;

    UNIT_CHECK(0 == opal_btl_crypt_frame_unpack(record, bytes, &frame));
}

/* Both ends of the direction that this block belongs to; NULL before. */
static opal_crypt_tls_records_t *ends[2];
static uint64_t put_left;                       /* of the frame that has begun */

static void begin_direction(const vector_block_t *vector)
{
    uint8_t secret[32];

    UNIT_REQUIRE(sizeof(secret) == vector_bytes(vector, "secret", secret, sizeof(secret)));
    for (int i = 0; i < 2; i++) {
        opal_crypt_tls_records_destroy(ends[i]);
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_create(&opal_aead_openssl_module, OPAL_AEAD_AES_128_GCM,
                                                                    OPAL_CRYPT_TLS_RECORDS_RENEW, secret, secret, &ends[i]));
    }
    put_left = 0;
}

/* A record begins a frame, and has no byte of another one; or it is the rest of a put. */
static void check_plain(const uint8_t *plain, size_t bytes, bool first)
{
    opal_btl_crypt_frame_t frame;
    size_t length;

    if (put_left > 0) {
        UNIT_CHECK(put_left == bytes);
        put_left = 0;
        return;
    }
    length = opal_btl_crypt_frame_unpack(plain, bytes, &frame);
    UNIT_CHECK(length > 0 && first == (OPAL_BTL_CRYPT_HELLO == frame.type));
    UNIT_CHECK(bytes - length == frame.bytes || (OPAL_BTL_CRYPT_PUT == frame.type && bytes == length));
    put_left = bytes - length == frame.bytes ? 0 : frame.bytes;
}

static void conversation(const vector_block_t *vector)
{
    static uint8_t expected[LONG_PUT + 100], wire[LONG_PUT + 100], plain[LONG_PUT], back[LONG_PUT + 1];
    const size_t record = vector_bytes(vector, "record", expected, sizeof(expected));
    const bool rest = put_left > 0;
    size_t bytes = vector_bytes(vector, "plain", plain, sizeof(plain)), wire_bytes = 0, back_bytes;
    opal_crypt_tls_record_kind_t kind;

    if (0 == field(vector, "number")) {
        begin_direction(vector);
    }
    for (; rest && bytes < LONG_PUT; bytes++) {
        plain[bytes] = (uint8_t) (bytes * 31 + bytes / 251 + LONG_PUT_NUMBER + 1);
    }
    if (bytes > 0) {
        const struct iovec piece = {plain, bytes};

        check_plain(plain, bytes, 0 == field(vector, "number"));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_seal(ends[0], &piece, 1, wire, sizeof(wire), &wire_bytes));
    } else {
        wire_bytes = OPAL_CRYPT_TLS_RECORD_CLOSE;
        UNIT_CHECK(!rest && OPAL_CRYPT_OK == opal_crypt_tls_records_close(ends[0], wire));
    }
    UNIT_REQUIRE(record == wire_bytes);
    UNIT_EQUAL_BYTES(wire, expected, record);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_open(ends[1], wire, record, back, sizeof(back), &back_bytes, &kind));
    UNIT_CHECK(back_bytes == bytes && 0 == memcmp(back, plain, bytes));
    UNIT_CHECK((0 == bytes ? OPAL_CRYPT_TLS_RECORD_CLOSED : OPAL_CRYPT_TLS_RECORD_DATA) == kind);
}

int main(void)
{
    static const struct {
        const char *kind;
        void (*check)(const vector_block_t *vector);
        unsigned blocks;
    } kinds[] = {{"addresses", addresses, 3}, {"header", header, 7}, {"no header", no_header, 26}, {"conversation", conversation, 12}};

    UNIT_REQUIRE(0 == opal_aead_openssl_init());
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        FILE *file = vector_file("transport-v1.txt");
        vector_block_t vector = {.count = 0};
        unsigned seen = 0;

        UNIT_GROUP("%s", kinds[i].kind);
        while (vector_next(file, &vector)) {
            if (0 == strcmp(kinds[i].kind, vector_text(&vector, "kind"))) {
                kinds[i].check(&vector);
                seen++;
            }
        }
        UNIT_CHECK(kinds[i].blocks == seen);
        fclose(file);
    }
    opal_crypt_tls_records_destroy(ends[0]);
    opal_crypt_tls_records_destroy(ends[1]);
    return unit_done();
}
