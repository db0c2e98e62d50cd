/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * C-RD and C-Ring: concurrent doublings or rings, one in each lane, then one within each node.
 *
 *     C-RD       r_c lg N + lg l    the fewest steps without shared memory: for small blocks
 *     C-Ring     r_c N + l - 2      no step moves more than one block: for large blocks
 *
 * Lane g connects the g-th rank of every node; each lane carries the blocks of its own ranks between the nodes, every
 * rank opens only those, and the ranks of a node then exchange plaintext.
 *
 *     lane 0    lane 1                       r_e 1, s_e m
 *     rank 0    rank 1    on node 0          r_d N - 1, s_d (N - 1) m
 *     rank 2    rank 3    on node 1          s_c (p - 1) m
 *
 * On nodes with fewer ranks than lanes, ranks serve several lanes (lane g is served by
 * local rank g mod l), and forward blocks in lanes to which they contribute none.
 */
#include "coll_cryptag.h"

typedef struct {
    ompi_coll_cryptag_call_t *call;
    ompi_coll_cryptag_lane_t *lanes;
    int *lane_number;           /* which lane of the communicator lanes[i] is */
} concurrent_t;

/* The rank whose block lane g carries for a node, or -1. */
static int owner_in_lane(const ompi_coll_cryptag_topo_t *topo, int g, int node)
{
    return g < ompi_coll_cryptag_node_size(topo, node) ? ompi_coll_cryptag_rank_at(topo, node, g) : -1;
}

static int member_of_lane(const ompi_coll_cryptag_topo_t *topo, int g, int node)
{
    return ompi_coll_cryptag_rank_at(topo, node, g % ompi_coll_cryptag_node_size(topo, node));
}

static void open_block(void *context, int i, int node)
{
    concurrent_t *state = context;
    ompi_coll_cryptag_call_t *call = state->call;
    const int owner = owner_in_lane(call->topo, state->lane_number[i], node);
    const ompi_coll_cryptag_name_t name = { owner, OPAL_CRYPT_TO_ALL, 0 };
    const ompi_coll_cryptag_lane_t *lane = &state->lanes[i];

    if (owner >= 0) {
        ompi_coll_cryptag_open(call, &name, lane->parts[lane->first[node]].base,
                               ompi_coll_cryptag_block(call, owner),
                               ompi_coll_cryptag_block_bytes(call, owner));
    }
}

/* Members, items and memory for the sealed blocks of lane g. */
static ompi_coll_cryptag_lane_t make_lane(ompi_coll_cryptag_call_t *call, int g)
{
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    const size_t nodes = (size_t) topo->nodes;
    int *members = ompi_coll_cryptag_scratch(call, nodes * sizeof(*members));
    int *first = ompi_coll_cryptag_scratch(call, (nodes + 1) * sizeof(*first));
    ompi_coll_cryptag_part_t *parts = ompi_coll_cryptag_scratch(call, nodes * sizeof(*parts));
    size_t total = 0;
    uint8_t *sealed;
    int n = 0;

    for (int node = 0; node < topo->nodes; node++) {
        int owner = owner_in_lane(topo, g, node);

        members[node] = member_of_lane(topo, g, node);
        first[node] = n;
        if (owner >= 0) {
            size_t bytes = ompi_coll_cryptag_block_bytes(call, owner);
            parts[n] = (ompi_coll_cryptag_part_t) { ompi_coll_cryptag_block(call, owner),
                                                    ompi_coll_cryptag_sealed_bytes(call, bytes), bytes };
            total += parts[n++].wire_bytes;
        }
    }
    first[topo->nodes] = n;
    sealed = ompi_coll_cryptag_scratch(call, total);
    for (int i = 0; i < n; i++) {
        parts[i].base = ompi_coll_cryptag_sealed_at(call, parts[i].base, sealed);
        sealed += parts[i].wire_bytes;
    }
    return (ompi_coll_cryptag_lane_t) { members, parts, first };
}

/* Is anything sent or received in this round of the ring, in one of our lanes? */
static bool round_has_messages(const ompi_coll_cryptag_topo_t *topo, int round)
{
    const int sent = (topo->node - round + topo->nodes) % topo->nodes;
    const int received = (sent - 1 + topo->nodes) % topo->nodes;

    for (int g = topo->local; g < topo->widest; g += ompi_coll_cryptag_node_size(topo, topo->node)) {
        if (owner_in_lane(topo, g, sent) >= 0 || owner_in_lane(topo, g, received) >= 0) {
            return true;
        }
    }
    return false;
}

/* Lane after lane: all ranks that serve several begin with the lowest.  The metric counts
 * the rounds of the ring, however many steps they take. */
static void stream_lanes(ompi_coll_cryptag_call_t *call)
{
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    uint64_t rounds = call->metrics.r_c;
    int *members = ompi_coll_cryptag_scratch(call, (size_t) topo->nodes * sizeof(*members));
    int *owners = ompi_coll_cryptag_scratch(call, (size_t) topo->nodes * sizeof(*owners));

    for (int g = topo->local; g < topo->widest; g += ompi_coll_cryptag_node_size(topo, topo->node)) {
        for (int node = 0; node < topo->nodes; node++) {
            members[node] = member_of_lane(topo, g, node);
            owners[node] = owner_in_lane(topo, g, node);
        }
        ompi_coll_cryptag_stream(call, members, owners);
    }
    for (int round = 0; round < topo->nodes - 1; round++) {
        rounds += round_has_messages(topo, round) ? 1 : 0;
    }
    call->metrics.r_c = rounds;
}

static void between_nodes(ompi_coll_cryptag_call_t *call, ompi_coll_cryptag_kind_t kind)
{
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    const int here = ompi_coll_cryptag_node_size(topo, topo->node);
    const size_t most = (size_t) (topo->widest + here - 1) / (size_t) here;
    concurrent_t state = {
        .call = call,
        .lanes = ompi_coll_cryptag_scratch(call, most * sizeof(*state.lanes)),
        .lane_number = ompi_coll_cryptag_scratch(call, most * sizeof(*state.lane_number)),
    };
    const ompi_coll_cryptag_name_t own = { topo->rank, OPAL_CRYPT_TO_ALL, 0 };
    const ompi_coll_cryptag_part_t *part;
    int lane_count = 0;

    /* 1. the lanes that we serve */
    for (int g = topo->local; g < topo->widest; g += here) {
        state.lane_number[lane_count] = g;
        state.lanes[lane_count++] = make_lane(call, g);
    }

    /* 2. seal our block, in our first lane */
    part = &state.lanes[0].parts[state.lanes[0].first[topo->node]];
    ompi_coll_cryptag_seal(call, &own, ompi_coll_cryptag_block(call, topo->rank), part->plain_bytes, part->base);

    /* 3. gather in each lane, forwarding what arrives, and opening it meanwhile */
    ompi_coll_cryptag_gather(call, &(ompi_coll_cryptag_gather_t) {
        .kind = kind, .form = OMPI_COLL_CRYPTAG_SEALED,
        .n = topo->nodes, .me = topo->node,
        .lanes = state.lanes, .lane_count = lane_count,
        .arrived = open_block, .context = &state,
    });
}

/* Blocks that local rank j received for this node: consecutive ranks make one part. */
static int parts_of_local(const ompi_coll_cryptag_call_t *call, int j, int here, ompi_coll_cryptag_part_t *parts)
{
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    int n = 0, last = -2;

    for (int rank = 0; rank < topo->ranks; rank++) {
        size_t bytes = ompi_coll_cryptag_block_bytes(call, rank);

        if (topo->local_of[rank] % here != j) {
            continue;
        }
        if (last + 1 == rank) {
            parts[n - 1].wire_bytes += bytes;
            parts[n - 1].plain_bytes += bytes;
        } else {
            parts[n++] = (ompi_coll_cryptag_part_t) { ompi_coll_cryptag_block(call, rank), bytes, bytes };
        }
        last = rank;
    }
    return n;
}

static void within_node(ompi_coll_cryptag_call_t *call, ompi_coll_cryptag_kind_t kind)
{
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    const int here = ompi_coll_cryptag_node_size(topo, topo->node);
    int *first = ompi_coll_cryptag_scratch(call, ((size_t) here + 1) * sizeof(*first));
    ompi_coll_cryptag_part_t *parts =
        ompi_coll_cryptag_scratch(call, (size_t) topo->ranks * sizeof(*parts));
    const ompi_coll_cryptag_lane_t lane = { &topo->by_node[topo->node_first[topo->node]], parts, first };

    first[0] = 0;
    for (int j = 0; j < here; j++) {
        first[j + 1] = first[j] + parts_of_local(call, j, here, &parts[first[j]]);
    }
    ompi_coll_cryptag_gather(call, &(ompi_coll_cryptag_gather_t) {
        .kind = kind, .form = OMPI_COLL_CRYPTAG_PLAIN,
        .n = here, .me = topo->local,
        .lanes = &lane, .lane_count = 1,
    });
}

void ompi_coll_cryptag_c_rd(ompi_coll_cryptag_call_t *call)
{
    between_nodes(call, OMPI_COLL_CRYPTAG_DOUBLING);
    within_node(call, OMPI_COLL_CRYPTAG_DOUBLING);
}

void ompi_coll_cryptag_c_ring(ompi_coll_cryptag_call_t *call)
{
    const size_t average = call->offset[call->topo->ranks] / (size_t) call->topo->ranks;

    if (average > mca_coll_cryptag_component.fragment) {
        stream_lanes(call);
    } else {
        between_nodes(call, OMPI_COLL_CRYPTAG_RING);
    }
    within_node(call, OMPI_COLL_CRYPTAG_RING);
}
