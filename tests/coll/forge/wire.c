/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Counts the bytes that are handed to the host PML, below pml/crypt and below
 * coll/cryptag, for ranks of other nodes:
 *
 *     wire [bytes=1000] MAP...
 *     map NODE,NODE... bytes m leaders rd
 *     p2p RANK BYTES                  one message to every rank of another node
 *     ALGORITHM RANK BYTES            one MPI_Allgather
 *     bcast-ALGORITHM RANK BYTES, alltoall-ALGORITHM RANK BYTES
 *
 * check_wire.py compares this with the simulator: whatever was sealed twice is
 * longer.
 */
#include "ompi_config.h"

#include "mt.h"
#include "cryptag.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/common/cryptmpi/cryptmpi.h"
#include "ompi/mca/pml/pml.h"

static mca_pml_base_module_t below;     /* the host as it was */
static unsigned long long counted;

static void count_it(size_t count, ompi_datatype_t *type, int peer, ompi_communicator_t *comm)
{
    if (!ompi_common_cryptmpi_is_local(ompi_comm_peer_lookup(comm, peer))) {
        counted += ompi_common_cryptmpi_bytes(type, count);
    }
}

static int counting_send(const void *buffer, size_t count, ompi_datatype_t *type, int peer, int tag,
                         mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    count_it(count, type, peer, comm);
    return below.pml_send(buffer, count, type, peer, tag, mode, comm);
}

static int counting_isend(const void *buffer, size_t count, ompi_datatype_t *type, int peer, int tag,
                          mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    count_it(count, type, peer, comm);
    return below.pml_isend(buffer, count, type, peer, tag, mode, comm, request);
}

/* In place, so that pml/crypt, whose table this is, sends through us as well. */
static void take_over(void)
{
    mca_pml_base_module_t *host = (mca_pml_base_module_t *) ompi_common_cryptmpi_host();

    MT_CHECK(NULL != host, "pml/crypt is not in use");
    below = *host;
    host->pml_send = counting_send;
    host->pml_isend = counting_isend;
}

/* ---- what is counted ---- */

static MPI_Comm comm;
static int rank, p, m;
static char *out, *in;

static void allgather(void) { MT_MPI(MPI_Allgather(out, m, MPI_BYTE, in, m, MPI_BYTE, comm)); }
static void bcast(void) { MT_MPI(MPI_Bcast(out, m, MPI_BYTE, 0, comm)); }
static void alltoall(void) { MT_MPI(MPI_Alltoall(out, m, MPI_BYTE, in, m, MPI_BYTE, comm)); }

/* From each rank to each of another node. */
static void messages(void)
{
    MPI_Request *requests = calloc((size_t) p, sizeof(*requests));
    int posted = 0;

    MT_CHECK(NULL != requests, "memory");
    for (int i = 0; i < p; i++) {
        if (!ompi_common_cryptmpi_is_local(ompi_comm_peer_lookup(comm, i))) {
            MT_MPI(MPI_Irecv(in + (size_t) i * (size_t) m, m, MPI_BYTE, i, 7, comm, &requests[posted++]));
        }
    }
    for (int i = 0; i < p; i++) {
        if (!ompi_common_cryptmpi_is_local(ompi_comm_peer_lookup(comm, i))) {
            MT_MPI(MPI_Send(out, m, MPI_BYTE, i, 7, comm));
        }
    }
    MT_MPI(MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE));
    free(requests);
}

/* The first call also sets up, and is not counted. */
static void count(const char *prefix, const char *name, void (*call)(void))
{
    unsigned long long *all = malloc((size_t) p * sizeof(*all)), mine;

    MT_CHECK(NULL != all, "memory");
    call();
    counted = 0;
    call();
    mine = counted;
    MT_MPI(MPI_Gather(&mine, 1, MPI_UNSIGNED_LONG_LONG, all, 1, MPI_UNSIGNED_LONG_LONG, 0, comm));
    for (int i = 0; 0 == rank && i < p; i++) {
        printf("%s%s %d %llu\n", prefix, name, i, all[i]);
    }
    free(all);
}

static void count_map(const char *map)
{
    int nodes[MAP_RANKS], ranks = map_parse(map, nodes);

    for (int i = 0; 0 == rank && i < ranks; i++) {
        printf("%s%d", 0 == i ? "map " : ",", nodes[i]);
    }
    if (0 == rank) {
        printf(" bytes %d leaders rd\n", m);
    }
    count("", "p2p", messages);
    for (int a = 1; a < algorithms; a++) {
        if (ALGORITHM_HOP == a) {
            continue;
        }
        cryptag_set("allgather_algorithm", a);
        count("", algorithm_name[a], allgather);
    }
    cryptag_set("allgather_algorithm", 0);
    for (int a = 2; a < 4; a++) {
        cryptag_set("bcast_algorithm", a);
        count("bcast-", 2 == a ? "binomial" : "chain", bcast);
    }
    cryptag_set("bcast_algorithm", 0);
    for (int a = 2; a <= 4; a += 2) {
        cryptag_set("alltoall_algorithm", a);
        count("alltoall-", 2 == a ? "node" : "rows", alltoall);
    }
    cryptag_set("alltoall_algorithm", 0);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *maps[32];

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    cryptag_start();
    m = (int) mt_arg("bytes", 1000);
    take_over();
    for (int i = 0, maps_count = map_arguments(argc, argv, maps, 32); i < maps_count; i++) {
        comm = map_comm(maps[i]);
        if (MPI_COMM_NULL != comm) {
            MPI_Comm_rank(comm, &rank);
            MPI_Comm_size(comm, &p);
            out = calloc((size_t) p, (size_t) m);
            in = calloc((size_t) p, (size_t) m);
            MT_CHECK(NULL != out && NULL != in, "memory");
            count_map(maps[i]);
            free(out);
            free(in);
            MT_MPI(MPI_Comm_free(&comm));
        }
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    cryptag_stop();
    return mt_end();
}
