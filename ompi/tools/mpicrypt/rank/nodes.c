/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which ranks share a node, according to MPI (MPI_COMM_TYPE_SHARED), so that any
 * mapping of ranks to nodes will do; and which ranks exchange messages.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rank.h"
#include "ompi/mca/common/cryptmpi/cryptmpi.h"
#include "ompi/tools/mpicrypt/speed/speed.h"

int mpicrypt_mpi_nodes(int *node)
{
    MPI_Comm shared;
    int leader = mpicrypt_mpi_rank, count = 0;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, mpicrypt_mpi_rank, MPI_INFO_NULL, &shared);
    MPI_Bcast(&leader, 1, MPI_INT, 0, shared);
    MPI_Comm_free(&shared);
    MPI_Allgather(&leader, 1, MPI_INT, node, 1, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < mpicrypt_mpi_size; ++rank) {
        /* A leader is the lowest rank of its node, hence numbered already. */
        node[rank] = node[rank] == rank ? count++ : node[node[rank]];
    }
    return count;
}

int mpicrypt_mpi_partner(size_t pairs, bool local, bool *lower)
{
    int *node = mpicrypt_mpi_memory((size_t) mpicrypt_mpi_size * sizeof(*node));
    int *place = mpicrypt_mpi_memory((size_t) mpicrypt_mpi_size * sizeof(*place));
    int on[2] = {0, 0}, partner = -1;

    mpicrypt_mpi_nodes(node);
    for (int rank = 0; rank < mpicrypt_mpi_size; ++rank) {
        place[rank] = node[rank] < 2 ? on[node[rank]]++ : -1;
    }
    if (local ? (size_t) on[0] < 2 * pairs : (size_t) on[0] < pairs || (size_t) on[1] < pairs) {
        mpicrypt_mpi_abort(MPICRYPT_MISSING, local
                           ? "%zu pairs within a node, but the first two nodes have %d and %d ranks"
                           : "%zu pairs between two nodes, but the first two have %d and %d ranks",
                           pairs, on[0], on[1]);
    }
    int mine = place[mpicrypt_mpi_rank], my_node = node[mpicrypt_mpi_rank];
    *lower = local ? 0 == mine % 2 : 0 == my_node;
    for (int rank = 0; rank < mpicrypt_mpi_size && mine >= 0; ++rank) {
        bool taken = local ? 0 == my_node && 0 == node[rank] && (size_t) mine < 2 * pairs && place[rank] == (mine ^ 1)
                           : node[rank] == 1 - my_node && (size_t) mine < pairs && place[rank] == mine;
        partner = taken ? rank : partner;
    }
    free(node);
    free(place);
    return partner;
}

/* ---- the verb nodes ---- */

enum { LINE = 16384 };

/* The first word of a file, or "unknown". */
static void word_of(const char *path, char *text, size_t bytes)
{
    FILE *in = fopen(path, "r");

    snprintf(text, bytes, "unknown");
    if (NULL != in) {
        char format[16];
        snprintf(format, sizeof(format), "%%%zus", bytes - 1);
        if (1 != fscanf(in, format, text)) {
            snprintf(text, bytes, "unknown");
        }
        fclose(in);
    }
}

static void describe(char *line, int node)
{
    char host[256] = "", boot[64], tcp[32];
    int *cpus, count = mpicrypt_cpus(&cpus);
    int used;

    gethostname(host, sizeof(host) - 1);
    word_of("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
    word_of("/proc/sys/net/ipv4/tcp_congestion_control", tcp, sizeof(tcp));
    used = snprintf(line, LINE, "@mpicrypt rank %d %d %s %s %s ", mpicrypt_mpi_rank, node, host, boot, tcp);
    for (int i = 0; i < count && used < LINE - 16; ++i) {
        used += snprintf(line + used, (size_t) (LINE - used), "%s%d", 0 == i ? "" : ",", cpus[i]);
    }
    free(cpus);
    if (mpicrypt_mpi_job.fabric) {
        mpicrypt_mpi_describe_fabric(line, LINE);
    }
}

/* For an encrypted job.  Messages have been sent, so that there is a provider. */
static void show_protection(void)
{
    const opal_aead_module_t *aead = opal_cryptproc_params.options.aead;
    const char *host = ompi_common_cryptmpi_host_name();
    char text[OMPI_COMMON_CRYPTMPI_PROTECTION], processor[128];
    int kernel = 0 == access("/proc/net/tls_stat", F_OK), all = 0;

    MPI_Reduce(&kernel, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    ompi_common_cryptmpi_protection(NULL, text);
    if (0 == mpicrypt_mpi_rank && '\0' != text[0]) {
        mpicrypt_processor(processor, sizeof(processor));
        printf("@mpicrypt seals %s %d %s\n@mpicrypt processor %s\n@mpicrypt provider %s\n",
               NULL == host ? "ob1" : host, all, text, processor, NULL == aead ? "none" : aead->version());
    }
}

void mpicrypt_mpi_show_nodes(void)
{
    int *node = mpicrypt_mpi_memory((size_t) mpicrypt_mpi_size * sizeof(*node));
    char *line = mpicrypt_mpi_memory(LINE), version[MPI_MAX_LIBRARY_VERSION_STRING];
    int bytes;

    mpicrypt_mpi_nodes(node);
    describe(line, node[mpicrypt_mpi_rank]);
    if (0 != mpicrypt_mpi_rank) {
        MPI_Send(line, LINE, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    } else {
        MPI_Get_library_version(version, &bytes);
        version[strcspn(version, "\n")] = '\0';
        printf("@mpicrypt library %s\n%s\n", version, line);
        for (int rank = 1; rank < mpicrypt_mpi_size; ++rank) {
            MPI_Recv(line, LINE, MPI_CHAR, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            puts(line);
        }
    }
    show_protection();
    free(line);
    free(node);
}
