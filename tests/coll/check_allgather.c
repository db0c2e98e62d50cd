/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI_Allgather and MPI_Allgatherv through coll/cryptag, every algorithm:
 * every byte of every block, in place, strided, uneven and empty blocks, gaps
 * between blocks, sub-communicators, communicators made and freed.
 *
 *     check_allgather [largest block, bytes] [communicators made and freed]
 */
#include "cryptag_mpit.h"

#include <stdint.h>

static int failures;

#define CHECK(condition, ...)                                       \
    do {                                                            \
        if (!(condition) && failures++ < 10) {                      \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);         \
            fprintf(stderr, __VA_ARGS__);                           \
            fprintf(stderr, "\n");                                  \
        }                                                           \
    } while (0)

/* Byte i of what `rank` contributes in round `round`. */
static uint8_t byte_of(int rank, size_t i, int round)
{
    return (uint8_t) ((size_t) rank * 37 + i * 11 + (i >> 8) * 5 + (size_t) round * 101 + 1);
}

static void fill(uint8_t *block, int rank, size_t bytes, int round)
{
    for (size_t i = 0; i < bytes; i++) {
        block[i] = byte_of(rank, i, round);
    }
}

static size_t wrong_bytes(const uint8_t *block, int rank, size_t bytes, int round)
{
    size_t wrong = 0;

    for (size_t i = 0; i < bytes; i++) {
        wrong += block[i] != byte_of(rank, i, round);
    }
    return wrong;
}

static void contiguous(MPI_Comm comm, size_t m, int in_place, int round)
{
    int p, rank;

    MPI_Comm_size(comm, &p);
    MPI_Comm_rank(comm, &rank);
    uint8_t *out = malloc(m + 1), *in = malloc((size_t) p * m + 1);
    NEED(NULL != out && NULL != in);
    memset(in, 0xee, (size_t) p * m + 1);
    fill(out, rank, m, round);
    if (in_place) {
        memcpy(in + (size_t) rank * m, out, m);
    }
    MPI_Allgather(in_place ? MPI_IN_PLACE : out, (int) m, MPI_BYTE, in, (int) m, MPI_BYTE, comm);
    for (int i = 0; i < p; i++) {
        size_t wrong = wrong_bytes(in + (size_t) i * m, i, m, round);
        CHECK(0 == wrong, "rank %d: %zu of %zu bytes of block %d are wrong (in place: %d)", rank, wrong, m, i,
              in_place);
    }
    CHECK(0xee == in[(size_t) p * m], "rank %d: a byte behind the buffer was written", rank);
    CHECK(0 == wrong_bytes(out, rank, m, round), "rank %d: the send buffer was changed", rank);
    free(out);
    free(in);
}

/* Every other int on one side or on both; the gaps must stay as they are. */
static void strided(MPI_Comm comm, int ints, int strided_send, int strided_recv, int in_place, int round)
{
    MPI_Datatype vector, spaced;
    int p, rank;

    MPI_Comm_size(comm, &p);
    MPI_Comm_rank(comm, &rank);
    MPI_Type_vector(ints, 1, 2, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, (MPI_Aint) (2 * (size_t) ints * sizeof(int)), &spaced);
    MPI_Type_commit(&spaced);
    const size_t step_out = strided_send ? 2 : 1, step_in = strided_recv ? 2 : 1, n = (size_t) ints;
    int *out = malloc(n * step_out * sizeof(int)), *in = malloc((size_t) p * n * step_in * sizeof(int));
    NEED(NULL != out && NULL != in);
    for (size_t i = 0; i < n; i++) {
        out[i * step_out] = rank * 100000 + (int) i * 7 + round;
    }
    memset(in, 0x77, (size_t) p * n * step_in * sizeof(int));
    for (size_t i = 0; in_place && i < n; i++) {
        in[((size_t) rank * n + i) * step_in] = out[i * step_out];
    }
    MPI_Allgather(in_place ? MPI_IN_PLACE : out, strided_send ? 1 : ints, strided_send ? spaced : MPI_INT, in,
                  strided_recv ? 1 : ints, strided_recv ? spaced : MPI_INT, comm);
    for (int r = 0; r < p; r++) {
        for (size_t i = 0; i < n; i++) {
            const int *at = &in[((size_t) r * n + i) * step_in];
            CHECK(r * 100000 + (int) i * 7 + round == at[0], "rank %d: int %zu of block %d is wrong", rank, i, r);
            CHECK(1 == step_in || 0x77777777 == at[1], "rank %d: the gap after int %zu of block %d was written",
                  rank, i, r);
        }
    }
    free(out);
    free(in);
    MPI_Type_free(&spaced);
    MPI_Type_free(&vector);
}

/* Blocks of different lengths, some empty; `gap` bytes between them, in
 * reverse order if asked. */
static void uneven(MPI_Comm comm, size_t m, int gap, int reverse, int in_place, int round)
{
    int p, rank, place = 0;

    MPI_Comm_size(comm, &p);
    MPI_Comm_rank(comm, &rank);
    int *counts = malloc((size_t) p * sizeof(int)), *places = malloc((size_t) p * sizeof(int));
    NEED(NULL != counts && NULL != places);
    for (int i = 0; i < p; i++) {
        counts[i] = 0 == (i + round) % 4 ? 0 : (int) (m * (size_t) (1 + i % 3) / 2) + i;
    }
    for (int k = 0; k < p; k++) {
        int i = reverse ? p - 1 - k : k;
        places[i] = place;
        place += counts[i] + gap;
    }
    uint8_t *in = malloc((size_t) place + 1), *out = malloc((size_t) counts[rank] + 1);
    NEED(NULL != in && NULL != out);
    memset(in, 0xee, (size_t) place + 1);
    fill(out, rank, (size_t) counts[rank], round);
    if (in_place) {
        memcpy(in + places[rank], out, (size_t) counts[rank]);
    }
    MPI_Allgatherv(in_place ? MPI_IN_PLACE : out, counts[rank], MPI_BYTE, in, counts, places, MPI_BYTE, comm);
    for (int i = 0; i < p; i++) {
        size_t wrong = wrong_bytes(in + places[i], i, (size_t) counts[i], round);
        CHECK(0 == wrong, "rank %d: allgatherv, %zu of %d bytes of block %d are wrong", rank, wrong, counts[i], i);
        for (int k = 0; k < gap; k++) {
            CHECK(0xee == in[places[i] + counts[i] + k], "rank %d: allgatherv wrote into the gap after block %d",
                  rank, i);
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
        contiguous(comm, sizes[i], 0, round);
        contiguous(comm, sizes[i], 1, round + 1);
        uneven(comm, sizes[i], 0, 0, 0, round);
        uneven(comm, sizes[i], 0, 0, 1, round + 1);
        uneven(comm, sizes[i], 3, 1, 0, round + 2);
        uneven(comm, sizes[i], 5, 0, 1, round + 3);
    }
    for (int ints = 1; ints < 3000 && (size_t) ints * sizeof(int) <= largest; ints = ints * 9 + 1) {
        strided(comm, ints, 1, 1, 0, round);
        strided(comm, ints, 1, 0, 0, round);
        strided(comm, ints, 0, 1, 0, round);
        strided(comm, ints, 0, 1, 1, round);
    }
}

int main(int argc, char **argv)
{
    int rank, p, sum;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p);
    mpit_start();
    const size_t largest = argc > 1 ? strtoul(argv[1], NULL, 10) : 16384;
    const int communicators = argc > 2 ? atoi(argv[2]) : 10;

    for (int a = 0; a < ALGORITHMS; a++) {
        metrics_t before, after;
        MPI_Comm part, turned;

        mpit_set("allgather_algorithm", a);
        mpit_metrics(before);
        all_cases(MPI_COMM_WORLD, largest, a);

        /* every second rank, and all in reverse order */
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
        all_cases(part, largest < 4096 ? largest : 4096, a + 40);
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
        all_cases(turned, largest < 4096 ? largest : 4096, a + 80);
        MPI_Comm_free(&part);
        MPI_Comm_free(&turned);
        mpit_metrics(after);
        sum = after[2] > before[2] && after[4] > before[4] ? 1 : 0;
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum > 0, "%s sealed nothing or opened nothing at every rank", algorithm_name[a]);
        MPI_Allreduce(&failures, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (0 == rank) {
            printf("allgather %-7s p = %d: %s\n", algorithm_name[a], p, 0 == sum ? "right" : "WRONG");
        }
    }

    for (int i = 0; i < communicators; i++) {
        MPI_Comm copy;

        mpit_set("allgather_algorithm", 1 + i % (ALGORITHMS - 1));
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        contiguous(copy, 64, 0, i);
        MPI_Comm_free(&copy);
    }
    MPI_Allreduce(&failures, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("%d communicators made and freed: %s\n", communicators, 0 == sum ? "right" : "WRONG");
    }
    mpit_stop();
    MPI_Finalize();
    return 0 == sum ? 0 : 1;
}
