/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * O-RD: the doubling in rank order.  Within a node plaintext is exchanged;
 * between nodes pieces that were received sealed are forwarded unchanged, and
 * the blocks in plaintext are sealed as one piece (coll_cryptag_ord_plan.c
 * decides which blocks those are).
 */
#include "coll_cryptag.h"
#include "coll_cryptag_ord_plan.h"

#include <string.h>

typedef struct {
    ompi_coll_cryptag_call_t *call;
    const ompi_coll_cryptag_ord_plan_t *plan;
    ompi_coll_cryptag_part_t *sealed;   /* [pieces] */
    uint8_t *joined;                    /* for pieces whose blocks are not adjacent */
    int got, opened;                    /* pieces are received, and opened, in the order of their numbers */
} ord_t;

static bool adjacent(const ompi_coll_cryptag_ord_piece_t *piece)
{
    for (int i = 1; i < piece->count; i++) {
        if (piece->blocks[i] != piece->blocks[i - 1] + 1) {
            return false;
        }
    }
    return true;
}

static void seal_piece(ord_t *ord, int number)
{
    const ompi_coll_cryptag_ord_piece_t *piece = &ord->plan->piece[number];
    const ompi_coll_cryptag_name_t name = { piece->origin, OPAL_CRYPT_TO_ALL, (uint32_t) piece->item };
    const uint8_t *plain = ompi_coll_cryptag_block(ord->call, piece->blocks[0]);
    uint8_t *end = ord->joined;

    if (!adjacent(piece)) {
        for (int i = 0; i < piece->count; i++) {
            size_t bytes = ompi_coll_cryptag_block_bytes(ord->call, piece->blocks[i]);
            memcpy(end, ompi_coll_cryptag_block(ord->call, piece->blocks[i]), bytes);
            end += bytes;
        }
        plain = ord->joined;
    }
    ompi_coll_cryptag_seal(ord->call, &name, plain, ord->sealed[number].plain_bytes, ord->sealed[number].base);
}

static void open_piece(ord_t *ord, int number)
{
    const ompi_coll_cryptag_ord_piece_t *piece = &ord->plan->piece[number];
    const ompi_coll_cryptag_name_t name = { piece->origin, OPAL_CRYPT_TO_ALL, (uint32_t) piece->item };
    const bool direct = adjacent(piece);
    uint8_t *plain = direct ? ompi_coll_cryptag_block(ord->call, piece->blocks[0]) : ord->joined;

    ompi_coll_cryptag_open(ord->call, &name, ord->sealed[number].base, plain, ord->sealed[number].plain_bytes);
    for (int i = 0; !direct && i < piece->count; i++) {
        size_t bytes = ompi_coll_cryptag_block_bytes(ord->call, piece->blocks[i]);
        memcpy(ompi_coll_cryptag_block(ord->call, piece->blocks[i]), plain, bytes);
        plain += bytes;
    }
}

static void open_pending(ord_t *ord)
{
    for (; ord->opened < ord->got; ord->opened++) {
        if (ord->plan->piece[ord->opened].origin != ord->call->topo->rank) {
            open_piece(ord, ord->opened);
        }
    }
}

static const ompi_coll_cryptag_part_t *piece_parts(ord_t *ord, const int *numbers, int count)
{
    ompi_coll_cryptag_part_t *parts = ompi_coll_cryptag_scratch(ord->call, (size_t) count * sizeof(*parts));

    for (int i = 0; i < count; i++) {
        parts[i] = ord->sealed[numbers[i]];
    }
    return parts;
}

static void do_round(ord_t *ord, const ompi_coll_cryptag_ord_round_t *step)
{
    ompi_coll_cryptag_call_t *call = ord->call;
    ompi_coll_cryptag_part_t plain_in[2], plain_out[2];

    /* 1. post the receive */
    if (step->from_here) {
        ompi_coll_cryptag_recv(call, step->round.from, OMPI_COLL_CRYPTAG_PLAIN, plain_in,
                               ompi_coll_cryptag_run_parts(call, &step->round.received, plain_in));
    } else {
        ompi_coll_cryptag_recv(call, step->round.from, OMPI_COLL_CRYPTAG_SEALED,
                               piece_parts(ord, step->in, step->in_count), step->in_count);
    }

    /* 2. open what has to be sent in plaintext, or sealed again   3. send */
    if (step->to_here) {
        open_pending(ord);
        ompi_coll_cryptag_send(call, step->round.to, OMPI_COLL_CRYPTAG_PLAIN, plain_out,
                               ompi_coll_cryptag_run_parts(call, &step->round.sent, plain_out));
    } else {
        if (step->sealed >= 0) {
            open_pending(ord);
            seal_piece(ord, step->sealed);
            ord->got++;
        }
        ompi_coll_cryptag_send(call, step->round.to, OMPI_COLL_CRYPTAG_SEALED,
                               piece_parts(ord, step->out, step->out_count), step->out_count);
    }

    /* 4. open what arrived before, while this travels */
    open_pending(ord);
    ompi_coll_cryptag_wait(call);
    ord->got += step->in_count;
}

void ompi_coll_cryptag_o_rd(ompi_coll_cryptag_call_t *call)
{
    ompi_coll_cryptag_module_t *module = call->module;
    ord_t ord = { .call = call };
    size_t total = 0;
    uint8_t *base;

    if (NULL == module->ord_plan && NULL == (module->ord_plan = ompi_coll_cryptag_ord_plan_new(call->topo))) {
        ompi_coll_cryptag_no_memory(call->comm, (size_t) call->topo->ranks * sizeof(int));
    }
    ord.plan = module->ord_plan;
    ord.sealed = ompi_coll_cryptag_scratch(call, (size_t) ord.plan->pieces * sizeof(*ord.sealed));
    for (int i = 0; i < ord.plan->pieces; i++) {
        const ompi_coll_cryptag_ord_piece_t *piece = &ord.plan->piece[i];
        size_t bytes = 0;

        for (int k = 0; k < piece->count; k++) {
            bytes += ompi_coll_cryptag_block_bytes(call, piece->blocks[k]);
        }
        ord.sealed[i] = (ompi_coll_cryptag_part_t) { NULL, ompi_coll_cryptag_sealed_bytes(call, bytes), bytes };
        total += ord.sealed[i].wire_bytes;
    }
    base = ompi_coll_cryptag_scratch(call, total);
    for (int i = 0; i < ord.plan->pieces; i++) {
        ord.sealed[i].base = base;
        base += ord.sealed[i].wire_bytes;
    }
    ord.joined = ompi_coll_cryptag_scratch(call, call->offset[call->topo->ranks]);

    for (int k = 0; k < ord.plan->rounds; k++) {
        do_round(&ord, &ord.plan->round[k]);
    }
    open_pending(&ord);
}
