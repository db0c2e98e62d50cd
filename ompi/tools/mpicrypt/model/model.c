/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt model: predictions for given parameters, and for machines that are
 * not at hand.  Nothing is measured.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "ompi/tools/mpicrypt/plot/plot.h"

#define RANKS_MAX ((size_t) 1 << 22)
#define ROWS_MAX  100000
#define WINDOW_MAX ((size_t) 1 << 22)

static const char *profile_name, *comm_text, *enc_text, *opening_text, *csv_path, *plot_path;
static mpicrypt_names_t patterns;
static mpicrypt_sizes_t sizes, nodes, ranks, gbps, threads, ks, compute;
static size_t hardware_threads, window;
static double oversubscription, latency = NAN;      /* not given: the profile's */
static bool json;

static const mpicrypt_option_t options[] = {
    {"profile", MPICRYPT_TEXT, "NAME", "noleland", &profile_name,
     "Parameters of the model: an installed profile (bridges, noleland), or a file of MCA parameters with a slash in "
     "its name, for example from 'mpicrypt tune'."},
    {"comm", MPICRYPT_TEXT, "MODEL", NULL, &comm_text,
     "Replaces the profile's communication: FROM:ALPHA:BETA,... as in a profile (bytes, microseconds, "
     "microseconds a byte)."},
    {"enc", MPICRYPT_TEXT, "MODEL", NULL, &enc_text,
     "Replaces the profile's encryption: FROM:ALPHA:A:B,... as in a profile (bytes, microseconds, bytes a "
     "microsecond of the first and of each further thread)."},
    {"pattern", MPICRYPT_NAMES, "LIST", "pingpong", &patterns,
     "What is sent: pingpong, pairs, stencil2d, stencil3d, stencil4d, alltoall."},
    {"size", MPICRYPT_SIZES, "LIST", "64K,256K,1M,4M", &sizes,
     "Message sizes in bytes; K, M and G are powers of 1024."},
    {"nodes", MPICRYPT_SIZES, "LIST", "2", &nodes, "Numbers of nodes."},
    {"ranks", MPICRYPT_SIZES, "LIST", "1", &ranks,
     "Ranks of a node. They share its link and its hardware threads."},
    {"gbps", MPICRYPT_SIZES, "LIST", "0", &gbps,
     "Link speeds in 10^9 bits a second. 0 is the speed that was measured for the profile."},
    {"latency", MPICRYPT_REAL, "US", NULL, &latency, "Latency in microseconds. Default: the profile's."},
    {"oversubscription", MPICRYPT_REAL, "FACTOR", "1", &oversubscription,
     "How much slower a link is when all nodes use the network."},
    {"hwthreads", MPICRYPT_COUNT, "N", "64", &hardware_threads, "Hardware threads of a node."},
    {"threads", MPICRYPT_SIZES, "LIST", "0", &threads,
     "Encrypting threads of a rank. 0 is the model's choice, within the rank's share of hardware threads less those "
     "for communication."},
    {"k", MPICRYPT_SIZES, "LIST", "0", &ks,
     "Chunks of a message in the ping-pong. 0 is the model's choice. In the other patterns k is 1."},
    {"window", MPICRYPT_COUNT, "N", "64", &window, "For pairs: messages in flight for each rank."},
    {"opening", MPICRYPT_TEXT, "WHEN", "after", &opening_text,
     "When a rank decrypts: 'after' all messages have arrived, or 'while' they arrive."},
    {"compute", MPICRYPT_SIZES, "LIST", "0", &compute, "Computation in percent of the plain time. Not for pingpong."},
    {"csv", MPICRYPT_TEXT, "FILE", NULL, &csv_path,
     "Also write the predictions as CSV. '-' is standard output, instead of the table."},
    {"json", MPICRYPT_FLAG, NULL, NULL, &json, "Print JSON instead of the table."},
    {"plot", MPICRYPT_TEXT, "FILE", NULL, &plot_path,
     "Also plot the predictions. FILE ends in .svg, or in .png if the cairo library (Debian: libcairo2) is "
     "installed."},
    {NULL, MPICRYPT_FLAG, NULL, NULL, NULL, NULL}
};

/* ---- checks ---- */

static int check_list(const char *name, const mpicrypt_sizes_t *list, size_t least, size_t most)
{
    for (int i = 0; i < list->count; ++i) {
        if (list->value[i] < least || list->value[i] > most) {
            return mpicrypt_error(MPICRYPT_USAGE, "--%s: %zu is not between %zu and %zu", name,
                                  list->value[i], least, most);
        }
    }
    return MPICRYPT_OK;
}

static size_t largest(const mpicrypt_sizes_t *list)
{
    size_t most = 0;

    for (int i = 0; i < list->count; ++i) {
        most = list->value[i] > most ? list->value[i] : most;
    }
    return most;
}

static int check_ranges(void)
{
    int rc = check_list("size", &sizes, 0, (size_t) 1 << 50);
    rc = MPICRYPT_OK != rc ? rc : check_list("nodes", &nodes, 2, RANKS_MAX);
    rc = MPICRYPT_OK != rc ? rc : check_list("ranks", &ranks, 1, 4096);
    rc = MPICRYPT_OK != rc ? rc : check_list("gbps", &gbps, 0, 1000000);
    rc = MPICRYPT_OK != rc ? rc : check_list("threads", &threads, 0, 4096);
    rc = MPICRYPT_OK != rc ? rc : check_list("k", &ks, 0, 1 << 20);
    rc = MPICRYPT_OK != rc ? rc : check_list("compute", &compute, 0, 99);
    return rc;
}

static int check_values(void)
{
    size_t most_threads = largest(&threads) > 0 ? largest(&threads) : 1;
    size_t row_count = (size_t) patterns.count * (size_t) sizes.count * (size_t) nodes.count
                     * (size_t) ranks.count * (size_t) gbps.count * (size_t) threads.count
                     * (size_t) ks.count * (size_t) compute.count;

    if (hardware_threads < 1 || hardware_threads > 65536) {
        return mpicrypt_error(MPICRYPT_USAGE, "--hwthreads: %zu is not between 1 and 65536", hardware_threads);
    }
    if (most_threads * largest(&ranks) > hardware_threads) {
        return mpicrypt_error(MPICRYPT_USAGE, "--threads: %zu for each of %zu ranks are more than the %zu "
                              "hardware threads of a node (--hwthreads)", most_threads, largest(&ranks),
                              hardware_threads);
    }
    if (largest(&nodes) * largest(&ranks) > RANKS_MAX) {
        return mpicrypt_error(MPICRYPT_USAGE, "--nodes and --ranks: more than %zu ranks", RANKS_MAX);
    }
    if (row_count > ROWS_MAX) {
        return mpicrypt_error(MPICRYPT_USAGE, "%zu predictions are more than %d", row_count, ROWS_MAX);
    }
    if (oversubscription <= 0 || latency < 0) {
        return mpicrypt_error(MPICRYPT_USAGE, "--oversubscription must be positive, --latency not negative");
    }
    if (window < 1 || window > WINDOW_MAX) {
        return mpicrypt_error(MPICRYPT_USAGE, "--window: %zu is not between 1 and %zu", window, WINDOW_MAX);
    }
    if (0 != strcmp(opening_text, "after") && 0 != strcmp(opening_text, "while")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--opening: '%s' is neither 'after' nor 'while'", opening_text);
    }
    if (json && NULL != csv_path && 0 == strcmp(csv_path, "-")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--json and --csv - both want standard output");
    }
    for (int i = 0; i < patterns.count; ++i) {
        if (mpicrypt_pattern_find(patterns.value[i]) < 0) {
            return mpicrypt_error(MPICRYPT_USAGE, "--pattern: there is no '%s'; there are: pingpong, pairs, stencil2d, "
                                  "stencil3d, stencil4d, alltoall", patterns.value[i]);
        }
    }
    return MPICRYPT_OK;
}

static int check_files(void)
{
    int rc = NULL == plot_path ? MPICRYPT_OK : mpicrypt_plot_check(plot_path);
    rc = MPICRYPT_OK != rc ? rc : mpicrypt_writable(csv_path);
    return MPICRYPT_OK != rc ? rc : mpicrypt_writable(plot_path);
}

/* ---- the setting ---- */

static int setting_read(mpicrypt_setting_t *setting)
{
    mpicrypt_profile_t profile;
    opal_crypt_why_t why;

    int rc = mpicrypt_profile_read(profile_name, &profile);
    if (MPICRYPT_OK != rc) {
        return rc;
    }
    if (NULL != comm_text && OPAL_CRYPT_OK != opal_crypt_model_parse_comm(&profile.model, comm_text, &why)) {
        return mpicrypt_error(MPICRYPT_USAGE, "--comm: %s", why.detail);
    }
    if (NULL != enc_text && OPAL_CRYPT_OK != opal_crypt_model_parse_enc(&profile.model, enc_text, &why)) {
        return mpicrypt_error(MPICRYPT_USAGE, "--enc: %s", why.detail);
    }
    if (0 == profile.model.comm_count || 0 == profile.model.enc_count) {
        return mpicrypt_error(MPICRYPT_FAILED, "the profile %s has no model, only a table; give --comm and --enc",
                              profile_name);
    }
    for (int i = 0; !isnan(latency) && i < profile.model.comm_count; ++i) {
        profile.model.comm[i].alpha_us = latency;
    }
    *setting = (mpicrypt_setting_t){
        .model = profile.model, .hardware_threads = hardware_threads, .chop_min = profile.chop_min,
        .comm_threads = profile.comm_threads, .window = window,
        .oversubscription = oversubscription,
        .opening = 0 == strcmp(opening_text, "after") ? OPAL_CRYPT_MODEL_OPEN_AFTER : OPAL_CRYPT_MODEL_OPEN_WHILE
    };
    return MPICRYPT_OK;
}

/* ---- running ---- */

/* Case number `i` of all combinations; the size changes fastest. */
static mpicrypt_case_t case_at(size_t i)
{
    mpicrypt_case_t of = {.pattern = MPICRYPT_PINGPONG};
    const struct {
        const mpicrypt_sizes_t *list;
        size_t *target;
    } lists[] = {{&sizes, &of.bytes}, {&ks, &of.k}, {&threads, &of.threads}, {&compute, &of.compute},
                 {&ranks, &of.ranks}, {&nodes, &of.nodes}, {&gbps, &of.gbps}};

    for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); ++l) {
        *lists[l].target = lists[l].list->value[i % (size_t) lists[l].list->count];
        i /= (size_t) lists[l].list->count;
    }
    of.pattern = (mpicrypt_pattern_t) mpicrypt_pattern_find(patterns.value[i]);
    return of;
}

static int output(const mpicrypt_setting_t *setting, const mpicrypt_row_t *rows, int count)
{
    mpicrypt_table_t *table = mpicrypt_model_table(rows, count);
    char comm[512], enc[512];
    int rc = MPICRYPT_OK;

    opal_crypt_model_print_comm(&setting->model, comm, sizeof(comm));
    opal_crypt_model_print_enc(&setting->model, enc, sizeof(enc));
    if (json) {
        printf("{\n  \"model\": {\"comm\": \"%s\", \"enc\": \"%s\"},\n  \"results\": ", comm, enc);
        mpicrypt_table_json(table, stdout);
        printf("\n}\n");
    } else if (NULL == csv_path || 0 != strcmp(csv_path, "-")) {
        printf("Predicted, not measured.  Model: comm %s\n                                enc  %s\n\n", comm, enc);
        mpicrypt_table_print(table, stdout);
    }
    if (NULL != csv_path) {
        rc = mpicrypt_table_csv_file(table, csv_path);
    }
    mpicrypt_table_free(table);
    return MPICRYPT_OK == rc && NULL != plot_path ? mpicrypt_model_plot(rows, count, plot_path) : rc;
}

static int run(int operand_count, char **operands)
{
    mpicrypt_setting_t setting;

    (void) operand_count;
    (void) operands;
    int rc = check_ranges();
    rc = MPICRYPT_OK != rc ? rc : check_values();
    rc = MPICRYPT_OK != rc ? rc : check_files();
    rc = MPICRYPT_OK != rc ? rc : setting_read(&setting);
    if (MPICRYPT_OK != rc) {
        return rc;
    }
    int count = patterns.count * sizes.count * nodes.count * ranks.count * gbps.count * threads.count
              * ks.count * compute.count;
    mpicrypt_row_t *rows = calloc((size_t) count, sizeof(*rows));
    if (NULL == rows) {
        return mpicrypt_error(MPICRYPT_FAILED, "out of memory");
    }
    for (int i = 0; i < count; ++i) {
        const mpicrypt_case_t of = case_at((size_t) i);
        rows[i] = mpicrypt_predict(&setting, &of);
    }
    rc = output(&setting, rows, count);
    free(rows);
    return rc;
}

const mpicrypt_verb_t mpicrypt_model_verb = {
    .name = "model",
    .summary = "predict times for machines that you do not have",
    .synopsis = "[--profile NAME] [--pattern LIST] [--size LIST] [--nodes LIST] [OPTION]...",
    .description =
        "Predicts how long communication takes plain, naively encrypted (encrypt, send, decrypt) and with "
        "(k,t)-chopping, by the models of the papers on encrypted MPI. Nothing is measured or sent, so it works for "
        "machines that you do not have.\n\n"
        "Each combination of the lists gives one line. 'pingpong' is one message, one way. 'pairs' is the "
        "multiple-pair benchmark: every rank of a node sends --window messages without waiting. A stencil is one "
        "step: every rank sends one message to each neighbor in a periodic grid, and neighbors on other nodes count. "
        "'alltoall' is one message to every rank of another node. 'msgs' is how many messages a rank sends to other "
        "nodes; 'bound' is what limits the encrypted run, the link or the cipher.\n\n"
        "More threads or another link speed than were measured are extrapolations.",
    .options = options,
    .examples = "mpicrypt model --size 64K,512K,4M --threads 1,2,4,8,16,32,64\n"
                "mpicrypt model --gbps 100,400 --size 1M,4M,16M --plot link.svg\n"
                "mpicrypt model --pattern stencil3d --nodes 64,1024,8192 --ranks 16 --compute 60\n",
    .run = run
};
