/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Two good ends, and any order of what they do:
 *
 *     | 2 | setup 1 | step ... |
 *     setup = | end 2 | rings 1 | renew 2 | room 2 |            bits, from the highest of seven
 *     step  = | more 4 | who 1 | what 3 | ...                   fragment: size 1, tag 1; put: size 1, to 2
 *
 * Whatever the order: what was sent arrives once, in order and intact, or is at the end where nobody has
 * reaped it; what is done with is never touched again (it is freed); all memory comes back.
 */
#ifndef TESTS_FUZZ_BTL_PAIR_H
#define TESTS_FUZZ_BTL_PAIR_H

#include "fuzz_btl.h"

enum {
    PAIR_SENDS = 500, PAIR_BYTES = 2 << 20, PAIR_ARENA = 1 << 20, PAIR_ANSWERED = 0x80,
    PAIR_TURNS = 100000             /* more than it can take, whatever the sockets hold */
};

/* What is sent, and the memory it is sent from, both gone when it is done with. */
typedef struct load {
    opal_btl_crypt_item_t item;
    unsigned number;
    uint8_t data[];
} load_t;

typedef struct sent {
    bool put;
    uint8_t tag;
    size_t from, bytes, to;         /* in pair_data; in the other one's arena */
} sent_t;

typedef struct side {
    fuzz_owner_t owner;
    opal_btl_crypt_link_t *link;
    struct side *other;
    sent_t sent[PAIR_SENDS];
    unsigned count, arrived;        /* of what this one sent; what the other one has */
    unsigned held, next_reaped;     /* loads; the least that may be reaped next */
    uint8_t *arena, *shadow;
} side_t;

static uint8_t pair_data[PAIR_BYTES], pair_arenas[2][2][PAIR_ARENA];
static side_t sides[2];
static size_t pair_bytes;
static bool pair_made, pair_cut, pair_puts;

/* ---- what arrives ---- */

/* Puts arrive with the fragment that was sent after them. */
static void puts_arrived(side_t *from, unsigned until)
{
    const unsigned first = from->arrived;
    side_t *to = from->other;
    const sent_t *put;

    for (; from->arrived < until; from->arrived++) {
        put = &from->sent[from->arrived];
        FUZZ_CHECK(put->put);
        memcpy(to->shadow + put->to, pair_data + put->from, put->bytes);
    }
    for (unsigned i = first; i < until; i++) {
        put = &from->sent[i];
        FUZZ_CHECK(0 == memcmp(to->arena + put->to, to->shadow + put->to, put->bytes));
    }
}

static void pair_send(side_t *side, bool put, size_t bytes, uint8_t tag, size_t to);

static bool pair_deliver(fuzz_owner_t *owner, uint8_t tag, const uint8_t *bytes, size_t count)
{
    side_t *to = (side_t *) owner, *from = to->other;
    const sent_t *fragment;
    unsigned at = from->arrived;

    while (at < from->count && from->sent[at].put) {
        at++;
    }
    FUZZ_CHECK(at < from->count);
    puts_arrived(from, at);
    fragment = &from->sent[at];
    FUZZ_CHECK(tag == fragment->tag && count == fragment->bytes && 0 == memcmp(bytes, pair_data + fragment->from, count));
    from->arrived++;
    if (0 != (tag & PAIR_ANSWERED)) {
        pair_send(to, false, tag & 0x7f, tag & 0x7f, 0);    /* as callbacks do */
    }
    return true;
}

/* ---- what they do ---- */

static void load_free(side_t *side, load_t *load)
{
    memset(load, 0xdd, sizeof(*load));
    free(load);
    --side->held;
}

static size_t pair_size(unsigned code)
{
    static const size_t dear[] = {0, 1, 7, 8, 9, 100, 4096, 8192, 16375, 16376, 16377, 16384, 32760, 65536, 300000, 1 << 20};

    return code < sizeof(dear) / sizeof(dear[0]) ? dear[code] : 80 * (size_t) (code - 16);
}

static void pair_send(side_t *side, bool put, size_t bytes, uint8_t tag, size_t to)
{
    sent_t *sent = &side->sent[side->count];
    opal_btl_crypt_frame_t frame = {.type = put ? OPAL_BTL_CRYPT_PUT : OPAL_BTL_CRYPT_FRAGMENT, .tag = tag};
    struct iovec pieces[2];
    load_t *load;

    bytes = put && 0 == bytes ? 1 : bytes;
    to %= PAIR_ARENA;
    to = to + bytes > PAIR_ARENA ? PAIR_ARENA - bytes : to;
    if (PAIR_SENDS == side->count || pair_bytes + bytes > PAIR_BYTES || side->link->state < OPAL_BTL_CRYPT_OPEN) {
        return;
    }
    *sent = (sent_t) {.put = put, .tag = tag, .from = 977 * side->count % (PAIR_BYTES - bytes), .bytes = bytes, .to = to};
    pair_bytes += bytes;
    pair_puts |= put;
    load = malloc(sizeof(*load) + bytes);
    FUZZ_CHECK(NULL != load);
    load->number = side->count++;
    memcpy(load->data, pair_data + sent->from, bytes);
    frame.bytes = bytes;
    frame.address = (uintptr_t) (side->other->arena + to);
    pieces[0] = (struct iovec) {load->data, bytes / 3};
    pieces[1] = (struct iovec) {load->data + bytes / 3, bytes - bytes / 3};
    opal_btl_crypt_item_make(&load->item, &frame, pieces, 2);
    ++side->held;
    if (opal_btl_crypt_link_post(side->link, &load->item)) {
        load_free(side, load);
    }
}

static void pair_reap(side_t *side)
{
    for (opal_btl_crypt_item_t *item; NULL != (item = opal_btl_crypt_link_reap(side->link));) {
        load_t *load = (load_t *) item;

        if (item != &side->link->hello) {
            FUZZ_CHECK(load->number >= side->next_reaped && load->number < side->count);
            side->next_reaped = load->number + 1;
            load_free(side, load);
        }
    }
}

static void pair_read(side_t *side)
{
    if (fuzz_readable(side->link)) {
        opal_btl_crypt_link_read(side->link);
    }
}

/* FAILED stays so, and a good end fails only after a cut. */
static void pair_step(fuzz_input_t *in, side_t *side, unsigned what, unsigned more)
{
    const opal_btl_crypt_state_t before = side->link->state;
    size_t size;

    switch (what) {
    case 0:
    case 1:
        size = pair_size(take8(in));
        if (0 == what) {
            pair_send(side, false, size, (uint8_t) take8(in), 0);
        } else {
            pair_send(side, true, size, 0, 16 * (size_t) take16(in));
        }
        break;
    case 2: opal_btl_crypt_link_pump(side->link); break;
    case 3: pair_read(side); break;
    case 4: pair_reap(side); break;
    case 5:
        for (unsigned i = 0; i < more; i++) {
            opal_btl_crypt_link_pump(side->link);
            pair_read(side->other);
        }
        break;
    case 6:
        if (15 == more) {
            pair_cut = true;
            (void) shutdown(side->link->fd, SHUT_RDWR);
        }
        break;
    default: break;
    }
    FUZZ_CHECK(OPAL_BTL_CRYPT_FAILED != side->link->state || pair_cut);
    FUZZ_CHECK(OPAL_BTL_CRYPT_FAILED != before || OPAL_BTL_CRYPT_FAILED == side->link->state);
}

/* ---- the end ---- */

/* Until all that `from` sent is with the other one. */
static void carry(side_t *from)
{
    side_t *to = from->other;

    for (int i = 0; from->held > 0 || NULL != from->link->queue.first || opal_btl_crypt_ring_used(&from->link->ring) > 0
                    || fuzz_waiting(to->link->fd) > 0; i++) {
        FUZZ_CHECK(i < PAIR_TURNS && OPAL_BTL_CRYPT_FAILED != from->link->state && fuzz_readable(to->link));
        opal_btl_crypt_link_pump(from->link);
        pair_reap(from);
        pair_read(to);
    }
    puts_arrived(from, from->count);
    FUZZ_CHECK(!pair_puts || 0 == memcmp(to->arena, to->shadow, PAIR_ARENA));
    FUZZ_CHECK(NULL == from->link->ring.bytes && NULL == to->link->rest && NULL == to->link->frame && 0 == to->link->put_left);
}

static void closes(side_t *side)
{
    opal_btl_crypt_link_close(side->link, 0);
    pair_read(side->other);
    FUZZ_CHECK(OPAL_BTL_CRYPT_ENDED == side->other->link->state);
    ++fuzz_ended;
}

/* What came before the cut has arrived; nothing else. */
static void cut(side_t *side)
{
    (void) shutdown(side->link->fd, SHUT_RDWR);
    for (int i = 0; i < 2; i++) {
        for (int turn = 0; fuzz_readable(sides[i].link); turn++) {
            FUZZ_CHECK(turn < PAIR_TURNS);
            opal_btl_crypt_link_read(sides[i].link);
        }
        FUZZ_CHECK(OPAL_BTL_CRYPT_FAILED == sides[i].link->state && sides[i].arrived <= sides[i].count);
    }
}

/* What nobody reaped is in one of the queues, once. */
static void destroy(side_t *side)
{
    opal_btl_crypt_queue_t *queues[] = {&side->link->sealed, &side->link->queue};

    pair_reap(side);
    for (int i = 0; i < 2; i++) {
        for (opal_btl_crypt_item_t *item; NULL != (item = opal_btl_crypt_queue_take(queues[i]));) {
            if (item != &side->link->hello) {
                load_t *load = (load_t *) item;

                FUZZ_CHECK(load->number >= side->next_reaped);
                side->next_reaped = load->number + 1;
                load_free(side, load);
            }
        }
    }
    FUZZ_CHECK(0 == side->held);
    opal_btl_crypt_link_destroy(side->link);
}

static void pair_end(unsigned how)
{
    if (pair_cut || 3 == how) {
        cut(&sides[how % 2]);
    } else if (2 == how) {
        return;                                 /* in the middle of it */
    } else {
        pair_read(&sides[0]);                   /* at least the hello */
        carry(&sides[0]);
        if (0 == how) {
            carry(&sides[1]);
            carry(&sides[0]);                   /* what was answered */
        }
        closes(&sides[0]);
    }
}

static void pair_fresh(void)
{
    for (size_t i = 0; !pair_made && i < PAIR_BYTES; i++) {
        pair_data[i] = (uint8_t) (i + i / 251 + i / 65521);
    }
    pair_made = true;
    if (pair_puts) {
        memset(pair_arenas, 0, sizeof(pair_arenas));
    }
    memset(sides, 0, sizeof(sides));
    pair_bytes = 0;
    pair_cut = pair_puts = false;
}

static void fuzz_two(fuzz_input_t *in)
{
    static const uint64_t renew[] = {OPAL_CRYPT_TLS_RECORDS_RENEW, 2, 3, 17};
    static const int room[] = {0, 1, 16384, 65536};
    const unsigned setup = take8(in);
    const size_t rings = 0 != (setup & 0x10) ? OPAL_BTL_CRYPT_RINGS_MAX - 1 : 0;
    int pair[2];

    pair_fresh();
    fuzz_pair(pair, room[setup % 4]);
    fuzz_engine.ring_bytes = rings;
    for (int i = 0; i < 2; i++) {
        sides[i].owner.deliver = pair_deliver;
        sides[i].other = &sides[1 - i];
        sides[i].arena = pair_arenas[i][0];
        sides[i].shadow = pair_arenas[i][1];
        sides[i].link = fuzz_end(pair[i], 1 == i, renew[setup / 4 % 4], &sides[i].owner);
        opal_btl_crypt_link_send_hello(sides[i].link);
    }
    while (in->at < in->end) {
        const unsigned step = take8(in);

        pair_step(in, &sides[step / 8 % 2], step % 8, step / 16);
    }
    pair_end(setup / 32 % 4);
    destroy(&sides[0]);
    destroy(&sides[1]);
    FUZZ_CHECK(rings == fuzz_engine.ring_bytes);
    fuzz_engine.ring_bytes = 0;
}

#endif
