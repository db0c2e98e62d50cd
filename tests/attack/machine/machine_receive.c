/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The receiving side of a step: rank 0, by one thread or several.
 */
#include "machine.h"

#include <pthread.h>

static int probe_now(landing_t *l, MPI_Comm comm, MPI_Message *message)
{
    int rc = MPI_SUCCESS, found = 0;

    while (MPI_SUCCESS == rc && !found) {
        switch (l->how.way) {
        case PROBE:  rc = MPI_Probe(l->how.source, l->how.tag, comm, &l->status); found = 1; break;
        case MPROBE: rc = MPI_Mprobe(l->how.source, l->how.tag, comm, message, &l->status); found = 1; break;
        case IPROBE: rc = MPI_Iprobe(l->how.source, l->how.tag, comm, &found, &l->status); break;
        default:     rc = MPI_Improbe(l->how.source, l->how.tag, comm, &found, message, &l->status); break;
        }
    }
    return rc;
}

static void receive_probed(landing_t *l, MPI_Comm comm)
{
    const receive_t how = l->how;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    int n, rc = probe_now(l, comm, &message);

    if (MPI_SUCCESS != rc) {                    /* the end of the receive that would follow */
        landing_open(l, &how, 0);
        l->rc = rc;
        return;
    }
    status = l->status;
    MT_MPI(MPI_Get_count(&status, MPI_BYTE, &n));
    landing_open(l, &how, PROBED == how.room ? (size_t) n + PIECE : how.room);
    l->probed = true;
    l->probed_bytes = (size_t) n;
    l->rc = MPROBE == how.way || IMPROBE == how.way
                ? MPI_Mrecv(l->at, l->count, l->type, &message, &l->status)
                : MPI_Recv(l->at, l->count, l->type, status.MPI_SOURCE, status.MPI_TAG, comm, &l->status);
}

static void receive_begin(landing_t *l, const receive_t *how)
{
    MPI_Comm comm = targets[how->comm];

    if (way_probes(how->way)) {
        *l = (landing_t){.how = *how};
        receive_probed(l, comm);
        return;
    }
    landing_open(l, how, how->room);
    switch (how->way) {
    case RECV:
        l->rc = MPI_Recv(l->at, l->count, l->type, how->source, how->tag, comm, &l->status);
        break;
    case SENDRECV:
        l->rc = MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, l->at, l->count, l->type, how->source, how->tag, comm,
                             &l->status);
        break;
    case PERSISTENT:
        MT_MPI(MPI_Recv_init(l->at, l->count, l->type, how->source, how->tag, comm, &l->request));
        MT_MPI(MPI_Start(&l->request));
        break;
    default:
        MT_MPI(MPI_Irecv(l->at, l->count, l->type, how->source, how->tag, comm, &l->request));
        if (CANCEL == how->way) {
            MT_MPI(MPI_Cancel(&l->request));
        }
    }
}

static void receive_end(landing_t *l)
{
    int done = 0;

    if (MPI_REQUEST_NULL == l->request) {
        return;
    }
    if (TEST == l->how.way) {
        while (!done) {
            l->rc = MPI_Test(&l->request, &done, &l->status);
            done = done || MPI_SUCCESS != l->rc;
        }
    } else {
        l->rc = MPI_Wait(&l->request, &l->status);
    }
    if (MPI_SUCCESS == l->rc) {
        MT_MPI(MPI_Test_cancelled(&l->status, &done));
        l->cancelled = CANCEL == l->how.way && done;
    }
    if (MPI_REQUEST_NULL != l->request) {
        MT_MPI(MPI_Request_free(&l->request));
    }
}

typedef struct part {
    const step_t *step;
    landing_t *landings;
    int first, apart;
} part_t;

static void *receive_part(void *argument)
{
    const part_t *part = argument;

    for (int i = part->first; i < part->step->receives_count; i += part->apart) {
        receive_begin(&part->landings[i], &part->step->receives[i]);
    }
    for (int i = part->first; i < part->step->receives_count; i += part->apart) {
        receive_end(&part->landings[i]);
    }
    return NULL;
}

void receive_all(const step_t *step, int threads, landing_t *landings)
{
    pthread_t ids[THREADS];
    part_t parts[THREADS];

    for (int i = 0; i < threads; i++) {
        parts[i] = (part_t){step, landings, i, threads};
        if (i > 0) {
            MT_CHECK(0 == pthread_create(&ids[i], NULL, receive_part, &parts[i]), "pthread_create");
        }
    }
    receive_part(&parts[0]);
    for (int i = 1; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
}
