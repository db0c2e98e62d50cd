/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt speed: how fast this machine seals and opens.  The papers'
 * encryption-decryption benchmark, with the providers taking turns so that a
 * machine that changes its speed changes it for all of them.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "speed.h"

static mpicrypt_names_t wanted;
static mpicrypt_speed_plan_t plan;
static const char *csv_path, *plot_path;
static bool json;

static const mpicrypt_option_t options[] = {
    {"provider", MPICRYPT_NAMES, "LIST", "all", &wanted,
     "Providers, separated by commas, or 'all'. 'openssl-naive' is OpenSSL with a new context and a new algorithm "
     "look-up for every message, like the papers' naive library; jobs cannot use it."},
    {"bits", MPICRYPT_SIZES, "LIST", "128,256", &plan.bits,
     "AES-GCM key sizes: 128, 192, 256. Providers without a size skip it."},
    {"size", MPICRYPT_SIZES, "LIST", "1,16,64,256,1K,4K,16K,64K,256K,1M,4M", &plan.sizes,
     "Message sizes in bytes; K, M and G are powers of 1024."},
    {"threads", MPICRYPT_SIZES, "LIST", "1", &plan.threads,
     "Numbers of threads. Each thread has its own messages and is pinned to its own processor, one that this process "
     "may run on. There cannot be more threads than such processors."},
    {"rounds", MPICRYPT_COUNT, "N", "9", &plan.rounds,
     "Rounds. In each, every provider encrypts one batch and decrypts another, in rotating order."},
    {"batch-ms", MPICRYPT_REAL, "MS", "3", &plan.batch_ms, "Target duration of a batch, in milliseconds."},
    {"csv", MPICRYPT_TEXT, "FILE", NULL, &csv_path,
     "Also write the results as CSV, with one header line. '-' is standard output, instead of the table."},
    {"json", MPICRYPT_FLAG, NULL, NULL, &json,
     "Print JSON instead of the table."},
    {"plot", MPICRYPT_TEXT, "FILE", NULL, &plot_path,
     "Also plot encryption throughput over message size. FILE ends in .svg or .png. It needs python3 and matplotlib "
     "(Debian: python3-matplotlib)."},
    {NULL, MPICRYPT_FLAG, NULL, NULL, NULL, NULL}
};

/* ---- checks ---- */

static int check_values(int cpu_count)
{
    for (int i = 0; i < plan.bits.count; ++i) {
        if (opal_aead_aes_gcm(plan.bits.value[i]) < 0) {
            return mpicrypt_error(MPICRYPT_USAGE, "--bits: %zu is not one of 128, 192, 256", plan.bits.value[i]);
        }
    }
    for (int i = 0; i < plan.threads.count; ++i) {
        if (plan.threads.value[i] < 1 || plan.threads.value[i] > (size_t) cpu_count) {
            return mpicrypt_error(MPICRYPT_USAGE, "--threads: %zu, but this process may run on %d "
                                  "processors, and every thread needs one", plan.threads.value[i], cpu_count);
        }
    }
    if (plan.rounds < 1 || plan.rounds > 100000) {
        return mpicrypt_error(MPICRYPT_USAGE, "--rounds: %zu is not between 1 and 100000", plan.rounds);
    }
    if (plan.batch_ms <= 0 || plan.batch_ms > 60000) {
        return mpicrypt_error(MPICRYPT_USAGE, "--batch-ms: %g is not between 0 and 60000", plan.batch_ms);
    }
    if (json && NULL != csv_path && 0 == strcmp(csv_path, "-")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--json and --csv - both want standard output");
    }
    return MPICRYPT_OK;
}

/* Before the measurement, not after it. */
static int check_files(void)
{
    const char *end = NULL == plot_path ? NULL : strrchr(plot_path, '.');

    if (NULL != plot_path && (NULL == end || (0 != strcasecmp(end, ".svg") && 0 != strcasecmp(end, ".png")))) {
        return mpicrypt_error(MPICRYPT_USAGE, "--plot: %s ends in neither .svg nor .png", plot_path);
    }
    int rc = mpicrypt_writable(csv_path);
    return MPICRYPT_OK != rc ? rc : mpicrypt_writable(plot_path);
}

/* Keep the wanted ones of `plan.modules`, in the order of --provider. */
static int choose_modules(void)
{
    const opal_aead_module_t *all[MPICRYPT_PROVIDERS_MAX];
    char known[512] = "";
    int all_count = mpicrypt_providers(all);

    for (int i = 0; i < all_count; ++i) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, "%s%s", 0 == i ? "" : ", ", all[i]->name);
    }
    plan.module_count = 0;
    for (int w = 0; w < wanted.count; ++w) {
        bool every = 0 == strcmp(wanted.value[w], "all"), found = every;
        for (int i = 0; i < all_count; ++i) {
            bool taken = false;
            for (int m = 0; m < plan.module_count; ++m) {
                taken = taken || plan.modules[m] == all[i];
            }
            if (every || 0 == strcmp(wanted.value[w], all[i]->name)) {
                found = true;
                if (!taken) {
                    plan.modules[plan.module_count++] = all[i];
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

static int output(const mpicrypt_table_t *table)
{
    int rc = MPICRYPT_OK;
    bool csv_on_stdout = NULL != csv_path && 0 == strcmp(csv_path, "-");

    if (json) {
        mpicrypt_speed_json(&plan, table, stdout);
    } else if (!csv_on_stdout) {
        mpicrypt_speed_print(&plan, table);
    }
    if (NULL != csv_path) {
        rc = mpicrypt_table_csv_file(table, csv_path);
    }
    return MPICRYPT_OK == rc && NULL != plot_path ? mpicrypt_speed_plot(&plan, table, plot_path) : rc;
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
    table = mpicrypt_speed_table();
    rc = mpicrypt_speed_measure(&plan, cpus, table);
    if (MPICRYPT_OK == rc) {
        rc = output(table);
    }
    mpicrypt_table_free(table);

close_providers:
    mpicrypt_providers_close();
free_cpus:
    free(cpus);
    return rc;
}

const mpicrypt_verb_t mpicrypt_speed_verb = {
    .name = "speed",
    .summary = "measure how fast this machine encrypts and decrypts",
    .synopsis = "[--provider LIST] [--bits LIST] [--size LIST] [--threads LIST] [OPTION]...",
    .description =
        "Encrypts and decrypts messages with every provider that is installed here, and prints the median time of a "
        "message and the throughput. It is the encryption-decryption benchmark of the papers on encrypted MPI. "
        "Nothing is sent.\n\n"
        "The providers take turns, so a machine that changes its speed changes it for all. Compare rows of one run, "
        "never of two runs. IQR is the distance of the quartiles. All messages use the same buffers, so those that "
        "fit stay in cache. 'seal' is encryption, 'open' decryption, and 'seal+open' the size over the sum of both "
        "times, the papers' encryption-decryption throughput.\n\n"
        "With several threads, each has its own messages, as ranks of a node do.",
    .options = options,
    .examples = "mpicrypt speed\n"
                "mpicrypt speed --provider openssl,ipsecmb --bits 128 --size 64,64K --csv speed.csv\n"
                "mpicrypt speed --threads 1,2,4 --size 64K,1M --plot speed.svg\n",
    .run = run
};
