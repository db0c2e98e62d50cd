/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Two ends of a connection of btl/crypt in one process, over a pair of sockets.
 */
#ifndef TESTS_UNIT_BTL_ENDS_H
#define TESTS_UNIT_BTL_ENDS_H

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "opal/mca/btl/crypt/btl_crypt_listen.h"
#include "tls_ends.h"

#define PSK 0x31

/* What was delivered. */
typedef struct inbox {
    unsigned count;
    size_t bytes;
    uint8_t tag;
    uint8_t *data;                  /* the last one's */
} inbox_t;

static bool inbox_deliver(opal_btl_crypt_link_t *link, uint8_t tag, void *bytes, size_t count)
{
    inbox_t *inbox = link->owner;

    UNIT_CHECK(0 == (uintptr_t) bytes % 8);
    inbox->count++;
    inbox->bytes = count;
    inbox->tag = tag;
    inbox->data = realloc(inbox->data, count + 1);
    memcpy(inbox->data, bytes, count);
    return 99 != tag;
}

static opal_btl_crypt_engine_t btl_engine;

/* One engine serves both ends: a process has one. */
static inline void btl_start(opal_crypt_tls_t *tls)
{
    btl_engine = (opal_btl_crypt_engine_t) {.tls = tls, .aead = &opal_aead_openssl_module, .own = tls_name(0),
                                            .deliver = inbox_deliver};
    UNIT_REQUIRE(opal_btl_crypt_engine_start(&btl_engine));
}

static inline void btl_pair(int pair[2])
{
    UNIT_REQUIRE(0 == socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair));
}

typedef struct ends {
    opal_btl_crypt_link_t *a, *b;   /* a connected */
    inbox_t in_a, in_b;
    job_t job;
} ends_t;

static inline opal_btl_crypt_link_t *btl_client(int fd, uint8_t psk)
{
    const opal_crypt_tls_identity_t identity = tls_identity();
    const opal_crypt_tls_psk_t secret = tls_psk(psk);

    return opal_btl_crypt_link_connect(&btl_engine, fd, tls_group, &identity, &secret);
}

static inline void ends_begin(ends_t *ends)
{
    int pair[2];

    memset(ends, 0, sizeof(*ends));
    ends->job.psk = tls_psk(PSK);
    btl_pair(pair);
    ends->a = btl_client(pair[0], PSK);
    ends->b = opal_btl_crypt_link_accept(&btl_engine, pair[1], job_find, &ends->job);
    UNIT_REQUIRE(NULL != ends->a && NULL != ends->b);
    ends->a->owner = &ends->in_a;
    ends->b->owner = &ends->in_b;
}

/* Both are authenticated. */
static inline void ends_shake(ends_t *ends)
{
    for (int i = 0; i < 8 && OPAL_BTL_CRYPT_AUTHENTICATED != ends->b->state; i++) {
        opal_btl_crypt_link_drive(ends->a);
        opal_btl_crypt_link_drive(ends->b);
    }
    UNIT_REQUIRE(OPAL_BTL_CRYPT_AUTHENTICATED == ends->a->state && OPAL_BTL_CRYPT_AUTHENTICATED == ends->b->state);
}

static inline void ends_open(ends_t *ends)
{
    ends_begin(ends);
    ends_shake(ends);
    opal_btl_crypt_link_send_hello(ends->a);
    opal_btl_crypt_link_send_hello(ends->b);
    opal_btl_crypt_link_read(ends->a);
    opal_btl_crypt_link_read(ends->b);
    UNIT_REQUIRE(OPAL_BTL_CRYPT_OPEN == ends->a->state && OPAL_BTL_CRYPT_OPEN == ends->b->state);
    UNIT_CHECK(&ends->a->hello == opal_btl_crypt_link_reap(ends->a) || NULL == ends->a->sealed.first);
}

static inline void ends_free(ends_t *ends)
{
    opal_btl_crypt_link_destroy(ends->a);
    opal_btl_crypt_link_destroy(ends->b);
    free(ends->in_a.data);
    free(ends->in_b.data);
}

#endif
