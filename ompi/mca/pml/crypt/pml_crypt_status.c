/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * This process's status page (common/crypt, crypt/base/status.h): made when the PML is chosen, filled
 * from the progress function, removed at the end.
 *
 * It must cost next to nothing: one call of the progress function in 32 reads the clock, and the
 * page is filled twice a second, or less often where that takes long, so that it never takes more
 * than 1/200 of the time.  Data behind a lock that is held is left out.  After any failure the job
 * goes on without a page.
 */
#include "pml_crypt.h"

#include "opal/mca/common/crypt/base/thread.h"

#include <string.h>
#include <time.h>

#include "ompi/runtime/mpiruntime.h"

enum { INTERVAL = 500000000, SHARE = 200 };     /* nanoseconds; a snapshot takes at most 1/SHARE of the time */

unsigned ompi_pml_crypt_status_calls;

static opal_crypt_status_t *page;
static bool lists;
static ompi_common_cryptmpi_atomic32_t updating;    /* one thread at a time */
static int64_t due;
static int64_t phase_since, active_since;
static int32_t phase;
static uint64_t active;

static int64_t coarse(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t real_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static int32_t phase_now(void)
{
    return ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_STARTED ? OPAL_CRYPT_STATUS_ENDING
           : ompi_mpi_state >= OMPI_MPI_STATE_INIT_COMPLETED ? OPAL_CRYPT_STATUS_RUNNING
                                                             : OPAL_CRYPT_STATUS_STARTING;
}

/* The number of ranks; 0 where MPI is not initialized. */
static uint32_t ranks_now(void)
{
    return ompi_mpi_state >= OMPI_MPI_STATE_INIT_COMPLETED && OMPI_MPI_STATE_FINALIZE_STARTED > ompi_mpi_state
               ? (uint32_t) ompi_comm_size(&ompi_mpi_comm_world.comm) : 0;
}

/* False: the lists are busy. */
static bool fill(opal_crypt_status_snapshot_t *snapshot, int64_t now)
{
    uint64_t counted = __atomic_load_n(&ompi_pml_crypt.active, __ATOMIC_RELAXED);

    snapshot->updated = now;
    if (ompi_common_cryptmpi_transport_is_btl() && !ompi_pml_crypt_snapshot_btl(snapshot, now, lists, &counted)) {
        return false;
    }
    if (phase_now() != phase) {
        phase = phase_now();
        phase_since = now;
    }
    if (counted != active) {
        active = counted;
        active_since = now;
    }
    snapshot->updated_real = real_time();
    snapshot->phase = phase;
    snapshot->phase_since = phase_since;
    snapshot->active = active_since;
    snapshot->ranks = ranks_now();
    if (!ompi_common_cryptmpi_transport_is_btl()) {
        ompi_pml_crypt_snapshot(snapshot, now, lists);
    }
    return true;
}

static void fill_page(int64_t now)
{
    if (fill(opal_crypt_status_next(page), now)) {
        opal_crypt_status_publish(page);
    }
}

/* A snapshot makes progress (it probes), and so comes here again; another thread may, too. */
static bool take_turn(void)
{
    int32_t nobody = 0;

    return __atomic_compare_exchange_n((volatile int32_t *) &updating, &nobody, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void end_turn(void)
{
    __atomic_store_n((volatile int32_t *) &updating, 0, __ATOMIC_RELEASE);
}

void ompi_pml_crypt_status_update(void)
{
    int64_t begun, ended;

    if ((coarse() < __atomic_load_n(&due, __ATOMIC_RELAXED) && phase_now() == phase) || !take_turn()) {
        return;
    }
    if (NULL != page && !opal_crypt_forked()) {
        begun = (int64_t) opal_crypt_now();
        fill_page(begun);
        ended = (int64_t) opal_crypt_now();
        __atomic_store_n(&due, begun + (SHARE * (ended - begun) > INTERVAL ? SHARE * (ended - begun) : INTERVAL),
                         __ATOMIC_RELAXED);
    }
    end_turn();
}

void ompi_pml_crypt_status_start(void)
{
    opal_crypt_status_who_t who;
    int error = 0;

    if (0 == opal_process_info.my_local_rank) {
        opal_crypt_status_sweep(OPAL_CRYPT_STATUS_DIRECTORY);
    }
    ompi_common_cryptmpi_describe(&who);
    who.over_btl = ompi_common_cryptmpi_transport_is_btl();
    page = opal_crypt_status_make(OPAL_CRYPT_STATUS_DIRECTORY, &who, &error);
    if (NULL == page) {
        opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, opal_cryptproc_stream,
                            "pml:crypt: no status page for mpicrypt ps: %s", strerror(error));
        return;
    }
    lists = false;
    active = ompi_pml_crypt.active;
    phase = phase_now();
    phase_since = active_since = (int64_t) opal_crypt_now();
    fill_page(phase_since);
    due = 0;
    opal_cryptproc_still_here = ompi_pml_crypt_status_update;
}

static void wait_turn(void)
{
    while (!take_turn()) {
        sched_yield();
    }
}

void ompi_pml_crypt_status_lists(bool ready)
{
    wait_turn();
    lists = ready;
    end_turn();
}

void ompi_pml_crypt_status_now(opal_crypt_status_snapshot_t *snapshot)
{
    wait_turn();
    (void) fill(snapshot, (int64_t) opal_crypt_now());
    end_turn();
}

void ompi_pml_crypt_status_stop(void)
{
    opal_cryptproc_still_here = NULL;
    wait_turn();
    opal_crypt_status_remove(page);
    page = NULL;
    end_turn();
}
