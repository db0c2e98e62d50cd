/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a status page shows of our peers (common/crypt, crypt/base/status.h): which are connected, records sent and
 * received, what a first contact waits for, and what a peer does not take.  And crypt_verbose: who met whom.
 *
 * It may be called at any time, and never waits: while another thread makes progress or sends, it returns false.
 */
#include "btl_crypt.h"

#include <netdb.h>
#include <string.h>

/* The start of a wait is the first snapshot that saw it. */
static void since_now(opal_btl_crypt_endpoint_t *endpoint, bool so, uint64_t mark, int64_t now)
{
    if (!so) {
        endpoint->waits_since = 0;
    } else if (0 == endpoint->waits_since || mark != endpoint->waits_mark) {
        endpoint->waits_since = now;
        endpoint->waits_mark = mark;
    }
}

const char *opal_btl_crypt_awaited(const opal_btl_crypt_endpoint_t *endpoint)
{
    if (NULL == endpoint->connecting) {
        return NULL == endpoint->main->schedule ? "its record of keys" : "an address of it that can be reached";
    }
    switch (endpoint->connecting->state) {
    case OPAL_BTL_CRYPT_CONNECTING:
        return "a connection (its node does not answer)";
    case OPAL_BTL_CRYPT_SHAKING:
        return "a connection (it does not answer the handshake)";
    default:
        return "a connection (it has not said whether it keeps it)";
    }
}

/* Bytes that the peer had no room for yet; of a long queue only the first items. */
static uint64_t left_to_send(const opal_btl_crypt_link_t *link)
{
    enum { ITEMS = 1000 };
    uint64_t left = link->sealed_bytes - link->written_bytes;
    int items = 0;

    for (const opal_btl_crypt_item_t *item = link->queue.first; NULL != item && items < ITEMS; item = item->next, items++) {
        left += item->bytes - item->sealed;
    }
    return left;
}

/* All rails together. */
static void add_links(opal_btl_crypt_endpoint_t *endpoint, int64_t now, opal_crypt_status_peer_t *peer,
                      opal_crypt_status_wait_t *wait)
{
    uint64_t left = 0, written = 0;

    for (int i = 0; i < OPAL_BTL_CRYPT_RAILS; i++) {
        const opal_btl_crypt_endpoint_t *rail = 0 == i ? endpoint : endpoint->rails[i];
        const opal_btl_crypt_link_t *link = NULL == rail ? NULL : rail->link;
        uint64_t sent, accepted;

        if (NULL != link) {
            opal_crypt_tls_records_counts(link->records, &sent, &accepted);
            peer->sent += link->kernel_out ? link->records_sent : sent;
            peer->accepted += link->kernel_in ? link->kernel_reads : accepted;  /* the kernel does not count records */
            left += left_to_send(link);
            written += link->written_bytes;
        }
    }
    peer->state = OPAL_CRYPT_STATUS_SEALED;
    peer->ahead_bytes = left < UINT32_MAX ? (uint32_t) left : UINT32_MAX;
    peer->highest = peer->accepted;
    since_now(endpoint, left > 0, written, now);
    wait->kind = left > 0 ? OPAL_CRYPT_STATUS_TAKE : OPAL_CRYPT_STATUS_NOTHING;
    wait->bytes = left;
}

/* With progress and the lock. */
static void add_endpoint(opal_btl_crypt_endpoint_t *endpoint, int64_t now, opal_cryptproc_peer_visit_t visit, void *context)
{
    const bool foreign = endpoint->name.jobid != OPAL_PROC_MY_NAME.jobid;
    opal_crypt_status_peer_t peer = {.rank = endpoint->name.vpid, .foreign = foreign};
    opal_crypt_status_wait_t wait = {.peer = OPAL_CRYPT_STATUS_ANY, .blocking = 1,
                                     .process = foreign ? OPAL_CRYPT_STATUS_FOREIGN : (int32_t) endpoint->name.vpid};
    const bool meets = NULL == endpoint->link && NULL != endpoint->waiting.first;

    if (NULL != endpoint->link) {
        add_links(endpoint, now, &peer, &wait);
    } else {
        peer.state = meets ? OPAL_CRYPT_STATUS_MEETING : OPAL_CRYPT_STATUS_UNKNOWN;
        since_now(endpoint, meets, 0, now);
        wait.kind = meets ? OPAL_CRYPT_STATUS_CONTACT : OPAL_CRYPT_STATUS_NOTHING;
        snprintf(wait.text, sizeof(wait.text), "%s", meets ? opal_btl_crypt_awaited(endpoint) : "");
    }
    wait.since = endpoint->waits_since;
    visit(&peer, OPAL_CRYPT_STATUS_NOTHING == wait.kind ? NULL : &wait, context);
}

/* ---- verbose ---- */

void opal_btl_crypt_say_met(const opal_btl_crypt_endpoint_t *endpoint, const opal_btl_crypt_link_t *link)
{
    const opal_crypt_tls_suite_t *suite = opal_crypt_tls_suite(opal_cryptproc_params.options.cipher);
    const opal_crypt_tls_group_of_t *group = opal_crypt_tls_group(endpoint->group);
    struct sockaddr_storage address = {0};
    socklen_t bytes = sizeof(address);
    char host[64], port[16], rail[24] = "";

    if (opal_btl_crypt.stream < 0 || 0 != getpeername(link->fd, (struct sockaddr *) &address, &bytes)
        || 0 != getnameinfo((struct sockaddr *) &address, bytes, host, sizeof(host), port, sizeof(port),
                            NI_NUMERICHOST | NI_NUMERICSERV)) {
        return;
    }
    const char *shown = host + (0 == strncmp(host, "::ffff:", 7) ? 7 : 0);      /* IPv4 on a dual-stack socket */

    if (endpoint->rail > 0) {
        snprintf(rail, sizeof(rail), ", rail %u", (unsigned) endpoint->rail);
    }
    opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, opal_btl_crypt.stream, "btl:crypt: rank %lu met rank %lu%s by %s: %s %s, port %s, %s, %s%s%s",
                        (unsigned long) OPAL_PROC_MY_NAME.vpid, (unsigned long) endpoint->name.vpid,
                        endpoint->name.jobid == OPAL_PROC_MY_NAME.jobid ? "" : " of another job",
                        opal_crypt_auth_name(opal_crypt_local_auth(opal_cryptproc_local())), link->listens ? "from" : "at", shown,
                        port, NULL == group ? "?" : group->name, NULL == suite ? "?" : suite->name,
                        link->kernel_out || link->kernel_in ? ", by the kernel" : "", rail);
}

/* ---- for status pages ---- */

bool opal_btl_crypt_snapshot(int64_t now, opal_cryptproc_peer_visit_t visit, void *context)
{
    const bool ours = (uintptr_t) pthread_self() == __atomic_load_n(&opal_btl_crypt.progressor, __ATOMIC_RELAXED);
    opal_btl_crypt_endpoint_t *at;
    bool locked;

    if (!opal_btl_crypt.started || (!ours && !opal_btl_crypt_progress_try())) {
        return !opal_btl_crypt.started;
    }
    locked = 0 == pthread_mutex_trylock(&opal_btl_crypt.lock);
    if (locked) {
        OPAL_LIST_FOREACH(at, &opal_btl_crypt.endpoints, opal_btl_crypt_endpoint_t) {
            add_endpoint(at, now, visit, context);
        }
        pthread_mutex_unlock(&opal_btl_crypt.lock);
    }
    if (!ours) {
        opal_btl_crypt_progress_give();
    }
    return locked;
}
