/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A connection of btl/crypt over a pair of sockets: fragments and puts of every kind of length,
 * more than sockets and rings hold, who says hello, the end, a cut, and bytes that somebody changed.
 */
#include "btl_ends.h"

#include <pthread.h>

#define BIG (3u << 20)

static uint8_t data[BIG], memory[BIG + 64];

static void fragment_make(opal_btl_crypt_item_t *item, uint8_t tag, size_t first, size_t bytes)
{
    const opal_btl_crypt_frame_t frame = {.type = OPAL_BTL_CRYPT_FRAGMENT, .tag = tag, .bytes = bytes};
    const struct iovec pieces[2] = {{data, first}, {data + first, bytes - first}};

    opal_btl_crypt_item_make(item, &frame, pieces, 2);
}

static void put_make(opal_btl_crypt_item_t *item, void *to, size_t bytes)
{
    const opal_btl_crypt_frame_t frame = {.type = OPAL_BTL_CRYPT_PUT, .address = (uintptr_t) to, .bytes = bytes};
    const struct iovec piece = {data, bytes};

    opal_btl_crypt_item_make(item, &frame, &piece, 1);
}

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

/* The other end does not read: what is posted waits, in order, and nothing is done with that is not near the socket. */
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
    UNIT_CHECK(btl_engine.ring_bytes == ends.a->ring.room);
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
    UNIT_CHECK(!opal_btl_crypt_link_post(ends.a, &item) && OPAL_BTL_CRYPT_RING_SMALL == ends.a->ring.room);
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

static bool failed(const opal_btl_crypt_link_t *link, const char *reason)
{
    if (OPAL_BTL_CRYPT_FAILED == link->state && 0 == strcmp(reason, link->reason)) {
        return true;
    }
    printf("  state %d: %s\n", (int) link->state, NULL == link->reason ? "" : link->reason);
    return false;
}

static void hellos(void)
{
    opal_btl_crypt_item_t item;
    ends_t ends;

    UNIT_GROUP("hello: the client waits for it, it is the first, and there is one");
    ends_begin(&ends);
    ends_shake(&ends);
    opal_btl_crypt_link_greet(ends.a);
    opal_btl_crypt_link_read(ends.a);
    UNIT_CHECK(OPAL_BTL_CRYPT_GREETING == ends.a->state);
    opal_btl_crypt_link_decline(ends.b);
    opal_btl_crypt_link_read(ends.a);
    UNIT_CHECK(OPAL_BTL_CRYPT_ENDED == ends.a->state && !ends.a->hello_came);
    ends_free(&ends);

    ends_begin(&ends);
    ends_shake(&ends);
    fragment_make(&item, 1, 0, 10);
    opal_btl_crypt_link_post(ends.a, &item);
    opal_btl_crypt_link_greet(ends.b);
    opal_btl_crypt_link_read(ends.b);
    UNIT_CHECK(failed(ends.b, "not a frame that could follow here") && 0 == ends.in_b.count);
    ends_free(&ends);

    ends_open(&ends);
    opal_btl_crypt_link_greet(ends.a);
    opal_btl_crypt_link_read(ends.b);
    UNIT_CHECK(failed(ends.b, "not a frame that could follow here"));
    ends_free(&ends);
}

static void ending(void)
{
    uint8_t wire[OPAL_CRYPT_TLS_RECORD_CLOSE + 5];
    opal_btl_crypt_item_t item;
    ends_t ends;

    UNIT_GROUP("an end that is said, and cuts");
    ends_open(&ends);
    fragment_make(&item, 5, 0, 1000);
    opal_btl_crypt_link_post(ends.a, &item);
    opal_btl_crypt_link_close(ends.a, 1000);
    opal_btl_crypt_link_read(ends.b);
    UNIT_CHECK(1 == ends.in_b.count && OPAL_BTL_CRYPT_ENDED == ends.b->state);
    ends_free(&ends);

    ends_open(&ends);
    opal_btl_crypt_link_post(ends.a, &item);
    UNIT_CHECK(0 == shutdown(ends.a->fd, SHUT_RDWR));
    opal_btl_crypt_link_read(ends.b);
    opal_btl_crypt_link_read(ends.b);
    UNIT_CHECK(failed(ends.b, "the connection was cut"));
    ends_free(&ends);

    ends_begin(&ends);
    opal_btl_crypt_link_drive(ends.a);
    UNIT_CHECK(0 == shutdown(ends.a->fd, SHUT_RDWR));
    opal_btl_crypt_link_drive(ends.b);
    opal_btl_crypt_link_drive(ends.b);
    UNIT_CHECK(failed(ends.b, "closed during the handshake"));
    ends_free(&ends);

    UNIT_GROUP("an end within a fragment, within a put, and bytes behind it");
    for (int put = 0; put < 2; put++) {
        ends_open(&ends);
        if (put) {
            put_make(&item, memory, 100000);
        } else {
            fragment_make(&item, 1, 0, 100000);
        }
        item.pieces[1].iov_len = item.bytes = 50000;        /* less than its header promises */
        item.count = 2;
        opal_btl_crypt_link_post(ends.a, &item);
        opal_btl_crypt_link_close(ends.a, 1000);
        opal_btl_crypt_link_read(ends.b);
        UNIT_CHECK(failed(ends.b, "the end came within a frame"));
        ends_free(&ends);
    }
    ends_open(&ends);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_close(ends.a->records, wire));
    memcpy(wire + OPAL_CRYPT_TLS_RECORD_CLOSE, "after", 5);
    UNIT_CHECK((ssize_t) sizeof(wire) == send(ends.a->fd, wire, sizeof(wire), MSG_NOSIGNAL));
    opal_btl_crypt_link_read(ends.b);
    UNIT_CHECK(failed(ends.b, "bytes behind the end"));
    ends_free(&ends);
}

enum { MANY = 2000 };

static void *leave_b(void *link)
{
    return opal_btl_crypt_link_close(link, 60000) ? link : NULL;
}

/* Whatever the other end reads is there again at once, until it has gone. */
static void *pour(void *opaque)
{
    static const uint8_t junk[65536];
    const opal_btl_crypt_link_t *link = opaque;

    while (send(link->fd, junk, sizeof(junk), MSG_NOSIGNAL) > 0 || EAGAIN == errno) {
    }
    return NULL;
}

/* The socket takes all of the data, and not the close_notify behind it. */
static void no_room_for_the_end(void)
{
    static opal_btl_crypt_item_t items[2][MANY];
    opal_btl_crypt_item_t item;
    pthread_t other;
    void *left;
    ends_t ends;
    int fit = 0, used[2] = {0};

    for (int i = 0; i < 2 * MANY; i++) {
        fragment_make(&items[i / MANY][i % MANY], 1, 0, 1000);
    }

    UNIT_GROUP("an end for which the socket has no room is not said");
    ends_open(&ends);
    for (fragment_make(&item, 1, 0, 1000); opal_btl_crypt_link_post(ends.a, &item) && !ends.a->wants_write; fit++) {
    }
    ends_free(&ends);
    ends_open(&ends);
    for (int i = 0; i < fit; i++) {
        UNIT_CHECK(opal_btl_crypt_link_post(ends.a, &item));
    }
    UNIT_CHECK(!ends.a->wants_write && 0 == opal_btl_crypt_ring_used(&ends.a->ring));
    UNIT_CHECK(!opal_btl_crypt_link_close(ends.a, 1));
    ends_free(&ends);

    UNIT_GROUP("nor to somebody who goes on sending what nobody asked for");
    ends_open(&ends);
    for (int i = 0; i < fit; i++) {
        UNIT_CHECK(opal_btl_crypt_link_post(ends.a, &item));
    }
    UNIT_REQUIRE(0 == pthread_create(&other, NULL, pour, ends.b));
    UNIT_CHECK(!opal_btl_crypt_link_close(ends.a, 100));
    UNIT_CHECK(0 == shutdown(ends.a->fd, SHUT_RDWR));
    UNIT_REQUIRE(0 == pthread_join(other, NULL));
    ends_free(&ends);

    UNIT_GROUP("two who leave, and have filled each other's sockets");
    ends_open(&ends);
    for (int i = 0; i < 2; i++) {
        opal_btl_crypt_link_t *link = 0 == i ? ends.a : ends.b;

        while (!link->wants_write && used[i] < MANY) {
            (void) opal_btl_crypt_link_post(link, &items[i][used[i]++]);
        }
    }
    UNIT_REQUIRE(0 == pthread_create(&other, NULL, leave_b, ends.b));
    UNIT_CHECK(opal_btl_crypt_link_close(ends.a, 60000));
    UNIT_REQUIRE(0 == pthread_join(other, &left));
    UNIT_CHECK(NULL != left);
    ends_free(&ends);
}

/* The first that notices is the one that writes. */
static void gone(void)
{
    opal_btl_crypt_item_t item;
    ends_t ends;

    UNIT_GROUP("who has left while we write has left, and was not cut off");
    for (int says_so = 0; says_so < 2; says_so++) {
        ends_open(&ends);
        UNIT_CHECK(!says_so || opal_btl_crypt_link_close(ends.b, 1000));
        opal_btl_crypt_link_destroy(ends.b);
        ends.b = NULL;
        fragment_make(&item, 1, 0, 100);
        (void) opal_btl_crypt_link_post(ends.a, &item);
        UNIT_CHECK(OPAL_BTL_CRYPT_OPEN == ends.a->state && ends.a->deaf && !ends.a->wants_write);
        UNIT_CHECK(!opal_btl_crypt_link_post(ends.a, &item));
        opal_btl_crypt_link_read(ends.a);
        UNIT_CHECK(says_so ? OPAL_BTL_CRYPT_ENDED == ends.a->state : failed(ends.a, "the connection was cut"));
        opal_btl_crypt_link_read(ends.a);
        UNIT_CHECK(says_so == (OPAL_BTL_CRYPT_ENDED == ends.a->state));
        UNIT_CHECK(says_so == opal_btl_crypt_link_close(ends.a, 1000));
        ends_free(&ends);
    }
}

static void both_go_on(ends_t *ends)
{
    for (int i = 0; i < 10000 && OPAL_BTL_CRYPT_OPEN == ends->a->state; i++) {
        opal_btl_crypt_link_read(ends->b);
        opal_btl_crypt_link_pump(ends->b);
        opal_btl_crypt_link_read(ends->a);
        opal_btl_crypt_link_pump(ends->a);
    }
}

/* After so many records each end says that it sends no more; what is queued stays for another connection. */
static void replaced(void)
{
    enum { MOST = 5 };
    static opal_btl_crypt_item_t items[MOST + 1], big[2];
    ends_t ends;

    UNIT_GROUP("a connection that is replaced");
    for (int crowded = 0; crowded < 2; crowded++) {
        btl_engine.records_most = MOST;
        ends_open(&ends);
        for (int i = 0; crowded && i < 2; i++) {            /* the answer is half a frame away, and there is another one */
            fragment_make(&big[i], 2, 0, 1 << 20);
            opal_btl_crypt_link_post(ends.b, &big[i]);
        }
        for (int i = 0; i < MOST + 1; i++) {
            fragment_make(&items[i], 1, 0, (size_t) (100 + i));
            UNIT_CHECK((i < MOST) == opal_btl_crypt_link_post(ends.a, &items[i]));
        }
        UNIT_CHECK(ends.a->last_sent && !ends.a->last_came && OPAL_BTL_CRYPT_OPEN == ends.a->state);
        both_go_on(&ends);
        UNIT_CHECK(OPAL_BTL_CRYPT_ENDED == ends.a->state && OPAL_BTL_CRYPT_ENDED == ends.b->state);
        UNIT_CHECK(MOST == ends.in_b.count && 100 + MOST - 1 == ends.in_b.bytes);
        UNIT_CHECK(ends.a->queue.first == &items[MOST] && 0 == items[MOST].sealed && NULL == ends.a->sealed.first);
        if (crowded) {
            UNIT_CHECK(1 == ends.in_a.count && 1 << 20 == ends.in_a.bytes && &big[0] == opal_btl_crypt_link_reap(ends.b));
            UNIT_CHECK(ends.b->queue.first == &big[1] && 0 == big[1].sealed && NULL == ends.b->sealed.first);
        }
        UNIT_CHECK(0 == btl_engine.ring_bytes);
        ends_free(&ends);
    }
    btl_engine.records_most = 0;
}

static void replaced_and_left(void)
{
    static opal_btl_crypt_item_t many[MANY];
    pthread_t thread;
    void *left;
    ends_t ends;

    UNIT_GROUP("who leaves for good sends all of it");
    btl_engine.records_most = 2;
    ends_open(&ends);
    for (int i = 0; i < MANY; i++) {
        fragment_make(&many[i], 1, 0, 20000);
        ends.a->records_sent = 0;               /* it becomes due while it leaves */
        opal_btl_crypt_link_post(ends.a, &many[i]);
    }
    UNIT_CHECK(ends.a->wants_write && NULL != ends.a->queue.first && !ends.a->last_sent);
    ends.a->records_sent = 3;
    UNIT_REQUIRE(0 == pthread_create(&thread, NULL, leave_b, ends.a));
    while (OPAL_BTL_CRYPT_OPEN == ends.b->state && !ends.b->closed_came) {
        opal_btl_crypt_link_read(ends.b);
    }
    UNIT_REQUIRE(0 == pthread_join(thread, &left));
    UNIT_CHECK(NULL != left && OPAL_BTL_CRYPT_ENDED == ends.b->state && MANY == ends.in_b.count);
    ends_free(&ends);
    btl_engine.records_most = 0;
}

static void kernel_limit(void)
{
    ends_t ends;

    UNIT_GROUP("a kernel's key has a limit of its own");
    btl_engine.records_most = 1u << 30;
    ends_open(&ends);
    ends.a->records_sent = OPAL_BTL_CRYPT_KERNEL_MOST + 1;
    UNIT_CHECK(!opal_btl_crypt_link_is_last(ends.a));
    ends.a->peer_kernel = true;
    UNIT_CHECK(opal_btl_crypt_link_is_last(ends.a));
    ends_free(&ends);
    btl_engine.records_most = 0;
}

static void last_and_cut(void)
{
    static opal_btl_crypt_item_t many[MANY];
    ends_t ends;

    UNIT_GROUP("a last frame, the end, and the socket's: it has ended, if nothing is left for it");
    for (int left_over = 0; left_over < 2; left_over++) {
        ends_open(&ends);
        for (int i = 0; left_over && i < MANY; i++) {
            fragment_make(&many[i], 1, 0, 20000);
            opal_btl_crypt_link_post(ends.b, &many[i]);
        }
        btl_engine.records_most = 1;
        ends.a->records_sent = 2;
        opal_btl_crypt_link_pump(ends.a);
        btl_engine.records_most = 0;
        UNIT_CHECK(ends.a->last_sent && 0 == shutdown(ends.a->fd, SHUT_RDWR));
        opal_btl_crypt_link_read(ends.b);
        opal_btl_crypt_link_read(ends.b);
        opal_btl_crypt_link_pump(ends.b);
        UNIT_CHECK(OPAL_BTL_CRYPT_ENDED == ends.b->state && left_over == (NULL != ends.b->sealed.first || NULL != ends.b->queue.first));
        ends_free(&ends);
    }
}

static void after_last(void)
{
    opal_btl_crypt_item_t items[2];
    ends_t ends;

    UNIT_GROUP("nothing follows the last frame but the end");
    btl_engine.records_most = 1;
    ends_open(&ends);
    fragment_make(&items[0], 1, 0, 10);
    opal_btl_crypt_link_post(ends.a, &items[0]);
    opal_btl_crypt_link_read(ends.b);
    UNIT_CHECK(ends.b->last_came && ends.b->closed_came && OPAL_BTL_CRYPT_OPEN == ends.b->state);
    UNIT_CHECK(5 == send(ends.a->fd, "after", 5, MSG_NOSIGNAL));
    opal_btl_crypt_link_read(ends.b);
    UNIT_CHECK(failed(ends.b, "not a record"));
    ends_free(&ends);

    btl_engine.records_most = 0;
    ends_open(&ends);
    for (int i = 0; i < 2; i++) {
        fragment_make(&items[i], 1, 0, 0);
        items[i].header[0] = 0 == i ? OPAL_BTL_CRYPT_LAST : OPAL_BTL_CRYPT_FRAGMENT;
        items[i].header[1] = 0;
        opal_btl_crypt_link_post(ends.a, &items[i]);
    }
    opal_btl_crypt_link_read(ends.b);
    UNIT_CHECK(failed(ends.b, "not a frame that could follow here"));
    ends_free(&ends);
}

/* More than the header promises, in the first record and in a later one; a tag that nobody has. */
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

/* Somebody between the two: every byte of a message changed, one left out, one twice, two changed over. */
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

int main(void)
{
    opal_crypt_tls_t *tls = tls_of(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_X25519);

    UNIT_REQUIRE(NULL != tls);
    btl_start(tls);
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t) (i * 7 + i / 251);
    }
    lengths();
    opal_btl_crypt_engine_stop(&btl_engine);
    btl_engine.threads = 3;
    UNIT_REQUIRE(opal_btl_crypt_engine_start(&btl_engine));
    lengths();
    UNIT_CHECK(opal_crypt_team_started(btl_engine.team) > 0);
    opal_btl_crypt_engine_stop(&btl_engine);
    btl_engine.threads = 0;
    UNIT_REQUIRE(opal_btl_crypt_engine_start(&btl_engine));
    crowd();
    rings();
    hellos();
    ending();
    no_room_for_the_end();
    gone();
    replaced();
    replaced_and_left();
    kernel_limit();
    last_and_cut();
    after_last();
    frames();
    between();
    opal_btl_crypt_engine_stop(&btl_engine);
    opal_crypt_tls_destroy(tls);
    return unit_done();
}
