/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The listening socket, and the connections to it that are not authenticated yet.
 *
 *     unauthenticated  from anybody who can reach the port: at most 64, none for long; the oldest is dropped first
 *     half-open        their hello was answered; only a process of the job can have made it, and each is answered only
 *                      once.  They may compute before they go on, so they have time; one per name and link
 *
 * Threads: one at a time.
 */
#ifndef OPAL_BTL_CRYPT_LISTEN_H
#define OPAL_BTL_CRYPT_LISTEN_H

#include "btl_crypt_address.h"
#include "btl_crypt_link.h"

#define OPAL_BTL_CRYPT_UNAUTHENTICATED        64
#define OPAL_BTL_CRYPT_HALF_OPEN          256                    /* each holds an OpenSSL object */
#define OPAL_BTL_CRYPT_UNAUTHENTICATED_US      UINT64_C(2000000)      /* of time in which we polled */
#define OPAL_BTL_CRYPT_ACCEPTS          16                     /* in one call: others need progress, too */

/* Oldest first. */
typedef struct opal_btl_crypt_links {
    opal_btl_crypt_link_t *links[OPAL_BTL_CRYPT_HALF_OPEN];
    int count;
} opal_btl_crypt_links_t;

typedef struct opal_btl_crypt_listener {
    opal_btl_crypt_engine_t *engine;
    int fd;                                             /* -1: none */
    const opal_btl_crypt_addresses_t *own;              /* others refuse connections; NULL: all accept */
    opal_crypt_handshake_find_t find;
    void *arg;
    void (*opened)(opal_btl_crypt_link_t *link);        /* SHAKING: watch it; it may have FAILED when this returns */
    void (*closing)(opal_btl_crypt_link_t *link);       /* stop watching it; it is destroyed afterwards */

    opal_btl_crypt_links_t unauthenticated, half_open;
    uint64_t polled;                                    /* microseconds, of our own clock */
    uint64_t last;
    uint64_t starved_at;                                /* no file descriptor has been free since then; 0: one is */
} opal_btl_crypt_listener_t;

/* A socket at the first free port of the range, stored in *port; min 0: any port.  -1: see errno. */
int opal_btl_crypt_listen_at(unsigned min, unsigned range, uint16_t *port);

/* The socket is readable: accept all that wait, or OPAL_BTL_CRYPT_ACCEPTS of them. */
void opal_btl_crypt_listen_accept(opal_btl_crypt_listener_t *listener);

/* Has there been no file descriptor for a minute in which we polled? */
bool opal_btl_crypt_listen_starved(const opal_btl_crypt_listener_t *listener);

/* Add a connected socket, however it was made. */
void opal_btl_crypt_listen_add(opal_btl_crypt_listener_t *listener, int fd);

/* Advance time to `now` (microseconds, CLOCK_MONOTONIC), and drop unauthenticated connections older than 2 seconds. */
void opal_btl_crypt_listen_poll(opal_btl_crypt_listener_t *listener, uint64_t now);

/* ANSWERED: the link becomes half-open.  An older one of the same name and number is dropped. */
void opal_btl_crypt_listen_answered(opal_btl_crypt_listener_t *listener, opal_btl_crypt_link_t *link);

/* The process of this name is connected by this link: drop its other attempts. */
void opal_btl_crypt_listen_forget(opal_btl_crypt_listener_t *listener, const opal_crypt_tls_name_t *name, uint16_t number);

/* The caller takes the link over: it is authenticated, or has failed and is to be destroyed. */
void opal_btl_crypt_listen_remove(opal_btl_crypt_listener_t *listener, opal_btl_crypt_link_t *link);

/* Drop all of them, and close the socket. */
void opal_btl_crypt_listen_stop(opal_btl_crypt_listener_t *listener);

#endif
