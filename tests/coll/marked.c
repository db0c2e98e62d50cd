/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A text that can be recognized on the network, short and long, by each algorithm of each
 * collective: backwards, as the launcher sends arguments in plaintext.  Prints whether rank 0
 * sent and sealed anything.
 *
 *     marked TEXT
 */
#include "cryptag.h"

static char *out, *in;

static void fill(const char *text, int bytes)
{
    const size_t last = strlen(text) - 1;

    for (size_t i = 0; i < (size_t) mt_size * (size_t) bytes; i++) {
        out[i] = text[last - i % (size_t) bytes % (last + 1)];    /* each block begins with it */
    }
}

static void gather(int bytes)
{
    MT_MPI(MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD));
}

static void broadcast(int bytes)
{
    memcpy(in, out, 0 == mt_rank ? (size_t) bytes : 0);
    MT_MPI(MPI_Bcast(in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD));
}

static void exchange(int bytes)
{
    MT_MPI(MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD));
}

static void each(const char *collective, void (*call)(int bytes), int bytes)
{
    const char *words[ALGORITHMS_MOST];
    const int count = cryptag_algorithms(collective, words);
    char parameter[64];

    snprintf(parameter, sizeof(parameter), "%s_algorithm", collective);
    for (int a = 0; a < count; a++) {
        cryptag_set(parameter, a);
        memset(in, 0, (size_t) mt_size * (size_t) bytes);
        call(bytes);
        MT_CHECK(0 == memcmp(in, out, (size_t) bytes), "%s=%d, %d bytes: the first block", parameter, a, bytes);
    }
}

int main(int argc, char **argv)
{
    static const int sizes[] = { 100, 3000, 70000 };
    metrics_t sealed;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    cryptag_start();
    MT_CHECK(2 == argc, "marked TEXT");
    out = malloc((size_t) mt_size * 70000);
    in = malloc((size_t) mt_size * 70000);
    MT_CHECK(NULL != out && NULL != in, "memory");
    for (int i = 0; i < 3; i++) {
        fill(argv[1], sizes[i]);
        each("allgather", gather, sizes[i]);
        each("bcast", broadcast, sizes[i]);
        each("alltoall", exchange, sizes[i]);
    }
    cryptag_metrics(sealed);
    if (0 == mt_rank) {
        printf("sent %s, sealed %s\n", sealed[1] > 0 ? "yes" : "no", sealed[3] > 0 ? "yes" : "no");
    }
    free(out);
    free(in);
    cryptag_stop();
    return mt_end();
}
