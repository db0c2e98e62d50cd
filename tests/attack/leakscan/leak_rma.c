/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One-sided communication with a rank of the other node: every operation, and
 * the ways to synchronize and to make a window.
 */
#include "leak.h"

enum { FENCE, PSCW, LOCK, LOCK_ALL };
enum { PUT, GET, ACCUMULATE, GET_ACCUMULATE, FETCH_AND_OP, COMPARE_AND_SWAP, RPUT, RGET, RACCUMULATE, RGET_ACCUMULATE };

static MPI_Win win;
static unsigned char *base;
static MPI_Aint far_base;
static MPI_Group others;

static void begin(int how, int other)
{
    /* Local stores to the window, then everybody may come. */
    MT_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mt_rank, 0, win));
    memcpy(base, leak_block, leak_n);
    MT_MPI(MPI_Win_unlock(mt_rank, win));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    switch (how) {
    case FENCE: MT_MPI(MPI_Win_fence(0, win)); break;
    case PSCW:
        MT_MPI(MPI_Win_post(others, 0, win));
        MT_MPI(MPI_Win_start(others, 0, win));
        break;
    case LOCK: MT_MPI(MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win)); break;
    case LOCK_ALL: MT_MPI(MPI_Win_lock_all(0, win)); break;
    }
}

static void end(int how, int other)
{
    switch (how) {
    case FENCE: MT_MPI(MPI_Win_fence(0, win)); break;
    case PSCW:
        MT_MPI(MPI_Win_complete(win));
        MT_MPI(MPI_Win_wait(win));
        break;
    case LOCK: MT_MPI(MPI_Win_unlock(other, win)); break;
    case LOCK_ALL:
        MT_MPI(MPI_Win_flush(other, win));
        MT_MPI(MPI_Win_unlock_all(win));
        break;
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static void rma(const leak_op_t *op)
{
    int other = leak_partner(MPI_COMM_WORLD), n = (int) leak_n;
    MPI_Request request = MPI_REQUEST_NULL;
    begin(op->with, other);
    switch (op->how) {
    case PUT: MT_MPI(MPI_Put(leak_out, n, MPI_BYTE, other, far_base, n, MPI_BYTE, win)); break;
    case GET: MT_MPI(MPI_Get(leak_in, n, MPI_BYTE, other, far_base, n, MPI_BYTE, win)); break;
    case ACCUMULATE:
        MT_MPI(MPI_Accumulate(leak_out, n, MPI_BYTE, other, far_base, n, MPI_BYTE, MPI_BOR, win)); break;
    case GET_ACCUMULATE:
        MT_MPI(MPI_Get_accumulate(leak_out, n, MPI_BYTE, leak_in, n, MPI_BYTE, other, far_base, n, MPI_BYTE,
                                  MPI_REPLACE, win)); break;
    case FETCH_AND_OP:
        MT_MPI(MPI_Fetch_and_op(leak_out, leak_in, MPI_BYTE, other, far_base, MPI_REPLACE, win)); break;
    case COMPARE_AND_SWAP:
        MT_MPI(MPI_Compare_and_swap(leak_out, leak_block, leak_in, MPI_BYTE, other, far_base, win)); break;
    case RPUT: MT_MPI(MPI_Rput(leak_out, n, MPI_BYTE, other, far_base, n, MPI_BYTE, win, &request)); break;
    case RGET: MT_MPI(MPI_Rget(leak_in, n, MPI_BYTE, other, far_base, n, MPI_BYTE, win, &request)); break;
    case RACCUMULATE:
        MT_MPI(MPI_Raccumulate(leak_out, n, MPI_BYTE, other, far_base, n, MPI_BYTE, MPI_BOR, win, &request)); break;
    case RGET_ACCUMULATE:
        MT_MPI(MPI_Rget_accumulate(leak_out, n, MPI_BYTE, leak_in, n, MPI_BYTE, other, far_base, n, MPI_BYTE,
                                   MPI_REPLACE, win, &request)); break;
    }
    MT_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    end(op->with, other);
    LEAK_SAME(base, 1);
    LEAK_SAME(leak_in, PUT != op->how && ACCUMULATE != op->how && RPUT != op->how && RACCUMULATE != op->how);
}

static void make_and_put(const leak_op_t *op)
{
    MPI_Win kept_win = win;
    MPI_Aint kept_far = far_base, here = 0;
    unsigned char *kept_base = base;
    int other = leak_partner(MPI_COMM_WORLD);
    base = malloc(leak_n);
    if (op->how) {
        MT_MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        MT_MPI(MPI_Win_attach(win, base, (MPI_Aint) leak_n));
        MT_MPI(MPI_Get_address(base, &here));
    } else {
        MT_MPI(MPI_Win_create(base, (MPI_Aint) leak_n, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    }
    MT_MPI(MPI_Sendrecv(&here, 1, MPI_AINT, other, 9, &far_base, 1, MPI_AINT, other, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    begin(LOCK, other);
    MT_MPI(MPI_Put(leak_out, (int) leak_n, MPI_BYTE, other, far_base, (int) leak_n, MPI_BYTE, win));
    end(LOCK, other);
    LEAK_SAME(base, 1);
    if (op->how) {
        MT_MPI(MPI_Win_detach(win, base));
    }
    MT_MPI(MPI_Win_free(&win));
    free(base);
    win = kept_win;
    far_base = kept_far;
    base = kept_base;
}

static void only_make(const leak_op_t *op)
{
    MPI_Win made;
    unsigned char *memory;
    (void) op;
    MT_MPI(MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &made));
    MT_MPI(MPI_Win_free(&made));
}

/* The first has no payload.  Later osc/rdma's own messages may show what their fragments carried before. */
static const leak_op_t ops[] = {
    {"Win_allocate", only_make, .bare = true},
    {"Put, fence", rma, .how = PUT, .with = FENCE},
    {"Put, post-start", rma, .how = PUT, .with = PSCW},
    {"Put, lock", rma, .how = PUT, .with = LOCK},
    {"Get, fence", rma, .how = GET, .with = FENCE},
    {"Get, post-start", rma, .how = GET, .with = PSCW},
    {"Get, lock", rma, .how = GET, .with = LOCK},
    {"Accumulate, fence", rma, .how = ACCUMULATE, .with = FENCE},
    {"Accumulate, lock", rma, .how = ACCUMULATE, .with = LOCK},
    {"Get_accumulate", rma, .how = GET_ACCUMULATE, .with = FENCE},
    {"Fetch_and_op", rma, .how = FETCH_AND_OP, .with = LOCK, .most = 1},
    {"Compare_and_swap", rma, .how = COMPARE_AND_SWAP, .with = LOCK, .most = 1},
    {"Rput", rma, .how = RPUT, .with = LOCK_ALL},
    {"Rget", rma, .how = RGET, .with = LOCK_ALL},
    {"Raccumulate", rma, .how = RACCUMULATE, .with = LOCK_ALL},
    {"Rget_accumulate", rma, .how = RGET_ACCUMULATE, .with = LOCK_ALL},
    {"Put, Win_create", make_and_put, .how = 0, .least = LEAK_CANARY},
    {"Put, dynamic window", make_and_put, .how = 1, .least = LEAK_CANARY},
};

void leak_rma(size_t largest)
{
    MPI_Group world;
    int other = leak_partner(MPI_COMM_WORLD);
    MT_MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
    MT_MPI(MPI_Group_incl(world, 1, &other, &others));
    MT_MPI(MPI_Win_allocate((MPI_Aint) largest, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    leak_run("one-sided", ops, LEAK_COUNT(ops), largest, MPI_COMM_WORLD);
    MT_MPI(MPI_Win_free(&win));
    MT_MPI(MPI_Group_free(&others));
    MT_MPI(MPI_Group_free(&world));
}
