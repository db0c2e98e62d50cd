/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Results of `mpicrypt speed`: table, JSON, and the JSON for a plot.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "speed.h"

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

mpicrypt_table_t *mpicrypt_speed_table(void)
{
    return mpicrypt_table_new(columns);
}

void mpicrypt_speed_json(const mpicrypt_speed_plan_t *plan, const mpicrypt_table_t *table, FILE *out)
{
    fprintf(out, "{\n  \"benchmark\": \"speed\",\n  \"cipher\": \"AES-GCM\",\n  \"rounds\": %zu,\n  \"providers\": {", plan->rounds);
    for (int m = 0; m < plan->module_count; ++m) {
        fprintf(out, "%s", 0 == m ? "" : ", ");
        mpicrypt_json_text(out, plan->modules[m]->name);
        fprintf(out, ": ");
        mpicrypt_json_text(out, plan->modules[m]->version());
    }
    fprintf(out, "},\n  \"results\": ");
    mpicrypt_table_json(table, out);
    fprintf(out, "\n}\n");
}

void mpicrypt_speed_print(const mpicrypt_speed_plan_t *plan, const mpicrypt_table_t *table)
{
    printf("AES-GCM, %zu interleaved rounds, medians.  ns: one message of one thread; IQR: quartile\n"
           "distance over median; MB/s: 10^6 bytes a second, all threads together.\n\n", plan->rounds);
    for (int m = 0; m < plan->module_count; ++m) {
        printf("%-14s %s\n", plan->modules[m]->name, plan->modules[m]->version());
    }
    putchar('\n');
    mpicrypt_table_print(table, stdout);
}

/* Python draws what it gets as JSON: ends with its exit code, or after a message. */
int mpicrypt_speed_plot(const mpicrypt_speed_plan_t *plan, const mpicrypt_table_t *table, const char *path)
{
    int file = memfd_create("results", MFD_CLOEXEC);
    FILE *out = file < 0 ? NULL : fdopen(file, "w");

    if (NULL == out) {
        return mpicrypt_error(MPICRYPT_FAILED, "no file for results: %s", strerror(errno));
    }
    mpicrypt_speed_json(plan, table, out);
    if (0 != fflush(out) || 0 != lseek(file, 0, SEEK_SET) || dup2(file, STDIN_FILENO) < 0) {
        return mpicrypt_error(MPICRYPT_FAILED, "no file for results: %s", strerror(errno));
    }
    if (0 != fflush(stdout) || ferror(stdout)) {
        return MPICRYPT_FAILED;                 /* which is said at the end */
    }
    return mpicrypt_become("plot", 2, (char *[]){"--plot", (char *) path});
}
