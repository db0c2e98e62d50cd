/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * coll/cryptag seen through MPI_T: choosing an algorithm at run time, reading
 * the six metrics.  Used by the tests and by the benchmark of collectives.
 */
#ifndef CRYPTAG_MPIT_H
#define CRYPTAG_MPIT_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALGORITHMS 9
static const char *const algorithm_name[ALGORITHMS] = { "auto", "naive", "o-ring", "o-rd", "o-rd2",
                                                        "c-ring", "c-rd", "hs1", "hs2" };
#define METRICS 6
static const char *const metric_name[METRICS] = { "r_c", "s_c", "r_e", "s_e", "r_d", "s_d" };

typedef unsigned long long metrics_t[METRICS];

#define NEED(condition)                                                                     \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);   \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                   \
        }                                                                                   \
    } while (0)

static MPI_T_pvar_session mpit_session;
static MPI_T_pvar_handle mpit_metric[METRICS];

static void mpit_start(void)
{
    int provided;

    NEED(MPI_SUCCESS == MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    NEED(MPI_SUCCESS == MPI_T_pvar_session_create(&mpit_session));
    for (int i = 0; i < METRICS; i++) {
        char name[64];
        int index, count;

        snprintf(name, sizeof(name), "coll_cryptag_%s", metric_name[i]);
        NEED(MPI_SUCCESS == MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
        NEED(MPI_SUCCESS == MPI_T_pvar_handle_alloc(mpit_session, index, NULL, &mpit_metric[i], &count));
        NEED(1 == count);
    }
}

static void mpit_stop(void)
{
    for (int i = 0; i < METRICS; i++) {
        MPI_T_pvar_handle_free(mpit_session, &mpit_metric[i]);
    }
    MPI_T_pvar_session_free(&mpit_session);
    MPI_T_finalize();
}

/* Set an integer parameter of the component at this rank. */
static void mpit_set(const char *parameter, int value)
{
    MPI_T_cvar_handle handle;
    char name[64];
    int index, count;

    snprintf(name, sizeof(name), "coll_cryptag_%s", parameter);
    NEED(MPI_SUCCESS == MPI_T_cvar_get_index(name, &index));
    NEED(MPI_SUCCESS == MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    NEED(MPI_SUCCESS == MPI_T_cvar_write(handle, &value));
    MPI_T_cvar_handle_free(&handle);
}

/* Metrics of this process since its start. */
static void mpit_metrics(metrics_t now)
{
    for (int i = 0; i < METRICS; i++) {
        NEED(MPI_SUCCESS == MPI_T_pvar_read(mpit_session, mpit_metric[i], &now[i]));
    }
}

#endif
