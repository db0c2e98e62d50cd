/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt-mpi VERB [options]: started by mpicrypt through a launcher.  This
 * file has the options, the binding to processors and the checks that a job
 * is what its column claims.
 */
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "path.h"
#include "rank.h"
#include "ompi/tools/mpicrypt/doctor/check.h"

mpicrypt_mpi_job_t mpicrypt_mpi_job;
int mpicrypt_mpi_rank, mpicrypt_mpi_size;

static mpicrypt_names_t directories;

static const mpicrypt_option_t options[] = {
    {"size", MPICRYPT_SIZES, "LIST", "1", &mpicrypt_mpi_job.sizes, "Message sizes."},
    {"laps", MPICRYPT_COUNT, "N", "5", &mpicrypt_mpi_job.laps, "Laps of every size."},
    {"lap-ms", MPICRYPT_REAL, "MS", "10", &mpicrypt_mpi_job.lap_ms, "How long a lap should take."},
    {"iterations", MPICRYPT_SIZES, "LIST", "0", &mpicrypt_mpi_job.iterations, "Iterations of a lap, for each size."},
    {"window", MPICRYPT_COUNT, "N", "64", &mpicrypt_mpi_job.window, "pairs: messages in flight."},
    {"pairs", MPICRYPT_COUNT, "N", "1", &mpicrypt_mpi_job.pairs, "pairs: how many."},
    {"both", MPICRYPT_FLAG, NULL, NULL, &mpicrypt_mpi_job.both, "pairs: both ranks send at once."},
    {"dims", MPICRYPT_COUNT, "N", "2", &mpicrypt_mpi_job.dims, "stencil: dimensions."},
    {"work", MPICRYPT_SIZES, "LIST", "0", &mpicrypt_mpi_job.work, "stencil: units of work, for each size."},
    {"seal", MPICRYPT_COUNT, "BITS", "0", &mpicrypt_mpi_job.seal_bits, "Seal in this program, naively."},
    {"bare", MPICRYPT_FLAG, NULL, NULL, &mpicrypt_mpi_job.bare, "... with pml/crypt's provider, and one key."},
    {"socket", MPICRYPT_FLAG, NULL, NULL, &mpicrypt_mpi_job.socket, "pingpong, pairs: over a socket, without MPI."},
    {"copied", MPICRYPT_FLAG, NULL, NULL, &mpicrypt_mpi_job.copied, "... and what is sealed is copied once more."},
    {"kernel", MPICRYPT_FLAG, NULL, NULL, &mpicrypt_mpi_job.kernel, "The kernel has to have the module tls."},
    {"local", MPICRYPT_FLAG, NULL, NULL, &mpicrypt_mpi_job.local, "Partners of one node."},
    {"pml", MPICRYPT_TEXT, "NAME", NULL, &mpicrypt_mpi_job.pml, "The PML that has to be in use."},
    {"require", MPICRYPT_NAMES, "LIST", "pml", &mpicrypt_mpi_job.require, "Parameters that have to exist."},
    {"cpus", MPICRYPT_NAMES, "LIST", "-", &mpicrypt_mpi_job.cpus,
     "Processors of each rank, joined by '+', ranks separated by commas; '-': as started."},
    {"workload", MPICRYPT_TEXT, "NAME", "tile", &mpicrypt_mpi_job.io.workload, "io: what to do."},
    {"access", MPICRYPT_TEXT, "NAME", "row", &mpicrypt_mpi_job.io.access, "io: who has which bytes."},
    {"op", MPICRYPT_TEXT, "NAME", "write", &mpicrypt_mpi_job.io.op, "io: write, overwrite, read or run."},
    {"io-dir", MPICRYPT_TEXT, "DIR", ".", &mpicrypt_mpi_job.io.directory, "io: where the files are; path: what is tested."},
    {"label", MPICRYPT_TEXT, "LABEL", NULL, &mpicrypt_mpi_job.io.label, "io: encrypt them."},
    {"algorithm", MPICRYPT_TEXT, "NAME", "aes-128-gcm", &mpicrypt_mpi_job.io.algorithm, "io: so."},
    {"data", MPICRYPT_COUNT, "BYTES", "1048576", &mpicrypt_mpi_job.io.data, "io: of each rank."},
    {"row", MPICRYPT_COUNT, "BYTES", "65536", &mpicrypt_mpi_job.io.row, "io: of a row."},
    {"choose", MPICRYPT_TEXT, "NAME", NULL, &mpicrypt_mpi_job.choose, "Parameter whose values are compared."},
    {"choices", MPICRYPT_NAMES, "LIST", "-", &mpicrypt_mpi_job.choices, "The values, by name."},
    {"fabric", MPICRYPT_FLAG, NULL, NULL, &mpicrypt_mpi_job.fabric, "Say what the job runs over, too."},
    {"dir", MPICRYPT_NAMES, "LIST", "-", &directories, "check: directories of encrypted files."},
    {NULL, MPICRYPT_FLAG, NULL, NULL, NULL, NULL}
};

/* For the parser of the options; --help is not for this program. */
static const mpicrypt_verb_t program = {.name = "mpi", .options = options, .takes_operands = true};

int mpicrypt_error(int code, const char *format, ...)
{
    va_list list;

    fprintf(stderr, "mpicrypt-mpi: ");
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return code;
}

void mpicrypt_mpi_abort(int code, const char *format, ...)
{
    va_list list;

    fprintf(stderr, "mpicrypt-mpi: rank %d: ", mpicrypt_mpi_rank);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, code);
    abort();
}

void *mpicrypt_mpi_memory(size_t bytes)
{
    void *block = NULL;

    if (0 != posix_memalign(&block, 4096, 0 == bytes ? 1 : bytes)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "no memory for %zu bytes", bytes);
    }
    return memset(block, 0, 0 == bytes ? 1 : bytes);
}

/* ---- processors ---- */

static int rank_of_launcher(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID", NULL};

    for (int i = 0; NULL != names[i]; ++i) {
        const char *text = getenv(names[i]);
        if (NULL != text && '\0' != *text) {
            return atoi(text);
        }
    }
    return -1;
}

/* Before MPI_Init if the launcher tells our rank: components read the binding there.  False if nothing was bound. */
static bool pin(int rank)
{
    cpu_set_t set;

    if (rank < 0 || rank >= mpicrypt_mpi_job.cpus.count || 0 == strcmp(mpicrypt_mpi_job.cpus.value[0], "-")) {
        return false;
    }
    CPU_ZERO(&set);
    for (const char *word = mpicrypt_mpi_job.cpus.value[rank]; NULL != word; word = strchr(word, '+')) {
        word += '+' == *word;
        CPU_SET((size_t) atoi(word), &set);
    }
    return 0 == sched_setaffinity(0, sizeof(set), &set);
}

/* ---- is the job what it is supposed to be? ---- */

static bool parameter_text(const char *name, char *text, int bytes)
{
    MPI_T_cvar_handle handle;
    int index, count;

    if (MPI_SUCCESS != MPI_T_cvar_get_index(name, &index)) {
        return false;
    }
    if (NULL == text) {
        return true;
    }
    if (MPI_SUCCESS != MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) || count > bytes) {
        return false;
    }
    memset(text, 0, (size_t) bytes);
    int rc = MPI_T_cvar_read(handle, text);
    MPI_T_cvar_handle_free(&handle);
    return MPI_SUCCESS == rc;
}

/* The PML in use, and that every parameter of --require exists. */
static void check(void)
{
    /* Open MPI announces room for any text. */
    enum { CAPACITY = 65536 };
    int provided;
    char *text = mpicrypt_mpi_memory(CAPACITY);

    if (MPI_SUCCESS != MPI_T_init_thread(MPI_THREAD_SINGLE, &provided)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "MPI_T_init_thread failed");
    }
    if (NULL != mpicrypt_mpi_job.pml
        && (!parameter_text("pml", text, CAPACITY) || 0 != strcmp(text, mpicrypt_mpi_job.pml))) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "the PML should be %s, but parameter pml is '%s': is it set on the "
                           "launcher's command line?", mpicrypt_mpi_job.pml, text);
    }
    for (int i = 0; i < mpicrypt_mpi_job.require.count; ++i) {
        if (!parameter_text(mpicrypt_mpi_job.require.value[i], NULL, 0)) {
            mpicrypt_mpi_abort(MPICRYPT_MISSING, "no component in this job has a parameter %s",
                               mpicrypt_mpi_job.require.value[i]);
        }
    }
    if (mpicrypt_mpi_job.kernel && 0 != access("/proc/net/tls_stat", F_OK)) {
        mpicrypt_mpi_abort(MPICRYPT_MISSING, "the kernel of rank %d's node has no module tls (modprobe tls)", mpicrypt_mpi_rank);
    }
    MPI_T_finalize();
    free(text);
}

/* ---- verbs ---- */

static const struct {
    const char *verb;
    const mpicrypt_mpi_pattern_t *pattern, *socket;
} patterns[] = {
    {"pingpong", &mpicrypt_mpi_pingpong, &mpicrypt_mpi_socket}, {"pairs", &mpicrypt_mpi_pairs, &mpicrypt_mpi_socket_pairs},
    {"stencil", &mpicrypt_mpi_stencil, NULL}, {"allgather", &mpicrypt_mpi_allgather, NULL},
    {"bcast", &mpicrypt_mpi_bcast, NULL}, {"alltoall", &mpicrypt_mpi_alltoall, NULL}, {NULL, NULL, NULL}
};

static int run(const char *verb, int helper)
{
    for (int i = 0; NULL != patterns[i].verb; ++i) {
        if (0 == strcmp(verb, patterns[i].verb)) {
            if (mpicrypt_mpi_job.socket && NULL == patterns[i].socket) {
                mpicrypt_mpi_abort(MPICRYPT_USAGE, "--socket is for pingpong and pairs only");
            }
            mpicrypt_mpi_measure(mpicrypt_mpi_job.socket ? patterns[i].socket : patterns[i].pattern);
            if (mpicrypt_mpi_job.fabric) {
                mpicrypt_mpi_show_nodes();
            }
            return MPICRYPT_OK;
        }
    }
    if (0 == strcmp(verb, "nodes")) {
        mpicrypt_mpi_show_nodes();
    } else if (0 == strcmp(verb, "seal")) {
        mpicrypt_mpi_seal_verb();
    } else if (0 == strcmp(verb, "io")) {
        mpicrypt_mpi_io();
    } else if (0 == strcmp(verb, "path")) {
        mpicrypt_mpi_path(helper);
    } else if (0 == strcmp(verb, "meet")) {
        return mpicrypt_mpi_meet_verb();
    } else {
        mpicrypt_mpi_abort(MPICRYPT_USAGE, "no verb '%s'; this program is started by mpicrypt", verb);
    }
    return MPICRYPT_OK;
}

/* UCX reads its level when it is loaded, which is before main() where libmpi is linked to it: start again. */
static void ucx_names_transports(char **argv)
{
    static const char name[] = "UCX_LOG_LEVEL", level[] = "info";
    const char *now = getenv(name);

    if (NULL == now || 0 != strcmp(now, level)) {
        setenv(name, level, 1);
        execv("/proc/self/exe", argv);
    }
}

int main(int argc, char **argv)
{
    bool given[MPICRYPT_OPTIONS_MAX];
    int operands;

    mpicrypt_streams_open();
    int rc = mpicrypt_options_parse(&program, argc - 1, argv + 1, given, &operands);

    if (MPICRYPT_OK == rc && 1 != operands) {
        rc = mpicrypt_error(MPICRYPT_USAGE, "this program is started by mpicrypt");
    }
    if (MPICRYPT_OK == rc && 0 == strcmp(argv[1], "check")) {
        rc = mpicrypt_mpi_check_verb(&directories);
        mpicrypt_options_free(&program);
        return rc;
    }
    if (MPICRYPT_OK != rc) {
        return rc;
    }
    int helper = 0 == strcmp(argv[1], "path") ? mpicrypt_path_helper(mpicrypt_mpi_job.io.directory) : -1;
    if (mpicrypt_mpi_job.fabric) {
        ucx_names_transports(argv);
    }
    bool pinned = pin(rank_of_launcher());
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpicrypt_mpi_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpicrypt_mpi_size);
    if (!pinned) {
        pin(mpicrypt_mpi_rank);
    }
    check();
    mpicrypt_mpi_messages_start(mpicrypt_mpi_job.socket ? 0 : mpicrypt_mpi_job.seal_bits, mpicrypt_mpi_job.bare);
    rc = run(argv[1], helper);
    MPI_Finalize();
    if (0 == mpicrypt_mpi_rank) {
        printf("@mpicrypt done\n");
    }
    mpicrypt_options_free(&program);
    return 0 == fflush(stdout) ? rc : MPICRYPT_FAILED;
}
