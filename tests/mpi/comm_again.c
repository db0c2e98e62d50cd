/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Communicators of all shapes are made and freed again and again, so that their
 * context ids are reused with other members in another order, and with some of the
 * processes in none; in every one of them all members exchange messages.
 */
#include "mt.h"

enum { SLOTS = 5, KINDS = 6, MOST = 64 };

typedef struct {
    MPI_Comm comm;                      /* MPI_COMM_NULL where we are no member */
    bool used;
} slot_t;

static uint64_t random_state;           /* the same on all ranks */

static void exchange(MPI_Comm comm, int mark, size_t n)
{
    int rank, size, inter;
    MT_MPI(MPI_Comm_test_inter(comm, &inter));
    MT_MPI(MPI_Comm_rank(comm, &rank));
    MT_MPI(inter ? MPI_Comm_remote_size(comm, &size) : MPI_Comm_size(comm, &size));
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
        MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, mark % 2 ? i : MPI_ANY_SOURCE, mark % 3 ? 1 : MPI_ANY_TAG, comm, &status));
        MT_STATUS(&status, mark % 2 ? i : status.MPI_SOURCE, 1, n);
        MT_BUF(&buf, n, mt_key(mark, status.MPI_SOURCE, rank, 0));
    }
    MT_MPI(MPI_Waitall(size, req, MPI_STATUSES_IGNORE));
    MT_MPI(MPI_Barrier(comm));
    mt_buf_free(&buf);
    free(req);
    free(p);
}

/* Some of the ranks, at least one, in any order. */
static int some(int ranks[MOST])
{
    int n = 0;
    for (int i = 0; i < mt_size; i++) {
        if (mt_below(&random_state, 3) > 0 || (i == mt_size - 1 && 0 == n)) {
            const int at = (int) mt_below(&random_state, (size_t) n + 1);
            ranks[n++] = ranks[at];
            ranks[at] = i;
        }
    }
    return n;
}

static MPI_Comm split(void)
{
    int color = 0, key = 0;
    MPI_Comm comm;
    for (int i = 0; i < mt_size; i++) {
        const int c = (int) mt_below(&random_state, 3), k = (int) mt_below(&random_state, 100);
        if (i == mt_rank) {
            color = 2 == c ? MPI_UNDEFINED : c;
            key = k;
        }
    }
    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm));
    return comm;
}

/* By all ranks, or by the members only. */
static MPI_Comm of_group(bool members_only)
{
    int ranks[MOST], n = some(ranks), rank;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Group world, group;
    MT_MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
    MT_MPI(MPI_Group_incl(world, n, ranks, &group));
    MT_MPI(MPI_Group_rank(group, &rank));
    if (!members_only) {
        MT_MPI(MPI_Comm_create(MPI_COMM_WORLD, group, &comm));
    } else if (MPI_UNDEFINED != rank) {
        MT_MPI(MPI_Comm_create_group(MPI_COMM_WORLD, group, 7, &comm));
    }
    MT_MPI(MPI_Group_free(&group));
    MT_MPI(MPI_Group_free(&world));
    return comm;
}

/* Two halves of all ranks, and the two as one again. */
static MPI_Comm of_halves(bool merged)
{
    const int first = 1 + (int) mt_below(&random_state, (size_t) mt_size - 1);
    const bool low = mt_rank < first;
    MPI_Comm half, inter, comm;
    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, low, 0, &half));
    MT_MPI(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? first : 0, 9, &inter));
    MT_MPI(MPI_Comm_free(&half));
    if (!merged) {
        return inter;
    }
    MT_MPI(MPI_Intercomm_merge(inter, low, &comm));
    MT_MPI(MPI_Comm_free(&inter));
    return comm;
}

static MPI_Comm make(int kind)
{
    MPI_Comm comm;
    switch (kind) {
    case 0: MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm)); return comm;
    case 1: return split();
    case 2: return of_group(false);
    case 3: return of_group(true);
    case 4: return of_halves(false);
    default: return of_halves(true);
    }
}

int main(int argc, char **argv)
{
    slot_t slots[SLOTS] = {{MPI_COMM_NULL, false}};
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(mt_size <= MOST, "at most %d ranks", MOST);
    const int rounds = (int) mt_arg("rounds", 150);
    random_state = (uint64_t) mt_arg("seed", 1);
    for (int round = 0; round < rounds; round++) {
        slot_t *slot = &slots[mt_below(&random_state, SLOTS)];
        const size_t n = 0 == round % 10 ? 100000 : mt_below(&random_state, 300);
        if (slot->used && MPI_COMM_NULL != slot->comm) {
            exchange(slot->comm, 1000 + round, n);
            MT_MPI(MPI_Comm_free(&slot->comm));
        }
        slot->comm = make((int) mt_below(&random_state, KINDS));
        slot->used = true;
        if (MPI_COMM_NULL != slot->comm) {
            exchange(slot->comm, round, n);
        }
    }
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].used && MPI_COMM_NULL != slots[i].comm) {
            MT_MPI(MPI_Comm_free(&slots[i].comm));
        }
    }
    mt_group("%d communicators", rounds);
    return mt_end();
}
