/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * counted FILE OUT [bytes=N]: creates a file, writes it, overwrites it, reads it and opens it again, for calls.sh to count what
 * each rank asks of the file system.  A step is between two looks for /counted/STEP that find nothing.  What it calls of the
 * collectives of the file's communicator is counted here, and goes into OUT.RANK: we stand in for Open MPI's function that
 * chooses them.
 */
#include "ompi_config.h"

#include <dlfcn.h>
#include <unistd.h>

#include "mt.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"

/* ---- collectives ---- */

enum { COMMS = 64 };

static struct {
    const ompi_communicator_t *comm;
    mca_coll_base_comm_coll_t own;
} comms[COMMS];
static unsigned comm_count;
static unsigned long called;
static unsigned nested;                 /* an algorithm may call another */

static const mca_coll_base_comm_coll_t *own(const ompi_communicator_t *comm)
{
    unsigned i = comm_count;

    while (i-- > 0 && comms[i].comm != comm) {
    }
    called += 0 == nested ? 1 : 0;
    return &comms[i].own;
}

/* NAME(WHAT IT TAKES, WHAT IS PASSED ON); `comm` and `module` come last. */
#define STAND_IN(name, takes, passes)                                                                           \
    static int counted_##name(MT_LIST takes, struct ompi_communicator_t *comm, mca_coll_base_module_t *module) \
    {                                                                                                           \
        const mca_coll_base_comm_coll_t *of = own(comm);                                                        \
        ++nested;                                                                                               \
        int rc = of->coll_##name(MT_LIST passes, comm, module);                                                 \
        --nested;                                                                                               \
        return rc;                                                                                              \
    }
#define MT_LIST(...) __VA_ARGS__
#define TYPE struct ompi_datatype_t *
STAND_IN(allgather, (const void *s, int n, TYPE st, void *r, int m, TYPE rt), (s, n, st, r, m, rt))
STAND_IN(allgatherv, (const void *s, int n, TYPE st, void *r, const int *m, const int *d, TYPE rt), (s, n, st, r, m, d, rt))
STAND_IN(allreduce, (const void *s, void *r, int n, TYPE t, struct ompi_op_t *op), (s, r, n, t, op))
STAND_IN(bcast, (void *b, int n, TYPE t, int root), (b, n, t, root))
STAND_IN(gather, (const void *s, int n, TYPE st, void *r, int m, TYPE rt, int root), (s, n, st, r, m, rt, root))
STAND_IN(gatherv, (const void *s, int n, TYPE st, void *r, const int *m, const int *d, TYPE rt, int root), (s, n, st, r, m, d, rt, root))
STAND_IN(reduce, (const void *s, void *r, int n, TYPE t, struct ompi_op_t *op, int root), (s, r, n, t, op, root))
STAND_IN(scatter, (const void *s, int n, TYPE st, void *r, int m, TYPE rt, int root), (s, n, st, r, m, rt, root))

static int counted_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    const mca_coll_base_comm_coll_t *of = own(comm);

    ++nested;
    int rc = of->coll_barrier(comm, module);
    --nested;
    return rc;
}

int mca_coll_base_comm_select(ompi_communicator_t *comm)
{
    int (*select)(ompi_communicator_t *) = (int (*)(ompi_communicator_t *)) dlsym(RTLD_NEXT, "mca_coll_base_comm_select");
    int rc = select(comm);
    unsigned i = 0;

    while (i < comm_count && comms[i].comm != comm) {   /* one at the place of another that was freed */
        ++i;
    }
    MT_CHECK(i < COMMS, "more than %d communicators", COMMS);
    comm_count = i < comm_count ? comm_count : i + 1;
    comms[i].comm = comm;
    comms[i].own = *comm->c_coll;
    comm->c_coll->coll_allgather = counted_allgather;
    comm->c_coll->coll_allgatherv = counted_allgatherv;
    comm->c_coll->coll_allreduce = counted_allreduce;
    comm->c_coll->coll_barrier = counted_barrier;
    comm->c_coll->coll_bcast = counted_bcast;
    comm->c_coll->coll_gather = counted_gather;
    comm->c_coll->coll_gatherv = counted_gatherv;
    comm->c_coll->coll_reduce = counted_reduce;
    comm->c_coll->coll_scatter = counted_scatter;
    return rc;
}

/* ---- steps ---- */

static FILE *out;
static unsigned long before;

static void step(const char *name)
{
    char mark[64];

    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    snprintf(mark, sizeof(mark), "/counted/%s", name);
    before = called;
    (void) access(mark, F_OK);
}

static void end_step(const char *name)
{
    (void) access("/counted/-", F_OK);
    fprintf(out, "%s %lu\n", name, called - before);
}

int main(int argc, char **argv)
{
    char name[4096], *buffer;
    MPI_File file;
    MPI_Status status;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    const int bytes = (int) mt_arg("bytes", 4 << 20);
    const MPI_Offset at = (MPI_Offset) mt_rank * bytes;
    buffer = malloc((size_t) bytes);
    MT_CHECK(argc >= 3 && NULL != buffer, "counted FILE OUT");
    memset(buffer, 'a' + mt_rank % 26, (size_t) bytes);
    snprintf(name, sizeof(name), "%s.%d", argv[2], mt_rank);
    out = fopen(name, "w");
    MT_CHECK(NULL != out, "%s cannot be written", name);

    /* The first file of a process opens the components, which is not the file's cost. */
    char first[sizeof(name) + 8];
    snprintf(first, sizeof(first), "%s.first", argv[1]);
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, first, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    MT_MPI(MPI_File_close(&file));

    step("create");
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    end_step("create");
    step("write");
    MT_MPI(MPI_File_write_at(file, at, buffer, bytes, MPI_BYTE, &status));
    end_step("write");
    step("overwrite");
    MT_MPI(MPI_File_write_at(file, at, buffer, bytes, MPI_BYTE, &status));
    end_step("overwrite");
    step("write_all");
    MT_MPI(MPI_File_write_at_all(file, at / mt_size + (MPI_Offset) mt_size * bytes, buffer, bytes / mt_size, MPI_BYTE, &status));
    end_step("write_all");
    step("read");
    MT_MPI(MPI_File_read_at(file, at, buffer, bytes, MPI_BYTE, &status));
    end_step("read");
    MT_CHECK('a' + mt_rank % 26 == buffer[0] && 0 == memcmp(buffer, buffer + 1, (size_t) bytes - 1), "other bytes than were written");
    step("close");
    MT_MPI(MPI_File_close(&file));
    end_step("close");
    step("open");
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    end_step("open");
    MT_MPI(MPI_File_close(&file));
    step("reopen");
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    end_step("reopen");
    MT_MPI(MPI_File_close(&file));
    MT_CHECK(0 == fclose(out), "%s cannot be written", name);
    free(buffer);
    return mt_end();
}
