/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The small parts of btl/crypt: headers of frames, the ring, addresses in records, lists of interfaces.
 */
#include "opal/mca/btl/crypt/btl_crypt_address.h"
#include "opal/mca/common/crypt/base/base.h"
#include "opal/mca/btl/crypt/btl_crypt_frame.h"
#include "opal/mca/btl/crypt/btl_crypt_ring.h"
#include "tests/unit/unit.h"

#include <netinet/in.h>

static void headers(void)
{
    static const opal_btl_crypt_frame_t good[] = {
        {.type = OPAL_BTL_CRYPT_FRAGMENT, .tag = 65, .bytes = 0},
        {.type = OPAL_BTL_CRYPT_FRAGMENT, .tag = 255, .bytes = OPAL_BTL_CRYPT_FRAGMENT_MAX},
        {.type = OPAL_BTL_CRYPT_PUT, .address = UINT64_C(0x123456789abc), .bytes = OPAL_BTL_CRYPT_PUT_MAX},
        {.type = OPAL_BTL_CRYPT_HELLO},
        {.type = OPAL_BTL_CRYPT_HELLO, .kernel = true},
        {.type = OPAL_BTL_CRYPT_LAST},
        {.type = OPAL_BTL_CRYPT_JOIN, .rail = 7, .session = 1, .count = 1},
    };
    static const opal_btl_crypt_frame_t bad[] = {
        {.type = OPAL_BTL_CRYPT_FRAGMENT, .tag = 1, .bytes = OPAL_BTL_CRYPT_FRAGMENT_MAX + 1},
        {.type = OPAL_BTL_CRYPT_PUT, .address = 0, .bytes = 1},
        {.type = OPAL_BTL_CRYPT_PUT, .address = 1, .bytes = 0},
        {.type = OPAL_BTL_CRYPT_PUT, .address = 1, .bytes = OPAL_BTL_CRYPT_PUT_MAX + 1},
        {.type = OPAL_BTL_CRYPT_PUT, .address = UINT64_MAX - 5, .bytes = 7},
        {.type = OPAL_BTL_CRYPT_JOIN, .rail = 0, .count = 1}, {.type = OPAL_BTL_CRYPT_JOIN, .rail = OPAL_BTL_CRYPT_RAILS, .count = 1},
        {.type = OPAL_BTL_CRYPT_JOIN, .rail = 1, .count = 0}, {.type = (opal_btl_crypt_type_t) 6}, {.type = (opal_btl_crypt_type_t) 0},
    };
    uint8_t bytes[OPAL_BTL_CRYPT_HEADER_MAX];
    opal_btl_crypt_frame_t frame;
    size_t length;

    UNIT_GROUP("headers");
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        length = opal_btl_crypt_frame_pack(&good[i], bytes);
        UNIT_CHECK(length == opal_btl_crypt_frame_unpack(bytes, length, &frame) && frame.type == good[i].type
                   && frame.tag == good[i].tag && frame.address == good[i].address && frame.bytes == good[i].bytes
                   && frame.kernel == good[i].kernel && frame.rail == good[i].rail && frame.session == good[i].session
                   && frame.count == good[i].count);
        for (size_t less = 0; less < length; less++) {
            UNIT_CHECK(0 == opal_btl_crypt_frame_unpack(bytes, less, &frame));
        }
        /* Zeros have to be zeros, and a hello or a last frame has no other byte than these. */
        for (size_t at = 1; at < length; at++) {
            if (OPAL_BTL_CRYPT_HELLO == good[i].type || OPAL_BTL_CRYPT_LAST == good[i].type
                || (OPAL_BTL_CRYPT_JOIN == good[i].type && at < 8) || (OPAL_BTL_CRYPT_PUT == good[i].type && at < 8)
                || (OPAL_BTL_CRYPT_FRAGMENT == good[i].type && (2 == at || 3 == at))) {
                bytes[at] ^= 0x80;
                UNIT_CHECK(0 == opal_btl_crypt_frame_unpack(bytes, length, &frame));
                bytes[at] ^= 0x80;
            }
        }
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        opal_btl_crypt_frame_pack(&bad[i], bytes);
        bytes[0] = (uint8_t) bad[i].type;
        UNIT_CHECK(0 == opal_btl_crypt_frame_unpack(bytes, sizeof(bytes), &frame));
    }
}

/* Against a plain queue of numbered bytes. */
static void ring(void)
{
    uint8_t bytes[1000], out = 0, in = 0;
    opal_btl_crypt_ring_t ring = {.bytes = bytes, .capacity = sizeof(bytes)};
    unsigned long added = 0, taken = 0;
    unsigned seed = 1;

    UNIT_GROUP("the ring");
    for (int i = 0; i < 200000; i++) {
        size_t free, wanted = 1 + rand_r(&seed) % 300, take;
        struct iovec pieces[2];
        uint8_t *place = opal_btl_crypt_ring_place(&ring, wanted, &free);

        if (NULL != place) {
            UNIT_REQUIRE(free >= wanted && place >= bytes && place + free <= bytes + sizeof(bytes));
            for (size_t k = 0; k < wanted; k++) {
                place[k] = in++;
            }
            ring.tail += wanted;
            added += wanted;
        }
        UNIT_REQUIRE(added - taken == opal_btl_crypt_ring_used(&ring));
        if (0 == opal_btl_crypt_ring_used(&ring)) {
            continue;
        }
        const int count = opal_btl_crypt_ring_pieces(&ring, pieces);
        size_t there = pieces[0].iov_len + (2 == count ? pieces[1].iov_len : 0);

        UNIT_REQUIRE(there == added - taken);
        take = rand_r(&seed) % (there + 1);
        for (size_t k = 0; k < take; k++) {
            const uint8_t *from = k < pieces[0].iov_len ? (uint8_t *) pieces[0].iov_base + k
                                                        : (uint8_t *) pieces[1].iov_base + k - pieces[0].iov_len;
            UNIT_REQUIRE(*from == out++);
        }
        opal_btl_crypt_ring_took(&ring, take);
        taken += take;
    }
    UNIT_CHECK(taken > 1000000);
}

static void addresses(void)
{
    opal_btl_crypt_addresses_t some = {.port = 1024, .count = 3, .list = {
        {.family = 4, .prefix = 24, .bytes = {10, 0, 0, 7}},
        {.family = 6, .prefix = 64, .bytes = {0xfd, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}},
        {.family = 4, .prefix = 16, .bytes = {192, 168, 3, 4}}},
        .groups = opal_crypt_tls_group_bit(OPAL_CRYPT_TLS_X25519) | opal_crypt_tls_group_bit(OPAL_CRYPT_TLS_X25519MLKEM768)}, back;
    const opal_btl_crypt_addresses_t ours = {.count = 1, .list = {{.family = 4, .prefix = 23, .bytes = {192, 168, 2, 9}}}};
    uint8_t bytes[OPAL_BTL_CRYPT_ADDRESSES_BYTES + 1];
    struct sockaddr_storage address;
    size_t length;

    UNIT_GROUP("addresses in a record");
    length = opal_btl_crypt_address_pack(&some, bytes);
    UNIT_CHECK(5 + 6 + 18 + 6 + 5 == length && opal_btl_crypt_address_unpack(bytes, length, &back));
    UNIT_CHECK(0 == memcmp(&some, &back, sizeof(some)));
    for (size_t less = 0; less < length; less++) {
        UNIT_CHECK(!opal_btl_crypt_address_unpack(bytes, less, &back));
    }
    UNIT_CHECK(!opal_btl_crypt_address_unpack(bytes, length + 1, &back));
    for (size_t at = 0; at < 6; at++) {
        const uint8_t was = bytes[at];

        bytes[at] = 0 == at || 1 == at || at >= 4 ? 0x4f : 0;
        if (3 == at) {
            bytes[2] = 0;
        }
        UNIT_CHECK(2 == at || !opal_btl_crypt_address_unpack(bytes, length, &back));
        bytes[at] = was;
        bytes[2] = 4;
    }
    for (unsigned count = 0; count < 256; count++) {
        bytes[length - 5] = (uint8_t) count;
        UNIT_CHECK((2 == count) == opal_btl_crypt_address_unpack(bytes, length, &back));
    }
    UNIT_GROUP("those in a network of ours come first");
    opal_btl_crypt_address_order(&ours, &some);
    UNIT_CHECK(192 == some.list[0].bytes[0] && 10 == some.list[1].bytes[0] && 6 == some.list[2].family);
    UNIT_CHECK(sizeof(struct sockaddr_in) == opal_btl_crypt_address_socket(&some, 0, &address));
    UNIT_CHECK(opal_btl_crypt_address_is_in(&some, (struct sockaddr *) &address));
    UNIT_CHECK(sizeof(struct sockaddr_in6) == opal_btl_crypt_address_socket(&some, 2, &address));
    UNIT_CHECK(opal_btl_crypt_address_is_in(&some, (struct sockaddr *) &address)
               && !opal_btl_crypt_address_is_in(&ours, (struct sockaddr *) &address));
}

static void interfaces(void)
{
    static const char *const bad[] = {"10.0.0.0/33", "10.0.0/8", "10.0.0.0/", "10.0.0.0/8x", "fd00::/129", "an_interface_name_that_is_long"};
    opal_btl_crypt_addresses_t own = {0};
    char word[64];

    UNIT_GROUP("lists of interfaces");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        UNIT_CHECK(NULL != opal_btl_crypt_address_own(bad[i], NULL, &own, word) && 0 == strcmp(bad[i], word));
        UNIT_CHECK(NULL != opal_btl_crypt_address_own("", bad[i], &own, word) && 0 == own.count);
    }
    UNIT_CHECK(NULL == opal_btl_crypt_address_own("127.0.0.0/8", NULL, &own, word));
    UNIT_CHECK(1 == own.count && 127 == own.list[0].bytes[0] && 8 == own.list[0].prefix);
    own.count = 0;
    UNIT_CHECK(NULL == opal_btl_crypt_address_own("lo", NULL, &own, word) && own.count >= 1);
    own.count = 0;
    UNIT_CHECK(NULL == opal_btl_crypt_address_own("", "127.0.0.0/9,0.0.0.0/0, ::/0", &own, word) && 0 == own.count);
}

static void insert(const char *speeds, const char *expected)
{
    opal_btl_crypt_addresses_t own = {0};
    char order[OPAL_BTL_CRYPT_ADDRESSES_MAX + 1] = "";

    for (int i = 0; '\0' != speeds[i]; i++) {
        opal_btl_crypt_address_insert(&own, &(opal_btl_crypt_address_t) {.family = 4, .speed = (unsigned) (speeds[i] - '0'),
                                                                         .bytes = {(uint8_t) ('a' + i)}});
    }
    for (int i = 0; i < own.count; i++) {
        order[i] = (char) own.list[i].bytes[0];
    }
    UNIT_CHECK(0 == strcmp(order, expected));
}

/* Interfaces of these speeds: which of them, the first is a, are published, and in which order. */
static void order_by_speed(void)
{
    UNIT_GROUP("fast interfaces first");
    insert("", "");
    insert("0", "a");
    insert("000", "abc");
    insert("121", "bac");
    insert("1234", "dcba");
    insert("11111111", "abcdefgh");
    insert("111111111", "abcdefgh");
    insert("1111111112", "jabcdefg");
    insert("9111111102", "ajbcdefg");
    insert("2222222201", "abcdefgh");
}

/* Our addresses as "INTERFACE SPEED", and the peer's; all are 10.N.0.x/16.  Which N are shared, in order. */
static void network(const char *ours, const char *theirs, const char *expected)
{
    opal_btl_crypt_addresses_t own = {0}, peer = {0};
    opal_btl_crypt_address_t found[OPAL_BTL_CRYPT_ADDRESSES_MAX];
    char said[OPAL_BTL_CRYPT_ADDRESSES_MAX + 1] = "";
    int count;

    for (int i = 0; '\0' != ours[3 * i]; i++) {         /* network, interface, speed */
        opal_btl_crypt_address_insert(&own, &(opal_btl_crypt_address_t) {
            .family = 4, .prefix = 16, .interface = (unsigned) ours[3 * i + 1], .speed = (unsigned) (ours[3 * i + 2] - '0'),
            .bytes = {10, (uint8_t) ours[3 * i], 0, 1}});
    }
    for (; '\0' != theirs[peer.count]; peer.count++) {
        const bool same = theirs[peer.count] < 'a';     /* a capital: their address is ours, too */

        peer.list[peer.count] = (opal_btl_crypt_address_t) {.family = 4, .prefix = 16, .bytes = {10, (uint8_t) (theirs[peer.count] | 0x20), 0, same ? 1 : 2}};
    }
    count = opal_btl_crypt_address_networks(&own, &peer, found);
    for (int i = 0; i < count; i++) {
        UNIT_CHECK(2 == found[i].bytes[3]);
        said[i] = (char) found[i].bytes[1];
    }
    UNIT_CHECK(0 == strcmp(said, expected));
}

static void networks(void)
{
    UNIT_GROUP("networks that two nodes share");
    network("", "ab", "");
    network("ax1", "", "");
    network("ax1", "a", "a");
    network("ax1", "b", "");
    network("bx1ay1", "ab", "ab");
    network("ax1by1", "ba", "ab");
    network("ax1by1cz1", "cab", "abc");
    network("ax1by1", "bc", "b");
    network("ax1bx1", "ab", "a");                        /* one interface with two addresses */
    network("ax1by1", "Ab", "b");                        /* a bridge */
    network("ax4by2cz1", "abc", "ab");                   /* slower than half */
    network("ax1by9", "ab", "b");
    network("ax0by0", "ab", "a");                        /* unknown */
    network("bx1ay0", "ab", "b");
    network("ax5by2", "ab", "a");
    network("ax9by0cz8", "bc", "c");
    network("ax9by0cz1", "b", "b");
}

int main(void)
{
    networks();
    headers();
    ring();
    addresses();
    interfaces();
    order_by_speed();
    return unit_done();
}
