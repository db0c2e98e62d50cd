/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Who connects, and which connection is kept: docs/design/009-transport.rst, "Who connects".
 * Only by the thread that makes progress.
 */
#include "btl_crypt.h"

#include <errno.h>
#include <unistd.h>

#include "opal/mca/common/crypt/base/secmem.h"

enum { RETRY_US = 100000, GIVE_UP_US = 60000000 };      /* of polled time */

void opal_btl_crypt_drop(opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_endpoint_t *endpoint = link->owner;

    if (NULL != endpoint && link == endpoint->connecting) {
        endpoint->connecting = NULL;
    }
    opal_btl_crypt_unwatch(link);
    pthread_mutex_lock(&opal_btl_crypt.lock);           /* its ring goes back */
    opal_btl_crypt_link_destroy(link);
    pthread_mutex_unlock(&opal_btl_crypt.lock);
}

/* ---- we connect ---- */

/* That address was none: the next one, or all again a little later. */
static void try_next(opal_btl_crypt_endpoint_t *endpoint, int addresses, const char *reason)
{
    const uint64_t now = opal_btl_crypt.listener.polled;

    endpoint->give_up_at = 0 == endpoint->give_up_at ? now + GIVE_UP_US : endpoint->give_up_at;
    if (++endpoint->next_address >= addresses) {
        endpoint->next_address = 0;
        endpoint->retry_at = now + RETRY_US;
        if (now > endpoint->give_up_at) {
            opal_btl_crypt_endpoint_broken(endpoint, reason);
        }
    }
}

static int addresses_of(const opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_addresses_t *addresses)
{
    const opal_crypt_peer_info_t *peer = opal_crypt_schedule_peer(endpoint->schedule);

    (void) opal_btl_crypt_address_unpack(peer->transport, peer->transport_bytes, addresses);
    opal_btl_crypt_address_order(&opal_btl_crypt.own, addresses);
    return addresses->count;
}

static int socket_to(const opal_btl_crypt_addresses_t *addresses, int index)
{
    struct sockaddr_storage address;
    const socklen_t bytes = opal_btl_crypt_address_socket(addresses, index, &address);
    const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd >= 0 && 0 != connect(fd, (const struct sockaddr *) &address, bytes) && EINPROGRESS != errno) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The handshake's own copy is wiped by it; ours here. */
static opal_btl_crypt_link_t *begin(opal_btl_crypt_endpoint_t *endpoint, int fd)
{
    const opal_crypt_tls_identity_t identity = {.claimed = opal_btl_crypt.engine.own, .wanted = endpoint->tls_name};
    opal_crypt_tls_psk_t *psk = opal_crypt_secmem_alloc(sizeof(*psk));
    opal_btl_crypt_link_t *link = NULL;

    if (NULL != psk && OPAL_CRYPT_OK == opal_crypt_tls_psk(opal_btl_crypt.tls, endpoint->schedule, OPAL_CRYPT_OUT, psk)) {
        link = opal_btl_crypt_link_connect(&opal_btl_crypt.engine, fd, &identity, psk);
    } else {
        close(fd);
    }
    opal_crypt_secmem_free(psk);
    return link;
}

void opal_btl_crypt_connect(opal_btl_crypt_endpoint_t *endpoint)
{
    opal_btl_crypt_addresses_t addresses;
    int fd, count;

    if (!opal_btl_crypt_endpoint_ask(endpoint)) {
        opal_btl_crypt_endpoint_broken(endpoint, "it does not use btl/crypt, or another version of it");
        return;
    }
    count = addresses_of(endpoint, &addresses);
    fd = endpoint->next_address < count ? socket_to(&addresses, endpoint->next_address) : -1;
    endpoint->connecting = fd < 0 ? NULL : begin(endpoint, fd);
    if (NULL == endpoint->connecting) {
        try_next(endpoint, count, "no address of it can be reached");
        return;
    }
    endpoint->connecting->owner = endpoint;
    opal_btl_crypt_watch(endpoint->connecting);
}

/* ---- they connect ---- */

int opal_btl_crypt_find(void *arg, const opal_crypt_tls_identity_t *identity, opal_crypt_tls_psk_t *psk)
{
    opal_btl_crypt_endpoint_t *endpoint = opal_btl_crypt_endpoint_claimed(&identity->claimed);

    (void) arg;
    return NULL == endpoint || !opal_btl_crypt_endpoint_ask(endpoint)
                   || !opal_crypt_tls_name_equal(&endpoint->tls_name, &identity->claimed)
               ? OPAL_CRYPT_ERR_PEER
               : opal_crypt_tls_psk(opal_btl_crypt.tls, endpoint->schedule, OPAL_CRYPT_IN, psk);
}

static bool ours_is_lower(const opal_crypt_tls_name_t *peer)
{
    const opal_crypt_tls_name_t *own = &opal_btl_crypt.engine.own;
    const int order = memcmp(own->nspace, peer->nspace, sizeof(own->nspace));

    return 0 != order ? order < 0 : own->rank < peer->rank;
}

/* The peer's connection, which is OPEN, takes all that waits. */
static void adopt(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_item_t *item;

    pthread_mutex_lock(&opal_btl_crypt.lock);
    link->owner = endpoint;
    endpoint->link = link;
    endpoint->give_up_at = endpoint->retry_at = 0;
    while (NULL != (item = opal_btl_crypt_queue_take(&endpoint->waiting))) {
        item->sealed = 0;
        opal_btl_crypt_queue_append(&link->queue, item);
    }
    if (!link->wants_write) {
        opal_btl_crypt_link_pump(link);
    }
    opal_btl_crypt_endpoint_busy(endpoint);
    pthread_mutex_unlock(&opal_btl_crypt.lock);
}

static void greet(opal_btl_crypt_link_t *link)
{
    pthread_mutex_lock(&opal_btl_crypt.lock);
    opal_btl_crypt_link_greet(link);
    pthread_mutex_unlock(&opal_btl_crypt.lock);
}

/* Others may be sending. */
static void watch_shared(opal_btl_crypt_link_t *link)
{
    pthread_mutex_lock(&opal_btl_crypt.lock);
    opal_btl_crypt_watch(link);
    pthread_mutex_unlock(&opal_btl_crypt.lock);
}

/* Are we connecting ourselves, and to go on with that?  An attempt that has sent nothing yet cannot have been kept. */
static bool ours_is_kept(const opal_btl_crypt_endpoint_t *endpoint)
{
    return NULL != endpoint->connecting && OPAL_BTL_CRYPT_CONNECTING != endpoint->connecting->state
           && ours_is_lower(&endpoint->tls_name);
}

/* A stranger is none any more.  Is its connection the one that is kept? */
static void stranger_authenticated(opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_endpoint_t *endpoint = opal_btl_crypt_endpoint_claimed(&link->identity.claimed);

    opal_btl_crypt_listen_remove(&opal_btl_crypt.listener, link);
    /* One that it has left, without our having seen it yet? */
    if (NULL != endpoint && NULL != endpoint->link) {
        opal_btl_crypt_link_read(endpoint->link);
        opal_btl_crypt_settle(endpoint->link);
    }
    if (NULL == endpoint || NULL != endpoint->link || ours_is_kept(endpoint)) {
        opal_btl_crypt_link_decline(link);
        opal_btl_crypt_drop(link);
        return;
    }
    if (NULL != endpoint->connecting) {
        opal_btl_crypt_drop(endpoint->connecting);
    }
    greet(link);
    adopt(endpoint, link);
    watch_shared(link);
}

/* ---- what became of it ---- */

/* Refused or cut: somebody else's address, perhaps.  Or ENDED: it keeps another one. */
static void attempt_failed(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link)
{
    const bool declined = OPAL_BTL_CRYPT_ENDED == link->state;
    opal_btl_crypt_addresses_t addresses;
    const char *reason = declined ? "it keeps another connection" : link->reason;

    opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, opal_btl_crypt.stream, "btl:crypt: to rank %lu: %s",
                        (unsigned long) endpoint->name.vpid, reason);
    opal_btl_crypt_drop(link);
    if (NULL == endpoint->link) {
        try_next(endpoint, declined ? 0 : addresses_of(endpoint, &addresses), reason);
    }
}

/* The connection that we used. */
static void connection_over(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link)
{
    const bool failed = OPAL_BTL_CRYPT_FAILED == link->state, lost = NULL != link->queue.first || NULL != link->sealed.first;
    const char *reason = failed ? link->reason : "it ended the connection before it took what was sent";

    pthread_mutex_lock(&opal_btl_crypt.lock);
    endpoint->link = NULL;
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    opal_btl_crypt_drop(link);
    if (failed || lost) {
        opal_btl_crypt_endpoint_broken(endpoint, reason);
    }
}

static void stranger_failed(opal_btl_crypt_link_t *link)
{
    opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, opal_btl_crypt.stream, "btl:crypt: a stranger: %s", link->reason);
    opal_btl_crypt_listen_remove(&opal_btl_crypt.listener, link);
    opal_btl_crypt_drop(link);
}

void opal_btl_crypt_settle(opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_endpoint_t *endpoint = link->owner;
    const bool over = OPAL_BTL_CRYPT_FAILED == link->state || OPAL_BTL_CRYPT_ENDED == link->state;

    if (NULL == endpoint) {
        if (over) {
            stranger_failed(link);
            return;
        }
        if (OPAL_BTL_CRYPT_AUTHENTICATED == link->state) {
            stranger_authenticated(link);
            return;
        }
    } else if (over) {
        (link == endpoint->link ? connection_over : attempt_failed)(endpoint, link);
        return;
    } else if (OPAL_BTL_CRYPT_AUTHENTICATED == link->state) {
        greet(link);
    } else if (OPAL_BTL_CRYPT_OPEN == link->state && link == endpoint->connecting) {
        endpoint->connecting = NULL;
        adopt(endpoint, link);
    }
    watch_shared(link);
}
