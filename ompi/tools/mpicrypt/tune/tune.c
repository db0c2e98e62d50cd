/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt tune: measure these nodes and write what fits them.
 */
#include <string.h>

#include "ompi/tools/mpicrypt/plot/plot.h"
#include "tune.h"

static mpicrypt_bench_plan_t plan;
static mpicrypt_tune_files_t files;
static bool coll, no_pin, no_search;

static const mpicrypt_option_t options[] = {
    {"coll", MPICRYPT_FLAG, NULL, NULL, &coll, "Write rules for coll/cryptag instead of parameters for messages."},
    {"out", MPICRYPT_TEXT, "FILE", NULL, &files.out,
     "The file to write. Default: ompi-crypt-tuned.conf; with --coll coll-cryptag.rules, and '-' is standard output."},
    {"shape", MPICRYPT_NAMES, "LIST", "4x2", &plan.shapes,
     "With --coll: NODESxRANKS, with RANKS on each node. Rules of a shape also apply to larger shapes that were not "
     "measured."},
    {"order", MPICRYPT_NAMES, "LIST", "block,cyclic", &plan.orders,
     "With --coll: block (the ranks of a node are consecutive) or cyclic (ranks are placed round robin)."},
    {"size", MPICRYPT_SIZES, "LIST", NULL, &plan.sizes,
     "With --coll: sizes in bytes. Default: 1,256,1K,2K and so on, to 1M."},
    {"no-search", MPICRYPT_FLAG, NULL, NULL, &no_search,
     "With pml/crypt: only measure and fit. The file gets the model, but no chunk size or limits."},
    {"rounds", MPICRYPT_COUNT, "N", "0", &plan.rounds,
     "With --coll: jobs for each operation, shape and order; 0 means 5. Without: FAST rounds of each step, out of at "
     "most twice as many; 0 means 7 with btl/crypt, 3 with pml/crypt. With btl/crypt fewer than 5 only show times."},
    {"laps", MPICRYPT_COUNT, "N", "5", &plan.laps, "Measurements of each size in a job; their median is its value."},
    {"lap-ms", MPICRYPT_REAL, "MS", "10", &plan.lap_ms, "Target duration of one of them, in milliseconds."},
    {"bits", MPICRYPT_SIZES, "BITS", "128", &plan.bits, "Key size: 128, 256 or, with pml/crypt, 192."},
    {"mpirun", MPICRYPT_TEXT, "COMMAND", "mpirun", &plan.mpirun,
     "The launcher and its arguments, separated by blanks: 'mpirun --hostfile hosts', 'srun --mpi=pmix'."},
    {"mapping", MPICRYPT_TEXT, "WORDS", NULL, &plan.mapping,
     "Launcher options that place ranks as --shape and --order say. Default: as for 'mpicrypt bench'."},
    {"host", MPICRYPT_TEXT, "NAME", NULL, &plan.host,
     "The host PML: ob1, ucx or cm. Default: what an encrypted job takes; with --coll ob1."},
    {"cpus-per-rank", MPICRYPT_COUNT, "N", "0", &plan.cpus_per_rank,
     "Pin each rank to N processors, if there are enough. 0 means 1 with --coll, otherwise all that each of the two "
     "ranks can have, T0. The file suits jobs with as many for each rank."},
    {"no-pin", MPICRYPT_FLAG, NULL, NULL, &no_pin, "Do not pin ranks."},
    {"csv", MPICRYPT_TEXT, "FILE", NULL, &files.csv, "Also write the measurements as CSV."},
    {"plot", MPICRYPT_TEXT, "FILE", NULL, &files.plot,
     "With pml/crypt: also plot measured and predicted times. FILE ends in .svg, or in .png if the cairo library "
     "(Debian: libcairo2) is installed."},
    {"program", MPICRYPT_TEXT, "FILE", NULL, &plan.program,
     "Run this on the nodes instead of the installed mpicrypt-mpi."},
    {NULL, MPICRYPT_FLAG, NULL, NULL, NULL, NULL}
};

static int check_values(void)
{
    size_t bits = 1 == plan.bits.count ? plan.bits.value[0] : 0;

    if (128 != bits && 192 != bits && 256 != bits) {
        return mpicrypt_error(MPICRYPT_USAGE, "--bits is one of 128, 192, 256");
    }
    if (plan.rounds > 1000) {
        return mpicrypt_error(MPICRYPT_USAGE, "--rounds: %zu is more than 1000", plan.rounds);
    }
    if (plan.laps < 1 || plan.laps > 1000 || plan.lap_ms <= 0 || plan.lap_ms > 60000) {
        return mpicrypt_error(MPICRYPT_USAGE, "--laps is 1 to 1000, --lap-ms more than 0, at most 60000");
    }
    if (plan.cpus_per_rank > 1024) {
        return mpicrypt_error(MPICRYPT_USAGE, "--cpus-per-rank is 1024 at most");
    }
    for (int i = 0; i < plan.sizes.count; ++i) {
        if (plan.sizes.value[i] > (size_t) 1 << 30) {
            return mpicrypt_error(MPICRYPT_USAGE, "--size: %zu is more than 1G", plan.sizes.value[i]);
        }
    }
    if (NULL != plan.host && 0 != strcmp(plan.host, "ob1") && 0 != strcmp(plan.host, "ucx") && 0 != strcmp(plan.host, "cm")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--host: '%s' is none of ob1, ucx and cm", plan.host);
    }
    int rc = NULL == files.plot ? MPICRYPT_OK : mpicrypt_plot_check(files.plot);
    rc = rc ? rc : mpicrypt_writable(files.plot);
    rc = rc ? rc : mpicrypt_writable(files.csv);
    rc = rc ? rc : mpicrypt_writable(files.out);
    return rc ? rc : mpicrypt_mpi_program(plan.program, &plan.program);
}

static int run(int operand_count, char **operands)
{
    (void) operand_count;
    (void) operands;
    plan.pin = !no_pin;
    files.out = NULL != files.out ? files.out : coll ? "coll-cryptag.rules" : "ompi-crypt-tuned.conf";
    int rc = check_values();
    if (MPICRYPT_OK != rc) {
        return rc;
    }
    if (!coll) {
        return mpicrypt_tune_p2p(&plan, !no_search, &files);
    }
    plan.rounds = 0 != plan.rounds ? plan.rounds : 5;
    plan.host = NULL != plan.host ? plan.host : "ob1";
    plan.cpus_per_rank = 0 != plan.cpus_per_rank ? plan.cpus_per_rank : 1;
    return mpicrypt_tune_coll(&plan, files.out, files.csv);
}

const mpicrypt_verb_t mpicrypt_tune_verb = {
    .name = "tune",
    .summary = "measure your nodes and write parameters that suit them",
    .synopsis = "[--coll] [--mpirun COMMAND] [--out FILE] [OPTION]...",
    .description =
        "Without --coll: runs jobs of two ranks on two of your nodes. The first one shows whether btl/crypt or pml/crypt "
        "encrypts jobs with these options and this environment (crypt_transport, pml_crypt_host). The parameters of that "
        "component are tuned, and written to a file of MCA parameters, which does not choose what encrypts.\n\n"
        "btl/crypt (TCP): measures a ping-pong and a stream of messages, 1 B to 4 MiB, with several values of "
        "btl_crypt_eager_limit, btl_crypt_rndv_eager_limit, crypt_threads (if ranks have the processors) and "
        "btl_crypt_ktls (if the kernels can), each beside the default and the default once more. A value is "
        "taken if it is better by more than 2%, and by more than the default differs from itself.\n\n"
        "pml/crypt (UCX, libfabric, crypt_transport=pml): measures plain messages, and encryption "
        "alone with 1, 2, 4 ... threads; fits the model of the papers to that; measures encrypted messages, none of "
        "them used in the fit, with every number of chunks k and of threads t; and prints measured times beside "
        "predicted ones. Then it searches near the prediction: chunk sizes and (for ob1) the limits of "
        "btl/tcp. It writes what is faster than the defaults, and the model, which 'mpicrypt model' can read (option "
        "profile).\n\n"
        "With --coll: measures every algorithm of coll/cryptag for MPI_Allgather, MPI_Bcast and MPI_Alltoall at "
        "several sizes, and writes which is fastest from which size on: a file of rules for coll_cryptag_rules_file. "
        "Algorithms are compared by the median, over the jobs, of the time relative to the automatic choice. An "
        "algorithm is kept for the next size unless another is more than 3% faster.\n\n"
        "The nodes should be idle otherwise.",
    .options = options,
    .examples = "mpicrypt tune --mpirun 'mpirun --host a,b'\n"
                "mpirun --mca pml crypt --mca mca_base_param_files ompi-crypt-tuned.conf ./app\n"
                "mpicrypt tune --coll --mpirun 'mpirun --hostfile hosts' --shape 4x16,8x16 --out site.rules\n"
                "mpirun --mca pml crypt --mca coll_cryptag_rules_file site.rules ./app",
    .run = run
};
