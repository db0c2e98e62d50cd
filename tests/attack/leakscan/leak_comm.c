/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What communicates without payload of the user's: communicators come and go.
 * (Weights of a distributed graph are numbers of the user's, so that one has
 * payload.)  And processes that meet at run time.
 */
#include "leak.h"

enum { DUP, IDUP, SPLIT, SPLIT_TYPE, CREATE, CREATE_GROUP, CART, GRAPH, INTER, MERGE };

static void make(const leak_op_t *op)
{
    MPI_Comm c = MPI_COMM_NULL, half, inter;
    MPI_Group world;
    MPI_Request request;
    int upper = mt_rank >= mt_size / 2, periodic = 1, degree[1] = {mt_size}, *nobody = calloc((size_t) mt_size, sizeof(int));
    MT_MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
    switch (op->how) {
    case DUP: MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &c)); break;
    case IDUP:
        MT_MPI(MPI_Comm_idup(MPI_COMM_WORLD, &c, &request));
        MT_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    case SPLIT: MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, mt_rank % 2, -mt_rank, &c)); break;
    case SPLIT_TYPE: MT_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c)); break;
    case CREATE: MT_MPI(MPI_Comm_create(MPI_COMM_WORLD, world, &c)); break;
    case CREATE_GROUP: MT_MPI(MPI_Comm_create_group(MPI_COMM_WORLD, world, 3, &c)); break;
    case CART: MT_MPI(MPI_Cart_create(MPI_COMM_WORLD, 1, degree, &periodic, 1, &c)); break;
    case GRAPH: MT_MPI(MPI_Graph_create(MPI_COMM_WORLD, mt_size, nobody, nobody, 1, &c)); break;
    case INTER: case MERGE:
        MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, upper, mt_rank, &half));
        MT_MPI(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : mt_size / 2, 5, &inter));
        if (MERGE == op->how) {
            MT_MPI(MPI_Intercomm_merge(inter, upper, &c));
        }
        MT_MPI(MPI_Comm_free(&inter));
        MT_MPI(MPI_Comm_free(&half));
        break;
    }
    if (MPI_COMM_NULL != c) {
        MT_MPI(MPI_Comm_free(&c));
    }
    MT_MPI(MPI_Group_free(&world));
    free(nobody);
}

/* An edge whose weight is the user's number, the first bytes of the block.  It is named by the rank at its
 * far end, so the weight has to travel. */
static void dist_graph(const leak_op_t *op)
{
    int other = leak_partner(MPI_COMM_WORLD), degree = 1, in, out, weighted, weight, from, to, far_weight, got;
    MPI_Comm graph;
    memcpy(&weight, leak_block, sizeof(weight));
    MT_MPI(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &other, &degree, &mt_rank, &weight, MPI_INFO_NULL, 0, &graph));
    MT_MPI(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
    MT_CHECK(1 == in && 1 == out && weighted, "%s: %d, %d, %d", op->name, in, out, weighted);
    MT_MPI(MPI_Dist_graph_neighbors(graph, in, &from, &got, out, &to, &far_weight));
    MT_CHECK(other == from && other == to && weight == got && weight == far_weight, "%s: wrong edge", op->name);
    MT_MPI(MPI_Comm_free(&graph));
}

static const leak_op_t ops[] = {
    {"Comm_dup", make, .how = DUP, .bare = true},
    {"Comm_idup", make, .how = IDUP, .bare = true},
    {"Comm_split", make, .how = SPLIT, .bare = true},
    {"Comm_split_type", make, .how = SPLIT_TYPE, .bare = true},
    {"Comm_create", make, .how = CREATE, .bare = true},
    {"Comm_create_group", make, .how = CREATE_GROUP, .bare = true},
    {"Cart_create", make, .how = CART, .bare = true},
    {"Graph_create", make, .how = GRAPH, .bare = true},
    {"Intercomm_create", make, .how = INTER, .bare = true},
    {"Intercomm_merge", make, .how = MERGE, .bare = true},
    {"Dist_graph_create, weights", dist_graph, .least = 7, .most = 7, .splits = true},
};

void leak_comms(void)
{
    leak_run("communicators", ops, LEAK_COUNT(ops), 65536, MPI_COMM_WORLD);
}

/* ---- processes that meet at run time ---- */

static MPI_Comm merged;
static int lower;                       /* our side of the inter-communicator */

static void talk(const leak_op_t *op)
{
    int rank, far, n = (int) leak_n, root, sender;
    MT_MPI(MPI_Comm_rank(leak_comm, &rank));
    MT_MPI(MPI_Comm_remote_size(leak_comm, &far));
    sender = lower == (0 == leak_root);
    root = !sender ? 0 : 0 == rank ? MPI_ROOT : MPI_PROC_NULL;
    switch (op->how) {
    case 0:                             /* everybody with everybody of the other side */
        for (int i = 0; i < far; i++) {
            if (lower) {
                MT_MPI(MPI_Send(leak_out, n, MPI_BYTE, i, 1, leak_comm));
            } else {
                MT_MPI(MPI_Recv(leak_in, n, MPI_BYTE, i, 1, leak_comm, MPI_STATUS_IGNORE));
                LEAK_SAME(leak_in, 1);
            }
        }
        break;
    case 1:
        MT_MPI(MPI_Bcast(sender ? leak_out : leak_in, n, MPI_BYTE, root, leak_comm));
        LEAK_SAME(leak_in, !sender);
        break;
    case 2:
        MT_MPI(MPI_Allgather(leak_out, n, MPI_BYTE, leak_in, n, MPI_BYTE, leak_comm));
        LEAK_SAME(leak_in, far);
        break;
    case 3:
        MT_MPI(MPI_Bcast(leak_out, n, MPI_BYTE, 0, merged));
        LEAK_SAME(leak_out, 1);
        break;
    case 4:
        MT_MPI(MPI_Allreduce(leak_out, leak_in, n, MPI_BYTE, MPI_BOR, merged));
        LEAK_SAME(leak_in, 1);
        break;
    }
}

static const leak_op_t met_ops[] = {
    {"Send", talk, .how = 0},
    {"Bcast", talk, .how = 1, .rooted = true},
    {"Allgather", talk, .how = 2},
    {"merged: Bcast", talk, .how = 3},
    {"merged: Allreduce", talk, .how = 4, .splits = true},
};

static void met(const char *group, MPI_Comm inter, int low, size_t largest)
{
    leak_comm = inter;
    lower = low;
    MT_MPI(MPI_Intercomm_merge(inter, !low, &merged));
    leak_run(group, met_ops, LEAK_COUNT(met_ops), largest, merged);
    MT_MPI(MPI_Comm_free(&merged));
    MT_MPI(MPI_Comm_disconnect(&inter));
    leak_comm = MPI_COMM_WORLD;
}

void leak_spawned(size_t largest, MPI_Comm parent)
{
    met("spawned", parent, 0, largest);
}

void leak_dynamic(size_t largest, char *program, char **arguments)
{
    char port[MPI_MAX_PORT_NAME] = "", *programs[] = {program, program}, **both[] = {arguments, arguments};
    int upper = mt_rank >= mt_size / 2, codes[4], counts[] = {2, 2};
    MPI_Info infos[2], none = MPI_INFO_NULL;
    MPI_Comm inter, half;
    /* Two on either node: else a spawned process might have no far parent. */
    for (int i = 0; i < 2; i++) {
        MT_MPI(MPI_Info_create(&infos[i]));
        MT_MPI(MPI_Info_set(infos[i], "host", i ? "node1" : "node0"));
    }
    MT_MPI(MPI_Comm_spawn_multiple(2, programs, both, counts, infos, 0, MPI_COMM_WORLD, &inter, codes));
    met("spawned", inter, 1, largest);
    MT_MPI(MPI_Info_free(&infos[0]));
    MT_MPI(MPI_Info_free(&infos[1]));

    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, upper, mt_rank, &half));
    if (0 == mt_rank) {
        MT_MPI(MPI_Open_port(none, port));
    }
    MT_MPI(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    MT_MPI(upper ? MPI_Comm_connect(port, none, 0, half, &inter) : MPI_Comm_accept(port, none, 0, half, &inter));
    met("connected", inter, !upper, largest);
    if (0 == mt_rank) {
        MT_MPI(MPI_Close_port(port));
    }
    MT_MPI(MPI_Comm_free(&half));
}
