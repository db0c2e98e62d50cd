/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A broadcast that is sealed once: the root seals; one rank of each node, its chief (the
 * root on its own node), forwards the sealed segments to chiefs of other nodes.  They are
 * in the node's shared memory, and every rank opens them from there into its own buffer:
 * copying plaintext would touch every byte once more.  A short message, which the host
 * sends inline, is opened by the chief and forwarded in a binomial tree of plain messages,
 * where no rank waits for readers.
 *
 *     root: r_e 1, s_e m     others, in shared memory: r_d 1, s_d m
 *                            ... by messages, only the chiefs of other nodes
 *
 * Between nodes a binomial tree, or a chain, which moves the fewest bytes per
 * node once there are several segments.  In round k a chief receives segment k and
 * meanwhile forwards, and opens, segment k - 1.
 *
 * Flags: + s + 1, the chief: segment s is in shared memory; others: they have opened it;
 *        + segments + 1: this rank no longer reads the segment.
 */
#include "coll_cryptag.h"
#include "coll_cryptag_bcast.h"
#include "coll_cryptag_shm.h"

#include <string.h>

enum { NOBODY = -1, MOST_CHILDREN = 32 };
enum { AHEAD = 64 << 10, AWAITED = 64 };        /* bytes of a broadcast without waits; segments between waits */

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

/* ---- the tree; v is the index counted from its root ---- */

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

/* Copy between plain_of and the user's buffer, if they differ. */
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
    ompi_coll_cryptag_note(run->call, rc);
}

/* Wait until all ranks of the node have opened what is in the slot for segment s.  Our own
 * sends from it are complete: they were waited for in the round after it arrived. */
static void await_slot(tree_run_t *run, int s)
{
    if (run->shared && s >= OMPI_COLL_CRYPTAG_BCAST_SLOTS) {
        ompi_coll_cryptag_shm_await_all(run->shm, run->phase + (uint64_t) (s - OMPI_COLL_CRYPTAG_BCAST_SLOTS) + 1);
    }
}

/* Tell the others of the node that they can read segment s. */
static void publish(tree_run_t *run, int s)
{
    if (run->shared) {
        ompi_coll_cryptag_shm_arrive(run->shm, run->phase + (uint64_t) s + 1);
    }
}

/* ---- the rounds ---- */

/* The root: put segment s where it is sent from. */
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

/* Ranks below do not answer, and may be late: without acknowledgments, segments of a long broadcast, and of those that
 * follow, would pile up in their memory. */
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

/* A rank that only opens what the chief of its node publishes.  If their lengths differ, which is an error in the
 * program, it reads nothing, but keeps in step.  Returns how many segments there were. */
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

    if (run->shared) {      /* no rank reads the last call's data any more */
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

    /* 1. our parents and children */
    plan_nodes(&run);
    plan_ranks(&run);
    for (int i = 0; i < 2; i++) {
        run.sealed[i] = ompi_coll_cryptag_scratch(run.call, sealed_bytes);
        run.staged[i] = ompi_coll_cryptag_scratch(run.call, bcast->segment);
    }

    /* 2. forward, segment by segment */
    segments = run.shared && bcast->call.topo->local != run.chief_local ? read_all(&run) : write_all(&run);
    if (run.shared) {
        run.shm->phase = run.phase + (uint64_t) segments + 1;
        ompi_coll_cryptag_shm_arrive(run.shm, run.shm->phase);
    }
}
