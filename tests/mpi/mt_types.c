/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 */
#include "mt_types.h"

enum { POISON = 0x5b, ENTRIES = 6000, BLOCKS = 7, SLACK = 64, TRIES = 1000 };

/* A type while it is built: owns its handle and map. */
typedef struct draft {
    MPI_Datatype type;
    mt_entry_t *map;
    int entries;
    char text[400];
} draft_t;

static const struct {
    MPI_Datatype type;
    int bytes;
    const char *name;
} basics[] = {
    {MPI_CHAR, 1, "char"}, {MPI_SHORT, sizeof(short), "short"}, {MPI_INT, sizeof(int), "int"},
    {MPI_DOUBLE, sizeof(double), "double"},
#if OMPI_MAJOR_VERSION < 5      /* 5.0.7 itself mixes it up: plain fails in a message of a process to itself */
    {MPI_LONG_DOUBLE, sizeof(long double), "long double"},
#endif
    {MPI_C_DOUBLE_COMPLEX, 2 * sizeof(double), "complex"}, {MPI_INT64_T, 8, "int64"}, {MPI_FLOAT, 4, "float"},
};
enum { BASICS = sizeof(basics) / sizeof(basics[0]) };

static MPI_Aint extent_of(MPI_Datatype type)
{
    MPI_Aint lower, extent;

    MT_MPI(MPI_Type_get_extent(type, &lower, &extent));
    return extent;
}

static void drop(draft_t *d)
{
    for (int i = 0; i < BASICS; i++) {
        if (d->type == basics[i].type) {
            d->type = MPI_DATATYPE_NULL;
        }
    }
    if (MPI_DATATYPE_NULL != d->type) {
        MT_MPI(MPI_Type_free(&d->type));
    }
    free(d->map);
    d->map = NULL;
}

/* `count` copies of a child, one behind the other from `at` on. */
static void put(draft_t *to, const draft_t *child, MPI_Aint at, int count)
{
    const MPI_Aint extent = extent_of(child->type);

    to->map = realloc(to->map, sizeof(*to->map) * (size_t) (to->entries + count * child->entries + 1));
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < child->entries; k++) {
            to->map[to->entries++] = (mt_entry_t){at + i * extent + child->map[k].at, child->map[k].bytes};
        }
    }
}

static draft_t basic(uint64_t *state)
{
    const size_t i = mt_below(state, BASICS);
    draft_t d = {.type = basics[i].type, .map = malloc(sizeof(*d.map)), .entries = 1};

    d.map[0] = (mt_entry_t){0, basics[i].bytes};
    snprintf(d.text, sizeof(d.text), "%s", basics[i].name);
    return d;
}

static int between(uint64_t *state, int low, int high) { return low + (int) mt_below(state, (size_t) (high - low + 1)); }

static draft_t draw(uint64_t *state, int depth);

static draft_t vector(uint64_t *state, const draft_t *c, bool in_bytes)
{
    int count = between(state, 1, 5), length = between(state, 0, 4), stride = between(state, -6, 6);
    const MPI_Aint extent = extent_of(c->type), step = in_bytes ? stride * 8 + (length + 1) * extent : stride * extent;
    draft_t d = {.map = NULL};

    MT_MPI(in_bytes ? MPI_Type_create_hvector(count, length, step, c->type, &d.type)
                    : MPI_Type_vector(count, length, stride, c->type, &d.type));
    for (int i = 0; i < count; i++) {
        put(&d, c, i * step, length);
    }
    snprintf(d.text, sizeof(d.text), "%s(%d,%d,%ld of %.300s)", in_bytes ? "hvector" : "vector", count, length,
             (long) (in_bytes ? step : stride), c->text);
    return d;
}

static draft_t indexed(uint64_t *state, const draft_t *c, int kind)
{
    static const char *const names[] = {"indexed", "hindexed", "indexed_block", "hindexed_block"};
    int count = between(state, 1, BLOCKS), lengths[BLOCKS], places[BLOCKS], one = between(state, 1, 3);
    const MPI_Aint extent = extent_of(c->type);
    MPI_Aint bytes[BLOCKS], at = between(state, -9, 9);
    draft_t d = {.map = NULL};

    for (int i = 0; i < count; i++) {
        lengths[i] = kind >= 2 ? one : between(state, 0, 3);
        places[i] = (int) at;
        bytes[i] = at * extent + (kind % 2 ? 8 * i : 0);
        at += lengths[i] + between(state, 0, 3);
    }
    if (0 == mt_below(state, 3)) {      /* backwards in memory */
        for (int i = 0; i < count / 2; i++) {
            int k = count - 1 - i, swap = places[i], other = lengths[i];
            MPI_Aint moved = bytes[i];
            places[i] = places[k]; places[k] = swap;
            bytes[i] = bytes[k]; bytes[k] = moved;
            lengths[i] = lengths[k]; lengths[k] = other;
        }
    }
    MT_MPI(0 == kind   ? MPI_Type_indexed(count, lengths, places, c->type, &d.type)
           : 1 == kind ? MPI_Type_create_hindexed(count, lengths, bytes, c->type, &d.type)
           : 2 == kind ? MPI_Type_create_indexed_block(count, one, places, c->type, &d.type)
                       : MPI_Type_create_hindexed_block(count, one, bytes, c->type, &d.type));
    for (int i = 0; i < count; i++) {
        put(&d, c, kind % 2 ? bytes[i] : places[i] * extent, lengths[i]);
    }
    snprintf(d.text, sizeof(d.text), "%s(%d of %.300s)", names[kind], count, c->text);
    return d;
}

static draft_t structure(uint64_t *state, int depth)
{
    int count = between(state, 1, 3), lengths[3];
    MPI_Aint at = between(state, -32, 32), places[3];
    MPI_Datatype types[3];
    draft_t members[3], d = {.map = NULL};

    snprintf(d.text, sizeof(d.text), "struct(");
    for (int i = 0; i < count; i++) {
        members[i] = draw(state, depth - 1);
        types[i] = members[i].type;
        lengths[i] = between(state, 0, 2);
        places[i] = at;
        at += lengths[i] * extent_of(types[i]) + 8 * between(state, 0, 3);
        put(&d, &members[i], places[i], lengths[i]);
        snprintf(d.text + strlen(d.text), sizeof(d.text) - strlen(d.text), "%d %.80s;", lengths[i], members[i].text);
    }
    MT_MPI(MPI_Type_create_struct(count, lengths, places, types, &d.type));
    for (int i = 0; i < count; i++) {
        drop(&members[i]);
    }
    return d;
}

/* In C order: the last dimension runs fastest. */
static draft_t subarray(uint64_t *state, const draft_t *c)
{
    int dimensions = between(state, 1, 4), sizes[4], parts[4], starts[4], at[4] = {0}, fortran = (int) mt_below(state, 2);
    const MPI_Aint extent = extent_of(c->type);
    draft_t d = {.map = NULL};

    for (int i = 0; i < dimensions; i++) {
        sizes[i] = between(state, 1, 5);
        parts[i] = between(state, 1, sizes[i]);
        starts[i] = between(state, 0, sizes[i] - parts[i]);
    }
    MT_MPI(MPI_Type_create_subarray(dimensions, sizes, parts, starts, fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C, c->type, &d.type));
    for (bool more = true; more;) {
        MPI_Aint place = 0;
        for (int i = 0; i < dimensions; i++) {
            int k = fortran ? dimensions - 1 - i : i;
            place = place * sizes[k] + starts[k] + at[k];
        }
        put(&d, c, place * extent, 1);
        more = false;
        for (int i = dimensions - 1; i >= 0 && !more; i--) {
            int k = fortran ? dimensions - 1 - i : i;
            more = ++at[k] < parts[k];
            at[k] = more ? at[k] : 0;
        }
    }
    snprintf(d.text, sizeof(d.text), "subarray(%d-d%s of %.300s)", dimensions, fortran ? ", Fortran" : "", c->text);
    return d;
}

/* Blocks of a row of processes: which elements this one has, in their order.  Open MPI makes
 * no such type of a process that has none. */
static draft_t darray(uint64_t *state, const draft_t *c)
{
    int processes = between(state, 1, 4), me = (int) mt_below(state, (size_t) processes), size = between(state, 1, 17),
        block = between(state, 1, 4), distribution = MPI_DISTRIBUTE_CYCLIC;
    const MPI_Aint extent = extent_of(c->type);
    draft_t d = {.map = NULL};

    me = me * block < size ? me : 0;
    MT_MPI(MPI_Type_create_darray(processes, me, 1, &size, &distribution, &block, &processes, MPI_ORDER_C, c->type, &d.type));
    for (int i = 0; i < size; i++) {
        if (i / block % processes == me) {
            put(&d, c, i * extent, 1);
        }
    }
    snprintf(d.text, sizeof(d.text), "darray(%d of %d, %d by %d of %.300s)", me, processes, size, block, c->text);
    return d;
}

static draft_t resized(uint64_t *state, const draft_t *c)
{
    MPI_Aint lower, extent;
    draft_t d = {.map = NULL};

    MT_MPI(MPI_Type_get_extent(c->type, &lower, &extent));
    lower += 8 * between(state, -2, 2);
    extent += 8 * between(state, 0, 5);
    MT_MPI(MPI_Type_create_resized(c->type, lower, extent, &d.type));
    put(&d, c, 0, 1);
    snprintf(d.text, sizeof(d.text), "resized(%ld,%ld of %.300s)", (long) lower, (long) extent, c->text);
    return d;
}

static draft_t around(uint64_t *state, const draft_t *c)
{
    draft_t d = {.map = NULL};
    int count;

    switch (mt_below(state, 12)) {
    case 0:
        count = between(state, 1, 6);
        MT_MPI(MPI_Type_contiguous(count, c->type, &d.type));
        put(&d, c, 0, count);
        snprintf(d.text, sizeof(d.text), "contiguous(%d of %.300s)", count, c->text);
        return d;
    case 1: case 2:
        return vector(state, c, false);
    case 3:
        return vector(state, c, true);
    case 4: case 5: case 6: case 7:
        return indexed(state, c, between(state, 0, 3));
    case 8:
        return subarray(state, c);
    case 9:
        return c->entries > 0 ? darray(state, c) : resized(state, c);     /* Open MPI wants data */
    case 10:
        return resized(state, c);
    default:
        MT_MPI(MPI_Type_dup(c->type, &d.type));
        put(&d, c, 0, 1);
        snprintf(d.text, sizeof(d.text), "dup(%.300s)", c->text);
        return d;
    }
}

static draft_t draw(uint64_t *state, int depth)
{
    draft_t child, d;

    if (0 == depth) {
        return basic(state);
    }
    if (0 == mt_below(state, 5)) {
        return structure(state, depth);
    }
    child = draw(state, depth - 1);
    if (child.entries > ENTRIES / 100) {
        return child;
    }
    d = around(state, &child);
    drop(&child);
    return d;
}

/* ---- finished types ---- */

static void bounds(const mt_type_t *t, int count, MPI_Aint *low, MPI_Aint *high)
{
    *low = *high = 0;
    for (int i = 0; i < t->entries; i++) {
        const MPI_Aint first = t->map[i].at, last = first + (count - 1) * t->extent, end = t->map[i].bytes;
        *low = first < *low ? first : *low;
        *low = last < *low ? last : *low;
        *high = first + end > *high ? first + end : *high;
        *high = last + end > *high ? last + end : *high;
    }
}

mt_type_t mt_type_of(MPI_Datatype type, mt_entry_t *map, int entries, const char *text)
{
    mt_type_t t = {.type = type, .map = map, .entries = entries};

    for (int i = 0; i < entries; i++) {
        t.size += (size_t) map[i].bytes;
    }
    t.extent = extent_of(type);
    snprintf(t.text, sizeof(t.text), "%s", text);
    MT_MPI(MPI_Type_commit(&t.type));
    return t;
}

static bool overlaps(const mt_type_t *t, int count)
{
    mt_span_t s = mt_span_new(t, count);
    const long low = s.origin - s.memory;
    bool twice = false;

    memset(s.memory, 0, s.bytes);
    for (int i = 0; i < count && !twice; i++) {
        for (int k = 0; k < t->entries && !twice; k++) {
            unsigned char *p = s.memory + low + i * t->extent + t->map[k].at;
            for (int b = 0; b < t->map[k].bytes; b++) {
                twice = twice || p[b]++;
            }
        }
    }
    mt_span_free(&s);
    return twice;
}

mt_type_t mt_type_draw(uint64_t *state, int depth, int *count, size_t most)
{
    for (int i = 0; i < TRIES; i++) {
        draft_t d = draw(state, depth);
        mt_type_t t = mt_type_of(d.type, d.map, d.entries, d.text);
        const size_t wanted = 1 + mt_below(state, most);
        MPI_Aint low, high;
        *count = 0 == t.size ? 0 : 1 + (int) (wanted / t.size);
        bounds(&t, *count, &low, &high);
        if (t.size > 0 && d.entries <= ENTRIES && high - low < (MPI_Aint) (16 * most + 65536) && !overlaps(&t, *count)) {
            return t;
        }
        mt_type_free(&t);
    }
    MT_CHECK(false, "no datatype was drawn");
    abort();
}

void mt_type_free(mt_type_t *t)
{
    draft_t d = {.type = t->type, .map = t->map};

    drop(&d);
    t->map = NULL;
}

/* ---- memory ---- */

mt_span_t mt_span_new(const mt_type_t *t, int count)
{
    MPI_Aint low, high;
    mt_span_t s;

    bounds(t, count, &low, &high);
    low -= SLACK + ((low % 16) + 16) % 16;
    s.bytes = (size_t) (high - low) + SLACK;
    s.memory = NULL != accel_malloc ? accel_malloc(s.bytes) : aligned_alloc(64, (s.bytes + 63) / 64 * 64);
    MT_CHECK(NULL != s.memory, "%zu bytes", s.bytes);
    s.origin = s.memory - low;
    mt_span_poison(&s);
    return s;
}

void mt_span_poison(mt_span_t *s) { memset(s->memory, POISON, s->bytes); }
void mt_span_free(mt_span_t *s) { free(s->memory); }

typedef struct walk {
    const mt_type_t *t;
    long item;
    int entry;
} walk_t;

/* The next element's place, and how many of its bytes are within n. */
static unsigned char *step(walk_t *w, const mt_span_t *s, size_t n, size_t *bytes)
{
    const mt_entry_t *e = &w->t->map[w->entry];
    unsigned char *p = s->origin + w->item * w->t->extent + e->at;

    *bytes = (size_t) e->bytes < n ? (size_t) e->bytes : n;
    if (++w->entry == w->t->entries) {
        w->entry = 0;
        w->item++;
    }
    return p;
}

void mt_span_put(const mt_type_t *t, mt_span_t *s, const unsigned char *packed, size_t n)
{
    walk_t w = {.t = t};

    for (size_t done = 0, bytes; done < n; done += bytes) {
        unsigned char *p = step(&w, s, n - done, &bytes);
        memcpy(p, packed + done, bytes);
    }
}

void mt_span_get(const mt_type_t *t, const mt_span_t *s, unsigned char *packed, size_t n)
{
    walk_t w = {.t = t};

    for (size_t done = 0, bytes; done < n; done += bytes) {
        const unsigned char *p = step(&w, s, n - done, &bytes);
        memcpy(packed + done, p, bytes);
    }
}

long mt_span_differs(const mt_type_t *t, const mt_span_t *s, const unsigned char *packed, size_t n)
{
    mt_span_t wanted = {.memory = malloc(s->bytes), .bytes = s->bytes};
    size_t i = 0;

    wanted.origin = wanted.memory + (s->origin - s->memory);
    mt_span_poison(&wanted);
    mt_span_put(t, &wanted, packed, n);
    while (i < s->bytes && wanted.memory[i] == s->memory[i]) {
        i++;
    }
    free(wanted.memory);
    return i == s->bytes ? -1 : (long) i - (s->origin - s->memory);
}
