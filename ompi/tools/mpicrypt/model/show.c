/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Predictions as table and plot.
 */
#include <string.h>

#include "model.h"
#include "ompi/tools/mpicrypt/plot/plot.h"

static const mpicrypt_column_t columns[] = {
    {"pattern", "pattern", 0},
    {"nodes", "nodes", 0},
    {"ranks_per_node", "ranks", 0},
    {"gbps", "Gb/s", 0},
    {"compute_percent", "comp %", 0},
    {"bytes", "size", 0},
    {"messages", "msgs", 0},
    {"threads", "t", 0},
    {"k", "k", 0},
    {"plain_us", "plain us", 2},
    {"naive_us", "naive us", 2},
    {"crypt_us", "crypt us", 2},
    {"naive_ratio", "naive/plain", 3},
    {"crypt_ratio", "crypt/plain", 3},
    {"bound", "bound", 0},
    {NULL, NULL, 0}
};

mpicrypt_table_t *mpicrypt_model_table(const mpicrypt_row_t *rows, int count)
{
    mpicrypt_table_t *table = mpicrypt_table_new(columns);

    for (int i = 0; i < count; ++i) {
        const mpicrypt_row_t *row = &rows[i];
        mpicrypt_table_text(table, mpicrypt_pattern_name(row->of.pattern));
        mpicrypt_table_count(table, row->of.nodes);
        mpicrypt_table_count(table, row->of.ranks);
        mpicrypt_table_count(table, row->of.gbps);
        mpicrypt_table_count(table, row->of.compute);
        mpicrypt_table_bytes(table, row->of.bytes);
        mpicrypt_table_number(table, row->messages);
        mpicrypt_table_count(table, row->threads);
        mpicrypt_table_count(table, row->k);
        mpicrypt_table_number(table, row->plain_us);
        mpicrypt_table_number(table, row->naive_us);
        mpicrypt_table_number(table, row->crypt_us);
        mpicrypt_table_number(table, row->naive_us / row->plain_us);
        mpicrypt_table_number(table, row->crypt_us / row->plain_us);
        mpicrypt_table_text(table, row->bound);
    }
    return table;
}

/* ---- plot: what varies is the x axis, what else varies names the curves ---- */

enum { BYTES, NODES, RANKS, GBPS, THREADS, K, COMPUTE, KEYS };

static const char *const key_labels[KEYS] = {
    "message size (bytes)", "nodes", "ranks of a node", "link (Gb/s)", "threads", "k", "computation (%)"
};

static size_t key_of(const mpicrypt_row_t *row, int key)
{
    switch (key) {
    case BYTES: return row->of.bytes;
    case NODES: return row->of.nodes;
    case RANKS: return row->of.ranks;
    case GBPS: return row->of.gbps;
    case THREADS: return row->of.threads;
    case K: return row->of.k;
    default: return row->of.compute;
    }
}

static bool varies(const mpicrypt_row_t *rows, int count, int key)
{
    for (int i = 1; i < count; ++i) {
        if (key_of(&rows[i], key) != key_of(&rows[0], key)) {
            return true;
        }
    }
    return false;
}

static void name_curve(const mpicrypt_row_t *row, const bool *named, char *name, size_t bytes)
{
    static const char *const units[KEYS] = {
        " B", " nodes", " ranks", " Gb/s", " threads", " chunks", "% comp."
    };

    name[0] = '\0';
    for (int key = 0; key < KEYS; ++key) {
        size_t used = strlen(name);
        if (!named[key]) {
            continue;
        }
        if (0 == key_of(row, key) && COMPUTE != key) {
            snprintf(name + used, bytes - used, " %s",
                     GBPS == key ? "own link" : THREADS == key ? "t chosen" : "k chosen");
        } else {
            snprintf(name + used, bytes - used, " %zu%s", key_of(row, key), units[key]);
        }
    }
}

/* Every pattern has two panels, from `panel` on.  Threads and k change the
 * encrypted time only: the other curves have the points of the first row's. */
static void add_points(mpicrypt_plot_t *picture, int panel, const mpicrypt_row_t *row, int x_key,
                       const bool *named, bool all)
{
    static const char *const kinds[] = {"encrypted", "naive", "plain"};
    const double us[] = {row->crypt_us, row->naive_us, row->plain_us};
    bool others[KEYS];
    char name[64], curve[80];
    double x = (double) key_of(row, x_key);

    memcpy(others, named, sizeof(others));
    others[THREADS] = others[K] = false;
    for (int i = 0; i < (all ? 3 : 1); ++i) {
        name_curve(row, 0 == i ? named : others, name, sizeof(name));
        snprintf(curve, sizeof(curve), "%s%s", kinds[i], name);
        mpicrypt_plot_point(picture, panel, curve, x, us[i]);
        if (i < 2) {
            mpicrypt_plot_point(picture, panel + 1, curve, x, us[i] / row->plain_us);
        }
    }
}

static void label_panels(mpicrypt_plot_t *picture, int panel, const mpicrypt_row_t *row, int x_key)
{
    mpicrypt_axis_t x = BYTES == x_key ? MPICRYPT_AXIS_BYTES : NODES == x_key ? MPICRYPT_AXIS_LOG : MPICRYPT_AXIS_LINEAR;
    char title[64];

    snprintf(title, sizeof(title), "%s: time", mpicrypt_pattern_name(row->of.pattern));
    mpicrypt_plot_panel(picture, panel, title, key_labels[x_key], "us");
    mpicrypt_plot_axes(picture, panel, x, MPICRYPT_AXIS_LOG);
    snprintf(title, sizeof(title), "%s: over plain", mpicrypt_pattern_name(row->of.pattern));
    mpicrypt_plot_panel(picture, panel + 1, title, key_labels[x_key], "ratio");
    mpicrypt_plot_axes(picture, panel + 1, x, MPICRYPT_AXIS_LINEAR);
}

int mpicrypt_model_plot(const mpicrypt_row_t *rows, int count, const char *path)
{
    bool named[KEYS];
    int x_key = KEYS, panels = 2;

    for (int key = 0; key < KEYS; ++key) {
        named[key] = varies(rows, count, key);
        if (named[key] && KEYS == x_key) {
            x_key = key;
            named[key] = false;
        }
    }
    x_key = KEYS == x_key ? BYTES : x_key;
    for (int i = 1; i < count; ++i) {       /* rows of a pattern stand together */
        panels += rows[i].of.pattern == rows[i - 1].of.pattern ? 0 : 2;
    }
    mpicrypt_plot_t *picture = mpicrypt_plot_new("Predicted by the model", panels);
    for (int i = 0, panel = -2; i < count; ++i) {
        if (0 == i || rows[i].of.pattern != rows[i - 1].of.pattern) {
            panel += 2;
            label_panels(picture, panel, &rows[i], x_key);
        }
        add_points(picture, panel, &rows[i], x_key, named,
                   (THREADS == x_key || rows[i].of.threads == rows[0].of.threads)
                   && (K == x_key || rows[i].of.k == rows[0].of.k));
    }
    int rc = mpicrypt_plot_write(picture, path);
    mpicrypt_plot_free(picture);
    return rc;
}
