/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * All-gathers in which nobody has anything, where some ranks say so by no elements, which Open MPI itself ends, and
 * some by elements of no size: they return, and what follows is in step.  And communicators that are kept: what they
 * share leaves room in /dev/shm.
 *
 *     nothing [communicators=200]
 */
#include "cryptag.h"

#include <sys/statvfs.h>

static MPI_Datatype nothing;

static void gather_nothing(MPI_Comm comm, bool vector, bool by_size)
{
    int counts[64], zeros[64] = {0};
    const MPI_Datatype type = by_size ? nothing : MPI_INT;
    char byte;

    for (int i = 0; i < mt_size; i++) {
        counts[i] = by_size;
    }
    if (vector) {
        MT_MPI(MPI_Allgatherv(&byte, by_size, type, &byte, counts, zeros, type, comm));
    } else {
        MT_MPI(MPI_Allgather(&byte, by_size, type, &byte, by_size, type, comm));
    }
}

/* Rank 0 of the communicator is `first` of all. */
static void gather_something(MPI_Comm comm, int round, int first)
{
    unsigned char out[500], *in = malloc((size_t) mt_size * sizeof(out));

    MT_CHECK(NULL != in, "memory");
    mt_fill(out, sizeof(out), mt_key(round, mt_rank, 0, 0));
    MT_MPI(MPI_Allgather(out, sizeof(out), MPI_BYTE, in, sizeof(out), MPI_BYTE, comm));
    for (int k = 0; k < mt_size; k++) {
        MT_SAME(in + (size_t) k * sizeof(out), sizeof(out), mt_key(round, (first + k) % mt_size, 0, 0), "allgather");
    }
    free(in);
}

static void in_step(void)
{
    MPI_Comm comm;

    for (int algorithm = 1; algorithm < algorithms; algorithm++) {
        if (ALGORITHM_HOP == algorithm) {
            continue;
        }
        cryptag_set("allgather_algorithm", algorithm);
        for (int first = 0; first < 2; first++) {       /* is it the communicator's first call? */
            MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
            for (int round = first; round < 4; round++) {
                if (round > 0) {
                    gather_something(comm, round, 0);
                }
                gather_nothing(comm, round % 2, 0 == (mt_rank + round) % 3);
                gather_nothing(comm, round % 2, 0 == mt_rank);
            }
            gather_something(comm, 9, 0);
            MT_MPI(MPI_Comm_free(&comm));
        }
    }
}

static double free_share(void)
{
    struct statvfs device;

    MT_CHECK(0 == statvfs("/dev/shm", &device), "/dev/shm");
    return (double) device.f_bavail / (double) device.f_blocks;
}

static void kept(int count)
{
    MPI_Comm *comms = malloc((size_t) count * sizeof(*comms));
    unsigned char bytes[1000];
    double left;

    MT_CHECK(NULL != comms, "memory");
    cryptag_set("allgather_algorithm", 0);
    for (int i = 0; i < count; i++) {
        const int first = i % mt_size;                  /* so each leads its node's now and then */
        MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, (mt_rank + mt_size - first) % mt_size, &comms[i]));
        mt_fill(bytes, sizeof(bytes), mt_key(i, mt_rank, 0, 0));
        MT_MPI(MPI_Bcast(bytes, sizeof(bytes), MPI_BYTE, 0, comms[i]));
        MT_SAME(bytes, sizeof(bytes), mt_key(i, first, 0, 0), "bcast");
        gather_something(comms[i], i, first);
    }
    left = free_share();
    MT_CHECK(left > 0.45, "%d communicators have left %.2f of /dev/shm", count, left);
    for (int i = 0; i < count; i++) {
        MT_MPI(MPI_Comm_free(&comms[i]));
    }
    free(comms);
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(mt_size <= 64, "at most 64 ranks");
    cryptag_start();
    MT_MPI(MPI_Type_contiguous(0, MPI_INT, &nothing));
    MT_MPI(MPI_Type_commit(&nothing));
    in_step();
    kept((int) mt_arg("communicators", 200));
    MT_MPI(MPI_Type_free(&nothing));
    mt_group("nothing gathered, and many communicators kept");
    cryptag_stop();
    return mt_end();
}
