/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt bench PATTERN: the papers' benchmarks of communication, plain and
 * encrypted compared within one run.
 */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "html.h"
#include "ompi/tools/mpicrypt/plot/plot.h"

/* Not given: 0 is a value, and a wrong one. */
#define UNSET SIZE_MAX

static mpicrypt_bench_plan_t plan = {.fast = UNSET, .rounds = UNSET, .lap_ms = NAN};
static mpicrypt_bench_output_t to;
static const char *html_path;
static bool no_pin, quick;

static const mpicrypt_option_t options[] = {
    {"schemes", MPICRYPT_NAMES, "LIST", NULL, &plan.schemes,
     "Columns in addition to plain. For messages (default: tuned,naive,crypt; for nas and --paper naive,crypt): "
     "tuned (plain, btl/tcp with fragments of 512 KiB and without put), raised (plain, btl/tcp with limits of 256 "
     "KiB), naive (plain, the benchmark encrypts every message with OpenSSL, as in the papers), bare (the same with "
     "pml/crypt's provider and one context), crypt (pml/crypt), crypt-tuned and crypt-raised (crypt with the "
     "settings of tuned and raised), pipe (crypt with one thread), threads (crypt with one chunk), both (crypt with "
     "chunks and threads), pml and btl (crypt with that crypt_transport), btl-ktls (btl, sealed by the "
     "kernel), socket and socket-sealed (for pingpong and pairs: one TCP socket of a pair, without MPI, plain or sealed in records of 16 KiB with pml/crypt's provider: the limit of a transport), "
     "socket-copied (socket-sealed, and the receiver copies each message once more). For "
     "collectives (default: all): ring (plain, Open MPI's ring all-gather), hop (pml/crypt "
     "with Open MPI's own algorithms, encrypting on every hop), auto (coll/cryptag's choice), and coll/cryptag's algorithms: for allgather "
     "naive, o-ring, o-rd, o-rd2, c-ring, c-rd, hs1, hs2, hs3; for bcast binomial, chain; for alltoall node, rows, "
     "pairs."},
    {"bits", MPICRYPT_SIZES, "LIST", "128", &plan.bits, "Key sizes of the encrypted columns: 128, 192, 256."},
    {"size", MPICRYPT_SIZES, "LIST", NULL, &plan.sizes,
     "Message sizes in bytes; K, M and G are powers of 1024. For allgather, what a rank contributes; for alltoall, "
     "the block between two ranks. Default: 1,1K,4K,16K,64K,256K,1M,8M; for collectives at most 1M."},
    {"pairs", MPICRYPT_SIZES, "LIST", "1,2", &plan.pairs, "For pairs: how many pairs at once."},
    {"window", MPICRYPT_COUNT, "N", "64", &plan.window, "For pairs: messages in flight for each sender."},
    {"both", MPICRYPT_FLAG, NULL, NULL, &plan.both, "For pairs: both ranks of a pair send a window at once, and nobody answers."},
    {"dims", MPICRYPT_SIZES, "LIST", "2,3,4", &plan.dims, "For stencil: dimensions, 2 to 4."},
    {"compute", MPICRYPT_SIZES, "LIST", "0,50", &plan.compute,
     "For stencil: computation in percent of the time of a plain step, 0 to 95."},
    {"ranks", MPICRYPT_SIZES, "LIST", "4", &plan.ranks, "For stencil and io: numbers of ranks. For nas: one number."},
    {"dir", MPICRYPT_TEXT, "DIR", ".", &plan.directory, "For io: a directory that all nodes share."},
    {"label", MPICRYPT_TEXT, "LABEL", NULL, &plan.key_label,
     "For io: the label of the files' key (mpicrypt key new)."},
    {"workload", MPICRYPT_NAMES, "LIST", NULL, &plan.workloads,
     "For io: what the ranks access. Default: tile,noncontig,rows,matmul."},
    {"access", MPICRYPT_NAMES, "LIST", NULL, &plan.accesses,
     "For io: how the ranks share a file. The encryption map is by rows; with row it equals the view. Default: "
     "row,column,block."},
    {"op", MPICRYPT_NAMES, "LIST", NULL, &plan.ops,
     "For io: write a new file, read a file, or overwrite one. Not for matmul. Default: write,read,overwrite."},
    {"data", MPICRYPT_SIZES, "SIZE", "8M", &plan.data, "For io: bytes of each rank."},
    {"row", MPICRYPT_SIZES, "SIZE", "256K", &plan.row,
     "For io: bytes of a row of the file, a multiple of 16 x ranks."},
    {"block-size", MPICRYPT_SIZES, "LIST", "64K", &plan.blocks, "For io: block sizes of the encrypted files."},
    {"npb", MPICRYPT_TEXT, "DIR", NULL, &plan.npb,
     "For nas: where the NAS Parallel Benchmarks (MPI version) were built. The programs are in DIR/bin."},
    {"kernels", MPICRYPT_NAMES, "LIST", "cg,lu,sp,bt", &plan.kernels, "For nas: the programs."},
    {"class", MPICRYPT_TEXT, "LETTER", "D", &plan.npb_class, "For nas: the problem class that was built."},
    {"shape", MPICRYPT_NAMES, "LIST", "4x2", &plan.shapes, "For collectives: NODESxRANKS, with RANKS on each node."},
    {"order", MPICRYPT_NAMES, "LIST", "block,cyclic", &plan.orders,
     "For collectives: block (the ranks of a node are consecutive) or cyclic (ranks are placed round robin)."},
    {"paper", MPICRYPT_FLAG, NULL, NULL, &plan.paper,
     "As in the papers. For collectives: shapes 8x16 and 7x13 and keys of 128 and 256 bits. For messages: CryptMPI's "
     "sizes, iterations, 1 to 16 pairs, 30, 60 and 80 % computation, 128 bits and stopping rule. If the nodes are "
     "too small, ranks or iterations are scaled down, and the results say so."},
    {"per-cpu", MPICRYPT_COUNT, "N", "8", &plan.per_cpu, "With --paper: the most ranks for each processor."},
    {"percent", MPICRYPT_COUNT, "N", "100", &plan.percent,
     "With --paper: percentage of the paper's iterations of messages."},
    {"fast", MPICRYPT_COUNT, "N", NULL, &plan.fast,
     "Stop when every size has N FAST rounds. A round is FAST if plain took at most 1.10 times the first quartile of "
     "plain's times. For collectives, io and nas: run N rounds, which all count. Default: 9, or --rounds if that is "
     "less. With --paper and messages: at least N rounds, by default 10."},
    {"rounds", MPICRYPT_COUNT, "N", NULL, &plan.rounds,
     "Stop after N rounds in any case. Default: 36, or --fast if that is more; with --paper and messages, 100."},
    {"quick", MPICRYPT_FLAG, NULL, NULL, &quick,
     "A first look: at most 3 FAST rounds, 6 rounds and 3 laps. For io, the defaults are then tile,noncontig by "
     "row,column with write,read."},
    {"laps", MPICRYPT_COUNT, "N", "5", &plan.laps, "Measurements of each size in a job; their median is its value."},
    {"lap-ms", MPICRYPT_REAL, "MS", NULL, &plan.lap_ms,
     "Target duration of one of them, in milliseconds. Default: 10; for collectives 50."},
    {"mpirun", MPICRYPT_TEXT, "COMMAND", "mpirun", &plan.mpirun,
     "The launcher and its arguments, separated by blanks: 'mpirun --hostfile hosts', 'srun --mpi=pmix'."},
    {"mapping", MPICRYPT_TEXT, "WORDS", NULL, &plan.mapping,
     "Launcher options that place ranks round robin on nodes (default: --map-by node; for srun "
     "--distribution=cyclic) or, for collectives, by --shape and --order (default: --map-by ppr:N:node, with "
     "--rank-by node for cyclic, or their counterparts for srun). Not used with --local."},
    {"host", MPICRYPT_TEXT, "NAME", "ob1", &plan.host, "The PML of plain, and the host of pml/crypt: ob1, ucx or cm."},
    {"local", MPICRYPT_FLAG, NULL, NULL, &plan.local,
     "Both partners on one node, where pml/crypt does not encrypt unless crypt_scope says so."},
    {"no-pin", MPICRYPT_FLAG, NULL, NULL, &no_pin,
     "Do not pin ranks. By default each rank is pinned to a core, if there are enough and the launcher does not "
     "bind."},
    {"cpus-per-rank", MPICRYPT_COUNT, "N", "1", &plan.cpus_per_rank,
     "Pin each rank to N processors, if there are enough. With more than one, mpirun is told not to bind ranks, "
     "unless the command or the environment sets a binding."},
    {"csv", MPICRYPT_TEXT, "FILE", NULL, &to.csv,
     "Also write the results as CSV. '-' is standard output, instead of the table."},
    {"raw", MPICRYPT_TEXT, "FILE", NULL, &to.raw, "Also write the values of all rounds as CSV."},
    {"json", MPICRYPT_FLAG, NULL, NULL, &to.json, "Print JSON instead of the table."},
    {"plot", MPICRYPT_TEXT, "FILE", NULL, &to.plot,
     "Also plot times, and ratios to plain, over message size. FILE ends in .svg, or in .png if the cairo library "
     "(Debian: libcairo2) is installed."},
    {"html", MPICRYPT_TEXT, "FILE", NULL, &html_path,
     "Write a report instead: one self-contained HTML page with plots, tables and the papers' figures."},
    {"program", MPICRYPT_TEXT, "FILE", NULL, &plan.program,
     "Run this on the nodes instead of the installed mpicrypt-mpi."},
    {NULL, MPICRYPT_FLAG, NULL, NULL, NULL, NULL}
};

/* ---- checks ---- */

/* Before the measurement, not after it. */
static int check_files(void)
{
    if (to.json && NULL != to.csv && 0 == strcmp(to.csv, "-")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--json and --csv - both want standard output");
    }
    if (0 == strcmp(plan.pattern, "nas") && (NULL != to.raw || NULL != to.plot)) {
        return mpicrypt_error(MPICRYPT_USAGE, "nas has no --raw and --plot");
    }
    int rc = NULL == to.plot ? MPICRYPT_OK : mpicrypt_plot_check(to.plot);
    rc = rc ? rc : mpicrypt_writable(to.csv);
    rc = rc ? rc : mpicrypt_writable(to.raw);
    rc = rc ? rc : mpicrypt_writable(to.plot);
    return rc ? rc : mpicrypt_mpi_program(plan.program, &plan.program);
}

static int check_pattern(int operand_count, char **operands)
{
    static const char *const patterns[] = {"pingpong", "pairs", "stencil", "allgather", "bcast", "alltoall", "io",
                                           "nas", NULL};

    for (int i = 0; NULL != patterns[i] && operand_count > 0; ++i) {
        if (0 == strcmp(operands[0], patterns[i])) {
            plan.pattern = patterns[i];
            return MPICRYPT_OK;
        }
    }
    return mpicrypt_error(MPICRYPT_USAGE, operand_count > 0 ? "there is no benchmark '%s', only pingpong, pairs, stencil, "
                          "allgather, bcast, alltoall, io, nas, all"
                          : "which benchmark: pingpong, pairs, stencil, allgather, bcast, alltoall, io, nas or all?%s",
                          operand_count > 0 ? operands[0] : "");
}

/* Each benchmark on its own takes the options that are its own. */
static int run_many(const char *pattern)
{
    if (NULL != to.csv || NULL != to.raw || NULL != to.plot || to.json) {
        return mpicrypt_error(MPICRYPT_USAGE, "all and --html have no --csv, --raw, --plot and --json");
    }
    if (0 == strcmp(pattern, "all") && (plan.schemes.count > 0 || plan.local)) {
        return mpicrypt_error(MPICRYPT_USAGE, "--schemes and --local are for one benchmark, not for all");
    }
    plan.lap_ms = isnan(plan.lap_ms) ? 10 : plan.lap_ms;
    int rc = mpicrypt_bench_quick(&plan, quick);

    rc = rc ? rc : mpicrypt_bench_check(&plan);
    rc = rc ? rc : mpicrypt_writable(html_path);
    return rc ? rc : mpicrypt_bench_all(pattern, html_path, plan.key_label, plan.fast, plan.lap_ms);
}

/* Of --fast and --rounds, what is not given gives way. */
static void set_rounds(bool messages)
{
    size_t least = messages ? mpicrypt_bench_cryptmpi_least() : 9;
    size_t most = messages ? mpicrypt_bench_cryptmpi_most() : 36;

    if (UNSET == plan.fast) {
        plan.fast = plan.rounds < least && plan.rounds > 0 ? plan.rounds : least;
    }
    if (UNSET == plan.rounds) {
        plan.rounds = plan.fast > most ? plan.fast : most;
    }
}

static int run(int operand_count, char **operands)
{
    plan.pin = !no_pin;
    set_rounds(plan.paper && operand_count > 0 && NULL == mpicrypt_bench_coll(operands[0]));
    bool all = operand_count > 0 && 0 == strcmp(operands[0], "all");
    int rc = all ? MPICRYPT_OK : check_pattern(operand_count, operands);

    if (MPICRYPT_OK == rc && (all || NULL != html_path)) {
        return NULL != plan.pattern && 0 == strcmp(plan.pattern, "nas")
                   ? mpicrypt_error(MPICRYPT_USAGE, "nas has no --html") : run_many(operands[0]);
    }
    rc = rc ? rc : mpicrypt_bench_defaults(&plan);
    rc = rc ? rc : mpicrypt_bench_quick(&plan, quick);
    rc = rc ? rc : mpicrypt_bench_check(&plan);
    rc = rc || 0 != strcmp(plan.pattern, "io") ? rc : mpicrypt_bench_io_check(&plan);
    rc = rc ? rc : mpicrypt_bench_columns(&plan, operand_count - 1, operands + 1);
    rc = rc ? rc : check_files();
    rc = rc ? rc : 0 == strcmp(plan.pattern, "nas") ? mpicrypt_bench_nas(&plan, to.csv, to.json)
                                                    : mpicrypt_bench_measure(&plan, &to);
    mpicrypt_bench_columns_free(&plan);
    return rc;
}

const mpicrypt_verb_t mpicrypt_bench_verb = {
    .name = "bench",
    .summary = "compare plain and encrypted communication between your nodes",
    .synopsis = "PATTERN [OPTION]... [COLUMN]...",
    .description =
        "Compares communication between nodes, plain and encrypted. It starts jobs through mpirun.\n\n"
        "'pingpong': one-way time of a message. 'pairs': several senders each send a window of messages and get one "
        "answer; the time of a window. 'stencil': every rank computes, then exchanges a message with each neighbor "
        "of a periodic grid in 2, 3 or 4 dimensions; the time of a step. 'allgather', 'bcast', 'alltoall': "
        "collectives over all ranks, back to back; the time of a call on the slowest rank. 'io': all ranks write or "
        "read a file, from opening to closing, with a sync after writing; the size is the block size. 'nas': "
        "programs of the NAS Parallel Benchmarks that you have built; communication between nodes, all communication "
        "and the whole run, as in CryptMPI's Table III. 'all': mpicrypt speed and all of these but nas, with their "
        "defaults; io only if there is a --label.\n\n"
        "Each column of the results is one configuration, and plain is always the first. The columns of io are "
        "plain, plain-cycles (plain, in cycles of 4 MiB, as for encrypted files), messages (pml/crypt, plain files) "
        "and file (encrypted files, too), one for each of --bits. A COLUMN of your own is one quoted word: a name, "
        "then MCA parameters, such as 'big pml=crypt pml_crypt_chunk_size=524288'. If a parameter does not exist, or "
        "a job does not use the PML of its column, the benchmark ends with an error.\n\n"
        "Open MPI chooses the PML in MPI_Init, so each column is a job of its own (the algorithms of coll/cryptag "
        "share one). In every round each column has one short job, in rotating order, and ratios are taken within a "
        "round. Rounds go on until there are enough FAST ones; the rule is printed with the results. 'slow' is the "
        "ratio in the other rounds. For collectives and io, every round counts.",
    .options = options,
    .examples =
        "mpicrypt bench pingpong --mpirun 'mpirun --host a,b'\n"
        "mpicrypt bench pingpong --schemes raised,crypt,crypt-raised --bits 128,256\n"
        "mpicrypt bench pingpong --schemes pml,btl,socket,socket-sealed\n"
        "mpicrypt bench pairs --pairs 1,2,4 --size 4M --plot pairs.svg\n"
        "mpicrypt bench pairs --pairs 1,2 --both --schemes pml,btl,socket,socket-sealed\n"
        "mpicrypt bench stencil --ranks 16 --compute 25,50,75 --size 64K,1M\n"
        "mpicrypt bench allgather --shape 4x2,8x2 --order block,cyclic --plot allgather.svg\n"
        "mpicrypt bench allgather --paper --csv paper.csv\n"
        "mpicrypt bench all --mpirun 'mpirun --hostfile hosts' --html report.html\n"
        "mpicrypt bench io --dir /scratch --label results --quick --ranks 2,8,16\n"
        "mpicrypt bench io --dir /scratch --label results --workload tile --block-size 4K,64K,1M\n"
        "mpicrypt bench nas --npb NPB3.4-MPI --class C --ranks 64 --mpirun 'mpirun --hostfile hosts'",
    .run = run,
    .takes_operands = true
};
