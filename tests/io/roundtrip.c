/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Random maps, views, datatypes, calls and processes against an array in memory:
 * roundtrip DIR [cases=N] [seed=S] [keep].  Of N processes, 1 to N write, and 1 to
 * N others read afterwards.  Labels lab and other are in the keystore.
 */
#include "part.h"

#include "mpi_crypt.h"

#define SPAN_MAX 300000

static const char *directory;
static char path[1024];
static unsigned char *expected, *mine, *other, *buffer, *untouched;
static uint64_t state;                  /* the same on all ranks */

/* What the cases were, for the shares that are printed. */
static struct {
    long cases, regions, unaligned, collective;
    bool case_unaligned, case_collective;
} seen;

static size_t draw(size_t below) { return mt_below(&state, below); }

typedef struct world {
    size_t span, size, row;
    int regions;                        /* 0: one region, by info at open */
    bool plain[4];
    int block[4], algorithm[4], label[4];
    bool rest, head;
    int cycle;                          /* bytes that a collective call exchanges at a time; 0: by default */
} world_t;

static const char *const algorithms[] = {"aes-128-gcm", "aes-256-gcm", "aes-192-gcm", "chacha20-poly1305"};
static const char *const labels[] = {"lab", "other"};

static MPI_Info info_at_open(const world_t *w)
{
    MPI_Info info;
    char number[16];

    MT_MPI(MPI_Info_create(&info));
    if (w->cycle > 0) {
        snprintf(number, sizeof(number), "%d", w->cycle);
        MT_MPI(MPI_Info_set(info, "cb_buffer_size", number));
    }
    return info;
}

/* `last`: this is the last request; a rest is requested there. */
static MPI_Info info_of(const world_t *w, int region, bool last)
{
    MPI_Info info = info_at_open(w);
    char number[16];

    snprintf(number, sizeof(number), "%d", w->block[region]);
    MT_MPI(MPI_Info_set(info, "crypt_block_size", number));
    MT_MPI(MPI_Info_set(info, "crypt_algorithm", w->plain[region] ? "plain" : algorithms[w->algorithm[region]]));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", labels[w->label[region]]));
    if (w->rest && last) {
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
    w->cycle = draw(3) ? 0 : 2000 + (int) draw(40000);
    if (w->span / w->row > 4000) {
        w->row = w->span / 4000 + 1;
    }
}

/* Rows of the regions alternate, after a head that is the rest. */
static size_t head_of(const world_t *w) { return w->head ? 777 : 0; }

static int region_at(const world_t *w, size_t at)
{
    return 0 == w->regions ? 0 : at < head_of(w) ? -1 : (int) ((at - head_of(w)) / w->row % (size_t) w->regions);
}

/* ---- who takes part ---- */

/* A member of the team: its rank there, or MPI_COMM_NULL. */
typedef struct team {
    MPI_Comm comm;
    int rank, size;
    bool many_nodes;
} team_t;

static team_t draw_team(void)
{
    team_t team = {.size = 1 + (int) draw((size_t) mt_size)};
    int turn = (int) draw((size_t) mt_size), place = (mt_rank + turn) % mt_size;
    MPI_Comm node;
    int size;

    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, place < team.size ? 0 : MPI_UNDEFINED, draw(2) ? place : -place, &team.comm));
    if (MPI_COMM_NULL != team.comm) {
        MT_MPI(MPI_Comm_rank(team.comm, &team.rank));
        MT_MPI(MPI_Comm_split_type(team.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
        MT_MPI(MPI_Comm_size(node, &size));
        MT_MPI(MPI_Comm_free(&node));
        team.many_nodes = size < team.size;
    }
    return team;
}

static void free_team(team_t *team)
{
    if (MPI_COMM_NULL != team->comm) {
        MT_MPI(MPI_Comm_free(&team->comm));
    }
}

/* ---- transfers ---- */

static MPI_File open_new(const world_t *w, const team_t *team)
{
    MPI_File f;
    MPI_Datatype row, filetype;
    MPI_Info open = 0 == w->regions ? info_of(w, 0, true) : info_at_open(w);

    MT_MPI(MPI_File_open(team->comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, open, &f));
    MT_MPI(MPI_Info_free(&open));
    /* in one call, each rank asks for its own; then all ask for the others in further calls */
    for (int i = 0; i < w->regions; i++) {
        int region = i + (0 == i ? team->rank % w->regions : 0);
        MPI_Info info = info_of(w, region, w->regions - 1 == i);
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

static void count_is(const MPI_Status *status, size_t bytes, const char *what)
{
    int count;

    MT_MPI(MPI_Get_count(status, MPI_BYTE, &count));
    MT_CHECK((size_t) count == bytes, "%s: %d bytes instead of %zu", what, count, bytes);
}

/* n bytes, packed, at `at` etypes of the view. */
static void move_some(MPI_File f, const part_t *part, MPI_Offset at, bool writing, int how, unsigned char *packed, size_t n)
{
    MPI_Status status;
    MPI_Request request;
    part_memory_t memory = part_memory(part, n);
    MPI_Datatype type = memory.type;
    int count = memory.count;

    memset(buffer, 0xa5, memory.room + 1);
    if (writing) {
        part_scatter(&memory, packed, buffer);
    }
    switch (how) {
    case 0:
        MT_MPI(writing ? MPI_File_write(f, buffer, count, type, &status) : MPI_File_read(f, buffer, count, type, &status));
        break;
    case 1:
        MT_MPI(writing ? MPI_File_write_all(f, buffer, count, type, &status) : MPI_File_read_all(f, buffer, count, type, &status));
        break;
    case 2:
        MT_MPI(writing ? MPI_File_iwrite_at(f, at, buffer, count, type, &request) : MPI_File_iread_at(f, at, buffer, count, type, &request));
        MT_MPI(MPI_Wait(&request, &status));
        break;
    default:
        MT_MPI(writing ? MPI_File_write_at_all_begin(f, at, buffer, count, type) : MPI_File_read_at_all_begin(f, at, buffer, count, type));
        MT_MPI(writing ? MPI_File_write_at_all_end(f, buffer, &status) : MPI_File_read_at_all_end(f, buffer, &status));
        break;
    }
    count_is(&status, n, writing ? "written" : "read");
    if (!writing) {
        part_gather(&memory, buffer, packed);
        memset(untouched, 0xa5, memory.room + 1);
        part_scatter(&memory, packed, untouched);
        MT_CHECK(0 == memcmp(buffer, untouched, memory.room + 1), "bytes beside those of the datatype were written");
    }
    part_memory_free(&memory);
}

/* In one call or in two. */
static void move(MPI_File f, const part_t *part, const team_t *team, bool writing, int how, unsigned char *packed, size_t n)
{
    size_t first = part->seed % 3 ? n : n / 2 / part->etype * part->etype;

    part_set_view(part, f, team->rank);
    move_some(f, part, 0, writing, how, packed, first);
    if (0 == part->seed % 3) {
        move_some(f, part, (MPI_Offset) (first / part->etype), writing, how, packed + first, n - first);
    }
}

/* Do the pieces of this access end within blocks? */
static void look_at_part(const world_t *w, const part_t *part)
{
    size_t block = (size_t) w->block[0];

    seen.case_unaligned = seen.case_unaligned || part->from % block || part->unit % block || (part->to % block && part->to < w->size);
}

static void step_write(MPI_File f, world_t *w, const team_t *team, int seed)
{
    part_t part = part_draw(&state, w->span, team->size);
    int how = (int) draw(4);
    unsigned char *fresh = malloc(w->span);

    mt_fill(fresh, w->span, mt_key(3, seed, 0, 0));
    memcpy(expected + part.from, fresh + part.from, part.to - part.from);
    w->size = part.to > part.from && part.to > w->size ? part.to : w->size;
    look_at_part(w, &part);
    if (MPI_COMM_NULL != team->comm) {
        seen.case_collective = seen.case_collective || (team->many_nodes && (1 == how || 3 == how));
        move(f, &part, team, true, how, mine, part_pack(&part, team->rank, fresh, mine));
        MT_MPI(MPI_File_sync(f));
        MT_MPI(MPI_Barrier(team->comm));
        MT_MPI(MPI_File_sync(f));
    }
    free(fresh);
}

static void step_read(MPI_File f, const world_t *w, const team_t *team)
{
    part_t part = part_draw(&state, w->span, team->size);
    int how = (int) draw(4);

    part_clip(&part, w->size);
    if (MPI_COMM_NULL == team->comm) {
        return;
    }
    seen.case_collective = seen.case_collective || (team->many_nodes && (1 == how || 3 == how));
    size_t n = part_pack(&part, team->rank, expected, mine);
    move(f, &part, team, false, how, other, n);
    for (size_t i = 0; i < n; i++) {
        MT_CHECK(mine[i] == other[i], "byte %zu of %zu is %d instead of %d (how %d, view %d, unit %zu, from %zu to %zu)", i, n, other[i],
                 mine[i], how, part.view, part.unit, part.from, part.to);
    }
    MT_MPI(MPI_Barrier(team->comm));    /* nobody writes on while others read */
}

/* Other processes, and another number of them, read the file. */
static void reopen(const world_t *w)
{
    team_t team = draw_team();
    MPI_File f = MPI_FILE_NULL;
    MPI_Offset size;

    if (MPI_COMM_NULL != team.comm) {
        MPI_Info info = info_at_open(w);
        MT_MPI(MPI_File_open(team.comm, path, MPI_MODE_RDONLY, info, &f));
        MT_MPI(MPI_Info_free(&info));
        MT_MPI(MPI_File_get_size(f, &size));
        MT_CHECK((size_t) size == w->size, "size %lld instead of %zu", (long long) size, w->size);
    }
    for (int i = 0; i < 3; i++) {
        step_read(f, w, &team);
    }
    if (MPI_COMM_NULL != team.comm) {
        MT_MPI(MPI_File_close(&f));
    }
    free_team(&team);
}

/* Where the data begins: in one file, after the header area and the control area of the only group. */
static long data_at(FILE *raw)
{
    unsigned char head[64];
    long at = 0;

    if (NULL != raw && sizeof(head) == fread(head, 1, sizeof(head), raw) && 0 == memcmp(head, "\x89MPICRYPT", 9)) {
        for (int i = 7; i >= 0; i--) {          /* T and H */
            at = 256 * at + head[48 + i] + head[56 + i];
        }
    }
    return at;
}

/* The disk has plaintext where, and only where, the map says so. */
static void look_at_disk(const world_t *w)
{
    FILE *raw = fopen(path, "rb");
    long from = data_at(raw);
    size_t same = 0, n = NULL == raw || 0 != fseek(raw, from, SEEK_SET) ? 0 : fread(other, 1, w->span, raw);

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

/* All processes draw the same; those of the team write and read. */
static void work_on(world_t *w, const team_t *team, int number)
{
    MPI_File f = MPI_FILE_NULL;
    int steps = 2 + (int) draw(4);

    if (MPI_COMM_NULL != team->comm) {
        f = open_new(w, team);
    }
    for (int i = 0; i < steps; i++) {
        if (0 == draw(6)) {
            w->size = draw(w->span);
            memset(expected + w->size, 0, SPAN_MAX - w->size);
            if (MPI_COMM_NULL != team->comm) {
                MT_MPI(MPI_File_set_size(f, (MPI_Offset) w->size));
            }
        } else {
            step_write(f, w, team, number * 100 + i);
        }
        step_read(f, w, team);
    }
    if (MPI_COMM_NULL != team->comm) {
        MT_MPI(MPI_File_close(&f));
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static void run_case(int number)
{
    world_t w;

    draw_world(&w);
    seen.case_unaligned = seen.case_collective = false;
    snprintf(path, sizeof(path), "%s/roundtrip-%d", directory, number);
    memset(expected, 0, SPAN_MAX);
    team_t team = draw_team();
    work_on(&w, &team, number);
    free_team(&team);
    reopen(&w);
    MT_MPI(MPI_Allreduce(MPI_IN_PLACE, &seen.case_collective, 1, MPI_C_BOOL, MPI_LOR, MPI_COMM_WORLD));
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
}

/* Many cases must cover all kinds. */
static void look_at_shares(void)
{
    bool many_nodes = false;

    for (int i = 0; i < mt_size; i++) {
        many_nodes = many_nodes || mt_remote(i);
    }
    printf("cases %ld: several regions %ld%%, unaligned %ld%%, collective over nodes %ld%%\n", seen.cases,
           100 * seen.regions / seen.cases, 100 * seen.unaligned / seen.cases, 100 * seen.collective / seen.cases);
    if (seen.cases >= 1000) {
        MT_CHECK(10 * seen.regions >= 3 * seen.cases && 10 * seen.unaligned >= 3 * seen.cases, "too few of a kind");
        MT_CHECK(!many_nodes || 10 * seen.collective >= seen.cases, "too few collective calls over several nodes");
    }
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
    buffer = malloc(2 * SPAN_MAX + 64);
    untouched = malloc(2 * SPAN_MAX + 64);
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
