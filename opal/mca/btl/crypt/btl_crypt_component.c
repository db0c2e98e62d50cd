/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The component: its parameters, whether it may run, and how it starts.
 *
 * It is available only if --mca btl names it, so nothing changes for other jobs.  If it is named and cannot run, or
 * could be bypassed, it ends the job: the BTL framework alone would go on with the remaining components.
 */
#include "btl_crypt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/mca/aead/base/base.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_var_enum.h"
#include "opal/mca/common/crypt/base/library.h"

static int component_register(void);
static int component_open(void);
static int component_close(void);
static mca_btl_base_module_t **component_init(int *count, bool progress_threads, bool mpi_threads);

OPAL_DECLSPEC mca_btl_base_component_t mca_btl_crypt_component = {
    .btl_version = {
        MCA_BTL_DEFAULT_VERSION("crypt"),
        .mca_open_component = component_open,
        .mca_close_component = component_close,
        .mca_register_component_params = component_register,
    },
    .btl_data = {MCA_BASE_METADATA_PARAM_NONE},
    .btl_init = component_init,
    .btl_progress = opal_btl_crypt_progress,
};

void opal_btl_crypt_end_job(void)
{
    opal_cryptproc_end();
}

/* ---- parameters ---- */

/* Numbers of the words in params.def. */
typedef enum { PQ_AUTO, PQ_OFF, PQ_REQUIRE } pq_t;

static int component_register(void)
{
    opal_btl_crypt_module_t *m = &opal_btl_crypt;
    const opal_cryptproc_parameter_t list[] = {
        {"btl_crypt_port_min", &m->port_min},
        {"btl_crypt_port_range", &m->port_range},
        {"btl_crypt_replace_after", &m->replace_after},
        {"btl_crypt_pq", &m->pq},
        {"btl_crypt_ktls", &m->ktls},
        {"btl_crypt_links", &m->links},
    };
    const char *failed;
    int rc;

    if (!OPAL_AEAD_SERIES_OK("btl/crypt")) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    rc = opal_cryptproc_params_register();
    rc = rc ? rc : opal_cryptproc_register(list, sizeof(list) / sizeof(list[0]), &failed);
    if (OPAL_SUCCESS == rc) {
        (void) mca_btl_base_param_register(&mca_btl_crypt_component.btl_version, &m->super);
    }
    return rc;
}

/* ---- may it run? ---- */

static bool is_named(const char *list)
{
    return NULL != list && '^' != *list && opal_cryptproc_listed(list, "crypt", 5);
}

/* Are all network components of coll left out? */
static bool coll_is_safe(const char *list)
{
    const bool excludes = '^' == *list;

    for (const char *at = OPAL_CRYPTPROC_COLL_NETWORKS; '\0' != *at; at += strspn(at, ",")) {
        const size_t length = strcspn(at, ",");

        if (excludes != opal_cryptproc_listed(list + excludes, at, length)) {
            return false;
        }
        at += length;
    }
    return true;
}

static bool watching;               /* the shared memory */

static int component_close(void)
{
    opal_cryptproc_transport_snapshot = NULL;
    opal_cryptproc_transport_go = NULL;
    if (watching) {
        opal_cryptproc_shared_stop();
        watching = false;
    }
    opal_cryptproc_verbose_close(&opal_btl_crypt.stream);
    return OPAL_SUCCESS;
}

static bool refuse(const char *topic, const char *detail)
{
    char text[OPAL_CRYPTPROC_ON_NODE_BYTES];

    OPAL_CRYPTPROC_SHOW(OPAL_BTL_CRYPT_HELP, topic, opal_cryptproc_on_node(detail, text));
    return false;
}

/* osc and coll are opened after this framework, and before our init.  What counts is what those frameworks will read
 * or have read. */
static bool beside_is_safe(const char *btl, const char *osc, const char *coll)
{
    const bool all = OPAL_CRYPTPROC_ALL == opal_cryptproc_params.scope;

    return !opal_cryptproc_only_of(btl, OPAL_BTL_CRYPT_BESIDE)        ? refuse("not-alone", btl)
           : all && !opal_cryptproc_only_of(btl, "crypt,self")        ? refuse("scope", btl)
           : '\0' == *osc || !opal_cryptproc_only_of(osc, OPAL_CRYPTPROC_OSC_OVER_BTL) ? refuse("osc", osc)
           : !coll_is_safe(coll)                                      ? refuse("coll", coll)
                                                                      : true;
}

/* Exclude the unsafe components of `coll` too, unless it lists those to include.  NULL: no memory. */
static char *leave_out(char *coll)
{
    char *list;

    if ('\0' != *coll && ('^' != *coll || coll_is_safe(coll))) {
        return coll;
    }
    if (asprintf(&list, "%s%s%s", '^' == *coll ? coll : "^", '^' == *coll ? "," : "", OPAL_CRYPTPROC_COLL_NETWORKS) >= 0) {
        (void) opal_cryptproc_setenv("OMPI_MCA_coll", list);
        free(list);
    }
    free(coll);
    return opal_cryptproc_selection("ompi", "coll");
}

/* Unless osc's components are chosen, choose those that use the BTL, except any that are excluded. */
static void choose_osc(void)
{
    const char *named = getenv("OMPI_MCA_osc");
    char *list;

    if (NULL != named && '^' != *named) {
        return;
    }
    list = opal_cryptproc_without(OPAL_CRYPTPROC_OSC_OVER_BTL, NULL == named ? "" : named + 1);
    if (NULL != list) {
        (void) opal_cryptproc_setenv("OMPI_MCA_osc", list);
    }
    free(list);
}

/* Under pml/crypt the policy has checked osc and coll, and may yet find that no BTL is needed. */
static bool alone(const char *btl)
{
    char *coll = opal_cryptproc_selection("ompi", "coll"), *osc;
    bool safe;

    coll = NULL == coll ? NULL : leave_out(coll);
    choose_osc();
    osc = opal_cryptproc_selection("ompi", "osc");
    safe = NULL != osc && NULL != coll && (opal_cryptproc_opens("pml", "crypt", true) || beside_is_safe(btl, osc, coll));
    free(osc);
    free(coll);
    return safe;
}

static int component_open(void)
{
    char *btl = opal_cryptproc_selection("opal", "btl");
    const bool named = is_named(btl);

    /* An unreadable list might have named us. */
    if (NULL == btl || (named && !alone(btl))) {
        opal_btl_crypt_end_job();
    }
    free(btl);
    if (!named) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    opal_btl_crypt.stream = opal_cryptproc_verbose_open();
    opal_cryptproc_shared_start();
    watching = true;
    return OPAL_SUCCESS;
}

static bool limits_hold(void)
{
    mca_btl_base_module_t *btl = &opal_btl_crypt.super;
    char text[200];

    if (btl->btl_rndv_eager_limit > btl->btl_eager_limit) {             /* lowering the first lowers both */
        btl->btl_rndv_eager_limit = btl->btl_eager_limit;
    }
    if (btl->btl_eager_limit <= OPAL_BTL_CRYPT_FRAGMENT_MAX && btl->btl_max_send_size <= OPAL_BTL_CRYPT_FRAGMENT_MAX
        && opal_btl_crypt.port_min <= UINT16_MAX) {
        return true;
    }
    snprintf(text, sizeof(text), "eager_limit %zu, max_send_size %zu, port_min %u", btl->btl_eager_limit, btl->btl_max_send_size,
             opal_btl_crypt.port_min);
    return refuse("bad-limits", text);
}

/* ---- start ---- */

static bool listen_at(const opal_btl_crypt_listen_options_t *options)
{
    opal_btl_crypt_module_t *m = &opal_btl_crypt;
    char word[64], text[200];
    const char *bad = opal_btl_crypt_address_own(options->include, options->exclude, &m->own, word);

    if (NULL != bad) {
        return refuse("bad-interface", bad);
    }
    m->listener = (opal_btl_crypt_listener_t) {0};
    m->listener.fd = opal_btl_crypt_listen_at(options->port_min, options->port_range, &m->own.port);
    if (m->listener.fd < 0) {
        snprintf(text, sizeof(text), "port_min %u, port_range %u: %s", options->port_min, options->port_range,
                 strerror(errno));
        return refuse("no-port", text);
    }
    return true;
}

static bool listen_somewhere(void)
{
    opal_btl_crypt_listen_options_t options;
    bool listens;

    opal_btl_crypt_listen_options(&opal_btl_crypt, &options);
    listens = listen_at(&options);
    opal_btl_crypt_listen_options_free(&options);
    return listens;
}

static bool refuse_core(const opal_crypt_why_t *why)
{
    char text[OPAL_CRYPTPROC_ON_NODE_BYTES];

    OPAL_CRYPTPROC_SHOW("help-opal-common-crypt.txt", why->topic, opal_cryptproc_on_node(why->detail, text));
    return false;
}

/* Runs before there is a record, which lists the groups that OpenSSL supports and that we may use. */
static bool start_tls(void)
{
    opal_btl_crypt_module_t *m = &opal_btl_crypt;
    const opal_crypt_options_t *options = &opal_cryptproc_params.options;
    const opal_crypt_tls_groups_t hybrid = opal_crypt_tls_group_bit(OPAL_CRYPT_TLS_X25519MLKEM768);
    const opal_crypt_tls_groups_t usual = opal_crypt_tls_group_bit(options->fips ? OPAL_CRYPT_TLS_P256 : OPAL_CRYPT_TLS_X25519);
    static char keys[OPAL_CRYPT_TLS_GROUPS_TEXT];
    opal_crypt_why_t why = {0};

    if (OPAL_SUCCESS != opal_cryptproc_choose_cipher()) {
        return false;
    }
    if (OPAL_CRYPT_OK != opal_crypt_library_open(options->fips, &why)
        || OPAL_CRYPT_OK != opal_crypt_tls_create(options->cipher, &m->tls, &why)) {
        return refuse_core(&why);
    }
    m->own = (opal_btl_crypt_addresses_t) {
        .groups = opal_crypt_tls_groups(m->tls)
                  & (PQ_REQUIRE == m->pq ? hybrid : options->fips || PQ_OFF == m->pq ? usual : hybrid | usual)};
    if (0 == m->own.groups || (options->fips && PQ_REQUIRE == m->pq)) {
        return refuse("no-group", PQ_REQUIRE != m->pq ? "P-256 or X25519"
                                  : options->fips     ? "X25519MLKEM768 (btl_crypt_pq=require) under crypt_fips=1"
                                                      : "X25519MLKEM768 (btl_crypt_pq=require)");
    }
    opal_cryptproc_transport_is = "btl, TLS 1.3";
    opal_cryptproc_transport_keys = opal_crypt_tls_groups_text(m->own.groups, keys);
    opal_cryptproc_transport_peers = opal_cryptproc_transport_pq_peers = opal_cryptproc_transport_kernel_peers = 0;
    return true;
}

/* What all processes must agree on.  If one runs a collective through coll/cryptag and another does not, they wait for
 * each other for ever.  coll/cryptag runs only under pml/crypt, which makes sure that it is loaded. */
static const char *agreed(void)
{
    return opal_cryptproc_opens("pml", "crypt", true) && opal_cryptproc_opens("coll", "cryptag", false) ? "coll_cryptag=on"
                                                                                                         : "coll_cryptag=off";
}

/* Publish our record with our addresses; a component that started before us has published one without.  `text`: NULL, or
 * what pml/crypt agrees on, which seals messages itself. */
static bool publish(const char *text)
{
    static uint8_t bytes[OPAL_BTL_CRYPT_ADDRESSES_BYTES];
    const size_t count = opal_btl_crypt_address_pack(&opal_btl_crypt.own, bytes);
    const int rc = opal_cryptproc_start_transport(NULL == text ? agreed() : text, NULL == text, bytes, count);

    if (OPAL_ERR_BAD_PARAM == rc && NULL != opal_cryptproc_local()) {
        return refuse("too-late", "its record");
    }
    return OPAL_SUCCESS == rc && OPAL_SUCCESS == opal_cryptproc_provider_needed();
}

static bool go(const char *text)
{
    opal_cryptproc_transport_go = NULL;
    if (!start_tls() || !listen_somewhere() || !publish(text)) {
        opal_btl_crypt_end_job();
    }
    if (!opal_btl_crypt_module_start()) {
        refuse("no-start", strerror(errno));
        opal_btl_crypt_end_job();
    }
    opal_cryptproc_transport_snapshot = opal_btl_crypt_snapshot;
    return true;
}

/* Under pml/crypt, which may yet select a host that needs no BTL, we do not listen until it says so. */
static mca_btl_base_module_t **component_init(int *count, bool progress_threads, bool mpi_threads)
{
    mca_btl_base_module_t **modules = malloc(sizeof(*modules));

    (void) progress_threads;
    opal_cryptproc_threads_come(mpi_threads);
    if (NULL == modules || !limits_hold()) {
        opal_btl_crypt_end_job();
    }
    if (opal_cryptproc_opens("pml", "crypt", true)) {
        opal_cryptproc_transport_go = go;
    } else {
        (void) go(NULL);
    }
    modules[0] = &opal_btl_crypt.super;
    *count = 1;
    return modules;
}
