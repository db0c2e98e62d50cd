/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The listening socket, and those who connect to it before it is certain who they are.
 *
 *     strangers   whoever can reach the port: at most 64, none for long; the oldest goes first
 *     callers     their hello was answered, which only a process of the job can have made, and each only once.  They may
 *                 compute before they go on, so they have time; one of a name
 *
 * Threads: one at a time.
 */
#ifndef OPAL_BTL_CRYPT_LISTEN_H
#define OPAL_BTL_CRYPT_LISTEN_H

#include "btl_crypt_address.h"
#include "btl_crypt_link.h"

#define OPAL_BTL_CRYPT_STRANGERS        64
#define OPAL_BTL_CRYPT_CALLERS          256                    /* each has an object of OpenSSL */
#define OPAL_BTL_CRYPT_STRANGER_US      UINT64_C(2000000)      /* of time in which somebody polled */
#define OPAL_BTL_CRYPT_ACCEPTS          16                     /* at a time: others want progress, too */

/* By age. */
typedef struct opal_btl_crypt_room {
    opal_btl_crypt_link_t *links[OPAL_BTL_CRYPT_CALLERS];
    int count;
} opal_btl_crypt_room_t;

typedef struct opal_btl_crypt_listener {
    opal_btl_crypt_engine_t *engine;
    int fd;                                             /* -1: none */
    const opal_btl_crypt_addresses_t *own;              /* what we published: elsewhere nobody is heard; NULL: everywhere */
    opal_crypt_handshake_find_t find;
    void *arg;
    void (*opened)(opal_btl_crypt_link_t *link);        /* SHAKING: watch it; it may have FAILED when this returns */
    void (*closing)(opal_btl_crypt_link_t *link);       /* and no longer; it is destroyed afterwards */

    opal_btl_crypt_room_t strangers, callers;
    uint64_t polled;                                    /* microseconds, of our own clock */
    uint64_t last;
    uint64_t starved_at;                                /* since then no file descriptor was free; 0: there is one */
} opal_btl_crypt_listener_t;

/* A socket at the first free port of the range, which goes to *port; min 0: at any.  errno says why it is -1. */
int opal_btl_crypt_listen_at(unsigned min, unsigned range, uint16_t *port);

/* The socket can be read: all that wait, or OPAL_BTL_CRYPT_ACCEPTS of them. */
void opal_btl_crypt_listen_accept(opal_btl_crypt_listener_t *listener);

/* Has there been no file descriptor for a minute in which we polled? */
bool opal_btl_crypt_listen_starved(const opal_btl_crypt_listener_t *listener);

/* A socket that is connected to us, however it came to be. */
void opal_btl_crypt_listen_add(opal_btl_crypt_listener_t *listener, int fd);

/* Time has come to `now` (microseconds, CLOCK_MONOTONIC): whose 2 seconds are over? */
void opal_btl_crypt_listen_poll(opal_btl_crypt_listener_t *listener, uint64_t now);

/* ANSWERED: a caller from now on.  An older one of the same name goes. */
void opal_btl_crypt_listen_answered(opal_btl_crypt_listener_t *listener, opal_btl_crypt_link_t *link);

/* Who has this name is connected: what is left of its other attempts goes. */
void opal_btl_crypt_listen_forget(opal_btl_crypt_listener_t *listener, const opal_crypt_tls_name_t *name);

/* It has been authenticated, and is yours; or it has failed, and you destroy it. */
void opal_btl_crypt_listen_remove(opal_btl_crypt_listener_t *listener, opal_btl_crypt_link_t *link);

/* All of them, and the socket. */
void opal_btl_crypt_listen_stop(opal_btl_crypt_listener_t *listener);

#endif
