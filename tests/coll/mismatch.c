/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Programs that are wrong: a rank means another length than the one it gets data from.  It is told so, whoever did nothing
 * wrong gets what is its own, and the calls behind it are right.  3 ranks a node; the algorithms are given by parameters.
 * In broadcasts it is a rank beside the one that receives for its node, and blocks travel alone on both sides, or on neither:
 * other mistakes may hang, or be met by a later call, as with Open MPI's own collectives.  mismatch unsealed: over btl/crypt,
 * where a short block between nodes may be wrong, too; all of that node are told, since one rank receives for them.
 */
#include "mt.h"

#include <stdlib.h>

enum { MOST = 1000000, RIGHT = -1 };

static unsigned char sent[MOST], got[MOST];

static void expect(int rc, int wanted, const char *what)
{
    int class;

    MT_MPI(MPI_Error_class(rc, &class));
    MT_CHECK(wanted == class, "%s: class %d, not %d", what, class, wanted);
}

/* From rank 0; `wrong` means `its` bytes. */
static void broadcast(int round, int bytes, int wrong, int its)
{
    const bool mine = wrong == mt_rank;
    int rc;

    mt_fill(sent, (size_t) bytes, mt_key(1, round, 0, 0));
    memcpy(got, sent, 0 == mt_rank ? (size_t) bytes : 0);
    rc = MPI_Bcast(got, mine ? its : bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    expect(rc, mine ? MPI_ERR_TRUNCATE : MPI_SUCCESS, "a broadcast");
    MT_CHECK(mine || 0 == memcmp(sent, got, (size_t) bytes), "broadcast %d", round);
}

/* Blocks of `bytes`, but one of `first` from rank 0 to `wrong`, which means `its`; of `wrong` 5 and short blocks its node is told. */
static void exchange(int round, int bytes, int wrong, int first, int its)
{
    const bool told = mt_rank == wrong || (5 == wrong && first < 4096 && mt_rank >= 3);
    int out[2][16] = {{0}}, in[2][16] = {{0}}, rc;

    for (int i = 0; i < mt_size; i++) {
        out[0][i] = 0 == mt_rank && i == wrong ? first : bytes;
        in[0][i] = 0 == i && mt_rank == wrong ? its : bytes;
        out[1][i] = in[1][i] = 10000 * i;
        mt_fill(sent + out[1][i], (size_t) out[0][i], mt_key(2, round, mt_rank, i));
    }
    memset(got, 0, sizeof(got));
    rc = MPI_Alltoallv(sent, out[0], out[1], MPI_BYTE, got, in[0], in[1], MPI_BYTE, MPI_COMM_WORLD);
    expect(rc, told ? MPI_ERR_TRUNCATE : MPI_SUCCESS, "an all-to-all");
    for (int i = 0; i < mt_size; i++) {
        if (!told || i >= 3 || (0 != i && mt_rank < 3)) {
            MT_SAME(got + in[1][i], (size_t) in[0][i], mt_key(2, round, i, mt_rank), "all-to-all");
        }
    }
}

int main(int argc, char **argv)
{
    static const int lengths[][2] = {{1000, 500}, {1000, 2000}, {400000, 100000}, {100000, 400000}};
    int round = 0;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(6 == mt_size, "six ranks");
    MT_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    broadcast(round++, MOST, RIGHT, 0);             /* all the shared memory that there will be */
    for (int wrong = 1; wrong <= 5; wrong += 4) {   /* beside the root; on the other node, not its first */
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            broadcast(round++, lengths[i][0], wrong, lengths[i][1]);
            broadcast(round++, 500000, RIGHT, 0);
        }
    }
    mt_group("broadcasts");

    exchange(round++, 40, RIGHT, 0, 0);
    exchange(round++, 40, 1, 100, 60);
    exchange(round++, 40, 2, 60, 100);
    exchange(round++, 40, RIGHT, 0, 0);
    exchange(round++, 9000, RIGHT, 0, 0);
    exchange(round++, 40, 1, 8000, 5000);           /* blocks that travel alone */
    exchange(round++, 40, 5, 8000, 5000);
    if (mt_flag("unsealed")) {
        exchange(round++, 40, 5, 60, 100);
        exchange(round++, 40, 5, 100, 60);
    }
    exchange(round++, 40, RIGHT, 0, 0);
    mt_group("all-to-alls");
    return mt_end();
}
