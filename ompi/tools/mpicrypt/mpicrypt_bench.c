/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt bench PATTERN: the papers' benchmarks of communication, plain and
 * encrypted compared within one run.
 */
#include <math.h>
#include <string.h>

#include "mpicrypt_bench.h"
#include "mpicrypt_bench_html.h"
#include "mpicrypt_plot.h"

/* Not given: 0 is a value, and a wrong one. */
#define UNSET SIZE_MAX

static mpicrypt_bench_plan_t plan = {.fast = UNSET, .rounds = UNSET, .lap_ms = NAN};
static mpicrypt_bench_output_t to;
static const char *html_path;
static bool no_pin, quick;

static const mpicrypt_option_t options[] = {
    {"schemes", MPICRYPT_NAMES, "LIST", NULL, &plan.schemes,
     "Columns beside plain. Of messages (default: tuned,naive,crypt): tuned (plain, btl/tcp told to send in fragments of 512 KiB), raised (plain, btl/tcp with "
     "limits of 256 KiB), naive (plain, every message sealed by OpenSSL in the benchmark, as in the papers), bare "
     "(plain, sealed in the benchmark by pml/crypt's provider, and nothing else), crypt (pml/crypt as installed), "
     "crypt-tuned, crypt-raised (with the same settings as tuned and raised), and for the "
     "papers' ablation pipe (one thread), threads (one chunk) and both. Of collectives (default: all): ring (plain, "
     "Open MPI's ring all-gather), hop (pml/crypt alone, sealing on every hop), auto (what coll/cryptag chooses) and "
     "its algorithms: for allgather naive, o-ring, o-rd, o-rd2, c-ring, c-rd, hs1, hs2, hs3, for bcast binomial, chain, "
     "for alltoall node, rows, pairs."},
    {"bits", MPICRYPT_SIZES, "LIST", "128", &plan.bits, "Key sizes of the encrypted columns: 128, 192, 256."},
    {"size", MPICRYPT_SIZES, "LIST", NULL, &plan.sizes,
     "Message sizes in bytes; K, M and G are powers of 1024. Default: 1,1K,4K,16K,64K,256K,1M,8M; for collectives "
     "fewer large ones. For allgather it is what a rank contributes, for alltoall the block between two ranks."},
    {"pairs", MPICRYPT_SIZES, "LIST", "1,2", &plan.pairs, "For pairs: how many pairs at once."},
    {"window", MPICRYPT_COUNT, "N", "64", &plan.window, "For pairs: messages in flight of a sender."},
    {"dims", MPICRYPT_SIZES, "LIST", "2,3,4", &plan.dims, "For stencil: dimensions, 2 to 4."},
    {"compute", MPICRYPT_SIZES, "LIST", "0,50", &plan.compute,
     "For stencil: computation in percent of the time of a plain step, 0 to 95."},
    {"ranks", MPICRYPT_SIZES, "LIST", "4", &plan.ranks, "For stencil and io: numbers of ranks; for nas one."},
    {"dir", MPICRYPT_TEXT, "DIR", ".", &plan.directory, "For io: a directory that all nodes share."},
    {"label", MPICRYPT_TEXT, "LABEL", NULL, &plan.key_label, "For io: the label of the files' key (mpicrypt key new)."},
    {"workload", MPICRYPT_NAMES, "LIST", NULL, &plan.workloads, "For io: what to do. Default: tile,noncontig,rows,matmul."},
    {"access", MPICRYPT_NAMES, "LIST", NULL, &plan.accesses,
     "For io: how ranks share a file. The map is by rows, so with row it is the view. Default: row,column,block."},
    {"op", MPICRYPT_NAMES, "LIST", NULL, &plan.ops,
     "For io: write a new file, read one, write over one; matmul is one thing, run. Default: write,read,overwrite."},
    {"data", MPICRYPT_SIZES, "SIZE", "8M", &plan.data, "For io: bytes of each rank."},
    {"row", MPICRYPT_SIZES, "SIZE", "256K", &plan.row, "For io: bytes of a row of the file."},
    {"block-size", MPICRYPT_SIZES, "LIST", "64K", &plan.blocks, "For io: block sizes of the encrypted files."},
    {"npb", MPICRYPT_TEXT, "DIR", NULL, &plan.npb,
     "For nas: where the NAS Parallel Benchmarks (the MPI version) were built; the programs are in DIR/bin."},
    {"kernels", MPICRYPT_NAMES, "LIST", "cg,lu,sp,bt", &plan.kernels, "For nas: which programs."},
    {"class", MPICRYPT_TEXT, "LETTER", "D", &plan.npb_class, "For nas: the size that they were built for."},
    {"shape", MPICRYPT_NAMES, "LIST", "4x2", &plan.shapes,
     "For collectives: NODESxRANKS, so many nodes with so many ranks on each."},
    {"order", MPICRYPT_NAMES, "LIST", "block,cyclic", &plan.orders,
     "For collectives: are the ranks of a node consecutive (block), or dealt out to the nodes like cards (cyclic)?"},
    {"paper", MPICRYPT_FLAG, NULL, NULL, &plan.paper,
     "As the papers have it. For collectives: the shapes 8x16 and 7x13, with keys of 128 and 256 bits. For messages "
     "CryptMPI's sizes, iterations, 1 to 16 pairs, 30, 60 and 80 % computation, 128 bits, and its stopping rule. What the "
     "nodes are too small for is scaled down; that is printed."},
    {"per-cpu", MPICRYPT_COUNT, "N", "8", &plan.per_cpu, "For --paper: the most ranks on a processor."},
    {"percent", MPICRYPT_COUNT, "N", "100", &plan.percent, "For --paper: so much of the paper's iterations of messages."},
    {"fast", MPICRYPT_COUNT, "N", NULL, &plan.fast,
     "Stop when every size has so many FAST rounds (default: 9, or --rounds if that is less); a round is FAST if plain "
     "was within 10% of the best quartile of plain's times. For collectives, io and nas: run so many rounds, all of "
     "which count. With --paper, of messages: at least so many (default: 10)."},
    {"rounds", MPICRYPT_COUNT, "N", NULL, &plan.rounds,
     "Stop after so many rounds in any case. Default: 36, or --fast if that is more; with --paper, of messages, 100."},
    {"quick", MPICRYPT_FLAG, NULL, NULL, &quick,
     "A first look: 3 FAST rounds, 6 rounds and 3 laps at most, and for io the defaults tile,noncontig by row,column, "
     "write,read."},
    {"laps", MPICRYPT_COUNT, "N", "5", &plan.laps, "Times that a job measures each size; their median is its value."},
    {"lap-ms", MPICRYPT_REAL, "MS", NULL, &plan.lap_ms,
     "How long one of these should take, in milliseconds. Default: 10; for collectives 50."},
    {"mpirun", MPICRYPT_TEXT, "COMMAND", "mpirun", &plan.mpirun,
     "The launcher, with arguments separated by blanks: 'mpirun --hostfile hosts', 'srun --mpi=pmix'."},
    {"mapping", MPICRYPT_TEXT, "WORDS", NULL, &plan.mapping,
     "Words that make the launcher place ranks on nodes in turn (default: --map-by node, for srun "
     "--distribution=cyclic), for collectives as --shape and --order say (default: --map-by ppr:N:node, and --rank-by "
     "node, or what srun has for that); not used with --local."},
    {"host", MPICRYPT_TEXT, "NAME", "ob1", &plan.host, "The PML of plain, and the host of pml/crypt: ob1 or ucx."},
    {"local", MPICRYPT_FLAG, NULL, NULL, &plan.local, "Partners on one node, where pml/crypt does not seal."},
    {"no-pin", MPICRYPT_FLAG, NULL, NULL, &no_pin,
     "Do not pin ranks. Otherwise each is pinned to a core of its own, if there are enough and unless the launcher "
     "binds them."},
    {"cpus-per-rank", MPICRYPT_COUNT, "N", "1", &plan.cpus_per_rank,
     "Pin each rank to so many processors, where there are enough. With more than one, mpirun is told not to bind "
     "ranks, unless the command or the environment says to what."},
    {"csv", MPICRYPT_TEXT, "FILE", NULL, &to.csv,
     "Also write the results as CSV; '-' is standard output, and replaces the table."},
    {"raw", MPICRYPT_TEXT, "FILE", NULL, &to.raw, "Also write the values of every single round as CSV."},
    {"json", MPICRYPT_FLAG, NULL, NULL, &to.json, "Print JSON instead of the table."},
    {"plot", MPICRYPT_TEXT, "FILE", NULL, &to.plot,
     "Also draw times and ratios to plain over the message size. FILE ends in .svg, or in .png if the cairo library "
     "(Debian: libcairo2) is installed."},
    {"html", MPICRYPT_TEXT, "FILE", NULL, &html_path,
     "Write a report instead: one HTML page, with plots, tables and the papers' own figures, that needs no other file."},
    {"program", MPICRYPT_TEXT, "FILE", NULL, &plan.program,
     "The program that is started on the nodes, instead of the installed mpicrypt-mpi."},
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
    .summary = "measure communication, plain and encrypted, on your nodes",
    .synopsis = "PATTERN [OPTION]... [COLUMN]...",
    .description =
        "Starts jobs through mpirun and compares the time of messages between nodes: plain, and in other columns. "
        "'pingpong' is the one-way time of a message that goes back and forth; 'pairs' the time in which each of "
        "several senders sends a window of messages and gets an answer; 'stencil' a step in which every rank "
        "computes and exchanges a message with each neighbour of a periodic grid in 2, 3 or 4 dimensions. 'allgather', "
        "'bcast' and 'alltoall' are collectives over all ranks, back to back, and the time of one is that of the "
        "slowest rank. 'io' is the time from opening to closing a file that all ranks write, with a sync, or read; its "
        "columns are plain, plain-cycles (plain, exchanged in cycles of 4 MiB as those of encrypted files are), "
        "messages (pml/crypt, plain files) and file (encrypted files, too), one for each of --bits, and its size is "
        "the block size. 'all' is mpicrypt speed and each of these with its defaults; io only if there "
        "is a --label. 'nas' runs programs of the NAS Parallel Benchmarks that you have built, and prints the time of "
        "communication between nodes, of all communication and of the whole run, as CryptMPI's Table III does.\n\n"
        "Whether messages are encrypted is decided when MPI starts, so that every column is a job of its own. Jobs "
        "(the algorithms of coll/cryptag share one, and take turns in it) are short and take turns, round after round, so that a machine that changes its speed does so for all of "
        "them, and a ratio is taken within a round. Rounds go on until there are enough FAST ones; the rule is "
        "printed with the results. 'slow' is the ratio in the other rounds. Of collectives and of io every "
        "round counts. A table of collectives with a line for each size shows all columns side by side, and how far "
        "auto is from the best algorithm.\n\n"
        "A COLUMN of your own is one word of the command line, in quotes: a name, then MCA parameters, such as "
        "'big pml=crypt pml_crypt_chunk_size=524288'. A parameter that no component in the job has is an error, and "
        "so is a job that does not use the PML of its column.",
    .options = options,
    .examples =
        "mpicrypt bench pingpong --mpirun 'mpirun --host a,b'\n"
        "mpicrypt bench pingpong --schemes raised,crypt,crypt-raised --bits 128,256\n"
        "mpicrypt bench pairs --pairs 1,2,4 --size 4M --plot pairs.svg\n"
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
