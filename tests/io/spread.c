/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which processes do the encryption of collective calls: spread DIR.  MPI_T counts
 * what each process sealed and opened.  By default several of each node do, and
 * cycles end between blocks; the user's hints can change that; the data read is
 * right either way, also where the pieces of the view are shorter than a block.
 */
#include "mt.h"

enum { BYTES = 4 << 20, BLOCK = 65536, PIECE = 1000, PIECES = 2000, MOST = 4 };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle sealed, opened;
static char path[1024];
static unsigned char mine[BYTES], back[BYTES];

static void bind_variable(const char *name, MPI_T_pvar_handle *handle)
{
    int index, elements;

    MT_MPI(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
    MT_MPI(MPI_T_pvar_handle_alloc(session, index, NULL, handle, &elements));
}

static long long count_of(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;

    MT_MPI(MPI_T_pvar_read(session, handle, &value));
    return (long long) value;
}

/* On how many processes the count grew; *all: by how much in total. */
static int busy(MPI_T_pvar_handle handle, long long before, long long *all)
{
    long long grown = count_of(handle) - before;
    int one = grown > 0, ranks;

    MT_MPI(MPI_Allreduce(&grown, all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
    MT_MPI(MPI_Allreduce(&one, &ranks, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    return ranks;
}

static MPI_File open_file(int mode, const char *hint, const char *value)
{
    MPI_Info info;
    MPI_File f;

    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", "lab"));
    MT_MPI(MPI_Info_set(info, "crypt_block_size", "65536"));
    if (NULL != hint) {
        MT_MPI(MPI_Info_set(info, hint, value));
    }
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, mode, info, &f));
    MT_MPI(MPI_Info_free(&info));
    return f;
}

/* The blocks of all processes alternate: whole ones, or pieces of them. */
static void view(MPI_File f, int bytes, int count)
{
    MPI_Datatype blocks;

    MT_MPI(MPI_Type_vector(count, bytes, bytes * mt_size, MPI_BYTE, &blocks));
    MT_MPI(MPI_Type_commit(&blocks));
    MT_MPI(MPI_File_set_view(f, (MPI_Offset) mt_rank * bytes, MPI_BYTE, blocks, "native", MPI_INFO_NULL));
    MT_MPI(MPI_Type_free(&blocks));
}

static void write_and_read(const char *hint, const char *value, int piece, int pieces)
{
    const bool nodes = NULL != hint && 0 == strcmp(hint, "cb_nodes"), cut = NULL != hint && !nodes;
    const int bytes = piece * pieces, most = nodes ? atoi(value) : MOST, wanted = mt_size < most ? mt_size : most;
    const long long total = (long long) bytes * mt_size;
    long long before, all;
    MPI_File f = open_file(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, hint, value);
    int ranks;

    mt_fill(mine, (size_t) bytes, mt_key(piece, mt_rank, pieces, 0));
    view(f, piece, pieces);
    before = count_of(sealed);
    MT_MPI(MPI_File_write_all(f, mine, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    ranks = busy(sealed, before, &all);
    MT_CHECK(ranks == wanted, "%d processes sealed, not %d", ranks, wanted);
    MT_CHECK(all >= total, "%lld bytes sealed of %lld", all, total);

    MT_MPI(MPI_File_seek(f, 0, MPI_SEEK_SET));
    memset(back, 0, (size_t) bytes);
    before = count_of(opened);
    MT_MPI(MPI_File_read_all(f, back, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    ranks = busy(opened, before, &all);
    MT_CHECK(ranks == wanted, "%d processes opened, not %d", ranks, wanted);
    MT_CHECK((size_t) bytes == mt_differs(back, (size_t) bytes, mt_key(piece, mt_rank, pieces, 0)), "wrong data");
    /* Whole blocks are opened once, others at most once by each that reads; cut ones more often. */
    MT_CHECK(cut ? all > total : all <= (total + BLOCK) * (BLOCK == piece ? 1 : wanted), "%lld bytes opened of %lld", all,
             total);
    MT_MPI(MPI_File_close(&f));
    mt_group("%s %s, pieces of %d bytes: %d", NULL == hint ? "no hint" : hint, NULL == hint ? "" : value, piece, wanted);
}

int main(int argc, char **argv)
{
    int provided;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(argc > 1, "usage: spread DIR");
    MT_MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    MT_MPI(MPI_T_pvar_session_create(&session));
    bind_variable("crypt_sealed_bytes", &sealed);
    bind_variable("crypt_opened_bytes", &opened);
    snprintf(path, sizeof(path), "%s/spread", argv[1]);
    write_and_read(NULL, NULL, BLOCK, BYTES / BLOCK);
    write_and_read(NULL, NULL, PIECE, PIECES);
    write_and_read("cb_nodes", "1", BLOCK, BYTES / BLOCK);
    write_and_read("cb_nodes", "2", BLOCK, BYTES / BLOCK);
    write_and_read("cb_nodes", "2", PIECE, PIECES);
    write_and_read("cb_buffer_size", "100000", BLOCK, BYTES / BLOCK);
    return mt_end();
}
