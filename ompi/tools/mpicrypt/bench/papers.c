/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Figures that the papers print about what `mpicrypt bench` measures, as time
 * over that of their plain MPI: 1 + the overhead that they give.  Points that
 * they only draw are not here.
 */
#include <string.h>

#include "html.h"

#define CRYPTMPI "CryptMPI (arXiv:2010.06471), Noleland, 100 Gb/s InfiniBand"
#define BRIDGES "CryptMPI, PSC Bridges, 100 Gb/s Omni-Path"
#define ETHERNET "Naser et al. (IEEE CLUSTER 2019), 10 Gb/s Ethernet, AES-256"
#define INFINIBAND "Naser et al. (IEEE CLUSTER 2019), 40 Gb/s InfiniBand, AES-256"
#define ALLGATHER "Encrypted All-gather, Table III: Noleland, 128 ranks on 8 nodes, block order"

static const mpicrypt_paper_t figures[] = {
    {"pingpong", "paper: naive, CryptMPI", CRYPTMPI, 65536, 3.021},
    {"pingpong", "paper: naive, CryptMPI", CRYPTMPI, 4194304, 5.124},
    {"pingpong", "paper: CryptMPI", CRYPTMPI, 65536, 2.874},
    {"pingpong", "paper: CryptMPI", CRYPTMPI, 4194304, 1.133},
    {"pingpong", "paper: naive, Ethernet", ETHERNET ", BoringSSL", 256, 1.059},
    {"pingpong", "paper: naive, Ethernet", ETHERNET ", BoringSSL", 2097152, 1.783},
    {"pingpong", "paper: naive, InfiniBand", INFINIBAND ", BoringSSL", 256, 1.8093},
    {"pingpong", "paper: naive, InfiniBand", INFINIBAND ", BoringSSL", 2097152, 3.152},
    {"pairs", "paper: naive, 2 pairs", CRYPTMPI, 4194304, 1.3487},
    {"pairs", "paper: CryptMPI, 2 pairs", CRYPTMPI, 4194304, 1.0031},
    {"pairs", "paper: naive, 2 pairs, Bridges", BRIDGES, 4194304, 2.7848},
    {"pairs", "paper: CryptMPI, 2 pairs, Bridges", BRIDGES, 4194304, 1.0503},
    {"stencil", "paper: naive, 2D 60%", BRIDGES ", 784 ranks on 112 nodes", 2097152, 4.31},
    {"stencil", "paper: CryptMPI, 2D 60%", BRIDGES ", 784 ranks on 112 nodes", 2097152, 3.06},
    {"stencil", "paper: naive, 2D 80%", BRIDGES ", 784 ranks on 112 nodes", 262144, 5.50},
    {"stencil", "paper: CryptMPI, 2D 80%", BRIDGES ", 784 ranks on 112 nodes", 262144, 4.84},
    {"allgather", "paper: naive", ALLGATHER, 1, 3.932},
    {"allgather", "paper: naive", ALLGATHER, 64, 3.6533},
    {"allgather", "paper: naive", ALLGATHER, 1024, 2.1157},
    {"allgather", "paper: naive", ALLGATHER, 4096, 1.7593},
    {"allgather", "paper: naive", ALLGATHER, 16384, 1.5935},
    {"allgather", "paper: naive", ALLGATHER, 32768, 1.8722},
    {"allgather", "paper: naive", ALLGATHER, 262144, 2.3651},
    {"allgather", "paper: naive", ALLGATHER, 2097152, 2.375},
    {"allgather", "paper: best", ALLGATHER, 1, 1.3149},
    {"allgather", "paper: best", ALLGATHER, 64, 1.3914},
    {"allgather", "paper: best", ALLGATHER, 1024, 1.0991},
    {"allgather", "paper: best", ALLGATHER, 4096, 0.8398},
    {"allgather", "paper: best", ALLGATHER, 16384, 0.5411},
    {"allgather", "paper: best", ALLGATHER, 32768, 0.6646},
    {"allgather", "paper: best", ALLGATHER, 262144, 0.8758},
    {"allgather", "paper: best", ALLGATHER, 2097152, 0.8603},
    /* Tables II and III there: 37.15 over 31.15 us, and so on. */
    {"bcast", "paper: BoringSSL", ETHERNET ", 64 ranks on 8 nodes", 1, 1.193},
    {"bcast", "paper: BoringSSL", ETHERNET ", 64 ranks on 8 nodes", 16384, 1.062},
    {"bcast", "paper: BoringSSL", ETHERNET ", 64 ranks on 8 nodes", 4194304, 1.448},
    {"alltoall", "paper: BoringSSL", ETHERNET ", 64 ranks on 8 nodes", 1, 2.071},
    {"alltoall", "paper: BoringSSL", ETHERNET ", 64 ranks on 8 nodes", 16384, 1.172},
    {"alltoall", "paper: BoringSSL", ETHERNET ", 64 ranks on 8 nodes", 4194304, 1.124},
    {NULL, NULL, NULL, 0, 0}
};

const mpicrypt_paper_t *mpicrypt_paper_next(const mpicrypt_paper_t *last, const char *pattern)
{
    for (const mpicrypt_paper_t *next = NULL == last ? figures : last + 1; NULL != next->pattern; ++next) {
        if (0 == strcmp(next->pattern, pattern)) {
            return next;
        }
    }
    return NULL;
}
