/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Prints what every rank counted in one MPI_Allgather of each algorithm:
 *
 *     metrics [bytes=64] MAP...
 *     map NODE,NODE... bytes m leaders rd
 *     ALGORITHM RANK r_c s_c r_e s_e r_d s_d
 *
 * check_metrics.py compares this with the simulator and the table.
 */
#include "cryptag.h"

/* From where on leaders, and all of Naive, take a ring: here all of a node have this much, or none. */
enum { RING_MIN = 65536 };

static void print_map(const char *text, int m)
{
    int nodes[MAP_RANKS], count = map_parse(text, nodes);

    printf("map ");
    for (int i = 0; i < count; i++) {
        printf("%s%d", i > 0 ? "," : "", nodes[i]);
    }
    printf(" bytes %d leaders %s\n", m, m < RING_MIN ? "rd" : "ring");
}

static void count_algorithms(MPI_Comm comm, int m)
{
    int rank, p;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &p);
    char *out = malloc((size_t) m), *in = malloc((size_t) m * (size_t) p);
    metrics_t *all = malloc((size_t) p * sizeof(*all));
    MT_CHECK(NULL != out && NULL != in && NULL != all, "memory");
    memset(out, rank, (size_t) m);
    for (int a = 1; a < algorithms; a++) {
        if (ALGORITHM_HOP == a) {
            continue;
        }
        metrics_t added;

        /* the first call also sets up: node map, segment, plan */
        cryptag_set("allgather_algorithm", a);
        MT_MPI(MPI_Allgather(out, m, MPI_BYTE, in, m, MPI_BYTE, comm));
        CRYPTAG_COUNT(added, MT_MPI(MPI_Allgather(out, m, MPI_BYTE, in, m, MPI_BYTE, comm)));
        MT_MPI(MPI_Gather(added, METRICS, MPI_UNSIGNED_LONG_LONG, all, METRICS, MPI_UNSIGNED_LONG_LONG, 0, comm));
        for (int r = 0; 0 == rank && r < p; r++) {
            printf("%s %d", algorithm_name[a], r);
            for (int i = 0; i < METRICS; i++) {
                printf(" %llu", all[r][i]);
            }
            printf("\n");
        }
    }
    cryptag_set("allgather_algorithm", 0);
    free(out);
    free(in);
    free(all);
}

int main(int argc, char **argv)
{
    const char *maps[32];

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    cryptag_start();
    const int m = (int) mt_arg("bytes", 64), count = map_arguments(argc, argv, maps, 32);

    for (int i = 0; i < count; i++) {
        MPI_Comm comm = map_comm(maps[i]);

        if (MPI_COMM_NULL != comm) {
            int rank;

            MPI_Comm_rank(comm, &rank);
            if (0 == rank) {
                print_map(maps[i], m);
            }
            count_algorithms(comm, m);
            fflush(stdout);
            MT_MPI(MPI_Comm_free(&comm));
        }
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    cryptag_stop();
    return mt_end();
}
