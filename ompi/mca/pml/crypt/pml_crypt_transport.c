/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * btl/crypt, below ob1, seals all that leaves the node.  This component then only ensures that btl/crypt and no other
 * network is used, and starts it; the PML is ob1's own functions: no header, no copy, no second seal.
 *
 *     hook/crypt: list of BTLs --> Open MPI opens them --> ob1 is the host --> go --> is it there, and alone? --> module
 *
 * One mode for a process and all its peers: a receive from any source could not tell a frame from a plain message.  It is
 * in the record, as btl/crypt's text that both sides must agree on.
 */
#include "pml_crypt_host.h"
#include "pml_crypt_waits.h"

#include <stdio.h>
#include <string.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/btl/base/base.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_names.h"
#include "ompi/mca/pml/base/base.h"

static bool refuse(const char *why)
{
    ompi_common_cryptmpi_transport_refuse(why);
    return false;
}

/* ---- is it there, and alone? ---- */

static bool is_ours(const mca_btl_base_module_t *btl)
{
    return 0 == strcmp("crypt", btl->btl_component->btl_version.mca_component_name);
}

static bool stays_here(const mca_btl_base_module_t *btl)
{
    return ompi_common_cryptmpi_btl_local(btl->btl_component->btl_version.mca_component_name);
}

static bool no_other_started(void)
{
    mca_btl_base_selected_module_t *at;
    char text[200];
    bool there = false;

    OPAL_LIST_FOREACH(at, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t) {
        there |= is_ours(at->btl_module);
        if (!is_ours(at->btl_module) && !stays_here(at->btl_module)) {
            snprintf(text, sizeof(text), "btl/%s is in use, too", at->btl_component->btl_version.mca_component_name);
            return refuse(text);
        }
    }
    return there || refuse("btl/crypt is not installed, or did not start");
}

/* btl/crypt's record says that coll/cryptag is used, unless it is excluded. */
static bool has_cryptag(void)
{
    if (!opal_cryptproc_opens("coll", "cryptag", false) || ompi_pml_crypt_cryptag_here()) {
        return true;
    }
    return refuse("coll/cryptag is not installed (--mca coll ^cryptag, in all processes, does without)");
}

static bool sealed_or_here(mca_bml_base_btl_array_t *btls)
{
    for (size_t i = 0; i < mca_bml_base_btl_array_get_size(btls); i++) {
        const mca_btl_base_module_t *btl = mca_bml_base_btl_array_get_index(btls, i)->btl;

        if (!is_ours(btl) && !stays_here(btl)) {
            return false;
        }
    }
    return true;
}

bool ompi_pml_crypt_transport_covers(const ompi_proc_t *proc)
{
    mca_bml_base_endpoint_t *endpoint = proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML];

    return NULL == endpoint || (sealed_or_here(&endpoint->btl_eager) && sealed_or_here(&endpoint->btl_send)
                                && sealed_or_here(&endpoint->btl_rdma));
}

/* ---- the module ---- */

static int add_procs(ompi_proc_t **procs, size_t count)
{
    int rc = ompi_pml_crypt.host.pml_add_procs(procs, count);

    for (size_t i = 0; OMPI_SUCCESS == rc && i < count; i++) {
        if (!ompi_pml_crypt_transport_covers(procs[i])) {
            refuse("another BTL leads to a process");
            rc = OMPI_ERR_NOT_SUPPORTED;
        }
    }
    return rc;
}

static bool is_new(const ompi_proc_t *proc)
{
    return proc->super.proc_name.jobid != OPAL_PROC_MY_NAME.jobid
           && NULL == proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML];
}

/* Open MPI 5.0 and 6.0 do not add the processes of another job when they connect: ompi_dpm_connect_accept counts them
 * in a list that it has emptied.  But btl/crypt refuses processes that Open MPI has not added, and our own record has
 * to be vouched for again by then.  So they are added here, on both sides before the first message. */
static int add_others(ompi_communicator_t *comm)
{
    ompi_group_t *group = comm->c_remote_group;
    const int size = ompi_group_size(group);
    ompi_proc_t **others = malloc((size_t) size * sizeof(*others) + 1), *proc;
    size_t count = 0;
    int rc = NULL == others ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_SUCCESS;

    for (int i = 0; OMPI_SUCCESS == rc && i < size; i++) {
        proc = ompi_group_peer_lookup(group, i);
        if (NULL != proc && is_new(proc)) {
            others[count++] = proc;
        }
    }
    if (count > 0) {
        rc = add_procs(others, count);
    }
    free(others);
    return rc;
}

static int add_comm(ompi_communicator_t *comm)
{
    int rc = OMPI_COMM_IS_INTER(comm) ? add_others(comm) : OMPI_SUCCESS;

    rc = OMPI_SUCCESS == rc ? ompi_pml_crypt.host.pml_add_comm(comm) : rc;
    return OMPI_SUCCESS == rc ? ompi_common_cryptmpi_comm_note(comm) : rc;
}

static int del_comm(ompi_communicator_t *comm)
{
    if (&ompi_mpi_comm_self.comm == comm && ompi_pml_crypt_ending()) {
        ompi_common_cryptmpi_report_end();
    }
    ompi_common_cryptmpi_comm_del(comm);
    return ompi_pml_crypt.host.pml_del_comm(comm);
}

/* The only call that may wait without a request of ob1. */
static int probe(int source, int tag, ompi_communicator_t *comm, ompi_status_public_t *status)
{
    ompi_common_cryptmpi_inside_t inside = {.kind = OPAL_CRYPT_STATUS_PROBE, .peer = source, .tag = tag, .comm = comm};
    int rc;

    ompi_common_cryptmpi_enter(&inside);
    rc = ompi_pml_crypt.host.pml_probe(source, tag, comm, status);
    ompi_common_cryptmpi_leave(&inside);
    return rc;
}

static int enable(bool on)
{
    int rc;

    ompi_pml_crypt_name_back();
    rc = on ? ompi_pml_crypt_audit_transport() : OMPI_SUCCESS;
    if (on && OPAL_CRYPTPROC_ALL == opal_cryptproc_params.scope) {
        ompi_pml_crypt_audit_osc();
    }
    opal_cryptproc_restore_env();
    rc = OMPI_SUCCESS == rc ? ompi_pml_crypt.host.pml_enable(on) : rc;
    if (on && OMPI_SUCCESS == rc) {
        ompi_pml_crypt_snapshot_ob1_start();
        ompi_pml_crypt_status_lists(true);
    }
    return rc;
}

/* btl/crypt was opened, and waits for the decision: it does not listen yet. */
bool ompi_pml_crypt_transport_go(const char *agreed)
{
    return (NULL == opal_cryptproc_transport_go || opal_cryptproc_transport_go(agreed)) && no_other_started();
}

mca_pml_base_module_t *ompi_pml_crypt_transport_start(const mca_pml_base_module_t *host)
{
    if (!ompi_pml_crypt_transport_go(NULL) || !has_cryptag() || OMPI_SUCCESS != ompi_common_cryptmpi_report_start()
        || OMPI_SUCCESS != opal_cryptproc_start(NULL)) {
        return NULL;
    }
    ompi_common_cryptmpi_waits_show(true);
    ompi_common_cryptmpi_set_over_btl(true);
    ompi_pml_crypt.host = ompi_pml_crypt_module = *host;
    ompi_pml_crypt_module.pml_enable = enable;
    ompi_pml_crypt_module.pml_add_procs = add_procs;
    ompi_pml_crypt_module.pml_add_comm = add_comm;
    ompi_pml_crypt_module.pml_del_comm = del_comm;
    ompi_pml_crypt_module.pml_probe = probe;
    opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, opal_cryptproc_stream, "pml:crypt: on %s: ob1 over btl/crypt (%s)",
                        opal_process_info.nodename, ompi_common_cryptmpi_transport_why());
    ompi_pml_crypt_status_start();
    ompi_pml_crypt_snapshot_btl_start();
    return &ompi_pml_crypt_module;
}
