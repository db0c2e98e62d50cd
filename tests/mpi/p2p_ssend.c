/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A synchronous send is complete only when its receive has started.  Rank 0
 * sends; its requests must stay incomplete until the partner is told, by an
 * ordinary message, to receive: so no clock decides.
 */
#include "mt.h"

enum { COUNT = 6 };

static int progress_and_test(MPI_Request *req)
{
    int flag = 0;
    for (int i = 0; i < 2000 && !flag; i++) {
        MT_MPI(MPI_Test(req, &flag, MPI_STATUS_IGNORE));
    }
    return flag;
}

static void sender(int to, size_t n, bool persistent)
{
    unsigned char *p = mt_alloc(COUNT * n + 1);
    int go = 1;
    MPI_Request req[COUNT], copy;
    for (int i = 0; i < COUNT; i++) {
        unsigned char *at = p + (size_t) i * n;
        mt_fill(at, n, mt_key(1, mt_rank, i, 0));
        if (persistent) {
            MT_MPI(MPI_Ssend_init(at, (int) n, MPI_BYTE, to, i, MPI_COMM_WORLD, &req[i]));
            MT_MPI(MPI_Start(&req[i]));
        } else {
            MT_MPI(MPI_Issend(at, (int) n, MPI_BYTE, to, i, MPI_COMM_WORLD, &req[i]));
        }
    }
    /* The partner says that it runs, so everything could have arrived by now. */
    MT_MPI(MPI_Recv(&go, 1, MPI_INT, to, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < COUNT; i++) {
        MT_CHECK(!progress_and_test(&req[i]), "%zu bytes: send %d complete before its receive", n, i);
    }
    for (int i = COUNT - 1; i >= 0; i--) {              /* one after the other */
        MT_MPI(MPI_Send(&i, 1, MPI_INT, to, 101, MPI_COMM_WORLD));
        copy = req[i];
        MT_MPI(MPI_Wait(&req[i], MPI_STATUS_IGNORE));
        if (persistent) {
            MT_MPI(MPI_Request_free(&copy));
        }
        for (int k = 0; k < i; k++) {
            int flag;
            MT_MPI(MPI_Request_get_status(req[k], &flag, MPI_STATUS_IGNORE));
            MT_CHECK(!flag, "%zu bytes: send %d complete after the receive of %d", n, k, i);
        }
    }
    free(p);
}

static void receiver(int from, size_t n)
{
    int go = 1;
    mt_buf_t buf;
    MPI_Status status;
    MPI_Message message;
    for (int i = 0; i < COUNT; i++) {                   /* they have arrived; a probe is no receive */
        MT_MPI(MPI_Probe(from, i, MPI_COMM_WORLD, &status));
        MT_STATUS(&status, from, i, n);
    }
    MT_MPI(MPI_Send(&go, 1, MPI_INT, from, 100, MPI_COMM_WORLD));
    for (int i = 0; i < COUNT; i++) {
        int which;
        MT_MPI(MPI_Recv(&which, 1, MPI_INT, from, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        mt_buf_new(&buf, n);
        if (i % 2) {
            MT_MPI(MPI_Mprobe(from, which, MPI_COMM_WORLD, &message, &status));
            MT_MPI(MPI_Mrecv(buf.p, (int) n, MPI_BYTE, &message, &status));
        } else {
            MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, from, which, MPI_COMM_WORLD, &status));
        }
        MT_STATUS(&status, from, which, n);
        MT_BUF(&buf, n, mt_key(1, from, which, 0));
        mt_buf_free(&buf);
    }
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    for (int partner = 1; partner < mt_size; partner++) {
        for (int i = 0; i < mt_few_sizes_count; i++) {
            for (int persistent = 0; persistent < 2; persistent++) {
                if (0 == mt_rank) {
                    sender(partner, mt_few_sizes[i], persistent);
                } else if (partner == mt_rank) {
                    receiver(0, mt_few_sizes[i]);
                }
            }
        }
        mt_group("rank 0 to rank %d", partner);
    }
    return mt_end();
}
