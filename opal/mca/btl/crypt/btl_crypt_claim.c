/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A hello names a peer, and anybody can send one.  Whether the name is true can be decided only with that peer's
 * record.  So this file bounds what any claim may cost:
 *
 *     time      the lookup does not wait for the runtime: the hello is refused, and the peer retries
 *     memory    at most 64 peers that were only claimed; the oldest is evicted, but not within its first second, so
 *               there are at most 64 lookups a second
 *
 * Peers that have authenticated, or that we need ourselves, do not count.  A claim decides nothing for good: a refused
 * record is checked again later.
 *
 * Progress thread only.
 */
#include "btl_crypt.h"

/* Real time. */
enum {
    ASK_AGAIN_US = 10000000,
    STAYS_US = 1000000
};
enum { SOON_MS = 5 };                   /* for the runtime's answer, if this node has it */

/* Both sides choose the same group, whichever looks first. */
static bool group_found(opal_btl_crypt_endpoint_t *endpoint, opal_crypt_tls_groups_t theirs, opal_crypt_why_t *why)
{
    char here[OPAL_CRYPT_TLS_GROUPS_TEXT], there[OPAL_CRYPT_TLS_GROUPS_TEXT];
    opal_crypt_tls_groups_t both = opal_btl_crypt.own.groups & theirs;
    const opal_crypt_tls_group_of_t *group = opal_crypt_tls_group_take(&both);

    if (NULL == group) {
        (void) opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, OPAL_BTL_CRYPT_NO_COMMON_GROUP,
                                 "rank %lu (%s): %s\n  rank %lu: %s", (unsigned long) OPAL_PROC_MY_NAME.vpid, opal_process_info.nodename,
                                 opal_crypt_tls_groups_text(opal_btl_crypt.own.groups, here),
                                 (unsigned long) endpoint->name.vpid, opal_crypt_tls_groups_text(theirs, there));
        return false;
    }
    endpoint->group = group->group;
    return true;
}

bool opal_btl_crypt_claim_finish(opal_btl_crypt_endpoint_t *endpoint, int rc, opal_crypt_why_t *why)
{
    opal_btl_crypt_addresses_t addresses;
    const opal_crypt_peer_info_t *peer;
    bool again;

    if (OPAL_CRYPT_OK == rc) {
        peer = opal_crypt_schedule_peer(endpoint->schedule);
        *why = (opal_crypt_why_t) {0};          /* no topic: it has no btl/crypt that we know */
        if (opal_btl_crypt_address_unpack(peer->transport, peer->transport_bytes, &addresses)
            && group_found(endpoint, addresses.groups, why)
            && OPAL_CRYPT_OK == opal_crypt_tls_name_make(peer->nspace, peer->rank, peer->instance, &endpoint->tls_name)) {
            free(endpoint->why);                /* from an earlier lookup */
            endpoint->why = NULL;
            return true;
        }
        opal_crypt_schedule_destroy(endpoint->schedule);
        endpoint->schedule = NULL;
    }
    again = NULL != endpoint->why;              /* at least ASK_AGAIN_US later */
    endpoint->ask_at = opal_btl_crypt.listener.last + ASK_AGAIN_US;
    endpoint->why = again ? endpoint->why : malloc(sizeof(*why));
    if (NULL != endpoint->why) {
        *endpoint->why = *why;
    }
    if (again && !endpoint->said_why && NULL != why->topic && 0 != strcmp("record-missing", why->topic)) {
        endpoint->said_why = true;
        opal_btl_crypt_endpoint_show(endpoint, NULL, NULL);
    }
    return false;
}

void opal_btl_crypt_claim_over(opal_btl_crypt_endpoint_t *endpoint)
{
    opal_btl_crypt_module_t *m = &opal_btl_crypt;

    for (int i = 0; i < m->claimed_count; i++) {
        if (endpoint == m->claimed[i]) {
            memmove(m->claimed + i, m->claimed + i + 1, (size_t) (--m->claimed_count - i) * sizeof(m->claimed[0]));
            break;
        }
    }
    opal_cryptproc_search_end(endpoint->search);
    endpoint->search = NULL;
}

/* Evict the oldest, as if its name had never been claimed. */
static void evict(void)
{
    opal_btl_crypt_endpoint_t *endpoint = opal_btl_crypt.claimed[0];
    bool unknown;

    opal_btl_crypt_claim_over(endpoint);
    opal_crypt_schedule_destroy(endpoint->schedule);
    endpoint->schedule = NULL;
    pthread_mutex_lock(&opal_btl_crypt.lock);           /* another thread may be adding it, or sending to it */
    unknown = NULL == endpoint->proc;
    if (unknown) {
        opal_list_remove_item(&opal_btl_crypt.endpoints, &endpoint->super);
    }
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    if (unknown) {
        OBJ_RELEASE(endpoint);
    }
}

bool opal_btl_crypt_claim_allowed(void)
{
    const opal_btl_crypt_module_t *m = &opal_btl_crypt;

    return m->claimed_count < OPAL_BTL_CRYPT_CLAIMED || m->listener.last - m->claimed[0]->claimed_at >= STAYS_US;
}

static void enter(opal_btl_crypt_endpoint_t *endpoint)
{
    opal_btl_crypt_module_t *m = &opal_btl_crypt;

    if (OPAL_BTL_CRYPT_CLAIMED == m->claimed_count) {
        evict();
    }
    endpoint->claimed_at = m->listener.last;
    m->claimed[m->claimed_count++] = endpoint;
}

static bool goes_on(opal_btl_crypt_endpoint_t *endpoint)
{
    opal_crypt_why_t why = {0};
    int rc;

    if (!opal_cryptproc_search_go(endpoint->search, &endpoint->schedule, &rc, &why)) {
        return false;
    }
    opal_cryptproc_search_end(endpoint->search);
    endpoint->search = NULL;
    return opal_btl_crypt_claim_finish(endpoint, rc, &why);
}

bool opal_btl_crypt_claim(opal_btl_crypt_endpoint_t *endpoint)
{
    if (NULL != endpoint->schedule) {
        return true;
    }
    if (NULL != endpoint->search) {
        return goes_on(endpoint);
    }
    if (NULL != endpoint->why && opal_btl_crypt.listener.last < endpoint->ask_at) {
        return false;
    }
    opal_btl_crypt_claim_over(endpoint);                /* it becomes the newest */
    if (!opal_btl_crypt_claim_allowed()) {
        return false;
    }
    enter(endpoint);
    endpoint->search = opal_cryptproc_search_begin(&endpoint->name, endpoint->met);
    if (NULL == endpoint->search) {
        return false;
    }
    opal_cryptproc_search_wait(endpoint->search, SOON_MS);
    return goes_on(endpoint);
}
