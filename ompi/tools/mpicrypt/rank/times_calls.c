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

typedef MPI_Fint *fint_t;

/* CALL(Name, name, C parameters, C arguments, Fortran parameters, Fortran arguments, is another node meant: in C, in Fortran) */
#define GROUPED(...) __VA_ARGS__
#define CALL(Name, name, parameters, arguments, fortran_parameters, fortran_arguments, far, fortran_far)              \
    void mpi_##name##_ fortran_parameters;                                                                            \
    SHOWN int MPI_##Name parameters                                                                                   \
    {                                                                                                                 \
        int rc;                                                                                                       \
        TIMED(far, rc = PMPI_##Name arguments);                                                                       \
        return rc;                                                                                                    \
    }                                                                                                                 \
    SHOWN void mpi_##name##_ fortran_parameters { TIMED(fortran_far, F(name, GROUPED fortran_arguments)); }

#define FAR(peer, comm) mpicrypt_times_is_far(peer, comm)
#define FORTRAN_FAR(peer, comm) mpicrypt_times_is_far(*(peer), PMPI_Comm_f2c(*(comm)))

#define SEND(Name, name)                                                                                              \
    CALL(Name, name, (const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm),              \
         (data, count, type, peer, tag, comm),                                                                        \
         (void *data, fint_t count, fint_t type, fint_t peer, fint_t tag, fint_t comm, fint_t error),                 \
         (data, count, type, peer, tag, comm, error), FAR(peer, comm), FORTRAN_FAR(peer, comm))

#define START(Name, name, constant)                                                                                   \
    void mpi_##name##_(void *, fint_t, fint_t, fint_t, fint_t, fint_t, fint_t, fint_t);                               \
    SHOWN int MPI_##Name(constant void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,         \
                         MPI_Request *request)                                                                        \
    {                                                                                                                 \
        bool far = FAR(peer, comm);                                                                                   \
        int rc;                                                                                                       \
        TIMED(far, rc = PMPI_##Name(data, count, type, peer, tag, comm, request));                                    \
        mpicrypt_times_watch(*request, far);                                                                          \
        return rc;                                                                                                    \
    }                                                                                                                 \
    SHOWN void mpi_##name##_(void *data, fint_t count, fint_t type, fint_t peer, fint_t tag, fint_t comm, fint_t request, \
                             fint_t error)                                                                            \
    {                                                                                                                 \
        bool far = FORTRAN_FAR(peer, comm);                                                                           \
        TIMED(far, F(name, data, count, type, peer, tag, comm, request, error));                                      \
        mpicrypt_times_watch(PMPI_Request_f2c(*request), far);                                                        \
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
CALL(Recv, recv, (void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status *status),
     (data, count, type, peer, tag, comm, status),
     (void *data, fint_t count, fint_t type, fint_t peer, fint_t tag, fint_t comm, fint_t status, fint_t error),
     (data, count, type, peer, tag, comm, status, error), FAR(peer, comm), FORTRAN_FAR(peer, comm))
CALL(Sendrecv, sendrecv,
     (const void *out, int n, MPI_Datatype type, int to, int tag, void *in, int m, MPI_Datatype kind, int from, int label, MPI_Comm comm,
      MPI_Status *status),
     (out, n, type, to, tag, in, m, kind, from, label, comm, status),
     (void *out, fint_t n, fint_t type, fint_t to, fint_t tag, void *in, fint_t m, fint_t kind, fint_t from, fint_t label, fint_t comm,
      fint_t status, fint_t error),
     (out, n, type, to, tag, in, m, kind, from, label, comm, status, error), FAR(to, comm) || FAR(from, comm),
     FORTRAN_FAR(to, comm) || FORTRAN_FAR(from, comm))

/* ---- completion ---- */

/* As CALL, of `list`, which has `count` requests. */
#define COMPLETE(list, count, fortran, call)                                                                          \
    do {                                                                                                              \
        bool far;                                                                                                     \
        MPI_Request *before = mpicrypt_times_before(list, count, fortran, &far);                                      \
        TIMED(far, call);                                                                                             \
        mpicrypt_times_after(before, list, count, fortran);                                                           \
    } while (0)
#define COMPLETION(Name, name, parameters, arguments, fortran_parameters, fortran_arguments, list, count, fortran_count) \
    void mpi_##name##_ fortran_parameters;                                                                            \
    SHOWN int MPI_##Name parameters                                                                                   \
    {                                                                                                                 \
        int rc;                                                                                                       \
        COMPLETE(list, count, false, rc = PMPI_##Name arguments);                                                     \
        return rc;                                                                                                    \
    }                                                                                                                 \
    SHOWN void mpi_##name##_ fortran_parameters { COMPLETE(list, fortran_count, true, F(name, GROUPED fortran_arguments)); }

COMPLETION(Wait, wait, (MPI_Request *list, MPI_Status *status), (list, status), (fint_t list, fint_t status, fint_t error),
           (list, status, error), list, 1, 1)
COMPLETION(Test, test, (MPI_Request *list, int *flag, MPI_Status *status), (list, flag, status),
           (fint_t list, fint_t flag, fint_t status, fint_t error), (list, flag, status, error), list, 1, 1)
COMPLETION(Waitall, waitall, (int n, MPI_Request *list, MPI_Status *statuses), (n, list, statuses),
           (fint_t n, fint_t list, fint_t statuses, fint_t error), (n, list, statuses, error), list, n, *n)
COMPLETION(Waitany, waitany, (int n, MPI_Request *list, int *index, MPI_Status *status), (n, list, index, status),
           (fint_t n, fint_t list, fint_t index, fint_t status, fint_t error), (n, list, index, status, error), list, n, *n)

/* ---- collectives ---- */

#define COLLECTIVE(Name, name, parameters, arguments, fortran_parameters, fortran_arguments)                          \
    CALL(Name, name, parameters, arguments, fortran_parameters, fortran_arguments, false, false)

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
