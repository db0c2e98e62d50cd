/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What this process waits for: naming it, and what has arrived instead (pml_crypt_waits.h).
 */
#include "pml_crypt_waits.h"

#include <limits.h>
#include <string.h>

enum { SECOND = 1000000000 };           /* the host is not asked about a younger receive */

void ompi_pml_crypt_waits_begin(ompi_pml_crypt_waits_t *waits, opal_crypt_status_snapshot_t *snapshot, int64_t now)
{
    memset(waits, 0, sizeof(*waits));
    waits->snapshot = snapshot;
    waits->now = now;
    waits->meeting = OPAL_CRYPT_STATUS_ANY;
}

/* Among the oldest, if it is older than the youngest of them. */
ompi_pml_crypt_named_t *ompi_pml_crypt_waits_place(ompi_pml_crypt_waits_t *waits, bool sends, int64_t since)
{
    ompi_pml_crypt_named_t *oldest = sends ? waits->sends : waits->receives;
    unsigned *count = sends ? &waits->send_count : &waits->receive_count, youngest = 0;

    if (*count < OMPI_PML_CRYPT_OLDEST) {
        return &oldest[(*count)++];
    }
    for (unsigned i = 1; i < OMPI_PML_CRYPT_OLDEST; i++) {
        youngest = oldest[i].wait.since > oldest[youngest].wait.since ? i : youngest;
    }
    return since < oldest[youngest].wait.since ? &oldest[youngest] : NULL;
}

/* ---- calls that block ---- */

static void add_inside(ompi_common_cryptmpi_inside_t *inside, void *context)
{
    ompi_pml_crypt_waits_t *waits = context;
    ompi_pml_crypt_named_t *named;

    if (0 == inside->since) {
        inside->since = waits->now;
    }
    if (OPAL_CRYPT_STATUS_CONTACT == inside->kind) {
        waits->meeting = inside->peer;
    }
    if (waits->inside_count >= OMPI_PML_CRYPT_OLDEST) {
        return;
    }
    named = &waits->inside[waits->inside_count++];
    *named = (ompi_pml_crypt_named_t){
        .wait = {.since = inside->since, .bytes = inside->bytes, .kind = inside->kind, .peer = inside->peer,
                 .tag = inside->tag, .blocking = 1}, .comm = inside->comm,
        .retained = (ompi_communicator_t *) (uintptr_t) inside->comm};
    if (NULL != named->retained) {
        OBJ_RETAIN(named->retained);
    }
    if (NULL != inside->text) {
        opal_cryptproc_cut(named->wait.text, sizeof(named->wait.text), inside->text);
    }
}

/* ---- communicators ---- */

static const char *collective_of(int tag)
{
    static const char *const names[] = {"all-gather", "all-gather", "all-reduce", "all-to-all", "all-to-all", "all-to-all",
                                        "barrier", "broadcast", "exclusive scan", "gather", "gather", "reduce",
                                        "reduce-scatter", "reduce-scatter", "scan", "scatter", "scatter"};
    const int first = -10;              /* coll_tags.h, the same from 4.1 to 6.0 */

    return tag > first || tag <= first - (int) (sizeof(names) / sizeof(names[0])) ? tag < 0 ? "collective" : NULL
                                                                               : names[first - tag];
}

/* The process of a rank of the communicator; ANY if there is no such rank. */
static int32_t process_of(const ompi_communicator_t *comm, int peer)
{
    opal_process_name_t name;

    if (peer < 0 || peer >= ompi_group_size(comm->c_remote_group)) {
        return OPAL_CRYPT_STATUS_ANY;
    }
    name = ompi_group_get_proc_name(comm->c_remote_group, peer);
    return name.jobid == OPAL_PROC_MY_NAME.jobid ? (int32_t) name.vpid : OPAL_CRYPT_STATUS_FOREIGN;
}

static void name_wait(ompi_pml_crypt_named_t *named)
{
    opal_crypt_status_wait_t *w = &named->wait;
    const ompi_communicator_t *comm = named->comm;
    const char *collective = collective_of(w->tag);

    w->process = OPAL_CRYPT_STATUS_CONTACT == w->kind ? w->peer : OPAL_CRYPT_STATUS_ANY;
    if (OPAL_CRYPT_STATUS_CONTACT == w->kind) {
        w->peer = OPAL_CRYPT_STATUS_ANY;
        return;
    }
    if (MPI_ANY_TAG == w->tag) {
        w->tag = INT_MIN;
    } else if (NULL != collective && '\0' == w->text[0]) {
        opal_cryptproc_cut(w->text, sizeof(w->text), collective);
    }
    if (NULL != comm) {
        w->process = process_of(comm, w->peer);
        opal_cryptproc_cut(w->comm, sizeof(w->comm), comm->c_name);
        if (w->blocking) {
            named->c = ompi_common_cryptmpi_comm(comm);
        }
    }
    w->peer = w->peer < 0 ? OPAL_CRYPT_STATUS_ANY : w->peer;
}

/* ---- what has arrived instead ---- */

/* What the host has for this source; it stays there.  The host makes progress, in which a communicator may be
 * freed: ours is retained; and in which peers are contacted: a first contact that waits holds the lock for that. */
static void ask_host(opal_crypt_status_wait_t *w, ompi_communicator_t *comm, int peer_count)
{
    const bool ours = !ompi_common_cryptmpi_transport_is_btl();
    const size_t header = ours ? OPAL_CRYPT_LOCAL_HEADER : 0;
    const int any = ours ? ompi_pml_crypt_host_tag(MPI_ANY_TAG) : MPI_ANY_TAG;
    const int source = OPAL_CRYPT_STATUS_ANY == w->peer ? MPI_ANY_SOURCE : w->peer;
    ompi_status_public_t status = {.MPI_ERROR = MPI_SUCCESS};
    int found = 0;

    if (OMPI_SUCCESS != ompi_pml_crypt.host.pml_iprobe(source, any, comm, &found, &status)) {
        return;
    }
    w->asked = 1;
    if (found && status.MPI_TAG != w->tag && (unsigned) status.MPI_SOURCE < (unsigned) peer_count) {
        w->queued_unmatched = 1;
        w->unmatched_peer = status.MPI_SOURCE;
        w->unmatched_tag = status.MPI_TAG;
        w->unmatched_bytes = status._ucount > header ? status._ucount - header : 0;
    }
}

/* cm's probe waits until its completion was read, which with threads only a caller of ours may be able to do: from 5.0
 * on mtl/ofi makes progress of everything in a callback, under the lock for reading completions. */
static bool may_ask_host(void)
{
    return !(ompi_pml_crypt.mtl && opal_cryptproc_threaded());
}

/* `c` need not be the communicator of the wait any more: another, with fewer processes, may be at its address now. */
static bool worth_asking(const ompi_pml_crypt_waits_t *waits, const opal_crypt_status_wait_t *w,
                         const ompi_common_cryptmpi_comm_t *c)
{
    return __atomic_load_n(&c->at_host, __ATOMIC_ACQUIRE) && w->peer >= OPAL_CRYPT_STATUS_ANY && w->peer < c->peer_count
           && may_ask_host() && OPAL_CRYPT_STATUS_ANY == waits->meeting && !w->queued_unmatched && w->tag >= 0
           && waits->now - w->since >= SECOND
           && (OPAL_CRYPT_STATUS_RECEIVE == w->kind || OPAL_CRYPT_STATUS_PROBE == w->kind);
}

/* A communicator stays in the list until its destructor reaches this component: its count may be 0 already. */
static ompi_communicator_t *retain_living(ompi_communicator_t *comm)
{
    opal_object_t *object = (opal_object_t *) comm;
    int32_t count = object->obj_reference_count;

    while (count > 0) {
        if (opal_atomic_compare_exchange_strong_32(&object->obj_reference_count, &count, count + 1)) {
            return comm;
        }
    }
    return NULL;
}

/* ---- into the snapshot ---- */

static void add_wait(ompi_pml_crypt_waits_t *waits, ompi_pml_crypt_named_t *named)
{
    opal_crypt_status_snapshot_t *snapshot = waits->snapshot;
    ompi_communicator_t *ask = NULL;
    int peer_count = 0;

    if (OPAL_CRYPT_STATUS_WAITS == snapshot->wait_count) {
        return;
    }
    ompi_common_cryptmpi_comms_hold();
    if (NULL == named->comm && NULL != named->at) {
        named->c = ompi_common_cryptmpi_comm_known(named->at);
        named->comm = NULL == named->c ? NULL : named->c->comm;
    }
    name_wait(named);
    if (NULL != named->comm && NULL != named->c) {
        if (NULL != waits->held) {
            waits->held(waits, named);
        }
        if (worth_asking(waits, &named->wait, named->c)) {
            ask = retain_living(named->c->comm);
            peer_count = named->c->peer_count;
        }
    }
    ompi_common_cryptmpi_comms_release();
    if (NULL != ask) {
        ask_host(&named->wait, ask, peer_count);
        OBJ_RELEASE(ask);
    }
    snapshot->waits[snapshot->wait_count++] = named->wait;
}

void ompi_pml_crypt_waits_add_inside(ompi_pml_crypt_waits_t *waits)
{
    ompi_common_cryptmpi_insides_visit(add_inside, waits);
    for (unsigned i = 0; i < waits->inside_count; i++) {
        add_wait(waits, &waits->inside[i]);
        if (NULL != waits->inside[i].retained) {
            OBJ_RELEASE(waits->inside[i].retained);
        }
    }
}

void ompi_pml_crypt_waits_add_requests(ompi_pml_crypt_waits_t *waits)
{
    for (unsigned i = 0; i < waits->receive_count; i++) {
        add_wait(waits, &waits->receives[i]);
    }
    for (unsigned i = 0; i < waits->send_count; i++) {
        add_wait(waits, &waits->sends[i]);
    }
}
