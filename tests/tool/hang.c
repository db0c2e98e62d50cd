/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * hang MODE FILE: two ranks that wait for each other in vain, for tests/tool/ps.sh.  Each writes
 * its process id to FILE.RANK once MPI_Init is over.
 */
#include <mpi.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 4000 };

static int rank, number;
static char large[16384], huge[1 << 24];
static MPI_Request requests[MANY];

static void receive(int tag)
{
    MPI_Recv(&number, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange(void)
{
    int other;

    MPI_Sendrecv(&number, 1, MPI_INT, 1 - rank, 1, &other, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void stay_away(int who)
{
    while (who == rank) {
        pause();
    }
}

static void write_pid(const char *file)
{
    char name[4096], made[4100];
    FILE *out;

    snprintf(name, sizeof(name), "%.4000s.%d", file, rank);
    snprintf(made, sizeof(made), "%.4090s.new", name);
    out = fopen(made, "w");
    fprintf(out, "%d\n", (int) getpid());
    fclose(out);
    rename(made, name);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[1] : "";
    char port[MPI_MAX_PORT_NAME];
    MPI_Request request;
    MPI_Comm other;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    write_pid(argv[2]);
    if (0 == strcmp(mode, "sender")) {              /* nobody has sent */
        receive(6 + rank);
    } else if (0 == strcmp(mode, "tag")) {          /* sent with another tag than is received */
        if (0 == rank) {
            MPI_Send(&number, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
        }
        receive(0 == rank ? 7 : 6);
    } else if (0 == strcmp(mode, "request")) {      /* the same, without a call that blocks */
        if (0 == rank) {
            MPI_Send(&number, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
            receive(7);
        }
        MPI_Irecv(&number, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (0 == strcmp(mode, "probe")) {
        MPI_Probe(0 == rank ? MPI_ANY_SOURCE : 0, 0 == rank ? MPI_ANY_TAG : 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (0 == strcmp(mode, "send")) {         /* too much to send ahead, and nobody receives */
        if (0 == rank) {
            MPI_Ssend(huge, sizeof(huge), MPI_BYTE, 1, 5, MPI_COMM_WORLD);
        }
        receive(7);
    } else if (0 == strcmp(mode, "barrier")) {      /* one of them does not take part */
        if (0 == rank) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
        receive(6);
    } else if (0 == strcmp(mode, "first")) {        /* the first contact is with somebody who is not inside MPI */
        stay_away(1);
        MPI_Send(&number, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
        receive(7);
    } else if (0 == strcmp(mode, "away")) {         /* they have met */
        exchange();
        stay_away(1);
        receive(7);
    } else if (0 == strcmp(mode, "accept")) {       /* nobody connects */
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    } else if (0 == strcmp(mode, "take")) {         /* more than a network takes for somebody who is away */
        exchange();
        stay_away(1);
        for (int i = 0; i < MANY; i++) {
            MPI_Isend(large, sizeof(large), MPI_BYTE, 1, 5, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    } else {                                        /* whoever is stopped is missed */
        for (;;) {
            exchange();
        }
    }
    MPI_Finalize();
    return 0;
}
