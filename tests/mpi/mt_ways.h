/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The three spellings of a collective: MT_CALL(Bcast, Ibcast, ...) makes the
 * blocking, non-blocking or persistent call that mt_way says, and finishes it.
 */
#ifndef TESTS_MPI_MT_WAYS_H
#define TESTS_MPI_MT_WAYS_H

#include "mt.h"

#if MT_HAS_MPI4
#define MT_INIT(name) MPI_##name##_init
#else
#include <mpi-ext.h>
#define MT_INIT(name) MPIX_##name##_init
#endif

enum { MT_BLOCKING, MT_NONBLOCKING, MT_PERSISTENT, MT_WAYS };
static int mt_way;

static inline void mt_finish(MPI_Request *req)
{
    if (MT_PERSISTENT == mt_way) {
        MT_MPI(MPI_Start(req));
        MT_MPI(MPI_Wait(req, MPI_STATUS_IGNORE));
        MT_MPI(MPI_Request_free(req));
    } else if (MT_NONBLOCKING == mt_way) {
        MT_MPI(MPI_Wait(req, MPI_STATUS_IGNORE));
    }
}

#define MT_CALL(name, iname, ...) do { \
    MPI_Request req_ = MPI_REQUEST_NULL; \
    if (MT_BLOCKING == mt_way) { MT_MPI(MPI_##name(__VA_ARGS__)); } \
    else if (MT_NONBLOCKING == mt_way) { MT_MPI(MPI_##iname(__VA_ARGS__, &req_)); } \
    else { MT_MPI(MT_INIT(name)(__VA_ARGS__, MPI_INFO_NULL, &req_)); } \
    mt_finish(&req_); } while (0)

#endif
