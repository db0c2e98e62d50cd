/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * See mt_rma.h.
 */
#include "mt_rma.h"

enum { ALIGN = 8, PIECES = 300 };

static const struct number {
    MPI_Datatype type;
    size_t bytes;
    char sort;                          /* u: unsigned, i: signed, d: double */
} numbers[] = {
    {MPI_UINT8_T, 1, 'u'}, {MPI_UINT16_T, 2, 'u'}, {MPI_UINT32_T, 4, 'u'}, {MPI_UINT64_T, 8, 'u'},
    {MPI_INT32_T, 4, 'i'}, {MPI_INT64_T, 8, 'i'}, {MPI_DOUBLE, 8, 'd'}
};
enum { NUMBERS = sizeof(numbers) / sizeof(*numbers), INT64 = NUMBERS - 2, DOUBLE = NUMBERS - 1 };

static const struct { MPI_Op op; const char *name; } operations[] = {
    {MPI_MIN, "min"}, {MPI_MAX, "max"}, {MPI_SUM, "sum"}, {MPI_PROD, "product"}, {MPI_BAND, "and"}, {MPI_BOR, "or"},
    {MPI_BXOR, "xor"}, {MPI_REPLACE, "replace"}, {MPI_NO_OP, "no_op"}
};
enum { FOR_DOUBLES = 3, ARITHMETIC = 4, COMMUTATIVE = 7, OPERATIONS = sizeof(operations) / sizeof(*operations) };

static const char *const kinds[MT_KINDS] = {
    "put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap"
};

const char *mt_rma_name(const mt_rma_op_t *op)
{
    static char text[64];
    const char *name = "";

    for (int i = 0; i < OPERATIONS; i++) {
        if (op->kind >= MT_ACCUMULATE && MT_COMPARE != op->kind && operations[i].op == op->op) {
            name = operations[i].name;
        }
    }
    snprintf(text, sizeof(text), "%s%s%s%s", op->request ? "r" : "", kinds[op->kind], *name ? " by " : "", name);
    return text;
}

/* ---- what is left out ---- */

/* Seen over plain ob1 and btl/tcp, with osc/pt2pt of 4.1.4 and osc/rdma of 5.0.7. */
static const struct { int series; const char *word, *why; } wrong[] = {
    {4, "flush_local", "MPI_Win_flush_local waits for what goes to other targets, for ever"},
    {4, "order", "atomic operations of one origin at one place overtake each other"},
    {4, "crowd", "atomic operations at one window now and then wait for each other"},
    {4, "spread", "a long accumulate into elements that do not lie together writes behind a buffer"},
    {5, "units", "with displacement units that differ, MPI_ERR_RMA_RANGE or wrong places"},
    {5, "unsigned", "unsigned numbers are compared as signed ones"},
    {5, "bits", "and, or, and exclusive or get lost"},
    {5, "small", "accumulating numbers of 8 and 16 bits hangs"},
    {5, "crowd", "many atomic operations at one window hang, or take minutes"},
};
enum { WRONG = sizeof(wrong) / sizeof(*wrong), MY_SERIES = OMPI_MAJOR_VERSION >= 5 ? 5 : 4 };

bool mt_rma_may(const mt_rma_model_t *m, const char *word)
{
    char no[32];
    bool may = true;

    snprintf(no, sizeof(no), "no-%s", word);
    for (int i = 0; i < WRONG && !m->nearby && !mt_flag(word); i++) {
        may = may && !(MY_SERIES == wrong[i].series && 0 == strcmp(wrong[i].word, word));
    }
    return may && !mt_flag(no);
}

void mt_rma_tell(void)
{
    for (int i = 0; i < WRONG; i++) {
        if (MY_SERIES == wrong[i].series && !mt_flag(wrong[i].word)) {
            mt_group("left out, as Open MPI does it wrong: %s: %s", wrong[i].word, wrong[i].why);
        }
    }
}

/* ---- layouts ---- */

void mt_layout_put(const mt_layout_t *l, unsigned char *memory, const unsigned char *packed)
{
    for (int i = 0; i < l->n; i++) {
        memcpy(memory + l->at[i], packed + (size_t) i * l->unit, l->unit);
    }
}

static void layout_get(const mt_layout_t *l, const unsigned char *memory, unsigned char *packed)
{
    for (int i = 0; i < l->n; i++) {
        memcpy(packed + (size_t) i * l->unit, memory + l->at[i], l->unit);
    }
}

static void layout_free(mt_layout_t *l)
{
    if (l->derived) {
        MT_MPI(MPI_Type_free(&l->type));
    }
    free(l->at);
}

/* Cut n elements among `room` into pieces: how long, and where; a vector's are alike.  Returns how many. */
static int cut(uint64_t *state, int n, size_t room, bool even, int pieces, int *lengths, int *places)
{
    size_t gaps = room - (size_t) n, at = 0;
    const size_t stride = even ? (size_t) (n / pieces) + mt_below(state, gaps / (size_t) (pieces - 1) + 1) : 0;
    int left = n;

    for (int i = 0; i < pieces; i++) {
        const size_t gap = 1 == pieces || even || 0 == mt_below(state, 4) ? 0 : mt_below(state, gaps / (size_t) (pieces - i) + 1);
        const int most = left - (pieces - i - 1);
        lengths[i] = even ? n / pieces : i + 1 == pieces ? left : 1 + (int) mt_below(state, (size_t) most);
        at = even ? stride * (size_t) i : at + gap;
        places[i] = (int) at;
        at += (size_t) lengths[i];
        gaps -= gap;
        left -= lengths[i];
    }
    return pieces;
}

/* The last first, in the order of the elements. */
static void turn(int pieces, int *lengths, int *places)
{
    for (int i = 0, j = pieces - 1; i < j; i++, j--) {
        const int length = lengths[i], place = places[i];
        lengths[i] = lengths[j]; places[i] = places[j];
        lengths[j] = length; places[j] = place;
    }
}

/* `n` elements among `room`: together, as a vector, or indexed, forwards or backwards. */
static mt_layout_t layout_draw(uint64_t *state, const struct number *number, int n, size_t room)
{
    static int lengths[PIECES], places[PIECES];
    const size_t most = mt_below(state, 4) ? 6 : PIECES;
    mt_layout_t l = {.type = number->type, .count = n, .n = n, .unit = number->bytes};
    int pieces = 0 == n ? 0 : room == (size_t) n || 0 == mt_below(state, 3) ? 1 : 1 + (int) mt_below(state, (size_t) n < most ? (size_t) n : most), k = 0;
    const bool even = pieces > 1 && 0 == n % pieces && 0 != mt_below(state, 3);

    l.at = malloc(sizeof(*l.at) * (size_t) (n + 1));
    MT_CHECK(NULL != l.at, "memory");
    pieces = cut(state, n, room, even, pieces, lengths, places);
    if (!even && 0 == mt_below(state, 3)) {
        turn(pieces, lengths, places);
    }
    if (pieces > 1) {
        MT_MPI(even ? MPI_Type_vector(pieces, lengths[0], places[1], number->type, &l.type)
                    : MPI_Type_indexed(pieces, lengths, places, number->type, &l.type));
        MT_MPI(MPI_Type_commit(&l.type));
        l.derived = true;
        l.count = 1;
    }
    for (int i = 0; i < pieces; i++) {
        for (int e = 0; e < lengths[i]; e++) {
            l.at[k] = (size_t) (places[i] + e) * l.unit;
            l.bytes = l.at[k] + l.unit > l.bytes ? l.at[k] + l.unit : l.bytes;
            k++;
        }
    }
    MT_CHECK(k == n && l.bytes <= room * l.unit, "%d of %d elements in %zu of %zu bytes", k, n, l.bytes, room * l.unit);
    return l;
}

/* ---- arithmetic ---- */

static bool operation_fits(const mt_rma_model_t *m, const struct number *number, size_t which)
{
    const MPI_Op op = operations[which].op;
    const bool orders = MPI_MIN == op || MPI_MAX == op;

    return !('d' == number->sort && which >= FOR_DOUBLES)
           && !(number->bytes < 4 && which < ARITHMETIC && !orders)     /* 4.1.4's op/avx has 255 + 1 = 255 */
           && !('u' == number->sort && orders && !mt_rma_may(m, "unsigned"))
           && !(which >= ARITHMETIC && !mt_rma_may(m, "bits"));
}

/* A commutative one. */
static MPI_Op operation_draw(uint64_t *state, const mt_rma_model_t *m, const struct number *number)
{
    size_t which;

    do {
        which = mt_below(state, COMMUTATIVE);
    } while (!operation_fits(m, number, which));
    return operations[which].op;
}

#define APPLY(type, bits) \
    do { \
        type a, b; \
        memcpy(&a, mine, sizeof(a)); \
        memcpy(&b, in, sizeof(b)); \
        b = op == MPI_SUM ? (type) (a + b) : op == MPI_PROD ? (type) (1u * a * b) : op == MPI_MIN ? (a < b ? a : b) \
            : op == MPI_MAX ? (a > b ? a : b) : bits; \
        memcpy(in, &b, sizeof(b)); \
    } while (0)
#define BITS(type) op == MPI_BAND ? (type) (a & b) : op == MPI_BOR ? (type) (a | b) : op == MPI_BXOR ? (type) (a ^ b) \
                   : op == MPI_REPLACE ? a : b

/* Overflow wraps: signed sums and products are those of unsigned numbers. */
static void apply_one(const struct number *number, MPI_Op op, const unsigned char *mine, unsigned char *in)
{
    const bool compares = op == MPI_MIN || op == MPI_MAX;

    if ('d' == number->sort) {
        APPLY(double, op == MPI_REPLACE ? a : b);
    } else if ('i' == number->sort && compares && 4 == number->bytes) {
        APPLY(int32_t, b);
    } else if ('i' == number->sort && compares) {
        APPLY(int64_t, b);
    } else if (1 == number->bytes) {
        APPLY(uint8_t, BITS(uint8_t));
    } else if (2 == number->bytes) {
        APPLY(uint16_t, BITS(uint16_t));
    } else if (4 == number->bytes) {
        APPLY(uint32_t, BITS(uint32_t));
    } else {
        APPLY(uint64_t, BITS(uint64_t));
    }
}

static void apply(const mt_rma_op_t *op, const struct number *number, unsigned char *window)
{
    for (int i = 0; i < op->to.n; i++) {
        apply_one(number, op->op, op->sent + (size_t) i * op->to.unit, window + op->displacement + op->to.at[i]);
    }
}

static void draw_numbers(uint64_t *state, const struct number *number, unsigned char *to, size_t n)
{
    double d;

    for (size_t i = 0; i < n && 'd' == number->sort; i++) {
        d = (double) mt_below(state, 1000) - 500;
        memcpy(to + i * sizeof(d), &d, sizeof(d));
    }
    if ('d' != number->sort) {
        mt_fill(to, n * number->bytes, mt_random(state));
    }
}

/* ---- the model ---- */

mt_rma_model_t mt_rma_model_draw(uint64_t *state, int ranks, size_t most)
{
    mt_rma_model_t m = {.ranks = ranks, .sizes = calloc((size_t) ranks, sizeof(*m.sizes)),
                        .windows = calloc((size_t) ranks, sizeof(*m.windows))};
    const bool alike = 0 != mt_below(state, 3);

    most = most < 64 ? 64 : most;
    most = 64 + mt_below(state, mt_below(state, 4) ? most / 16 + 1 : most);
    for (int r = 0; r < ranks; r++) {
        const size_t size = alike ? most : 0 == mt_below(state, 5) ? 0 : mt_below(state, most + 1);
        m.sizes[r] = size / ALIGN * ALIGN;
        m.windows[r] = malloc(m.sizes[r] + 1);
        MT_CHECK(NULL != m.windows[r], "memory");
        mt_fill(m.windows[r], m.sizes[r], mt_random(state));
        draw_numbers(state, &numbers[DOUBLE], m.windows[r], m.sizes[r] / 32);
    }
    return m;
}

void mt_rma_model_free(mt_rma_model_t *m)
{
    for (int r = 0; r < m->ranks; r++) {
        free(m->windows[r]);
    }
    free(m->windows);
    free(m->sizes);
}

/* ---- places ---- */

typedef struct place {
    uint64_t *state;
    mt_rma_step_t *step;
    const mt_rma_model_t *model;
    int target;
    unsigned char *window;
    size_t start, bytes;
    const struct number *number;
    int atomics;                        /* at this window, before */
} place_t;

static mt_rma_op_t *add(const place_t *p, mt_rma_kind_t kind, int origin, int n)
{
    mt_rma_step_t *s = p->step;
    const size_t room = p->bytes / p->number->bytes;
    const bool atomic = kind >= MT_ACCUMULATE, packed = kind >= MT_FETCH || (atomic && !mt_rma_may(p->model, "spread"));
    mt_rma_op_t *op;

    if (s->count == s->room) {
        s->room = 2 * s->room + 64;
        s->ops = realloc(s->ops, sizeof(*s->ops) * (size_t) s->room);
        MT_CHECK(NULL != s->ops, "memory");
    }
    op = &s->ops[s->count++];
    *op = (mt_rma_op_t) {.kind = kind, .origin = origin, .target = p->target, .place = s->places, .displacement = p->start, .room = p->bytes,
                         .element = p->number->type, .op = MPI_OP_NULL, .request = 0 == mt_below(p->state, 3)
                         && kind <= MT_GET_ACCUMULATE, .then = (mt_rma_then_t) (mt_below(p->state, 4) ? MT_NOTHING
                                                                               : mt_below(p->state, MT_WAIT + 1))};
    if (n < 0) {
        n = (int) (0 == mt_below(p->state, 20) ? 0 : 1 + mt_below(p->state, room));
    }
    op->to = layout_draw(p->state, p->number, n, packed ? (size_t) n : room);
    op->from = layout_draw(p->state, p->number, n, kind >= MT_FETCH ? (size_t) n : (size_t) n + (size_t) n / 2 + 10);
    s->bytes += (size_t) n * p->number->bytes;
    op->sent = malloc((size_t) n * p->number->bytes + 16);
    MT_CHECK(NULL != op->sent, "memory");
    draw_numbers(p->state, p->number, op->sent, (size_t) n);
    return op;
}

static void fetches(const place_t *p, mt_rma_op_t *op)
{
    op->old = malloc((size_t) op->to.n * op->to.unit + 1);
    MT_CHECK(NULL != op->old, "memory");
    layout_get(&op->to, p->window + op->displacement, op->old);
}

static bool crowded(const place_t *p) { return mt_rma_may(p->model, "crowd"); }

static int any_rank(const place_t *p) { return (int) mt_below(p->state, (size_t) p->model->ranks); }

static void put_place(const place_t *p)
{
    const mt_rma_op_t *op = add(p, MT_PUT, any_rank(p), -1);

    mt_layout_put(&op->to, p->window + op->displacement, op->sent);
}

static void get_place(const place_t *p)
{
    for (size_t i = 0; i <= mt_below(p->state, 3); i++) {
        fetches(p, add(p, MT_GET, any_rank(p), -1));
    }
}

static void sum_place(const place_t *p)
{
    const MPI_Op op = operation_draw(p->state, p->model, p->number);

    for (size_t i = 0; i < 1 + mt_below(p->state, crowded(p) ? (size_t) p->model->ranks + 1 : 1); i++) {
        mt_rma_op_t *one = add(p, MT_ACCUMULATE, any_rank(p), -1);
        one->op = op;
        apply(one, p->number, p->window);
    }
}

/* One origin; one operation, or now and then none. */
static void ordered_place(const place_t *p)
{
    const int origin = any_rank(p), n = mt_below(p->state, 3) ? -1 : 1;
    const MPI_Op does = 0 == mt_below(p->state, 6) ? MPI_REPLACE : operation_draw(p->state, p->model, p->number);

    for (size_t i = 0; i <= mt_below(p->state, mt_rma_may(p->model, "order") ? 4 : 1); i++) {
        const mt_rma_kind_t kind = 1 == n && mt_below(p->state, 2) ? MT_FETCH : mt_below(p->state, 3) ? MT_GET_ACCUMULATE
                                                                                                  : MT_ACCUMULATE;
        mt_rma_op_t *one = add(p, kind, origin, n);
        one->op = MT_ACCUMULATE != kind && 0 == mt_below(p->state, 4) ? MPI_NO_OP : does;
        if (MT_ACCUMULATE != kind) {
            fetches(p, one);
        }
        if (MPI_NO_OP != one->op) {
            apply(one, p->number, p->window);
        }
    }
}

static void counter_place(place_t *p)
{
    p->number = &numbers[INT64];
    for (size_t i = 0; i < 1 + mt_below(p->state, crowded(p) ? 2 * (size_t) p->model->ranks : 1); i++) {
        mt_rma_op_t *one = add(p, MT_FETCH, any_rank(p), 1);
        const uint64_t more = 1 + mt_below(p->state, 1000);
        memcpy(one->sent, &more, sizeof(more));
        one->op = MPI_SUM;
        one->chain = true;
        if (0 == i) {                   /* where the chain begins */
            fetches(p, one);
        }
        apply(one, p->number, p->window);
    }
}

static void compare_place(place_t *p)
{
    const int origin = any_rank(p);

    p->number = 'd' == p->number->sort ? &numbers[INT64] : p->number;
    for (size_t i = 0; i <= mt_below(p->state, mt_rma_may(p->model, "order") ? 4 : 1); i++) {
        mt_rma_op_t *one = add(p, MT_COMPARE, origin, 1);
        unsigned char *there = p->window + one->displacement, *expected = one->sent + one->to.unit;
        fetches(p, one);
        memcpy(expected, there, one->to.unit);
        if (0 == mt_below(p->state, 3)) {
            expected[0] ^= 1;
        } else {
            memcpy(there, one->sent, one->to.unit);
        }
    }
}

/* The first quarter of a window is for doubles, which no other operation may make of random bits. */
static void draw_place(place_t *p, bool doubles)
{
    const int before = p->step->count;
    const bool atomic = mt_rma_may(p->model, "atomics") && (0 == p->atomics || crowded(p));
    const size_t kind = mt_below(p->state, atomic ? 12 : 5), first = kind >= 5 && !mt_rma_may(p->model, "small") ? 2 : 0;

    p->number = &numbers[doubles ? (size_t) DOUBLE : first + mt_below(p->state, DOUBLE - first)];
    switch (kind) {
    case 0: case 1: case 2: put_place(p); break;
    case 3: case 4:        get_place(p); break;
    case 5: case 6:        sum_place(p); break;
    case 7: case 8:        ordered_place(p); break;
    case 9:                doubles ? put_place(p) : counter_place(p); break;
    case 10:               doubles ? get_place(p) : compare_place(p); break;
    default:               break;
    }
    p->step->places++;
    p->atomics += p->step->count > before && p->step->ops[before].kind >= MT_ACCUMULATE ? p->step->count - before : 0;
}

/* The operations of all places, mixed; those at one place stay in their order. */
static void mix(uint64_t *state, mt_rma_step_t *s)
{
    int *order = malloc(sizeof(*order) * (size_t) (s->count + 1)), *next = calloc((size_t) s->places + 1, sizeof(*next));
    mt_rma_op_t *mixed = malloc(sizeof(*mixed) * (size_t) (s->count + 1));

    MT_CHECK(NULL != order && NULL != next && NULL != mixed, "memory");
    for (int i = 0; i < s->count; i++) {
        const int k = (int) mt_below(state, (size_t) i + 1);
        order[i] = order[k];
        order[k] = s->ops[i].place;
    }
    for (int i = s->count - 1; i >= 0; i--) {
        next[s->ops[i].place] = i;              /* of each place, its first */
    }
    for (int i = 0; i < s->count; i++) {
        mixed[i] = s->ops[next[order[i]]++];
    }
    free(order);
    free(next);
    free(s->ops);
    s->ops = mixed;
}

mt_rma_step_t mt_rma_step_draw(uint64_t *state, mt_rma_model_t *m)
{
    static const size_t most[] = {24, 200, 5000, 100000, (size_t) 1 << 30};
    const size_t longest = most[mt_below(state, sizeof(most) / sizeof(*most))];
    mt_rma_step_t s = {.ops = NULL};

    for (int t = 0; t < m->ranks; t++) {
        const size_t doubles = m->sizes[t] / 32 * ALIGN;
        place_t p = {.state = state, .step = &s, .model = m, .target = t, .window = m->windows[t]};
        for (size_t at = 0, bytes; at < m->sizes[t]; at += bytes) {
            const size_t end = at < doubles ? doubles : m->sizes[t], left = end - at;
            p.start = at;
            bytes = ALIGN * (1 + mt_below(state, (left < longest ? left : longest) / ALIGN));
            p.bytes = bytes;
            draw_place(&p, at < doubles);
        }
    }
    mix(state, &s);
    return s;
}

void mt_rma_step_free(mt_rma_step_t *s)
{
    for (int i = 0; i < s->count; i++) {
        layout_free(&s->ops[i].from);
        layout_free(&s->ops[i].to);
        free(s->ops[i].sent);
        free(s->ops[i].old);
    }
    free(s->ops);
}
