/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Connections of btl/crypt over TCP, each end of which is ours in user space or the kernel's (kTLS): all lengths, both
 * ways at once, a reader that is late, a connection that is replaced, the end, and bytes changed on the way.  Without
 * kTLS in the kernel both ends are ours, and the test says so; `kernel` as the argument demands it.
 */
#include "btl_ends.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>

#define BIG (3u << 20)

static uint8_t data[BIG], memory[2][BIG];

/* Which ends the kernel has, in this round. */
static bool kernel_a, kernel_b;

static void tcp_pair(int pair[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(address);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    UNIT_REQUIRE(listener >= 0 && 0 == bind(listener, (struct sockaddr *) &address, bytes) && 0 == listen(listener, 1)
                 && 0 == getsockname(listener, (struct sockaddr *) &address, &bytes));
    pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    UNIT_REQUIRE(pair[0] >= 0 && 0 == connect(pair[0], (struct sockaddr *) &address, bytes));
    pair[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    UNIT_REQUIRE(pair[1] >= 0 && 0 == fcntl(pair[0], F_SETFL, O_NONBLOCK));
    close(listener);
}

static void wait_for(const opal_btl_crypt_link_t *link)
{
    struct pollfd ready = {.fd = link->fd, .events = POLLIN};

    UNIT_REQUIRE(1 == poll(&ready, 1, 10000));
}

static void drive(opal_btl_crypt_link_t *link, bool kernel)
{
    btl_engine.kernel = kernel;
    opal_btl_crypt_link_drive(link);
    btl_engine.kernel = false;
}

static void tcp_open(ends_t *ends)
{
    int pair[2];

    memset(ends, 0, sizeof(*ends));
    ends->job.psk = tls_psk(PSK);
    tcp_pair(pair);
    ends->a = btl_client(pair[0], PSK);
    ends->b = opal_btl_crypt_link_accept(&btl_engine, pair[1], job_find, &ends->job);
    UNIT_REQUIRE(NULL != ends->a && NULL != ends->b);
    ends->a->owner = &ends->in_a;
    ends->b->owner = &ends->in_b;
    while (OPAL_BTL_CRYPT_AUTHENTICATED > ends->b->state) {
        drive(ends->a, kernel_a);
        if (OPAL_BTL_CRYPT_AUTHENTICATED == ends->a->state) {
            opal_btl_crypt_link_send_hello(ends->a);         /* its hello may come before the kernel has the server's keys */
        }
        wait_for(ends->b);
        drive(ends->b, kernel_b);
        if (OPAL_BTL_CRYPT_SHAKING >= ends->a->state) {
            wait_for(ends->a);
        }
    }
    UNIT_REQUIRE(OPAL_BTL_CRYPT_AUTHENTICATED == ends->b->state && OPAL_BTL_CRYPT_HELLO_SENT == ends->a->state);
    UNIT_CHECK(kernel_a == ends->a->kernel_in && kernel_a == ends->a->kernel_out);
    UNIT_CHECK(kernel_b == ends->b->kernel_in && kernel_b == ends->b->kernel_out);
    opal_btl_crypt_link_send_hello(ends->b);
    for (int i = 0; i < 2; i++) {
        opal_btl_crypt_link_t *link = 0 == i ? ends->a : ends->b;

        wait_for(link);
        opal_btl_crypt_link_read(link);
        UNIT_REQUIRE(OPAL_BTL_CRYPT_OPEN == link->state);
        UNIT_CHECK(link->peer_kernel == (0 == i ? kernel_b : kernel_a));
        UNIT_CHECK(&link->hello == opal_btl_crypt_link_reap(link) || NULL == link->sealed.first);
    }
}

static void fragment_make(opal_btl_crypt_item_t *item, uint8_t tag, size_t bytes)
{
    const opal_btl_crypt_frame_t frame = {.type = OPAL_BTL_CRYPT_FRAGMENT, .tag = tag, .bytes = bytes};
    const struct iovec pieces[2] = {{data, bytes / 3}, {data + bytes / 3, bytes - bytes / 3}};

    opal_btl_crypt_item_make(item, &frame, pieces, 2);
}

static void put_make(opal_btl_crypt_item_t *item, void *to, size_t bytes)
{
    const opal_btl_crypt_frame_t frame = {.type = OPAL_BTL_CRYPT_PUT, .address = (uintptr_t) to, .bytes = bytes};
    const struct iovec piece = {data, bytes};

    opal_btl_crypt_item_make(item, &frame, &piece, 1);
}

/* Each end does what it can: true while something happens, or may. */
static void turn(ends_t *ends)
{
    struct pollfd ready[2] = {{.fd = ends->a->fd, .events = POLLIN | POLLOUT}, {.fd = ends->b->fd, .events = POLLIN | POLLOUT}};

    (void) poll(ready, 2, 0);
    for (int i = 0; i < 2; i++) {
        opal_btl_crypt_link_t *link = 0 == i ? ends->a : ends->b;

        if (0 != (ready[i].revents & POLLIN)) {
            opal_btl_crypt_link_read(link);
        }
        opal_btl_crypt_link_pump(link);
        while (NULL != opal_btl_crypt_link_reap(link)) {
        }
    }
}

static bool idle(const ends_t *ends)
{
    return NULL == ends->a->queue.first && NULL == ends->b->queue.first && NULL == ends->a->sealed.first
           && NULL == ends->b->sealed.first && 0 == ends->a->put_left && 0 == ends->b->put_left;
}

/* A put, and behind it a fragment, each way at the same time. */
static void lengths(void)
{
    static const size_t most[] = {0, 1, 8, 24, 100, 16375, 16376, 16377, 16384, 32760, 65536, 131072, 1 << 20, 3 << 20};
    ends_t ends;

    UNIT_GROUP("fragments and puts of all lengths, both ways at once");
    tcp_open(&ends);
    for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
        const size_t put = most[i], bytes = put < 1 << 20 ? put : 1 << 20;
        opal_btl_crypt_item_t items[2][2];

        memset(memory, 0xee, sizeof(memory));
        for (int to_b = 0; to_b < 2; to_b++) {
            opal_btl_crypt_link_t *from = to_b ? ends.a : ends.b;

            put_make(&items[to_b][0], memory[to_b], put);
            fragment_make(&items[to_b][1], (uint8_t) i, bytes);
            if (put > 0) {
                opal_btl_crypt_link_post(from, &items[to_b][0]);
            }
            opal_btl_crypt_link_post(from, &items[to_b][1]);
        }
        for (int k = 0; k < 1000000 && (!idle(&ends) || ends.in_a.count <= i || ends.in_b.count <= i); k++) {
            turn(&ends);
        }
        UNIT_CHECK(OPAL_BTL_CRYPT_OPEN == ends.a->state && OPAL_BTL_CRYPT_OPEN == ends.b->state);
        UNIT_REQUIRE(i + 1 == ends.in_a.count && i + 1 == ends.in_b.count);
        UNIT_CHECK(i == ends.in_a.tag && i == ends.in_b.tag && bytes == ends.in_a.bytes && bytes == ends.in_b.bytes);
        UNIT_EQUAL_BYTES(ends.in_a.data, data, bytes);
        UNIT_EQUAL_BYTES(ends.in_b.data, data, bytes);
        UNIT_EQUAL_BYTES(memory[0], data, put);
        UNIT_EQUAL_BYTES(memory[1], data, put);
        UNIT_CHECK(put == BIG || (0xee == memory[0][put] && 0xee == memory[1][put]));
    }
    UNIT_CHECK(NULL == ends.a->frame && NULL == ends.b->frame && 0 == btl_engine.ring_bytes);
    ends_free(&ends);
}

/* What is posted waits, in order, while the other end does not read. */
static void late(void)
{
    enum { MANY = 2000 };
    static opal_btl_crypt_item_t items[MANY];
    ends_t ends;

    UNIT_GROUP("a reader that is late");
    tcp_open(&ends);
    for (unsigned i = 0; i < MANY; i++) {
        fragment_make(&items[i], (uint8_t) (i % 90), 20000 + i);
        opal_btl_crypt_link_post(ends.a, &items[i]);
    }
    UNIT_CHECK(ends.a->wants_write && NULL != ends.a->queue.first);
    for (int k = 0; k < 10000000 && ends.in_b.count < MANY && OPAL_BTL_CRYPT_OPEN == ends.b->state; k++) {
        turn(&ends);
        UNIT_REQUIRE(0 == ends.in_b.count || 20000 + ends.in_b.count - 1 == ends.in_b.bytes);
    }
    UNIT_CHECK(MANY == ends.in_b.count && idle(&ends));
    ends_free(&ends);
}

/* With the socket full, of both ends or of one. */
static void replaced(void)
{
    enum { MANY = 600 };
    static opal_btl_crypt_item_t items[2][MANY];
    ends_t ends;

    UNIT_GROUP("a connection that is replaced");
    for (int both = 0; both < 2; both++) {
        btl_engine.records_most = both ? 300 : 0;
        tcp_open(&ends);
        btl_engine.records_most = 300;
        for (unsigned i = 0; i < MANY; i++) {
            fragment_make(&items[0][i], 1, 20000);
            opal_btl_crypt_link_post(ends.a, &items[0][i]);
            fragment_make(&items[1][i], 2, both ? 20000 : 10);
            if (both || i < 3) {
                opal_btl_crypt_link_post(ends.b, &items[1][i]);
            }
        }
        for (int k = 0; k < 10000000 && (OPAL_BTL_CRYPT_OPEN == ends.a->state || OPAL_BTL_CRYPT_OPEN == ends.b->state); k++) {
            turn(&ends);
        }
        UNIT_CHECK(OPAL_BTL_CRYPT_ENDED == ends.a->state && OPAL_BTL_CRYPT_ENDED == ends.b->state);
        UNIT_CHECK(NULL == ends.a->sealed.first && NULL == ends.b->sealed.first);
        UNIT_CHECK(&items[0][ends.in_b.count] == ends.a->queue.first && ends.in_b.count > 99 && ends.in_b.count < MANY);
        UNIT_CHECK(both ? &items[1][ends.in_a.count] == ends.b->queue.first : 3 == ends.in_a.count && NULL == ends.b->queue.first);
        ends_free(&ends);
    }
    btl_engine.records_most = 0;
}

static void *close_a(void *link)
{
    return opal_btl_crypt_link_close(link, 60000) ? link : NULL;
}

/* Everything sent before the end arrives, even if nothing had been read by then. */
static void ending(void)
{
    enum { MANY = 300 };
    static opal_btl_crypt_item_t items[MANY];
    pthread_t thread;
    void *closed;
    ends_t ends;

    UNIT_GROUP("the end, behind more than the socket holds");
    tcp_open(&ends);
    for (unsigned i = 0; i < MANY; i++) {
        fragment_make(&items[i], 1, 20000);
        opal_btl_crypt_link_post(ends.a, &items[i]);
    }
    UNIT_REQUIRE(0 == pthread_create(&thread, NULL, close_a, ends.a));
    while (OPAL_BTL_CRYPT_OPEN == ends.b->state) {
        wait_for(ends.b);
        opal_btl_crypt_link_read(ends.b);
    }
    UNIT_REQUIRE(0 == pthread_join(thread, &closed));
    UNIT_CHECK(NULL != closed && OPAL_BTL_CRYPT_ENDED == ends.b->state && MANY == ends.in_b.count);
    ends_free(&ends);
}

/* The end that leaves has more to send than the socket holds, when the other one asks for another connection. */
static void leaving(void)
{
    enum { MANY = 300 };
    static opal_btl_crypt_item_t items[MANY];
    pthread_t thread;
    void *closed;
    ends_t ends;

    UNIT_GROUP("who leaves, while the other end wants another connection");
    tcp_open(&ends);
    for (unsigned i = 0; i < MANY; i++) {
        fragment_make(&items[i], 1, 20000);
        opal_btl_crypt_link_post(ends.a, &items[i]);
    }
    btl_engine.records_most = 1;
    ends.b->records_sent = 2;
    opal_btl_crypt_link_pump(ends.b);
    UNIT_CHECK(ends.b->last_sent);
    btl_engine.records_most = 0;
    UNIT_REQUIRE(0 == pthread_create(&thread, NULL, close_a, ends.a));
    while (OPAL_BTL_CRYPT_OPEN == ends.b->state && ends.in_b.count < MANY) {
        wait_for(ends.b);
        opal_btl_crypt_link_read(ends.b);
    }
    UNIT_REQUIRE(0 == pthread_join(thread, &closed));
    UNIT_CHECK(NULL != closed && MANY == ends.in_b.count && OPAL_BTL_CRYPT_FAILED != ends.b->state);
    ends_free(&ends);
}

/* Garbage in place of a record, where the sender's socket does not seal it; and a cut. */
static void disturbed(void)
{
    static const char *const reasons[] = {"a record was changed, repeated, or left out", "the connection was cut"};
    uint8_t rubbish[100] = {23, 3, 3, 0, 95};
    ends_t ends;

    UNIT_GROUP("what does not open, and a cut");
    for (int cut = kernel_a ? 1 : 0; cut < 2; cut++) {
        tcp_open(&ends);
        if (cut) {
            UNIT_CHECK(0 == shutdown(ends.a->fd, SHUT_RDWR));
        } else {
            UNIT_CHECK((ssize_t) sizeof(rubbish) == send(ends.a->fd, rubbish, sizeof(rubbish), MSG_NOSIGNAL));
        }
        wait_for(ends.b);
        opal_btl_crypt_link_read(ends.b);
        opal_btl_crypt_link_read(ends.b);
        UNIT_CHECK(OPAL_BTL_CRYPT_FAILED == ends.b->state && 0 == strcmp(reasons[cut], ends.b->reason));
        ends_free(&ends);
    }
}

static bool kernel_can(void)
{
    bool can;
    int pair[2];

    tcp_pair(pair);
    can = 0 == setsockopt(pair[0], IPPROTO_TCP, 31 /* TCP_ULP */, "tls", sizeof("tls"));
    close(pair[0]);
    close(pair[1]);
    return can;
}

int main(int argc, char **argv)
{
    const bool demanded = 2 == argc && 0 == strcmp("kernel", argv[1]), can = kernel_can();

    UNIT_REQUIRE(can || !demanded);
    if (!can) {
        printf("this kernel has no kTLS: both ends are in user space\n");
    }
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t) (i * 7 + i / 251);
    }
    for (int bits = 128; bits <= 256; bits += 128) {
        opal_crypt_tls_t *tls = tls_of(128 == bits ? OPAL_AEAD_AES_128_GCM : OPAL_AEAD_AES_256_GCM, OPAL_CRYPT_TLS_X25519);

        UNIT_REQUIRE(NULL != tls);
        btl_start(tls);
        for (int which = 0; which < (can ? 4 : 1); which++) {
            kernel_a = 0 != (which & 1);
            kernel_b = 0 != (which & 2);
            printf("AES-%d; %s connects, %s listens\n", bits, kernel_a ? "kernel" : "user", kernel_b ? "kernel" : "user");
            lengths();
            late();
            replaced();
            ending();
            leaving();
            disturbed();
        }
        opal_btl_crypt_engine_stop(&btl_engine);
        opal_crypt_tls_destroy(tls);
    }
    return unit_done();
}
