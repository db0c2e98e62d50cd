/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A job whose messages are not encrypted: was --mca pml crypt forgotten, and does the site allow it?
 *
 *     a parameter was given that only affects encrypted       a warning, from rank 0
 *     messages
 *     crypt_required, and it runs on several nodes            the job ends, in MPI_Init
 *     crypt_required, and it meets a process of another       the job ends there, before a message is sent: to connect
 *     node (spawn, connect, accept, join)                     jobs, Open MPI makes a communicator, and tells the PML
 *
 * In a job without crypt_required no function of Open MPI is replaced.
 */
#include "ompi_config.h"

#include <stdio.h>
#include <stdlib.h>

#include "ompi/mca/common/cryptmpi/cryptmpi.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_spelling.h"
#include "ompi/proc/proc.h"
#include "ompi/runtime/mpiruntime.h"

#include "hook_crypt.h"

#define HELP "help-mpi-hook-crypt.txt"

static char why[160];                   /* why messages are not encrypted; empty: they are */
static bool watching;
static mca_pml_base_module_add_comm_fn_t add_comm;      /* the PML's own; NULL: it is not replaced */

/* ---- messages to the user ---- */

static void find_why(bool asked_for)
{
    char *pml = opal_cryptproc_selection("ompi", "pml");

    why[0] = '\0';
    if (!asked_for) {
        snprintf(why, sizeof(why), "the parameter pml is \"%.100s\", not \"crypt\"", NULL == pml ? "" : pml);
    } else if (!opal_cryptproc_encrypts()) {
        snprintf(why, sizeof(why), "this ompi-crypt was built to measure, and does not encrypt (--enable-no-crypto)");
    } else if (OPAL_CRYPTPROC_AUDIT_WARN == opal_cryptproc_params.audit) {
        snprintf(why, sizeof(why), "crypt_audit is \"warn\", which lets components bypass encryption");
    }
    free(pml);
}

static void say_required(void)
{
    (void) opal_cryptproc_show_once(HELP, "required", opal_process_info.nodename, why);
}

/* In a spawned job, the parent has printed it. */
static bool is_first(void)
{
    return 0 == OPAL_PROC_MY_NAME.vpid && NULL == getenv("OMPI_PARENT_PORT");
}

void ompi_hook_crypt_plain_judge(bool asked_for)
{
    const bool required = ompi_common_cryptmpi_required();
    const char *given = ompi_common_cryptmpi_given();

    watching = false;
    if (!required && (asked_for || NULL == given)) {
        return;
    }
    find_why(asked_for);
    if (required && '\0' != why[0] && ompi_proc_world_size() > 1 + (int) opal_process_info.num_local_peers) {
        say_required();
        exit(1);                        /* as for names of parameters */
    }
    if (!asked_for && NULL != given && is_first()) {
        opal_cryptproc_show_here(HELP, "not-encrypted", given, why);
    }
    watching = required && '\0' != why[0];
}

/* ---- other jobs ---- */

static bool reaches_another_node(ompi_group_t *group)
{
    for (int i = 0; i < ompi_group_size(group); i++) {
        const opal_process_name_t name = ompi_group_get_proc_name(group, i);

        if (name.jobid != OPAL_PROC_MY_NAME.jobid && !OPAL_PROC_ON_LOCAL_NODE(ompi_group_peer_lookup(group, i)->super.proc_flags)) {
            return true;
        }
    }
    return false;
}

static void refuse_other_nodes(ompi_communicator_t *comm)
{
    if (reaches_another_node(comm->c_local_group) || reaches_another_node(comm->c_remote_group)) {
        say_required();
        (void) ompi_mpi_abort(NULL, 1);
        opal_cryptproc_exit_soon();
    }
}

static int check_and_add(ompi_communicator_t *comm)
{
    refuse_other_nodes(comm);
    return add_comm(comm);
}

/* In 4.1 a spawned process has met its parent already, which was watching. */
void ompi_hook_crypt_plain_watch(void)
{
    if (!watching || NULL != add_comm) {
        return;
    }
    add_comm = mca_pml.pml_add_comm;
    mca_pml.pml_add_comm = check_and_add;
    if (NULL != ompi_mpi_comm_parent && &ompi_mpi_comm_null.comm != ompi_mpi_comm_parent) {
        refuse_other_nodes(ompi_mpi_comm_parent);
    }
}

/* ---- sessions, which have no end of MPI_Init ---- */

static mca_base_framework_open_fn_t opened_next;

static int watch_then_open(mca_base_open_flag_t flags)
{
    mca_base_framework_t *next = ompi_common_cryptmpi_opened_after_pml();

    ompi_hook_crypt_plain_watch();
    return NULL != opened_next ? opened_next(flags) : mca_base_framework_components_open(next, flags);
}

void ompi_hook_crypt_plain_open(void)
{
    mca_base_framework_t *next = ompi_common_cryptmpi_opened_after_pml();

    if (ompi_common_cryptmpi_required() && NULL != next) {
        opened_next = next->framework_open;
        next->framework_open = watch_then_open;
    }
}

void ompi_hook_crypt_plain_close(void)
{
    mca_base_framework_t *next = ompi_common_cryptmpi_opened_after_pml();

    if (NULL != next && watch_then_open == next->framework_open) {
        next->framework_open = opened_next;
    }
    if (check_and_add == mca_pml.pml_add_comm) {
        mca_pml.pml_add_comm = add_comm;
    }
    add_comm = NULL;
    watching = false;
}
