/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt speed: how fast this machine seals and opens.  The papers'
 * encryption-decryption benchmark, with the providers taking turns so that a
 * machine that changes its speed changes it for all of them.
 *
 *     for each key size, thread count, message size:
 *         for each round: A, B, C ... then B, C, A ...   (a batch of each)
 *         median and quartiles of the rounds
 */
#include <stdlib.h>
#include <string.h>

#include "mpicrypt_plot.h"
#include "mpicrypt_speed.h"

static mpicrypt_names_t wanted;
static mpicrypt_sizes_t bits, sizes, threads;
static size_t rounds;
static double batch_ms;
static const char *csv_path, *plot_path;
static bool json;

static const mpicrypt_option_t options[] = {
    {"provider", MPICRYPT_NAMES, "LIST", "all", &wanted,
     "Which providers: names separated by commas, or 'all'. 'openssl-naive' is OpenSSL with a new "
     "context and a new algorithm look-up for every message, as the papers' naive library called it; "
     "it exists in this benchmark only."},
    {"bits", MPICRYPT_SIZES, "LIST", "128,256", &bits,
     "AES-GCM key sizes: 128, 192, 256. A provider that cannot do one of them is left out there."},
    {"size", MPICRYPT_SIZES, "LIST", "1,16,64,256,1K,4K,16K,64K,256K,1M,4M", &sizes,
     "Message sizes in bytes; K, M and G are powers of 1024."},
    {"threads", MPICRYPT_SIZES, "LIST", "1", &threads,
     "Numbers of threads. Every thread works on messages of its own and is pinned to a processor of "
     "its own, taken from those that this process may run on; there cannot be more threads than those."},
    {"rounds", MPICRYPT_COUNT, "N", "9", &rounds,
     "Rounds. In each, every provider seals and opens one batch, in rotating order."},
    {"batch-ms", MPICRYPT_REAL, "MS", "3", &batch_ms,
     "How long one batch should take, in milliseconds."},
    {"csv", MPICRYPT_TEXT, "FILE", NULL, &csv_path,
     "Also write the results as CSV: one header line, first column the provider; '-' is standard "
     "output, and replaces the table."},
    {"json", MPICRYPT_FLAG, NULL, NULL, &json,
     "Print JSON instead of the table."},
    {"plot", MPICRYPT_TEXT, "FILE", NULL, &plot_path,
     "Also draw the throughput of sealing over the message size. FILE ends in .svg, or in .png if the "
     "cairo library (Debian: libcairo2) is installed."},
    {NULL, MPICRYPT_FLAG, NULL, NULL, NULL, NULL}
};

static const mpicrypt_column_t columns[] = {
    {"provider", "provider", 0},
    {"bits", "bits", 0},
    {"threads", "threads", 0},
    {"bytes", "size", 0},
    {"rounds", NULL, 0},
    {"seal_ns", "seal ns", 1},
    {"seal_ns_q1", NULL, 1},
    {"seal_ns_q3", NULL, 1},
    {"seal_iqr_percent", "IQR %", 1},
    {"seal_MBps", "seal MB/s", 1},
    {"open_ns", "open ns", 1},
    {"open_ns_q1", NULL, 1},
    {"open_ns_q3", NULL, 1},
    {"open_iqr_percent", "IQR %", 1},
    {"open_MBps", "open MB/s", 1},
    {"both_ns", NULL, 1},
    {"both_MBps", "seal+open MB/s", 1},
    {NULL, NULL, 0}
};

/* One provider in one group, with what its rounds measured. */
typedef struct contender {
    mpicrypt_speed_cell_t cell;
    double *seal_ns, *open_ns, *both_ns;
} contender_t;

/* What a curve of the plot is made of. */
typedef struct result {
    const char *provider;
    size_t bits, threads, bytes;
    double seal_MBps;
} result_t;

static const opal_aead_module_t *modules[MPICRYPT_PROVIDERS_MAX];
static int module_count;
static result_t *results;
static int result_count;

/* ---- checks ---- */

static int cipher_of(size_t key_bits)
{
    return 128 == key_bits ? OPAL_AEAD_AES_128_GCM
         : 192 == key_bits ? OPAL_AEAD_AES_192_GCM
         : 256 == key_bits ? OPAL_AEAD_AES_256_GCM : -1;
}

static int check_values(int cpu_count)
{
    for (int i = 0; i < bits.count; ++i) {
        if (cipher_of(bits.value[i]) < 0) {
            return mpicrypt_error(MPICRYPT_USAGE, "--bits: %zu is not one of 128, 192, 256", bits.value[i]);
        }
    }
    for (int i = 0; i < threads.count; ++i) {
        if (threads.value[i] < 1 || threads.value[i] > (size_t) cpu_count) {
            return mpicrypt_error(MPICRYPT_USAGE, "--threads: %zu, but this process may run on %d "
                                  "processors, and every thread needs one", threads.value[i], cpu_count);
        }
    }
    if (rounds < 1 || rounds > 100000) {
        return mpicrypt_error(MPICRYPT_USAGE, "--rounds: %zu is not between 1 and 100000", rounds);
    }
    if (batch_ms <= 0 || batch_ms > 60000) {
        return mpicrypt_error(MPICRYPT_USAGE, "--batch-ms: %g is not between 0 and 60000", batch_ms);
    }
    if (json && NULL != csv_path && 0 == strcmp(csv_path, "-")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--json and --csv - both want standard output");
    }
    return MPICRYPT_OK;
}

/* Before the measurement, not after it. */
static int check_files(void)
{
    int rc = NULL == plot_path ? MPICRYPT_OK : mpicrypt_plot_check(plot_path);
    if (MPICRYPT_OK == rc) {
        rc = mpicrypt_writable(csv_path);
    }
    return MPICRYPT_OK != rc ? rc : mpicrypt_writable(plot_path);
}

/* Keep the wanted ones of `modules`, in the order of --provider. */
static int choose_modules(void)
{
    const opal_aead_module_t *all[MPICRYPT_PROVIDERS_MAX];
    char known[512] = "";
    int all_count = mpicrypt_providers(all);

    for (int i = 0; i < all_count; ++i) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, "%s%s", 0 == i ? "" : ", ", all[i]->name);
    }
    module_count = 0;
    for (int w = 0; w < wanted.count; ++w) {
        bool every = 0 == strcmp(wanted.value[w], "all"), found = every;
        for (int i = 0; i < all_count; ++i) {
            bool taken = false;
            for (int m = 0; m < module_count; ++m) {
                taken = taken || modules[m] == all[i];
            }
            if (every || 0 == strcmp(wanted.value[w], all[i]->name)) {
                found = true;
                if (!taken) {
                    modules[module_count++] = all[i];
                }
            }
        }
        if (!found) {
            return mpicrypt_error(MPICRYPT_MISSING, "there is no provider '%s' here; there are: %s",
                                  wanted.value[w], known);
        }
    }
    return MPICRYPT_OK;
}

/* ---- measuring ---- */

static int provider_failed(const contender_t *contender, const char *operation)
{
    return mpicrypt_error(MPICRYPT_FAILED, "provider %s failed to %s %zu bytes",
                          contender->cell.module->name, operation, contender->cell.bytes);
}

static int contender_init(contender_t *contender, const opal_aead_module_t *module, size_t key_bits,
                          size_t bytes, size_t thread_count)
{
    memset(contender, 0, sizeof(*contender));
    contender->seal_ns = calloc(3 * rounds, sizeof(double));
    if (NULL == contender->seal_ns) {
        return mpicrypt_error(MPICRYPT_FAILED, "out of memory");
    }
    contender->open_ns = contender->seal_ns + rounds;
    contender->both_ns = contender->open_ns + rounds;
    if (OPAL_AEAD_OK != mpicrypt_speed_cell_init(&contender->cell, module, cipher_of(key_bits), bytes,
                                                 (int) thread_count)) {
        free(contender->seal_ns);
        return mpicrypt_error(MPICRYPT_FAILED, "provider %s cannot set up a %zu-bit key",
                              module->name, key_bits);
    }
    return MPICRYPT_OK;
}

static void contender_wipe(contender_t *contender)
{
    mpicrypt_speed_cell_wipe(&contender->cell);
    free(contender->seal_ns);
}

static int measure_rounds(mpicrypt_speed_team_t *team, contender_t *contenders, int count)
{
    for (int c = 0; c < count; ++c) {
        if (OPAL_AEAD_OK != mpicrypt_speed_calibrate(team, &contenders[c].cell, batch_ms / 1000)) {
            return provider_failed(&contenders[c], "seal and open");
        }
    }
    for (size_t round = 0; round < rounds; ++round) {
        for (int turn = 0; turn < count; ++turn) {
            contender_t *contender = &contenders[((size_t) turn + round) % (size_t) count];
            if (OPAL_AEAD_OK != mpicrypt_speed_seal(team, &contender->cell, &contender->seal_ns[round])) {
                return provider_failed(contender, "seal");
            }
            if (OPAL_AEAD_OK != mpicrypt_speed_open(team, &contender->cell, &contender->open_ns[round])) {
                return provider_failed(contender, "open");
            }
            contender->both_ns[round] = contender->seal_ns[round] + contender->open_ns[round];
        }
    }
    return MPICRYPT_OK;
}

/* MB = 10^6 bytes; all threads together. */
static double rate(const contender_t *contender, size_t thread_count, double ns)
{
    return 1e3 * (double) contender->cell.bytes * (double) thread_count / ns;
}

static void add_spread(mpicrypt_table_t *table, const mpicrypt_spread_t *spread)
{
    mpicrypt_table_number(table, spread->median);
    mpicrypt_table_number(table, spread->low);
    mpicrypt_table_number(table, spread->high);
    mpicrypt_table_number(table, 100 * (spread->high - spread->low) / spread->median);
}

static void add_row(mpicrypt_table_t *table, const contender_t *contender, size_t key_bits, size_t thread_count)
{
    mpicrypt_spread_t seal = mpicrypt_spread(contender->seal_ns, (int) rounds);
    mpicrypt_spread_t open = mpicrypt_spread(contender->open_ns, (int) rounds);
    mpicrypt_spread_t both = mpicrypt_spread(contender->both_ns, (int) rounds);

    mpicrypt_table_text(table, contender->cell.module->name);
    mpicrypt_table_count(table, key_bits);
    mpicrypt_table_count(table, thread_count);
    mpicrypt_table_bytes(table, contender->cell.bytes);
    mpicrypt_table_count(table, rounds);
    add_spread(table, &seal);
    mpicrypt_table_number(table, rate(contender, thread_count, seal.median));
    add_spread(table, &open);
    mpicrypt_table_number(table, rate(contender, thread_count, open.median));
    mpicrypt_table_number(table, both.median);
    mpicrypt_table_number(table, rate(contender, thread_count, both.median));
    results[result_count++] = (result_t){contender->cell.module->name, key_bits, thread_count,
                                         contender->cell.bytes, rate(contender, thread_count, seal.median)};
}

/* All providers that can, one key size, thread count and message size. */
static int measure_group(mpicrypt_speed_team_t *team, mpicrypt_table_t *table, size_t key_bits,
                         size_t thread_count, size_t bytes)
{
    contender_t contenders[MPICRYPT_PROVIDERS_MAX];
    int count = 0, rc = MPICRYPT_OK;

    for (int m = 0; m < module_count && MPICRYPT_OK == rc; ++m) {
        if (mpicrypt_provider_usable(modules[m], cipher_of(key_bits))) {
            rc = contender_init(&contenders[count], modules[m], key_bits, bytes, thread_count);
            count += MPICRYPT_OK == rc;
        }
    }
    if (MPICRYPT_OK == rc) {
        rc = measure_rounds(team, contenders, count);
    }
    for (int c = 0; c < count; ++c) {
        if (MPICRYPT_OK == rc) {
            add_row(table, &contenders[c], key_bits, thread_count);
        }
        contender_wipe(&contenders[c]);
    }
    return rc;
}

static int measure(mpicrypt_table_t *table, const int *cpus)
{
    size_t done = 0, total = (size_t) bits.count * (size_t) threads.count * (size_t) sizes.count;
    size_t max_bytes = 0;
    char label[64], size_room[24];
    int rc = MPICRYPT_OK;

    for (int s = 0; s < sizes.count; ++s) {
        max_bytes = sizes.value[s] > max_bytes ? sizes.value[s] : max_bytes;
    }
    for (int t = 0; t < threads.count && MPICRYPT_OK == rc; ++t) {
        mpicrypt_speed_team_t *team = mpicrypt_speed_team_new((int) threads.value[t], cpus, max_bytes);
        if (NULL == team) {
            return mpicrypt_error(MPICRYPT_FAILED, "no memory for %zu threads with messages of %s",
                                  threads.value[t], mpicrypt_size_text(max_bytes, size_room));
        }
        for (int b = 0; b < bits.count && MPICRYPT_OK == rc; ++b) {
            for (int s = 0; s < sizes.count && MPICRYPT_OK == rc; ++s) {
                snprintf(label, sizeof(label), "%zu bits, %zu threads, %s", bits.value[b],
                         threads.value[t], mpicrypt_size_text(sizes.value[s], size_room));
                mpicrypt_progress(label, done++, total);
                rc = measure_group(team, table, bits.value[b], threads.value[t], sizes.value[s]);
            }
        }
        mpicrypt_speed_team_free(team);
    }
    mpicrypt_progress_end();
    if (MPICRYPT_OK == rc && 0 == result_count) {
        return mpicrypt_error(MPICRYPT_MISSING, "none of these providers can do AES-GCM with these keys");
    }
    return rc;
}

/* ---- output ---- */

static void print_json(const mpicrypt_table_t *table)
{
    printf("{\n  \"benchmark\": \"speed\",\n  \"cipher\": \"AES-GCM\",\n  \"rounds\": %zu,\n  \"providers\": {", rounds);
    for (int m = 0; m < module_count; ++m) {
        printf("%s", 0 == m ? "" : ", ");
        mpicrypt_json_text(stdout, modules[m]->name);
        printf(": ");
        mpicrypt_json_text(stdout, modules[m]->version());
    }
    printf("},\n  \"results\": ");
    mpicrypt_table_json(table, stdout);
    printf("\n}\n");
}

static void print_table(const mpicrypt_table_t *table)
{
    printf("AES-GCM, %zu interleaved rounds, medians.  ns: one message of one thread; IQR: quartile\n"
           "distance over median; MB/s: 10^6 bytes a second, all threads together.\n\n", rounds);
    for (int m = 0; m < module_count; ++m) {
        printf("%-14s %s\n", modules[m]->name, modules[m]->version());
    }
    putchar('\n');
    mpicrypt_table_print(table, stdout);
}

/* One panel per key size and thread count, one curve per provider. */
static int plot(void)
{
    int panel_count = bits.count * threads.count, panel = 0, rc;
    mpicrypt_plot_t *picture = mpicrypt_plot_new("AES-GCM sealing", panel_count);
    char title[64];

    for (int b = 0; b < bits.count; ++b) {
        for (int t = 0; t < threads.count; ++t, ++panel) {
            snprintf(title, sizeof(title), "%zu bits, %zu thread%s", bits.value[b], threads.value[t],
                     1 == threads.value[t] ? "" : "s");
            mpicrypt_plot_panel(picture, panel, title, "message size (bytes)", "GB/s");
            mpicrypt_plot_axes(picture, panel, MPICRYPT_AXIS_BYTES, MPICRYPT_AXIS_LINEAR);
            for (int r = 0; r < result_count; ++r) {
                const result_t *result = &results[r];
                if (result->bits == bits.value[b] && result->threads == threads.value[t] && 0 < result->bytes) {
                    mpicrypt_plot_point(picture, panel, result->provider, (double) result->bytes,
                                        result->seal_MBps / 1000);
                }
            }
        }
    }
    rc = mpicrypt_plot_write(picture, plot_path);
    mpicrypt_plot_free(picture);
    return rc;
}

static int output(const mpicrypt_table_t *table)
{
    int rc = MPICRYPT_OK;
    bool csv_on_stdout = NULL != csv_path && 0 == strcmp(csv_path, "-");

    if (json) {
        print_json(table);
    } else if (!csv_on_stdout) {
        print_table(table);
    }
    if (NULL != csv_path) {
        rc = mpicrypt_table_csv_file(table, csv_path);
    }
    return MPICRYPT_OK == rc && NULL != plot_path ? plot() : rc;
}

static int run(int operand_count, char **operands)
{
    mpicrypt_table_t *table = NULL;
    int *cpus;
    int cpu_count = mpicrypt_cpus(&cpus);

    (void) operand_count;
    (void) operands;
    if (cpu_count < 1) {
        return mpicrypt_error(MPICRYPT_FAILED, "cannot find out which processors this process may use");
    }
    int rc = check_values(cpu_count);
    if (MPICRYPT_OK == rc) {
        rc = check_files();
    }
    if (MPICRYPT_OK != rc) {
        goto free_cpus;
    }
    rc = mpicrypt_providers_open();
    if (MPICRYPT_OK != rc) {
        goto free_cpus;
    }
    rc = choose_modules();
    if (MPICRYPT_OK != rc) {
        goto close_providers;
    }
    results = calloc((size_t) bits.count * (size_t) threads.count * (size_t) sizes.count
                     * (size_t) module_count, sizeof(*results));
    if (NULL == results) {
        rc = mpicrypt_error(MPICRYPT_FAILED, "out of memory");
        goto close_providers;
    }
    table = mpicrypt_table_new(columns);
    rc = measure(table, cpus);
    if (MPICRYPT_OK == rc) {
        rc = output(table);
    }
    mpicrypt_table_free(table);
    free(results);

close_providers:
    mpicrypt_providers_close();
free_cpus:
    free(cpus);
    return rc;
}

const mpicrypt_verb_t mpicrypt_speed_verb = {
    .name = "speed",
    .summary = "measure how fast this machine seals and opens",
    .synopsis = "[--provider LIST] [--bits LIST] [--size LIST] [--threads LIST] [OPTION]...",
    .description =
        "Seals and opens messages of given sizes with every provider of authenticated encryption that "
        "is installed here, and prints the median time of a message and the throughput. It is the "
        "encryption-decryption benchmark of the papers on encrypted MPI: no message is sent.\n\n"
        "The providers take turns, so that a machine that changes its speed during the measurement "
        "does so for all of them; compare rows of one run, not of two. The spread is given as the "
        "distance of the quartiles (IQR). Buffers are the same from message to message, and so in "
        "cache if they fit. 'seal+open' is the size over the time of sealing plus the time of opening, "
        "which the papers call encryption-decryption throughput.\n\n"
        "With several threads every thread works on messages of its own, as several ranks of a node "
        "would.",
    .options = options,
    .examples = "mpicrypt speed\n"
                "mpicrypt speed --provider openssl,ipsecmb --bits 128 --size 64,64K --csv speed.csv\n"
                "mpicrypt speed --threads 1,2,4 --size 64K,1M --plot speed.svg\n",
    .run = run
};
