/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Meeting processes of other jobs: MPI_Comm_spawn, connect, accept, join.
 *
 * Such a meeting may come hours after the records were made, and a munge
 * credential from then is too old for a process that asks for it now.  So each
 * side vouches for its record again, and publishes that beside the record.
 *
 *     add_comm (both sides: renew, publish) --> the barrier by which Open MPI
 *         activates every communicator --> first contact (cryptmpi_modex.c)
 *
 * Because of the barrier in between, whoever looks finds the renewal.
 */
#include "cryptmpi.h"
#include "cryptmpi_internal.h"

#include <time.h>

#include "ompi/group/group.h"

/* Others are first met in an intercommunicator: without one, nobody has to look
 * at the members of every communicator. */
static bool foreigners = false;

/* Note when those that we have not spoken to were met; are there any? */
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
    return ompi_common_cryptmpi_modex_renew(now);
}
