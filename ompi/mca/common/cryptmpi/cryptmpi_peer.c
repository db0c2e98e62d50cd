/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Peers: who they are, and whether messages to them are sealed.
 *
 * A peer is entered when it is first named, and resolved at first contact:
 * record from the modex, authentication, keys, and then the one decision on
 * which everything rests: LOCAL only if both the authenticated node identity
 * and the way the host PML reaches the peer say that nothing leaves the node;
 * SEALED in every other case.  This includes the process itself: UCX or
 * libfabric may send its messages to itself through an adapter, and with two
 * ports to the switch and back.
 *
 * The decision is made once, as no transport is added after it.  BML r2 gives a process
 * all of its transports when it makes the endpoint, skips processes that have one
 * (mca_bml_r2_add_proc, _add_procs), and later only removes transports.  Process and
 * endpoint live as long as MPI: the list of processes holds a reference to each until
 * ompi_proc_finalize, and del_procs, which frees the endpoint, is called for all
 * processes at once, after the last communicator (4.1: ompi_mpi_finalize; 5.0:
 * ompi_mpi_instance_cleanup_pml), never by MPI_Comm_disconnect.  When MPI is initialized
 * again, it starts with an empty table (ompi_common_cryptmpi_peers_stop).
 */
#include "cryptmpi.h"
#include "cryptmpi_internal.h"
#include "cryptmpi_names.h"

#include <stdlib.h>
#include <string.h>

#include "opal/class/opal_hash_table.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/bml/bml.h"

#define CORE_HELP "help-opal-common-crypt.txt"

static void construct(ompi_common_cryptmpi_peer_t *peer)
{
    memset((char *) peer + sizeof(peer->super), 0, sizeof(*peer) - sizeof(peer->super));
}

OBJ_CLASS_INSTANCE(ompi_common_cryptmpi_peer_t, opal_list_item_t, construct, NULL);

static opal_hash_table_t by_name;
static opal_list_t everybody;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;      /* both of the above */
static pthread_mutex_t resolving = PTHREAD_MUTEX_INITIALIZER;
static opal_crypt_token_t self_token;

void ompi_common_cryptmpi_peers_start(void)
{
    OBJ_CONSTRUCT(&by_name, opal_hash_table_t);
    OBJ_CONSTRUCT(&everybody, opal_list_t);
    opal_hash_table_init(&by_name, 256);
    opal_crypt_random(self_token.bytes, sizeof(self_token.bytes));
    opal_crypt_random(&self_token.base, sizeof(self_token.base));
}

void ompi_common_cryptmpi_peers_stop(void)
{
    ompi_common_cryptmpi_peer_t *peer;

    while (NULL != (peer = (ompi_common_cryptmpi_peer_t *) opal_list_remove_first(&everybody))) {
        if (NULL != peer->session) {
            opal_crypt_session_destroy(peer->session);
        }
        pthread_mutex_destroy(&peer->send_lock);
        free(peer->ahead);
        OBJ_DESTRUCT(&peer->arriving);
        OBJ_RELEASE(peer);
    }
    OBJ_DESTRUCT(&by_name);
    OBJ_DESTRUCT(&everybody);
    opal_crypt_wipe(&self_token, sizeof(self_token));
}

ompi_common_cryptmpi_peer_t *ompi_common_cryptmpi_peer(ompi_proc_t *proc)
{
    uint64_t key;
    void *found = NULL;

    memcpy(&key, &proc->super.proc_name, sizeof(key));
    pthread_mutex_lock(&table_lock);
    if (OPAL_SUCCESS != opal_hash_table_get_value_uint64(&by_name, key, &found)) {
        ompi_common_cryptmpi_peer_t *peer = OBJ_NEW(ompi_common_cryptmpi_peer_t);
        peer->name = proc->super.proc_name;
        peer->kind = OMPI_COMMON_CRYPTMPI_UNKNOWN;
        OBJ_CONSTRUCT(&peer->arriving, opal_list_t);
        peer->failure = OMPI_SUCCESS;
        ompi_common_cryptmpi_lock_make(&peer->send_lock);
        opal_hash_table_set_value_uint64(&by_name, key, peer);
        opal_list_append(&everybody, &peer->super);
        found = peer;
    }
    pthread_mutex_unlock(&table_lock);
    return found;
}

static bool stays_on_node(const mca_bml_base_btl_array_t *array)
{
    for (size_t i = 0; i < array->arr_size; i++) {
        if (!ompi_common_cryptmpi_btl_local(array->bml_btls[i].btl->btl_component->btl_version.mca_component_name)) {
            return false;
        }
    }
    return true;
}

bool ompi_common_cryptmpi_btls_local(ompi_proc_t *proc)
{
    mca_bml_base_endpoint_t *endpoint = mca_bml_base_get_endpoint(proc);

    return NULL != endpoint && endpoint->btl_send.arr_size > 0 && stays_on_node(&endpoint->btl_eager)
           && stays_on_node(&endpoint->btl_send) && stays_on_node(&endpoint->btl_rdma);
}

/* Does the host reach this process through shared memory alone?  Only ob1 can be
 * asked; for any other host the answer is no. */
static bool reached_on_node(ompi_proc_t *proc)
{
    return 0 == strcmp(ompi_common_cryptmpi_host_name(), "ob1") && ompi_common_cryptmpi_btls_local(proc);
}

/* For developers: if the host is ob1, the transports by which it reaches a process. */
static void transports(ompi_proc_t *proc, char *text, size_t bytes)
{
    mca_bml_base_endpoint_t *endpoint = 0 == strcmp(ompi_common_cryptmpi_host_name(), "ob1") ? mca_bml_base_get_endpoint(proc)
                                                                                             : NULL;
    size_t used = 0;

    snprintf(text, bytes, "%s", ompi_common_cryptmpi_host_name());
    for (size_t i = 0; NULL != endpoint && i < endpoint->btl_send.arr_size && used < bytes; i++) {
        used += (size_t) snprintf(text + used, bytes - used, "%s%s", i > 0 ? "," : "",
                                  endpoint->btl_send.bml_btls[i].btl->btl_component->btl_version.mca_component_name);
    }
}

static void say_kind(ompi_proc_t *proc, const ompi_common_cryptmpi_peer_t *peer)
{
    char text[128];

    if (opal_cryptproc_stream >= 0) {
        transports(proc, text, sizeof(text));
        opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, opal_cryptproc_stream,
                            "pml:crypt: rank %lu met rank %lu%s by %s: %s, over %s", (unsigned long) OPAL_PROC_MY_NAME.vpid,
                            (unsigned long) peer->name.vpid,
                            peer->name.jobid == OPAL_PROC_MY_NAME.jobid ? "" : " of another job",
                            opal_crypt_auth_name(opal_crypt_local_auth(opal_cryptproc_local())),
                            OMPI_COMMON_CRYPTMPI_LOCAL == ompi_common_cryptmpi_kind(peer) ? "plain, within the node" : "sealed",
                            text);
    }
}

static int make_session(const ompi_common_cryptmpi_peer_t *peer, opal_crypt_session_t **session)
{
    opal_crypt_schedule_t *schedule = NULL;
    opal_crypt_why_t why = {0};
    int rc = opal_cryptproc_provider_needed();

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    rc = opal_cryptproc_schedule(&peer->name, peer->met, &schedule, &why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_session_create(opal_cryptproc_local(), schedule, session, &why);
    }
    opal_crypt_schedule_destroy(schedule);
    /* It concerns only this pair: no other process can report it. */
    return OPAL_CRYPT_OK == rc ? OMPI_SUCCESS : ompi_common_cryptmpi_peer_refused(CORE_HELP, why.topic, why.detail);
}

static int resolve_other(ompi_proc_t *proc, ompi_common_cryptmpi_peer_t *peer)
{
    opal_crypt_session_t *session = NULL;
    int rc = make_session(peer, &session);
    bool local;

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    local = OPAL_CRYPTPROC_ALL != opal_cryptproc_params.scope
            && opal_crypt_session_peer(session)->same_node && reached_on_node(proc);
    peer->session = session;
    peer->token_out = opal_crypt_token_out(session);
    peer->token_in = opal_crypt_token_in(session);
    __atomic_store_n(&peer->kind, local ? OMPI_COMMON_CRYPTMPI_LOCAL : OMPI_COMMON_CRYPTMPI_SEALED, __ATOMIC_RELEASE);
    say_kind(proc, peer);
    return OMPI_SUCCESS;
}

/* Regardless of crypt_scope: over ob1 messages to oneself stay in the process. */
static int resolve_self(ompi_proc_t *proc, ompi_common_cryptmpi_peer_t *peer)
{
    const bool local = reached_on_node(proc);
    int rc = OMPI_SUCCESS;

    peer->token_out = peer->token_in = &self_token;
    if (!local) {
        rc = opal_cryptproc_provider_needed();
        if (OMPI_SUCCESS == rc
            && OPAL_CRYPT_OK != opal_crypt_session_alone(opal_cryptproc_local(), &peer->session)) {
            opal_cryptproc_show_here(CORE_HELP, "no-secret-memory",
                                           "a session of this process with itself");
            rc = OMPI_ERR_OUT_OF_RESOURCE;
        }
    }
    if (OMPI_SUCCESS == rc) {
        __atomic_store_n(&peer->kind, local ? OMPI_COMMON_CRYPTMPI_LOCAL : OMPI_COMMON_CRYPTMPI_SEALED,
                         __ATOMIC_RELEASE);
    }
    return rc;
}

int ompi_common_cryptmpi_resolve(ompi_proc_t *proc, ompi_common_cryptmpi_peer_t *peer)
{
    int rc;

    pthread_mutex_lock(&resolving);
    if (OMPI_COMMON_CRYPTMPI_UNKNOWN != ompi_common_cryptmpi_kind(peer) || OMPI_SUCCESS != peer->failure) {
        rc = peer->failure;
    } else if (proc == ompi_proc_local_proc) {
        rc = peer->failure = resolve_self(proc, peer);
    } else {
        rc = peer->failure = resolve_other(proc, peer);
    }
    pthread_mutex_unlock(&resolving);
    return rc;
}

static bool is_other(const ompi_common_cryptmpi_peer_t *peer)
{
    return peer->name.jobid != OPAL_PROC_MY_NAME.jobid || peer->name.vpid != OPAL_PROC_MY_NAME.vpid;
}

size_t ompi_common_cryptmpi_sealed_peers(ompi_common_cryptmpi_peer_t ***peers)
{
    ompi_common_cryptmpi_peer_t *peer;
    size_t count = 0;

    pthread_mutex_lock(&table_lock);
    *peers = calloc(opal_list_get_size(&everybody) + 1, sizeof(**peers));
    OPAL_LIST_FOREACH(peer, &everybody, ompi_common_cryptmpi_peer_t) {
        if (NULL != *peers && OMPI_COMMON_CRYPTMPI_SEALED == ompi_common_cryptmpi_kind(peer)
            && peer->name.jobid == OPAL_PROC_MY_NAME.jobid && is_other(peer)) {
            (*peers)[count++] = peer;
        }
    }
    pthread_mutex_unlock(&table_lock);
    return count;
}

void ompi_common_cryptmpi_peers_count(uint64_t *sealed, uint64_t *local)
{
    ompi_common_cryptmpi_peer_t *peer;

    *sealed = *local = 0;
    pthread_mutex_lock(&table_lock);
    OPAL_LIST_FOREACH(peer, &everybody, ompi_common_cryptmpi_peer_t) {
        *sealed += OMPI_COMMON_CRYPTMPI_SEALED == ompi_common_cryptmpi_kind(peer) && is_other(peer);
        *local += OMPI_COMMON_CRYPTMPI_LOCAL == ompi_common_cryptmpi_kind(peer) && NULL != peer->session;
    }
    pthread_mutex_unlock(&table_lock);
}

void ompi_common_cryptmpi_peers_visit(void (*visit)(ompi_common_cryptmpi_peer_t *peer, void *context), void *context)
{
    ompi_common_cryptmpi_peer_t *peer;

    pthread_mutex_lock(&table_lock);
    OPAL_LIST_FOREACH(peer, &everybody, ompi_common_cryptmpi_peer_t) {
        visit(peer, context);
    }
    pthread_mutex_unlock(&table_lock);
}

bool ompi_common_cryptmpi_is_local(ompi_proc_t *proc)
{
    ompi_common_cryptmpi_peer_t *peer = ompi_common_cryptmpi_peer(proc);

    return OMPI_SUCCESS == ompi_common_cryptmpi_resolve(proc, peer)
           && OMPI_COMMON_CRYPTMPI_LOCAL == ompi_common_cryptmpi_kind(peer);
}

int ompi_common_cryptmpi_session(ompi_proc_t *proc, opal_crypt_session_t **session)
{
    ompi_common_cryptmpi_peer_t *peer = ompi_common_cryptmpi_peer(proc);
    int rc = ompi_common_cryptmpi_resolve(proc, peer);

    *session = OMPI_SUCCESS == rc ? peer->session : NULL;
    return OMPI_SUCCESS == rc && NULL == *session ? OMPI_ERR_NOT_AVAILABLE : rc;
}
