/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * look [early]: what each process listens at, in and outside of the ports that btl/crypt was given (21000 to 21003), whether it
 * shares memory, and what of our settings its children would get.  early: MPI_T is initialized first.
 */
#include <arpa/inet.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
static int maps_have(const char *with)
{
    char line[4096];
    int found = 0;
    FILE *file = fopen("/proc/self/maps", "r");

    while (NULL != file && NULL != fgets(line, sizeof(line), file)) {
        found |= NULL != strstr(line, with);
    }
    if (NULL != file) {
        fclose(file);
    }
    return found;
}
int main(int argc, char **argv)
{
    int rank, size, sum = 0, inside = 0, outside = 0, provided;

    if (argc > 1) {
        MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_in6 address = {0};
        socklen_t bytes = sizeof(address), one = sizeof(int);
        int listens = 0, port;

        if (0 == getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &one) && listens
            && 0 == getsockname(fd, (struct sockaddr *) &address, &bytes)
            && (AF_INET == address.sin6_family || AF_INET6 == address.sin6_family)) {
            port = ntohs(address.sin6_port);            /* at the same place in both families */
            inside += 21000 <= port && port < 21004;
            outside += port < 21000 || port >= 21004;
        }
    }
    printf("rank %d sum %d crypt %d others %d shared %d lent %d\n", rank, sum - size * (size - 1) / 2, inside, outside,
           maps_have(OMPI_MAJOR_VERSION >= 5 ? "sm_segment" : "vader_segment"), (NULL != getenv("OMPI_MCA_btl")) + (NULL != getenv("OMPI_MCA_osc")) + (NULL != getenv("OMPI_MCA_coll"))
           + (NULL != getenv("OMPI_MCA_btl_tcp_eager_limit")));
    MPI_Finalize();
    return 0;
}
