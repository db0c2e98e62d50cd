/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * An attacker below pml/crypt deletes messages, and what tells of them at the end.
 *
 *     deleted [delete=N] [count | changed]
 *
 * Of three messages from rank 1 to rank 0 the last N are deleted; rank 0 receives the
 * others.  count: the final count of rank 1 is deleted, too; changed: a bit of it is
 * flipped.  tests/attack/deleted.sh looks for what rank 0 must say.
 */
#include "ompi_config.h"

#include "mt.h"

#include "ompi/mca/common/cryptmpi/cryptmpi.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"

enum { MESSAGES = 3, TAG = 99 };

static mca_pml_base_module_t below;         /* the host as it was */
static int seen;

static int deleting_send(const void *buffer, size_t count, ompi_datatype_t *type, int peer, int tag,
                         mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    if (TAG == tag && seen++ >= MESSAGES - mt_arg("delete", 0)) {
        return OMPI_SUCCESS;
    }
    return below.pml_send(buffer, count, type, peer, tag, mode, comm);
}

static int deleting_isend(const void *buffer, size_t count, ompi_datatype_t *type, int peer, int tag,
                          mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    if (OMPI_COMMON_CRYPTMPI_TAG_FINAL == tag && mt_flag("count")) {
        printf("the final count was deleted\n");
        fflush(stdout);
        *request = &ompi_request_empty;
        return OMPI_SUCCESS;
    }
    if (OMPI_COMMON_CRYPTMPI_TAG_FINAL == tag && mt_flag("changed")) {
        printf("the final count was changed\n");
        fflush(stdout);
        ((uint8_t *) (uintptr_t) buffer)[count - 1] ^= 1;       /* of pml/crypt, until the message is away */
    }
    return below.pml_isend(buffer, count, type, peer, tag, mode, comm, request);
}

/* In place: this is the table that pml/crypt sends through. */
static void take_over(void)
{
    mca_pml_base_module_t *host = (mca_pml_base_module_t *) ompi_common_cryptmpi_host();

    MT_CHECK(NULL != host, "pml/crypt is not in use");
    below = *host;
    host->pml_send = deleting_send;
    host->pml_isend = deleting_isend;
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    const int received = MESSAGES - (int) mt_arg("delete", 0);
    int value;

    if (1 == mt_rank) {
        take_over();
    }
    for (int i = 0; i < MESSAGES && 1 == mt_rank; i++) {
        MT_MPI(MPI_Send(&i, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD));
    }
    for (int i = 0; i < received && 0 == mt_rank; i++) {
        MT_MPI(MPI_Recv(&value, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MT_CHECK(value == i, "message %d instead of %d", value, i);
    }
    MT_CHECK(1 != mt_rank || MESSAGES == seen, "only %d messages went through the attacker", seen);
    mt_group("%d messages deleted", MESSAGES - received);
    return mt_end();
}
