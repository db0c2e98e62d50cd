/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Windows between nodes where pml/crypt seals messages, over ucx or cm: osc/rdma of 5.0 and 6.0 sends through BTLs, and
 * btl/crypt is the only network among them (docs/design/022-windows.rst).
 *
 *     start   btl/crypt listens, and our record has its addresses --> first window: its processes get BTLs --> osc/rdma
 *
 * Until then nothing is accepted from the port, and no message pays for polling it.
 */
#include "pml_crypt_host.h"

#include <stdio.h>

#include "opal/class/opal_bitmap.h"
#include "ompi/mca/bml/base/base.h"

static bool announced;

bool ompi_pml_crypt_windows_start(const char *agreed, bool mpi_threads)
{
    announced = false;
    if (OMPI_SUCCESS != mca_bml_base_init(false, mpi_threads) || NULL == mca_bml.bml_add_procs) {
        ompi_common_cryptmpi_transport_refuse("windows: bml/r2 did not start (--mca bml)");
        return false;
    }
    return ompi_pml_crypt_transport_go(agreed);
}

/* Those that have BTLs already keep them. */
static void reach(ompi_proc_t **procs, size_t count)
{
    opal_bitmap_t reachable;
    bool safe;

    OBJ_CONSTRUCT(&reachable, opal_bitmap_t);
    OPAL_THREAD_LOCK(&mca_bml_lock);
    safe = NULL != procs && OPAL_SUCCESS == opal_bitmap_init(&reachable, (int) count)
           && OMPI_SUCCESS == mca_bml.bml_add_procs(count, procs, &reachable);
    OPAL_THREAD_UNLOCK(&mca_bml_lock);
    OBJ_DESTRUCT(&reachable);
    for (size_t i = 0; safe && i < count; i++) {
        safe = ompi_pml_crypt_transport_covers(procs[i]);
    }
    free(procs);
    if (!safe) {
        ompi_common_cryptmpi_transport_refuse("windows: a process has no BTL, or one that would send in plaintext");
        opal_cryptproc_end();
    }
}

/* Rank 0 of the job, at its first such window: each communicator has a rank 0 of its own. */
static void announce(bool spans_nodes)
{
    if (spans_nodes && 0 == OPAL_PROC_MY_NAME.vpid && !__atomic_exchange_n(&announced, true, __ATOMIC_RELAXED)) {
        opal_output(0, "ompi-crypt: windows between nodes use TCP (btl/crypt), messages use %s", ompi_pml_crypt.host_name);
    }
}

/* All processes of the window do so before the first operation.  The others of this node are added with them, as
 * btl/sm needs: osc/rdma would do it one by one, and without a reference that del_procs gives back. */
void ompi_pml_crypt_windows_reach(ompi_communicator_t *comm)
{
    const int size = ompi_comm_size(comm);
    ompi_proc_t **procs = malloc((size_t) size * sizeof(*procs));
    bool spans_nodes = false;
    size_t allocated = 0, local = 0;

    for (int i = 0; NULL != procs && i < size; i++) {
        procs[i] = ompi_comm_peer_lookup(comm, i);
        spans_nodes |= procs[i] != ompi_proc_local_proc && !OPAL_PROC_ON_LOCAL_NODE(procs[i]->super.proc_flags);
    }
    reach(procs, (size_t) size);
    procs = ompi_proc_get_allocated(&allocated);
    for (size_t i = 0; NULL != procs && i < allocated; i++) {
        if (OPAL_PROC_ON_LOCAL_NODE(procs[i]->super.proc_flags)) {
            procs[local++] = procs[i];
        }
    }
    reach(procs, local);
    announce(spans_nodes);
}

/* Called after the host's del_procs: ucx's makes progress, in which btl/sm looks at the memory of processes.  The BTLs'
 * progress ends here.  They themselves end when their framework closes. */
void ompi_pml_crypt_windows_stop(ompi_proc_t **procs, size_t count)
{
    (void) mca_bml.bml_del_procs(count, procs);
    (void) mca_bml.bml_finalize();
}
