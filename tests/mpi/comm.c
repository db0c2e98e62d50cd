/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Communicators: messages stay inside theirs, however it was made (dup,
 * idup, split, split_type, create, create_group), among many at a time,
 * while they are freed with traffic in flight; inter-communicators with
 * messages and collectives.
 */
#include "mt.h"

enum { MANY = 40 };

/* Everybody to everybody, wildcards included; `mark` tells communicators apart. */
static void exchange(MPI_Comm comm, int mark, size_t n)
{
    int rank, size;
    MT_MPI(MPI_Comm_rank(comm, &rank));
    MT_MPI(MPI_Comm_size(comm, &size));
    unsigned char *p = mt_alloc((size_t) size * n + 1);
    MPI_Request *req = malloc((size_t) size * sizeof(*req));
    MPI_Status status;
    mt_buf_t buf;
    mt_buf_new(&buf, n);
    for (int i = 0; i < size; i++) {
        mt_fill(p + (size_t) i * n, n, mt_key(mark, rank, i, 0));
        MT_MPI(MPI_Isend(p + (size_t) i * n, (int) n, MPI_BYTE, i, 1, comm, &req[i]));
    }
    for (int i = 0; i < size; i++) {
        mt_buf_poison(&buf);
        MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, mark % 2 ? i : MPI_ANY_SOURCE, 1, comm, &status));
        MT_STATUS(&status, mark % 2 ? i : status.MPI_SOURCE, 1, n);
        MT_BUF(&buf, n, mt_key(mark, status.MPI_SOURCE, rank, 0));
    }
    MT_MPI(MPI_Waitall(size, req, MPI_STATUSES_IGNORE));
    MT_MPI(MPI_Barrier(comm));
    mt_buf_free(&buf);
    free(req);
    free(p);
}

static void all_sizes(MPI_Comm comm, int mark)
{
    for (int i = 0; i < mt_few_sizes_count; i++) {
        exchange(comm, mark + i, mt_few_sizes[i]);
    }
}

static void ways_to_make(void)
{
    MPI_Comm c;
    MPI_Group world, some;
    MPI_Request req;
    int members[64], n = 0;
    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    all_sizes(c, 100);
    MT_MPI(MPI_Comm_free(&c));
    MT_MPI(MPI_Comm_idup(MPI_COMM_WORLD, &c, &req));
    MT_MPI(MPI_Wait(&req, MPI_STATUS_IGNORE));
    all_sizes(c, 120);
    MT_MPI(MPI_Comm_free(&c));
    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, mt_rank % 2, -mt_rank, &c));
    all_sizes(c, 140 + 1000 * (mt_rank % 2));
    MT_MPI(MPI_Comm_free(&c));
    MT_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c));
    all_sizes(c, 160);
    MT_MPI(MPI_Comm_free(&c));

    MT_MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
    for (int i = mt_size - 1; i >= 0 && n < 64; i -= 2) {       /* every second, backwards */
        members[n++] = i;
    }
    MT_MPI(MPI_Group_incl(world, n, members, &some));
    MT_MPI(MPI_Comm_create(MPI_COMM_WORLD, some, &c));
    if (MPI_COMM_NULL != c) {
        all_sizes(c, 180);
        MT_MPI(MPI_Comm_free(&c));
        MT_MPI(MPI_Comm_create_group(MPI_COMM_WORLD, some, 55, &c));
        all_sizes(c, 200);
        MT_MPI(MPI_Comm_free(&c));
    }
    MT_MPI(MPI_Group_free(&some));
    MT_MPI(MPI_Group_free(&world));
}

/* Messages on many communicators at once, received in the opposite order. */
static void many(size_t n)
{
    MPI_Comm c[MANY];
    MPI_Request req[MANY];
    int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size;
    unsigned char *p = mt_alloc(MANY * n + 1);
    MPI_Status status;
    mt_buf_t buf;
    mt_buf_new(&buf, n);
    for (int i = 0; i < MANY; i++) {
        MT_MPI(MPI_Comm_dup(i % 3 ? c[i - 1] : MPI_COMM_WORLD, &c[i]));
        mt_fill(p + (size_t) i * n, n, mt_key(300 + i, mt_rank, 0, 0));
        MT_MPI(MPI_Isend(p + (size_t) i * n, (int) n, MPI_BYTE, to, 2, c[i], &req[i]));
    }
    for (int i = MANY - 1; i >= 0; i--) {
        mt_buf_poison(&buf);
        MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : from, MPI_ANY_TAG, c[i], &status));
        MT_STATUS(&status, from, 2, n);
        MT_BUF(&buf, n, mt_key(300 + i, from, 0, 0));
    }
    MT_MPI(MPI_Waitall(MANY, req, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++) {
        MT_MPI(MPI_Comm_free(&c[i]));
    }
    mt_buf_free(&buf);
    free(p);
}

/* MPI_Comm_free while requests of that communicator are pending. */
static void freed_in_flight(size_t n)
{
    int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size;
    unsigned char *p = mt_alloc(2 * n + 1);
    MPI_Comm c;
    MPI_Request req[4];
    MPI_Status status[4];
    mt_buf_t buf[2];
    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    for (int i = 0; i < 2; i++) {
        mt_buf_new(&buf[i], n);
        mt_fill(p + (size_t) i * n, n, mt_key(400, mt_rank, i, 0));
        MT_MPI(MPI_Irecv(buf[i].p, (int) n, MPI_BYTE, i ? MPI_ANY_SOURCE : from, 3 + i, c, &req[i]));
        MT_MPI(MPI_Isend(p + (size_t) i * n, (int) n, MPI_BYTE, to, 4 - i, c, &req[2 + i]));
    }
    MT_MPI(MPI_Comm_free(&c));
    MT_MPI(MPI_Waitall(4, req, status));
    for (int i = 0; i < 2; i++) {
        MT_STATUS(&status[i], from, 3 + i, n);
        MT_BUF(&buf[i], n, mt_key(400, from, 1 - i, 0));
        mt_buf_free(&buf[i]);
    }
    free(p);
}

/* Odd ranks on one side, even ones on the other. */
static void inter(void)
{
    int side = mt_rank % 2, rank, far;
    MPI_Comm local, both, merged;
    MPI_Status status;
    mt_buf_t buf;
    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, side, mt_rank, &local));
    MT_MPI(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - side, 9, &both));
    MT_MPI(MPI_Comm_rank(both, &rank));
    MT_MPI(MPI_Comm_remote_size(both, &far));
    for (int s = 0; s < mt_few_sizes_count; s++) {
        size_t n = mt_few_sizes[s];
        unsigned char *p = mt_alloc((size_t) far * n + 1);
        MPI_Request *req = malloc((size_t) far * sizeof(*req));
        for (int i = 0; i < far; i++) {
            mt_fill(p + (size_t) i * n, n, mt_key(500 + side, rank, i, s));
            MT_MPI(i % 2 ? MPI_Isend(p + (size_t) i * n, (int) n, MPI_BYTE, i, s, both, &req[i])
                         : MPI_Issend(p + (size_t) i * n, (int) n, MPI_BYTE, i, s, both, &req[i]));
        }
        for (int i = 0; i < far; i++) {
            mt_buf_new(&buf, n);
            MT_MPI(MPI_Probe(s % 2 ? i : MPI_ANY_SOURCE, s, both, &status));
            MT_STATUS(&status, s % 2 ? i : status.MPI_SOURCE, s, n);
            MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, status.MPI_SOURCE, s, both, &status));
            MT_BUF(&buf, n, mt_key(500 + 1 - side, status.MPI_SOURCE, rank, s));
            mt_buf_free(&buf);
        }
        MT_MPI(MPI_Waitall(far, req, MPI_STATUSES_IGNORE));

        /* Broadcast from rank 0 of the even side; allgather between the sides. */
        unsigned char *all = mt_alloc(((size_t) far + 1) * n + 1);
        mt_fill(all, n, mt_key(520, side, 0, s));
        MT_MPI(MPI_Bcast(all, (int) n, MPI_BYTE, side ? 0 : (0 == rank ? MPI_ROOT : MPI_PROC_NULL), both));
        MT_SAME(all, n, mt_key(520, 0, 0, s), "bcast between groups");
        mt_fill(p, n, mt_key(530 + side, rank, 0, s));
        MT_MPI(MPI_Allgather(p, (int) n, MPI_BYTE, all, (int) n, MPI_BYTE, both));
        for (int i = 0; i < far; i++) {
            MT_SAME(all + (size_t) i * n, n, mt_key(530 + 1 - side, i, 0, s), "allgather between groups");
        }
        free(all);
        free(req);
        free(p);
    }
    int one = 1, total = 0;
    MT_MPI(MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, both));
    MT_CHECK(total == far, "allreduce between groups: %d of %d", total, far);
    MT_MPI(MPI_Intercomm_merge(both, side, &merged));
    all_sizes(merged, 540);
    MT_MPI(MPI_Comm_free(&merged));
    MT_MPI(MPI_Comm_free(&both));
    MT_MPI(MPI_Comm_free(&local));
}

/* Ids come round again: a late message must not be taken for another's. */
static void again_and_again(int times)
{
    for (int t = 0; t < times; t++) {
        MPI_Comm c;
        MT_MPI(t % 2 ? MPI_Comm_dup(MPI_COMM_WORLD, &c) : MPI_Comm_split(MPI_COMM_WORLD, 0, -mt_rank, &c));
        exchange(c, 600 + t, 10 + (size_t) t);
        MT_MPI(MPI_Comm_free(&c));
    }
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    ways_to_make();
    mt_group("dup, idup, split, split_type, create, create_group");
    for (int i = 0; i < mt_few_sizes_count; i++) {
        many(mt_few_sizes[i]);
        freed_in_flight(mt_few_sizes[i]);
    }
    mt_group("%d at a time, freed with traffic in flight", MANY);
    inter();
    mt_group("inter-communicators");
    again_and_again((int) mt_arg("times", 300));
    mt_group("made, used and freed again and again");
    return mt_end();
}
