/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One request and its answer.  See cryptfile/keystore/https.h.
 *
 *     connect --> handshake, certificate --> request --> answer, to its length or to the end of the connection
 *
 * OpenSSL reads and writes memory; the socket is ours, so that every wait ends with the caller's patience and no write
 * raises SIGPIPE.
 */
#include "https.h"
#include "https_context.h"
#include "opal/mca/common/crypt/base/fork.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { WAIT_MS = 100, WIRE_BYTES = 8192 };

/* One connection. */
typedef struct https_call {
    const opal_crypt_libssl_t *ssl;             /* NULL: without TLS */
    SSL *tls;
    BIO *in, *out;                              /* the connection's */
    int fd;
    bool ended;                                 /* the other side sends nothing more */
    opal_crypt_patience_t *patience;
    opal_crypt_why_t *why;
} https_call_t;

static int https_lost(const https_call_t *call, const char *what, int error)
{
    return 0 == opal_crypt_patience_left(call->patience)
               ? opal_crypt_refuse(call->why, OPAL_CRYPT_ERR_PEER, "keystore-vault", "there was no answer in time")
               : opal_crypt_refuse(call->why, OPAL_CRYPT_ERR_PEER, "keystore-vault", "%s: %s", what, strerror(error));
}

/* ---- the socket ---- */

static bool https_wait(const https_call_t *call, short events)
{
    struct pollfd one = {.fd = call->fd, .events = events};

    for (int64_t left; (left = opal_crypt_patience_left(call->patience)) > 0;) {
        int ready = poll(&one, 1, left < WAIT_MS ? (int) left : WAIT_MS);
        if (ready > 0 || (ready < 0 && EINTR != errno)) {
            return ready > 0;
        }
    }
    return false;
}

static int https_send(const https_call_t *call, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(call->fd, bytes, count, MSG_NOSIGNAL);
        if (sent >= 0) {
            bytes += sent;
            count -= (size_t) sent;
        } else if (EAGAIN == errno ? !https_wait(call, POLLOUT) : EINTR != errno) {
            return https_lost(call, "the connection was lost", errno);
        }
    }
    return OPAL_CRYPT_OK;
}

/* *got 0: the connection has ended.  A server that never stops sending does not outlast the caller's patience. */
static int https_receive(https_call_t *call, char *bytes, size_t max, size_t *got)
{
    for (;;) {
        ssize_t count = recv(call->fd, bytes, max, 0);
        if (count >= 0) {
            *got = (size_t) count;
            call->ended = 0 == count;
            return call->ended || opal_crypt_patience_left(call->patience) > 0 ? OPAL_CRYPT_OK : https_lost(call, "", 0);
        }
        if (EAGAIN == errno ? !https_wait(call, POLLIN) : EINTR != errno) {
            return https_lost(call, "the connection was lost", errno);
        }
    }
}

static int https_connect_to(https_call_t *call, int family, const struct sockaddr *address, socklen_t bytes)
{
    int error = 0;
    socklen_t error_bytes = sizeof(error);

    call->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (call->fd < 0) {
        return errno;
    }
    if (0 != connect(call->fd, address, bytes)) {
        error = errno;
        if (EINPROGRESS == error) {
            error = !https_wait(call, POLLOUT) ? ETIMEDOUT
                    : 0 != getsockopt(call->fd, SOL_SOCKET, SO_ERROR, &error, &error_bytes) ? errno : error;
        }
    }
    if (0 != error) {
        close(call->fd);
        call->fd = -1;
    }
    return error;
}

/* Each address gets its share of the time, as one may not answer at all. */
static int https_connect_host(https_call_t *call, const opal_cryptfile_https_to_t *to)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    opal_crypt_patience_t *patience = call->patience, share;
    int left = 0, error = getaddrinfo(to->host, to->port, &hints, &found);

    if (0 != error) {
        return opal_crypt_refuse(call->why, EAI_AGAIN == error ? OPAL_CRYPT_ERR_PEER : OPAL_CRYPT_ERR_CONFIG, "keystore-vault",
                                 "its name is not found: %s", gai_strerror(error));
    }
    for (const struct addrinfo *one = found; NULL != one; one = one->ai_next) {
        ++left;
    }
    for (const struct addrinfo *one = found; NULL != one && call->fd < 0; one = one->ai_next, --left) {
        const int64_t given = opal_crypt_patience_left(patience) / left;
        share = opal_crypt_patience(given);
        call->patience = &share;
        error = https_connect_to(call, one->ai_family, one->ai_addr, one->ai_addrlen);
        patience->left -= given - opal_crypt_patience_left(&share);
        patience->last = share.last;
    }
    freeaddrinfo(found);
    call->patience = patience;
    return call->fd >= 0 ? OPAL_CRYPT_OK : https_lost(call, "no connection", error);
}

/* The kernel says as whom the process runs that listens. */
static int https_connect_socket(https_call_t *call, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer = {.uid = 0};
    socklen_t bytes = sizeof(peer);

    if (strlen(path) >= sizeof(address.sun_path)) {
        return opal_crypt_refuse(call->why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "the path of the socket is too long");
    }
    strcpy(address.sun_path, path);
    int error = https_connect_to(call, AF_UNIX, (const struct sockaddr *) &address, sizeof(address));
    if (0 != error) {
        return https_lost(call, "no connection", error);
    }
    if (0 != getsockopt(call->fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) || (0 != peer.uid && geteuid() != peer.uid)) {
        return opal_crypt_refuse(call->why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault",
                                 "the process that listens there runs as user id %lu, neither root nor this user", (unsigned long) peer.uid);
    }
    return OPAL_CRYPT_OK;
}

/* ---- TLS ---- */

/* What OpenSSL has to say goes out, before anything is awaited. */
static int https_flush(const https_call_t *call)
{
    char wire[WIRE_BYTES];
    int count, rc = OPAL_CRYPT_OK;

    while (OPAL_CRYPT_OK == rc && (count = call->ssl->BIO_read(call->out, wire, sizeof(wire))) > 0) {
        rc = https_send(call, wire, (size_t) count);
    }
    return rc;
}

static int https_feed(https_call_t *call)
{
    char wire[WIRE_BYTES];
    size_t got = 0;
    int rc = https_receive(call, wire, sizeof(wire), &got);

    if (OPAL_CRYPT_OK == rc && got > 0 && (int) got != call->ssl->BIO_write(call->in, wire, (int) got)) {
        rc = OPAL_CRYPT_ERR_MEMORY;
    }
    return rc;
}

static int https_handshake(https_call_t *call)
{
    for (;;) {
        call->ssl->ERR_clear_error();           /* SSL_get_error would take the program's errors for its own */
        opal_crypt_secret_begin();
        const int done = call->ssl->SSL_do_handshake(call->tls), error = call->ssl->SSL_get_error(call->tls, done);
        opal_crypt_secret_end();
        const long verified = call->ssl->SSL_get_verify_result(call->tls);
        int rc = https_flush(call);
        if (1 != done && X509_V_OK != verified) {
            return opal_crypt_refuse(call->why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "its certificate is not accepted: %s",
                                     call->ssl->X509_verify_cert_error_string(verified));
        }
        if (1 != done && SSL_ERROR_WANT_READ != error) {
            return opal_crypt_refuse(call->why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "the TLS handshake failed");
        }
        if (1 == done || OPAL_CRYPT_OK != rc) {
            return rc;
        }
        rc = https_feed(call);
        if (OPAL_CRYPT_OK != rc || call->ended) {
            return OPAL_CRYPT_OK != rc ? rc : https_lost(call, "the connection was lost", ECONNRESET);
        }
    }
}

static int https_put(https_call_t *call, const char *bytes, size_t count)
{
    size_t sent = 0;

    if (NULL == call->ssl) {
        return https_send(call, bytes, count);
    }
    opal_crypt_secret_begin();
    const int done = call->ssl->SSL_write_ex(call->tls, bytes, count, &sent);
    opal_crypt_secret_end();
    return 1 == done && sent == count ? https_flush(call)
                                      : opal_crypt_refuse(call->why, OPAL_CRYPT_ERR_LIBRARY, "library", "SSL_write_ex");
}

/* *got 0: nothing more comes; with TLS, the server has said so. */
static int https_get(https_call_t *call, char *bytes, size_t max, size_t *got)
{
    *got = 0;
    if (NULL == call->ssl) {
        return https_receive(call, bytes, max, got);
    }
    for (;;) {
        call->ssl->ERR_clear_error();
        opal_crypt_secret_begin();
        const int done = call->ssl->SSL_read_ex(call->tls, bytes, max, got), error = call->ssl->SSL_get_error(call->tls, done);
        opal_crypt_secret_end();
        if (1 == done || SSL_ERROR_ZERO_RETURN == error) {
            return OPAL_CRYPT_OK;
        }
        if (SSL_ERROR_WANT_READ != error) {
            return opal_crypt_refuse(call->why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "the server has refused the connection");
        }
        int rc = https_flush(call);
        rc = OPAL_CRYPT_OK == rc ? https_feed(call) : rc;
        if (OPAL_CRYPT_OK != rc || call->ended) {
            return OPAL_CRYPT_OK != rc ? rc : https_lost(call, "the answer was cut short", ECONNRESET);
        }
    }
}

/* ---- an answer ---- */

/* The value of Content-Length; SIZE_MAX: there is none, or it is no number. */
static size_t https_length(const char *head, const char *end)
{
    static const char name[] = "\r\ncontent-length:";
    const size_t bytes = sizeof(name) - 1;

    for (const char *at = head; (size_t) (end - at) > bytes; ++at) {
        if (0 == strncasecmp(at, name, bytes)) {
            at += bytes + strspn(at + bytes, " \t");
            const size_t digits = strspn(at, "0123456789");
            return 0 == digits || digits > 9 ? SIZE_MAX : strtoul(at, NULL, 10);
        }
    }
    return SIZE_MAX;
}

bool opal_cryptfile_https_split(opal_cryptfile_https_answer_t *answer, size_t got, bool ended)
{
    char *head = answer->bytes;

    head[got] = '\0';                                   /* the caller leaves space for it */
    char *body = strstr(head, "\r\n\r\n");
    if (NULL == body || 0 != strncmp(head, "HTTP/1.", 7) || 1 != strspn(head + 7, "01") || ' ' != head[8] || 3 != strspn(head + 9, "0123456789")) {
        return false;
    }
    answer->status = (unsigned) strtoul(head + 9, NULL, 10);
    answer->body = body + 4;
    answer->body_bytes = got - (size_t) (answer->body - head);
    const size_t length = https_length(head, answer->body);
    if (SIZE_MAX == length) {
        return ended;
    }
    const bool whole = answer->body_bytes >= length;
    answer->body_bytes = whole ? length : answer->body_bytes;
    return whole;
}

static int https_answer(https_call_t *call, opal_cryptfile_https_answer_t *answer)
{
    size_t used = 0, got;

    for (;;) {
        int rc = https_get(call, answer->bytes + used, answer->max - 1 - used, &got);
        if (OPAL_CRYPT_OK != rc) {
            return rc;
        }
        used += got;
        if (opal_cryptfile_https_split(answer, used, 0 == got)) {
            return OPAL_CRYPT_OK;
        }
        if (0 == got && 0 != answer->status) {
            return https_lost(call, "the answer was cut short", ECONNRESET);
        }
        if (0 == got) {
            return opal_crypt_refuse(call->why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "the answer is not one of HTTP, or not all of it");
        }
        if (used == answer->max - 1) {
            return opal_crypt_refuse(call->why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "the answer has more than %zu bytes", answer->max - 1);
        }
    }
}

int opal_cryptfile_https_exchange(opal_cryptfile_https_t *https, const char *request, size_t bytes,
                                  opal_cryptfile_https_answer_t *answer, opal_crypt_patience_t *patience, opal_crypt_why_t *why)
{
    https_call_t call = {.ssl = https->ssl, .fd = -1, .patience = patience, .why = why};

    if (opal_crypt_forked() || (NULL != call.ssl && opal_crypt_library_ended())) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_FORKED, "library", "a forked child, or a program that ends, asks no key server");
    }
    int rc = NULL != https->to->socket ? https_connect_socket(&call, https->to->socket) : https_connect_host(&call, https->to);
    if (OPAL_CRYPT_OK == rc && NULL != call.ssl) {
        call.tls = opal_cryptfile_https_ssl(https, &call.in, &call.out);
        rc = NULL == call.tls ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "SSL_new") : https_handshake(&call);
    }
    answer->sent = OPAL_CRYPT_OK == rc;
    rc = OPAL_CRYPT_OK == rc ? https_put(&call, request, bytes) : rc;
    rc = OPAL_CRYPT_OK == rc ? https_answer(&call, answer) : rc;
    if (NULL != call.tls) {
        opal_crypt_libssl_free(call.ssl, call.tls);
        call.ssl->ERR_clear_error();
    }
    if (call.fd >= 0) {
        close(call.fd);
    }
    return rc;
}
