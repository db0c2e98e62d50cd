/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A step from a seed.  What is drawn is only what the network can do: of messages
 * within the node (rank 1's) the header, and frames that are made up.
 */
#include "machine.h"

static const size_t lengths[] = {
    0, 1, 7, 8, 15, 16, 24, 100, 1000, CHOP_MIN - 41, CHOP_MIN - 25, CHOP_MIN - 1, CHOP_MIN, CHOP_MIN + 1, CHOP_MIN + 16,
    CHOP_MIN + 24, CHOP_MIN + 40, CHUNK, CHOP_MIN + CHUNK - 1, CHOP_MIN + CHUNK, CHOP_MIN + CHUNK + 1,
    CHOP_MIN + 2 * CHUNK, CHOP_MIN + 3 * CHUNK + 17, 65535, 65536, 65537, 140001};
static const size_t large[] = {1048577, 3145729, 4200000};

#define PICK(state, array) ((array)[mt_below(state, sizeof(array) / sizeof((array)[0]))])

static size_t length_of(uint64_t *state)
{
    switch (mt_below(state, 60)) {
    case 0:  return PICK(state, large);
    case 1:
    case 2:
    case 3:  return mt_below(state, 200000);
    default: return PICK(state, lengths);
    }
}

static void draw_send(send_t *s, uint64_t *state, int from)
{
    *s = (send_t){.from = from, .comm = 0 == mt_below(state, 6), .tag = 1 + (int) mt_below(state, 2),
                  .mode = (int) mt_below(state, 6), .bytes = length_of(state)};
    s->mode = s->mode < MODES ? s->mode : ISEND;
}

/* For a message that is sent: or for any, in four ways. */
static void draw_receive(receive_t *r, uint64_t *state, const send_t *s)
{
    *r = (receive_t){.way = (int) mt_below(state, WAYS), .comm = s->comm,
                     .source = mt_below(state, 3) > 0 ? s->from : MPI_ANY_SOURCE,
                     .tag = mt_below(state, 3) > 0 ? s->tag : MPI_ANY_TAG, .gaps = 0 == mt_below(state, 4)};
    switch (mt_below(state, 8)) {
    case 0:  r->room = s->bytes / 2; break;
    case 1:  r->room = PICK(state, lengths); break;
    case 2:  r->room = s->bytes; break;
    case 3:  r->room = 5000000; break;
    default: r->room = 30000 + s->bytes; break;
    }
    if (way_probes(r->way) && mt_below(state, 2)) {
        r->room = PROBED;
    }
}

/* ---- attacks ---- */

static void draw_raw(char *plan, uint64_t *state, const char *kind, int nth, long most)
{
    static const long sizes[] = {0, 1, 7, 8, 16, 23, 24, 25, 32, 39, 40, 41, 48, 1024, CHOP_MIN + 24, CHOP_MIN + 40,
                                 CHOP_MIN + 41, CHOP_MIN + 48, CHOP_MIN + 104, 60000, 300000, 2000000};
    static const int firsts[] = {0x11, 0x12, 0x13, 0x14, 0x15, 0x10, 0x1f, 0x01, 0x02, 0x22, 0x00, 0xff};
    char hex[2 * 40 + 1] = "";
    int n = (int) mt_below(state, 41);
    long size = PICK(state, sizes);

    for (int i = 0; i < n; i++) {
        int byte = 0 == i ? PICK(state, firsts) : 1 == i && mt_below(state, 4) ? 0 : (int) mt_below(state, mt_below(state, 2) ? 4 : 256);
        sprintf(hex + 2 * i, "%02x", byte);
    }
    snprintf(plan, PLAN, "%s %d 1 raw %ld %s", kind, nth, size < most ? size : most, n > 0 ? hex : "-");
}

/* Longer frames than these travel by rendezvous, and ob1 writes those past a buffer that
 * is too short (pml_crypt_recv.c): no PML above it can help. */
static void draw_plan(char *plan, uint64_t *state, bool ucx)
{
    static const char *const kinds[] = {"direct", "direct", "first", "first", "segment"};
    static const long cuts[] = {1, 8, 16, 17, 24, 40, 1000, CHOP_MIN, CHOP_MIN + 40, 100000};
    static const long extends[] = {1, 9, 16, 24, 64, 3112, CHOP_MIN, 20000, 60000, 300000, 2097152};
    const char *kind = PICK(state, kinds);
    const bool segment = 's' == kind[0];
    const long most = ucx ? 3000000 : segment ? 40000 : 60000;
    int nth = (int) mt_below(state, 3), count = 1 + (int) mt_below(state, 2);
    const long longer = PICK(state, extends);
    long at = mt_below(state, 3) ? (long) mt_below(state, segment ? 16 : 24) : -1 - (long) mt_below(state, 16);

    switch (mt_below(state, ucx ? 14 : 13)) {
    case 0:
    case 1:  snprintf(plan, PLAN, "%s %d %d flip %ld %d", kind, nth, count, at, 1 << mt_below(state, 8)); break;
    case 2:  snprintf(plan, PLAN, "%s %d %d cut %ld", kind, nth, count, PICK(state, cuts)); break;
    case 3:
    case 4:  snprintf(plan, PLAN, "%s %d %d extend %ld", kind, nth, count, longer < most ? longer : most); break;
    case 5:  snprintf(plan, PLAN, "%s %d %d drop", kind, nth, count); break;
    case 6:  snprintf(plan, PLAN, "%s %d %d replay %d", kind, nth, count, (int) mt_below(state, 3)); break;
    case 7:  snprintf(plan, PLAN, "%s %d %d hold %d", kind, nth, count, 1 + (int) mt_below(state, 2)); break;
    case 8:  snprintf(plan, PLAN, "%s %d %d retag 3", segment ? "direct" : kind, nth, count); break;
    case 9:  snprintf(plan, PLAN, "%s %d %d move %d", segment ? "first" : kind, nth, count, (int) mt_below(state, 2)); break;
    case 10: snprintf(plan, PLAN, "%s %d 2 exchange", segment ? "direct" : kind, nth); break;
    case 13: snprintf(plan, PLAN, "%s %d %d from %d", segment ? "direct" : kind, nth, count,
                      mt_below(state, 2) ? 1 + (int) mt_below(state, 3) : (int) mt_below(state, 1 << 20)); break;
    default: draw_raw(plan, state, kind, nth, most); break;
    }
}

/* Rank 1 is on rank 0's node: what passes between the two is reached by no network. */
static void draw_local_plan(char *plan, uint64_t *state)
{
    static const char *const kinds[] = {"local", "local-large"};
    const char *kind = PICK(state, kinds);

    if (mt_below(state, 2)) {
        snprintf(plan, PLAN, "%s 0 1 flip %d %d", kind, (int) mt_below(state, 24), 1 << mt_below(state, 8));
    } else {
        draw_raw(plan, state, kind, (int) mt_below(state, 2), CHOP_MIN);
    }
}

/* A message of which a part is missing for good is received for ever: such a part is
 * kept back, not lost. */
static void draw_release(step_t *step, uint64_t *state)
{
    step->release = 0 == mt_below(state, 6) ? NEVER : 1 + (int) mt_below(state, 2);
    for (int rank = 0; rank < RANKS; rank++) {
        if (NULL != strstr(step->plans[rank], "segment") && NEVER == step->release) {
            step->release = BEFORE;
        }
    }
}

void step_draw(step_t *step, uint64_t seed, long number, bool ucx)
{
    uint64_t state = mt_mix(seed) + (uint64_t) number * 1000003u;
    int sealed = 2 + (int) mt_below(&state, 2);

    memset(step, 0, sizeof(*step));
    step->sends_count = 1 + (int) mt_below(&state, 4);
    for (int i = 0; i < step->sends_count; i++) {
        int from = (int) mt_below(&state, 8);
        draw_send(&step->sends[i], &state, 0 == from ? 1 : 1 == from ? 5 - sealed : sealed);
    }
    step->receives_count = 1 + (int) mt_below(&state, 4);
    for (int i = 0; i < step->receives_count; i++) {
        draw_receive(&step->receives[i], &state, &step->sends[mt_below(&state, (size_t) step->sends_count)]);
    }
    if (mt_below(&state, 8) > 0) {
        draw_plan(step->plans[sealed], &state, ucx);
    }
    if (0 == mt_below(&state, 6)) {
        draw_plan(step->plans[5 - sealed], &state, ucx);
    }
    if (0 == mt_below(&state, 6)) {
        draw_local_plan(step->plans[1], &state);
    }
    draw_release(step, &state);
}
