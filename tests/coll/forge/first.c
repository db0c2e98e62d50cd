/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * An attacker in the first collective of a communicator: of the messages by which
 * the ranks tell each other where they live, one is changed below pml/crypt.
 *
 *     first [late|group|fault]
 *
 * Run with crypt_on_auth_failure=error, every rank must get our error class, and the
 * next call must set up anew and be right.  late: the message is one of those by
 * which the ranks agree on their success, and the job must not survive it.  group: the
 * same with the group key that rank 0 hands to a rank of its node.  fault: no attack, but
 * what is said when a process has no memory for sealing.
 */
#include "ompi_config.h"

#include "mt.h"

#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/common/cryptmpi/cryptmpi.h"
#include "ompi/mca/pml/pml.h"

enum { GROUP_FRAME = 72 };                  /* docs/wire-format.rst, Group pieces */

static mca_pml_base_module_t below;         /* the host as it was */
static MPI_Comm comm;
static int attacked = -1, sent;             /* change the attacked-th setup message that we send */
static int fired;

static int forging_isend(const void *buffer, size_t count, ompi_datatype_t *type, int peer, int tag,
                         mca_pml_base_send_mode_t mode, ompi_communicator_t *where, ompi_request_t **request)
{
    if (where == comm && MCA_COLL_BASE_TAG_ALLGATHER == tag && !mt_flag("group") && sent++ == attacked
        && !ompi_common_cryptmpi_is_local(ompi_comm_peer_lookup(comm, peer))) {
        ((uint8_t *) (uintptr_t) buffer)[count - 1] ^= 1;       /* of pml/crypt, until the message is away */
        fired = 1;
    }
    return below.pml_isend(buffer, count, type, peer, tag, mode, where, request);
}

static int forging_send(const void *buffer, size_t count, ompi_datatype_t *type, int peer, int tag,
                        mca_pml_base_send_mode_t mode, ompi_communicator_t *where)
{
    uint8_t copy[OPAL_CRYPT_LOCAL_HEADER + GROUP_FRAME];

    if (where == comm && OMPI_COMMON_CRYPTMPI_TAG_GROUP == tag && attacked >= 0 && sizeof(copy) == count
        && mt_flag("group") && ompi_common_cryptmpi_is_local(ompi_comm_peer_lookup(comm, peer))) {
        memcpy(copy, buffer, count);
        copy[count - 1] ^= 1;
        printf("the group key was changed\n");
        fflush(stdout);
        fired = 1;
        return below.pml_send(copy, count, type, peer, tag, mode, where);
    }
    return below.pml_send(buffer, count, type, peer, tag, mode, where);
}

/* In place: this is the table that pml/crypt sends through. */
static void take_over(void)
{
    mca_pml_base_module_t *host = (mca_pml_base_module_t *) ompi_common_cryptmpi_host();

    MT_CHECK(NULL != host, "pml/crypt is not in use");
    below = *host;
    host->pml_isend = forging_isend;
    host->pml_send = forging_send;
}

static int bcast(int value)
{
    int got = 0 == mt_rank ? value : 0, rc = MPI_Bcast(&got, 1, MPI_INT, 0, comm);

    MT_CHECK(MPI_SUCCESS != rc || value == got, "%d instead of %d", got, value);
    return rc;
}

static void check_class(int rc)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length, class;

    MPI_Error_string(rc, text, &length);
    MT_CHECK(NULL != strstr(text, "MPI_ERR_CRYPT"), "returned %d: %s", rc, text);
    MT_MPI(MPI_Error_class(rc, &class));
    MPI_Error_string(class, text, &length);
    MT_CHECK(rc != class && NULL != strstr(text, "MPI_ERR_CRYPT"), "returned %d of class %d: %s", rc, class, text);
}

/* Returns whether there was anything to attack: what stays on a node is not sealed. */
static int attack(int attacker, int message)
{
    int rc;

    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    sent = fired = 0;
    attacked = attacker == mt_rank ? message : -1;
    rc = bcast(1);
    attacked = -1;
    MT_MPI(MPI_Allreduce(MPI_IN_PLACE, &fired, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    if (fired) {
        check_class(rc);
        MT_MPI(bcast(2));
    }
    MT_MPI(bcast(3));
    MT_MPI(MPI_Comm_free(&comm));
    return fired;
}

int main(int argc, char **argv)
{
    int rounds = 0, attacks = 0;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (mt_flag("fault")) {
        check_class(ompi_common_cryptmpi_auth_failure(MPI_COMM_WORLD, mt_rank, 5, OPAL_CRYPT_ERR_MEMORY));
        return mt_end();
    }
    take_over();
    while (1 << rounds < mt_size) {
        rounds++;
    }
    for (int attacker = 0; attacker < mt_size; attacker++) {
        for (int message = 0; message < rounds; message++) {
            attacks += attack(attacker, mt_flag("late") ? rounds + message : message);
        }
    }
    MT_CHECK(attacks > 0, "nothing was attacked");
    mt_group("%d attacks", attacks);
    return mt_end();
}
