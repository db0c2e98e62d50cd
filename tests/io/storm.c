/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Processes that write for ever, and a check of the file after one of them was
 * killed: storm DIR write|check [seed=S] [lost=1].
 *
 * The file consists of pieces that belong to the processes in turn; a block holds
 * pieces of several of them.  A process writes one piece, or many in one call, with
 * a pattern of the piece and its version.  Before and after that it notes the
 * version in a journal, which is a mapped file and outlives it.  Whatever was
 * killed, the part of a piece in a block is then of a version between the last
 * finished and the last begun one.  A block that cannot be read is one in which
 * nothing was ever finished.  lost: a node was lost with what it had not sent to its
 * storage, so a piece may be of any version up to the last begun one.
 */
#include "mt.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpi_crypt.h"

enum { PIECE = 1000, PIECES = 160, BYTES = PIECE * PIECES, BLOCK = 4096, WRITERS = 4 };

typedef struct journal {
    uint32_t begun[PIECES], finished[PIECES];
} journal_t;

static journal_t *journals[WRITERS];
static bool lost;
static unsigned char buffer[BYTES], pattern[PIECE];

static journal_t *journal_of(const char *directory, int writer)
{
    char path[1100];

    snprintf(path, sizeof(path), "%s/journal.%d", directory, writer);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    MT_CHECK(fd >= 0 && 0 == ftruncate(fd, sizeof(journal_t)), "%s", path);
    void *memory = mmap(NULL, sizeof(journal_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MT_CHECK(MAP_FAILED != memory, "%s", path);
    close(fd);
    return memory;
}

static const unsigned char *version_of(int piece, uint32_t version)
{
    if (0 == version) {
        memset(pattern, 0, PIECE);
    } else {
        mt_fill(pattern, PIECE, mt_key(9, piece, (int) version, 0));
    }
    return pattern;
}

/* My pieces in [from, to), in one call through a view of all of mine. */
static void write_many(MPI_File f, int from, int to)
{
    journal_t *mine = journals[mt_rank];
    int first = (from + WRITERS - 1 - mt_rank) / WRITERS * WRITERS + mt_rank, n = 0;

    for (int piece = first; piece < to; piece += WRITERS) {
        memcpy(buffer + (size_t) PIECE * (size_t) n++, version_of(piece, ++mine->begun[piece]), PIECE);
    }
    MT_MPI(MPI_File_write_at(f, (MPI_Offset) (first / WRITERS) * PIECE, buffer, n * PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int piece = first; piece < to; piece += WRITERS) {
        mine->finished[piece] = mine->begun[piece];
    }
}

/* Write again what a killed predecessor began: its begun version is the next. */
static void storm(MPI_File f, uint64_t state)
{
    MPI_Datatype piece, filetype;

    MT_MPI(MPI_Type_contiguous(PIECE, MPI_BYTE, &piece));
    MT_MPI(MPI_Type_create_resized(piece, 0, PIECE * WRITERS, &filetype));
    MT_MPI(MPI_Type_commit(&filetype));
    MT_MPI(MPI_File_set_view(f, (MPI_Offset) mt_rank * PIECE, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    for (;;) {
        int from = (int) mt_below(&state, PIECES), count = mt_below(&state, 3) ? 1 + (int) mt_below(&state, 8) : PIECES;
        write_many(f, from, from + count < PIECES ? from + count : PIECES);
    }
}

/* ---- the check ---- */

static bool part_is_sound(int piece, int from, int to, const unsigned char *bytes)
{
    const journal_t *of = journals[piece % WRITERS];

    for (uint32_t version = lost ? 0 : of->finished[piece]; version <= of->begun[piece]; version++) {
        if (0 == memcmp(version_of(piece, version) + from, bytes, (size_t) (to - from))) {
            return true;
        }
    }
    return false;
}

/* The block's bytes, or that none of them was ever finished. */
static void look_at(int block, bool readable)
{
    int from = block * BLOCK, to = from + BLOCK < BYTES ? from + BLOCK : BYTES;

    for (int piece = from / PIECE; piece <= (to - 1) / PIECE; piece++) {
        int a = piece * PIECE > from ? piece * PIECE : from, b = (piece + 1) * PIECE < to ? (piece + 1) * PIECE : to;
        if (readable) {
            MT_CHECK(part_is_sound(piece, a - piece * PIECE, b - piece * PIECE, buffer + a),
                     "piece %d in block %d is of no version from %u to %u", piece, block,
                     journals[piece % WRITERS]->finished[piece], journals[piece % WRITERS]->begun[piece]);
        } else {
            MT_CHECK(lost || 0 == journals[piece % WRITERS]->finished[piece], "block %d cannot be read, and piece %d was finished", block, piece);
        }
    }
}

static void check(MPI_File f)
{
    MPI_Offset size;
    int torn = 0;

    MT_MPI(MPI_File_get_size(f, &size));
    for (int block = 0; block * BLOCK < BYTES; block++) {
        int from = block * BLOCK, class = MPI_SUCCESS;
        memset(buffer + from, 0, from + BLOCK < BYTES ? BLOCK : BYTES - from);
        MPI_Error_class(MPI_File_read_at(f, from, buffer + from, from + BLOCK < BYTES ? BLOCK : BYTES - from, MPI_BYTE, MPI_STATUS_IGNORE),
                        &class);
        MT_CHECK(MPI_SUCCESS == class || MPIX_ERR_CRYPT_TORN == class, "block %d: error class %d", block, class);
        look_at(block, MPI_SUCCESS == class);
        if (MPI_SUCCESS != class) {
            printf("torn %d\n", block);
            torn++;
        }
    }
    mt_group("%lld bytes, %d blocks torn", (long long) size, torn);
}

int main(int argc, char **argv)
{
    char path[1100];
    MPI_File f;
    MPI_Info info;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 3) {
        mt_skip("no directory named that all nodes share");
    }
    bool writing = 0 == strcmp(argv[2], "write");
    lost = 0 != mt_arg("lost", 0);
    MT_CHECK(!writing || WRITERS == mt_size, "%d processes", mt_size);
    for (int i = 0; i < WRITERS; i++) {
        journals[i] = journal_of(argv[1], i);
    }
    snprintf(path, sizeof(path), "%s/storm", argv[1]);
    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", "lab"));
    MT_MPI(MPI_Info_set(info, "crypt_block_size", "4096"));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, writing ? MPI_MODE_CREATE | MPI_MODE_RDWR : MPI_MODE_RDONLY, info, &f));
    MT_MPI(MPI_Info_free(&info));
    if (writing) {
        storm(f, mt_mix((uint64_t) mt_arg("seed", 1) * 1000003u + (uint64_t) mt_rank) | 1);
    }
    MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
    check(f);
    MT_MPI(MPI_File_close(&f));
    return mt_end();
}
