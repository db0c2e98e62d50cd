/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt-times.so: MPI's functions, in C and, for mpif.h and `use mpi`, in
 * Fortran.  Open MPI's Fortran functions call PMPI_..., so that no time is
 * taken twice.  Those of Fortran are looked up when they are called: C programs
 * do not have them.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "times.h"

#define SHOWN __attribute__((visibility("default")))

typedef void (*fortran_t)(void *, ...);

static fortran_t next(const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    fortran_t function;

    if (NULL == symbol) {
        fprintf(stderr, "mpicrypt-times: no %s in Open MPI's Fortran library\n", name);
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    *(void **) &function = symbol;
    return function;
}

/* F(name, arguments): calls Open MPI's Fortran function. */
#define F(name, ...) do { static fortran_t real; real = NULL == real ? next("mpi_" #name "_") : real; real(__VA_ARGS__); } while (0)
#define TIMED(far, call) do { const bool far_ = far; double begin_ = mpicrypt_times_now(); call; mpicrypt_times_spent(begin_, far_); } while (0)

SHOWN int MPI_Init(int *argc, char ***argv)
{
    int rc = PMPI_Init(argc, argv);

    mpicrypt_times_begin();
    return rc;
}

SHOWN int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int rc = PMPI_Init_thread(argc, argv, required, provided);

    mpicrypt_times_begin();
    return rc;
}

SHOWN int MPI_Finalize(void)
{
    mpicrypt_times_end();
    return PMPI_Finalize();
}

SHOWN int MPI_Comm_free(MPI_Comm *comm)
{
    mpicrypt_times_forget(*comm);
    return PMPI_Comm_free(comm);
}

void mpi_init_(MPI_Fint *error);
void mpi_init_thread_(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error);
void mpi_finalize_(MPI_Fint *error);
void mpi_comm_free_(MPI_Fint *comm, MPI_Fint *error);
SHOWN void mpi_init_(MPI_Fint *error) { F(init, error); mpicrypt_times_begin(); }
SHOWN void mpi_init_thread_(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error)
{
    F(init_thread, required, provided, error);
    mpicrypt_times_begin();
}
SHOWN void mpi_finalize_(MPI_Fint *error) { mpicrypt_times_end(); F(finalize, error); }
SHOWN void mpi_comm_free_(MPI_Fint *comm, MPI_Fint *error) { mpicrypt_times_forget(PMPI_Comm_f2c(*comm)); F(comm_free, comm, error); }

#define SEND(Name, name)                                                                                              \
    void mpi_##name##_(void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *);               \
    SHOWN int MPI_##Name(const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm)            \
    {                                                                                                                 \
        int rc;                                                                                                       \
        TIMED(mpicrypt_times_is_far(peer, comm), rc = PMPI_##Name(data, count, type, peer, tag, comm));                              \
        return rc;                                                                                                    \
    }                                                                                                                 \
    SHOWN void mpi_##name##_(void *data, MPI_Fint *count, MPI_Fint *type, MPI_Fint *peer, MPI_Fint *tag,              \
                             MPI_Fint *comm, MPI_Fint *error)                                                         \
    {                                                                                                                 \
        TIMED(mpicrypt_times_is_far(*peer, PMPI_Comm_f2c(*comm)), F(name, data, count, type, peer, tag, comm, error));               \
    }

#define START(Name, name, constant)                                                                                   \
    void mpi_##name##_(void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *);   \
    SHOWN int MPI_##Name(constant void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,         \
                         MPI_Request *request)                                                                        \
    {                                                                                                                 \
        bool far = mpicrypt_times_is_far(peer, comm);                                                                                \
        int rc;                                                                                                       \
        TIMED(far, rc = PMPI_##Name(data, count, type, peer, tag, comm, request));                                    \
        mpicrypt_times_watch(*request, far);                                                                                         \
        return rc;                                                                                                    \
    }                                                                                                                 \
    SHOWN void mpi_##name##_(void *data, MPI_Fint *count, MPI_Fint *type, MPI_Fint *peer, MPI_Fint *tag,              \
                             MPI_Fint *comm, MPI_Fint *request, MPI_Fint *error)                                      \
    {                                                                                                                 \
        bool far = mpicrypt_times_is_far(*peer, PMPI_Comm_f2c(*comm));                                                               \
        TIMED(far, F(name, data, count, type, peer, tag, comm, request, error));                                      \
        mpicrypt_times_watch(PMPI_Request_f2c(*request), far);                                                                       \
    }

SEND(Send, send)
SEND(Ssend, ssend)
SEND(Rsend, rsend)
SEND(Bsend, bsend)
START(Isend, isend, const)
START(Issend, issend, const)
START(Irsend, irsend, const)
START(Ibsend, ibsend, const)
START(Irecv, irecv, )

/* ---- receives, and both at once ---- */

typedef MPI_Fint *fint_t;

void mpi_recv_(void *, fint_t, fint_t, fint_t, fint_t, fint_t, fint_t, fint_t);
void mpi_sendrecv_(void *, fint_t, fint_t, fint_t, fint_t, void *, fint_t, fint_t, fint_t, fint_t, fint_t, fint_t, fint_t);

SHOWN int MPI_Recv(void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status *status)
{
    int rc;

    TIMED(mpicrypt_times_is_far(peer, comm), rc = PMPI_Recv(data, count, type, peer, tag, comm, status));
    return rc;
}

SHOWN void mpi_recv_(void *data, fint_t count, fint_t type, fint_t peer, fint_t tag, fint_t comm, fint_t status,
                     fint_t error)
{
    TIMED(mpicrypt_times_is_far(*peer, PMPI_Comm_f2c(*comm)), F(recv, data, count, type, peer, tag, comm, status, error));
}

SHOWN int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag, void *in,
                       int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *status)
{
    int rc;

    TIMED(mpicrypt_times_is_far(to, comm) || mpicrypt_times_is_far(from, comm),
          rc = PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status));
    return rc;
}

SHOWN void mpi_sendrecv_(void *out, fint_t out_count, fint_t out_type, fint_t to, fint_t out_tag, void *in,
                         fint_t in_count, fint_t in_type, fint_t from, fint_t in_tag, fint_t comm, fint_t status,
                         fint_t error)
{
    MPI_Comm where = PMPI_Comm_f2c(*comm);

    TIMED(mpicrypt_times_is_far(*to, where) || mpicrypt_times_is_far(*from, where),
          F(sendrecv, out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status, error));
}

/* ---- completion ---- */

#define COMPLETE(list, count, fortran, call)                                                                          \
    do {                                                                                                              \
        bool far;                                                                                                     \
        MPI_Request *before = mpicrypt_times_before(list, count, fortran, &far);                                      \
        TIMED(far, call);                                                                                             \
        mpicrypt_times_after(before, list, count, fortran);                                                           \
    } while (0)

void mpi_wait_(fint_t, fint_t, fint_t);
void mpi_test_(fint_t, fint_t, fint_t, fint_t);
void mpi_waitall_(fint_t, fint_t, fint_t, fint_t);
void mpi_waitany_(fint_t, fint_t, fint_t, fint_t, fint_t);

SHOWN int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    int rc;

    COMPLETE(request, 1, false, rc = PMPI_Wait(request, status));
    return rc;
}

SHOWN void mpi_wait_(fint_t request, fint_t status, fint_t error)
{
    COMPLETE(request, 1, true, F(wait, request, status, error));
}

SHOWN int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    int rc;

    COMPLETE(request, 1, false, rc = PMPI_Test(request, flag, status));
    return rc;
}

SHOWN void mpi_test_(fint_t request, fint_t flag, fint_t status, fint_t error)
{
    COMPLETE(request, 1, true, F(test, request, flag, status, error));
}

SHOWN int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    int rc;

    COMPLETE(requests, count, false, rc = PMPI_Waitall(count, requests, statuses));
    return rc;
}

SHOWN void mpi_waitall_(fint_t count, fint_t requests, fint_t statuses, fint_t error)
{
    COMPLETE(requests, *count, true, F(waitall, count, requests, statuses, error));
}

SHOWN int MPI_Waitany(int count, MPI_Request *requests, int *index, MPI_Status *status)
{
    int rc;

    COMPLETE(requests, count, false, rc = PMPI_Waitany(count, requests, index, status));
    return rc;
}

SHOWN void mpi_waitany_(fint_t count, fint_t requests, fint_t index, fint_t status, fint_t error)
{
    COMPLETE(requests, *count, true, F(waitany, count, requests, index, status, error));
}

/* ---- collectives ---- */

/* COLLECTIVE(Name, name, C parameters, C arguments, Fortran parameters, Fortran arguments) */
#define GROUPED(...) __VA_ARGS__
#define COLLECTIVE(Name, name, parameters, arguments, fortran_parameters, fortran_arguments)                          \
    void mpi_##name##_ fortran_parameters;                                                                            \
    SHOWN int MPI_##Name parameters                                                                                   \
    {                                                                                                                 \
        int rc;                                                                                                       \
        TIMED(false, rc = PMPI_##Name arguments);                                                                     \
        return rc;                                                                                                    \
    }                                                                                                                 \
    SHOWN void mpi_##name##_ fortran_parameters { TIMED(false, F(name, GROUPED fortran_arguments)); }

#define ONE (const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)

COLLECTIVE(Barrier, barrier, (MPI_Comm comm), (comm), (fint_t comm, fint_t error), (comm, error))
COLLECTIVE(Bcast, bcast, (void *data, int n, MPI_Datatype type, int root, MPI_Comm comm), (data, n, type, root, comm),
           (void *data, fint_t n, fint_t type, fint_t root, fint_t comm, fint_t error), (data, n, type, root, comm, error))
COLLECTIVE(Reduce, reduce, (const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
           (in, out, n, type, op, root, comm),
           (void *in, void *out, fint_t n, fint_t type, fint_t op, fint_t root, fint_t comm, fint_t error),
           (in, out, n, type, op, root, comm, error))
COLLECTIVE(Allreduce, allreduce, ONE, (in, out, n, type, op, comm),
           (void *in, void *out, fint_t n, fint_t type, fint_t op, fint_t comm, fint_t error),
           (in, out, n, type, op, comm, error))
COLLECTIVE(Scan, scan, ONE, (in, out, n, type, op, comm),
           (void *in, void *out, fint_t n, fint_t type, fint_t op, fint_t comm, fint_t error),
           (in, out, n, type, op, comm, error))
COLLECTIVE(Alltoall, alltoall,
           (const void *in, int n, MPI_Datatype type, void *out, int m, MPI_Datatype kind, MPI_Comm comm),
           (in, n, type, out, m, kind, comm),
           (void *in, fint_t n, fint_t type, void *out, fint_t m, fint_t kind, fint_t comm, fint_t error),
           (in, n, type, out, m, kind, comm, error))
COLLECTIVE(Allgather, allgather,
           (const void *in, int n, MPI_Datatype type, void *out, int m, MPI_Datatype kind, MPI_Comm comm),
           (in, n, type, out, m, kind, comm),
           (void *in, fint_t n, fint_t type, void *out, fint_t m, fint_t kind, fint_t comm, fint_t error),
           (in, n, type, out, m, kind, comm, error))
COLLECTIVE(Alltoallv, alltoallv,
           (const void *in, const int *n, const int *at, MPI_Datatype type, void *out, const int *m, const int *place,
            MPI_Datatype kind, MPI_Comm comm),
           (in, n, at, type, out, m, place, kind, comm),
           (void *in, fint_t n, fint_t at, fint_t type, void *out, fint_t m, fint_t place, fint_t kind, fint_t comm,
            fint_t error),
           (in, n, at, type, out, m, place, kind, comm, error))
