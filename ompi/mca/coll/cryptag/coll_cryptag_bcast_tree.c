/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A broadcast that is sealed once: the root seals, one rank of each node, its chief (the
 * root on its own), hands the sealed segments on to those of other nodes.  They lie in the
 * node's shared memory, and every rank opens them from there into its own buffer: who
 * copied plaintext would touch every byte once more.  The few bytes that the host sends
 * inline the chief opens, and gives on in a binomial tree of plain messages, where nobody
 * waits for those who read.
 *
 *     root: r_e 1, s_e m     others, in shared memory: r_d 1, s_d m
 *                            ... by messages, only the chiefs of other nodes
 *
 * Between nodes a binomial tree, or a chain, which moves the fewest bytes per
 * node once there are several segments.  In round k a chief receives segment k and
 * meanwhile hands on, and opens, segment k - 1.
 *
 * Flags: + s + 1, the chief: segment s is there; others: they have opened it;
 *        + segments + 1: nobody reads here any more.
 */
#include "coll_cryptag.h"
#include "coll_cryptag_bcast.h"
#include "coll_cryptag_shm.h"

#include <string.h>

enum { NOBODY = -1, MOST_CHILDREN = 32 };
enum { AHEAD = 64 << 10, AWAITED = 64 };        /* bytes of a broadcast that nobody waits for; segments from one wait to the next */

typedef struct {
    int parent, child[MOST_CHILDREN], children;
} tree_t;

typedef struct {
    ompi_coll_cryptag_bcast_t *bcast;
    ompi_coll_cryptag_call_t *call;
    tree_t nodes, ranks;                        /* as ranks of the communicator */
    bool is_root, shared;
    int chief_local;
    ompi_coll_cryptag_shm_t *shm;
    uint64_t phase;
    uint8_t *sealed[2], *staged[2];
    ompi_coll_cryptag_part_t sealed_part[2], plain_part[2];
} tree_run_t;

/* ---- who hands on to whom; v counts from the root of the tree ---- */

static void binomial(tree_t *tree, int v, int n)
{
    int low = 0 == v ? 1 << 30 : v & -v;

    tree->parent = 0 == v ? NOBODY : v - low;
    tree->children = 0;
    for (int step = low >> 1; step > 0; step >>= 1) {   /* the largest subtree first */
        if (step < n - v) {
            tree->child[tree->children++] = v + step;
        }
    }
}

static void chain(tree_t *tree, int v, int n)
{
    tree->parent = v - 1;
    tree->children = v + 1 < n ? 1 : 0;
    tree->child[0] = v + 1;
}

static int chief_of(const ompi_coll_cryptag_bcast_t *bcast, int v)
{
    const ompi_coll_cryptag_topo_t *topo = bcast->call.topo;
    int node = (topo->node_of[bcast->root] + v) % topo->nodes;

    return 0 == v ? bcast->root : ompi_coll_cryptag_rank_at(topo, node, 0);
}

static void plan_nodes(tree_run_t *run)
{
    const ompi_coll_cryptag_topo_t *topo = run->call->topo;
    const int n = topo->nodes, v = (topo->node - topo->node_of[run->bcast->root] + n) % n;
    tree_t *tree = &run->nodes;

    run->is_root = topo->rank == run->bcast->root;
    run->chief_local = topo->local_of[chief_of(run->bcast, v)];
    tree->parent = NOBODY;
    if (topo->local != run->chief_local) {
        return;
    }
    (OMPI_COLL_CRYPTAG_BCAST_CHAIN == run->call->algorithm ? chain : binomial)(tree, v, n);
    tree->parent = NOBODY == tree->parent ? NOBODY : chief_of(run->bcast, tree->parent);
    for (int i = 0; i < tree->children; i++) {
        tree->child[i] = chief_of(run->bcast, tree->child[i]);
    }
}

static int local_rank(const tree_run_t *run, int v, int here)
{
    const ompi_coll_cryptag_topo_t *topo = run->call->topo;

    return ompi_coll_cryptag_rank_at(topo, topo->node, (run->chief_local + v) % here);
}

static void plan_ranks(tree_run_t *run)
{
    const ompi_coll_cryptag_topo_t *topo = run->call->topo;
    const int here = ompi_coll_cryptag_node_size(topo, topo->node);
    tree_t *tree = &run->ranks;

    run->shared = run->bcast->share && here > 1;
    tree->parent = NOBODY;
    if (run->shared) {
        run->shm = run->call->module->shm;
        run->phase = run->shm->phase;
        return;
    }
    binomial(tree, (topo->local - run->chief_local + here) % here, here);
    tree->parent = NOBODY == tree->parent ? NOBODY : local_rank(run, tree->parent, here);
    for (int i = 0; i < tree->children; i++) {
        tree->child[i] = local_rank(run, tree->child[i], here);
    }
}

/* ---- segments ---- */

static size_t bytes_of(const tree_run_t *run, int s)
{
    const ompi_coll_cryptag_bcast_t *bcast = run->bcast;
    size_t before = (size_t) s * bcast->segment, left = bcast->bytes - before;

    return left < bcast->segment ? left : bcast->segment;
}

static uint8_t *plain_of(const tree_run_t *run, int s)
{
    const ompi_coll_cryptag_bcast_t *bcast = run->bcast;

    return NULL != bcast->dense ? (uint8_t *) bcast->dense + (size_t) s * bcast->segment : run->staged[s & 1];
}

static uint8_t *sealed_of(const tree_run_t *run, int s)
{
    if (run->shared) {
        return run->shm->data + (size_t) (s % OMPI_COLL_CRYPTAG_BCAST_SLOTS) * ompi_coll_cryptag_bcast_slot_bytes(run->bcast);
    }
    return ompi_coll_cryptag_sealed_at(run->call, plain_of(run, s), run->sealed[s & 1]);
}

static ompi_coll_cryptag_part_t *sealed_part(tree_run_t *run, int s)
{
    size_t bytes = bytes_of(run, s);

    run->sealed_part[s & 1] = (ompi_coll_cryptag_part_t) { sealed_of(run, s),
                                                           ompi_coll_cryptag_sealed_bytes(run->call, bytes), bytes };
    return &run->sealed_part[s & 1];
}

static ompi_coll_cryptag_part_t *plain_part(tree_run_t *run, int s)
{
    size_t bytes = bytes_of(run, s);

    run->plain_part[s & 1] = (ompi_coll_cryptag_part_t) { plain_of(run, s), bytes, bytes };
    return &run->plain_part[s & 1];
}

static ompi_coll_cryptag_name_t name_of(const tree_run_t *run, int s)
{
    return (ompi_coll_cryptag_name_t) { run->bcast->root, OPAL_CRYPT_TO_ALL, (uint32_t) s };
}

/* Between plain_of and the user's buffer, where they are not the same. */
static void copy(tree_run_t *run, int s, bool to_user)
{
    const ompi_coll_cryptag_bcast_t *bcast = run->bcast;
    const size_t offset = (size_t) s * bcast->segment, bytes = bytes_of(run, s);
    int rc;

    if (NULL != bcast->dense) {
        return;
    }
    if (NULL != bcast->stream) {
        rc = to_user ? ompi_common_cryptmpi_stream_unpack(bcast->stream, offset, bytes, plain_of(run, s))
                     : ompi_common_cryptmpi_stream_pack(bcast->stream, offset, bytes, plain_of(run, s));
    } else {
        rc = to_user ? ompi_common_cryptmpi_unpack(bcast->buffer, bcast->count, bcast->dtype, offset, bytes, plain_of(run, s))
                     : ompi_common_cryptmpi_pack(bcast->buffer, bcast->count, bcast->dtype, offset, bytes, plain_of(run, s));
    }
    if (OMPI_SUCCESS != rc) {
        ompi_coll_cryptag_broken(run->call, rc);
    }
}

/* What lay where segment s goes has been opened by everybody.  What we sent of it is
 * gone: that was waited for in the round after it came. */
static void await_slot(tree_run_t *run, int s)
{
    if (run->shared && s >= OMPI_COLL_CRYPTAG_BCAST_SLOTS) {
        ompi_coll_cryptag_shm_await_all(run->shm, run->phase + (uint64_t) (s - OMPI_COLL_CRYPTAG_BCAST_SLOTS) + 1);
    }
}

/* Segment s is where the others of the node read it. */
static void publish(tree_run_t *run, int s)
{
    if (run->shared) {
        ompi_coll_cryptag_shm_arrive(run->shm, run->phase + (uint64_t) s + 1);
    }
}

/* ---- the rounds ---- */

/* The root: segment s to where it is sent from. */
static void prepare(tree_run_t *run, int s)
{
    const ompi_coll_cryptag_name_t name = name_of(run, s);

    await_slot(run, s);
    copy(run, s, false);
    if (run->shared || run->nodes.children > 0) {
        ompi_coll_cryptag_seal(run->call, &name, plain_of(run, s), bytes_of(run, s), sealed_of(run, s));
    }
    publish(run, s);
}

static void receive(tree_run_t *run, int s)
{
    if (NOBODY != run->nodes.parent) {
        await_slot(run, s);
        ompi_coll_cryptag_recv(run->call, run->nodes.parent, OMPI_COLL_CRYPTAG_SEALED, sealed_part(run, s), 1);
    } else if (NOBODY != run->ranks.parent) {
        ompi_coll_cryptag_recv(run->call, run->ranks.parent, OMPI_COLL_CRYPTAG_PLAIN, plain_part(run, s), 1);
    }
}

static void open_segment(tree_run_t *run, int s)
{
    const ompi_coll_cryptag_name_t name = name_of(run, s);

    ompi_coll_cryptag_open(run->call, &name, sealed_of(run, s), plain_of(run, s), bytes_of(run, s));
}

/* Nothing comes back from those below, who may be late: without a word from them, segments of a long broadcast, and of
 * those that follow, would pile up in their memory. */
static bool is_awaited(const tree_run_t *run, int s)
{
    return run->bcast->bytes > AHEAD && (s + 1 == run->bcast->segments || 0 == (s + 1) % AWAITED);
}

static void hand_on(tree_run_t *run, int s)
{
    const bool came_sealed = NOBODY != run->nodes.parent;

    if (came_sealed) {
        publish(run, s);
    }
    for (int i = 0; i < run->nodes.children; i++) {
        if (is_awaited(run, s)) {
            ompi_coll_cryptag_send_awaited(run->call, run->nodes.child[i], OMPI_COLL_CRYPTAG_SEALED, sealed_part(run, s));
        } else {
            ompi_coll_cryptag_send(run->call, run->nodes.child[i], OMPI_COLL_CRYPTAG_SEALED, sealed_part(run, s), 1);
        }
    }
    if (came_sealed) {
        open_segment(run, s);
    }
    for (int i = 0; i < run->ranks.children; i++) {
        ompi_coll_cryptag_send(run->call, run->ranks.child[i], OMPI_COLL_CRYPTAG_PLAIN, plain_part(run, s), 1);
    }
    if (!run->is_root) {
        copy(run, s, true);
    }
}

/* A rank that only opens what the chief of its node publishes.  Where the two do not mean the same length, which is
 * the program's mistake, it reads nothing, and keeps in step.  Returns how many segments there were. */
static int read_all(tree_run_t *run)
{
    const ompi_coll_cryptag_bcast_t *bcast = run->bcast;
    uint64_t bytes;
    int segments = 1;

    for (int s = 0; s < segments; s++) {
        ompi_coll_cryptag_shm_await(run->shm, run->chief_local, run->phase + (uint64_t) s + 1);
        if (0 == s) {
            bytes = ompi_coll_cryptag_shm_said(run->shm, run->chief_local);
            segments = ompi_coll_cryptag_bcast_segments(bytes);
        }
        if (bytes == bcast->bytes) {
            open_segment(run, s);
            copy(run, s, true);
        }
        ompi_coll_cryptag_shm_arrive(run->shm, run->phase + (uint64_t) s + 1);
    }
    if (bytes != bcast->bytes) {
        ompi_coll_cryptag_mistaken(run->call);
    }
    return segments;
}

static int write_all(tree_run_t *run)
{
    const int segments = run->bcast->segments;

    if (run->shared) {      /* of the last call's data nobody reads any more */
        ompi_coll_cryptag_shm_await_all(run->shm, run->phase);
        ompi_coll_cryptag_shm_say(run->shm, run->bcast->bytes);
    }
    for (int k = 0; k <= segments; k++) {
        if (k < segments) {
            receive(run, k);
        }
        if (k > 0) {
            hand_on(run, k - 1);
        }
        if (run->is_root && k < segments) {
            prepare(run, k);
        }
        ompi_coll_cryptag_wait(run->call);
    }
    return segments;
}

void ompi_coll_cryptag_bcast_tree(ompi_coll_cryptag_bcast_t *bcast)
{
    const size_t sealed_bytes = ompi_coll_cryptag_sealed_bytes(&bcast->call, bcast->segment);
    tree_run_t run = { .bcast = bcast, .call = &bcast->call };
    int segments;

    /* 1. who is above and below us */
    plan_nodes(&run);
    plan_ranks(&run);
    for (int i = 0; i < 2; i++) {
        run.sealed[i] = ompi_coll_cryptag_scratch(run.call, sealed_bytes);
        run.staged[i] = ompi_coll_cryptag_scratch(run.call, bcast->segment);
    }

    /* 2. hand on, segment by segment */
    segments = run.shared && bcast->call.topo->local != run.chief_local ? read_all(&run) : write_all(&run);
    if (run.shared) {
        run.shm->phase = run.phase + (uint64_t) segments + 1;
        ompi_coll_cryptag_shm_arrive(run.shm, run.shm->phase);
    }
}
