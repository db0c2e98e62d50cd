/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Those who connect to a listener: anybody, and processes of the job whose bytes somebody cuts and changes.
 *
 *     | 0 | step ... |
 *     step = | 0 |                        one more arrives
 *            | 1 | who 1 | n 1 | bytes n |        it says this
 *            | 2 | who 1 | key 1 |                it is a process of the job, under the right key if that is 0
 *            | 3 | who 1 | n 2 | at 2 | with 1 |  n bytes of that process go to the listener; one may be changed
 *            | 4 | who 1 | n 2 | at 2 | with 1 |  and back
 *            | 5 | n 1 |                          n times 10 ms pass
 *            | 6 | who 1 |                        it goes away
 *
 * Nobody is answered whose hello was not that of a process of the job, as it left it.  Nobody is authenticated
 * of whose bytes one was changed.  There are 64 at most, for 2 seconds.
 */
#ifndef TESTS_FUZZ_BTL_UNAUTHENTICATED_H
#define TESTS_FUZZ_BTL_UNAUTHENTICATED_H

#include "fuzz_btl.h"

enum { CROWD = 90, CROWD_TICK = 10000 };

typedef struct stranger {
    int fd, client_fd;                          /* its end; of the process that it is.  -1: none */
    opal_btl_crypt_link_t *link, *client;       /* our end; that of the process */
    size_t hello_bytes, shake_bytes;            /* of the process: its ClientHello; with its Finished */
    size_t passed_bytes, clean_bytes;           /* how many of its bytes came; as it sent them */
    bool changed, changed_back, kept;
} stranger_t;

static stranger_t crowd[CROWD];
static unsigned crowd_count, crowd_here;
static opal_btl_crypt_listener_t crowd_listener;
static fuzz_owner_t crowd_owner;                /* of who is no stranger any more: but nothing is sent here */
static uint64_t crowd_now;

static bool crowd_deliver(fuzz_owner_t *owner, uint8_t tag, const uint8_t *bytes, size_t count)
{
    (void) owner, (void) tag, (void) bytes, (void) count;
    FUZZ_CHECK(!"delivered");
    return false;
}

static int crowd_find(void *arg, const opal_crypt_tls_identity_t *claim, opal_crypt_tls_group_t *group,
                      opal_crypt_tls_psk_t *psk)
{
    opal_crypt_tls_name_t member;

    (void) arg;
    FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_name_make("4711", 1, 0, &member));
    FUZZ_CHECK(opal_crypt_tls_name_equal(&claim->wanted, &fuzz_engine.own));
    *group = OPAL_CRYPT_TLS_X25519;
    memset(psk, 53, sizeof(*psk));
    return opal_crypt_tls_name_equal(&claim->claimed, &member) ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_PEER;
}

static void crowd_opened(opal_btl_crypt_link_t *link)
{
    crowd[crowd_count].link = link;
    ++crowd_here;
    FUZZ_CHECK(crowd_here <= OPAL_BTL_CRYPT_UNAUTHENTICATED && OPAL_BTL_CRYPT_SHAKING == link->state);
}

static void crowd_closing(opal_btl_crypt_link_t *link)
{
    unsigned i = 0;

    while (i < crowd_count && link != crowd[i].link) {
        i++;
    }
    FUZZ_CHECK(i < crowd_count && !crowd[i].kept);
    crowd[i].link = NULL;
    --crowd_here;
}

/* What the component does with a stranger to which something has happened. */
static void end_stranger(stranger_t *who)
{
    opal_btl_crypt_link_t *link = who->link;

    if (OPAL_BTL_CRYPT_FAILED == link->state) {
        opal_btl_crypt_link_drive(link);
        FUZZ_CHECK(OPAL_BTL_CRYPT_FAILED == link->state && NULL != link->reason);
    }
    if (who->kept || link->state < OPAL_BTL_CRYPT_AUTHENTICATED) {
        return;
    }
    opal_btl_crypt_listen_remove(&crowd_listener, link);
    --crowd_here;
    if (OPAL_BTL_CRYPT_AUTHENTICATED == link->state) {
        FUZZ_CHECK(!who->changed_back && who->shake_bytes > 0 && who->clean_bytes >= who->shake_bytes);
        who->kept = true;
        link->owner = &crowd_owner;
        opal_btl_crypt_link_send_hello(link);
        ++fuzz_kept;
    } else {
        FUZZ_CHECK(OPAL_BTL_CRYPT_FAILED == link->state);
        opal_btl_crypt_link_destroy(link);
        who->link = NULL;
    }
}

static void advance(opal_btl_crypt_link_t *link)
{
    if (link->state < OPAL_BTL_CRYPT_AUTHENTICATED) {
        opal_btl_crypt_link_drive(link);
    } else if (fuzz_readable(link)) {
        opal_btl_crypt_link_read(link);
    }
}

static void arrive(void)
{
    int pair[2];

    if (crowd_count < CROWD) {
        fuzz_pair(pair, 0);
        crowd[crowd_count] = (stranger_t) {.fd = pair[0], .client_fd = -1};
        opal_btl_crypt_listen_add(&crowd_listener, pair[1]);
        ++crowd_count;
    }
}

static void say(stranger_t *who, const uint8_t *bytes, size_t count)
{
    if (who->fd >= 0 && count > 0) {
        (void) send(who->fd, bytes, count, MSG_NOSIGNAL);
        if (NULL != who->link) {
            advance(who->link);
            end_stranger(who);
        }
    }
}

static void become_process(stranger_t *who, bool right)
{
    opal_crypt_tls_identity_t identity = {.wanted = fuzz_engine.own};
    opal_crypt_tls_psk_t psk;
    int pair[2];

    if (NULL != who->client) {
        return;
    }
    FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_name_make("4711", 1, 0, &identity.claimed));
    memset(&psk, right ? 53 : 54, sizeof(psk));
    fuzz_pair(pair, 0);
    who->client_fd = pair[0];
    who->client = opal_btl_crypt_link_connect(&fuzz_engine, pair[1], OPAL_CRYPT_TLS_X25519, &identity, &psk);
    FUZZ_CHECK(NULL != who->client);
    who->client->owner = &crowd_owner;
    opal_btl_crypt_link_drive(who->client);
    who->hello_bytes = right ? fuzz_waiting(who->client_fd) : SIZE_MAX;
}

/* From one socket to the other.  How many bytes; *clean: how many before one that was changed. */
static size_t pass(int from, int to, fuzz_input_t *in, size_t *clean, uint8_t *bytes, size_t room)
{
    const size_t most = take16(in), at = take16(in);
    const uint8_t with = (uint8_t) take8(in);
    const ssize_t came = from < 0 || 0 == most ? 0 : recv(from, bytes, most < room ? most : room, MSG_DONTWAIT);

    *clean = 0;
    if (came <= 0) {
        return 0;
    }
    *clean = (size_t) came;
    if (at < (size_t) came && 0 != with) {
        bytes[at] ^= with;
        *clean = at;
    }
    if (to >= 0) {
        (void) send(to, bytes, (size_t) came, MSG_NOSIGNAL);
    }
    return (size_t) came;
}

static void forward(stranger_t *who, fuzz_input_t *in)
{
    uint8_t bytes[4096];
    size_t clean;
    const size_t count = pass(who->client_fd, -1, in, &clean, bytes, sizeof(bytes));

    who->passed_bytes += count;
    who->clean_bytes += who->changed ? 0 : clean;
    who->changed |= clean < count;
    say(who, bytes, count);
}

static void answer(stranger_t *who, fuzz_input_t *in)
{
    uint8_t bytes[4096];
    size_t clean;
    const size_t count = pass(who->fd, who->client_fd, in, &clean, bytes, sizeof(bytes));

    if (0 == count) {
        return;
    }
    who->changed_back |= clean < count;
    FUZZ_CHECK(who->hello_bytes > 0 && who->clean_bytes >= who->hello_bytes);
    advance(who->client);
    if (OPAL_BTL_CRYPT_AUTHENTICATED == who->client->state) {
        FUZZ_CHECK(!who->changed_back);
        who->shake_bytes = who->passed_bytes + fuzz_waiting(who->client_fd);
        opal_btl_crypt_link_send_hello(who->client);
    }
}

static void leave_crowd(stranger_t *who)
{
    if (who->fd >= 0) {
        close(who->fd);
        who->fd = -1;
        if (NULL != who->link) {
            advance(who->link);
            end_stranger(who);
        }
    }
}

static void pass_time(unsigned ticks)
{
    for (unsigned i = 0; i < ticks; i++) {
        crowd_now += CROWD_TICK;
        opal_btl_crypt_listen_poll(&crowd_listener, crowd_now);
    }
    for (unsigned i = 0; i < crowd_count; i++) {
        FUZZ_CHECK(NULL == crowd[i].link || crowd[i].kept
                   || crowd_listener.polled - crowd[i].link->born <= OPAL_BTL_CRYPT_UNAUTHENTICATED_US);
    }
}

static void crowd_step(fuzz_input_t *in)
{
    const unsigned what = take8(in), who = 0 == what || 5 == what ? 0 : take8(in);
    stranger_t *stranger = &crowd[who % (0 == crowd_count ? 1 : crowd_count)];
    const uint8_t *bytes;
    size_t count;

    if (0 == what) {
        arrive();
    } else if (5 == what) {
        pass_time(take8(in));
    } else if (0 == crowd_count) {
        return;
    } else if (1 == what) {
        count = take8(in);
        bytes = take_bytes(in, &count);
        stranger->changed |= count > 0;
        say(stranger, bytes, count);
    } else if (2 == what) {
        become_process(stranger, 0 == take8(in));
    } else if (3 == what) {
        forward(stranger, in);
    } else if (4 == what) {
        answer(stranger, in);
    } else if (6 == what) {
        leave_crowd(stranger);
    }
}

static void fuzz_unauthenticated(fuzz_input_t *in)
{
    crowd_owner.deliver = crowd_deliver;
    crowd_listener = (opal_btl_crypt_listener_t) {.engine = &fuzz_engine, .fd = -1, .find = crowd_find,
                                                  .opened = crowd_opened, .closing = crowd_closing};
    crowd_count = crowd_here = 0;
    crowd_now = 0;
    while (in->at < in->end) {
        crowd_step(in);
    }
    opal_btl_crypt_listen_stop(&crowd_listener);
    FUZZ_CHECK(0 == crowd_here);
    for (unsigned i = 0; i < crowd_count; i++) {
        stranger_t *who = &crowd[i];

        FUZZ_CHECK(who->fd < 0 || 0 == fuzz_waiting(who->fd) || (who->hello_bytes > 0 && who->clean_bytes >= who->hello_bytes));
        FUZZ_CHECK(who->kept == (NULL != who->link));
        opal_btl_crypt_link_destroy(who->link);
        opal_btl_crypt_link_destroy(who->client);
        if (who->fd >= 0) {
            close(who->fd);
        }
        if (who->client_fd >= 0) {
            close(who->client_fd);
        }
    }
    FUZZ_CHECK(0 == fuzz_engine.ring_bytes);
}

#endif
