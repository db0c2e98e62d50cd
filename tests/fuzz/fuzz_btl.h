/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * For fuzz_btl*.h: the input as a program, an engine, and ends of connections under secrets that are known.
 */
#ifndef TESTS_FUZZ_BTL_H
#define TESTS_FUZZ_BTL_H

#include "fuzz.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include "opal/mca/btl/crypt/btl_crypt_listen.h"

extern opal_aead_module_t opal_aead_openssl_module;
int opal_aead_openssl_init(void);

/* What is left of the input. */
typedef struct fuzz_input {
    const uint8_t *at, *end;
} fuzz_input_t;

/* The next byte, 0 behind the last one; two of them. */
static unsigned take8(fuzz_input_t *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static unsigned take16(fuzz_input_t *in)
{
    const unsigned high = take8(in);

    return high << 8 | take8(in);
}

/* The next `bytes`, or as many as there are. */
static const uint8_t *take_bytes(fuzz_input_t *in, size_t *bytes)
{
    const uint8_t *at = in->at;

    *bytes = (size_t) (in->end - at) < *bytes ? (size_t) (in->end - at) : *bytes;
    in->at += *bytes;
    return at;
}

/* Whose connection it is.  A stranger's has none: nothing is delivered for it. */
typedef struct fuzz_owner {
    bool (*deliver)(struct fuzz_owner *owner, uint8_t tag, const uint8_t *bytes, size_t count);
} fuzz_owner_t;

static opal_btl_crypt_engine_t fuzz_engine;
static opal_crypt_tls_t *fuzz_tls;
static unsigned long fuzz_delivered, fuzz_kept, fuzz_ended;     /* fragments; callers; connections that ended well */

static bool fuzz_deliver(opal_btl_crypt_link_t *link, uint8_t tag, void *bytes, size_t count)
{
    fuzz_owner_t *owner = link->owner;

    FUZZ_CHECK(NULL != owner && link->hello_came && 0 == (uintptr_t) bytes % 8 && count <= OPAL_BTL_CRYPT_FRAGMENT_MAX);
    ++fuzz_delivered;
    return owner->deliver(owner, tag, bytes, count);
}

static void fuzz_begin(void)
{
    if (NULL == fuzz_tls) {
        FUZZ_CHECK(0 == opal_aead_openssl_init());
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_create(OPAL_AEAD_AES_128_GCM, &fuzz_tls, NULL));
        fuzz_engine = (opal_btl_crypt_engine_t) {.tls = fuzz_tls, .aead = &opal_aead_openssl_module, .deliver = fuzz_deliver};
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_name_make("4711", 0, 0, &fuzz_engine.own));
        FUZZ_CHECK(opal_btl_crypt_engine_start(&fuzz_engine));
    }
}

/* `room`: what the sockets hold, more or less; 0: as much as usual. */
static void fuzz_pair(int pair[2], int room)
{
    FUZZ_CHECK(0 == socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair));
    for (int i = 0; i < 2 && 0 != room; i++) {
        FUZZ_CHECK(0 == setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)));
    }
}

static opal_crypt_tls_records_t *fuzz_records(bool listens, uint64_t renew)
{
    opal_crypt_tls_records_t *records = NULL;
    uint8_t secrets[2][OPAL_CRYPT_TLS_SECRET_MAX];

    memset(secrets[0], 5, sizeof(secrets[0]));
    memset(secrets[1], 6, sizeof(secrets[1]));
    FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_create(&opal_aead_openssl_module, OPAL_AEAD_AES_128_GCM, renew,
                                                              secrets[listens], secrets[!listens], &records));
    return records;
}

static int fuzz_nobody(void *arg, const opal_crypt_tls_identity_t *identity, opal_crypt_tls_group_t *group,
                       opal_crypt_tls_psk_t *psk)
{
    (void) arg, (void) identity, (void) group, (void) psk;
    return OPAL_CRYPT_ERR_PEER;
}

/* AUTHENTICATED, as after a handshake, of which a fuzzer could make a few hundred in a second only. */
static opal_btl_crypt_link_t *fuzz_end(int fd, bool listens, uint64_t renew, fuzz_owner_t *owner)
{
    opal_btl_crypt_link_t *link = opal_btl_crypt_link_accept(&fuzz_engine, fd, fuzz_nobody, NULL);

    FUZZ_CHECK(NULL != link);
    opal_crypt_handshake_destroy(link->handshake);
    link->handshake = NULL;
    link->listens = listens;
    link->records = fuzz_records(listens, renew);
    link->state = OPAL_BTL_CRYPT_AUTHENTICATED;
    link->owner = owner;
    return link;
}

static bool fuzz_readable(const opal_btl_crypt_link_t *link)
{
    return OPAL_BTL_CRYPT_OPEN == link->state || OPAL_BTL_CRYPT_HELLO_SENT == link->state;
}

static size_t fuzz_waiting(int fd)
{
    int bytes = 0;

    FUZZ_CHECK(0 == ioctl(fd, FIONREAD, &bytes));
    return (size_t) bytes;
}

#endif
