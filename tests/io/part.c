/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 */
#include "part.h"

enum { VIEW_HINDEXED, VIEW_STRUCT, VIEW_DISPLACED, VIEW_SUBARRAY, VIEWS };
enum { MEMORY_BYTES, MEMORY_INTS, MEMORY_GAPS, MEMORY_SHUFFLED, MEMORIES };

static const size_t int_bytes = sizeof(int);

part_t part_draw(uint64_t *state, size_t span, int size)
{
    part_t part = {.unit = 1 + (mt_below(state, 2) ? mt_below(state, 5000) : mt_below(state, 100)), .slots = size};

    part.from = mt_below(state, 3) ? 0 : mt_below(state, span);
    part.to = mt_below(state, 3) ? span : part.from + mt_below(state, span - part.from + 1);
    part.view = (int) mt_below(state, VIEWS);
    part.memory = (int) mt_below(state, MEMORIES);
    part.seed = 1 + mt_below(state, 1 << 30);
    if (0 == mt_below(state, 2)) {      /* some have several units of a round */
        part.slots = size + (int) mt_below(state, (size_t) (PART_SLOTS - size + 1));
    }
    for (int i = 0; i < part.slots; i++) {
        part.owner[i] = i < size ? i : (int) mt_below(state, (size_t) size);
    }
    for (int i = part.slots - 1; i > 0; i--) {
        int k = (int) mt_below(state, (size_t) i + 1), other = part.owner[k];
        part.owner[k] = part.owner[i];
        part.owner[i] = other;
    }
    if ((part.to - part.from) / part.unit > 3000) {
        part.unit = (part.to - part.from) / 3000 + 1;
    }
    if (0 == mt_below(state, 3)) {
        part.unit += int_bytes - part.unit % int_bytes;
        part.to -= (part.to - part.from) % int_bytes;
    }
    part_clip(&part, part.to);
    return part;
}

void part_clip(part_t *part, size_t end)
{
    part->to = part->to > end ? end : part->to;
    part->from = part->from > part->to ? part->to : part->from;
    part->etype = 0 == part->unit % int_bytes && 0 == (part->to - part->from) % int_bytes ? int_bytes : 1;
}

size_t part_pack(const part_t *part, int rank, const unsigned char *file, unsigned char *packed)
{
    size_t n = 0, slot = 0;

    for (size_t at = part->from; at < part->to; at += part->unit, slot++) {
        size_t bytes = part->to - at < part->unit ? part->to - at : part->unit;
        if (part->owner[slot % (size_t) part->slots] == rank) {
            memcpy(packed + n, file + at, bytes);
            n += bytes;
        }
    }
    return n;
}

/* ---- views ---- */

static void resize(MPI_Datatype *type, size_t extent)
{
    MPI_Datatype resized;

    MT_MPI(MPI_Type_create_resized(*type, 0, (MPI_Aint) extent, &resized));
    MT_MPI(MPI_Type_free(type));
    *type = resized;
}

/* Units at several places of a round, as blocks or as members of a struct. */
static MPI_Datatype several(const part_t *part, const MPI_Aint *at, int count, MPI_Datatype etype, MPI_Datatype unit)
{
    int bytes[PART_SLOTS], one[PART_SLOTS];
    MPI_Datatype type, types[PART_SLOTS];

    for (int i = 0; i < count; i++) {
        bytes[i] = (int) (part->unit / part->etype);
        one[i] = 1;
        types[i] = unit;
    }
    if (VIEW_STRUCT == part->view) {
        MT_MPI(MPI_Type_create_struct(count, one, at, types, &type));
    } else {
        MT_MPI(MPI_Type_create_hindexed(count, bytes, at, etype, &type));
    }
    resize(&type, part->unit * (size_t) part->slots);
    return type;
}

void part_set_view(const part_t *part, MPI_File f, int rank)
{
    MPI_Datatype etype = 1 == part->etype ? MPI_BYTE : MPI_INT, unit, type;
    MPI_Aint at[PART_SLOTS];
    MPI_Offset displacement = (MPI_Offset) part->from;
    int count = 0, own = 0;

    MT_MPI(MPI_Type_contiguous((int) (part->unit / part->etype), etype, &unit));
    for (int i = 0; i < part->slots; i++) {
        if (rank == part->owner[i]) {
            own = i;
            at[count++] = (MPI_Aint) (part->unit * (size_t) i);
        }
    }
    if (count > 1 || VIEW_HINDEXED == part->view || VIEW_STRUCT == part->view) {
        type = several(part, at, count, etype, unit);
    } else if (VIEW_DISPLACED == part->view) {
        MT_MPI(MPI_Type_dup(unit, &type));
        resize(&type, part->unit * (size_t) part->slots);
        displacement += (MPI_Offset) at[0];
    } else {
        int sizes[2] = {part->slots, (int) (part->unit / part->etype)}, sub[2] = {1, sizes[1]}, start[2] = {own, 0};
        MT_MPI(MPI_Type_create_subarray(2, sizes, sub, start, MPI_ORDER_C, etype, &type));
    }
    MT_MPI(MPI_Type_commit(&type));
    MT_MPI(MPI_File_set_view(f, displacement, etype, type, "native", MPI_INFO_NULL));
    MT_MPI(MPI_Type_free(&type));
    MT_MPI(MPI_Type_free(&unit));
}

/* ---- memory ---- */

/* Pieces one after the other, with gaps, from the front or from the back. */
static void lay_out(part_memory_t *memory, uint64_t state, size_t n, bool backwards)
{
    size_t left = n, at = 0, most = n / (PART_PIECES - 1) + 1;

    while (left > 0) {
        size_t bytes = PART_PIECES - 1 == memory->pieces ? left : 1 + mt_below(&state, 2 * most);
        bytes = bytes < left ? bytes : left;
        memory->bytes[memory->pieces++] = bytes;
        left -= bytes;
    }
    for (int i = 0; i < memory->pieces; i++) {
        int piece = backwards ? memory->pieces - 1 - i : i;
        memory->at[piece] = at;
        at += memory->bytes[piece] + mt_below(&state, memory->bytes[piece] + 1);
    }
    memory->room = at;
}

part_memory_t part_memory(const part_t *part, size_t n)
{
    part_memory_t memory = {.type = MPI_BYTE, .count = (int) n, .room = n, .pieces = 1, .bytes = {n}};
    int bytes[PART_PIECES];
    MPI_Aint at[PART_PIECES];

    if (MEMORY_INTS == part->memory && 0 == n % int_bytes) {
        memory.type = MPI_INT;
        memory.count = (int) (n / int_bytes);
    }
    if (MEMORY_BYTES == part->memory || MEMORY_INTS == part->memory || 0 == n) {
        return memory;
    }
    memory.count = 1;
    memory.pieces = 0;
    lay_out(&memory, part->seed, n, MEMORY_SHUFFLED == part->memory);
    for (int i = 0; i < memory.pieces; i++) {
        bytes[i] = (int) memory.bytes[i];
        at[i] = (MPI_Aint) memory.at[i];
    }
    MT_MPI(MPI_Type_create_hindexed(memory.pieces, bytes, at, MPI_BYTE, &memory.type));
    MT_MPI(MPI_Type_commit(&memory.type));
    return memory;
}

void part_memory_free(part_memory_t *memory)
{
    if (MPI_BYTE != memory->type && MPI_INT != memory->type) {
        MT_MPI(MPI_Type_free(&memory->type));
    }
}

void part_scatter(const part_memory_t *memory, const unsigned char *packed, unsigned char *buffer)
{
    for (int i = 0; i < memory->pieces; packed += memory->bytes[i], i++) {
        memcpy(buffer + memory->at[i], packed, memory->bytes[i]);
    }
}

void part_gather(const part_memory_t *memory, const unsigned char *buffer, unsigned char *packed)
{
    for (int i = 0; i < memory->pieces; packed += memory->bytes[i], i++) {
        memcpy(packed, buffer + memory->at[i], memory->bytes[i]);
    }
}
