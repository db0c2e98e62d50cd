/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The first collective of a communicator: every rank tells every other its node
 * and its settings.  These few bytes travel through the selected PML, so between
 * nodes they are sealed and authenticated.
 */
#include "coll_cryptag.h"

#include <stdlib.h>

#include "ompi/mca/coll/base/coll_tags.h"

/* What every rank sends; equal byte order on all ranks is assumed, as in the rest
 * of the component (Open MPI refuses mixed ones in its default build). */
typedef struct {
    int32_t leader;             /* lowest rank of the node, as this rank sees it */
    uint32_t settings;          /* checksum of all that the ranks must agree on */
} announcement_t;

/* Asks only the sessions, if there are any, with processes that may be local: with most others
 * this rank never communicates, and so need not agree on keys with them. */
static int lowest_local_rank(ompi_communicator_t *comm)
{
    const int rank = ompi_comm_rank(comm);

    for (int i = 0; i < rank; i++) {
        ompi_proc_t *proc = ompi_comm_peer_lookup(comm, i);

        if (!ompi_coll_cryptag_is_remote(proc) && (!ompi_common_cryptmpi_active() || ompi_common_cryptmpi_is_local(proc))) {
            return i;
        }
    }
    return rank;
}

static void setup_failed(ompi_communicator_t *comm) __attribute__((noreturn));
static void setup_failed(ompi_communicator_t *comm)
{
    ompi_coll_cryptag_end_job(comm, "setup-failed", comm->c_name);
}

/* All ranks return the same, or the job ends: a single rank could not undo the
 * setup. */
static int agree_on_success(ompi_coll_cryptag_call_t *call)
{
    if (OPAL_CRYPTPROC_ERROR == opal_cryptproc_params.on_failure
        && 0 != ompi_coll_cryptag_agree(call, OMPI_SUCCESS == call->failure ? 0 : 1, 0)) {
        return ompi_common_cryptmpi_error();
    }
    if (OMPI_SUCCESS != call->failure) {
        setup_failed(call->comm);
    }
    return OMPI_SUCCESS;
}

static int exchange(ompi_coll_cryptag_module_t *module, ompi_communicator_t *comm, announcement_t *announcements)
{
    const int p = ompi_comm_size(comm), rank = ompi_comm_rank(comm);
    ompi_coll_cryptag_call_t call = { .module = module, .comm = comm, .tag = MCA_COLL_BASE_TAG_ALLGATHER };
    int *members = ompi_coll_cryptag_scratch(&call, (size_t) p * sizeof(*members));
    int *first = ompi_coll_cryptag_scratch(&call, ((size_t) p + 1) * sizeof(*first));
    ompi_coll_cryptag_part_t *parts = ompi_coll_cryptag_scratch(&call, (size_t) p * sizeof(*parts));
    const ompi_coll_cryptag_lane_t lane = { members, parts, first };
    int rc;

    for (int i = 0; i < p; i++) {
        members[i] = first[i] = i;
        parts[i] = (ompi_coll_cryptag_part_t) { (uint8_t *) &announcements[i], sizeof(announcement_t), 0 };
    }
    first[p] = p;
    ompi_coll_cryptag_gather(&call, &(ompi_coll_cryptag_gather_t) {
        .kind = OMPI_COLL_CRYPTAG_DOUBLING, .form = OMPI_COLL_CRYPTAG_PLAIN,
        .n = p, .me = rank, .lanes = &lane, .lane_count = 1,
    });
    rc = agree_on_success(&call);
    ompi_coll_cryptag_scratch_reset(&module->scratch);
    return rc;
}

/* All ranks see the same greetings, so all stop together; the two that differ print
 * the reason. */
static void check_settings(const announcement_t *announcements, ompi_communicator_t *comm)
{
    for (int i = 1; i < ompi_comm_size(comm); i++) {
        if (announcements[i].settings != announcements[0].settings) {
            bool concerned = 0 == ompi_comm_rank(comm) || i == ompi_comm_rank(comm);
            ompi_coll_cryptag_end_job(comm, concerned ? "settings-differ" : NULL, i, comm->c_name);
        }
    }
}

static ompi_coll_cryptag_topo_t *make_topo(const announcement_t *announcements, ompi_communicator_t *comm)
{
    const int p = ompi_comm_size(comm);
    int32_t *leader_of = malloc((size_t) p * sizeof(*leader_of));
    ompi_coll_cryptag_topo_t *topo;

    if (NULL == leader_of) {
        return NULL;
    }
    for (int i = 0; i < p; i++) {
        leader_of[i] = announcements[i].leader;
    }
    topo = ompi_coll_cryptag_topo_new(leader_of, p, ompi_comm_rank(comm));
    free(leader_of);
    return topo;
}

int ompi_coll_cryptag_setup(ompi_coll_cryptag_module_t *module, ompi_communicator_t *comm)
{
    const size_t p = (size_t) ompi_comm_size(comm);
    announcement_t *announcements;
    int rc;

    if (module->ready) {
        return OMPI_SUCCESS;
    }
    announcements = calloc(p, sizeof(*announcements));
    if (NULL == module->offset) {       /* else an earlier setup failed */
        module->offset = calloc(p + 1, sizeof(*module->offset));
    }
    if (NULL == announcements || NULL == module->offset) {
        ompi_coll_cryptag_no_memory(comm, p * sizeof(*announcements));
    }
    announcements[ompi_comm_rank(comm)] = (announcement_t) { lowest_local_rank(comm),
                                                     ompi_coll_cryptag_settings() };
    rc = exchange(module, comm, announcements);
    if (OMPI_SUCCESS != rc) {
        free(announcements);
        return rc;
    }
    check_settings(announcements, comm);
    module->topo = make_topo(announcements, comm);
    free(announcements);
    if (NULL == module->topo) {
        ompi_coll_cryptag_end_job(comm, "no-node-map", comm->c_name);
    }
    if (ompi_common_cryptmpi_active() && OMPI_SUCCESS != ompi_common_cryptmpi_group(comm, &module->group)) {
        setup_failed(comm);
    }
    module->ready = true;
    return OMPI_SUCCESS;
}
