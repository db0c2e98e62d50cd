/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The first messages to every process, while non-blocking collectives wait for their next rounds.  libfabric refuses
 * a send until it is connected, and mtl/ofi of Open MPI 5.0 then makes progress of all kinds inside of the send: it
 * starts those rounds, and they may be for the same process.
 */
#include "mt.h"

enum { COLLECTIVES = 6 };

int main(int argc, char **argv)
{
    MPI_Request collectives[COLLECTIVES], *in, *out;
    int *numbers, sum[COLLECTIVES], one = 1, n = 0;

    mt_start_alone(&argc, &argv, MPI_THREAD_MULTIPLE);
    in = malloc((size_t) mt_size * sizeof(*in));
    out = malloc((size_t) mt_size * sizeof(*out));
    numbers = malloc((size_t) mt_size * sizeof(*numbers));
    for (int from = 0; from < mt_size; from++) {
        MT_MPI(MPI_Irecv(&numbers[from], 1, MPI_INT, from, 1, MPI_COMM_WORLD, &in[from]));
    }
    for (; n < COLLECTIVES; n++) {
        MT_MPI(0 == n % 2 ? MPI_Ibarrier(MPI_COMM_WORLD, &collectives[n])
                          : MPI_Iallreduce(&one, &sum[n], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &collectives[n]));
    }
    /* Those of later rounds first. */
    for (int distance = mt_size; distance-- > 0;) {
        const int to = (mt_rank + distance) % mt_size;

        MT_MPI(MPI_Isend(&mt_rank, 1, MPI_INT, to, 1, MPI_COMM_WORLD, &out[to]));
    }
    MT_MPI(MPI_Waitall(mt_size, out, MPI_STATUSES_IGNORE));
    MT_MPI(MPI_Waitall(mt_size, in, MPI_STATUSES_IGNORE));
    MT_MPI(MPI_Waitall(COLLECTIVES, collectives, MPI_STATUSES_IGNORE));
    for (int i = 0; i < mt_size; i++) {
        MT_CHECK(i == numbers[i], "from %d: %d", i, numbers[i]);
    }
    for (int i = 1; i < COLLECTIVES; i += 2) {
        MT_CHECK(mt_size == sum[i], "sum %d of %d ranks", sum[i], mt_size);
    }
    free(in);
    free(out);
    free(numbers);
    return mt_end();
}
