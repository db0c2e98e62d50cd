/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * job [HOST]: each rank sends a number around; with a HOST, one more process is spawned there and sent one, too.
 * job session [HOST]: the same without MPI_Init.
 */
#include <mpi.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

static int around(MPI_Comm comm)
{
    int rank, size, got = -1;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 3, &got, 1, MPI_INT, (rank + size - 1) % size, 3, comm, MPI_STATUS_IGNORE);
    return got == (rank + size - 1) % size ? size : 0;
}

static void spawn(MPI_Comm comm, char *program, const char *host)
{
    MPI_Comm child;
    MPI_Info info;
    int rank, number = 5;

    MPI_Comm_rank(comm, &rank);
    MPI_Info_create(&info);
    MPI_Info_set(info, "host", host);
    MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, info, 0, comm, &child, MPI_ERRCODES_IGNORE);
    if (0 == rank) {
        MPI_Send(&number, 1, MPI_INT, 0, 4, child);
    }
    MPI_Comm_disconnect(&child);
    MPI_Info_free(&info);
}

#ifdef MPI_SESSION_NULL
static int run_session(char *program, const char *host)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int size;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "job", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    size = around(comm);
    if (NULL != host) {
        spawn(comm, program, host);
    }
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    return size;
}
#else
static int run_session(char *program, const char *host)
{
    (void) program;
    (void) host;
    return 0;
}
#endif

int main(int argc, char **argv)
{
    MPI_Comm parent;
    int number = 0, size;

    (void) signal(SIGPIPE, SIG_IGN);            /* btl/tcp of 5.0.7, where MPI ends (docs/troubleshooting.rst) */
    if (argc > 1 && 0 == strcmp(argv[1], "session")) {
        size = run_session(argv[0], argc > 2 ? argv[2] : NULL);
        printf("done %d\n", size);
        return 0;
    }
    MPI_Init(&argc, &argv);
    size = around(MPI_COMM_WORLD);
    MPI_Comm_get_parent(&parent);
    if (MPI_COMM_NULL != parent) {
        MPI_Recv(&number, 1, MPI_INT, 0, 4, parent, MPI_STATUS_IGNORE);
        MPI_Comm_disconnect(&parent);
        printf("spawned %d\n", number);
    } else {
        if (argc > 1) {
            spawn(MPI_COMM_WORLD, argv[0], argv[1]);
        }
        printf("done %d\n", size);
    }
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
