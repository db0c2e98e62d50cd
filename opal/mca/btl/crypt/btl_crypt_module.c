/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The module: its table, its start and end, and progress.
 */
#include "btl_crypt.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/runtime/opal_progress.h"


/* ---- epoll ---- */

void opal_btl_crypt_watch(opal_btl_crypt_link_t *link)
{
    const uint32_t wanted = (OPAL_BTL_CRYPT_CONNECTING == link->state ? 0 : EPOLLIN) | (link->wants_write ? EPOLLOUT : 0);
    struct epoll_event event = {.events = wanted, .data.ptr = link};

    if (wanted == link->armed) {
        return;
    }
    if (0 == epoll_ctl(opal_btl_crypt.epoll, 0 == link->armed ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, link->fd, &event)) {
        link->armed = wanted;
    } else {
        opal_btl_crypt_link_fail(link, "the system does not let it be watched (epoll)");
    }
}

void opal_btl_crypt_unwatch(opal_btl_crypt_link_t *link)
{
    if (0 != link->armed) {
        (void) epoll_ctl(opal_btl_crypt.epoll, EPOLL_CTL_DEL, link->fd, NULL);
        link->armed = 0;
    }
    for (int i = 0; i < opal_btl_crypt.event_count; i++) {
        if (link == opal_btl_crypt.events[i]) {
            opal_btl_crypt.events[i] = NULL;
        }
    }
}

void opal_btl_crypt_take_in(opal_btl_crypt_link_t *link)
{
    const bool hello_came = link->hello_came;

    opal_btl_crypt_link_read(link);
    if (link->last_came || hello_came != link->hello_came) {
        pthread_mutex_lock(&opal_btl_crypt.lock);
        opal_btl_crypt_link_pump(link);
        pthread_mutex_unlock(&opal_btl_crypt.lock);
    }
}

/* With fault tolerance: MPI_Wait has reported the failure to the program, so the memory of its transfers may be
 * gone. */
bool opal_btl_crypt_has_failed(const opal_btl_crypt_endpoint_t *endpoint)
{
    endpoint = endpoint->main;
    return endpoint->failed || (opal_btl_crypt.tolerant && NULL != opal_cryptproc_has_failed && NULL != endpoint->proc
                                && opal_cryptproc_has_failed(endpoint->proc));
}

static void handle(opal_btl_crypt_link_t *link, uint32_t bits)
{
    const opal_btl_crypt_endpoint_t *endpoint = link->owner;

    if (OPAL_BTL_CRYPT_OPEN == link->state && NULL != link->owner && opal_btl_crypt_has_failed(link->owner)) {
        pthread_mutex_lock(&opal_btl_crypt.lock);
        opal_btl_crypt_link_fail(link, "it is known to have failed");
        pthread_mutex_unlock(&opal_btl_crypt.lock);
    } else if (OPAL_BTL_CRYPT_CONNECTING == link->state || OPAL_BTL_CRYPT_SHAKING == link->state
        || OPAL_BTL_CRYPT_ANSWERED == link->state) {
        opal_btl_crypt_link_drive(link);
    } else {
        if (0 != (bits & EPOLLOUT)) {
            pthread_mutex_lock(&opal_btl_crypt.lock);
            link->wants_write = false;
            opal_btl_crypt_link_pump(link);
            pthread_mutex_unlock(&opal_btl_crypt.lock);
        }
        if (0 != (bits & ~(uint32_t) EPOLLOUT) && OPAL_BTL_CRYPT_FAILED != link->state) {
            opal_btl_crypt_take_in(link);
        }
    }
    opal_btl_crypt_handle_state(link);
    if (NULL != endpoint) {
        opal_btl_crypt_rails_read(endpoint->main);
    }
}

/* The listening socket is watched with a null pointer.  A link that waits for other rails is no progress. */
static int handle_all(void)
{
    struct epoll_event events[OPAL_BTL_CRYPT_EVENTS];
    const int count = epoll_wait(opal_btl_crypt.epoll, events, OPAL_BTL_CRYPT_EVENTS, 0);
    bool accepts = false;
    int waiting = 0;

    for (int i = 0; i < count; i++) {
        opal_btl_crypt.events[i] = events[i].data.ptr;
        opal_btl_crypt.event_bits[i] = events[i].events;
        accepts |= NULL == events[i].data.ptr;
    }
    opal_btl_crypt.event_count = count > 0 ? count : 0;
    for (int i = 0; i < opal_btl_crypt.event_count; i++) {
        if (NULL != opal_btl_crypt.events[i]) {
            waiting += opal_btl_crypt_link_waits(opal_btl_crypt.events[i]);
            handle(opal_btl_crypt.events[i], opal_btl_crypt.event_bits[i]);
        }
    }
    opal_btl_crypt.event_count = 0;
    if (accepts) {
        opal_btl_crypt_listen_accept(&opal_btl_crypt.listener);
    }
    return count > 0 ? count - waiting : 0;
}

/* ---- progress ---- */

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

bool opal_btl_crypt_progress_try(void)
{
    uintptr_t nobody = 0;

    return __atomic_compare_exchange_n(&opal_btl_crypt.progressor, &nobody, (uintptr_t) pthread_self(), false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

bool opal_btl_crypt_progress_take(void)
{
    if ((uintptr_t) pthread_self() == __atomic_load_n(&opal_btl_crypt.progressor, __ATOMIC_RELAXED)) {
        return false;
    }
    while (!opal_btl_crypt_progress_try()) {
        sched_yield();
    }
    return true;
}

void opal_btl_crypt_progress_give(void)
{
    __atomic_store_n(&opal_btl_crypt.progressor, 0, __ATOMIC_RELEASE);
}

/* Peers wait for us to accept them, and cannot know why we do not. */
static void starved(void)
{
    const opal_btl_crypt_listener_t *listener = &opal_btl_crypt.listener;
    const bool over = opal_btl_crypt_listen_starved(listener);
    struct rlimit limit = {0};

    if (!over && opal_btl_crypt.said_starved) {
        return;
    }
    opal_btl_crypt.said_starved = true;
    (void) getrlimit(RLIMIT_NOFILE, &limit);
    OPAL_CRYPTPROC_SHOW(OPAL_BTL_CRYPT_HELP, over ? "no-descriptor-end" : "no-descriptor", opal_process_info.nodename,
                        (unsigned long) OPAL_PROC_MY_NAME.vpid, (unsigned long) limit.rlim_cur);
    if (over) {
        opal_btl_crypt_end_job();
    }
}

int opal_btl_crypt_go_round(void)
{
    const opal_btl_crypt_listener_t *listener = &opal_btl_crypt.listener;
    int done;

    if (listener->unauthenticated.count > 0 || 0 != listener->starved_at || opal_btl_crypt_any_busy()) {
        opal_btl_crypt_listen_poll(&opal_btl_crypt.listener, now_us());
    }
    done = handle_all();
    return done + opal_btl_crypt_endpoints_progress();
}

int opal_btl_crypt_progress(void)
{
    const opal_btl_crypt_listener_t *listener = &opal_btl_crypt.listener;
    int done;

    if (!opal_btl_crypt.started || 0 != __atomic_load_n(&opal_btl_crypt.progressor, __ATOMIC_RELAXED) || !opal_btl_crypt_progress_try()) {
        return 0;
    }
    done = opal_btl_crypt_go_round();
    if (0 != listener->starved_at) {
        starved();
    }
    if (opal_btl_crypt.some_leave) {
        opal_btl_crypt_endpoints_leave();
    }
    opal_btl_crypt_progress_give();
    return done;
}

/* ---- start and end ---- */

static bool deliver(opal_btl_crypt_link_t *link, uint8_t tag, void *bytes, size_t count)
{
    mca_btl_base_segment_t segment = {.seg_addr.pval = bytes, .seg_len = count};

    if (tag >= MCA_BTL_TAG_MAX || NULL == mca_btl_base_active_message_trigger[tag].cbfunc) {
        return false;
    }
    opal_btl_crypt_call(&opal_btl_crypt.super, ((const opal_btl_crypt_endpoint_t *) link->owner)->main, tag, &segment);
    return true;
}

/* At the end, when the PML may be gone: discard. */
static bool for_nobody(opal_btl_crypt_link_t *link, uint8_t tag, void *bytes, size_t count)
{
    (void) link, (void) tag, (void) bytes, (void) count;
    return true;
}

static bool watch_listener(void)
{
    struct epoll_event event = {.events = EPOLLIN};

    opal_btl_crypt.epoll = epoll_create1(EPOLL_CLOEXEC);
    return opal_btl_crypt.epoll >= 0
           && 0 == epoll_ctl(opal_btl_crypt.epoll, EPOLL_CTL_ADD, opal_btl_crypt.listener.fd, &event);
}

bool opal_btl_crypt_module_start(void)
{
    opal_btl_crypt_module_t *m = &opal_btl_crypt;
    opal_crypt_identity_t own;

    opal_cryptproc_own(&own);
    m->job_size = opal_btl_crypt_job_size();
    m->tolerant = opal_btl_crypt_tolerant();
    m->engine.tls = m->tls;
    m->engine.aead = opal_crypt_local_options(opal_cryptproc_local())->aead;
    m->engine.deliver = deliver;
    m->engine.records_most = m->replace_after;
    m->engine.threads = opal_cryptproc_params.threads;
    m->engine.kernel = OPAL_BTL_CRYPT_KTLS_AUTO == m->ktls;
    m->listener.engine = &m->engine;
    m->listener.own = &m->own;
    m->listener.find = opal_btl_crypt_find;
    m->listener.opened = opal_btl_crypt_watch;
    m->listener.closing = opal_btl_crypt_unwatch;
    OBJ_CONSTRUCT(&m->endpoints, opal_list_t);
    m->started = 0 != m->job_size && OPAL_CRYPT_OK == opal_crypt_tls_name_make(own.nspace, own.rank, own.instance, &m->engine.own)
                 && opal_btl_crypt_engine_start(&m->engine) && watch_listener() && opal_btl_crypt_frags_start();
    return m->started;
}

static int finalize(mca_btl_base_module_t *btl)
{
    opal_btl_crypt_module_t *m = &opal_btl_crypt;
    opal_btl_crypt_endpoint_t *endpoint;

    if (NULL == m->tls || opal_crypt_forked()) {        /* never started, or forked: the sockets are the parent's */
        return OPAL_SUCCESS;
    }
    m->started = false;
    m->engine.deliver = for_nobody;
    m->error_cb = NULL;
    while (!opal_list_is_empty(&m->endpoints)) {
        endpoint = (opal_btl_crypt_endpoint_t *) opal_list_get_first(&m->endpoints);
        opal_btl_crypt_del_procs(btl, 1, NULL, &endpoint);
    }
    opal_btl_crypt_listen_stop(&m->listener);
    close(m->epoll);
    opal_btl_crypt_engine_stop(&m->engine);
    opal_btl_crypt_frags_stop();
    OBJ_DESTRUCT(&m->endpoints);
    opal_crypt_tls_destroy(m->tls);
    m->tls = NULL;
    opal_cryptproc_stop();
    return OPAL_SUCCESS;
}

static int register_error(mca_btl_base_module_t *btl, mca_btl_base_module_error_cb_fn_t callback)
{
    (void) btl;
    opal_btl_crypt.error_cb = callback;
    return OPAL_SUCCESS;
}

enum { FLAGS = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_PUT | MCA_BTL_FLAGS_SEND_INPLACE };
static_assert(0 == (FLAGS & OPAL_BTL_CRYPT_FLAGS_NEVER), "a later put may arrive first");

opal_btl_crypt_module_t opal_btl_crypt = {
    .super = {
        .btl_component = &mca_btl_crypt_component,
        .btl_eager_limit = OPAL_BTL_CRYPT_FRAGMENT_USUAL,
        .btl_rndv_eager_limit = 4 * 1024,
        .btl_max_send_size = 132 * 1024,
        .btl_rdma_pipeline_send_length = 0,
        .btl_rdma_pipeline_frag_size = (size_t) 1 << 30,
        .btl_put_limit = (size_t) 1 << 30,
        .btl_exclusivity = MCA_BTL_EXCLUSIVITY_LOW + 100,
        .btl_latency = 100,
        .btl_bandwidth = 1000,
        .btl_flags = FLAGS,
        .btl_add_procs = opal_btl_crypt_add_procs,
        .btl_del_procs = opal_btl_crypt_del_procs,
        .btl_finalize = finalize,
        .btl_alloc = opal_btl_crypt_alloc,
        .btl_free = opal_btl_crypt_free,
        .btl_prepare_src = opal_btl_crypt_prepare_src,
        .btl_send = opal_btl_crypt_send,
        .btl_sendi = opal_btl_crypt_sendi,
        .btl_put = opal_btl_crypt_put,
        .btl_register_error = register_error,
    },
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .listener.fd = -1,
    .epoll = -1,
    .stream = -1,
};
