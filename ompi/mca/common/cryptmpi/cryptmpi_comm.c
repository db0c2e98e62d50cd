/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What we keep for a communicator, found by its local index.
 *
 * The table has two levels and its pages never move, so that a reader needs no
 * lock: a communicator is added before its first message and removed after
 * its last.
 */
#include "cryptmpi_internal.h"

#include <stdlib.h>
#include <time.h>

#include "ompi/group/group.h"

enum { PAGE = 1024, PAGES = 4096 };     /* 2^22 communicators: more than any PML's context ids */

static ompi_common_cryptmpi_comm_t **pages[PAGES];
static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t going = PTHREAD_MUTEX_INITIALIZER;       /* held while one is removed, or being shown */

/* Acquire: the page's zeros are visible before the pointer to it. */
static ompi_common_cryptmpi_comm_t **page_of(uint32_t p)
{
    return __atomic_load_n(&pages[p], __ATOMIC_ACQUIRE);
}

static ompi_common_cryptmpi_comm_t **slot_of(const ompi_communicator_t *comm, bool grow)
{
    uint32_t index = ompi_common_cryptmpi_comm_index(comm);
    ompi_common_cryptmpi_comm_t **page;

    if (index >= PAGE * PAGES) {
        return NULL;
    }
    page = page_of(index / PAGE);
    if (NULL == page && grow) {
        pthread_mutex_lock(&growing);
        page = page_of(index / PAGE);
        if (NULL == page) {
            page = calloc(PAGE, sizeof(*page));
            __atomic_store_n(&pages[index / PAGE], page, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&growing);
    }
    return NULL == page ? NULL : &page[index % PAGE];
}

ompi_common_cryptmpi_comm_t *ompi_common_cryptmpi_comm(const ompi_communicator_t *comm)
{
    ompi_common_cryptmpi_comm_t **slot = slot_of(comm, false);
    return NULL == slot ? NULL : __atomic_load_n(slot, __ATOMIC_ACQUIRE);
}

void ompi_common_cryptmpi_lock_make(ompi_common_cryptmpi_lock_t *lock)
{
    pthread_mutexattr_t again;

    pthread_mutexattr_init(&again);
    pthread_mutexattr_settype(&again, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(lock, &again);
    pthread_mutexattr_destroy(&again);
}

int ompi_common_cryptmpi_comm_add(ompi_communicator_t *comm)
{
    ompi_common_cryptmpi_comm_t **slot = slot_of(comm, true);
    ompi_common_cryptmpi_comm_t *c;

    /* Open MPI's branch 6.0 of summer 2026 adds MPI_COMM_WORLD twice, where some component wants it early. */
    if (NULL != slot && NULL != *slot && comm == (*slot)->comm) {
        return OMPI_SUCCESS;
    }
    c = calloc(1, sizeof(*c));
    if (NULL == slot || NULL == c) {
        goto free_comm;
    }
    c->comm = comm;
    c->peer_count = OMPI_COMM_IS_INTER(comm) ? ompi_comm_remote_size(comm) : ompi_comm_size(comm);
    c->members = calloc(c->peer_count > 0 ? (size_t) c->peer_count : 1, sizeof(*c->members));
    if (NULL == c->members) {
        goto free_comm;
    }
    if (OPAL_CRYPT_OK != opal_crypt_serials_create(&c->serials)) {
        goto free_members;
    }
    ompi_common_cryptmpi_context(comm, &c->context_high, &c->context_low);
    if (OMPI_SUCCESS != ompi_common_cryptmpi_generation_count(c)) {
        goto free_serials;
    }
    ompi_common_cryptmpi_lock_make(&c->lock);
    OBJ_CONSTRUCT(&c->held, opal_list_t);
    __atomic_store_n(slot, c, __ATOMIC_RELEASE);
    return OMPI_SUCCESS;

free_serials:
    opal_crypt_serials_destroy(c->serials);
free_members:
    free(c->members);
free_comm:
    free(c);
    return OMPI_ERR_OUT_OF_RESOURCE;
}

int ompi_common_cryptmpi_comm_note(ompi_communicator_t *comm)
{
    ompi_common_cryptmpi_comm_t **slot = slot_of(comm, true);
    ompi_common_cryptmpi_comm_t *c;

    if (NULL != slot && NULL != *slot && comm == (*slot)->comm) {
        return OMPI_SUCCESS;
    }
    c = NULL == slot ? NULL : calloc(1, sizeof(*c));
    if (NULL == c) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    c->comm = comm;
    c->peer_count = OMPI_COMM_IS_INTER(comm) ? ompi_comm_remote_size(comm) : ompi_comm_size(comm);
    c->at_host = true;
    __atomic_store_n(slot, c, __ATOMIC_RELEASE);
    return OMPI_SUCCESS;
}

/* Open MPI keeps the processes of other jobs until MPI_Finalize, and so do we, but most of them never come back. */
static void foreigners_rest(const ompi_common_cryptmpi_comm_t *c)
{
    for (int i = 0; NULL != c->members && i < c->peer_count; i++) {
        ompi_common_cryptmpi_peer_t *peer = c->members[i].peer;

        if (NULL != peer && NULL != peer->session && peer->name.jobid != OPAL_PROC_MY_NAME.jobid) {
            opal_crypt_session_rest(peer->session);
        }
    }
}

void ompi_common_cryptmpi_comm_del(ompi_communicator_t *comm)
{
    ompi_common_cryptmpi_comm_t **slot = slot_of(comm, false);
    ompi_common_cryptmpi_comm_t *c = NULL == slot ? NULL : *slot;

    if (NULL == c) {
        return;
    }
    pthread_mutex_lock(&going);
    __atomic_store_n(slot, NULL, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&going);
    foreigners_rest(c);
    if (NULL != c->group) {
        opal_crypt_group_destroy(c->group);
    }
    if (NULL != c->serials) {
        opal_crypt_serials_destroy(c->serials);
        OBJ_DESTRUCT(&c->held);
        pthread_mutex_destroy(&c->lock);
    }
    free(c->members);
    free(c);
}

void ompi_common_cryptmpi_comms_hold(void)
{
    pthread_mutex_lock(&going);
}

void ompi_common_cryptmpi_comms_release(void)
{
    pthread_mutex_unlock(&going);
}

ompi_common_cryptmpi_comm_t *ompi_common_cryptmpi_comm_known(const void *pointer)
{
    for (uint32_t p = 0; p < PAGES; p++) {
        ompi_common_cryptmpi_comm_t **page = page_of(p);

        for (uint32_t i = 0; NULL != page && i < PAGE; i++) {
            ompi_common_cryptmpi_comm_t *c = __atomic_load_n(&page[i], __ATOMIC_ACQUIRE);

            if (NULL != c && (pointer == c || pointer == c->comm)) {
                return c;
            }
        }
    }
    return NULL;
}

ompi_common_cryptmpi_peer_t *ompi_common_cryptmpi_comm_fill(ompi_common_cryptmpi_comm_t *c, int rank)
{
    ompi_common_cryptmpi_peer_t *peer = ompi_common_cryptmpi_peer(ompi_comm_peer_lookup(c->comm, rank));

    __atomic_store_n(&c->members[rank].generation, ompi_common_cryptmpi_generation(c, peer->name), __ATOMIC_RELAXED);
    __atomic_store_n(&c->members[rank].peer, peer, __ATOMIC_RELEASE);
    return peer;
}

/* Free empty pages.  A page with a communicator that is yet to be removed stays, but its peers are gone. */
void ompi_common_cryptmpi_comms_stop(void)
{
    for (uint32_t p = 0; p < PAGES; p++) {
        uint32_t used = 0;

        for (uint32_t i = 0; NULL != pages[p] && i < PAGE; i++) {
            if (NULL != pages[p][i]) {
                used++;
                free(pages[p][i]->members);
                pages[p][i]->members = NULL;
            }
        }
        if (0 == used) {
            free(pages[p]);
            pages[p] = NULL;
        }
    }
}

/* ---- processes of other jobs: MPI_Comm_spawn, connect, accept, join ----
 *
 * They may connect hours after the records were made, and a munge credential
 * from then is too old for a process that checks it now.  So each side renews
 * the authentication of its record, and publishes that with the record.
 *
 *     add_comm (both sides: renew, publish) --> first contact (cryptproc_peer.c)
 *
 * Up to 5.0 there is a barrier in between, by which Open MPI activates every communicator, so the renewal
 * is always found.  6.0 has none for intercommunicators: a process that is early finds the renewal of an
 * earlier connection, or nothing, and looks again.
 */

/* Processes of other jobs are first met in an intercommunicator: without one, the
 * members of communicators need not be searched. */
static bool foreigners = false;

/* Note when processes of other jobs were met; are there any? */
static bool note(const ompi_communicator_t *comm, int64_t now)
{
    ompi_group_t *group = OMPI_COMM_IS_INTER(comm) ? comm->c_remote_group : comm->c_local_group;
    bool any = false;

    for (int i = 0; i < ompi_group_size(group); i++) {
        opal_process_name_t name = ompi_group_get_proc_name(group, i);

        if (name.jobid != OPAL_PROC_MY_NAME.jobid) {
            ompi_common_cryptmpi_peer(ompi_group_peer_lookup(group, i))->met = now;
            any = true;
        }
    }
    return any;
}

int ompi_common_cryptmpi_meet(const ompi_communicator_t *comm)
{
    int64_t now = (int64_t) time(NULL);

    if ((!foreigners && !OMPI_COMM_IS_INTER(comm)) || !note(comm, now)) {
        return OMPI_SUCCESS;
    }
    foreigners = true;
    return opal_cryptproc_renew(now);
}
