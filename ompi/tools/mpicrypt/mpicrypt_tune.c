/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt tune: measure these nodes and write what fits them.
 */
#include <string.h>

#include "mpicrypt_tune.h"

static mpicrypt_bench_plan_t plan;
static const char *out_path, *csv_path;
static bool coll, no_pin;

static const mpicrypt_option_t options[] = {
    {"coll", MPICRYPT_FLAG, NULL, NULL, &coll, "Write a file of rules for coll/cryptag."},
    {"out", MPICRYPT_TEXT, "FILE", "coll-cryptag.rules", &out_path, "The file to write; '-' is standard output."},
    {"shape", MPICRYPT_NAMES, "LIST", "4x2", &plan.shapes,
     "NODESxRANKS, so many nodes with so many ranks on each. Rules of a shape hold for larger ones, too, unless these "
     "were measured."},
    {"order", MPICRYPT_NAMES, "LIST", "block,cyclic", &plan.orders,
     "Are the ranks of a node consecutive (block), or dealt out to the nodes like cards (cyclic)?"},
    {"size", MPICRYPT_SIZES, "LIST", NULL, &plan.sizes,
     "Sizes in bytes. Default: 1,256,1K,2K and so on, to 1M."},
    {"rounds", MPICRYPT_COUNT, "N", "5", &plan.rounds, "Jobs for each operation, shape and order."},
    {"laps", MPICRYPT_COUNT, "N", "5", &plan.laps, "Times that a job measures each size; their median is its value."},
    {"lap-ms", MPICRYPT_REAL, "MS", "10", &plan.lap_ms, "How long one of them should take, in milliseconds."},
    {"bits", MPICRYPT_SIZES, "BITS", "128", &plan.bits, "Key size: 128, 192 or 256."},
    {"mpirun", MPICRYPT_TEXT, "COMMAND", "mpirun", &plan.mpirun,
     "The launcher, with arguments separated by blanks: 'mpirun --hostfile hosts', 'srun --mpi=pmix'."},
    {"mapping", MPICRYPT_TEXT, "WORDS", NULL, &plan.mapping,
     "Words that make the launcher place ranks as --shape and --order say. Default: as for 'mpicrypt bench'."},
    {"host", MPICRYPT_TEXT, "NAME", "ob1", &plan.host, "The host PML: ob1 or ucx."},
    {"cpus-per-rank", MPICRYPT_COUNT, "N", "1", &plan.cpus_per_rank,
     "Pin each rank to so many processors, where there are enough."},
    {"no-pin", MPICRYPT_FLAG, NULL, NULL, &no_pin, "Leave ranks as the launcher starts them."},
    {"csv", MPICRYPT_TEXT, "FILE", NULL, &csv_path, "Also write what was measured as CSV."},
    {"program", MPICRYPT_TEXT, "FILE", NULL, &plan.program,
     "The program that is started on the nodes, instead of the installed mpicrypt-mpi."},
    {NULL, MPICRYPT_FLAG, NULL, NULL, NULL, NULL}
};

static int check_values(void)
{
    size_t bits = 1 == plan.bits.count ? plan.bits.value[0] : 0;

    if (!coll) {
        return mpicrypt_error(MPICRYPT_USAGE, "what is to be tuned: --coll?");
    }
    if (128 != bits && 192 != bits && 256 != bits) {
        return mpicrypt_error(MPICRYPT_USAGE, "--bits is one of 128, 192, 256");
    }
    if (plan.rounds < 1 || plan.rounds > 1000) {
        return mpicrypt_error(MPICRYPT_USAGE, "--rounds: %zu is not between 1 and 1000", plan.rounds);
    }
    if (plan.laps < 1 || plan.laps > 1000 || plan.lap_ms <= 0 || plan.lap_ms > 60000) {
        return mpicrypt_error(MPICRYPT_USAGE, "--laps is 1 to 1000, --lap-ms more than 0, at most 60000");
    }
    if (0 != strcmp(plan.host, "ob1") && 0 != strcmp(plan.host, "ucx")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--host: '%s' is neither ob1 nor ucx", plan.host);
    }
    int rc = mpicrypt_writable(csv_path);
    rc = rc ? rc : mpicrypt_writable(out_path);
    return rc ? rc : mpicrypt_mpi_program(plan.program, &plan.program);
}

static int run(int operand_count, char **operands)
{
    (void) operand_count;
    (void) operands;
    plan.pin = !no_pin;
    int rc = check_values();
    return rc ? rc : mpicrypt_tune_coll(&plan, out_path, csv_path);
}

const mpicrypt_verb_t mpicrypt_tune_verb = {
    .name = "tune",
    .summary = "measure your nodes and write what fits them",
    .synopsis = "--coll [--mpirun COMMAND] [--shape LIST] [--out FILE] [OPTION]...",
    .description =
        "With --coll: measures every algorithm of coll/cryptag for MPI_Allgather, MPI_Bcast and MPI_Alltoall, at "
        "several sizes, and writes which is the fastest from which size on, as a file of rules, which "
        "coll_cryptag_rules_file names to jobs. All algorithms of an operation share a job and take turns in it; "
        "what counts is the median, over the jobs, of the time relative to that of the automatic choice. An "
        "algorithm is kept to the next size unless another one is faster by more than 3%.\n\n"
        "The nodes should do nothing else meanwhile.",
    .options = options,
    .examples = "mpicrypt tune --coll --mpirun 'mpirun --hostfile hosts' --shape 4x16,8x16 --out site.rules\n"
                "mpirun --mca pml crypt --mca coll_cryptag_rules_file site.rules ./app",
    .run = run
};
