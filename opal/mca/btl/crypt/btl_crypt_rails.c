/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Rails: the connections of a peer, one or more for each network that both nodes have.  The first is the peer's own, and
 * has the order of all that is sent: docs/design/009-transport.rst, "Rails".  The others are made when a long message is
 * sent, and carry parts of long puts, and whole long fragments.
 *
 * A further rail can be done without until it is open.  Once it is, it is lost as any connection is: with the peer.  Nor is it
 * made from descriptors that first contacts will need.
 *
 * Progress thread only, but for what takes the lock.
 */
#include "btl_crypt.h"

#include <sys/resource.h>

enum { DESCRIPTORS_LEFT = 128 };        /* for the program, and for peers of other jobs */
enum { READS_MOST = 8 };                /* in one call: others need progress, too */

/* Also while the first one is replaced: the peer may have to see what comes over this one before it lets that go. */
bool opal_btl_crypt_rails_may(const opal_btl_crypt_endpoint_t *main)
{
    return !main->failed && (NULL == main->link ? main->replaced : OPAL_BTL_CRYPT_OPEN == main->link->state);
}

/* A new descriptor is the lowest free one, so all below it are in use. */
bool opal_btl_crypt_rail_affordable(int fd)
{
    const uint64_t met = opal_cryptproc_transport_peers, size = opal_btl_crypt.job_size;
    struct rlimit limit;

    return 0 == opal_btl_crypt.listener.starved_at && 0 == getrlimit(RLIMIT_NOFILE, &limit)
           && (uint64_t) fd + (met < size ? size - met : 0) + DESCRIPTORS_LEFT < limit.rlim_cur;
}

bool opal_btl_crypt_rail_may(const opal_btl_crypt_endpoint_t *endpoint)
{
    return 0 == endpoint->rail || (!endpoint->gone && opal_btl_crypt_rails_may(endpoint->main));
}

/* It has no record of its own. */
opal_btl_crypt_endpoint_t *opal_btl_crypt_rail(opal_btl_crypt_endpoint_t *main, uint16_t rail)
{
    opal_btl_crypt_endpoint_t *made;

    if (0 == rail || NULL != main->rails[rail]) {
        return 0 == rail ? main : main->rails[rail];
    }
    made = OBJ_NEW(opal_btl_crypt_endpoint_t);
    if (NULL != made) {
        made->main = main;
        made->rail = rail;
        made->name = main->name;
        made->tls_name = main->tls_name;
        made->group = main->group;
        made->counted = true;
        opal_btl_crypt_begin_anew(made);
        pthread_mutex_lock(&opal_btl_crypt.lock);
        main->rails[rail] = made;
        main->railed = true;
        pthread_mutex_unlock(&opal_btl_crypt.lock);
    }
    return made;
}

/* ---- which network ---- */

/* The one that the first connection uses. */
static int network_of(const opal_btl_crypt_link_t *link, const opal_btl_crypt_address_t *networks, int count)
{
    struct sockaddr_storage address = {0};
    socklen_t bytes = sizeof(address);

    if (NULL != link && 0 == getpeername(link->fd, (struct sockaddr *) &address, &bytes)) {
        for (int i = 0; i < count; i++) {
            if (opal_btl_crypt_address_is(&networks[i], (const struct sockaddr *) &address)) {
                return i;
            }
        }
    }
    return 0;
}

/* Rail 0 has whichever network it found; the others take turns from the next one on. */
void opal_btl_crypt_rail_addresses(const opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_addresses_t *addresses)
{
    opal_btl_crypt_address_t networks[OPAL_BTL_CRYPT_ADDRESSES_MAX];
    int count;

    if (0 == endpoint->rail) {
        return;
    }
    count = opal_btl_crypt_address_networks(&opal_btl_crypt.own, addresses, networks);
    if (count > 0) {
        addresses->list[0] = networks[(network_of(endpoint->main->link, networks, count) + endpoint->rail) % count];
        addresses->count = 1;
    }
}

unsigned opal_btl_crypt_rails_count(const opal_btl_crypt_endpoint_t *main)
{
    const opal_crypt_peer_info_t *peer = opal_crypt_schedule_peer(main->schedule);
    opal_btl_crypt_address_t networks[OPAL_BTL_CRYPT_ADDRESSES_MAX];
    opal_btl_crypt_addresses_t addresses;
    unsigned count;

    (void) opal_btl_crypt_address_unpack(peer->transport, peer->transport_bytes, &addresses);
    count = (unsigned) opal_btl_crypt_address_networks(&opal_btl_crypt.own, &addresses, networks);
    count = (0 == count ? 1 : count) * opal_btl_crypt.links;
    return count < OPAL_BTL_CRYPT_RAILS ? count : OPAL_BTL_CRYPT_RAILS;
}

void opal_btl_crypt_rails_begin(opal_btl_crypt_endpoint_t *main)
{
    const unsigned count = opal_btl_crypt_rails_count(main);
    opal_btl_crypt_endpoint_t *rail;

    for (uint16_t i = 1; i < count; i++) {
        rail = opal_btl_crypt_rail(main, i);
        if (NULL != rail) {
            pthread_mutex_lock(&opal_btl_crypt.lock);
            rail->wanted = true;
            opal_btl_crypt_endpoint_busy(rail);
            pthread_mutex_unlock(&opal_btl_crypt.lock);
        }
    }
}

/* ---- from the first connection to its end ---- */

/* Both ends know of the same connection: a join that was meant for an earlier one is refused. */
void opal_btl_crypt_rails_anew(opal_btl_crypt_endpoint_t *main, const opal_crypt_tls_identity_t *identity)
{
    main->order = (opal_btl_crypt_order_t) {.session = opal_btl_crypt_session(identity)};
    for (int i = 1; i < OPAL_BTL_CRYPT_RAILS; i++) {
        if (NULL != main->rails[i]) {
            main->rails[i]->sent = main->rails[i]->joined = 0;
            main->rails[i]->gone = false;
        }
    }
}

/* A handshake of an earlier session, which the peer has given up, must not be completed in the next one. */
void opal_btl_crypt_rails_forget(const opal_btl_crypt_endpoint_t *main)
{
    for (uint16_t i = 1; i < OPAL_BTL_CRYPT_RAILS; i++) {
        opal_btl_crypt_listen_forget(&opal_btl_crypt.listener, &main->tls_name, i);
    }
}

bool opal_btl_crypt_rails_end(opal_btl_crypt_endpoint_t *main)
{
    bool lost = false;

    opal_btl_crypt_rails_forget(main);
    for (uint16_t i = 0; i < OPAL_BTL_CRYPT_RAILS; i++) {
        opal_btl_crypt_endpoint_t *rail = 0 == i ? main : main->rails[i];

        if (NULL == rail) {
            continue;
        }
        if (NULL != rail->connecting) {
            opal_btl_crypt_drop(rail->connecting);
        }
        if (NULL != rail->link) {
            lost |= opal_btl_crypt_detach(rail, rail->link);
        }
        pthread_mutex_lock(&opal_btl_crypt.lock);
        lost |= i > 0 && NULL != rail->waiting.first;
        rail->replaced = false;
        rail->sent = rail->joined = 0;
        pthread_mutex_unlock(&opal_btl_crypt.lock);
    }
    return lost;
}

/* ---- reading on ---- */

static opal_btl_crypt_link_t *next_to_resume(const opal_btl_crypt_endpoint_t *main)
{
    for (uint16_t i = 0; main->railed && i < OPAL_BTL_CRYPT_RAILS; i++) {
        opal_btl_crypt_link_t *link = 0 == i ? main->link : NULL == main->rails[i] ? NULL : main->rails[i]->link;

        if (NULL != link && opal_btl_crypt_link_resumes(link)) {
            return link;
        }
    }
    return NULL;
}

/* Rail 0 waits at a join.  Is there a connection over which what it waits for can come: one in use, one that the peer may
 * have kept, or the next one of a rail that is being replaced?  Else the peer has sent into nothing. */
static void check_join(opal_btl_crypt_endpoint_t *main)
{
    opal_btl_crypt_endpoint_t *rail = 0 == main->order.awaited ? NULL : main->rails[main->order.awaited];

    if (0 == main->order.awaited || NULL == main->link || (NULL != rail && NULL != rail->link)) {
        return;
    }
    pthread_mutex_lock(&opal_btl_crypt.lock);
    if (NULL != rail && (rail->replaced || (NULL != rail->connecting && OPAL_BTL_CRYPT_HELLO_SENT == rail->connecting->state))) {
        opal_btl_crypt_endpoint_busy(rail);
    } else {
        opal_btl_crypt_link_fail(main->link, "it waits for another connection, which there is not");
        opal_btl_crypt_endpoint_busy(main);
    }
    pthread_mutex_unlock(&opal_btl_crypt.lock);
}

void opal_btl_crypt_rails_read(opal_btl_crypt_endpoint_t *main)
{
    opal_btl_crypt_link_t *link;

    for (int i = 0; i < READS_MOST && NULL != (link = next_to_resume(main)); i++) {
        opal_btl_crypt_take_in(link);
        opal_btl_crypt_handle_state(link);
    }
    check_join(main);
    link = next_to_resume(main);
    if (NULL != link) {
        pthread_mutex_lock(&opal_btl_crypt.lock);
        opal_btl_crypt_endpoint_busy(link->owner);
        pthread_mutex_unlock(&opal_btl_crypt.lock);
    }
}
