/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Results of `mpicrypt speed`: table, JSON, plot.
 */
#include "ompi/tools/mpicrypt/plot/plot.h"
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

void mpicrypt_speed_json(const mpicrypt_speed_plan_t *plan, const mpicrypt_table_t *table)
{
    printf("{\n  \"benchmark\": \"speed\",\n  \"cipher\": \"AES-GCM\",\n  \"rounds\": %zu,\n  \"providers\": {", plan->rounds);
    for (int m = 0; m < plan->module_count; ++m) {
        printf("%s", 0 == m ? "" : ", ");
        mpicrypt_json_text(stdout, plan->modules[m]->name);
        printf(": ");
        mpicrypt_json_text(stdout, plan->modules[m]->version());
    }
    printf("},\n  \"results\": ");
    mpicrypt_table_json(table, stdout);
    printf("\n}\n");
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

/* One panel per key size and thread count, one curve per provider. */
int mpicrypt_speed_plot(const mpicrypt_speed_plan_t *plan, const char *path)
{
    int panel_count = plan->bits.count * plan->threads.count, panel = 0, rc;
    mpicrypt_plot_t *picture = mpicrypt_plot_new("AES-GCM sealing", panel_count);
    char title[64];

    for (int b = 0; b < plan->bits.count; ++b) {
        for (int t = 0; t < plan->threads.count; ++t, ++panel) {
            snprintf(title, sizeof(title), "%zu bits, %zu thread%s", plan->bits.value[b], plan->threads.value[t],
                     1 == plan->threads.value[t] ? "" : "s");
            mpicrypt_plot_panel(picture, panel, title, "message size (bytes)", "GB/s");
            mpicrypt_plot_axes(picture, panel, MPICRYPT_AXIS_BYTES, MPICRYPT_AXIS_LINEAR);
            for (int r = 0; r < plan->result_count; ++r) {
                const mpicrypt_speed_result_t *result = &plan->results[r];
                if (result->bits == plan->bits.value[b] && result->threads == plan->threads.value[t] && 0 < result->bytes) {
                    mpicrypt_plot_point(picture, panel, result->provider, (double) result->bytes,
                                        result->seal_MBps / 1000);
                }
            }
        }
    }
    rc = mpicrypt_plot_write(picture, path);
    mpicrypt_plot_free(picture);
    return rc;
}
