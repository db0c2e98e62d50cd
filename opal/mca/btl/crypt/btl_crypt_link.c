/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A connection from its socket to its end: the handshake, hello, close_notify.
 *
 * During the handshake we read exactly what it asks for, so that no later record is in our hands when something else,
 * such as a kernel, is to open it.
 */
#include "btl_crypt_link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "opal/mca/common/crypt/base/patience.h"

/* ---- engine ---- */

/* Without memory for a team there are no helpers. */
static void start_team(opal_btl_crypt_engine_t *engine)
{
    const unsigned helpers = engine->threads < OPAL_CRYPT_TEAM_MAX ? engine->threads - 1 : OPAL_CRYPT_TEAM_MAX - 1;

    engine->team = NULL;
    engine->sealing = engine->opening = NULL;
    if (engine->threads > 1 && OPAL_CRYPT_OK == opal_crypt_team_create(helpers, false, &engine->team)) {
        engine->sealing = opal_crypt_share_create(engine->team, helpers);
        engine->opening = opal_crypt_share_create(engine->team, helpers);
    }
}

static void stop_team(opal_btl_crypt_engine_t *engine)
{
    opal_crypt_share_destroy(engine->sealing);
    opal_crypt_share_destroy(engine->opening);
    opal_crypt_team_destroy(engine->team);
}

enum { PAGE = 4096 };

uint8_t *opal_btl_crypt_spares_take(opal_btl_crypt_spares_t *spares, size_t bytes)
{
    void *fresh;

    if (spares->count > 0) {
        return spares->bytes[--spares->count];
    }
    return 0 == posix_memalign(&fresh, PAGE, bytes) ? fresh : NULL;
}

void opal_btl_crypt_spares_give(opal_btl_crypt_spares_t *spares, uint8_t *bytes)
{
    if (spares->count < OPAL_BTL_CRYPT_SPARES) {
        spares->bytes[spares->count++] = bytes;
    } else {
        free(bytes);
    }
}

static void spares_free(opal_btl_crypt_spares_t *spares)
{
    while (spares->count > 0) {
        free(spares->bytes[--spares->count]);
    }
}

bool opal_btl_crypt_engine_start(opal_btl_crypt_engine_t *engine)
{
    engine->wire = opal_btl_crypt_spares_take(&(opal_btl_crypt_spares_t) {.count = 0}, OPAL_BTL_CRYPT_WIRE);
    if (NULL != engine->wire) {
        start_team(engine);
    }
    return NULL != engine->wire;
}

void opal_btl_crypt_engine_stop(opal_btl_crypt_engine_t *engine)
{
    spares_free(&engine->frames);
    spares_free(&engine->rings);
    if (NULL != engine->wire) {
        stop_team(engine);
    }
    free(engine->wire);
    engine->wire = NULL;
}

/* ---- beginning ---- */

static opal_btl_crypt_link_t *link_make(opal_btl_crypt_engine_t *engine, int fd, opal_btl_crypt_state_t state, bool listens)
{
    opal_btl_crypt_link_t *link = calloc(1, sizeof(*link));
    const int yes = 1;

    if (NULL == link) {
        close(fd);
        return NULL;
    }
    link->engine = engine;
    link->fd = fd;
    link->state = state;
    link->listens = listens;
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));     /* fails on a socket pair, harmlessly */
    return link;
}

static opal_btl_crypt_link_t *begun(opal_btl_crypt_link_t *link, int rc)
{
    if (OPAL_CRYPT_OK != rc) {
        opal_btl_crypt_link_destroy(link);
        return NULL;
    }
    return link;
}

opal_btl_crypt_link_t *opal_btl_crypt_link_connect(opal_btl_crypt_engine_t *engine, int fd, opal_crypt_tls_group_t group,
                                                   const opal_crypt_tls_identity_t *identity, const opal_crypt_tls_psk_t *psk)
{
    opal_btl_crypt_link_t *link = link_make(engine, fd, OPAL_BTL_CRYPT_CONNECTING, false);

    if (NULL == link) {
        return NULL;
    }
    link->wants_write = true;
    return begun(link, opal_crypt_handshake_connect(engine->tls, group, identity, psk, &link->handshake));
}

opal_btl_crypt_link_t *opal_btl_crypt_link_accept(opal_btl_crypt_engine_t *engine, int fd, opal_crypt_handshake_find_t find,
                                                  void *arg)
{
    opal_btl_crypt_link_t *link = link_make(engine, fd, OPAL_BTL_CRYPT_SHAKING, true);

    return NULL == link ? NULL
         : begun(link, opal_crypt_handshake_accept(engine->tls, &engine->own, find, arg, &link->handshake));
}

void opal_btl_crypt_link_fail(opal_btl_crypt_link_t *link, const char *reason)
{
    if (OPAL_BTL_CRYPT_FAILED != link->state) {
        link->reason = reason;
        link->state = OPAL_BTL_CRYPT_FAILED;
    }
}

void opal_btl_crypt_link_ended(opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_state_t open = OPAL_BTL_CRYPT_OPEN, hello_sent = OPAL_BTL_CRYPT_HELLO_SENT;

    if (!atomic_compare_exchange_strong(&link->state, &open, OPAL_BTL_CRYPT_ENDED)) {
        (void) atomic_compare_exchange_strong(&link->state, &hello_sent, OPAL_BTL_CRYPT_ENDED);
    }
}

/* ---- handshake ---- */

static bool full(void)
{
    return EAGAIN == errno || EWOULDBLOCK == errno;
}

/* False: not all was sent. */
static bool send_output(opal_btl_crypt_link_t *link)
{
    size_t bytes;
    const uint8_t *output = opal_crypt_handshake_output(link->handshake, &bytes);
    ssize_t sent;

    link->wants_write = false;
    while (bytes > 0) {
        sent = send(link->fd, output, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && EINTR != errno) {
            link->wants_write = full();
            if (!link->wants_write) {
                opal_btl_crypt_link_fail(link, "closed during the handshake");
            }
            return false;
        }
        opal_crypt_handshake_sent(link->handshake, sent < 0 ? 0 : (size_t) sent);
        output = opal_crypt_handshake_output(link->handshake, &bytes);
    }
    return true;
}

/* False: nothing was available. */
static bool take_input(opal_btl_crypt_link_t *link)
{
    uint8_t bytes[1024];
    const size_t wants = opal_crypt_handshake_wants(link->handshake);
    size_t taken;
    ssize_t came;

    do {
        came = recv(link->fd, bytes, wants < sizeof(bytes) ? wants : sizeof(bytes), MSG_DONTWAIT);
    } while (came < 0 && EINTR == errno);
    if (came <= 0) {
        if (0 == came || !full()) {
            opal_btl_crypt_link_fail(link, "closed during the handshake");
        }
        return false;
    }
    if (OPAL_CRYPT_OK != opal_crypt_handshake_feed(link->handshake, bytes, (size_t) came, &taken)) {
        const char *reason = opal_crypt_handshake_reason(link->handshake);

        opal_btl_crypt_link_fail(link, '\0' == *reason ? "no memory for a handshake" : reason);
    } else if (OPAL_BTL_CRYPT_SHAKING == link->state && opal_crypt_handshake_answered(link->handshake)) {
        link->identity = *opal_crypt_handshake_identity(link->handshake);
        link->state = OPAL_BTL_CRYPT_ANSWERED;
    }
    return true;
}

static void handshake_done(opal_btl_crypt_link_t *link)
{
    if (OPAL_CRYPT_OK != opal_crypt_handshake_records(link->handshake, link->engine->aead, &link->records)) {
        opal_btl_crypt_link_fail(link, "no keys for the records");
        return;
    }
    link->identity = *opal_crypt_handshake_identity(link->handshake);
    opal_crypt_handshake_destroy(link->handshake);
    link->handshake = NULL;
    opal_crypt_tls_records_share(link->records, link->engine->sealing, link->engine->opening);
    opal_btl_crypt_kernel_takes(link);
    link->state = OPAL_BTL_CRYPT_AUTHENTICATED;
}

static void connected(opal_btl_crypt_link_t *link)
{
    int error = 0;
    socklen_t bytes = sizeof(error);

    if (0 != getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &bytes) || 0 != error) {
        opal_btl_crypt_link_fail(link, "nobody answers there");
    } else {
        link->state = OPAL_BTL_CRYPT_SHAKING;
    }
}

void opal_btl_crypt_link_drive(opal_btl_crypt_link_t *link)
{
    if (OPAL_BTL_CRYPT_CONNECTING == link->state) {
        connected(link);
    }
    while ((OPAL_BTL_CRYPT_SHAKING == link->state || OPAL_BTL_CRYPT_ANSWERED == link->state) && send_output(link)) {
        if (OPAL_CRYPT_HANDSHAKE_DONE == opal_crypt_handshake_state(link->handshake)) {
            handshake_done(link);
        } else if (!take_input(link)) {
            break;
        }
    }
}

/* ---- hello ---- */

/* The client is OPEN only after the other end's hello. */
void opal_btl_crypt_link_send_hello(opal_btl_crypt_link_t *link)
{
    const opal_btl_crypt_frame_t frame = {.type = OPAL_BTL_CRYPT_HELLO, .kernel = link->kernel_in};

    opal_btl_crypt_item_make(&link->hello, &frame, NULL, 0);
    link->state = link->listens ? OPAL_BTL_CRYPT_OPEN : OPAL_BTL_CRYPT_HELLO_SENT;
    if (!opal_btl_crypt_link_post(link, &link->hello)) {
        opal_btl_crypt_link_fail(link, "a socket that takes no hello");
    }
}

/* Read and discard.  Returns 1 if something came, 0 if nothing is available, -1 if nothing more will come. */
static int swallow(const opal_btl_crypt_link_t *link)
{
    opal_crypt_tls_record_kind_t kind = OPAL_CRYPT_TLS_RECORD_DATA;
    uint8_t bytes[4096];                        /* callable on any thread's stack */
    struct iovec piece = {bytes, sizeof(bytes)};
    ssize_t came;

    do {
        came = link->kernel_in ? opal_crypt_tls_kernel_read(link->fd, &piece, 1, &kind)
                               : recv(link->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    } while (came < 0 && EINTR == errno);
    if (came > 0 || OPAL_CRYPT_TLS_RECORD_CLOSED == kind) {
        return 1;
    }
    return came < 0 && full() ? 0 : -1;
}

/* Wait, at the end of a connection, until the socket is writable.  Input is discarded: two ends that close would
 * otherwise wait for each other to read, and block for ever.  False: timed out. */
static bool wait_writable(opal_btl_crypt_link_t *link, opal_crypt_patience_t *patience)
{
    enum { SLICE_MS = 100 };
    struct pollfd ready = {.fd = link->fd, .events = POLLIN | POLLOUT};

    for (;;) {
        const int64_t left = opal_crypt_patience_left(patience);
        const int rc = poll(&ready, 1, (int) (left < SLICE_MS ? left : SLICE_MS)), error = errno;

        if (1 == rc && 0 != (ready.revents & POLLOUT)) {
            return true;
        }
        if (1 == rc && swallow(link) < 0) {
            link->peer_closed = true;
            return true;
        }
        if (0 == left || (rc < 0 && EINTR != error)) {
            return false;
        }
    }
}

static bool kernel_says_end(opal_btl_crypt_link_t *link, opal_crypt_patience_t *patience)
{
    while (!opal_btl_crypt_kernel_end(link)) {
        if (!full() && EINTR != errno) {
            return true;                        /* the peer has gone, and needs none */
        }
        if (!wait_writable(link, patience)) {
            return false;
        }
    }
    return true;
}

/* False: not sent.  The peer then sees a connection that was cut. */
static bool say_end(opal_btl_crypt_link_t *link, opal_crypt_patience_t *patience)
{
    uint8_t wire[OPAL_CRYPT_TLS_RECORD_CLOSE];
    size_t sent = 0;
    ssize_t now;

    if (link->kernel_out) {
        return kernel_says_end(link, patience);
    }
    if (OPAL_CRYPT_OK != opal_crypt_tls_records_close(link->records, wire)) {
        return false;
    }
    while (sent < sizeof(wire)) {
        now = send(link->fd, wire + sent, sizeof(wire) - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (now >= 0) {
            sent += (size_t) now;
        } else if (EINTR == errno) {
            continue;
        } else if (!full()) {
            return true;                        /* the peer has gone, and needs none */
        } else if (!wait_writable(link, patience)) {
            return false;
        }
    }
    return true;
}

/* ---- end ---- */

/* Discard what the other end sent and nobody will read.  If it stays, close sends a reset, and the other end may lose
 * our close_notify and what came before it.  At most 256 MiB, more than sockets hold: a peer that goes on sending has
 * not left, and has no claim to the rest. */
static void drain(opal_btl_crypt_link_t *link)
{
    enum { READS_MOST = 65536 };

    (void) shutdown(link->fd, SHUT_WR);
    for (int i = 0; i < READS_MOST && swallow(link) > 0; i++) {
    }
}

void opal_btl_crypt_link_decline(opal_btl_crypt_link_t *link)
{
    opal_crypt_patience_t none = {.left = 0};

    (void) say_end(link, &none);
    drain(link);
    link->state = OPAL_BTL_CRYPT_ENDED;
}

/* Once the peer has closed, do not wait for its side of the shutdown. */
bool opal_btl_crypt_link_close(opal_btl_crypt_link_t *link, int milliseconds)
{
    opal_crypt_patience_t patience = opal_crypt_patience(milliseconds);
    bool said = true;

    if (OPAL_BTL_CRYPT_OPEN != link->state) {
        return OPAL_BTL_CRYPT_FAILED != link->state;
    }
    link->closing = true;
    for (opal_btl_crypt_link_pump(link); opal_btl_crypt_link_has_more(link); opal_btl_crypt_link_pump(link)) {
        if (!wait_writable(link, &patience)) {
            return false;
        }
    }
    if (OPAL_BTL_CRYPT_FAILED != link->state && !link->peer_closed) {
        said = link->last_sent || say_end(link, &patience);
        drain(link);
    }
    return said && OPAL_BTL_CRYPT_FAILED != link->state && (link->peer_closed || NULL == link->queue.first);
}

void opal_btl_crypt_link_destroy(opal_btl_crypt_link_t *link)
{
    if (NULL == link) {
        return;
    }
    opal_crypt_handshake_destroy(link->handshake);
    opal_crypt_tls_records_destroy(link->records);
    if (NULL != link->ring.bytes) {
        link->engine->ring_bytes -= link->ring.capacity;
        free(link->ring.bytes);
    }
    free(link->rest);
    free(link->frame);
    close(link->fd);
    free(link);
}
