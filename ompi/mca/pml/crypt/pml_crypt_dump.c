/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * pml_dump: what the status page shows, as text, for the members of one communicator.
 */
#include "pml_crypt.h"

#include <stdlib.h>

#include "opal/util/output.h"

static const char *const states[OPAL_CRYPT_STATUS_STATES] = {"not met", "meeting", "on this node", "sealed", "refused"};
static const char *const kinds[OPAL_CRYPT_STATUS_KINDS] = {"nothing", "receive", "send", "probe", "collective", "first contact"};

static void dump_wait(const opal_crypt_status_wait_t *w, int64_t now)
{
    opal_output(0, "  waits %lld ms in a %s: rank %d of %s, tag %d, %llu bytes%s%s", (long long) (now - w->since) / 1000000,
                kinds[w->kind], w->peer, w->comm, w->tag, (unsigned long long) w->bytes, '\0' == w->text[0] ? "" : ", ", w->text);
    if (w->queued_unmatched) {
        opal_output(0, "    instead there is: rank %d, tag %d, %llu bytes", w->unmatched_peer, w->unmatched_tag,
                    (unsigned long long) w->unmatched_bytes);
    }
}

static void dump_peer(ompi_common_cryptmpi_comm_t *c, const opal_crypt_status_peer_t *p, int rank)
{
    size_t bytes = 0;
    int tag = 0, held = NULL == c ? 0 : ompi_pml_crypt_held_count(c, rank, &tag, &bytes);

    opal_output(0, "  rank %d (process %u%s): %s; queue: %u sends, %u of them with segments left, %u bytes ahead; %u receives; "
                   "%d held messages", rank, p->rank, p->foreign ? " of another job" : "", states[p->state], p->sends,
                p->queued, p->ahead_bytes, p->receives, held > 0 ? held : 0);
    if (OPAL_CRYPT_STATUS_SEALED == p->state) {
        opal_output(0, "    serials: %llu sent, %llu received of %llu; epochs %llu and %llu; replay window from %llu to %llu, "
                       "%llu bytes", (unsigned long long) p->sent, (unsigned long long) p->accepted,
                    (unsigned long long) p->highest, (unsigned long long) p->epoch_out, (unsigned long long) p->epoch_in,
                    (unsigned long long) p->missing, (unsigned long long) p->highest, (unsigned long long) p->window_bytes);
    }
}

/* The rank of a process in the communicator; -1: it is not a member. */
static int rank_of(const ompi_communicator_t *comm, const opal_crypt_status_peer_t *p)
{
    for (int i = 0; i < ompi_group_size(comm->c_remote_group); i++) {
        const opal_process_name_t name = ompi_group_get_proc_name(comm->c_remote_group, i);

        if (name.vpid == p->rank && (name.jobid != OPAL_PROC_MY_NAME.jobid) == (0 != p->foreign)) {
            return i;
        }
    }
    return -1;
}

int ompi_pml_crypt_dump(ompi_communicator_t *comm, int verbose)
{
    opal_crypt_status_snapshot_t *snapshot = calloc(1, sizeof(*snapshot));

    if (NULL != snapshot) {
        ompi_pml_crypt_status_now(snapshot);
        opal_output(0, "pml/crypt: rank %d of %s: pending: %u receives, %u + %u + %u sends (one frame, segments, on this node)",
                    ompi_comm_rank(comm), comm->c_name, snapshot->receives, snapshot->sends[OPAL_CRYPT_STATUS_FRAME],
                    snapshot->sends[OPAL_CRYPT_STATUS_CHOPPED], snapshot->sends[OPAL_CRYPT_STATUS_LOCAL]);
        for (uint32_t i = 0; i < snapshot->wait_count; i++) {
            dump_wait(&snapshot->waits[i], snapshot->updated);
        }
        for (uint32_t i = 0; i < snapshot->peer_count; i++) {
            const int rank = rank_of(comm, &snapshot->peers[i]);

            if (rank >= 0) {
                dump_peer(ompi_common_cryptmpi_comm(comm), &snapshot->peers[i], rank);
            }
        }
        if (snapshot->peers_left_out > 0) {
            opal_output(0, "  and %u peers that are not shown", snapshot->peers_left_out);
        }
        free(snapshot);
    }
    return NULL != ompi_pml_crypt.host.pml_dump ? ompi_pml_crypt.host.pml_dump(comm, verbose) : OMPI_SUCCESS;
}
