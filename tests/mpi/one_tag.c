/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Rank 0 sends with one tag to two processes, and the second receives first: the first waits until
 * the second has sent it a message.  Neither message may depend on the other one's receive.
 */
#include "mt.h"

enum { TAG = 7, TOLD = 8 };

static void take(int number, size_t n)
{
    mt_buf_t buf;
    MPI_Status status;

    mt_buf_new(&buf, n);
    MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &status));
    MT_STATUS(&status, 0, TAG, n);
    MT_BUF(&buf, n, mt_key(number, 0, 0, 0));
    mt_buf_free(&buf);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {1, 70000, 300000, 3000000};
    unsigned char *p[2];
    MPI_Request out[2];

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(mt_size > 2, "at least 3 ranks");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        size_t n = sizes[i];
        if (0 == mt_rank) {
            for (int k = 0; k < 2; k++) {
                p[k] = malloc(n);
                mt_fill(p[k], n, mt_key(1 + k, 0, 0, 0));
                MT_MPI(MPI_Isend(p[k], (int) n, MPI_BYTE, 1 + k, TAG, MPI_COMM_WORLD, &out[k]));
            }
            MT_MPI(MPI_Waitall(2, out, MPI_STATUSES_IGNORE));
            free(p[0]);
            free(p[1]);
        } else if (1 == mt_rank) {
            MT_MPI(MPI_Recv(NULL, 0, MPI_BYTE, 2, TOLD, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            take(1, n);
        } else if (2 == mt_rank) {
            take(2, n);
            MT_MPI(MPI_Send(NULL, 0, MPI_BYTE, 1, TOLD, MPI_COMM_WORLD));
        }
    }
    mt_group("two receivers of one tag, the second first");
    return mt_end();
}
