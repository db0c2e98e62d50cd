/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A TCP socket between two ranks.  MPI carries the address at which the first one listens, and is idle from then on.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rank.h"

typedef struct way {                    /* where the partner listens */
    char host[256], port[8];
} way_t;

static int listen_here(way_t *way)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t bytes = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (listener < 0 || 0 != bind(listener, (struct sockaddr *) &address, bytes) || 0 != listen(listener, 1)
        || 0 != getsockname(listener, (struct sockaddr *) &address, &bytes)
        || 0 != gethostname(way->host, sizeof(way->host) - 1)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "no socket can be had: %s", strerror(errno));
    }
    snprintf(way->port, sizeof(way->port), "%u", ntohs(address.sin_port));
    return listener;
}

static int connect_to(const way_t *way)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int connected = -1, rc = getaddrinfo(way->host, way->port, &hints, &list);

    for (const struct addrinfo *a = list; NULL != a && connected < 0; a = a->ai_next) {
        connected = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connected >= 0 && 0 != connect(connected, a->ai_addr, a->ai_addrlen)) {
            close(connected);
            connected = -1;
        }
    }
    if (NULL != list) {
        freeaddrinfo(list);
    }
    if (connected < 0) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "no connection to %s, which the other rank's node calls itself: %s", way->host,
                           0 != rc ? gai_strerror(rc) : strerror(errno));
    }
    return connected;
}

int mpicrypt_mpi_socket_meet(int partner, bool first)
{
    const int yes = 1;
    way_t way = {.host = ""};
    int fd;

    if (first) {
        int listener = listen_here(&way);
        MPI_Send(&way, sizeof(way), MPI_BYTE, partner, 1, MPI_COMM_WORLD);
        fd = accept(listener, NULL, NULL);
        close(listener);
    } else {
        MPI_Recv(&way, sizeof(way), MPI_BYTE, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fd = connect_to(&way);
    }
    if (fd < 0 || 0 != setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes))) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "the other rank does not come: %s", strerror(errno));
    }
    return fd;
}
