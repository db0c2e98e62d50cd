/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI_Allgather and MPI_Allgatherv, every algorithm: every byte of every block,
 * in place, strided, uneven and empty blocks, gaps between blocks, on
 * communicators with the node maps of the arguments.
 *
 *     allgather [largest=BYTES] [noshm=0] MAP...
 */
#include "cryptag.h"

static void contiguous(MPI_Comm comm, size_t m, bool in_place, int round)
{
    mt_buf_t out, in;
    int p, rank;

    MPI_Comm_size(comm, &p);
    MPI_Comm_rank(comm, &rank);
    mt_buf_new(&out, m);
    mt_buf_new(&in, (size_t) p * m);
    mt_fill(out.p, m, mt_key(round, rank, 0, 0));
    if (in_place) {
        memcpy(in.p + (size_t) rank * m, out.p, m);
    }
    MT_MPI(MPI_Allgather(in_place ? MPI_IN_PLACE : out.p, (int) m, MPI_BYTE, in.p, (int) m, MPI_BYTE, comm));
    for (int i = 0; i < p; i++) {
        MT_SAME(in.p + (size_t) i * m, m, mt_key(round, i, 0, 0), "allgather");
    }
    MT_BUF(&out, m, mt_key(round, rank, 0, 0));
    MT_CHECK(0 == m || in.p[(size_t) p * m] == in.p[-1], "the byte behind the buffer was written");
    mt_buf_free(&out);
    mt_buf_free(&in);
}

/* Every other int on one side or on both; the gaps must stay as they are. */
static void strided(MPI_Comm comm, int ints, bool strided_send, bool strided_recv, bool in_place, int round)
{
    MPI_Datatype vector, spaced;
    int p, rank;

    MPI_Comm_size(comm, &p);
    MPI_Comm_rank(comm, &rank);
    MT_MPI(MPI_Type_vector(ints, 1, 2, MPI_INT, &vector));
    MT_MPI(MPI_Type_create_resized(vector, 0, (MPI_Aint) (2 * (size_t) ints * sizeof(int)), &spaced));
    MT_MPI(MPI_Type_commit(&spaced));
    const size_t step_out = strided_send ? 2 : 1, step_in = strided_recv ? 2 : 1, n = (size_t) ints;
    int *out = mt_alloc(n * step_out * sizeof(int)), *in = mt_alloc((size_t) p * n * step_in * sizeof(int));
    MT_CHECK(NULL != out && NULL != in, "memory");
    for (size_t i = 0; i < n; i++) {
        out[i * step_out] = rank * 100000 + (int) i * 7 + round;
    }
    memset(in, 0x77, (size_t) p * n * step_in * sizeof(int));
    for (size_t i = 0; in_place && i < n; i++) {
        in[((size_t) rank * n + i) * step_in] = out[i * step_out];
    }
    MT_MPI(MPI_Allgather(in_place ? MPI_IN_PLACE : out, strided_send ? 1 : ints, strided_send ? spaced : MPI_INT, in,
                         strided_recv ? 1 : ints, strided_recv ? spaced : MPI_INT, comm));
    for (int r = 0; r < p; r++) {
        for (size_t i = 0; i < n; i++) {
            const int *at = &in[((size_t) r * n + i) * step_in];

            MT_CHECK(r * 100000 + (int) i * 7 + round == at[0], "int %zu of block %d is wrong", i, r);
            MT_CHECK(1 == step_in || 0x77777777 == at[1], "the gap after int %zu of block %d was written", i, r);
        }
    }
    free(out);
    free(in);
    MPI_Type_free(&spaced);
    MPI_Type_free(&vector);
}

/* Blocks of different lengths, some empty; `gap` bytes between them, in
 * reverse order if asked. */
static void uneven(MPI_Comm comm, size_t m, int gap, bool reverse, bool in_place, int round)
{
    int p, rank, place = 0;

    MPI_Comm_size(comm, &p);
    MPI_Comm_rank(comm, &rank);
    int *counts = malloc((size_t) p * sizeof(int)), *places = malloc((size_t) p * sizeof(int));
    MT_CHECK(NULL != counts && NULL != places, "memory");
    for (int i = 0; i < p; i++) {
        counts[i] = 0 == (i + round) % 4 ? 0 : (int) (m * (size_t) (1 + i % 3) / 2) + i;
    }
    for (int k = 0; k < p; k++) {
        int i = reverse ? p - 1 - k : k;

        places[i] = place;
        place += counts[i] + gap;
    }
    uint8_t *in = mt_alloc((size_t) place + 1), *out = mt_alloc((size_t) counts[rank] + 1);
    MT_CHECK(NULL != in && NULL != out, "memory");
    memset(in, 0xee, (size_t) place + 1);
    mt_fill(out, (size_t) counts[rank], mt_key(round, rank, 1, 0));
    if (in_place) {
        memcpy(in + places[rank], out, (size_t) counts[rank]);
    }
    MT_MPI(MPI_Allgatherv(in_place ? MPI_IN_PLACE : out, counts[rank], MPI_BYTE, in, counts, places, MPI_BYTE, comm));
    for (int i = 0; i < p; i++) {
        MT_SAME(in + places[i], (size_t) counts[i], mt_key(round, i, 1, 0), "allgatherv");
        for (int k = 0; k < gap; k++) {
            MT_CHECK(0xee == in[places[i] + counts[i] + k], "the gap after block %d was written", i);
        }
    }
    free(in);
    free(out);
    free(counts);
    free(places);
}

static void all_cases(MPI_Comm comm, size_t largest, int round)
{
    static const size_t sizes[] = { 0, 1, 3, 8, 100, 1000, 4096, 16384, 70000, 262144, 1048576 };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && sizes[i] <= largest; i++) {
        contiguous(comm, sizes[i], false, round);
        contiguous(comm, sizes[i], true, round + 1);
        uneven(comm, sizes[i], 0, false, false, round);
        uneven(comm, sizes[i], 0, false, true, round + 1);
        uneven(comm, sizes[i], 3, true, false, round + 2);
        uneven(comm, sizes[i], 5, false, true, round + 3);
    }
    for (int ints = 1; ints < 3000 && (size_t) ints * sizeof(int) <= largest; ints = ints * 9 + 1) {
        strided(comm, ints, true, true, false, round);
        strided(comm, ints, true, false, false, round);
        strided(comm, ints, false, true, false, round);
        strided(comm, ints, false, true, true, round);
    }
}

static int class_of(int rc)
{
    int class = MPI_SUCCESS;

    if (MPI_SUCCESS != rc) {
        MT_MPI(MPI_Error_class(rc, &class));
    }
    return class;
}

/* A block that is shorter, or longer, where it comes from than where it goes is an error,
 * nothing behind it is sent, and nobody waits for whoever says so. */
static void unequal(MPI_Comm comm)
{
    int p, rank, got;

    MPI_Comm_size(comm, &p);
    MPI_Comm_rank(comm, &rank);
    const size_t room = 4 * (size_t) p;
    int out[4] = { 0x5ec, 0x5ec, 0x5ec, 0x5ec }, *in = calloc(room, sizeof(int));
    MT_CHECK(NULL != in, "memory");
    MT_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    for (int sent = 1; sent < 4; sent += 2) {           /* of none, Open MPI asks nobody */
        got = class_of(MPI_Allgather(out, sent, MPI_INT, in, 2, MPI_INT, comm));
        MT_CHECK(MPI_ERR_TRUNCATE == got, "%d ints, to be 2: class %d", sent, got);
    }
    memset(in, 0, room * sizeof(int));
    got = class_of(MPI_Allgather(out, 0 == rank ? 1 : 2, MPI_INT, in, 2, MPI_INT, comm));
    MT_CHECK((0 == rank ? MPI_ERR_TRUNCATE : MPI_SUCCESS) == got, "one rank's block is too short: class %d", got);
    MT_CHECK(0 == in[0] && 0 == in[1] && (0 == rank || 1 == p || (0x5ec == in[2 * rank] && 0x5ec == in[2 * rank + 1])),
             "one rank's block is too short: %x %x", (unsigned) in[0], (unsigned) in[1]);
    MT_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL));
    free(in);
}

/* Is it coll/cryptag's, whatever rules say?  Open MPI's own may still use its broadcast, and has what needs shared memory
 * where there is none (noshm) and nothing to seal. */
static bool ours(int a)
{
    const bool needs_shm = a >= ALGORITHM_HS1 && a <= ALGORITHM_HS3;

    return ALGORITHM_HOP != a && (mt_sealed() || (0 != a && !(needs_shm && 0 != mt_arg("noshm", 0))));
}

/* Something must have been sent, and but over btl/crypt sealed and opened, or nothing was tested. */
static void check_sealed(MPI_Comm comm, const metrics_t added, int a)
{
    int did[3] = { added[2] > 0, added[4] > 0, added[0] > 0 };

    MT_MPI(MPI_Allreduce(MPI_IN_PLACE, did, 3, MPI_INT, MPI_MAX, comm));
    MT_CHECK(!ours(a) || did[2], "%s sent nothing", algorithm_name[a]);
    MT_CHECK(mt_sealed() ? !ours(a) || (did[0] && did[1]) : !did[0] && !did[1], "%s: sealed %d, opened %d",
             algorithm_name[a], did[0], did[1]);
}

int main(int argc, char **argv)
{
    const char *maps[32];

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    cryptag_start();
    const size_t largest = (size_t) mt_arg("largest", 16384);
    const int count = map_arguments(argc, argv, maps, 32);

    for (int i = 0; i < count; i++) {
        MPI_Comm comm = map_comm(maps[i]);

        for (int a = 0; a < algorithms && MPI_COMM_NULL != comm; a++) {
            metrics_t added;

            cryptag_set("allgather_algorithm", a);
            CRYPTAG_COUNT(added, all_cases(comm, largest, 10 * i + a));
            if (ours(a)) {
                unequal(comm);
            }
            check_sealed(comm, added, a);
        }
        cryptag_set("allgather_algorithm", 0);
        if (MPI_COMM_NULL != comm) {
            MT_MPI(MPI_Comm_free(&comm));
        }
        mt_group("%s, up to %zu bytes", maps[i], largest);
    }
    cryptag_stop();
    return mt_end();
}
