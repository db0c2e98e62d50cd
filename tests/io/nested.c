/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Files and nested derived types, drawn at random (mt_types.h), byte for byte, gaps
 * included: nested DIR [seed=S] [cases=N] [most=BYTES] [plain].  Label lab is in the
 * keystore.
 *
 * A type describes memory.  The view of the file is bytes, or another type that MPI allows
 * there; what the file must hold then is derived from the typemap.  Each process has a part
 * of the file of its own; each way is tried independently and collectively.
 */
#include "mt_types.h"

static const char *directory;
static char path[1024];

typedef struct {
    const mt_type_t *memory, *view;     /* view NULL: bytes */
    int count;
    size_t n, region;                   /* packed bytes; of the file, those of a process */
    unsigned char *packed, *file, *seen;
    mt_span_t from, to;
    bool collective;
    const char *what;
} case_t;

/* Displacements must not decrease, or be negative. */
static bool can_be_view(const mt_type_t *t)
{
    MPI_Aint end = 0, lower, extent;

    MT_MPI(MPI_Type_get_extent(t->type, &lower, &extent));
    for (int i = 0; i < t->entries; i++) {
        if (t->map[i].at < end) {
            return false;
        }
        end = t->map[i].at + t->map[i].bytes;
    }
    return 0 == lower && extent >= end;
}

/* The view's typemap says where the i-th byte is in a process's region. */
static void lay_file(case_t *c)
{
    memset(c->file, 0, c->region);
    if (NULL == c->view) {
        memcpy(c->file, c->packed, c->n);
        return;
    }
    for (size_t done = 0, item = 0; done < c->n; item++) {
        for (int k = 0; k < c->view->entries && done < c->n; k++) {
            const mt_entry_t *e = &c->view->map[k];
            const size_t bytes = (size_t) e->bytes < c->n - done ? (size_t) e->bytes : c->n - done;
            memcpy(c->file + (MPI_Aint) item * c->view->extent + e->at, c->packed + done, bytes);
            done += bytes;
        }
    }
}

static size_t region_of(const mt_type_t *view, size_t n)
{
    return NULL == view ? n : ((n + view->size - 1) / view->size) * (size_t) view->extent;
}

static MPI_File open_it(bool write, bool plain)
{
    MPI_Info info;
    MPI_File f;

    MT_MPI(MPI_Info_create(&info));
    if (!plain) {
        MT_MPI(MPI_Info_set(info, "crypt_key_label", "lab"));
        MT_MPI(MPI_Info_set(info, "crypt_block_size", "1024"));
    }
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, write ? MPI_MODE_CREATE | MPI_MODE_RDWR : MPI_MODE_RDONLY, info, &f));
    MT_MPI(MPI_Info_free(&info));
    return f;
}

static void view_it(const case_t *c, MPI_File f)
{
    const MPI_Offset at = (MPI_Offset) c->region * mt_rank;

    MT_MPI(MPI_File_set_view(f, at, MPI_BYTE, NULL == c->view ? MPI_BYTE : c->view->type, "native", MPI_INFO_NULL));
}

static void transferred(const case_t *c, const MPI_Status *status, const char *call)
{
    MPI_Count bytes;

    MT_MPI(MPI_Get_elements_x(status, MPI_BYTE, &bytes));
    MT_CHECK((size_t) bytes == c->n, "%s: %s: %lld of %zu bytes", c->what, call, (long long) bytes, c->n);
}

static void write_it(case_t *c, bool plain)
{
    MPI_File f = open_it(true, plain);
    MPI_Status status;

    MT_MPI(MPI_File_set_size(f, (MPI_Offset) c->region * mt_size));
    view_it(c, f);
    MT_MPI(c->collective ? MPI_File_write_at_all(f, 0, c->from.origin, c->count, c->memory->type, &status)
                         : MPI_File_write_at(f, 0, c->from.origin, c->count, c->memory->type, &status));
    transferred(c, &status, "written");
    MT_MPI(MPI_File_close(&f));
}

static void read_it(case_t *c, bool plain)
{
    MPI_File f = open_it(false, plain);
    MPI_Status status;

    MT_MPI(MPI_File_read_at(f, (MPI_Offset) c->region * mt_rank, c->seen, (int) c->region, MPI_BYTE, &status));
    for (size_t i = 0; i < c->region; i++) {
        MT_CHECK(c->file[i] == c->seen[i], "%s: %d of %s, view %s: byte %zu of %zu of the file", c->what, c->count,
                 c->memory->text, NULL == c->view ? "bytes" : c->view->text, i, c->region);
    }
    view_it(c, f);
    MT_MPI(c->collective ? MPI_File_read_at_all(f, 0, c->to.origin, c->count, c->memory->type, &status)
                         : MPI_File_read_at(f, 0, c->to.origin, c->count, c->memory->type, &status));
    transferred(c, &status, "read");
    const long at = mt_span_differs(c->memory, &c->to, c->packed, c->n);
    MT_CHECK(-1 == at, "%s: %d of %s, view %s: memory differs at %ld", c->what, c->count, c->memory->text,
             NULL == c->view ? "bytes" : c->view->text, at);
    MT_MPI(MPI_File_close(&f));
}

static void try_one(uint64_t state, size_t most, bool plain, bool *viewed, const char *what)
{
    int count, unused;
    const int depth = 1 + (int) mt_below(&state, 4);
    mt_type_t memory = mt_type_draw(&state, depth, &count, most), view = mt_type_draw(&state, 1 + (int) mt_below(&state, 3), &unused, 2000);
    case_t c = {.memory = &memory, .count = count, .n = memory.size * (size_t) count, .collective = 0 == mt_below(&state, 2), .what = what};

    c.view = can_be_view(&view) ? &view : NULL;
    c.region = region_of(c.view, c.n);
    if (c.region > 20 * most) {
        c.view = NULL;
        c.region = c.n;
    }
    *viewed = NULL != c.view;
    c.packed = malloc(c.n);
    c.file = malloc(c.region);
    c.seen = malloc(c.region);
    MT_CHECK(NULL != c.packed && NULL != c.file && NULL != c.seen, "memory");
    c.from = mt_span_new(&memory, count);
    c.to = mt_span_new(&memory, count);
    mt_fill(c.packed, c.n, mt_random(&state) + (uint64_t) mt_rank);
    mt_span_put(&memory, &c.from, c.packed, c.n);
    lay_file(&c);
    write_it(&c, plain);
    read_it(&c, plain);
    if (0 == mt_rank) {
        MT_MPI(MPI_File_delete(path, MPI_INFO_NULL));
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    mt_span_free(&c.from);
    mt_span_free(&c.to);
    free(c.packed);
    free(c.file);
    free(c.seen);
    mt_type_free(&memory);
    mt_type_free(&view);
}

int main(int argc, char **argv)
{
    long views = 0;
    char what[64];

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(argc > 1, "which directory?");
    directory = argv[1];
    const long seed = mt_arg("seed", 1), cases = mt_arg("cases", 30), most = mt_arg("most", 50000);

    for (long i = 0; i < cases; i++) {
        bool viewed;

        snprintf(path, sizeof(path), "%s/nested-%ld", directory, i);
        snprintf(what, sizeof(what), "seed=%ld case %ld", seed, i);
        try_one(mt_key((int) seed, 0, 0, (int) i), (size_t) most, mt_flag("plain"), &viewed, what);
        views += viewed;
    }
    MT_CHECK(views > 0 && views < cases, "%ld of %ld cases had a view", views, cases);
    mt_group("%ld types from seed %ld, %ld of them through a view", cases, seed, views);
    return mt_end();
}
