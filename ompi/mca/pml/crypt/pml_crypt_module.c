/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The module: what Open MPI calls, and what happens when it starts and ends.
 */
#include "pml_crypt_host.h"
#include "pml_crypt_recv.h"

#include <string.h>

#include "opal/runtime/opal_progress.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_pipe.h"
#include "ompi/mca/pml/base/base.h"

mca_pml_base_module_t ompi_pml_crypt_module = {
    .pml_add_procs = ompi_pml_crypt_add_procs,
    .pml_del_procs = ompi_pml_crypt_del_procs,
    .pml_enable = ompi_pml_crypt_enable,
    .pml_add_comm = ompi_pml_crypt_add_comm,
    .pml_del_comm = ompi_pml_crypt_del_comm,
    .pml_isend_init = ompi_pml_crypt_isend_init,
    .pml_isend = ompi_pml_crypt_isend,
    .pml_send = ompi_pml_crypt_send,
    .pml_irecv_init = ompi_pml_crypt_irecv_init,
    .pml_irecv = ompi_pml_crypt_irecv,
    .pml_recv = ompi_pml_crypt_recv,
    .pml_start = ompi_pml_crypt_start,
    .pml_iprobe = ompi_pml_crypt_iprobe,
    .pml_probe = ompi_pml_crypt_probe,
    .pml_improbe = ompi_pml_crypt_improbe,
    .pml_mprobe = ompi_pml_crypt_mprobe,
    .pml_imrecv = ompi_pml_crypt_imrecv,
    .pml_mrecv = ompi_pml_crypt_mrecv,
    .pml_dump = ompi_pml_crypt_dump,
};

static int lists_start(void)
{
    int rc = ompi_pml_crypt_stages_start();

    OBJ_CONSTRUCT(&ompi_pml_crypt.requests, opal_free_list_t);
    ompi_pml_crypt.lists = true;
    if (OMPI_SUCCESS != rc
        || OPAL_SUCCESS != opal_free_list_init(&ompi_pml_crypt.requests, sizeof(ompi_pml_crypt_request_t), 64,
                                               OBJ_CLASS(ompi_pml_crypt_request_t), 0, 0, 0, -1, 64, NULL, 0, NULL,
                                               NULL, NULL)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    return OMPI_SUCCESS;
}

void ompi_pml_crypt_name_back(void)
{
    strcpy(mca_pml_crypt_component.pmlm_version.mca_component_name, "crypt");
    strcpy(mca_pml_base_selected_component.pmlm_version.mca_component_name, "crypt");
}

/* select() is over: take our own name back, and look at what else was opened. */
int ompi_pml_crypt_enable(bool enable)
{
    int rc;

    ompi_pml_crypt_name_back();
    if (enable && !ompi_pml_crypt.lists) {
        rc = lists_start();
        rc = OMPI_SUCCESS == rc ? ompi_pml_crypt_team_start() : rc;
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        ompi_pml_crypt.over = false;
        ompi_pml_crypt_queue_start();
        ompi_pml_crypt_ops_start();
        ompi_pml_crypt_deferred_start();
        ompi_pml_crypt_status_lists(true);
        opal_progress_register(ompi_pml_crypt_progress);
        rc = ompi_pml_crypt_audit();
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    opal_cryptproc_restore_env();         /* hook/crypt does so, too, but may be switched off */
    return ompi_pml_crypt.host.pml_enable(enable);
}

void ompi_pml_crypt_disable(void)
{
    if (!ompi_pml_crypt.lists) {
        return;
    }
    ompi_pml_crypt_status_lists(false);
    opal_progress_unregister(ompi_pml_crypt_progress);
    ompi_pml_crypt_audit_osc_end();
    ompi_pml_crypt_team_stop();
    ompi_pml_crypt_queue_stop();
}

void ompi_pml_crypt_lists_stop(void)
{
    if (ompi_pml_crypt.lists) {
        OBJ_DESTRUCT(&ompi_pml_crypt.requests);
        ompi_pml_crypt.made = NULL;
        ompi_pml_crypt_stages_stop();
        ompi_pml_crypt.lists = false;
    }
}

int ompi_pml_crypt_add_procs(ompi_proc_t **procs, size_t count)
{
    return ompi_pml_crypt.host.pml_add_procs(procs, count);
}

/* The transports close their connections in here, and make progress meanwhile.  Open MPI calls it in MPI_Finalize
 * only, or when the last session ends. */
int ompi_pml_crypt_del_procs(ompi_proc_t **procs, size_t count)
{
    ompi_common_cryptmpi_pipe_t pipe;
    int rc;

    ompi_pml_crypt.over = true;
    ompi_common_cryptmpi_pipe_block(&pipe);
    rc = ompi_pml_crypt.host.pml_del_procs(procs, count);
    if (ompi_common_cryptmpi_windows_over_btl()) {
        ompi_pml_crypt_windows_stop(procs, count);
    }
    ompi_common_cryptmpi_pipe_restore(&pipe);
    return rc;
}

/* The answer is what the host, which asks later, is told, and what MPI_Comm_get_info shows. */
static ompi_common_cryptmpi_info_char_t *never_overtakes(opal_infosubscriber_t *comm, ompi_common_cryptmpi_info_char_t *key,
                                                         ompi_common_cryptmpi_info_char_t *value)
{
    (void) comm;
    (void) key;
    (void) value;
    return "false";
}

/* Segments, and what was sealed before them, need the host's order.  ob1 gives it up where overtaking is
 * allowed; in 6.0.0rc2 it also loses count of messages with tags below 0 there, and then delivers none. */
int ompi_pml_crypt_add_comm(ompi_communicator_t *comm)
{
    int rc = ompi_common_cryptmpi_comm_add(comm);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    ompi_common_cryptmpi_comm(comm)->is_window = ompi_pml_crypt_audit_osc_makes_window();
    opal_infosubscribe_subscribe(&comm->super, "mpi_assert_allow_overtaking", "false", never_overtakes);
    rc = ompi_common_cryptmpi_meet(comm);
    rc = OMPI_SUCCESS == rc ? ompi_pml_crypt.host.pml_add_comm(comm) : rc;
    if (OMPI_SUCCESS != rc) {
        ompi_common_cryptmpi_comm_del(comm);
        return rc;
    }
    __atomic_store_n(&ompi_common_cryptmpi_comm(comm)->at_host, true, __ATOMIC_RELEASE);
    return OMPI_SUCCESS;
}

int ompi_pml_crypt_del_comm(ompi_communicator_t *comm)
{
    ompi_common_cryptmpi_comm_t *c = ompi_common_cryptmpi_comm(comm);

    if (&ompi_mpi_comm_self.comm == comm && ompi_pml_crypt_ending()) {
        ompi_common_cryptmpi_report_end();      /* its messages are counted by the next call */
        ompi_pml_crypt_final_take();
    }
    if (&ompi_mpi_comm_world.comm == comm && ompi_pml_crypt_ending()) {
        ompi_pml_crypt.over = true;             /* dynamic processes were disconnected before */
    }
    if (NULL != c) {
        ompi_pml_crypt_held_drop_all(c);
        ompi_common_cryptmpi_comm_del(comm);
    }
    return ompi_pml_crypt.host.pml_del_comm(comm);
}
