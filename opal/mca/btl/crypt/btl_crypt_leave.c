/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The end of a peer: del_procs, once it has taken what was sent to it; or the loss of its connection for good.
 */
#include "btl_crypt.h"

#include <sched.h>

#include "opal/mca/common/crypt/base/patience.h"
#include "opal/mca/common/crypt/base/secmem.h"

enum { CLOSE_MS = 10000 };      /* for the peer to take what is still queued */

/* ---- connection lost for good ---- */

void opal_btl_crypt_endpoint_show(const opal_btl_crypt_endpoint_t *endpoint, const char *reason, const char *topic)
{
    char job[OPAL_CRYPTPROC_NSPACE_BYTES];
    const char *host = NULL == endpoint->proc ? NULL : opal_get_proc_hostname(endpoint->proc);

    if (NULL != endpoint->why && NULL != endpoint->why->topic) {
        OPAL_CRYPTPROC_SHOW(0 == strcmp(endpoint->why->topic, OPAL_BTL_CRYPT_NO_COMMON_GROUP) ? OPAL_BTL_CRYPT_HELP
                                                                                              : "help-opal-common-crypt.txt",
                            endpoint->why->topic, endpoint->why->detail);
        return;
    }
    opal_cryptproc_job_name(&endpoint->name, job);
    OPAL_CRYPTPROC_SHOW(OPAL_BTL_CRYPT_HELP, topic, opal_process_info.nodename,
                        (unsigned long) OPAL_PROC_MY_NAME.vpid, job, (unsigned long) endpoint->name.vpid,
                        NULL == host ? "a host that is not known" : host, reason);
}

void opal_btl_crypt_endpoint_keep(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_queue_t *queues[] = {&link->sealed, &link->queue};
    opal_btl_crypt_item_t *item;

    for (int i = 0; i < 2; i++) {
        while (NULL != (item = opal_btl_crypt_queue_take(queues[i]))) {
            if (item != &link->hello) {
                opal_btl_crypt_queue_append(&endpoint->waiting, item);
            }
        }
    }
}

int opal_btl_crypt_endpoint_lose(opal_btl_crypt_endpoint_t *main)
{
    opal_btl_crypt_item_t *item;
    int done = 0;

    for (int i = 0; i < OPAL_BTL_CRYPT_RAILS; i++) {
        opal_btl_crypt_endpoint_t *endpoint = 0 == i ? main : main->rails[i];

        while (NULL != endpoint && NULL != (item = opal_btl_crypt_queue_take(&endpoint->waiting))) {
            pthread_mutex_unlock(&opal_btl_crypt.lock);
            opal_btl_crypt_frag_lost(endpoint, item);
            pthread_mutex_lock(&opal_btl_crypt.lock);
            done++;
        }
    }
    return done;
}

/* With fault tolerance, declare the peer failed.  It may have connected to us without having been added here. */
static void peer_failed(opal_btl_crypt_endpoint_t *endpoint)
{
    opal_proc_t *proc = NULL != endpoint->proc ? endpoint->proc : opal_proc_for_name(endpoint->name);

    pthread_mutex_lock(&opal_btl_crypt.lock);
    endpoint->failed = true;
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    (void) opal_btl_crypt_rails_end(endpoint);
    pthread_mutex_lock(&opal_btl_crypt.lock);
    (void) opal_btl_crypt_endpoint_lose(endpoint);
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    if (NULL != opal_btl_crypt.error_cb) {
        opal_btl_crypt.error_cb(&opal_btl_crypt.super, 0, proc, (char *) (uintptr_t) "btl/crypt lost a connection");
    }
}

/* A peer that cannot be authenticated is not treated as failed: the job ends in any case. */
void opal_btl_crypt_endpoint_broken(opal_btl_crypt_endpoint_t *endpoint, const char *reason)
{
    opal_btl_crypt_endpoint_t *main = endpoint->main;
    const bool goes_on = opal_btl_crypt.tolerant && NULL != main->schedule;

    opal_btl_crypt_endpoint_show(main, reason, goes_on ? "peer-failed" : "connection-lost");
    if (goes_on) {
        peer_failed(main);
        return;
    }
    if (NULL != opal_btl_crypt.error_cb) {
        opal_btl_crypt.error_cb(&opal_btl_crypt.super, MCA_BTL_ERROR_FLAGS_FATAL, main->proc,
                                (char *) (uintptr_t) "btl/crypt lost a connection");
    }
    opal_btl_crypt_end_job();
}

/* ---- leaving ---- */

static void forget_busy(opal_btl_crypt_endpoint_t *endpoint)
{
    pthread_mutex_lock(&opal_btl_crypt.lock);
    for (opal_btl_crypt_endpoint_t **at = &opal_btl_crypt.busy; NULL != *at; at = &(*at)->next_busy) {
        if (*at == endpoint) {
            __atomic_store_n(at, endpoint->next_busy, __ATOMIC_RELAXED);
            break;
        }
    }
    pthread_mutex_unlock(&opal_btl_crypt.lock);
}

/* Of several rails one may wait for another: all have to be empty before one is closed. */
static bool has_rest(const opal_btl_crypt_endpoint_t *endpoint)
{
    const opal_btl_crypt_link_t *link = endpoint->link;

    return NULL == link ? endpoint->replaced && NULL != endpoint->waiting.first
                        : ((link->last_came || opal_btl_crypt_link_is_last(link)) && NULL != link->queue.first)
                              || (endpoint->main->railed && opal_btl_crypt_link_has_more(link));
}

static bool between_connections(const opal_btl_crypt_endpoint_t *endpoint)
{
    bool between;

    pthread_mutex_lock(&opal_btl_crypt.lock);
    between = has_rest(endpoint);
    for (int i = 1; i < OPAL_BTL_CRYPT_RAILS; i++) {
        between |= NULL != endpoint->rails[i] && has_rest(endpoint->rails[i]);
    }
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    return between;
}

/* Something waits for the first contact.  *accepted: the peer's kernel has taken the connection; it does so while the
 * peer computes, but not after the peer has ended. */
static bool before_contact(const opal_btl_crypt_endpoint_t *endpoint, bool *accepted)
{
    const opal_btl_crypt_link_t *link = endpoint->connecting;
    bool before;

    pthread_mutex_lock(&opal_btl_crypt.lock);
    *accepted = NULL != link && OPAL_BTL_CRYPT_CONNECTING != link->state && OPAL_BTL_CRYPT_FAILED != link->state;
    before = NULL == endpoint->link && !endpoint->replaced && NULL != endpoint->waiting.first && !opal_btl_crypt_has_failed(endpoint);
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    return before;
}

/* A peer of another job may be computing, and does not wait in our MPI_Finalize: a spawned job may send and end.  Long
 * waits are reported, and crypt_connect_timeout applies, as for any first contact.  A peer of our own job was polling
 * a moment ago. */
static void await_contact(const opal_btl_crypt_endpoint_t *endpoint)
{
    const bool elsewhere = endpoint->name.jobid != OPAL_PROC_MY_NAME.jobid;
    opal_crypt_patience_t patience = opal_crypt_patience(CLOSE_MS);
    bool accepted;

    while (before_contact(endpoint, &accepted) && opal_crypt_patience_left(&patience) > 0) {
        if (elsewhere && accepted) {
            patience = opal_crypt_patience(CLOSE_MS);
        }
        if (0 == opal_btl_crypt_go_round()) {
            sched_yield();
        }
    }
}

static void close_one(opal_btl_crypt_endpoint_t *endpoint, opal_crypt_patience_t *patience, const char *text)
{
    opal_btl_crypt_link_t *link = endpoint->link;
    bool closed;

    forget_busy(endpoint);
    if (NULL != endpoint->connecting) {
        if (OPAL_BTL_CRYPT_HELLO_SENT == endpoint->connecting->state) {           /* the peer may have kept this one */
            opal_btl_crypt_link_decline(endpoint->connecting);
        }
        opal_btl_crypt_drop(endpoint->connecting);
    }
    if (NULL != link) {
        pthread_mutex_lock(&opal_btl_crypt.lock);
        endpoint->link = NULL;
        closed = opal_btl_crypt_link_close(link, (int) opal_crypt_patience_left(patience));
        opal_btl_crypt_endpoint_keep(endpoint, link);
        pthread_mutex_unlock(&opal_btl_crypt.lock);
        if (!closed) {
            opal_btl_crypt_endpoint_broken(endpoint, NULL != link->reason ? link->reason : text);
        }
        opal_btl_crypt_drop(link);
    }
}

static void leave_rails(opal_btl_crypt_endpoint_t *endpoint, opal_crypt_patience_t *patience, const char *text)
{
    for (int i = 1; i < OPAL_BTL_CRYPT_RAILS; i++) {
        opal_btl_crypt_endpoint_t *rail = endpoint->rails[i];

        if (NULL != rail) {
            close_one(rail, patience, text);
            pthread_mutex_lock(&opal_btl_crypt.lock);
            endpoint->rails[i] = NULL;
            pthread_mutex_unlock(&opal_btl_crypt.lock);
            OBJ_RELEASE(rail);
        }
    }
}

/* The last join tells the peer that it has all that was sent over other rails, once the first has ended. */
static void leave(opal_btl_crypt_endpoint_t *endpoint)
{
    opal_crypt_patience_t patience;
    char text[100];

    snprintf(text, sizeof(text), "in %d s it did not take the last of what was sent to it", CLOSE_MS / 1000);
    await_contact(endpoint);
    pthread_mutex_lock(&opal_btl_crypt.lock);
    if (!opal_btl_crypt_join(endpoint) && NULL != endpoint->link) {
        opal_btl_crypt_link_fail(endpoint->link, "no memory for what is to be sent");
    }
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    patience = opal_crypt_patience(CLOSE_MS);
    while (between_connections(endpoint) && opal_crypt_patience_left(&patience) > 0) {
        if (0 == opal_btl_crypt_go_round()) {
            sched_yield();
        }
    }
    if (between_connections(endpoint)) {
        opal_btl_crypt_endpoint_broken(endpoint, text);
    }
    leave_rails(endpoint, &patience, text);
    close_one(endpoint, &patience, text);
    opal_btl_crypt_claim_over(endpoint);
    pthread_mutex_lock(&opal_btl_crypt.lock);
    opal_list_remove_item(&opal_btl_crypt.endpoints, &endpoint->super);
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    OBJ_RELEASE(endpoint);
}

/* Another thread may be adding endpoints. */
static opal_btl_crypt_endpoint_t *next_leaving(void)
{
    opal_btl_crypt_endpoint_t *at, *found = NULL;

    pthread_mutex_lock(&opal_btl_crypt.lock);
    OPAL_LIST_FOREACH(at, &opal_btl_crypt.endpoints, opal_btl_crypt_endpoint_t) {
        if (at->leaving) {
            found = at;
            break;
        }
    }
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    return found;
}

void opal_btl_crypt_endpoints_leave(void)
{
    opal_btl_crypt_endpoint_t *endpoint;

    opal_btl_crypt.some_leave = false;
    while (NULL != (endpoint = next_leaving())) {
        leave(endpoint);
    }
}

/* When called from a callback, this thread is handling a connection, perhaps this very one: then progress does the
 * work once that is finished. */
int opal_btl_crypt_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                             opal_btl_crypt_endpoint_t **endpoints)
{
    bool taken;

    (void) btl, (void) procs;
    if (opal_crypt_forked()) {
        return OPAL_SUCCESS;
    }
    taken = opal_btl_crypt_progress_take();
    for (size_t i = 0; i < count; i++) {
        if (NULL != endpoints[i]) {
            endpoints[i]->leaving = opal_btl_crypt.some_leave = true;
        }
    }
    if (taken) {
        opal_btl_crypt_endpoints_leave();
        opal_btl_crypt_progress_give();
    }
    return OPAL_SUCCESS;
}
