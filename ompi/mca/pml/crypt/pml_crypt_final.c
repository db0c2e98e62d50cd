/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The end: each process tells the others, sealed, how many messages it sent
 * them, so that those which never arrived are noticed, the last ones included.
 *
 *     MPI_Finalize, after the callbacks of MPI_COMM_SELF
 *       1. a final frame to every process of our MPI_COMM_WORLD to which sealed
 *          messages were sent (from the progress function)
 *       2. Open MPI's barrier of all processes
 *       3. MPI_COMM_SELF goes: take the frames of the others, compare, report
 *
 * We do not wait for a process that sent us nothing, nor for any process longer
 * than LIMIT: one that died must not keep the others from ending.  So no receive
 * blocks, and one that is left over is canceled.
 *
 * An attacker who deletes a message can delete the frame, too: a missing frame is
 * reported, and ends the job under crypt_on_missing=abort, like a missing message.
 */
#include "pml_crypt.h"

#include <stdlib.h>

#include "opal/mca/common/crypt/base/patience.h"
#include "opal/runtime/opal_progress.h"
#include "ompi/runtime/mpiruntime.h"
#include "ompi/runtime/params.h"

enum { LIMIT = 5 };     /* seconds after the barrier; the frames were sent before it */

typedef struct final {
    ompi_common_cryptmpi_peer_t *peer;
    ompi_request_t *send, *recv;        /* NULL: nothing is under way */
    bool wanted, in;                    /* it sent us messages; its frame is in */
    uint8_t frame[OPAL_CRYPT_FINAL_BYTES], its_frame[OPAL_CRYPT_FINAL_BYTES];
} final_t;

static final_t *finals;                 /* one a peer, made when MPI_Finalize begins */
static size_t final_count;
static ompi_common_cryptmpi_atomic32_t sent = 0;

static opal_crypt_envelope_t envelope_of(ompi_common_cryptmpi_comm_t *world, const final_t *f)
{
    (void) ompi_common_cryptmpi_comm_peer(world, (int) f->peer->name.vpid);
    return ompi_common_cryptmpi_envelope(world, (int) f->peer->name.vpid, OMPI_COMMON_CRYPTMPI_TAG_FINAL);
}

static int host_tag(void)
{
    return ompi_pml_crypt_host_tag(OMPI_COMMON_CRYPTMPI_TAG_FINAL);
}

static bool expect_one(ompi_common_cryptmpi_comm_t *world, final_t *f)
{
    if (OMPI_SUCCESS != ompi_pml_crypt.host.pml_irecv(f->its_frame, sizeof(f->its_frame), &ompi_mpi_byte.dt,
                                                      (int) f->peer->name.vpid, host_tag(), world->comm, &f->recv)) {
        f->recv = NULL;
    }
    return NULL != f->recv;
}

/* ---- sending ---- */

static void send_one(ompi_common_cryptmpi_comm_t *world, final_t *f)
{
    const opal_crypt_envelope_t envelope = envelope_of(world, f);

    if (OPAL_CRYPT_OK == opal_crypt_final_seal(f->peer->session, &envelope, f->frame)
        && OMPI_SUCCESS != ompi_pml_crypt.host.pml_isend(f->frame, sizeof(f->frame), &ompi_mpi_byte.dt,
                                                         (int) f->peer->name.vpid, host_tag(),
                                                         MCA_PML_BASE_SEND_STANDARD, world->comm, &f->send)) {
        f->send = NULL;
    }
}

static void send_all(ompi_common_cryptmpi_comm_t *world)
{
    ompi_common_cryptmpi_peer_t **peers;
    size_t count = ompi_common_cryptmpi_sealed_peers(&peers);

    finals = calloc(count > 0 ? count : 1, sizeof(*finals));
    for (size_t i = 0; i < count && NULL != finals; i++) {
        final_t *f = &finals[final_count];
        uint64_t highest, accepted;

        opal_crypt_session_gap(peers[i]->session, &highest, &accepted);
        f->peer = peers[i];
        f->wanted = accepted > 0;
        if (f->wanted || opal_crypt_session_sent(peers[i]->session) > 0) {
            final_count++;
            /* Before the barrier: libfabric keeps an unexpected message with its connection, and
             * drops it when the sender disconnects (provider net of 1.17). */
            if (ompi_pml_crypt.mtl) {
                (void) expect_one(world, f);
            }
            if (opal_crypt_session_sent(peers[i]->session) > 0) {
                send_one(world, f);
            }
        }
    }
    free(peers);
}

void ompi_pml_crypt_final_send(void)
{
    ompi_common_cryptmpi_comm_t *world = ompi_common_cryptmpi_comm(&ompi_mpi_comm_world.comm);

    /* Sessions have no MPI_COMM_WORLD, and no moment at which all of them end. */
    if (NULL != world && &ompi_mpi_comm_world.comm == world->comm && 1 == ompi_common_cryptmpi_add(&sent, 1)) {
        send_all(world);
    }
}

/* ---- receiving ---- */

typedef struct tally {
    uint64_t missing;                   /* messages */
    unsigned from, silent, refused;     /* processes */
    int rank_from, rank_silent, rank_refused;   /* one of them */
} tally_t;

static void refuse_one(final_t *f, tally_t *tally)
{
    f->in = true;
    tally->refused++;
    tally->rank_refused = (int) f->peer->name.vpid;
}

static void compare(ompi_common_cryptmpi_comm_t *world, final_t *f, size_t bytes, tally_t *tally)
{
    const opal_crypt_envelope_t envelope = envelope_of(world, f);
    uint64_t highest, accepted, took, counter;

    f->in = true;
    opal_crypt_session_gap(f->peer->session, &highest, &accepted);
    if (OPAL_CRYPT_OK != opal_crypt_final_open(f->peer->session, &envelope, f->its_frame, bytes, &took, &counter)
        || took < 1 || took > counter + 1) {
        refuse_one(f, tally);
    } else if (took - 1 > accepted) {   /* less the frame itself */
        tally->from++;
        tally->missing += took - 1 - accepted;
        tally->rank_from = (int) f->peer->name.vpid;
    }
}

/* Take its frame, if it has arrived.  A message of another length stays in the queue: ob1 may write beyond a buffer
 * that is too small for it. */
static void find_one(ompi_common_cryptmpi_comm_t *world, final_t *f, tally_t *tally)
{
    ompi_status_public_t status;
    int arrived = 0;

    if (OMPI_SUCCESS != ompi_pml_crypt.host.pml_iprobe((int) f->peer->name.vpid, host_tag(), world->comm, &arrived,
                                                       &status)) {
        f->in = true;           /* the host knows that this process is gone */
    } else if (arrived && (sizeof(f->its_frame) != status._ucount || !expect_one(world, f))) {
        refuse_one(f, tally);
    }
}

static void take_one(ompi_common_cryptmpi_comm_t *world, final_t *f, tally_t *tally)
{
    if (NULL == f->recv) {
        find_one(world, f, tally);
    }
    if (NULL != f->recv && REQUEST_COMPLETE(f->recv)) {
        const ompi_status_public_t status = f->recv->req_status;

        ompi_request_free(&f->recv);
        f->recv = NULL;
        compare(world, f, MPI_SUCCESS == status.MPI_ERROR ? status._ucount : 0, tally);
    }
}

/* Anything still to be taken, or to be sent? */
static bool progress_all(ompi_common_cryptmpi_comm_t *world, tally_t *tally)
{
    bool open = false;

    for (size_t i = 0; i < final_count; i++) {
        final_t *f = &finals[i];

        if (NULL != f->send && REQUEST_COMPLETE(f->send)) {
            ompi_request_free(&f->send);
            f->send = NULL;
        }
        if (!f->in) {
            take_one(world, f, tally);
        }
        open = open || (f->wanted && !f->in) || NULL != f->send;
    }
    return open;
}

static void say(const char *topic, uint64_t number, unsigned processes, int rank)
{
    opal_cryptproc_show_here("help-mpi-pml-crypt.txt", topic, ompi_comm_rank(&ompi_mpi_comm_world.comm),
                                   opal_process_info.nodename, (unsigned long long) number, processes, rank);
}

/* False: the host may still use some of the memory. */
static bool let_go(void)
{
    bool all = true;

    for (size_t i = 0; i < final_count; i++) {
        if (NULL != finals[i].recv) {
            (void) ompi_request_cancel(finals[i].recv);
        }
    }
    opal_progress();
    for (size_t i = 0; i < final_count; i++) {
        if (NULL != finals[i].recv && REQUEST_COMPLETE(finals[i].recv)) {
            ompi_request_free(&finals[i].recv);
            finals[i].recv = NULL;
        }
        all = all && NULL == finals[i].recv && NULL == finals[i].send;
    }
    return all;
}

static bool something_said(const tally_t *tally)
{
    return tally->from > 0 || tally->refused > 0 || tally->silent > 0;
}

void ompi_pml_crypt_final_take(void)
{
    ompi_common_cryptmpi_comm_t *world = ompi_common_cryptmpi_comm(&ompi_mpi_comm_world.comm);
    tally_t tally = {0};
    opal_crypt_patience_t patience = opal_crypt_patience(LIMIT * 1000);
    bool open = false;

    ompi_pml_crypt_final_send();
    if (NULL == finals) {
        return;
    }
    while (0 != (open = progress_all(world, &tally)) && opal_crypt_patience_left(&patience) > 0) {
        opal_progress();
    }
    for (size_t i = 0; open && i < final_count; i++) {
        if (finals[i].wanted && !finals[i].in && !ompi_async_mpi_finalize) {
            tally.silent++;
            tally.rank_silent = (int) finals[i].peer->name.vpid;
        }
    }
    if (tally.from > 0) {
        say("final-missing", tally.missing, tally.from, tally.rank_from);
    }
    if (tally.refused > 0) {
        say("final-refused", tally.refused, tally.refused, tally.rank_refused);
    }
    if (tally.silent > 0) {
        say("final-silent", tally.silent, tally.silent, tally.rank_silent);
    }
    if (OPAL_CRYPTPROC_MISSING_ABORT == opal_cryptproc_params.on_missing && something_said(&tally)) {
        say("final-abort", 0, 0, 0);
        ompi_mpi_abort(&ompi_mpi_comm_world.comm, 1);
    }
    if (let_go()) {
        free(finals);
    }
    finals = NULL;
    final_count = 0;
}
