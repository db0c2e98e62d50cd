/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Predictions as table and plot.
 */
#include <string.h>

#include "mpicrypt_model.h"
#include "mpicrypt_plot.h"

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

enum { BYTES, NODES, RANKS, GBPS, THREADS, K, COMPUTE, PATTERN, KEYS };

static const char *const key_labels[KEYS] = {
    "message size (bytes)", "nodes", "ranks of a node", "link (Gb/s)", "threads", "k", "computation (%)", ""
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
    case COMPUTE: return row->of.compute;
    default: return (size_t) row->of.pattern;
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
        " B", " nodes", " ranks", " Gb/s", " threads", " chunks", "% comp.", ""
    };

    name[0] = '\0';
    for (int key = 0; key < KEYS; ++key) {
        size_t used = strlen(name);
        if (!named[key]) {
            continue;
        }
        if (PATTERN == key) {
            snprintf(name + used, bytes - used, " %s", mpicrypt_pattern_name(row->of.pattern));
        } else if (0 == key_of(row, key) && COMPUTE != key) {
            snprintf(name + used, bytes - used, " %s", GBPS == key ? "own link" : THREADS == key ? "t chosen" : "k chosen");
        } else {
            snprintf(name + used, bytes - used, " %zu%s", key_of(row, key), units[key]);
        }
    }
}

static void add_points(mpicrypt_plot_t *picture, const mpicrypt_row_t *row, int x_key, const bool *named)
{
    char name[64], curve[80];
    double x = (double) key_of(row, x_key);

    name_curve(row, named, name, sizeof(name));
    const double us[] = {row->plain_us, row->naive_us, row->crypt_us};
    static const char *const kinds[] = {"plain", "naive", "encrypted"};
    for (int i = 0; i < 3; ++i) {
        snprintf(curve, sizeof(curve), "%s%s", kinds[i], name);
        mpicrypt_plot_point(picture, 0, curve, x, us[i]);
        if (0 < i) {
            mpicrypt_plot_point(picture, 1, curve, x, us[i] / row->plain_us);
        }
    }
}

int mpicrypt_model_plot(const mpicrypt_row_t *rows, int count, const char *path)
{
    mpicrypt_plot_t *picture = mpicrypt_plot_new("Predicted by the model", 2);
    bool named[KEYS];
    int x_key = KEYS;

    for (int key = 0; key < KEYS; ++key) {
        named[key] = varies(rows, count, key);
        if (named[key] && KEYS == x_key && PATTERN != key) {
            x_key = key;
            named[key] = false;
        }
    }
    x_key = KEYS == x_key ? BYTES : x_key;
    for (int panel = 0; panel < 2; ++panel) {
        mpicrypt_axis_t y = 0 == panel ? MPICRYPT_AXIS_LOG : MPICRYPT_AXIS_LINEAR;
        mpicrypt_axis_t x = BYTES == x_key ? MPICRYPT_AXIS_BYTES
                          : NODES == x_key ? MPICRYPT_AXIS_LOG : MPICRYPT_AXIS_LINEAR;
        mpicrypt_plot_panel(picture, panel, 0 == panel ? "time" : "time over plain", key_labels[x_key],
                            0 == panel ? "us" : "ratio");
        mpicrypt_plot_axes(picture, panel, x, y);
    }
    for (int i = 0; i < count; ++i) {
        add_points(picture, &rows[i], x_key, named);
    }
    int rc = mpicrypt_plot_write(picture, path);
    mpicrypt_plot_free(picture);
    return rc;
}
