/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Rank 0 sends messages of one size to rank 1, on another node, which asks the
 * kernel how many bytes came in by TCP meanwhile.  Prints for each size how many
 * there were for a message.  Nothing else is under way between the two looks.
 */
#include "mt.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <sys/socket.h>

enum { MESSAGES = 500, DESCRIPTORS = 1024 };

static const size_t sizes[] = {0, 1, 24, 1000, 4096, 4097, 16384, 32768, 65535, 65536};

/* From other hosts, over all connections of this process. */
static unsigned long long received(void)
{
    unsigned long long bytes = 0;
    int connections = 0;

    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        struct sockaddr_in peer;
        struct tcp_info info;
        socklen_t peer_bytes = sizeof(peer), info_bytes = sizeof(info);

        if (0 == getpeername(fd, (struct sockaddr *) &peer, &peer_bytes) && AF_INET == peer.sin_family
            && 127 != ntohl(peer.sin_addr.s_addr) >> 24
            && 0 == getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_bytes)) {
            MT_CHECK(info_bytes >= offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received),
                     "this kernel does not count");
            bytes += info.tcpi_bytes_received;
            connections++;
        }
    }
    MT_CHECK(0 < connections, "no TCP connection");
    return bytes;
}

int main(int argc, char **argv)
{
    static char buffer[65536];

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(2 == mt_size && mt_remote(1 - mt_rank), "two ranks on two nodes, please");
    memset(buffer, 1, sizeof(buffer));
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        int n = (int) sizes[s];

        /* The first is for what happens once: connections, sessions. */
        if (0 == mt_rank) {
            MT_MPI(MPI_Send(buffer, n, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
            MT_MPI(MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (int i = 0; i < MESSAGES; i++) {
                MT_MPI(MPI_Send(buffer, n, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
            }
            MT_MPI(MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            continue;
        }
        MT_MPI(MPI_Recv(buffer, n, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        unsigned long long bytes = received();
        MT_MPI(MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD));
        for (int i = 0; i < MESSAGES; i++) {
            MT_MPI(MPI_Recv(buffer, n, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
        bytes = received() - bytes;
        MT_MPI(MPI_Send(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD));
        MT_CHECK(0 == bytes % MESSAGES, "%llu bytes for %d messages of %d bytes", bytes, MESSAGES, n);
        printf("size %d wire %llu\n", n, bytes / MESSAGES);
    }
    return mt_end();
}
