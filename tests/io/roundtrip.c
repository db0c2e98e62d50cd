/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Random maps, views, calls and numbers of processes against an array in
 * memory: roundtrip DIR [cases=N] [seed=S] [keep].  Labels lab and other are in
 * the keystore.
 */
#include "mt.h"

#include "mpi_crypt.h"

#define SPAN_MAX 300000

static const char *directory;
static char path[1024];
static unsigned char *expected, *mine, *other;
static uint64_t state;                  /* the same on all ranks */

/* What the cases were, for the shares that are printed. */
static struct {
    long cases, regions, unaligned, collective;
    bool case_unaligned, case_collective;
} seen;
static bool many_nodes;

static size_t draw(size_t below) { return mt_below(&state, below); }

typedef struct world {
    size_t span, size, row;
    int regions;                        /* 0: one region, by info at open */
    bool plain[4];
    int block[4], algorithm[4], label[4];
    bool rest, head;
} world_t;

static const char *const algorithms[] = {"aes-128-gcm", "aes-256-gcm", "aes-192-gcm", "chacha20-poly1305"};
static const char *const labels[] = {"lab", "other"};

static MPI_Info info_of(const world_t *w, int region)
{
    MPI_Info info;
    char number[16];

    MT_MPI(MPI_Info_create(&info));
    snprintf(number, sizeof(number), "%d", w->block[region]);
    MT_MPI(MPI_Info_set(info, "crypt_block_size", number));
    MT_MPI(MPI_Info_set(info, "crypt_algorithm", w->plain[region] ? "plain" : algorithms[w->algorithm[region]]));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", labels[w->label[region]]));
    if (w->rest) {
        MT_MPI(MPI_Info_set(info, "crypt_rest", "plain"));
    }
    return info;
}

static void draw_world(world_t *w)
{
    memset(w, 0, sizeof(*w));
    w->span = 0 == draw(5) ? 100000 + draw(SPAN_MAX - 100000) : 1 + draw(40000);
    w->regions = draw(2) ? 0 : 1 + (int) draw(4);
    w->row = 1 + (draw(3) ? draw(3000) : draw(30));
    w->head = draw(2);
    w->rest = w->regions > 0 && (w->head || draw(2));
    for (int i = 0; i < 4; i++) {
        w->block[i] = 512 << draw(8);
        w->algorithm[i] = (int) draw(4);
        w->label[i] = (int) draw(2);
        w->plain[i] = i > 0 && 0 == draw(4);
    }
    if (w->span / w->row > 4000) {
        w->row = w->span / 4000 + 1;
    }
}

/* Rows of the regions take turns, behind a head that is the rest. */
static size_t head_of(const world_t *w) { return w->head ? 777 : 0; }

static int region_at(const world_t *w, size_t at)
{
    return 0 == w->regions ? 0 : at < head_of(w) ? -1 : (int) ((at - head_of(w)) / w->row % (size_t) w->regions);
}

static MPI_File open_new(const world_t *w)
{
    MPI_File f;
    MPI_Datatype row, filetype;

    if (0 == w->regions) {
        MPI_Info info = info_of(w, 0);
        MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f));
        MT_MPI(MPI_Info_free(&info));
        return f;
    }
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    /* in one call, each rank its own; what is left in further calls, by all */
    for (int i = 0; i < w->regions; i++) {
        int region = i + (0 == i ? mt_rank % w->regions : 0);
        MPI_Info info = info_of(w, region);
        MT_MPI(MPI_Type_contiguous((int) w->row, MPI_BYTE, &row));
        MT_MPI(MPI_Type_create_resized(row, 0, (MPI_Aint) (w->row * (size_t) w->regions), &filetype));
        MT_MPI(MPI_Type_commit(&filetype));
        MT_MPI(MPIX_File_set_encryption_map(f, (MPI_Offset) (head_of(w) + w->row * (size_t) region), MPI_BYTE, filetype, "native", info));
        MT_MPI(MPI_Info_free(&info));
        MT_MPI(MPI_Type_free(&filetype));
        MT_MPI(MPI_Type_free(&row));
    }
    return f;
}

/* ---- who takes which bytes ---- */

typedef struct part {
    size_t unit, from, to;              /* units of so many bytes take turns among ranks, in [from, to) */
    int shift;
} part_t;

static part_t draw_part(const world_t *w)
{
    part_t part = {.unit = 1 + (draw(2) ? draw(5000) : draw(100)), .shift = (int) draw(100)};

    part.from = draw(3) ? 0 : draw(w->span);
    part.to = draw(3) ? w->span : part.from + draw(w->span - part.from + 1);
    if ((part.to - part.from) / part.unit > 3000) {
        part.unit = (part.to - part.from) / 3000 + 1;
    }
    return part;
}

static int owner(const part_t *part, size_t at, int size)
{
    return (int) (((at - part->from) / part->unit + (size_t) part->shift) % (size_t) size);
}

/* My bytes of `from`, packed; or back. */
static size_t pack(const part_t *part, int rank, int size, const unsigned char *from, unsigned char *packed)
{
    size_t n = 0;

    for (size_t at = part->from; at < part->to; at += part->unit) {
        size_t bytes = part->to - at < part->unit ? part->to - at : part->unit;
        if (owner(part, at, size) == rank) {
            memcpy(packed + n, from + at, bytes);
            n += bytes;
        }
    }
    return n;
}

/* A view of exactly those bytes. */
static void set_view(MPI_File f, const part_t *part, int rank, int size)
{
    MPI_Datatype unit, filetype;
    int first = ((rank - part->shift) % size + size) % size;

    MT_MPI(MPI_Type_contiguous((int) part->unit, MPI_BYTE, &unit));
    MT_MPI(MPI_Type_create_resized(unit, 0, (MPI_Aint) (part->unit * (size_t) size), &filetype));
    MT_MPI(MPI_Type_commit(&filetype));
    MT_MPI(MPI_File_set_view(f, (MPI_Offset) (part->from + part->unit * (size_t) first), MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    MT_MPI(MPI_Type_free(&filetype));
    MT_MPI(MPI_Type_free(&unit));
}

static void count_is(const MPI_Status *status, size_t bytes, const char *what)
{
    int count;

    MT_MPI(MPI_Get_count(status, MPI_BYTE, &count));
    MT_CHECK((size_t) count == bytes, "%s: %d bytes instead of %zu", what, count, bytes);
}

static void move(MPI_File f, const part_t *part, int rank, int size, bool writing, int how, unsigned char *packed, size_t n)
{
    MPI_Status status;
    MPI_Request request;

    set_view(f, part, rank, size);
    seen.case_collective = seen.case_collective || (many_nodes && size == mt_size && (1 == how || 3 == how));
    switch (how) {
    case 0:
        MT_MPI(writing ? MPI_File_write(f, packed, (int) n, MPI_BYTE, &status) : MPI_File_read(f, packed, (int) n, MPI_BYTE, &status));
        break;
    case 1:
        MT_MPI(writing ? MPI_File_write_all(f, packed, (int) n, MPI_BYTE, &status)
                       : MPI_File_read_all(f, packed, (int) n, MPI_BYTE, &status));
        break;
    case 2:
        MT_MPI(writing ? MPI_File_iwrite_at(f, 0, packed, (int) n, MPI_BYTE, &request)
                       : MPI_File_iread_at(f, 0, packed, (int) n, MPI_BYTE, &request));
        MT_MPI(MPI_Wait(&request, &status));
        break;
    default:
        MT_MPI(writing ? MPI_File_write_at_all_begin(f, 0, packed, (int) n, MPI_BYTE)
                       : MPI_File_read_at_all_begin(f, 0, packed, (int) n, MPI_BYTE));
        MT_MPI(writing ? MPI_File_write_at_all_end(f, packed, &status) : MPI_File_read_at_all_end(f, packed, &status));
        break;
    }
    count_is(&status, n, writing ? "written" : "read");
}

/* Do the pieces of this access end within blocks? */
static void look_at_part(const world_t *w, const part_t *part)
{
    size_t block = (size_t) w->block[0];

    seen.case_unaligned = seen.case_unaligned || part->from % block || part->unit % block || (part->to % block && part->to < w->size);
}

static void step_write(MPI_File f, world_t *w, int seed)
{
    part_t part = draw_part(w);
    int how = (int) draw(4);
    unsigned char *fresh = malloc(w->span);

    mt_fill(fresh, w->span, mt_key(3, seed, 0, 0));
    memcpy(expected + part.from, fresh + part.from, part.to - part.from);
    w->size = part.to > part.from && part.to > w->size ? part.to : w->size;
    look_at_part(w, &part);
    move(f, &part, mt_rank, mt_size, true, how, mine, pack(&part, mt_rank, mt_size, fresh, mine));
    free(fresh);
    MT_MPI(MPI_File_sync(f));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_File_sync(f));
}

static void step_read(MPI_File f, const world_t *w, int rank, int size)
{
    part_t part = draw_part(w);
    int how = (int) draw(4);

    part.to = part.to > w->size ? w->size : part.to;
    part.from = part.from > part.to ? part.to : part.from;
    size_t n = pack(&part, rank, size, expected, mine);
    memset(other, 0xa5, n + 1);
    move(f, &part, rank, size, false, how, other, n);
    for (size_t i = 0; i < n; i++) {
        MT_CHECK(mine[i] == other[i], "byte %zu of %zu is %d instead of %d (how %d, unit %zu, from %zu to %zu)", i, n, other[i], mine[i],
                 how, part.unit, part.from, part.to);
    }
    MT_CHECK(0xa5 == other[n], "a byte behind the buffer was written");
    MPI_Comm comm = size == mt_size ? MPI_COMM_WORLD : MPI_COMM_SELF;
    MT_MPI(MPI_Barrier(comm));          /* nobody writes on while others read */
}

/* Another number of processes reads the file. */
static void reopen(const world_t *w)
{
    MPI_Comm comm;
    MPI_File f;
    MPI_Offset size;
    int members = 1 + (int) draw((size_t) mt_size), rank, count;

    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, mt_rank < members ? 0 : MPI_UNDEFINED, mt_size - mt_rank, &comm));
    if (MPI_COMM_NULL != comm) {
        MT_MPI(MPI_Comm_rank(comm, &rank));
        MT_MPI(MPI_Comm_size(comm, &count));
        MT_MPI(MPI_File_open(comm, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
        MT_MPI(MPI_File_get_size(f, &size));
        MT_CHECK((size_t) size == w->size, "size %lld instead of %zu", (long long) size, w->size);
        for (int i = 0; i < 3; i++) {
            step_read(f, w, rank, count);
        }
        MT_MPI(MPI_File_close(&f));
        MT_MPI(MPI_Comm_free(&comm));
    }
    MT_MPI(MPI_Bcast(&state, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD));
}

/* What is on disk: plaintext where, and only where, the map says so. */
static void look_at_disk(const world_t *w)
{
    FILE *raw = fopen(path, "rb");
    size_t same = 0, n = NULL == raw ? 0 : fread(other, 1, w->span, raw);

    MT_CHECK(n == w->size, "%zu bytes on disk instead of %zu", n, w->size);
    fclose(raw);
    for (size_t at = 0; at < n; at++) {
        int region = region_at(w, at);
        bool secret = region >= 0 && !w->plain[region];
        MT_CHECK(secret || other[at] == expected[at], "plain byte %zu", at);
        /* holes are zeros on both sides */
        same = secret && other[at] == expected[at] && 0 != expected[at] ? same + 1 : secret ? 0 : same;
        MT_CHECK(same < 12, "%zu equal bytes up to %zu", same, at);
    }
}

static void run_case(int number)
{
    world_t w;
    MPI_File f;
    int steps = 2 + (int) draw(4);

    draw_world(&w);
    seen.case_unaligned = seen.case_collective = false;
    snprintf(path, sizeof(path), "%s/roundtrip-%d", directory, number);
    memset(expected, 0, SPAN_MAX);
    f = open_new(&w);
    for (int i = 0; i < steps; i++) {
        if (0 == draw(6)) {
            w.size = draw(w.span);
            MT_MPI(MPI_File_set_size(f, (MPI_Offset) w.size));
            memset(expected + w.size, 0, SPAN_MAX - w.size);
        } else {
            step_write(f, &w, number * 100 + i);
        }
        step_read(f, &w, mt_rank, mt_size);
    }
    MT_MPI(MPI_File_close(&f));
    reopen(&w);
    if (0 == mt_rank) {
        look_at_disk(&w);
        if (!mt_flag("keep")) {
            MT_MPI(MPI_File_delete(path, MPI_INFO_NULL));
        }
    }
    seen.cases++;
    seen.regions += w.regions > 1;
    seen.unaligned += seen.case_unaligned;
    seen.collective += seen.case_collective;
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* Many cases have to be of all kinds. */
static void look_at_shares(void)
{
    printf("cases %ld: several regions %ld%%, unaligned %ld%%, collective over nodes %ld%%\n", seen.cases,
           100 * seen.regions / seen.cases, 100 * seen.unaligned / seen.cases, 100 * seen.collective / seen.cases);
    if (seen.cases >= 1000) {
        MT_CHECK(10 * seen.regions >= 3 * seen.cases && 10 * seen.unaligned >= 3 * seen.cases, "too few of a kind");
        MT_CHECK(!many_nodes || 10 * seen.collective >= seen.cases, "too few collective calls over several nodes");
    }
}

static void look_at_nodes(void)
{
    MPI_Comm node;
    int size;

    MT_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    MT_MPI(MPI_Comm_size(node, &size));
    many_nodes = size < mt_size;
    MT_MPI(MPI_Comm_free(&node));
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2) {
        mt_skip("no directory named that all nodes share");
    }
    directory = argv[1];
    int cases = (int) mt_arg("cases", 40);
    long seed = mt_arg("seed", 1);
    expected = malloc(SPAN_MAX);
    mine = malloc(SPAN_MAX + 1);
    other = malloc(SPAN_MAX + 1);
    look_at_nodes();
    for (int i = 0; i < cases; i++) {
        state = mt_mix((uint64_t) seed * 1000003u + (uint64_t) i) | 1;
        run_case(i);
    }
    if (0 == mt_rank) {
        look_at_shares();
    }
    mt_group("%d random files, seed %ld", cases, seed);
    return mt_end();
}
