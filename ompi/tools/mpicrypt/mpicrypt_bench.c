/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt bench PATTERN: the papers' benchmarks of communication, plain and
 * encrypted compared within one run.
 */
#include <stdlib.h>
#include <string.h>

#include "mpicrypt_bench.h"
#include "mpicrypt_bench_html.h"
#include "mpicrypt_plot.h"

static mpicrypt_bench_plan_t plan;
static const char *csv_path, *raw_path, *plot_path, *html_path;
static bool json, no_pin, quick;

static const mpicrypt_option_t options[] = {
    {"schemes", MPICRYPT_NAMES, "LIST", NULL, &plan.schemes,
     "Columns beside plain. Of messages (default: tuned,naive,crypt): tuned (plain, btl/tcp told to send in fragments of 512 KiB), raised (plain, btl/tcp with "
     "limits of 256 KiB), naive (plain, every message sealed by OpenSSL in the benchmark, as in the papers), crypt "
     "(pml/crypt as installed), crypt-tuned, crypt-raised (with the same settings as tuned and raised), and for the "
     "papers' ablation pipe (one thread), threads (one chunk) and both. Of collectives (default: all): ring (plain, "
     "Open MPI's ring all-gather), hop (pml/crypt alone, sealing on every hop), auto (what coll/cryptag chooses) and "
     "its algorithms: for allgather naive, o-ring, o-rd, o-rd2, c-ring, c-rd, hs1, hs2, for bcast binomial, chain, "
     "for alltoall node."},
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
     "Stop when every size has so many FAST rounds (default: 9); a round is FAST if plain was within 10% of the best "
     "quartile of plain's times. For collectives and nas: run so many rounds, all of which count. With --paper, of "
     "messages: at least so many (default: 10)."},
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
     "Words that make the launcher place ranks on nodes in turn (default: --map-by node), for collectives as --shape "
     "and --order say (default: --map-by ppr:N:node, and --rank-by node, or what srun has for that); not used with "
     "--local."},
    {"host", MPICRYPT_TEXT, "NAME", "ob1", &plan.host, "The PML of plain, and the host of pml/crypt: ob1 or ucx."},
    {"local", MPICRYPT_FLAG, NULL, NULL, &plan.local, "Partners on one node, where pml/crypt does not seal."},
    {"no-pin", MPICRYPT_FLAG, NULL, NULL, &no_pin,
     "Do not pin ranks. Otherwise each is pinned to a core of its own, if there are enough and unless the launcher "
     "binds them."},
    {"cpus-per-rank", MPICRYPT_COUNT, "N", "1", &plan.cpus_per_rank,
     "Pin each rank to so many processors, where there are enough."},
    {"csv", MPICRYPT_TEXT, "FILE", NULL, &csv_path,
     "Also write the results as CSV; '-' is standard output, and replaces the table."},
    {"raw", MPICRYPT_TEXT, "FILE", NULL, &raw_path, "Also write the values of every single round as CSV."},
    {"json", MPICRYPT_FLAG, NULL, NULL, &json, "Print JSON instead of the table."},
    {"plot", MPICRYPT_TEXT, "FILE", NULL, &plot_path,
     "Also draw times and ratios to plain over the message size. FILE ends in .svg, or in .png if the cairo library "
     "(Debian: libcairo2) is installed."},
    {"html", MPICRYPT_TEXT, "FILE", NULL, &html_path,
     "Write a report instead: one HTML page, with plots, tables and the papers' own figures, that needs no other file."},
    {"program", MPICRYPT_TEXT, "FILE", NULL, &plan.program,
     "The program that is started on the nodes, instead of the installed mpicrypt-mpi."},
    {NULL, MPICRYPT_FLAG, NULL, NULL, NULL, NULL}
};

/* ---- checks ---- */

static int check_range(const char *option, const mpicrypt_sizes_t *list, size_t low, size_t high)
{
    for (int i = 0; i < list->count; ++i) {
        if (list->value[i] < low || list->value[i] > high) {
            return mpicrypt_error(MPICRYPT_USAGE, "--%s: %zu is not between %zu and %zu", option, list->value[i], low,
                                  high);
        }
    }
    return MPICRYPT_OK;
}

static int check_one(const char *option, size_t value, size_t low, size_t high)
{
    return check_range(option, &(mpicrypt_sizes_t){&value, 1}, low, high);
}

static int check_values(void)
{
    int rc = check_range("size", &plan.sizes, 0, (size_t) 1 << 30);

    rc = rc ? rc : check_range("pairs", &plan.pairs, 1, 1 << 16);
    rc = rc ? rc : check_range("dims", &plan.dims, 2, 4);
    rc = rc ? rc : check_range("compute", &plan.compute, 0, 95);
    rc = rc ? rc : check_one("window", plan.window, 1, 1 << 16);
    rc = rc ? rc : check_range("ranks", &plan.ranks, 2, 1 << 20);
    rc = rc ? rc : check_one("fast", plan.fast, 1, 10000);
    rc = rc ? rc : check_one("rounds", plan.rounds, plan.fast, 10000);
    rc = rc ? rc : check_one("laps", plan.laps, 1, 1000);
    rc = rc ? rc : check_one("percent", plan.percent, 1, 100);
    rc = rc ? rc : check_one("per-cpu", plan.per_cpu, 1, 1024);
    rc = rc ? rc : check_one("cpus-per-rank", plan.cpus_per_rank, 1, 1024);
    for (int i = 0; i < plan.bits.count && MPICRYPT_OK == rc; ++i) {
        if (128 != plan.bits.value[i] && 192 != plan.bits.value[i] && 256 != plan.bits.value[i]) {
            rc = mpicrypt_error(MPICRYPT_USAGE, "--bits: %zu is not one of 128, 192, 256", plan.bits.value[i]);
        }
    }
    if (MPICRYPT_OK == rc && (plan.lap_ms <= 0 || plan.lap_ms > 60000)) {
        rc = mpicrypt_error(MPICRYPT_USAGE, "--lap-ms: %g is not between 0 and 60000", plan.lap_ms);
    }
    if (MPICRYPT_OK == rc && 0 != strcmp(plan.host, "ob1") && 0 != strcmp(plan.host, "ucx")) {
        rc = mpicrypt_error(MPICRYPT_USAGE, "--host: '%s' is neither ob1 nor ucx", plan.host);
    }
    return rc;
}

/* Before the measurement, not after it. */
static int check_files(void)
{
    if (json && NULL != csv_path && 0 == strcmp(csv_path, "-")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--json and --csv - both want standard output");
    }
    int rc = NULL == plot_path ? MPICRYPT_OK : mpicrypt_plot_check(plot_path);
    rc = rc ? rc : mpicrypt_writable(csv_path);
    rc = rc ? rc : mpicrypt_writable(raw_path);
    rc = rc ? rc : mpicrypt_writable(plot_path);
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
                          "allgather, bcast, alltoall, io, nas"
                          : "which benchmark: pingpong, pairs, stencil, allgather, bcast, alltoall, io or nas?%s", operand_count > 0 ? operands[0] : "");
}

static size_t at_most(size_t value, size_t limit) { return value < limit ? value : limit; }

static int set_default(mpicrypt_names_t *list, const char *text)
{
    char error[256];

    return list->count > 0 || 0 == mpicrypt_names_parse(text, list, error, sizeof(error))
               ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_FAILED, "%s", error);
}

static int set_quick(void)
{
    if (quick) {
        plan.fast = at_most(plan.fast, 3);
        plan.rounds = at_most(plan.rounds, 6);
        plan.laps = at_most(plan.laps, 3);
    }
    int rc = set_default(&plan.workloads, quick ? "tile,noncontig" : "tile,noncontig,rows,matmul");
    rc = rc ? rc : set_default(&plan.accesses, quick ? "row,column" : "row,column,block");
    return rc ? rc : set_default(&plan.ops, quick ? "write,read" : "write,read,overwrite");
}

/* Lists whose default depends on the pattern, and what --paper says. */
static int set_defaults(void)
{
    const mpicrypt_bench_coll_t *coll = mpicrypt_bench_coll(plan.pattern);
    char error[256];
    int rc = 0;

    plan.every = NULL != coll;
    if (0 == plan.lap_ms) {
        plan.lap_ms = NULL == coll ? 10 : 50;
    }
    if (NULL != coll && plan.local) {
        return mpicrypt_error(MPICRYPT_USAGE, "--local is not for collectives, which are over all ranks");
    }
    if (NULL == coll && plan.paper && MPICRYPT_OK != (rc = mpicrypt_bench_cryptmpi(&plan))) {
        return rc;
    }
    if (NULL != coll && plan.paper) {
        mpicrypt_sizes_free(&plan.bits);
        rc = mpicrypt_sizes_parse("128,256", &plan.bits, error, sizeof(error));
    }
    if (0 == rc && 0 == plan.schemes.count) {
        rc = mpicrypt_names_parse(NULL != coll ? coll->schemes
                                  : plan.paper || 0 == strcmp(plan.pattern, "nas") ? "naive,crypt" : "tuned,naive,crypt", &plan.schemes, error,
                                  sizeof(error));
    }
    if (0 == rc && 0 == plan.sizes.count) {
        rc = mpicrypt_sizes_parse(NULL == coll ? "1,1K,4K,16K,64K,256K,1M,8M" : coll->sizes, &plan.sizes, error,
                                  sizeof(error));
    }
    return 0 == rc ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_FAILED, "%s", error);
}

/* ---- variants ---- */

static int message_variants(mpicrypt_bench_variant_t **variants, int *count)
{
    bool pairs = 0 == strcmp(plan.pattern, "pairs"), stencil = 0 == strcmp(plan.pattern, "stencil");
    int outer = stencil ? plan.dims.count : pairs ? plan.pairs.count : 1;
    int inner = stencil ? plan.compute.count : 1, sizes = stencil ? plan.ranks.count : 1;
    mpicrypt_bench_variant_t *variant = calloc((size_t) (outer * inner * sizes), sizeof(*variant));

    *variants = variant;
    *count = 0;
    for (int o = 0; o < outer && NULL != variant; ++o) {
        for (int i = 0; i < inner * sizes; ++i) {
            size_t number = pairs ? plan.pairs.value[o] : 1;
            variant[(*count)++] = (mpicrypt_bench_variant_t){
                .ranks = stencil ? plan.ranks.value[i / inner] : 2 * number, .pairs = number,
                .dims = stencil ? plan.dims.value[o] : 2, .compute = stencil ? plan.compute.value[i % inner] : 0};
        }
    }
    return NULL == variant ? mpicrypt_error(MPICRYPT_FAILED, "out of memory") : MPICRYPT_OK;
}

static int make_variants(mpicrypt_bench_variant_t **variants, int *count)
{
    if (0 == strcmp(plan.pattern, "io")) {
        return mpicrypt_bench_io_variants(&plan, variants, count);
    }
    if (NULL == mpicrypt_bench_coll(plan.pattern)) {
        int rc = message_variants(variants, count);
        return MPICRYPT_OK == rc && plan.cryptmpi ? mpicrypt_bench_cryptmpi_scale(&plan, *variants, count) : rc;
    }
    int rc = mpicrypt_bench_coll_variants(&plan, variants, count);
    return MPICRYPT_OK == rc && plan.paper ? mpicrypt_bench_coll_scale(&plan, *variants, *count) : rc;
}

static int output(const mpicrypt_bench_places_t *places, const mpicrypt_bench_values_t *values, int count)
{
    mpicrypt_table_t *table = mpicrypt_bench_table(), *raw = mpicrypt_bench_raw_table();
    bool csv_on_stdout = NULL != csv_path && 0 == strcmp(csv_path, "-");
    int rc = MPICRYPT_OK;

    for (int v = 0; v < count; ++v) {
        mpicrypt_bench_add(&plan, &values[v], table);
        mpicrypt_bench_add_raw(&plan, &values[v], raw);
    }
    if (json) {
        mpicrypt_bench_json(&plan, places, table);
    } else if (!csv_on_stdout) {
        mpicrypt_bench_print(&plan, places, values, count, table, stdout);
    }
    if (NULL != csv_path) {
        rc = mpicrypt_table_csv_file(table, csv_path);
    }
    if (MPICRYPT_OK == rc && NULL != raw_path) {
        rc = mpicrypt_table_csv_file(raw, raw_path);
    }
    if (MPICRYPT_OK == rc && NULL != plot_path) {
        rc = mpicrypt_bench_plot(&plan, values, count, plot_path);
    }
    mpicrypt_table_free(table);
    mpicrypt_table_free(raw);
    return rc;
}

/* Too few FAST rounds are no failure, but are said. */
static void warn_incomplete(const mpicrypt_bench_values_t *values)
{
    char text[96];

    if (!values->complete) {
        mpicrypt_bench_variant_text(&plan, values->variant, text, sizeof(text));
        if (plan.cryptmpi) {
            fprintf(stderr, "mpicrypt bench: %s: after %zu rounds the paper's rule was not satisfied\n", text,
                    values->rounds);
            return;
        }
        fprintf(stderr, "mpicrypt bench: %s: %zu rounds did not give %zu FAST ones at every size\n", text,
                values->rounds, plan.fast);
    }
}

static int measure(void)
{
    int count, done = 0;
    mpicrypt_bench_variant_t *variant = NULL;
    int rc = make_variants(&variant, &count);
    mpicrypt_bench_values_t *values = calloc((size_t) count + 1, sizeof(*values));
    mpicrypt_bench_places_t places = {.nodes = 0};

    if (MPICRYPT_OK == rc && NULL == values) {
        rc = mpicrypt_error(MPICRYPT_FAILED, "out of memory");
    }
    for (; done < count && MPICRYPT_OK == rc; ++done) {
        mpicrypt_bench_places_free(&places);
        rc = mpicrypt_bench_places(&plan, &variant[done], &places);
        if (MPICRYPT_OK == rc) {
            rc = mpicrypt_bench_rounds(&plan, &variant[done], &places, &values[done]);
        }
        if (MPICRYPT_OK == rc) {
            warn_incomplete(&values[done]);
        }
    }
    if (MPICRYPT_OK == rc) {
        rc = output(&places, values, count);
    }
    for (int v = 0; v < done; ++v) {
        mpicrypt_bench_values_free(&values[v]);
        mpicrypt_sizes_free(&variant[v].work);
    }
    mpicrypt_bench_places_free(&places);
    free(values);
    free(variant);
    return rc;
}

/* Each benchmark on its own takes the options that are its own. */
static int run_many(const char *pattern)
{
    if (NULL != csv_path || NULL != raw_path || NULL != plot_path || json) {
        return mpicrypt_error(MPICRYPT_USAGE, "all and --html have no --csv, --raw, --plot and --json");
    }
    if (0 == strcmp(pattern, "all") && (plan.schemes.count > 0 || plan.local)) {
        return mpicrypt_error(MPICRYPT_USAGE, "--schemes and --local are for one benchmark, not for all");
    }
    plan.lap_ms = 0 == plan.lap_ms ? 10 : plan.lap_ms;
    int rc = check_values();

    rc = rc ? rc : mpicrypt_writable(html_path);
    return rc ? rc : mpicrypt_bench_all(pattern, html_path, plan.key_label, plan.fast, plan.lap_ms);
}

static int run(int operand_count, char **operands)
{
    const bool messages = plan.paper && operand_count > 0 && NULL == mpicrypt_bench_coll(operands[0]);

    plan.pin = !no_pin;
    plan.fast = 0 != plan.fast ? plan.fast : messages ? mpicrypt_bench_cryptmpi_least() : 9;
    if (0 == plan.rounds) {
        size_t most = messages ? mpicrypt_bench_cryptmpi_most() : 36;
        plan.rounds = plan.fast > most ? plan.fast : most;
    }
    bool all = operand_count > 0 && 0 == strcmp(operands[0], "all");
    int rc = all ? MPICRYPT_OK : check_pattern(operand_count, operands);

    if (MPICRYPT_OK == rc && (all || NULL != html_path)) {
        return NULL != plan.pattern && 0 == strcmp(plan.pattern, "nas")
                   ? mpicrypt_error(MPICRYPT_USAGE, "nas has no --html") : run_many(operands[0]);
    }
    rc = rc ? rc : set_defaults();
    rc = rc ? rc : set_quick();
    rc = rc ? rc : check_values();
    rc = rc || 0 != strcmp(plan.pattern, "io") ? rc : mpicrypt_bench_io_check(&plan);
    rc = rc ? rc : mpicrypt_bench_columns(&plan, operand_count - 1, operands + 1);
    rc = rc ? rc : check_files();
    rc = rc ? rc : 0 == strcmp(plan.pattern, "nas") ? mpicrypt_bench_nas(&plan, csv_path, json) : measure();
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
        "columns are plain, messages (pml/crypt, plain files) and file (encrypted files, too), one for each of --bits, "
        "and its size is the block size. 'all' is mpicrypt speed and each of these with its defaults; io only if there "
        "is a --label. 'nas' runs programs of the NAS Parallel Benchmarks that you have built, and prints the time of "
        "communication between nodes, of all communication and of the whole run, as CryptMPI's Table III does.\n\n"
        "Whether messages are encrypted is decided when MPI starts, so that every column is a job of its own. Jobs "
        "(the algorithms of coll/cryptag share one, and take turns in it) are short and take turns, round after round, so that a machine that changes its speed does so for all of "
        "them, and a ratio is taken within a round. Rounds go on until there are enough FAST ones; the rule is "
        "printed with the results. 'slow' is the ratio in the other rounds. Of collectives every round counts, and a "
        "table with a line for each size shows all columns side by side, and how far auto is from the best "
        "algorithm.\n\n"
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
