/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A connection of btl/crypt over a pair of sockets: fragments and puts of every kind of length,
 * more than sockets and rings hold, which end says hello, and bytes changed on the way.
 */
#include "btl_items.h"

#include <pthread.h>

/* Send until it is done with, while the other end reads. */
static void carry(opal_btl_crypt_link_t *from, opal_btl_crypt_link_t *to, opal_btl_crypt_item_t *item, unsigned more)
{
    bool done = opal_btl_crypt_link_post(from, item);
    inbox_t *inbox = to->owner;
    const unsigned wanted = inbox->count + more;

    for (int i = 0; i < 10000 && (!done || inbox->count < wanted || to->put_left > 0 || NULL != to->rest); i++) {
        opal_btl_crypt_link_read(to);
        opal_btl_crypt_link_pump(from);
        done = done || item == opal_btl_crypt_link_reap(from);
    }
    opal_btl_crypt_link_read(to);
    UNIT_CHECK(done && OPAL_BTL_CRYPT_OPEN == from->state && OPAL_BTL_CRYPT_OPEN == to->state);
    UNIT_CHECK(NULL == from->queue.first && NULL == from->sealed.first);
}

static void lengths(void)
{
    static const size_t most[] = {0, 1, 7, 8, 100, 4096, 16375, 16376, 16377, 16384, 32759, 32760, 32768, 65536, 131072, 1 << 20};
    opal_btl_crypt_item_t item;
    ends_t ends;

    UNIT_GROUP("fragments and puts of all lengths, both ways");
    ends_open(&ends);
    for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
        fragment_make(&item, (uint8_t) i, most[i] / 3, most[i]);
        carry(ends.a, ends.b, &item, 1);
        UNIT_CHECK(i == ends.in_b.tag && most[i] == ends.in_b.bytes);
        UNIT_EQUAL_BYTES(ends.in_b.data, data, most[i]);
        if (most[i] > 0) {
            memset(memory, 0xee, sizeof(memory));
            put_make(&item, memory + 1, most[i]);
            carry(ends.b, ends.a, &item, 0);
            UNIT_EQUAL_BYTES(memory + 1, data, most[i]);
            UNIT_CHECK(0xee == memory[0] && 0xee == memory[1 + most[i]]);
        }
    }
    put_make(&item, memory, BIG);
    carry(ends.a, ends.b, &item, 0);
    UNIT_EQUAL_BYTES(memory, data, BIG);
    UNIT_CHECK(NULL == ends.a->ring.bytes && NULL == ends.a->frame && NULL == ends.b->frame && NULL == ends.b->rest);
    UNIT_CHECK(0 == btl_engine.ring_bytes);
    ends_free(&ends);
}

/* The other end does not read: posted items wait, in order, and only those that have reached the socket complete. */
static void crowd(void)
{
    enum { MANY = 300 };
    static opal_btl_crypt_item_t items[MANY];
    unsigned done = 0;
    ends_t ends;

    UNIT_GROUP("more than socket and ring hold");
    ends_open(&ends);
    for (unsigned i = 0; i < MANY; i++) {
        fragment_make(&items[i], (uint8_t) (i % 90), 10, 20000 + i);
        done += opal_btl_crypt_link_post(ends.a, &items[i]);
    }
    UNIT_CHECK(done < MANY && ends.a->wants_write && NULL != ends.a->queue.first);
    UNIT_CHECK(btl_engine.ring_bytes == ends.a->ring.capacity);
    for (unsigned i = 0; i < 10000 && ends.in_b.count < MANY; i++) {
        opal_btl_crypt_link_read(ends.b);
        UNIT_CHECK(0 == ends.in_b.count || 20000 + ends.in_b.count - 1 == ends.in_b.bytes);
        opal_btl_crypt_link_pump(ends.a);
        for (const opal_btl_crypt_item_t *item; NULL != (item = opal_btl_crypt_link_reap(ends.a)); done++) {
            UNIT_CHECK(item == &items[done]);
        }
    }
    UNIT_CHECK(MANY == ends.in_b.count && MANY == done && 0 == btl_engine.ring_bytes);
    ends_free(&ends);
}

static void rings(void)
{
    opal_btl_crypt_item_t item;
    ends_t ends;

    UNIT_GROUP("a small ring when all together are large");
    ends_open(&ends);
    btl_engine.ring_bytes = OPAL_BTL_CRYPT_RINGS_MAX - 1;
    fragment_make(&item, 1, 0, 1 << 20);
    UNIT_CHECK(!opal_btl_crypt_link_post(ends.a, &item) && OPAL_BTL_CRYPT_RING_SMALL == ends.a->ring.capacity);
    for (int i = 0; i < 10000 && 0 == ends.in_b.count; i++) {
        opal_btl_crypt_link_read(ends.b);
        opal_btl_crypt_link_pump(ends.a);
    }
    UNIT_CHECK(1 == ends.in_b.count && &item == opal_btl_crypt_link_reap(ends.a));
    UNIT_EQUAL_BYTES(ends.in_b.data, data, 1 << 20);
    UNIT_CHECK(OPAL_BTL_CRYPT_RINGS_MAX - 1 == btl_engine.ring_bytes);
    btl_engine.ring_bytes = 0;
    ends_free(&ends);
}

static void hellos(void)
{
    opal_btl_crypt_item_t item;
    ends_t ends;

    UNIT_GROUP("hello: the client waits for it, it is the first, and there is one");
    ends_begin(&ends);
    ends_shake(&ends);
    opal_btl_crypt_link_send_hello(ends.a);
    opal_btl_crypt_link_read(ends.a);
    UNIT_CHECK(OPAL_BTL_CRYPT_HELLO_SENT == ends.a->state);
    opal_btl_crypt_link_decline(ends.b);
    opal_btl_crypt_link_read(ends.a);
    UNIT_CHECK(OPAL_BTL_CRYPT_ENDED == ends.a->state && !ends.a->hello_came);
    ends_free(&ends);

    ends_begin(&ends);
    ends_shake(&ends);
    fragment_make(&item, 1, 0, 10);
    opal_btl_crypt_link_post(ends.a, &item);
    opal_btl_crypt_link_send_hello(ends.b);
    opal_btl_crypt_link_read(ends.b);
    UNIT_CHECK(failed(ends.b, "not a frame that could follow here") && 0 == ends.in_b.count);
    ends_free(&ends);

    ends_open(&ends);
    opal_btl_crypt_link_send_hello(ends.a);
    opal_btl_crypt_link_read(ends.b);
    UNIT_CHECK(failed(ends.b, "not a frame that could follow here"));
    ends_free(&ends);
}

/* More than the header promises, in the first record and in a later one; an unknown tag. */
static void frames(void)
{
    opal_btl_crypt_item_t item;
    ends_t ends;

    UNIT_GROUP("frames that are not as long as they say");
    for (int i = 0; i < 4; i++) {
        const size_t said = 0 == i % 2 ? 100 : i < 2 ? 16384 : 16000, sent = said + 1;

        ends_open(&ends);
        if (i < 2) {
            fragment_make(&item, 1, 0, said);
        } else {
            put_make(&item, memory, said);
        }
        item.pieces[1] = (struct iovec) {data, sent};
        item.bytes = item.pieces[0].iov_len + sent;
        item.count = 2;
        memset(memory, 0xee, sizeof(memory));
        opal_btl_crypt_link_post(ends.a, &item);
        opal_btl_crypt_link_read(ends.b);
        UNIT_CHECK(failed(ends.b, "a frame that is shorter than its record") && 0 == ends.in_b.count);
        UNIT_CHECK(0xee == memory[said]);
        ends_free(&ends);
    }
    ends_open(&ends);
    fragment_make(&item, 99, 0, 10);
    opal_btl_crypt_link_post(ends.a, &item);
    opal_btl_crypt_link_read(ends.b);
    UNIT_CHECK(failed(ends.b, "a fragment for which there is nobody"));
    ends_free(&ends);
}

/* A man in the middle: every byte of a message changed; one message left out, one sent twice, two swapped. */
static void between(void)
{
    uint8_t wire[4096];
    opal_btl_crypt_item_t item, other;
    ends_t ends;
    size_t one;
    int pair[2];

    UNIT_GROUP("records that were changed, left out, repeated, turned round");
    for (size_t at = 0; at < 4 + 80; at++) {
        ends_open(&ends);
        btl_pair(pair);
        fragment_make(&item, 1, 0, 50);
        fragment_make(&other, 2, 0, 50);
        opal_btl_crypt_link_post(ends.a, &item);
        one = (size_t) recv(ends.b->fd, wire, sizeof(wire), 0);
        opal_btl_crypt_link_post(ends.a, &other);
        UNIT_CHECK(80 == one && 80 == recv(ends.b->fd, wire + one, sizeof(wire) - one, 0));
        if (at < one) {
            wire[at] ^= 1;
            UNIT_CHECK((ssize_t) one == send(ends.a->fd, wire, one, 0));
        } else if (at == one) {
            UNIT_CHECK((ssize_t) one == send(ends.a->fd, wire + one, one, 0));
        } else if (at == one + 1) {
            memcpy(wire + one, wire, one);
            UNIT_CHECK((ssize_t) (2 * one) == send(ends.a->fd, wire, 2 * one, 0));
        } else {
            UNIT_CHECK((ssize_t) one == send(ends.a->fd, wire + one, one, 0));
            UNIT_CHECK((ssize_t) one == send(ends.a->fd, wire, one, 0));
        }
        opal_btl_crypt_link_read(ends.b);
        /* A length that grew is waited for; the rest that comes does not open. */
        UNIT_CHECK(OPAL_BTL_CRYPT_FAILED == ends.b->state || ((3 == at || 4 == at) && NULL != ends.b->rest));
        UNIT_CHECK((at == one + 1 ? 1 : 0) == ends.in_b.count);
        close(pair[0]);
        close(pair[1]);
        ends_free(&ends);
    }
}

/* ---- a thread of the program that looks at what a put changes ---- */

static struct {
    _Atomic unsigned at;                    /* the byte of `memory` that the man in the middle changes */
    _Atomic bool stop;
    _Atomic uint64_t visits, wrong;
} peep;

static void *peep_at_put(void *nothing)
{
    const volatile uint8_t *bytes = memory;

    while (!peep.stop) {
        const unsigned at = peep.at;
        const uint8_t seen = bytes[at];

        peep.wrong += at == peep.at && 0xee != seen && data[at] != seen ? 1 : 0;
        peep.visits++;
    }
    return nothing;
}

/* All that the first end has sent, to be sent again. */
static size_t take_all(const ends_t *ends, uint8_t *wire, size_t capacity)
{
    size_t bytes = 0;
    ssize_t came;

    while ((came = recv(ends->b->fd, wire + bytes, capacity - bytes, 0)) > 0) {
        bytes += (size_t) came;
    }
    return bytes;
}

/* A record of a put is changed on its way: at no moment does the memory hold the changed data, or anything but what
 * was there before, or what was sent. */
static void peeping(void)
{
    enum { ROUNDS = 300, RECORDS = 5, BYTES = RECORDS * OPAL_CRYPT_TLS_RECORD_PLAIN_MAX };
    static uint8_t wire[2 * BYTES];
    opal_btl_crypt_item_t item;
    unsigned left = 0;
    pthread_t thread;
    ends_t ends;

    UNIT_GROUP("nobody sees in a window what was changed on its way");
    memset(memory, 0xee, sizeof(memory));
    peep.stop = false;
    peep.visits = peep.wrong = 0;
    UNIT_REQUIRE(0 == pthread_create(&thread, NULL, peep_at_put, NULL));
    for (unsigned round = 0; round < ROUNDS; round++) {
        const unsigned record = round % RECORDS, byte = round * 89 % OPAL_CRYPT_TLS_RECORD_PLAIN_MAX;
        const size_t header = OPAL_BTL_CRYPT_HEADER_MAX + OPAL_CRYPT_TLS_RECORD_OVERHEAD;
        size_t bytes, wrong = 0;

        ends_open(&ends);
        peep.at = record * OPAL_CRYPT_TLS_RECORD_PLAIN_MAX + byte;
        put_make(&item, memory, BYTES);
        opal_btl_crypt_link_post(ends.a, &item);
        bytes = take_all(&ends, wire, sizeof(wire));
        UNIT_REQUIRE(header + RECORDS * OPAL_CRYPT_TLS_RECORD_MAX == bytes);
        wire[header + record * OPAL_CRYPT_TLS_RECORD_MAX + OPAL_CRYPT_TLS_RECORD_HEADER + byte] ^= 0x55;
        UNIT_REQUIRE((ssize_t) bytes == send(ends.a->fd, wire, bytes, 0));
        for (int i = 0; i < 100 && OPAL_BTL_CRYPT_OPEN == ends.b->state; i++) {
            opal_btl_crypt_link_read(ends.b);
        }
        UNIT_CHECK(failed(ends.b, OPAL_BTL_CRYPT_CHANGED));
        for (size_t i = 0; i < BYTES; i++) {
            wrong += 0xee != memory[i] && data[i] != memory[i];
        }
        left += 0 != wrong || 0xee != memory[peep.at];
        memset(memory, 0xee, BYTES);
        ends_free(&ends);
    }
    peep.stop = true;
    pthread_join(thread, NULL);
    printf("  %llu of %llu looks saw it, and %u of %d puts left something\n", (unsigned long long) peep.wrong,
           (unsigned long long) peep.visits, left, ROUNDS);
    UNIT_CHECK(peep.visits > ROUNDS && 0 == peep.wrong && 0 == left);
}

int main(void)
{
    opal_crypt_tls_t *tls = tls_of(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_X25519);

    UNIT_REQUIRE(NULL != tls);
    btl_start(tls);
    data_fill();
    lengths();
    opal_btl_crypt_engine_stop(&btl_engine);
    btl_engine.threads = 3;
    UNIT_REQUIRE(opal_btl_crypt_engine_start(&btl_engine));
    lengths();
    peeping();
    UNIT_CHECK(opal_crypt_team_started(btl_engine.team) > 0);
    opal_btl_crypt_engine_stop(&btl_engine);
    btl_engine.threads = 0;
    UNIT_REQUIRE(opal_btl_crypt_engine_start(&btl_engine));
    crowd();
    rings();
    hellos();
    frames();
    between();
    peeping();
    opal_btl_crypt_engine_stop(&btl_engine);
    opal_crypt_tls_destroy(tls);
    return unit_done();
}
