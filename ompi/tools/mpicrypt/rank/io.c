/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The four workloads of the MPISec I/O paper, reduced to their file accesses.  A
 * file is rows of bytes; the processes share it by rows, by columns or by blocks:
 *
 *     tile       a band of rows, of columns, or a tile of a grid, in one call
 *     noncontig  rows, slices of rows or half rows in turn, in one call
 *     rows       the same, a row's worth of bytes in each call
 *     matmul     C = A B: bands of A and C, panels of B that all read
 *
 * An encrypted file has a map by rows: for `row` access it equals the view.  The time
 * includes everything from opening to closing, and MPI_File_sync after writing.  The
 * files are in a directory of their own, which is made, and removed at the end.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi_crypt.h"
#include "rank.h"

static mpicrypt_mpi_io_t *const io = &mpicrypt_mpi_job.io;
static unsigned char *buffer, *other;
static size_t block_bytes, data_bytes, row_bytes, calls;
static char directory[4000];            /* ours alone */
static char path[3][4096];              /* A, B, C; others use the first */

static void check(int rc, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (MPI_SUCCESS != rc) {
        MPI_Error_string(rc, text, &length);
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "%s: %s", what, text);
    }
}

static bool is(const char *a, const char *b) { return 0 == strcmp(a, b); }
static bool is_matmul(void) { return is(io->workload, "matmul"); }
static size_t total(void) { return data_bytes * (size_t) mpicrypt_mpi_size; }

/* ---- who has which bytes ---- */

/* Units of `unit` bytes, dealt in turn. */
static MPI_Datatype dealt(size_t unit, int rank, MPI_Offset *displacement)
{
    MPI_Datatype type;
    size_t round = unit * (size_t) mpicrypt_mpi_size;

    MPI_Type_vector((int) (total() / round), (int) unit, (int) round, MPI_BYTE, &type);
    *displacement = (MPI_Offset) (unit * (size_t) rank);
    return type;
}

static MPI_Datatype tile(const int grid[2], int rank, MPI_Offset *displacement)
{
    int sizes[2] = {(int) (total() / row_bytes), (int) row_bytes}, part[2] = {sizes[0] / grid[0], sizes[1] / grid[1]};
    int start[2] = {rank / grid[1] * part[0], rank % grid[1] * part[1]};
    MPI_Datatype type;

    MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_BYTE, &type);
    *displacement = 0;
    return type;
}

static MPI_Datatype share(const char *access, int rank, MPI_Offset *displacement)
{
    int grid[2] = {0, 0};
    MPI_Datatype type;

    if (is(io->workload, "noncontig") || is(io->workload, "rows")) {
        type = dealt(is(access, "row") ? row_bytes : is(access, "block") ? row_bytes / 2 : row_bytes / 16, rank, displacement);
    } else {
        MPI_Dims_create(mpicrypt_mpi_size, 2, grid);
        grid[0] = is(access, "row") ? mpicrypt_mpi_size : is(access, "column") ? 1 : grid[0];
        grid[1] = mpicrypt_mpi_size / grid[0];
        type = tile(grid, rank, displacement);
    }
    MPI_Type_commit(&type);
    return type;
}

/* ---- a file ---- */

static void set_map(MPI_File f)
{
    MPI_Offset displacement;
    MPI_Datatype type = share("row", mpicrypt_mpi_rank, &displacement);
    MPI_Info info;
    char number[24];

    snprintf(number, sizeof(number), "%zu", block_bytes);
    MPI_Info_create(&info);
    MPI_Info_set(info, "crypt_key_label", io->label);
    MPI_Info_set(info, "crypt_algorithm", io->algorithm);
    MPI_Info_set(info, "crypt_block_size", number);
    MPI_Info_set(info, "crypt_repeat", "once");
    MPI_Info_set(info, "crypt_rest", "plain");
    check(MPIX_File_set_encryption_map(f, displacement, MPI_BYTE, type, "native", info), "the map");
    MPI_Info_free(&info);
    MPI_Type_free(&type);
}

/* Open, transfer, close; the view is `access` as `rank` has it. */
static void transfer(const char *name, const char *access, int rank, bool writing, bool fresh, unsigned char *bytes)
{
    MPI_Offset displacement;
    MPI_Datatype type = share(access, rank, &displacement);
    MPI_File f;
    size_t part = data_bytes / calls;

    check(MPI_File_open(MPI_COMM_WORLD, name, fresh ? MPI_MODE_CREATE | MPI_MODE_RDWR : writing ? MPI_MODE_RDWR : MPI_MODE_RDONLY,
                        MPI_INFO_NULL, &f), name);
    if (fresh && NULL != io->label) {
        set_map(f);
    }
    check(MPI_File_set_view(f, displacement, MPI_BYTE, type, "native", MPI_INFO_NULL), "the view");
    for (size_t i = 0; i < calls; ++i) {
        check(writing ? MPI_File_write_all(f, bytes + i * part, (int) part, MPI_BYTE, MPI_STATUS_IGNORE)
                      : MPI_File_read_all(f, bytes + i * part, (int) part, MPI_BYTE, MPI_STATUS_IGNORE), "the transfer");
    }
    if (writing) {
        check(MPI_File_sync(f), "the sync");
    }
    check(MPI_File_close(&f), "the close");
    MPI_Type_free(&type);
}

static void delete(const char *name)
{
    if (0 == mpicrypt_mpi_rank) {
        (void) MPI_File_delete(name, MPI_INFO_NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void make_scratch(void)
{
    int bytes = snprintf(directory, sizeof(directory), "%s/mpicrypt-bench-XXXXXX", io->directory);

    errno = ENAMETOOLONG;
    if (0 == mpicrypt_mpi_rank && (bytes >= (int) sizeof(directory) || NULL == mkdtemp(directory))) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "%s: %s", io->directory, strerror(errno));
    }
    MPI_Bcast(directory, sizeof(directory), MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void remove_scratch(void)
{
    if (0 == mpicrypt_mpi_rank && 0 != rmdir(directory)) {
        mpicrypt_error(MPICRYPT_FAILED, "%s: %s", directory, strerror(errno));
    }
}

/* ---- the matrix product ---- */

static void multiply(const double *a, const double *b, double *c, size_t rows, size_t n, size_t columns, size_t first)
{
    for (size_t i = 0; i < rows; ++i) {
        for (size_t k = 0; k < n; ++k) {
            for (size_t j = 0; j < columns; ++j) {
                c[i * n + first + j] += a[i * n + k] * b[k * columns + j];
            }
        }
    }
}

/* All read B, by the columns of one process after the other. */
static double product(void)
{
    size_t n = row_bytes / sizeof(double), rows = n / (size_t) mpicrypt_mpi_size;
    double *c = mpicrypt_mpi_memory(data_bytes), seconds = 0;

    transfer(path[0], io->access, mpicrypt_mpi_rank, false, false, buffer);
    for (int panel = 0; panel < mpicrypt_mpi_size; ++panel) {
        transfer(path[1], "column", panel, false, false, other);
        double start = MPI_Wtime();
        multiply((double *) (void *) buffer, (double *) (void *) other, c, rows, n, rows, (size_t) panel * rows);
        seconds += MPI_Wtime() - start;
    }
    transfer(path[2], "row", mpicrypt_mpi_rank, true, true, (unsigned char *) c);
    free(c);
    return seconds;
}

/* ---- laps ---- */

static void fill(void)
{
    for (size_t i = 0; i < data_bytes; ++i) {
        buffer[i] = (unsigned char) (i * 131 + (i >> 9) + 7 * (size_t) mpicrypt_mpi_rank);
    }
    if (is_matmul()) {                  /* small integers */
        for (size_t i = 0; i < data_bytes / sizeof(double); ++i) {
            ((double *) (void *) buffer)[i] = (double) ((i + (size_t) mpicrypt_mpi_rank) % 7);
        }
    }
}

static void prepare(size_t bytes)
{
    static const char *const names[] = {"a", "b", "c"};

    block_bytes = bytes;
    data_bytes = io->data;
    row_bytes = io->row;
    if (is_matmul()) {                  /* square, of doubles, rows for every process */
        size_t step = (size_t) mpicrypt_mpi_size, n = (size_t) sqrt((double) total() / sizeof(double)) / step * step;
        row_bytes = n * sizeof(double);
        data_bytes = n / step * row_bytes;
    }
    calls = is(io->workload, "rows") ? data_bytes / row_bytes : 1;
    buffer = mpicrypt_mpi_memory(data_bytes);
    other = mpicrypt_mpi_memory(data_bytes);
    for (int i = 0; i < 3; ++i) {
        snprintf(path[i], sizeof(path[i]), "%s/%s", directory, names[i]);
    }
    fill();
    transfer(path[0], io->access, mpicrypt_mpi_rank, true, true, buffer);
    transfer(path[0], io->access, mpicrypt_mpi_rank, false, false, other);
    if (0 != memcmp(buffer, other, data_bytes)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "what was read is not what was written");
    }
    if (is_matmul()) {
        transfer(path[1], "row", mpicrypt_mpi_rank, true, true, buffer);
    }
}

static double once(double *work)
{
    bool fresh = is(io->op, "write");

    *work = 0;
    if (fresh) {
        delete(path[0]);
    }
    if (is_matmul()) {
        delete(path[2]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    if (is_matmul()) {
        *work = product();
    } else {
        transfer(path[0], io->access, mpicrypt_mpi_rank, !is(io->op, "read"), fresh, is(io->op, "read") ? other : buffer);
    }
    return MPI_Wtime() - start;
}

void mpicrypt_mpi_io(void)
{
    const mpicrypt_mpi_job_t *job = &mpicrypt_mpi_job;
    double times[2];

    if (0 == mpicrypt_mpi_rank) {
        printf("@mpicrypt unit 0\n");
    }
    make_scratch();
    for (int s = 0; s < job->sizes.count; ++s) {
        prepare(job->sizes.value[s]);
        for (size_t i = 0; i < job->laps; ++i) {
            times[0] = once(&times[1]);
            MPI_Allreduce(MPI_IN_PLACE, times, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (0 == mpicrypt_mpi_rank) {
                printf("@mpicrypt value %zu %zu %.9g %.9g 0\n", job->sizes.value[s], i, times[0], times[1]);
            }
        }
        for (int i = 0; i < 3; ++i) {
            delete(path[i]);
        }
        free(buffer);
        free(other);
    }
    remove_scratch();
}
