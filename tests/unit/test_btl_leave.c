/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The end of a connection of btl/crypt over a pair of sockets: announced, cut, or without room to send it; and one
 * that another connection replaces.
 */
#include "btl_items.h"

#include <pthread.h>

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

/* Refill at once whatever the other end reads, until it has gone. */
static void *pour(void *opaque)
{
    static const uint8_t junk[65536];
    const opal_btl_crypt_link_t *link = opaque;

    while (send(link->fd, junk, sizeof(junk), MSG_NOSIGNAL) > 0 || EAGAIN == errno) {
    }
    return NULL;
}

/* The socket takes all of the data, and not the close_notify behind it. */
static void end_without_capacity(void)
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
        UNIT_CHECK(OPAL_BTL_CRYPT_OPEN == ends.a->state && ends.a->peer_closed && !ends.a->wants_write);
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

/* After a number of records each end announces that it sends no more; queued items stay for another connection. */
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

int main(void)
{
    opal_crypt_tls_t *tls = tls_of(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_X25519);

    UNIT_REQUIRE(NULL != tls);
    btl_start(tls);
    data_fill();
    ending();
    end_without_capacity();
    gone();
    replaced();
    replaced_and_left();
    kernel_limit();
    last_and_cut();
    after_last();
    opal_btl_crypt_engine_stop(&btl_engine);
    opal_crypt_tls_destroy(tls);
    return unit_done();
}
