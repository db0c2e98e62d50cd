/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Non-blocking collectives count their tags down from -27 to -2^30, on each
 * communicator, and begin again.  Here the counter is set to where tags could collide
 * with others, in a host PML that compares 16 to 32 of their bits, and a few
 * hundred collectives run, during long messages that have not been received yet, and
 * short ones whose tags have the same lower bits.
 */
#include "ompi_config.h"

#include "mt.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/base/coll_tags.h"

enum { LONG = 200000, LONGS = 4, TWINS = 20, FEW = 210, MANY = 700, AT_A_TIME = 7 };

static MPI_Comm comm;

/* Counted on from here, alike on all ranks. */
static void start_at(long tag)
{
    ((ompi_communicator_t *) comm)->c_nbc_tag = (int32_t) tag;
}

static void run_collectives(int rounds)
{
    unsigned char *big = mt_alloc(LONG);
    for (int round = 0; round < rounds; round += AT_A_TIME) {
        MPI_Request req[AT_A_TIME + 1] = {[AT_A_TIME] = MPI_REQUEST_NULL};
        int sum[AT_A_TIME], in[AT_A_TIME], all[AT_A_TIME][64];
        for (int i = 0; i < AT_A_TIME; i++) {
            const int root = (round + i) % mt_size;
            in[i] = 1000 * mt_rank + round + i;
            sum[i] = root == mt_rank ? round + i : -1;
            MT_MPI(0 == i % 2 ? MPI_Ibcast(&sum[i], 1, MPI_INT, root, comm, &req[i])
                              : MPI_Iallgather(&in[i], 1, MPI_INT, all[i], 1, MPI_INT, comm, &req[i]));
        }
        if (0 == round % (10 * AT_A_TIME)) {
            memset(big, 0, LONG);
            if (round % mt_size == mt_rank) {
                mt_fill(big, LONG, mt_key(round, 0, 0, 0));
            }
            MT_MPI(MPI_Ibcast(big, LONG, MPI_BYTE, round % mt_size, comm, &req[AT_A_TIME]));
        }
        MT_MPI(MPI_Waitall(AT_A_TIME + 1, req, MPI_STATUSES_IGNORE));
        if (0 == round % (10 * AT_A_TIME)) {
            MT_SAME(big, LONG, mt_key(round, 0, 0, 0), "long Ibcast");
        }
        for (int i = 0; i < AT_A_TIME; i++) {
            MT_CHECK(0 != i % 2 || round + i == sum[i], "Ibcast %d brought %d", round + i, sum[i]);
            for (int rank = 0; rank < mt_size && 0 != i % 2; rank++) {
                MT_CHECK(1000 * rank + round + i == all[i][rank], "Iallgather %d brought %d", round + i, all[i][rank]);
            }
        }
    }
    free(big);
}

/* Tags of the application whose lower bits are those of the collectives; -1: none. */
static int twin(long start, int i)
{
    const long tag = (start - 10 * i) & 0xffffff;
    return tag < 1 << 23 ? (int) tag : -1;
}

static void around(long start, int rounds)
{
    const int right = (mt_rank + 1) % mt_size, left = (mt_rank + mt_size - 1) % mt_size;
    unsigned char *out = mt_alloc(LONGS * (size_t) LONG);
    MPI_Request req[LONGS + TWINS];
    int number[TWINS], got, count = 0;
    MPI_Status status;
    mt_buf_t buf;
    mt_buf_new(&buf, LONG);
    for (int i = 0; i < LONGS; i++, count++) {
        mt_fill(out + i * (size_t) LONG, LONG, mt_key((int) start, mt_rank, i, 0));
        MT_MPI(MPI_Isend(out + i * (size_t) LONG, LONG, MPI_BYTE, right, i, comm, &req[count]));
    }
    for (int i = 0; i < TWINS; i++) {
        number[i] = 7 * i + mt_rank;
        if (twin(start, i) > LONGS) {
            MT_MPI(MPI_Isend(&number[i], 1, MPI_INT, right, twin(start, i), comm, &req[count++]));
        }
    }
    start_at(start);
    run_collectives(rounds);
    for (int i = TWINS - 1; i >= 0; i--) {
        if (twin(start, i) > LONGS) {
            MT_MPI(MPI_Recv(&got, 1, MPI_INT, left, twin(start, i), comm, &status));
            MT_STATUS(&status, left, twin(start, i), sizeof(int));
            MT_CHECK(7 * i + left == got, "tag %d brought %d", twin(start, i), got);
        }
    }
    for (int i = 0; i < LONGS; i++) {
        mt_buf_poison(&buf);
        MT_MPI(MPI_Recv(buf.p, LONG, MPI_BYTE, left, i, comm, &status));
        MT_STATUS(&status, left, i, LONG);
        MT_BUF(&buf, LONG, mt_key((int) start, left, i, 0));
    }
    MT_MPI(MPI_Waitall(count, req, MPI_STATUSES_IGNORE));
    mt_buf_free(&buf);
    free(out);
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(mt_size <= 64, "at most 64 ranks");
    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    /* Long messages whose numbers are still small, in the middle of a host's 24 bits. */
    around(-(1 << 22) + 100, MANY);
    mt_group("the first messages");
    for (int bits = 16; bits <= 32; bits += 4) {
        const long all = 1L << (bits - 1);
        const long starts[] = {-all / 2, -all / 2 - all / 8, -all, -2 * all, -3 * all};
        for (int i = 0; i < 5; i++) {
            if (starts[i] > MCA_COLL_BASE_TAG_NONBLOCKING_END - 100 && starts[i] + 100 < MCA_COLL_BASE_TAG_NONBLOCKING_BASE) {
                around(starts[i] + 100, FEW);
            }
        }
        mt_group("%d bits", bits);
    }
    around((long) MCA_COLL_BASE_TAG_NONBLOCKING_END + 100, FEW);      /* and begins again */
    mt_group("the end");
    MT_MPI(MPI_Comm_free(&comm));
    return mt_end();
}
