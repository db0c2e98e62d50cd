/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a receive may end in, whatever an attacker did: with a message of this step,
 * every byte of it, once, and in order; with as much of it as there is room, and
 * MPI_ERR_TRUNCATE; with our error class and nothing of any message; cancelled.
 *
 * Fewer than 8 bytes do not say which message they are of.  Such arrivals are only
 * counted for each envelope ("weak").
 */
#include "machine.h"

enum { GUARD = 64, POISON = 0xa7, STRONG = 8 };

/* ---- buffers ---- */

static size_t place(const landing_t *l, size_t i)
{
    return l->how.gaps ? i / PIECE * STRIDE + i % PIECE : i;
}

static size_t span(const landing_t *l)
{
    return l->how.gaps ? l->room / PIECE * STRIDE : l->room;
}

void landing_open(landing_t *l, const receive_t *how, size_t room)
{
    MPI_Datatype piece;

    *l = (landing_t){.how = *how, .room = how->gaps ? room / PIECE * PIECE : room, .type = MPI_BYTE,
                     .request = MPI_REQUEST_NULL};
    l->count = (int) l->room;
    if (how->gaps) {
        MT_MPI(MPI_Type_contiguous(PIECE, MPI_BYTE, &piece));
        MT_MPI(MPI_Type_create_resized(piece, 0, STRIDE, &l->type));
        MT_MPI(MPI_Type_commit(&l->type));
        MT_MPI(MPI_Type_free(&piece));
        l->count = (int) (l->room / PIECE);
    }
    l->base = malloc(span(l) + 2 * GUARD);
    MT_CHECK(NULL != l->base, "memory");
    memset(l->base, POISON, span(l) + 2 * GUARD);
    l->at = l->base + GUARD;
}

void landing_close(landing_t *l)
{
    free(l->base);
    l->base = NULL;
    if (l->how.gaps) {
        MT_MPI(MPI_Type_free(&l->type));
    }
}

static bool poison(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (POISON != p[i]) {
            return false;
        }
    }
    return true;
}

/* Nothing but the first n bytes of the layout was written. */
static bool around_is_clean(const landing_t *l, size_t n)
{
    size_t after = n < l->room ? place(l, n) : span(l);

    if (!poison(l->base, GUARD) || !poison(l->at + after, span(l) - after + GUARD)) {
        return false;
    }
    for (size_t i = 0; l->how.gaps && i + STRIDE <= span(l); i += STRIDE) {
        if (!poison(l->at + i + PIECE, STRIDE - PIECE)) {
            return false;
        }
    }
    return true;
}

static bool nothing_left(const landing_t *l)
{
    for (size_t i = 0; i < l->room; i++) {
        unsigned char byte = l->at[place(l, i)];
        if (0 != byte && POISON != byte) {
            return false;
        }
    }
    return around_is_clean(l, l->room);
}

static bool begins_with(const landing_t *l, size_t n, uint64_t key)
{
    unsigned char flat[4096];

    if (!l->how.gaps) {
        return n == mt_differs(l->at, n, key);
    }
    for (size_t from = 0; from < n; from += sizeof(flat)) {
        size_t some = n - from < sizeof(flat) ? n - from : sizeof(flat);
        for (size_t i = 0; i < some; i++) {
            flat[i] = l->at[place(l, from + i)];
        }
        if (some != mt_differs(flat, some, key + from / 8)) {
            return false;
        }
    }
    return true;
}

/* ---- what may arrive ---- */

static void add(expected_t *list, int *count, int from, int comm, int tag, size_t bytes, long number, bool touched)
{
    list[*count] = (expected_t){.from = from, .comm = comm, .tag = tag, .bytes = bytes, .touched = touched,
                                .key = mt_key((int) number, from, *count, 77)};
    ++*count;
}

/* After what an attacker may touch come, for each envelope, as many messages as there are
 * receives, and nobody touches them: so every receive ends, and what works goes on working. */
int expect(const step_t *step, long number, expected_t **made)
{
    static const size_t sizes[] = {8, 100, CHOP_MIN, CHOP_MIN + 1, CHOP_MIN + CHUNK + 9, 8, 16, 0, 1000};
    expected_t *list = malloc(EXPECTED * sizeof(*list));
    int count = 0;

    MT_CHECK(NULL != list, "memory");
    for (int i = 0; i < step->sends_count; i++) {
        const send_t *s = &step->sends[i];
        add(list, &count, s->from, s->comm, s->tag, s->bytes, number, '\0' != step->plans[s->from][0]);
    }
    for (int i = 0; i < step->sends_count; i++) {
        const send_t *s = &step->sends[i];
        bool before = false;
        for (int k = 0; k < i; k++) {
            before = before || (step->sends[k].from == s->from && step->sends[k].comm == s->comm && step->sends[k].tag == s->tag);
        }
        for (int k = 0; k < step->receives_count && !before; k++) {
            add(list, &count, s->from, s->comm, s->tag, sizes[(size_t) (number + count) % (sizeof(sizes) / sizeof(*sizes))],
                number, false);
        }
    }
    *made = list;
    return count;
}

/* ---- judgment ---- */

static bool same_envelope(const landing_t *l, const expected_t *e)
{
    return e->comm == l->how.comm && e->from == l->status.MPI_SOURCE && e->tag == l->status.MPI_TAG
           && (MPI_ANY_SOURCE == l->how.source || e->from == l->how.source)
           && (MPI_ANY_TAG == l->how.tag || e->tag == l->how.tag);
}

static const char *arrived(landing_t *l, expected_t *list, int count, bool in_order, int weak[], size_t n, bool cut)
{
    bool of_any = false;

    for (int i = 0; i < count; i++) {
        expected_t *e = &list[i];
        if (!same_envelope(l, e) || (cut ? e->bytes <= l->room : e->bytes != n) || !begins_with(l, n, e->key)) {
            continue;
        }
        of_any = true;
        if (n < STRONG) {
            weak[i]++;
            break;
        }
        if (e->seen) {
            return "a message was received twice";
        }
        for (int k = i + 1; k < count && in_order; k++) {
            if (list[k].seen && list[k].from == e->from && list[k].comm == e->comm && list[k].tag == e->tag) {
                return "a message was received after one that was sent later";
            }
        }
        e->seen = true;
        break;
    }
    return !of_any ? "what was received is no message of this step" : around_is_clean(l, n) ? NULL : "bytes beside the message were written";
}

static bool is_ours(int rc)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    MT_MPI(MPI_Error_string(rc, text, &length));
    return NULL != strstr(text, "MPI_ERR_CRYPT");
}

const char *check(landing_t *l, expected_t *list, int count, bool in_order, int weak[], tally_t *tally)
{
    int n = 0, class = MPI_SUCCESS;

    if (l->cancelled) {
        tally->cancelled++;
        return nothing_left(l) && poison(l->at, span(l)) ? NULL : "a receive that was cancelled wrote";
    }
    if (MPI_SUCCESS == l->rc) {
        tally->exact++;
        MT_MPI(MPI_Get_count(&l->status, MPI_BYTE, &n));
        if (n < 0 || (size_t) n > l->room) {
            return "the status counts more bytes than there is room for";
        }
        if (in_order && l->probed && (size_t) n != l->probed_bytes) {
            return "the probe said another length";
        }
        return arrived(l, list, count, in_order, weak, (size_t) n, false);
    }
    MT_MPI(MPI_Error_class(l->rc, &class));
    if (MPI_ERR_TRUNCATE == class) {
        tally->cut++;
        return arrived(l, list, count, in_order, weak, l->room, true);
    }
    tally->refused++;
    return !is_ours(l->rc) ? "an error that is not ours" : nothing_left(l) ? NULL : "something was left of a message that was refused";
}

/* Of an envelope with weak arrivals as many messages may not have been seen. */
const char *check_all(const expected_t *list, int count, const int weak[])
{
    for (int i = 0; i < count; i++) {
        int unseen = 0, arrivals = 0;
        for (int k = 0; k < count; k++) {
            if (list[k].from == list[i].from && list[k].comm == list[i].comm && list[k].tag == list[i].tag) {
                unseen += !list[k].seen && !list[k].touched;
                arrivals += weak[k];
            }
        }
        if (unseen > arrivals) {
            return "a message that nobody touched did not arrive";
        }
    }
    return NULL;
}
