/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The listening socket, and those who connect to it before it is known who they are: at most so many,
 * the oldest goes first, and none stays for long.
 *
 * Threads: one at a time.
 */
#ifndef OPAL_BTL_CRYPT_LISTEN_H
#define OPAL_BTL_CRYPT_LISTEN_H

#include "btl_crypt_address.h"
#include "btl_crypt_link.h"

#define OPAL_BTL_CRYPT_STRANGERS        64
#define OPAL_BTL_CRYPT_STRANGER_US      UINT64_C(2000000)      /* of time in which somebody polled */
#define OPAL_BTL_CRYPT_ACCEPTS          16                     /* at a time: others want progress, too */

typedef struct opal_btl_crypt_listener {
    opal_btl_crypt_engine_t *engine;
    int fd;                                             /* -1: none */
    const opal_btl_crypt_addresses_t *own;              /* what we published: elsewhere nobody is heard; NULL: everywhere */
    opal_crypt_handshake_find_t find;
    void *arg;
    void (*opened)(opal_btl_crypt_link_t *link);        /* SHAKING: watch it */
    void (*closing)(opal_btl_crypt_link_t *link);       /* and no longer; it is destroyed afterwards */

    opal_btl_crypt_link_t *strangers[OPAL_BTL_CRYPT_STRANGERS];    /* by age */
    int count;
    uint64_t polled;                                    /* microseconds, of our own clock */
    uint64_t last;
} opal_btl_crypt_listener_t;

/* A socket at the first free port of the range, which goes to *port; min 0: at any.  errno says why it is -1. */
int opal_btl_crypt_listen_at(unsigned min, unsigned range, uint16_t *port);

/* The socket can be read: all that wait, or OPAL_BTL_CRYPT_ACCEPTS of them. */
void opal_btl_crypt_listen_accept(opal_btl_crypt_listener_t *listener);

/* A socket that is connected to us, however it came to be. */
void opal_btl_crypt_listen_add(opal_btl_crypt_listener_t *listener, int fd);

/* Time has come to `now` (microseconds, CLOCK_MONOTONIC): whose 2 seconds are over? */
void opal_btl_crypt_listen_poll(opal_btl_crypt_listener_t *listener, uint64_t now);

/* It is a stranger no more, and the caller's; or it has failed, and the caller destroys it. */
void opal_btl_crypt_listen_remove(opal_btl_crypt_listener_t *listener, opal_btl_crypt_link_t *link);

/* All strangers and the socket. */
void opal_btl_crypt_listen_stop(opal_btl_crypt_listener_t *listener);

#endif
