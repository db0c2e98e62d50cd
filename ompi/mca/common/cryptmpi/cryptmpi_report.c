/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * crypt_report: one summary of a job, for its user or for an auditor.
 *
 *     MPI_Finalize begins (hook/crypt) --> every process sends a line to rank 0,
 *         sealed like any message
 *     after Open MPI's barrier (pml/crypt) --> rank 0 takes what has come, adds it
 *         up and writes text, JSON, or a line for syslog
 *
 * It is not a collective, as not all processes need have crypt_report set
 * (parameter files differ from node to node).  Rank 0 does not wait for ever for
 * those that send nothing, and nothing is sent if rank 0 writes no report: its
 * record says so.
 *
 * It contains no secret and no message data.  A job that does not end with
 * MPI_Finalize leaves no report.
 */
#include "cryptmpi.h"
#include "cryptmpi_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/base/patience.h"
#include "opal/mca/common/crypt/base/stats.h"
#include "opal/mca/common/crypt/base/thread.h"
#include "opal/runtime/opal_progress.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/message/message.h"
#include "ompi/runtime/mpiruntime.h"
#include "ompi/runtime/params.h"

enum { LIMIT = 5 };     /* seconds after the barrier; the lines were sent before it */

static bool wanted, hooked;
static uint64_t began, most_threads, most_segments, raised;

/* ---- before ---- */

void ompi_common_cryptmpi_report_hooked(void)
{
    hooked = true;
}

void ompi_common_cryptmpi_report_raised(ompi_common_cryptmpi_raised_t transport)
{
    raised |= UINT64_C(1) << transport;
}

int ompi_common_cryptmpi_report_start(void)
{
    const char *report = opal_cryptproc_params.report;

    wanted = opal_cryptproc_report_wanted();
    if (!wanted) {
        return OMPI_SUCCESS;
    }
    if (0 != strcmp(report, "1") && 0 != strcmp(report, "syslog")
        && (0 != strncmp(report, "json:", 5) || '\0' == report[5])) {
        OPAL_CRYPTPROC_SHOW("help-ompi-common-cryptmpi.txt", "bad-report", report);
        return OMPI_ERR_BAD_PARAM;
    }
    if (!hooked) {
        OPAL_CRYPTPROC_SHOW("help-ompi-common-cryptmpi.txt", "report-unhooked", report);
        return OMPI_ERR_NOT_AVAILABLE;
    }
    began = opal_crypt_now();
    most_threads = most_segments = 0;
    opal_crypt_stats_timing(true);
    return OMPI_SUCCESS;
}

/* Several threads may be here; if an update is lost, there is no harm. */
void ompi_common_cryptmpi_report_cut(unsigned threads, uint32_t segments)
{
    if (threads > __atomic_load_n(&most_threads, __ATOMIC_RELAXED)) {
        __atomic_store_n(&most_threads, threads, __ATOMIC_RELAXED);
    }
    if (segments > __atomic_load_n(&most_segments, __ATOMIC_RELAXED)) {
        __atomic_store_n(&most_segments, segments, __ATOMIC_RELAXED);
    }
}

/* ---- collecting ---- */

/* A transport counts its peers; processes on this node are reached by shared memory, unless crypt_scope=all. */
static void count_peers(ompi_common_cryptmpi_report_line_t *line)
{
    ompi_communicator_t *world = &ompi_mpi_comm_world.comm;

    if (!opal_cryptproc_has_transport()) {
        ompi_common_cryptmpi_peers_count(&line->sealed_peers, &line->local_peers);
        return;
    }
    line->sealed_peers = opal_cryptproc_transport_peers;
    line->pq_peers = opal_cryptproc_transport_pq_peers;
    line->kernel_peers = opal_cryptproc_transport_kernel_peers;
    for (int i = 0; OPAL_CRYPTPROC_ALL != opal_cryptproc_params.scope && i < ompi_comm_size(world); i++) {
        line->local_peers += i != ompi_comm_rank(world)
                             && OPAL_PROC_ON_LOCAL_NODE(ompi_comm_peer_lookup(world, i)->super.proc_flags) ? 1 : 0;
    }
}

static void fill(ompi_common_cryptmpi_report_line_t *line)
{
    const opal_aead_module_t *aead = opal_cryptproc_params.options.aead;

    memset(line, 0, sizeof(*line));
    opal_crypt_stats(&line->stats);
    count_peers(line);
    line->wall_ns = opal_crypt_now() - began;
    line->threads = most_threads;
    line->segments = most_segments;
    line->raised = raised;
    snprintf(line->provider, sizeof(line->provider), "%s", NULL == aead ? "none needed" : aead->version());
}

static ompi_common_cryptmpi_report_line_t mine;
static ompi_request_t *sending;
static bool filled;

/* Rank 0 receives it in Open MPI's barrier at the latest.  It must not be later:
 * a first connection while everything is being finalized crashes the transports
 * of 5.0. */
static void send_mine(ompi_communicator_t *world)
{
    opal_crypt_patience_t patience = opal_crypt_patience(LIMIT * 1000);

    if (OMPI_SUCCESS != MCA_PML_CALL(isend(&mine, sizeof(mine), MPI_BYTE, 0, OMPI_COMMON_CRYPTMPI_TAG_REPORT,
                                           MCA_PML_BASE_SEND_STANDARD, world, &sending))) {
        sending = NULL;
        return;
    }
    while (!REQUEST_COMPLETE(sending) && (!ompi_async_mpi_finalize || opal_crypt_patience_left(&patience) > 0)) {
        opal_progress();
    }
}

/* Whether the record of rank 0 says that it reports; false: not known. */
static bool first_reports(ompi_communicator_t *world, bool *reports)
{
    ompi_proc_t *first = ompi_comm_peer_lookup(world, 0);
    opal_crypt_schedule_t *schedule = NULL;
    opal_crypt_session_t *session;
    opal_crypt_why_t why = {0};

    if (opal_cryptproc_has_transport()) {
        if (OPAL_CRYPT_OK != opal_cryptproc_schedule(&first->super.proc_name, 0, &schedule, &why)) {
            return false;
        }
        *reports = opal_crypt_schedule_peer(schedule)->report;
        opal_crypt_schedule_destroy(schedule);
        return true;
    }
    if (OMPI_SUCCESS != ompi_common_cryptmpi_session(first, &session)) {
        return false;
    }
    *reports = opal_crypt_session_peer(session)->report;
    return true;
}

/* Does rank 0 take our line?  If not, it would count as a missing message, or stay in the queue. */
static bool taken_by_first(ompi_communicator_t *world)
{
    bool reports;

    if (!first_reports(world, &reports)) {
        return false;
    }
    if (!reports) {
        OPAL_CRYPTPROC_SHOW("help-ompi-common-cryptmpi.txt", "report-elsewhere", opal_cryptproc_params.report);
    }
    return reports;
}

void ompi_common_cryptmpi_report(void)
{
    ompi_communicator_t *world = &ompi_mpi_comm_world.comm;

    if (!wanted || !(ompi_common_cryptmpi_active() || opal_cryptproc_has_transport()) || OMPI_MPI_STATE_INIT_COMPLETED != ompi_mpi_state) {
        return;
    }
    wanted = false;
    filled = true;
    sending = NULL;
    fill(&mine);
    if (0 != ompi_comm_rank(world) && taken_by_first(world)) {
        send_mine(world);
    }
}

/* The line of `rank`, if it has arrived.  A probe of pml/crypt may have taken the message from the host: a receive
 * of this tag would not get it. */
static bool take_line(ompi_communicator_t *world, int rank, ompi_common_cryptmpi_report_line_t *line)
{
    ompi_message_t *message = NULL;
    ompi_status_public_t status;
    int arrived = 0;

    return OMPI_SUCCESS == MCA_PML_CALL(improbe(rank, OMPI_COMMON_CRYPTMPI_TAG_REPORT, world, &arrived, &message, &status))
           && arrived && OMPI_SUCCESS == MCA_PML_CALL(mrecv(line, sizeof(*line), MPI_BYTE, &message, &status))
           && sizeof(*line) == status._ucount;
}

/* On rank 0: take all lines, or those that arrive in time; returns how many. */
static int take_lines(ompi_communicator_t *world, ompi_common_cryptmpi_report_line_t *lines)
{
    const int processes = ompi_comm_size(world);
    bool *here = calloc((size_t) processes, sizeof(*here));
    ompi_common_cryptmpi_report_line_t line;
    opal_crypt_patience_t patience = opal_crypt_patience(LIMIT * 1000);
    int count = 1;

    lines[0] = mine;
    while (NULL != here && count < processes && opal_crypt_patience_left(&patience) > 0) {
        for (int rank = 1; rank < processes; rank++) {
            if (!here[rank] && take_line(world, rank, &line)) {
                here[rank] = true;
                lines[count++] = line;
            }
        }
        opal_progress();
    }
    free(here);
    return count;
}

void ompi_common_cryptmpi_report_end(void)
{
    ompi_communicator_t *world = &ompi_mpi_comm_world.comm;
    ompi_common_cryptmpi_report_line_t *lines;

    if (!filled) {
        return;
    }
    filled = false;
    if (0 != ompi_comm_rank(world)) {
        if (NULL != sending && REQUEST_COMPLETE(sending)) {
            ompi_request_free(&sending);
        }
        return;
    }
    lines = calloc((size_t) ompi_comm_size(world), sizeof(*lines));
    if (NULL == lines) {
        fprintf(stderr, "ompi-crypt: no report: out of memory\n");
        return;
    }
    ompi_common_cryptmpi_report_write(lines, take_lines(world, lines), ompi_comm_size(world));
    free(lines);
}
