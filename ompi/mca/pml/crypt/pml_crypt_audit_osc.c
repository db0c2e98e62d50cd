/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One-sided components that do not send through the PML.
 *
 * For every window, Open MPI asks each osc component whether it wants it.
 * For components that would bypass us, a check of ours comes before that:
 * does every process of the communicator run on this node, according to
 * authenticated records and the host's transports?  Only then is the component
 * asked, and only if it uses these transports: osc/ucx may choose an adapter
 * within a node, even to oneself.  (4.1 has osc/pt2pt, which sends through the PML
 * and serves the other windows; later series have no such component: there osc/rdma uses btl/crypt, if the policy
 * says so, or the call fails.)
 *
 * osc/rdma may select an adapter, too: osc_rdma_btls lists those to prefer
 * (ompi_osc_rdma_query_btls in 4.1.4, ompi_osc_rdma_query_accelerated_btls in 5.0.7).
 * But whatever it selects, an operation goes through an endpoint that
 * ompi_osc_rdma_peer_btl_endpoint finds among the target's own BTLs: in btl_rdma (4.1),
 * or in btl_rdma and btl_eager (5.0).  For a process that counts as local these hold
 * only shared memory; an adapter then has no endpoint, and the window fails.  Operations
 * on oneself are done in memory, except MPI_Compare_and_swap in 4.1, which tries the
 * BTL first: so a window of one process needs local BTLs, too.
 *
 * With crypt_on_auth_failure=error, which asks for an error instead of the job's
 * end, a component that sends through the PML is preceded by a check, too: are all
 * peers authenticated?  Open MPI 4.1 crashes if the messages that create such a
 * window fail.
 *
 * Over btl/crypt, also if that carries only windows, osc/rdma and osc/sm are checked only with crypt_scope=all: a window
 * of two processes of a node, which would share memory, fails then, or is left to osc/pt2pt.
 *
 * The query function is not told which component it is called for, hence one small
 * function for each slot in the table.
 *
 * The communicators that a component above the PML makes for a window are marked: long
 * puts are received in place, and a program may read there before they are verified.
 */
#include "pml_crypt_host.h"

#include <stdio.h>

#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_names.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/win/win.h"

enum { SLOTS = 8 };

static struct {
    char name[64];
    bool rides;                         /* it sends through the PML */
    bool only_local;                    /* it works within a node only */
    bool by_btls;                       /* its transports are those that the locality of peers is judged by */
    ompi_osc_base_component_query_fn_t query;
} slots[SLOTS];
static int slot_count = 0;
static ompi_osc_base_component_select_fn_t select_riding;       /* of the one that sends through the PML */
static ompi_osc_base_component_select_fn_t select_rdma;         /* osc/rdma's */
static __thread bool selecting;
static bool sealed_component = false;   /* one that sends through the PML is there */

/* Cheap checks first: most windows span nodes, and Open MPI's own locality
 * says so.  Its "local" is not trusted without the records. */
static bool on_one_node(ompi_communicator_t *comm)
{
    int size = ompi_comm_size(comm);

    for (int i = 0; i < size; i++) {
        ompi_proc_t *proc = ompi_comm_peer_lookup(comm, i);
        if (proc != ompi_proc_local_proc && !OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags)) {
            return false;
        }
    }
    for (int i = 0; i < size; i++) {
        if (!ompi_common_cryptmpi_is_local(ompi_comm_peer_lookup(comm, i))) {
            return false;
        }
    }
    return true;
}

static bool all_known(ompi_communicator_t *comm)
{
    ompi_common_cryptmpi_comm_t *c = ompi_common_cryptmpi_comm(comm);
    ompi_common_cryptmpi_peer_t *peer;
    bool known = true;

    for (int i = 0; i < ompi_comm_size(comm); i++) {
        known = OMPI_SUCCESS == ompi_pml_crypt_peer(c, i, &peer) && known;
    }
    return known;
}

static bool may_answer(int slot, ompi_communicator_t *comm, int flavor)
{
    /* The memory of such a window is shared by the processes themselves. */
    if (slots[slot].only_local && (1 == ompi_comm_size(comm) || MPI_WIN_FLAVOR_SHARED == flavor)) {
        return true;
    }
    /* Others choose transports of their own (osc/ucx: perhaps an adapter, also to oneself).
     * Without BML osc/rdma has no transports, and says so itself. */
    if (slots[slot].by_btls && 1 == ompi_comm_size(comm)) {
        return !mca_bml_base_inited() || ompi_common_cryptmpi_btls_local(ompi_proc_local_proc);
    }
    return OPAL_CRYPTPROC_ALL != opal_cryptproc_params.scope
           && (slots[slot].only_local || (slots[slot].by_btls && on_one_node(comm)));
}

/* Why windows do not use btl/crypt or, on 4.1, osc/pt2pt, which alone sends through the PML. */
static const char *remedy(void)
{
    static char text[400];

    if (OMPI_MAJOR_VERSION >= 5) {
        snprintf(text, sizeof(text), "windows over several nodes cannot be encrypted here, because of this: %s",
                 ompi_common_cryptmpi_windows()->why);
        return text;
    }
    return "windows over several nodes need osc/pt2pt, which is not selected: unset the parameter osc, or add pt2pt to it; or use "
           "crypt_transport=btl";
}

/* All processes must get the same answer, or those that go on would wait for the others. */
static bool two_share_a_node(ompi_communicator_t *comm)
{
    int share = 0, any = 1;

    for (int i = 0; i < ompi_comm_size(comm); i++) {
        ompi_proc_t *proc = ompi_comm_peer_lookup(comm, i);
        share |= proc != ompi_proc_local_proc && OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags);
    }
    return OMPI_SUCCESS != comm->c_coll->coll_allreduce(&share, &any, 1, MPI_INT, MPI_MAX, comm, comm->c_coll->coll_allreduce_module)
           || 0 != any;
}

/* Among the components that are refused for a window, one prints the reason: osc/sm only if it is the only one. */
static bool speaks(int slot)
{
    bool others = false;

    for (int i = 0; i < slot_count; i++) {
        others |= !slots[i].only_local && !slots[i].rides;
    }
    return !slots[slot].only_local || !others;
}

/* crypt_scope=all over btl/crypt: data that processes of a node share is encrypted only if messages carry it. */
static bool shares_memory(int slot, ompi_communicator_t *comm, int flavor)
{
    if (OPAL_CRYPTPROC_ALL != opal_cryptproc_params.scope || slots[slot].rides || MPI_WIN_FLAVOR_SHARED == flavor
        || !two_share_a_node(comm)) {
        return false;
    }
    if (!sealed_component && speaks(slot)) {
        OPAL_CRYPTPROC_SHOW("help-mpi-pml-crypt.txt", "window-scope");
    }
    return true;
}

static int ask(int slot, struct ompi_win_t *win, void **base, size_t size, ompi_common_cryptmpi_win_unit_t unit, ompi_communicator_t *comm,
               struct opal_info_t *info, int flavor)
{
    char name[80];

    if (ompi_common_cryptmpi_over_btl()
        || (ompi_common_cryptmpi_windows_over_btl() && (slots[slot].by_btls || slots[slot].only_local))) {
        return shares_memory(slot, comm, flavor) ? OMPI_ERR_NOT_SUPPORTED
                                                  : slots[slot].query(win, base, size, unit, comm, info, flavor);
    }
    if (slots[slot].rides) {
        /* It would be chosen, and fail with advice that points to other components. */
        if (ompi_mpi_thread_multiple && MPI_WIN_FLAVOR_SHARED != flavor && !on_one_node(comm)) {
            OPAL_CRYPTPROC_SHOW("help-mpi-pml-crypt.txt", "window-threads");
            return OMPI_ERR_NOT_SUPPORTED;
        }
        return OPAL_CRYPTPROC_ERROR != opal_cryptproc_params.on_failure || all_known(comm)
                   ? slots[slot].query(win, base, size, unit, comm, info, flavor) : OMPI_ERR_UNREACH;
    }
    if (!may_answer(slot, comm, flavor)) {
        snprintf(name, sizeof(name), "osc/%s", slots[slot].name);
        if (ompi_pml_crypt_audit_finding(name, remedy(),
                                         !sealed_component && !slots[slot].only_local)) {
            return OMPI_ERR_NOT_SUPPORTED;
        }
    }
    return slots[slot].query(win, base, size, unit, comm, info, flavor);
}

#define QUESTION(n)                                                                                       \
    static int question_##n(struct ompi_win_t *win, void **base, size_t size,                             \
                            ompi_common_cryptmpi_win_unit_t unit, struct ompi_communicator_t *comm,       \
                            struct opal_info_t *info, int flavor)                                         \
    {                                                                                                     \
        return ask(n, win, base, size, unit, comm, info, flavor);                                         \
    }
QUESTION(0)
QUESTION(1)
QUESTION(2)
QUESTION(3)
QUESTION(4)
QUESTION(5)
QUESTION(6)
QUESTION(7)

static const ompi_osc_base_component_query_fn_t questions[SLOTS] = {question_0, question_1, question_2, question_3,
                                                                    question_4, question_5, question_6, question_7};

static int select_window(struct ompi_win_t *win, void **base, size_t size, ompi_common_cryptmpi_win_unit_t unit,
                         struct ompi_communicator_t *comm, struct opal_info_t *info, int flavor, int *model)
{
    selecting = true;
    const int rc = select_riding(win, base, size, unit, comm, info, flavor, model);
    selecting = false;
    return rc;
}

static int select_over_btl(struct ompi_win_t *win, void **base, size_t size, ompi_common_cryptmpi_win_unit_t unit,
                           struct ompi_communicator_t *comm, struct opal_info_t *info, int flavor, int *model)
{
    ompi_pml_crypt_windows_reach(comm);
    return select_rdma(win, base, size, unit, comm, info, flavor, model);
}

bool ompi_pml_crypt_audit_osc_makes_window(void)
{
    return selecting;
}

void ompi_pml_crypt_audit_osc(void)
{
    mca_base_component_list_item_t *item, *next;

    slot_count = 0;
    OPAL_LIST_FOREACH_SAFE(item, next, &ompi_osc_base_framework.framework_components,
                           mca_base_component_list_item_t) {
        ompi_osc_base_component_t *component = (ompi_osc_base_component_t *) item->cli_component;
        const char *name = component->osc_version.mca_component_name;

        const bool rides = ompi_common_cryptmpi_osc_rides(name);

        sealed_component = sealed_component || rides;
        if (slot_count == SLOTS) {      /* more than Open MPI ever had: leave none unchecked */
            opal_list_remove_item(&ompi_osc_base_framework.framework_components, &item->super);
            OBJ_RELEASE(item);
            continue;
        }
        snprintf(slots[slot_count].name, sizeof(slots[slot_count].name), "%s", name);
        slots[slot_count].rides = rides;
        slots[slot_count].only_local = ompi_common_cryptmpi_osc_local(name);
        slots[slot_count].by_btls = 0 == strcmp(name, "rdma");
        slots[slot_count].query = component->osc_query;
        component->osc_query = questions[slot_count++];
        if (rides) {
            select_riding = component->osc_select;
            component->osc_select = select_window;
        } else if (slots[slot_count - 1].by_btls && ompi_common_cryptmpi_windows_over_btl()) {
            select_rdma = component->osc_select;
            component->osc_select = select_over_btl;
        }
    }
}

/* The components outlive us when MPI is initialized again. */
void ompi_pml_crypt_audit_osc_end(void)
{
    mca_base_component_list_item_t *item;

    if (!mca_base_framework_is_open(&ompi_osc_base_framework)) {
        slot_count = 0;
        return;
    }
    OPAL_LIST_FOREACH(item, &ompi_osc_base_framework.framework_components, mca_base_component_list_item_t) {
        ompi_osc_base_component_t *component = (ompi_osc_base_component_t *) item->cli_component;
        for (int i = 0; i < slot_count; i++) {
            if (component->osc_query == questions[i]) {
                component->osc_query = slots[i].query;
            }
        }
        if (component->osc_select == select_window) {
            component->osc_select = select_riding;
        } else if (component->osc_select == select_over_btl) {
            component->osc_select = select_rdma;
        }
    }
    slot_count = 0;
}
