/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A client without a key gets no answer, is one of at most 64, and is dropped after 2 seconds in which
 * we polled.  A client whose hello only a process of the job can have made is not one of these, and has
 * more time.
 */
#include "btl_ends.h"

#include <netinet/in.h>
#include <sys/resource.h>

static unsigned opened, closed;

static void on_opened(opal_btl_crypt_link_t *link)
{
    opened++;
    UNIT_CHECK(OPAL_BTL_CRYPT_SHAKING == link->state);
}

static void on_closing(opal_btl_crypt_link_t *link)
{
    closed++;
    UNIT_CHECK(OPAL_BTL_CRYPT_OPEN != link->state);
}

static job_t job;
static opal_btl_crypt_listener_t listener;

static void listener_make(void)
{
    listener = (opal_btl_crypt_listener_t) {.engine = &btl_engine, .fd = -1, .find = job_find, .arg = &job,
                                            .opened = on_opened, .closing = on_closing};
    job = (job_t) {.psk = tls_psk(PSK)};
    opened = closed = 0;
}

/* The next end of a pair, whose other one is a stranger. */
static int unauthenticated_end(void)
{
    int pair[2];

    btl_pair(pair);
    opal_btl_crypt_listen_add(&listener, pair[1]);
    return pair[0];
}

/* 0: it was closed; -1: it is open, and nothing arrived. */
static ssize_t answer(int fd)
{
    char byte;
    const ssize_t came = recv(fd, &byte, 1, MSG_DONTWAIT);

    return came < 0 && EAGAIN != errno && EWOULDBLOCK != errno ? 0 : came;
}

static void what_they_say(void)
{
    static const char *const says[] = {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x08\x01 more than is allowed",
                                       "\x17\x03\x03\x00\x20 a record of data", "OPAL-TCP-BTL"};
    const opal_crypt_tls_identity_t identity = tls_identity();
    const opal_crypt_tls_psk_t psk = tls_psk(PSK + 1);
    opal_crypt_handshake_t *client;
    flight_t flight;

    UNIT_GROUP("nothing that is no hello is answered, and no object of OpenSSL is made for it");
    listener_make();
    for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
        const int fd = unauthenticated_end();

        UNIT_CHECK(0 < send(fd, says[i], 5 + strlen(says[i] + 5), MSG_NOSIGNAL));
        opal_btl_crypt_link_drive(listener.unauthenticated.links[0]);
        UNIT_CHECK(OPAL_BTL_CRYPT_FAILED == listener.unauthenticated.links[0]->state && 0 == job.asked);
        opal_btl_crypt_listen_stop(&listener);
        UNIT_CHECK(0 == answer(fd));
        close(fd);
    }
    UNIT_GROUP("a hello of the right form, under another key, byte by byte, and with every byte changed");
    for (size_t at = 0; at < 2; at++) {
        const int fd = unauthenticated_end();

        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_handshake_connect(btl_engine.tls, tls_group, &identity, &psk, &client));
        flight = tls_output(client);
        for (size_t i = 0; i < flight.bytes; i += 0 == at ? 1 : flight.bytes) {
            UNIT_CHECK(0 < send(fd, flight.data + i, 0 == at ? 1 : flight.bytes, MSG_NOSIGNAL));
            opal_btl_crypt_link_drive(listener.unauthenticated.links[0]);
        }
        UNIT_CHECK(OPAL_BTL_CRYPT_FAILED == listener.unauthenticated.links[0]->state && at + 1 == job.asked);
        UNIT_CHECK(-1 == answer(fd));
        opal_btl_crypt_listen_stop(&listener);
        opal_crypt_handshake_destroy(client);
        close(fd);
    }
    for (size_t at = 0; at < flight.bytes; at++) {
        const int fd = unauthenticated_end();

        flight.data[at] ^= 0x20;
        UNIT_CHECK(0 < send(fd, flight.data, flight.bytes, MSG_NOSIGNAL));
        flight.data[at] ^= 0x20;
        opal_btl_crypt_link_drive(listener.unauthenticated.links[0]);
        UNIT_CHECK(OPAL_BTL_CRYPT_FAILED == listener.unauthenticated.links[0]->state || 3 == at || 4 == at);
        UNIT_CHECK(-1 == answer(fd));
        opal_btl_crypt_listen_stop(&listener);
        close(fd);
    }
}

static void how_many(void)
{
    int fds[OPAL_BTL_CRYPT_UNAUTHENTICATED + 10];

    UNIT_GROUP("64, the oldest goes first");
    listener_make();
    for (int i = 0; i < OPAL_BTL_CRYPT_UNAUTHENTICATED + 10; i++) {
        fds[i] = unauthenticated_end();
        UNIT_CHECK(listener.unauthenticated.count == (i < OPAL_BTL_CRYPT_UNAUTHENTICATED ? i + 1 : OPAL_BTL_CRYPT_UNAUTHENTICATED));
    }
    for (int i = 0; i < OPAL_BTL_CRYPT_UNAUTHENTICATED + 10; i++) {
        UNIT_CHECK((i < 10 ? 0 : -1) == answer(fds[i]));
    }
    UNIT_CHECK(OPAL_BTL_CRYPT_UNAUTHENTICATED + 10 == opened && 10 == closed);

    UNIT_GROUP("2 seconds, without those in which nobody polled");
    listener.last = 0;
    for (uint64_t at = 5000; at <= OPAL_BTL_CRYPT_UNAUTHENTICATED_US; at += 5000) {
        opal_btl_crypt_listen_poll(&listener, at);
    }
    opal_btl_crypt_listen_poll(&listener, UINT64_C(3600000000));       /* an hour of computing */
    UNIT_CHECK(0 == listener.unauthenticated.count && OPAL_BTL_CRYPT_UNAUTHENTICATED + 10 == closed);
    listener_make();
    close(unauthenticated_end());
    for (int i = 1; i <= 100; i++) {
        opal_btl_crypt_listen_poll(&listener, UINT64_C(3600000000) * (uint64_t) i);
    }
    UNIT_CHECK(1 == listener.unauthenticated.count);
    opal_btl_crypt_listen_stop(&listener);
    UNIT_CHECK(0 == listener.unauthenticated.count && 1 == closed);
    for (int i = 0; i < OPAL_BTL_CRYPT_UNAUTHENTICATED + 10; i++) {
        close(fds[i]);
    }
}

/* Through a real socket, while others flood. */
static void whom_we_know(void)
{
    opal_btl_crypt_addresses_t own = {.count = 1, .list = {{.family = 4, .prefix = 8, .bytes = {127, 0, 0, 1}}}};
    const struct sockaddr_in nothing = {.sin_family = AF_INET};
    struct sockaddr_storage address;
    opal_btl_crypt_link_t *client, *server;
    inbox_t inbox = {0};
    socklen_t bytes;
    int fd, flood[100];
    uint16_t port;

    UNIT_GROUP("a listening socket: who knows the key gets in, and no stranger gets that one out");
    listener_make();
    UNIT_CHECK(-1 == opal_btl_crypt_listen_at(65536, 1, &port));
    listener.fd = opal_btl_crypt_listen_at(0, 1, &own.port);
    UNIT_REQUIRE(listener.fd >= 0 && 0 != own.port);
    UNIT_CHECK(-1 == opal_btl_crypt_listen_at(own.port, 1, &port));
    fd = opal_btl_crypt_listen_at(own.port, 65536, &port);
    UNIT_CHECK(fd >= 0 && port > own.port);
    close(fd);

    listener.own = &own;
    bytes = opal_btl_crypt_address_socket(&own, 0, &address);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    UNIT_REQUIRE(0 == connect(fd, (struct sockaddr *) &address, bytes));
    UNIT_REQUIRE(0 == fcntl(fd, F_SETFL, O_NONBLOCK));
    client = btl_client(fd, PSK);
    client->owner = &inbox;
    opal_btl_crypt_listen_accept(&listener);
    UNIT_REQUIRE(1 == listener.unauthenticated.count);
    server = listener.unauthenticated.links[0];
    server->owner = &inbox;
    for (int i = 0; i < 1000 && OPAL_BTL_CRYPT_AUTHENTICATED != server->state; i++) {
        opal_btl_crypt_link_drive(client);
        opal_btl_crypt_link_drive(server);
    }
    UNIT_REQUIRE(OPAL_BTL_CRYPT_AUTHENTICATED == server->state && OPAL_BTL_CRYPT_AUTHENTICATED == client->state);
    opal_btl_crypt_listen_remove(&listener, server);
    opal_btl_crypt_link_send_hello(server);
    opal_btl_crypt_link_send_hello(client);
    for (int i = 0; i < 100; i++) {
        flood[i] = unauthenticated_end();
    }
    for (int i = 0; i < 1000 && OPAL_BTL_CRYPT_OPEN != client->state; i++) {
        opal_btl_crypt_link_read(client);
    }
    UNIT_CHECK(OPAL_BTL_CRYPT_OPEN == client->state && OPAL_BTL_CRYPT_OPEN == server->state);
    UNIT_CHECK(OPAL_BTL_CRYPT_UNAUTHENTICATED == listener.unauthenticated.count);

    UNIT_GROUP("who comes by an address that we did not publish is not heard");
    own.list[0].bytes[3] = 2;
    fd = socket(AF_INET, SOCK_STREAM, 0);
    UNIT_REQUIRE(0 == connect(fd, (struct sockaddr *) &address, bytes));
    opened = 0;
    opal_btl_crypt_listen_accept(&listener);
    UNIT_CHECK(0 == opened && !opal_btl_crypt_address_is_in(&own, (const struct sockaddr *) &nothing));
    close(fd);
    for (int i = 0; i < 100; i++) {
        close(flood[i]);
    }
    opal_btl_crypt_listen_stop(&listener);
    opal_btl_crypt_link_destroy(client);
    opal_btl_crypt_link_destroy(server);
}

/* A client whose hello was answered, and that goes no further.  *server is the listener's end. */
static opal_btl_crypt_link_t *caller(opal_btl_crypt_link_t **server)
{
    int pair[2];
    opal_btl_crypt_link_t *client;

    btl_pair(pair);
    client = btl_client(pair[0], PSK);
    UNIT_REQUIRE(NULL != client);
    opal_btl_crypt_link_drive(client);
    opal_btl_crypt_listen_add(&listener, pair[1]);
    *server = listener.unauthenticated.links[listener.unauthenticated.count - 1];
    opal_btl_crypt_link_drive(*server);
    UNIT_REQUIRE(OPAL_BTL_CRYPT_ANSWERED == (*server)->state);
    opal_btl_crypt_listen_answered(&listener, *server);
    opal_btl_crypt_listen_answered(&listener, *server);
    return client;
}

/* A job may follow another one at once, at the same few ports. */
static void ports_again(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint16_t port, again;
    int first, client, server;
    char byte;

    UNIT_GROUP("a port whose last connection was ended here");
    first = opal_btl_crypt_listen_at(0, 1, &port);
    UNIT_REQUIRE(first >= 0);
    to.sin_port = htons(port);
    client = socket(AF_INET, SOCK_STREAM, 0);
    UNIT_REQUIRE(0 == connect(client, (const struct sockaddr *) &to, sizeof(to)));
    server = accept(first, NULL, NULL);
    UNIT_REQUIRE(server >= 0);
    close(server);
    UNIT_CHECK(0 == read(client, &byte, 1));
    close(client);
    close(first);
    first = opal_btl_crypt_listen_at(port, 1, &again);
    UNIT_CHECK(first >= 0 && port == again);
    UNIT_CHECK(-1 == opal_btl_crypt_listen_at(port, 1, &again) && EADDRINUSE == errno);
    close(first);
}

static void who_was_answered(void)
{
    opal_btl_crypt_link_t *client, *server, *second, *its;
    int flood[100];

    UNIT_GROUP("who was answered may compute for a minute, whoever floods meanwhile");
    listener_make();
    client = caller(&server);
    UNIT_CHECK(0 == listener.unauthenticated.count && 1 == listener.half_open.count);
    for (int i = 0; i < 100; i++) {
        flood[i] = unauthenticated_end();
    }
    for (uint64_t at = 5000; at <= UINT64_C(60000000); at += 5000) {
        opal_btl_crypt_listen_poll(&listener, at);
    }
    UNIT_CHECK(0 == listener.unauthenticated.count && 100 == closed && 1 == listener.half_open.count);
    for (int i = 0; i < 8 && OPAL_BTL_CRYPT_AUTHENTICATED != server->state; i++) {
        opal_btl_crypt_link_drive(client);
        opal_btl_crypt_link_drive(server);
    }
    UNIT_CHECK(OPAL_BTL_CRYPT_AUTHENTICATED == server->state && OPAL_BTL_CRYPT_AUTHENTICATED == client->state);
    opal_btl_crypt_listen_remove(&listener, server);
    UNIT_CHECK(0 == listener.half_open.count && 100 == closed);
    opal_btl_crypt_link_destroy(client);
    opal_btl_crypt_link_destroy(server);
    for (int i = 0; i < 100; i++) {
        close(flood[i]);
    }

    UNIT_GROUP("of one name the last one stays");
    listener_make();
    client = caller(&server);
    second = caller(&its);
    UNIT_CHECK(1 == listener.half_open.count && its == listener.half_open.links[0] && 1 == closed);
    opal_btl_crypt_link_drive(client);
    opal_btl_crypt_link_drive(client);
    opal_btl_crypt_link_drive(second);
    UNIT_CHECK(OPAL_BTL_CRYPT_FAILED == client->state && OPAL_BTL_CRYPT_AUTHENTICATED == second->state);
    opal_btl_crypt_listen_stop(&listener);
    UNIT_CHECK(0 == listener.half_open.count && 2 == closed);
    opal_btl_crypt_link_destroy(client);
    opal_btl_crypt_link_destroy(second);
}

static void crowded(void)
{
    enum { RAIL = 100 };
    int ends[OPAL_BTL_CRYPT_HALF_OPEN + 1];

    UNIT_GROUP("where too many were answered, a further rail gives way to a first contact");
    listener_make();
    for (int i = 0; i <= OPAL_BTL_CRYPT_HALF_OPEN; i++) {
        opal_btl_crypt_link_t *link;

        ends[i] = unauthenticated_end();
        link = listener.unauthenticated.links[listener.unauthenticated.count - 1];
        link->identity.claimed.rank = (uint32_t) i;
        link->identity.link = RAIL == i ? 1 : 0;
        opal_btl_crypt_listen_answered(&listener, link);
    }
    UNIT_CHECK(1 == closed && OPAL_BTL_CRYPT_HALF_OPEN == listener.half_open.count);
    for (int i = 0; i < OPAL_BTL_CRYPT_HALF_OPEN; i++) {
        UNIT_CHECK((uint32_t) (i < RAIL ? i : i + 1) == listener.half_open.links[i]->identity.claimed.rank);
    }
    opal_btl_crypt_listen_stop(&listener);
    for (int i = 0; i <= OPAL_BTL_CRYPT_HALF_OPEN; i++) {
        close(ends[i]);
    }
}

/* A process without free descriptors must be able to report that; a stranger's is closed first. */
static void no_descriptors(void)
{
    opal_btl_crypt_addresses_t own = {0};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rlimit before, none;
    int fds[2];

    UNIT_GROUP("without a free file descriptor");
    listener_make();
    listener.fd = opal_btl_crypt_listen_at(0, 1, &own.port);
    UNIT_REQUIRE(listener.fd >= 0);
    to.sin_port = htons(own.port);
    for (int i = 0; i < 2; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        UNIT_REQUIRE(0 == connect(fds[i], (const struct sockaddr *) &to, sizeof(to)));
    }
    UNIT_REQUIRE(0 == getrlimit(RLIMIT_NOFILE, &before));
    none = before;
    none.rlim_cur = (rlim_t) fds[1] + 1;                /* all below are taken */
    UNIT_REQUIRE(0 == setrlimit(RLIMIT_NOFILE, &none));
    listener.polled = 5;
    opal_btl_crypt_listen_accept(&listener);
    UNIT_CHECK(0 == listener.unauthenticated.count && 6 == listener.starved_at && !opal_btl_crypt_listen_starved(&listener));
    listener.polled = 60000006;
    UNIT_CHECK(!opal_btl_crypt_listen_starved(&listener));
    listener.polled++;
    UNIT_CHECK(opal_btl_crypt_listen_starved(&listener));
    listener.polled = 7;
    opal_btl_crypt_listen_accept(&listener);
    UNIT_CHECK(6 == listener.starved_at);
    none.rlim_cur = (rlim_t) fds[1] + 2;                /* one is free, for two of them */
    UNIT_REQUIRE(0 == setrlimit(RLIMIT_NOFILE, &none));
    opal_btl_crypt_listen_accept(&listener);
    UNIT_CHECK(1 == listener.unauthenticated.count && 2 == opened && 1 == closed && 0 == listener.starved_at);
    UNIT_REQUIRE(0 == setrlimit(RLIMIT_NOFILE, &before));
    opal_btl_crypt_listen_stop(&listener);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    opal_crypt_tls_t *tls = tls_of(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_X25519);

    UNIT_REQUIRE(NULL != tls);
    btl_start(tls);
    what_they_say();
    how_many();
    whom_we_know();
    ports_again();
    who_was_answered();
    crowded();
    no_descriptors();
    opal_btl_crypt_engine_stop(&btl_engine);
    opal_crypt_tls_destroy(tls);
    return unit_done();
}
