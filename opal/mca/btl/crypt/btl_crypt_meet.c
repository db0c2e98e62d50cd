/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which side connects, and which connection is kept: docs/design/009-transport.rst, "Who connects".
 * Only by the thread that makes progress.
 */
#include "btl_crypt.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "opal/mca/common/crypt/base/secmem.h"

/* In polled time. */
enum {
    RETRY_US = 100000,
    GIVE_UP_US = 60000000,              /* while all addresses refuse us */
    WARN_US = 10000000,                 /* the same */
    PATIENCE_US = 2000000,              /* for a silent address, doubled each time: the peer may be computing */
    PATIENCE_MOST_US = 64000000,
    SECOND_US = 1000000
};
enum { TRIES_MOST = 10 };               /* of a rail that may be spared; the time between them is doubled */
enum { CONNECT_MS = 2 };                /* a few network round trips */

void opal_btl_crypt_drop(opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_endpoint_t *endpoint = link->owner;

    if (NULL != endpoint && link == endpoint->connecting) {
        endpoint->connecting = NULL;
    }
    opal_btl_crypt_unwatch(link);
    pthread_mutex_lock(&opal_btl_crypt.lock);           /* its ring is returned */
    opal_btl_crypt_link_destroy(link);
    pthread_mutex_unlock(&opal_btl_crypt.lock);
}

/* ---- we connect ---- */

void opal_btl_crypt_begin_anew(opal_btl_crypt_endpoint_t *endpoint)
{
    endpoint->next_address = 0;
    endpoint->silent = endpoint->said_refused = false;
    endpoint->tries = 0;
    endpoint->patience = PATIENCE_US;
    endpoint->retry_at = endpoint->give_up_at = endpoint->tick_at = 0;
    endpoint->wait = (opal_cryptproc_wait_t) {.doing = "the first contact with the peer", .peer = endpoint->name};
}

/* All addresses were tried.  If every one still refuses after a minute, fail the peer; or do without this rail. */
static void turn_over(opal_btl_crypt_endpoint_t *endpoint, const char *reason)
{
    const uint64_t now = opal_btl_crypt.listener.polled;

    endpoint->next_address = 0;
    endpoint->retry_at = now + RETRY_US;
    if (opal_btl_crypt_rail_is_spare(endpoint)) {
        endpoint->retry_at = now + ((uint64_t) RETRY_US << endpoint->tries);
        endpoint->gone = ++endpoint->tries >= TRIES_MOST;
        if (endpoint->gone) {
            opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, opal_btl_crypt.stream, "btl:crypt: to rank %lu: no rail %u: %s",
                                (unsigned long) endpoint->name.vpid, endpoint->rail, reason);
        }
    } else if (endpoint->silent) {
        endpoint->give_up_at = 0;
    } else if (0 == endpoint->give_up_at) {
        endpoint->give_up_at = now + GIVE_UP_US;
    } else if (now > endpoint->give_up_at) {
        opal_btl_crypt_endpoint_broken(endpoint, reason);
    } else if (now > endpoint->give_up_at - (GIVE_UP_US - WARN_US) && !endpoint->said_refused) {
        endpoint->said_refused = true;
        opal_btl_crypt_endpoint_show(endpoint->main, reason, "refused");
    }
    endpoint->silent = false;
}

/* Wrong address: go on to the next one. */
static void try_next(opal_btl_crypt_endpoint_t *endpoint, int addresses, const char *reason)
{
    if (++endpoint->next_address >= addresses) {
        turn_over(endpoint, reason);
    }
}

static int addresses_of(const opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_addresses_t *addresses)
{
    const opal_crypt_peer_info_t *peer = opal_crypt_schedule_peer(endpoint->main->schedule);

    (void) opal_btl_crypt_address_unpack(peer->transport, peer->transport_bytes, addresses);
    opal_btl_crypt_address_order(&opal_btl_crypt.own, addresses);
    opal_btl_crypt_rail_addresses(endpoint, addresses);
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

/* The handshake wipes its own copy of the PSK; we wipe ours. */
static opal_btl_crypt_link_t *begin_attempt(opal_btl_crypt_endpoint_t *endpoint, int fd)
{
    const opal_crypt_tls_identity_t identity = {.claimed = opal_btl_crypt.engine.own, .wanted = endpoint->tls_name,
                                                .link = endpoint->rail, .attempt = ++opal_btl_crypt.attempts};
    opal_crypt_tls_psk_t *psk = opal_crypt_secmem_alloc(sizeof(*psk));
    opal_btl_crypt_link_t *link = NULL;

    if (NULL != psk && OPAL_CRYPT_OK == opal_crypt_tls_psk(opal_btl_crypt.tls, endpoint->main->schedule, OPAL_CRYPT_OUT, psk)) {
        link = opal_btl_crypt_link_connect(&opal_btl_crypt.engine, fd, endpoint->group, &identity, psk);
    } else {
        close(fd);
    }
    opal_crypt_secmem_free(psk);
    return link;
}

/* Send the ClientHello now: by our next call the listener may have timed us out. */
static void hello_at_once(opal_btl_crypt_link_t *link)
{
    struct pollfd writable = {.fd = link->fd, .events = POLLOUT};

    if (1 == poll(&writable, 1, CONNECT_MS)) {
        opal_btl_crypt_link_drive(link);
    }
}

static void attempt(opal_btl_crypt_endpoint_t *endpoint)
{
    opal_btl_crypt_addresses_t addresses;
    const char *reason;
    int fd, count;

    if (!opal_btl_crypt_endpoint_ask(endpoint)) {
        opal_btl_crypt_endpoint_broken(endpoint, "it does not use btl/crypt, or another version of it");
        return;
    }
    count = addresses_of(endpoint, &addresses);
    if (0 == count && opal_btl_crypt_rail_is_spare(endpoint)) {
        endpoint->gone = true;                  /* it has connected to us */
        return;
    }
    if (0 == count) {
        opal_btl_crypt_endpoint_broken(endpoint, "its node had no network address when it started");
        return;
    }
    fd = endpoint->next_address < count ? socket_to(&addresses, endpoint->next_address) : -1;
    if (fd >= 0 && opal_btl_crypt_rail_is_spare(endpoint) && !opal_btl_crypt_rail_affordable(fd)) {
        close(fd);
        try_next(endpoint, count, "first contacts may need the last file descriptors");
        return;
    }
    reason = fd < 0 && (EMFILE == errno || ENFILE == errno) ? "this process has no free file descriptor"
                                                            : "no address of it can be reached";
    endpoint->connecting = fd < 0 ? NULL : begin_attempt(endpoint, fd);
    if (NULL == endpoint->connecting) {
        try_next(endpoint, count, reason);
        return;
    }
    endpoint->deadline = opal_btl_crypt.listener.polled + endpoint->patience;
    endpoint->connecting->owner = endpoint;
    endpoint->connecting->order = &endpoint->main->order;
    hello_at_once(endpoint->connecting);
    opal_btl_crypt_handle_state(endpoint->connecting);
}

/* No answer, or not in time. */
static void no_answer(opal_btl_crypt_endpoint_t *endpoint)
{
    opal_btl_crypt_addresses_t addresses;

    opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, opal_btl_crypt.stream, "btl:crypt: to rank %lu: no answer",
                        (unsigned long) endpoint->name.vpid);
    endpoint->silent = true;
    endpoint->patience = endpoint->patience < PATIENCE_MOST_US ? 2 * endpoint->patience : PATIENCE_MOST_US;
    opal_btl_crypt_drop(endpoint->connecting);
    try_next(endpoint, addresses_of(endpoint, &addresses), "no answer");
}

/* A second has passed.  False: with fault tolerance, crypt_connect_timeout has failed the peer, not the job. */
static bool tick(opal_btl_crypt_endpoint_t *endpoint)
{
    const unsigned limit = opal_cryptproc_params.connect_timeout;

    if (opal_btl_crypt.tolerant && limit > 0 && endpoint->wait.seconds + 1 >= limit) {
        if (NULL != endpoint->connecting) {
            opal_btl_crypt_drop(endpoint->connecting);
        }
        opal_btl_crypt_endpoint_broken(endpoint, "no answer within crypt_connect_timeout");
        return false;
    }
    endpoint->wait.awaited = opal_btl_crypt_awaited(endpoint);
    opal_cryptproc_wait_tick(&endpoint->wait);
    return true;
}

/* An attempt is not abandoned once the other end is authenticated: that end may keep it. */
void opal_btl_crypt_seek(opal_btl_crypt_endpoint_t *endpoint)
{
    const uint64_t now = opal_btl_crypt.listener.polled;

    if (0 == endpoint->tick_at) {
        endpoint->tick_at = now + SECOND_US;
    } else if (now >= endpoint->tick_at) {
        endpoint->tick_at = now + SECOND_US;
        if (!opal_btl_crypt_rail_is_spare(endpoint) && !tick(endpoint)) {
            return;
        }
    }
    if (NULL == endpoint->connecting) {
        if (now >= endpoint->retry_at) {
            attempt(endpoint);
        }
    } else if (OPAL_BTL_CRYPT_FAILED == endpoint->connecting->state) {
        opal_btl_crypt_handle_state(endpoint->connecting);
    } else if (OPAL_BTL_CRYPT_HELLO_SENT != endpoint->connecting->state && now > endpoint->deadline) {
        no_answer(endpoint);
    }
}

/* ---- they connect ---- */

/* A rail that nobody has authenticated yet has heard nothing. */
static uint32_t heard_of(const opal_btl_crypt_endpoint_t *main, uint16_t rail)
{
    const opal_btl_crypt_endpoint_t *endpoint = 0 == rail ? main : main->rails[rail];

    return NULL == endpoint ? 0 : endpoint->heard;
}

int opal_btl_crypt_find(void *arg, const opal_crypt_tls_identity_t *identity, opal_crypt_tls_group_t *group,
                        opal_crypt_tls_psk_t *psk)
{
    const bool make = identity->attempt > 0 && opal_btl_crypt_claim_allowed();
    opal_btl_crypt_endpoint_t *endpoint = opal_btl_crypt_endpoint_claimed(identity, make);

    (void) arg;
    if (NULL == endpoint || opal_btl_crypt_has_failed(endpoint) || identity->attempt <= heard_of(endpoint, identity->link)
        || !opal_btl_crypt_claim(endpoint)
        || !opal_crypt_tls_name_equal(&endpoint->tls_name, &identity->claimed)) {
        return OPAL_CRYPT_ERR_PEER;
    }
    *group = endpoint->group;
    return opal_crypt_tls_psk(opal_btl_crypt.tls, endpoint->schedule, OPAL_CRYPT_IN, psk);
}

static bool ours_is_lower(const opal_crypt_tls_name_t *peer)
{
    const opal_crypt_tls_name_t *own = &opal_btl_crypt.engine.own;
    const int order = memcmp(own->nspace, peer->nspace, sizeof(own->nspace));

    return 0 != order ? order < 0 : own->rank < peer->rank;
}

/* The peer's OPEN connection takes all that waits.  An attempt that the peer started before and abandoned, and that we
 * have not looked at yet, must not be taken for a new one once this has ended. */
static void attach(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link)
{
    const bool anew = 0 == endpoint->rail && !endpoint->replaced;
    opal_btl_crypt_item_t *item;

    pthread_mutex_lock(&opal_btl_crypt.lock);
    link->owner = endpoint;
    link->order = &endpoint->main->order;
    endpoint->link = link;
    opal_cryptproc_transport_peers += endpoint->counted ? 0 : 1;
    opal_cryptproc_transport_pq_peers += !endpoint->counted && OPAL_CRYPT_TLS_X25519MLKEM768 == endpoint->group ? 1 : 0;
    opal_cryptproc_transport_kernel_peers += !endpoint->counted && (link->kernel_out || link->kernel_in) ? 1 : 0;
    endpoint->counted = true;
    opal_btl_crypt_begin_anew(endpoint);
    if (anew) {
        opal_btl_crypt_rails_anew(endpoint, &link->identity);
    }
    endpoint->replaced = endpoint->gone = false;
    while (NULL != (item = opal_btl_crypt_queue_take(&endpoint->waiting))) {
        item->sealed = 0;
        opal_btl_crypt_queue_append(&link->queue, item);
    }
    if (!link->wants_write) {
        opal_btl_crypt_link_pump(link);
    }
    for (int i = 0; i < OPAL_BTL_CRYPT_RAILS; i++) {            /* the others have waited for the first one */
        if (NULL != endpoint->rails[i]) {
            opal_btl_crypt_endpoint_busy(endpoint->rails[i]);
        }
    }
    opal_btl_crypt_endpoint_busy(endpoint);
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    opal_btl_crypt_say_met(endpoint, link);
    opal_btl_crypt_listen_forget(&opal_btl_crypt.listener, &endpoint->tls_name, endpoint->rail);
    if (anew) {
        opal_btl_crypt_rails_forget(endpoint);
    }
}

static void send_hello(opal_btl_crypt_link_t *link)
{
    pthread_mutex_lock(&opal_btl_crypt.lock);
    opal_btl_crypt_link_send_hello(link);
    pthread_mutex_unlock(&opal_btl_crypt.lock);
}

/* Other threads may be sending. */
static void watch_shared(opal_btl_crypt_link_t *link)
{
    pthread_mutex_lock(&opal_btl_crypt.lock);
    opal_btl_crypt_watch(link);
    pthread_mutex_unlock(&opal_btl_crypt.lock);
}

/* Do we keep our own attempt?  Only one whose other end is authenticated can be kept: any other may lead nowhere. */
static bool ours_is_kept(const opal_btl_crypt_endpoint_t *endpoint)
{
    return NULL != endpoint->connecting && OPAL_BTL_CRYPT_HELLO_SENT == endpoint->connecting->state
           && ours_is_lower(&endpoint->tls_name);
}

/* No hello is answered twice. */
static void hears(const opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_endpoint_t *endpoint = opal_btl_crypt_endpoint_claimed(&link->identity, false);

    endpoint = NULL == endpoint ? NULL : opal_btl_crypt_rail(endpoint, link->identity.link);
    if (NULL != endpoint && link->identity.attempt > endpoint->heard) {
        opal_btl_crypt_claim_over(endpoint);
        endpoint->heard = link->identity.attempt;
    }
}

/* One of a rail that was in use is always taken: the peer may count on it. */
static bool takes_rail(const opal_btl_crypt_endpoint_t *endpoint, const opal_btl_crypt_link_t *link)
{
    return opal_btl_crypt_rails_may(endpoint->main)
           && (endpoint->replaced || (endpoint->rail < opal_btl_crypt_rails_count(endpoint->main) && opal_btl_crypt_rail_affordable(link->fd)));
}

/* The caller is authenticated.  Resolve the tie between its connection and ours. */
static void caller_authenticated(opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_endpoint_t *endpoint = opal_btl_crypt_endpoint_claimed(&link->identity, false);

    endpoint = NULL == endpoint ? NULL : opal_btl_crypt_rail(endpoint, link->identity.link);
    opal_btl_crypt_listen_remove(&opal_btl_crypt.listener, link);
    /* Has the peer left the current one, unnoticed by us? */
    if (NULL != endpoint && NULL != endpoint->link) {
        opal_btl_crypt_take_in(endpoint->link);
        opal_btl_crypt_handle_state(endpoint->link);
        opal_btl_crypt_rails_read(endpoint->main);
    }
    if (NULL == endpoint || opal_btl_crypt_has_failed(endpoint) || NULL != endpoint->link || ours_is_kept(endpoint)
        || (endpoint->rail > 0 && !takes_rail(endpoint, link))) {
        opal_btl_crypt_link_decline(link);
        opal_btl_crypt_drop(link);
        return;
    }
    if (NULL != endpoint->connecting) {
        opal_btl_crypt_drop(endpoint->connecting);
    }
    send_hello(link);
    attach(endpoint, link);
    watch_shared(link);
}

/* ---- what became of it ---- */

/* Refused or cut: it may be another process's address.  Or ENDED: the peer keeps another connection. */
static void attempt_failed(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link)
{
    const bool declined = OPAL_BTL_CRYPT_ENDED == link->state;
    opal_btl_crypt_addresses_t addresses;
    const char *reason = declined ? "it keeps another connection" : link->reason;

    opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, opal_btl_crypt.stream, "btl:crypt: to rank %lu: %s",
                        (unsigned long) endpoint->name.vpid, reason);
    opal_btl_crypt_drop(link);
    if (declined && !opal_btl_crypt_rail_is_spare(endpoint)) {              /* the address is right, and the peer alive */
        endpoint->next_address = 0;
        endpoint->give_up_at = 0;
        endpoint->retry_at = opal_btl_crypt.listener.polled + RETRY_US;
    } else {
        try_next(endpoint, addresses_of(endpoint, &addresses), reason);
    }
    opal_btl_crypt_rails_read(endpoint->main);          /* the peer may have kept it, and rail 0 may wait for it */
}

/* What waits on a connection being replaced goes over the next one, ahead of what was sent since.  Under the lock. */
static void keep_waiting(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link)
{
    if (link->last_came && NULL != link->queue.first && 0 == link->queue.first->sealed) {
        opal_btl_crypt_queue_prepend(&endpoint->waiting, &link->queue);
        opal_btl_crypt_endpoint_busy(endpoint);
    }
}

/* A peer that closes it expects nothing more: sends reported complete but still in the ring may be dropped. */
bool opal_btl_crypt_detach(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link)
{
    bool lost;

    pthread_mutex_lock(&opal_btl_crypt.lock);
    endpoint->link = NULL;
    endpoint->replaced = link->last_came;           /* before reap, which releases the lock */
    (void) opal_btl_crypt_endpoint_reap(endpoint, link);
    keep_waiting(endpoint, link);
    lost = NULL != link->queue.first || NULL != link->sealed.first;
    opal_btl_crypt_endpoint_keep(endpoint, link);
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    opal_btl_crypt_drop(link);
    return lost;
}

/* The active connection is over.  A first one that is not replaced takes the others with it. */
static void connection_over(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link)
{
    const bool failed = OPAL_BTL_CRYPT_FAILED == link->state;
    const char *reason = failed ? link->reason : "it ended the connection before it took what was sent";
    bool lost = opal_btl_crypt_detach(endpoint, link);

    endpoint->gone = !endpoint->replaced;
    if (!endpoint->replaced && 0 == endpoint->rail && !failed) {
        lost |= opal_btl_crypt_rails_end(endpoint);
    }
    if (failed || lost) {
        opal_btl_crypt_endpoint_broken(endpoint, reason);
    }
}

static void reject_unauthenticated(opal_btl_crypt_link_t *link)
{
    opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, opal_btl_crypt.stream, "btl:crypt: rejected a connection: %s", link->reason);
    opal_btl_crypt_listen_remove(&opal_btl_crypt.listener, link);
    opal_btl_crypt_drop(link);
}

/* The peer has kept our attempt; with its hello came what it has sent since, perhaps even the end.  It abandoned its
 * own attempts before, and those must not be taken for new connections. */
static void kept_and_over(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link)
{
    if (link->last_came || OPAL_BTL_CRYPT_FAILED == link->state) {
        endpoint->connecting = NULL;
        attach(endpoint, link);
        connection_over(endpoint, link);
    } else {
        opal_btl_crypt_listen_forget(&opal_btl_crypt.listener, &endpoint->tls_name, endpoint->rail);
        attempt_failed(endpoint, link);
    }
}

void opal_btl_crypt_handle_state(opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_endpoint_t *endpoint = link->owner;
    const bool over = OPAL_BTL_CRYPT_FAILED == link->state || OPAL_BTL_CRYPT_ENDED == link->state;

    if (NULL == endpoint) {
        if (link->identity.attempt > 0) {               /* it was answered, whatever has become of it since */
            hears(link);
        }
        if (over) {
            reject_unauthenticated(link);
            return;
        }
        if (OPAL_BTL_CRYPT_ANSWERED == link->state) {
            opal_btl_crypt_listen_answered(&opal_btl_crypt.listener, link);
        } else if (OPAL_BTL_CRYPT_AUTHENTICATED == link->state) {
            caller_authenticated(link);
            return;
        }
    } else if (over) {
        (link == endpoint->link ? connection_over : link->hello_came ? kept_and_over : attempt_failed)(endpoint, link);
        return;
    } else if (OPAL_BTL_CRYPT_AUTHENTICATED == link->state) {
        send_hello(link);
    } else if (OPAL_BTL_CRYPT_OPEN == link->state && link == endpoint->connecting) {
        endpoint->connecting = NULL;
        attach(endpoint, link);
    }
    watch_shared(link);
}
