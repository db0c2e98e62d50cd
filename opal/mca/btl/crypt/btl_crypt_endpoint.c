/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Peers: created by add_procs, or when they connect to us; progress attends to them while something is queued for
 * them.
 */
#include "btl_crypt.h"

#include <time.h>

#include "opal/class/opal_bitmap.h"

static void endpoint_construct(opal_btl_crypt_endpoint_t *endpoint)
{
    memset((char *) endpoint + sizeof(endpoint->super), 0, sizeof(*endpoint) - sizeof(endpoint->super));
    endpoint->main = endpoint;
}

static void endpoint_destruct(opal_btl_crypt_endpoint_t *endpoint)
{
    opal_cryptproc_search_end(endpoint->search);
    opal_crypt_schedule_destroy(endpoint->schedule);
    free(endpoint->why);
}

OBJ_CLASS_INSTANCE(opal_btl_crypt_endpoint_t, opal_list_item_t, endpoint_construct, endpoint_destruct);

/* ---- find ---- */

static bool same_name(const opal_process_name_t *a, const opal_process_name_t *b)
{
    return a->jobid == b->jobid && a->vpid == b->vpid;
}

/* With the lock. */
static opal_btl_crypt_endpoint_t *endpoint_find(const opal_process_name_t *name, bool make)
{
    opal_btl_crypt_endpoint_t *at;

    OPAL_LIST_FOREACH(at, &opal_btl_crypt.endpoints, opal_btl_crypt_endpoint_t) {
        if (same_name(&at->name, name)) {
            return at;
        }
    }
    at = make ? OBJ_NEW(opal_btl_crypt_endpoint_t) : NULL;
    if (NULL != at) {
        at->name = *name;
        opal_btl_crypt_begin_anew(at);
        at->met = name->jobid == OPAL_PROC_MY_NAME.jobid ? 0 : (int64_t) time(NULL);
        opal_list_append(&opal_btl_crypt.endpoints, &at->super);
    }
    return at;
}

/* From another job only peers that Open MPI has added are accepted.  With the lock. */
static opal_btl_crypt_endpoint_t *of_another_job(const opal_crypt_tls_name_t *claimed)
{
    char job[OPAL_CRYPTPROC_NSPACE_BYTES];
    opal_crypt_tls_name_t name;
    opal_btl_crypt_endpoint_t *at;

    OPAL_LIST_FOREACH(at, &opal_btl_crypt.endpoints, opal_btl_crypt_endpoint_t) {
        if (at->name.jobid != OPAL_PROC_MY_NAME.jobid && at->name.vpid == claimed->rank) {
            opal_cryptproc_job_name(&at->name, job);
            if (OPAL_CRYPT_OK == opal_crypt_tls_name_make(job, claimed->rank, claimed->instance, &name)
                && opal_crypt_tls_name_equal(&name, claimed)) {
                return at;
            }
        }
    }
    return NULL;
}

opal_btl_crypt_endpoint_t *opal_btl_crypt_endpoint_claimed(const opal_crypt_tls_identity_t *identity, bool make)
{
    const opal_crypt_tls_name_t *claimed = &identity->claimed;
    const opal_process_name_t name = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = claimed->rank};
    opal_btl_crypt_endpoint_t *endpoint = NULL;

    if (identity->link >= OPAL_BTL_CRYPT_RAILS) {
        return NULL;
    }
    make = make && 0 == identity->link;
    pthread_mutex_lock(&opal_btl_crypt.lock);
    if (0 != memcmp(claimed->nspace, opal_btl_crypt.engine.own.nspace, sizeof(claimed->nspace))) {
        endpoint = of_another_job(claimed);
    } else if (claimed->rank < opal_btl_crypt.job_size && claimed->rank != OPAL_PROC_MY_NAME.vpid) {
        endpoint = endpoint_find(&name, make);
    }
    if (NULL != endpoint && identity->link > 0 && !opal_btl_crypt_rails_may(endpoint)) {
        endpoint = NULL;
    }
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    return endpoint;
}

bool opal_btl_crypt_endpoint_ask(opal_btl_crypt_endpoint_t *endpoint)
{
    opal_crypt_why_t why = {0};

    if (endpoint->rail > 0) {
        return true;
    }
    opal_btl_crypt_claim_over(endpoint);
    return NULL != endpoint->schedule
           || opal_btl_crypt_claim_finish(endpoint, opal_cryptproc_schedule(&endpoint->name, endpoint->met, &endpoint->schedule, &why),
                                          &why);
}

/* ---- add ---- */

/* Does not take progress: the thread that has it may wait, in a callback, for a lock that our caller holds. */
int opal_btl_crypt_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                             opal_btl_crypt_endpoint_t **endpoints, struct opal_bitmap_t *reachable)
{
    bool others = false;

    (void) btl;
    if (!opal_btl_crypt.started) {              /* the host of pml/crypt is not ob1 */
        return OPAL_SUCCESS;
    }
    pthread_mutex_lock(&opal_btl_crypt.lock);
    for (size_t i = 0; i < count; i++) {
        endpoints[i] = NULL;
        if (same_name(&procs[i]->proc_name, &OPAL_PROC_MY_NAME)) {
            continue;
        }
        endpoints[i] = endpoint_find(&procs[i]->proc_name, true);
        if (NULL != endpoints[i]) {
            endpoints[i]->proc = procs[i];
            endpoints[i]->leaving = false;
            others |= procs[i]->proc_name.jobid != OPAL_PROC_MY_NAME.jobid;
            if (NULL != reachable) {
                opal_bitmap_set_bit(reachable, (int) i);
            }
        }
    }
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    /* Processes of another job may check our record long after it was made. */
    return others ? opal_cryptproc_renew((int64_t) time(NULL)) : OPAL_SUCCESS;
}

/* ---- progress ---- */

void opal_btl_crypt_endpoint_busy(opal_btl_crypt_endpoint_t *endpoint)
{
    if (!endpoint->busy) {
        endpoint->busy = true;
        endpoint->next_busy = opal_btl_crypt.busy;
        __atomic_store_n(&opal_btl_crypt.busy, endpoint, __ATOMIC_RELAXED);
    }
}

int opal_btl_crypt_endpoint_reap(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_item_t *item;
    int done = 0;

    while (NULL != (item = opal_btl_crypt_link_reap(link))) {
        if (item == &link->hello) {
            continue;
        }
        pthread_mutex_unlock(&opal_btl_crypt.lock);
        opal_btl_crypt_frag_done(endpoint, item);
        pthread_mutex_lock(&opal_btl_crypt.lock);
        done++;
    }
    return done;
}

static bool connects(const opal_btl_crypt_endpoint_t *endpoint)
{
    return 0 == endpoint->rail
           || ((endpoint->wanted || !opal_btl_crypt_rail_is_spare(endpoint)) && opal_btl_crypt_rail_may(endpoint));
}

static void begin_rails(opal_btl_crypt_endpoint_t *endpoint)
{
    if (endpoint->has_long && !endpoint->wanted && OPAL_BTL_CRYPT_OPEN == endpoint->link->state) {
        endpoint->wanted = true;
        pthread_mutex_unlock(&opal_btl_crypt.lock);
        opal_btl_crypt_rails_begin(endpoint);
        pthread_mutex_lock(&opal_btl_crypt.lock);
    }
}

/* The caller holds the lock, before and after. */
static int progress_endpoint(opal_btl_crypt_endpoint_t *endpoint)
{
    opal_btl_crypt_link_t *link = endpoint->link;
    int done = 0;

    if (NULL != link && (OPAL_BTL_CRYPT_FAILED == link->state || OPAL_BTL_CRYPT_ENDED == link->state)) {
        pthread_mutex_unlock(&opal_btl_crypt.lock);
        opal_btl_crypt_handle_state(link);
        pthread_mutex_lock(&opal_btl_crypt.lock);
    } else if (NULL != link) {
        done = opal_btl_crypt_endpoint_reap(endpoint, link);
        begin_rails(endpoint);
        if (opal_btl_crypt_link_resumes(link)) {
            pthread_mutex_unlock(&opal_btl_crypt.lock);
            opal_btl_crypt_rails_read(endpoint->main);
            pthread_mutex_lock(&opal_btl_crypt.lock);
        }
    } else if (endpoint->main->failed) {
        done = opal_btl_crypt_endpoint_lose(endpoint->main);
    } else if (connects(endpoint)) {
        pthread_mutex_unlock(&opal_btl_crypt.lock);
        opal_btl_crypt_seek(endpoint);
        pthread_mutex_lock(&opal_btl_crypt.lock);
    }
    return done;
}

static bool has_work(const opal_btl_crypt_endpoint_t *endpoint)
{
    const opal_btl_crypt_link_t *link = endpoint->link;

    return NULL == link ? NULL != endpoint->waiting.first || (endpoint->rail > 0 && connects(endpoint))
                        : OPAL_BTL_CRYPT_OPEN != link->state || NULL != link->queue.first || NULL != link->sealed.first
                              || opal_btl_crypt_link_resumes(link);
}

int opal_btl_crypt_endpoints_progress(void)
{
    opal_btl_crypt_endpoint_t *endpoint, *list;
    int done = 0;

    if (!opal_btl_crypt_any_busy()) {
        return 0;
    }
    pthread_mutex_lock(&opal_btl_crypt.lock);
    list = opal_btl_crypt.busy;
    __atomic_store_n(&opal_btl_crypt.busy, NULL, __ATOMIC_RELAXED);
    while (NULL != (endpoint = list)) {
        list = endpoint->next_busy;
        done += progress_endpoint(endpoint);
        endpoint->busy = false;
        if (has_work(endpoint)) {
            opal_btl_crypt_endpoint_busy(endpoint);
        }
    }
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    return done;
}
