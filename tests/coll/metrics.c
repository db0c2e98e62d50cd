/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Prints what every rank counted in one MPI_Allgather of each algorithm:
 *
 *     metrics [block bytes] [leaders: auto, ring or rd]
 *     ALGORITHM RANK r_c s_c r_e s_e r_d s_d
 *
 * check_metrics.py compares this with the simulator and the table.
 */
#include "cryptag_mpit.h"

int main(int argc, char **argv)
{
    int rank, p;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p);
    mpit_start();
    const int m = argc > 1 ? atoi(argv[1]) : 64;
    const char *leaders = argc > 2 ? argv[2] : "rd";
    char *out = malloc((size_t) m), *in = malloc((size_t) m * (size_t) p);
    metrics_t *all = malloc((size_t) p * sizeof(*all));
    NEED(NULL != out && NULL != in && NULL != all);
    memset(out, rank, (size_t) m);
    mpit_set("leaders", 0 == strcmp(leaders, "ring") ? 1 : 0 == strcmp(leaders, "rd") ? 2 : 0);

    for (int a = 1; a < ALGORITHMS; a++) {
        metrics_t before, after;

        /* the first call also sets up: node map, segment, plan */
        mpit_set("allgather_algorithm", a);
        MPI_Allgather(out, m, MPI_BYTE, in, m, MPI_BYTE, MPI_COMM_WORLD);
        mpit_metrics(before);
        MPI_Allgather(out, m, MPI_BYTE, in, m, MPI_BYTE, MPI_COMM_WORLD);
        mpit_metrics(after);
        for (int i = 0; i < METRICS; i++) {
            after[i] -= before[i];
        }
        MPI_Gather(after, METRICS, MPI_UNSIGNED_LONG_LONG, all, METRICS, MPI_UNSIGNED_LONG_LONG, 0,
                   MPI_COMM_WORLD);
        for (int r = 0; 0 == rank && r < p; r++) {
            printf("%s %d", algorithm_name[a], r);
            for (int i = 0; i < METRICS; i++) {
                printf(" %llu", all[r][i]);
            }
            printf("\n");
        }
    }
    free(out);
    free(in);
    free(all);
    mpit_stop();
    MPI_Finalize();
    return 0;
}
