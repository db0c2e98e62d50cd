/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Makes the plan of O-RD by simulating the rounds for all ranks that matter
 * to this one.
 *
 * The rule for a message to another node: sealed pieces that contain only blocks
 * to be sent are forwarded unchanged, in the order in which they were received;
 * the remaining blocks are sealed together, as one new piece, which is kept for
 * later rounds.
 */
#include "coll_cryptag_ord_plan.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int *list;
    int count, capacity;
} ids_t;

typedef struct {
    const ompi_coll_cryptag_topo_t *topo;
    ompi_coll_cryptag_ord_piece_t *pieces;  /* of all simulated ranks */
    int count, capacity;
    ids_t *held;                /* [ranks] pieces each has, in the order it got them */
    ids_t *sent;                /* [ranks] pieces in its message of this round */
    int *made;                  /* [ranks] pieces it has sealed */
    int *covered;               /* [ranks] stamp: block is in a chosen piece */
    int stamp;
    bool *needed;               /* [rounds + 1][ranks] does its state before a round matter? */
    bool failed;                /* out of memory */
} play_t;

static void ids_add(play_t *play, ids_t *ids, int id)
{
    if (ids->count == ids->capacity) {
        int capacity = 0 == ids->capacity ? 8 : 2 * ids->capacity;
        int *list = realloc(ids->list, (size_t) capacity * sizeof(*list));
        if (NULL == list) {
            play->failed = true;
            return;
        }
        ids->list = list;
        ids->capacity = capacity;
    }
    ids->list[ids->count++] = id;
}

static bool in_run(const ompi_coll_cryptag_run_t *run, int block, int ranks)
{
    return (block - run->first + ranks) % ranks < run->count;
}

static bool fits(const play_t *play, const ompi_coll_cryptag_ord_piece_t *piece,
                 const ompi_coll_cryptag_run_t *run)
{
    for (int i = 0; i < piece->count; i++) {
        if (!in_run(run, piece->blocks[i], play->topo->ranks)
            || play->covered[piece->blocks[i]] == play->stamp) {
            return false;
        }
    }
    return true;
}

/* A new piece of `rank` with the blocks of the run that are not covered. */
static int seal_rest(play_t *play, int rank, const ompi_coll_cryptag_run_t *run)
{
    ompi_coll_cryptag_ord_piece_t piece = { .origin = rank, .item = play->made[rank] };

    piece.blocks = malloc((size_t) run->count * sizeof(int));
    if (NULL != piece.blocks && play->count == play->capacity) {
        int capacity = 0 == play->capacity ? 64 : 2 * play->capacity;
        void *pieces = realloc(play->pieces, (size_t) capacity * sizeof(*play->pieces));
        if (NULL != pieces) {
            play->pieces = pieces;
            play->capacity = capacity;
        }
    }
    if (NULL == piece.blocks || play->count == play->capacity) {
        free(piece.blocks);
        play->failed = true;
        return -1;
    }
    for (int k = 0; k < run->count; k++) {
        int block = ompi_coll_cryptag_item(run, k, play->topo->ranks);
        if (play->covered[block] != play->stamp) {
            piece.blocks[piece.count++] = block;
        }
    }
    if (0 == piece.count) {
        free(piece.blocks);
        return -1;
    }
    play->made[rank]++;
    play->pieces[play->count] = piece;
    ids_add(play, &play->held[rank], play->count);
    return play->count++;
}

/* Fill play->sent[rank]; returns the piece that it has to seal for that, or -1. */
static int compose(play_t *play, int rank, const ompi_coll_cryptag_round_t *round)
{
    ids_t *sent = &play->sent[rank];
    int fresh;

    sent->count = 0;
    if (ompi_coll_cryptag_same_node(play->topo, rank, round->to)) {
        return -1;
    }
    play->stamp++;
    for (int i = 0; i < play->held[rank].count; i++) {
        const ompi_coll_cryptag_ord_piece_t *piece = &play->pieces[play->held[rank].list[i]];
        if (fits(play, piece, &round->sent)) {
            for (int k = 0; k < piece->count; k++) {
                play->covered[piece->blocks[k]] = play->stamp;
            }
            ids_add(play, sent, play->held[rank].list[i]);
        }
    }
    fresh = seal_rest(play, rank, &round->sent);
    if (fresh >= 0) {
        ids_add(play, sent, fresh);
    }
    return fresh;
}

/* Backwards from the end: the ranks whose state before a round affects ours. */
static void find_needed(play_t *play, int rounds)
{
    const int ranks = play->topo->ranks;

    play->needed[rounds * ranks + play->topo->rank] = true;
    for (int k = rounds - 1; k >= 0; k--) {
        for (int i = 0; i < ranks; i++) {
            if (play->needed[(k + 1) * ranks + i]) {
                ompi_coll_cryptag_round_t round;
                ompi_coll_cryptag_round(OMPI_COLL_CRYPTAG_DOUBLING, ranks, i, k, &round);
                play->needed[k * ranks + i] = play->needed[k * ranks + round.from] = true;
            }
        }
    }
}

static bool copy_ids(int **to, int *count, const ids_t *from)
{
    *count = from->count;
    *to = malloc((size_t) (from->count + 1) * sizeof(int));
    if (NULL != *to && from->count > 0) {
        memcpy(*to, from->list, (size_t) from->count * sizeof(int));
    }
    return NULL != *to;
}

/* One round for all ranks that matter; ours is recorded in `own`. */
static void play_round(play_t *play, int k, ompi_coll_cryptag_ord_round_t *own)
{
    const ompi_coll_cryptag_topo_t *topo = play->topo;
    const bool *before = &play->needed[k * topo->ranks], *after = &play->needed[(k + 1) * topo->ranks];
    ompi_coll_cryptag_round_t round;

    for (int i = 0; i < topo->ranks; i++) {
        if (before[i]) {
            ompi_coll_cryptag_round(OMPI_COLL_CRYPTAG_DOUBLING, topo->ranks, i, k, &round);
            int fresh = compose(play, i, &round);
            if (i == topo->rank) {
                own->round = round;
                own->sealed = fresh;
            }
        }
    }
    for (int i = 0; i < topo->ranks; i++) {
        if (after[i]) {
            ompi_coll_cryptag_round(OMPI_COLL_CRYPTAG_DOUBLING, topo->ranks, i, k, &round);
            for (int n = 0; n < play->sent[round.from].count; n++) {
                ids_add(play, &play->held[i], play->sent[round.from].list[n]);
            }
        }
    }
    own->to_here = ompi_coll_cryptag_same_node(topo, own->round.to, topo->rank);
    own->from_here = ompi_coll_cryptag_same_node(topo, own->round.from, topo->rank);
    if (!copy_ids(&own->out, &own->out_count, &play->sent[topo->rank])
        || !copy_ids(&own->in, &own->in_count, &play->sent[own->round.from])) {
        play->failed = true;
    }
}

static void renumber(int *list, int count, const int *number)
{
    for (int i = 0; i < count; i++) {
        list[i] = number[list[i]];
    }
}

/* Keep our pieces only, numbered in the order in which we got them. */
static bool keep_own(play_t *play, ompi_coll_cryptag_ord_plan_t *plan)
{
    const ids_t *held = &play->held[play->topo->rank];
    int *number = malloc((size_t) (play->count + 1) * sizeof(*number));

    plan->piece = calloc((size_t) held->count + 1, sizeof(*plan->piece));
    if (NULL == number || NULL == plan->piece) {
        free(number);
        return false;
    }
    plan->pieces = held->count;
    for (int i = 0; i < held->count; i++) {
        number[held->list[i]] = i;
        plan->piece[i] = play->pieces[held->list[i]];
        play->pieces[held->list[i]].blocks = NULL;
    }
    for (int k = 0; k < plan->rounds; k++) {
        renumber(plan->round[k].out, plan->round[k].out_count, number);
        renumber(plan->round[k].in, plan->round[k].in_count, number);
        renumber(&plan->round[k].sealed, plan->round[k].sealed >= 0 ? 1 : 0, number);
    }
    free(number);
    return true;
}

static bool play_begin(play_t *play, int rounds)
{
    const size_t ranks = (size_t) play->topo->ranks;

    play->held = calloc(ranks, sizeof(*play->held));
    play->sent = calloc(ranks, sizeof(*play->sent));
    play->made = calloc(ranks, sizeof(*play->made));
    play->covered = calloc(ranks, sizeof(*play->covered));
    play->needed = calloc(ranks * ((size_t) rounds + 1), sizeof(*play->needed));
    return NULL != play->held && NULL != play->sent && NULL != play->made && NULL != play->covered
           && NULL != play->needed;
}

static void play_end(play_t *play)
{
    for (int i = 0; i < play->topo->ranks; i++) {
        free(NULL != play->held ? play->held[i].list : NULL);
        free(NULL != play->sent ? play->sent[i].list : NULL);
    }
    for (int i = 0; i < play->count; i++) {
        free(play->pieces[i].blocks);
    }
    free(play->pieces);
    free(play->held);
    free(play->sent);
    free(play->made);
    free(play->covered);
    free(play->needed);
}

ompi_coll_cryptag_ord_plan_t *ompi_coll_cryptag_ord_plan_new(const ompi_coll_cryptag_topo_t *topo)
{
    const int rounds = ompi_coll_cryptag_rounds(OMPI_COLL_CRYPTAG_DOUBLING, topo->ranks);
    ompi_coll_cryptag_ord_plan_t *plan = calloc(1, sizeof(*plan));
    play_t play = { .topo = topo };

    if (NULL == plan || NULL == (plan->round = calloc((size_t) rounds + 1, sizeof(*plan->round)))) {
        free(plan);
        return NULL;
    }
    plan->rounds = rounds;
    if (play_begin(&play, rounds)) {
        find_needed(&play, rounds);
        for (int k = 0; k < rounds && !play.failed; k++) {
            play_round(&play, k, &plan->round[k]);
        }
        play.failed = play.failed || !keep_own(&play, plan);
    } else {
        play.failed = true;
    }
    play_end(&play);
    if (play.failed) {
        ompi_coll_cryptag_ord_plan_free(plan);
        return NULL;
    }
    return plan;
}

void ompi_coll_cryptag_ord_plan_free(ompi_coll_cryptag_ord_plan_t *plan)
{
    if (NULL == plan) {
        return;
    }
    for (int k = 0; k < plan->rounds; k++) {
        free(plan->round[k].out);
        free(plan->round[k].in);
    }
    for (int i = 0; i < plan->pieces; i++) {
        free(plan->piece[i].blocks);
    }
    free(plan->piece);
    free(plan->round);
    free(plan);
}
