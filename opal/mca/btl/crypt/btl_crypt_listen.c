/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Listening, and connections that are not authenticated yet.  All that an unauthenticated client can do is occupy one of 64 places for
 * 2 seconds, and have the records of processes that it names fetched and checked, at most 64 a second
 * (btl_crypt_claim.c).
 */
#include "btl_crypt_listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Time in which we did not poll does not count against a connection: longer gaps count as this much. */
enum { COUNTED_MOST_US = 10000 };

/* ---- socket ---- */

/* One socket for IPv4 and IPv6, where the system has both. */
static int open_socket(int *family)
{
    const int flags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, no = 0;
    int fd = socket(AF_INET6, flags, 0);

    *family = AF_INET6;
    if (fd >= 0 && 0 == setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no))) {
        return fd;
    }
    if (fd >= 0) {
        close(fd);
    }
    *family = AF_INET;
    return socket(AF_INET, flags, 0);
}

static int bind_to(int fd, int family, uint16_t port)
{
    const struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_ANY_INIT};
    const struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};

    return AF_INET6 == family ? bind(fd, (const struct sockaddr *) &six, sizeof(six))
                              : bind(fd, (const struct sockaddr *) &four, sizeof(four));
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t bytes = sizeof(address);

    (void) getsockname(fd, (struct sockaddr *) &address, &bytes);
    return ntohs(AF_INET6 == address.ss_family ? ((struct sockaddr_in6 *) &address)->sin6_port
                                              : ((struct sockaddr_in *) &address)->sin_port);
}

/* SO_REUSEADDR: connections of an earlier job in TIME_WAIT do not block its ports.  A clash with another process that
 * has bound the same port but does not listen yet shows when both listen. */
static int listen_there(uint16_t port)
{
    const int yes = 1;
    int family, saved, fd = open_socket(&family);

    if (fd >= 0 && 0 == setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) && 0 == bind_to(fd, family, port)
        && 0 == listen(fd, SOMAXCONN)) {
        return fd;
    }
    saved = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = saved;
    return -1;
}

int opal_btl_crypt_listen_at(unsigned min, unsigned range, uint16_t *port)
{
    int fd = -1;

    errno = EINVAL;
    for (unsigned at = min; fd < 0 && at <= UINT16_MAX && (at == min || at - min < range); at++) {
        fd = listen_there((uint16_t) at);
        if (fd < 0 && EADDRINUSE != errno && EACCES != errno) {
            break;
        }
    }
    if (fd >= 0) {
        *port = port_of(fd);
    }
    return fd;
}

/* ---- unauthenticated and half-open connections ---- */

static bool links_remove(opal_btl_crypt_links_t *links, const opal_btl_crypt_link_t *link)
{
    for (int i = 0; i < links->count; i++) {
        if (link == links->links[i]) {
            --links->count;
            memmove(links->links + i, links->links + i + 1, (size_t) (links->count - i) * sizeof(links->links[0]));
            return true;
        }
    }
    return false;
}

static void drop(opal_btl_crypt_listener_t *listener, opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_listen_remove(listener, link);
    listener->closing(link);
    opal_btl_crypt_link_destroy(link);
}

/* The oldest, but a first contact only where there is no further rail. */
static opal_btl_crypt_link_t *dispensable(const opal_btl_crypt_links_t *links)
{
    for (int i = 0; i < links->count; i++) {
        if (links->links[i]->identity.link > 0) {
            return links->links[i];
        }
    }
    return links->links[0];
}

static void links_add(opal_btl_crypt_listener_t *listener, opal_btl_crypt_links_t *links, int most, opal_btl_crypt_link_t *link)
{
    if (most == links->count) {
        drop(listener, dispensable(links));
    }
    links->links[links->count++] = link;
}

void opal_btl_crypt_listen_remove(opal_btl_crypt_listener_t *listener, opal_btl_crypt_link_t *link)
{
    if (!links_remove(&listener->unauthenticated, link)) {
        (void) links_remove(&listener->half_open, link);
    }
}

void opal_btl_crypt_listen_add(opal_btl_crypt_listener_t *listener, int fd)
{
    opal_btl_crypt_link_t *link = opal_btl_crypt_link_accept(listener->engine, fd, listener->find, listener->arg);

    if (NULL != link) {
        link->born = listener->polled;
        links_add(listener, &listener->unauthenticated, OPAL_BTL_CRYPT_UNAUTHENTICATED, link);
        listener->opened(link);
    }
}

static opal_btl_crypt_link_t *caller_of(const opal_btl_crypt_links_t *callers, const opal_crypt_tls_name_t *name, uint16_t number)
{
    for (int i = 0; i < callers->count; i++) {
        const opal_crypt_tls_identity_t *identity = &callers->links[i]->identity;

        if (number == identity->link && opal_crypt_tls_name_equal(&identity->claimed, name)) {
            return callers->links[i];
        }
    }
    return NULL;
}

void opal_btl_crypt_listen_forget(opal_btl_crypt_listener_t *listener, const opal_crypt_tls_name_t *name, uint16_t number)
{
    opal_btl_crypt_link_t *link = caller_of(&listener->half_open, name, number);

    if (NULL != link) {
        drop(listener, link);
    }
}

void opal_btl_crypt_listen_answered(opal_btl_crypt_listener_t *listener, opal_btl_crypt_link_t *link)
{
    const opal_crypt_tls_identity_t *identity = &link->identity;

    if (link == caller_of(&listener->half_open, &identity->claimed, identity->link)) {
        return;
    }
    opal_btl_crypt_listen_forget(listener, &identity->claimed, identity->link);
    (void) links_remove(&listener->unauthenticated, link);
    links_add(listener, &listener->half_open, OPAL_BTL_CRYPT_HALF_OPEN, link);
}

static bool came_to_ours(const opal_btl_crypt_listener_t *listener, int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t bytes = sizeof(address);

    return NULL == listener->own || (0 == getsockname(fd, (struct sockaddr *) &address, &bytes)
                                     && opal_btl_crypt_address_is_in(listener->own, (const struct sockaddr *) &address));
}

/* accept looks for a free descriptor before it looks for a connection. */
static bool somebody_waits(int fd)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};

    return 1 == poll(&readable, 1, 0);
}

void opal_btl_crypt_listen_accept(opal_btl_crypt_listener_t *listener)
{
    for (int i = 0; i < OPAL_BTL_CRYPT_ACCEPTS; i++) {
        const int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            listener->starved_at = 0;
            if (came_to_ours(listener, fd)) {
                opal_btl_crypt_listen_add(listener, fd);
            } else {
                close(fd);
            }
        } else if (EMFILE == errno || ENFILE == errno) {
            if (!somebody_waits(listener->fd)) {
                break;
            }
            if (0 == listener->unauthenticated.count) {
                listener->starved_at = 0 == listener->starved_at ? listener->polled + 1 : listener->starved_at;
                break;
            }
            drop(listener, listener->unauthenticated.links[0]);
        } else if (EINTR != errno && ECONNABORTED != errno) {
            break;
        }
    }
}

bool opal_btl_crypt_listen_starved(const opal_btl_crypt_listener_t *listener)
{
    enum { MOST_US = 60000000 };

    return 0 != listener->starved_at && listener->polled > listener->starved_at + MOST_US;
}

void opal_btl_crypt_listen_poll(opal_btl_crypt_listener_t *listener, uint64_t now)
{
    const uint64_t passed = now - listener->last;

    listener->last = now;
    listener->polled += passed < COUNTED_MOST_US ? passed : COUNTED_MOST_US;
    while (listener->unauthenticated.count > 0
           && listener->polled - listener->unauthenticated.links[0]->born > OPAL_BTL_CRYPT_UNAUTHENTICATED_US) {
        drop(listener, listener->unauthenticated.links[0]);
    }
}

void opal_btl_crypt_listen_stop(opal_btl_crypt_listener_t *listener)
{
    while (listener->unauthenticated.count > 0) {
        drop(listener, listener->unauthenticated.links[0]);
    }
    while (listener->half_open.count > 0) {
        drop(listener, listener->half_open.links[0]);
    }
    if (listener->fd >= 0) {
        close(listener->fd);
        listener->fd = -1;
    }
}
