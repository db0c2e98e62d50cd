/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Partitioned communication (MPI 4): unequal partitions at the two ends,
 * marked ready in any order and in ranges, arrival asked for, many starts.
 */
#include "mt.h"

#if MT_HAS_MPI4
static void run(int out_parts, int in_parts, size_t bytes, int distance, int times)
{
    int to = (mt_rank + distance) % mt_size, from = (mt_rank + mt_size - distance) % mt_size;
    size_t total = bytes * (size_t) out_parts * (size_t) in_parts;
    unsigned char *p = malloc(total);
    MPI_Request req[2];
    mt_buf_t buf;
    mt_buf_new(&buf, total);
    MT_MPI(MPI_Psend_init(p, out_parts, (MPI_Count) (total / (size_t) out_parts), MPI_BYTE, to, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &req[0]));
    MT_MPI(MPI_Precv_init(buf.p, in_parts, (MPI_Count) (total / (size_t) in_parts), MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &req[1]));
    for (int t = 0; t < times; t++) {
        mt_buf_poison(&buf);
        MT_MPI(MPI_Startall(2, req));
        mt_fill(p, total, mt_key(t, mt_rank, out_parts, in_parts));
        if (t % 3 == 0) {
            MT_MPI(MPI_Pready_range(0, out_parts - 1, req[0]));
        } else {
            for (int i = 0; i < out_parts; i++) {
                MT_MPI(MPI_Pready(t % 3 == 1 ? out_parts - 1 - i : i, req[0]));
            }
        }
        for (int i = in_parts - 1; i >= 0 && t % 2; i--) {
            int flag = 0;
            while (!flag) {
                MT_MPI(MPI_Parrived(req[1], i, &flag));
            }
        }
        MT_MPI(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
        MT_BUF(&buf, total, mt_key(t, from, out_parts, in_parts));
    }
    MT_MPI(MPI_Request_free(&req[0]));
    MT_MPI(MPI_Request_free(&req[1]));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    mt_buf_free(&buf);
    free(p);
}
#endif

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
#if MT_HAS_MPI4
    static const size_t bytes[] = {1, 100, 4096, 33000};
    for (int d = 1; d < mt_size; d++) {
        for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
            run(1, 1, bytes[i], d, 6);
            run(8, 8, bytes[i], d, 6);
            run(4, 2, bytes[i], d, 6);
        }
        mt_group("partitions, distance %d", d);
    }
    return mt_end();
#else
    mt_skip("this MPI has no partitioned communication");
#endif
}
