/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * All-gather among some of the ranks, as a ring or a doubling, of items that
 * are ready to be sent: sealed once and forwarded unchanged, or plain within a
 * node.  Items that arrive are passed to `arrived` after the next step was
 * posted, so that opening overlaps with the network.
 */
#include "coll_cryptag.h"

/* The parts of a run of items, as one list. */
static const ompi_coll_cryptag_part_t *parts_of(ompi_coll_cryptag_call_t *call,
                                                const ompi_coll_cryptag_gather_t *gather,
                                                const ompi_coll_cryptag_lane_t *lane,
                                                const ompi_coll_cryptag_run_t *run, int *count)
{
    ompi_coll_cryptag_part_t *list;
    int n = 0;

    if (run->first + run->count <= gather->n) {
        *count = lane->first[run->first + run->count] - lane->first[run->first];
        return &lane->parts[lane->first[run->first]];
    }
    list = ompi_coll_cryptag_scratch(call, (size_t) lane->first[gather->n] * sizeof(*list));
    for (int k = 0; k < run->count; k++) {
        int item = ompi_coll_cryptag_item(run, k, gather->n);
        for (int i = lane->first[item]; i < lane->first[item + 1]; i++) {
            list[n++] = lane->parts[i];
        }
    }
    *count = n;
    return list;
}

static void post_round(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_gather_t *gather,
                       const ompi_coll_cryptag_round_t *round)
{
    const ompi_coll_cryptag_part_t *parts;
    int count;

    for (int i = 0; i < gather->lane_count; i++) {
        const ompi_coll_cryptag_lane_t *lane = &gather->lanes[i];
        parts = parts_of(call, gather, lane, &round->received, &count);
        ompi_coll_cryptag_recv(call, lane->members[round->from], gather->form, parts, count);
    }
    for (int i = 0; i < gather->lane_count; i++) {
        const ompi_coll_cryptag_lane_t *lane = &gather->lanes[i];
        parts = parts_of(call, gather, lane, &round->sent, &count);
        ompi_coll_cryptag_send(call, lane->members[round->to], gather->form, parts, count);
    }
}

static void announce_arrived(const ompi_coll_cryptag_gather_t *gather, const ompi_coll_cryptag_run_t *run)
{
    if (NULL == gather->arrived) {
        return;
    }
    for (int i = 0; i < gather->lane_count; i++) {
        for (int k = 0; k < run->count; k++) {
            gather->arrived(gather->context, i, ompi_coll_cryptag_item(run, k, gather->n));
        }
    }
}

void ompi_coll_cryptag_gather(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_gather_t *gather)
{
    int rounds = ompi_coll_cryptag_rounds(gather->kind, gather->n);
    ompi_coll_cryptag_run_t came = { 0, 0 };

    for (int i = 0; i < rounds; i++) {
        ompi_coll_cryptag_round_t round;

        ompi_coll_cryptag_round(gather->kind, gather->n, gather->me, i, &round);
        post_round(call, gather, &round);
        announce_arrived(gather, &came);
        ompi_coll_cryptag_wait(call);
        came = round.received;
    }
    announce_arrived(gather, &came);
}

ompi_coll_cryptag_kind_t ompi_coll_cryptag_gather_kind(size_t item_bytes)
{
    return item_bytes >= OMPI_COLL_CRYPTAG_RING_MIN ? OMPI_COLL_CRYPTAG_RING : OMPI_COLL_CRYPTAG_DOUBLING;
}

/* A maximum may include a value twice, so doubling works for any number of
 * ranks. */
int ompi_coll_cryptag_agree(ompi_coll_cryptag_call_t *call, int value, int lost)
{
    const int n = ompi_comm_size(call->comm), rank = ompi_comm_rank(call->comm);
    const int rounds = ompi_coll_cryptag_rounds(OMPI_COLL_CRYPTAG_DOUBLING, n);
    const ompi_coll_cryptag_metrics_t before = call->metrics;
    const int failure = call->failure;

    call->failure = OMPI_SUCCESS;
    for (int i = 0; i < rounds; i++) {
        int other = 0;
        ompi_coll_cryptag_part_t mine = { (uint8_t *) &value, sizeof(value), sizeof(value) };
        ompi_coll_cryptag_part_t theirs = { (uint8_t *) &other, sizeof(other), sizeof(other) };
        ompi_coll_cryptag_round_t round;

        ompi_coll_cryptag_round(OMPI_COLL_CRYPTAG_DOUBLING, n, rank, i, &round);
        ompi_coll_cryptag_recv(call, round.from, OMPI_COLL_CRYPTAG_PLAIN, &theirs, 1);
        ompi_coll_cryptag_send(call, round.to, OMPI_COLL_CRYPTAG_PLAIN, &mine, 1);
        ompi_coll_cryptag_wait(call);
        value = other > value ? other : value;
        if (OMPI_SUCCESS != call->failure) {        /* its value is unknown, and must not be passed on as 0 */
            value = lost > value ? lost : value;
        }
    }
    call->failure = OMPI_SUCCESS != failure ? failure : call->failure;
    call->metrics = before;
    return value;
}
