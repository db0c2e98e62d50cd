/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * `mpicrypt tune`: what it prints, draws and writes.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "ompi/tools/mpicrypt/plot/plot.h"
#include "tune.h"

static const mpicrypt_column_t columns[] = {
    {"k", "k", 0}, {"t", "t", 0}, {"bytes", "size", 0}, {"measured_us", "measured us", 1},
    {"predicted_us", "predicted us", 1}, {"error_percent", "error %", 1},
    {"papers_us", "papers' us", 1}, {NULL, NULL, 0}
};

mpicrypt_table_t *mpicrypt_tune_table(const mpicrypt_tune_t *tune)
{
    mpicrypt_table_t *table = mpicrypt_table_new(columns);

    for (int i = 0; i < tune->cell_count; ++i) {
        const mpicrypt_tune_cell_t *cell = &tune->cells[i];
        mpicrypt_table_count(table, cell->k);
        mpicrypt_table_count(table, cell->t);
        mpicrypt_table_bytes(table, cell->bytes);
        mpicrypt_table_number(table, cell->measured_us);
        mpicrypt_table_number(table, cell->predicted_us);
        mpicrypt_table_number(table, 100 * (cell->predicted_us - cell->measured_us) / cell->measured_us);
        mpicrypt_table_number(table, cell->papers_us);
    }
    return table;
}

static void print_pieces(const mpicrypt_tune_t *tune)
{
    for (int i = 0; i < tune->model.comm_count; ++i) {
        const opal_crypt_comm_piece_t *piece = &tune->model.comm[i];
        printf("communication from %8.0f B: alpha %7.2f us, %8.1f MB/s\n", piece->from_bytes, piece->alpha_us,
               1 / piece->beta_us);
    }
    for (int i = 0; i < tune->model.enc_count; ++i) {
        const opal_crypt_enc_piece_t *piece = &tune->model.enc[i];
        printf("encryption    from %8.0f B: alpha %7.2f us, A %8.1f MB/s, B %8.1f MB/s\n", piece->from_bytes,
               piece->alpha_us, piece->first_rate, piece->next_rate);
    }
}

static void print_choice(const mpicrypt_tune_t *tune)
{
    const mpicrypt_tune_choice_t *choice = &tune->choice;

    if (0 == tune->before) {
        return;
    }
    printf("\nSearched, the best of what was tried (0: the default):\n    chunk size %zu, limits of btl/tcp %zu\n",
           choice->chunk_size, choice->limit);
    printf("Encrypted over plain time, geometric mean of 64K, 256K, 1M, 4M: %.3f with the defaults, in the first step's "
           "rounds; %.3f now, in the last step's.\n",
           tune->before, tune->after);
}

void mpicrypt_tune_print(const mpicrypt_tune_t *tune)
{
    mpicrypt_table_t *table = mpicrypt_tune_table(tune);

    printf("%zu-bit keys, %s; %zu processor%s of a rank, at most %zu thread%s for encryption\n\n",
           tune->plan.bits.value[0], tune->provider, tune->processors,
           1 == tune->processors ? "" : "s", tune->most_threads, 1 == tune->most_threads ? "" : "s");
    print_pieces(tune);
    printf("\nEncrypted messages, measured and as the model predicts them; the fit has not seen them.\n");
    mpicrypt_table_print(table, stdout);
    printf("Error of the prediction: median %.1f%%, largest %.1f%%, of %d measurements.\n", tune->median_error,
           tune->largest_error, tune->cell_count);
    printf("The papers' formula, without the first part and a chunk's latency: median %.1f%%.\n", tune->papers_error);
    print_choice(tune);
    mpicrypt_table_free(table);
}

/* A panel for each number of threads; a curve for each k, measured and predicted. */
int mpicrypt_tune_plot(const mpicrypt_tune_t *tune, const char *path)
{
    size_t threads = 0;
    int panels = 0, panel = -1;

    for (int i = 0; i < tune->cell_count; ++i) {
        panels += tune->cells[i].t != threads;
        threads = tune->cells[i].t;
    }
    mpicrypt_plot_t *plot = mpicrypt_plot_new("measured and predicted", panels);
    threads = 0;
    for (int i = 0; i < tune->cell_count; ++i) {
        const mpicrypt_tune_cell_t *cell = &tune->cells[i];
        char curve[64], title[64];
        if (cell->t != threads) {
            threads = cell->t;
            snprintf(title, sizeof(title), "%zu thread%s", threads, 1 == threads ? "" : "s");
            mpicrypt_plot_panel(plot, ++panel, title, "message size (bytes)", "time (us)");
            mpicrypt_plot_axes(plot, panel, MPICRYPT_AXIS_BYTES, MPICRYPT_AXIS_LOG);
        }
        snprintf(curve, sizeof(curve), "k = %zu", cell->k);
        mpicrypt_plot_point(plot, panel, curve, (double) cell->bytes, cell->measured_us);
        snprintf(curve, sizeof(curve), "k = %zu, predicted", cell->k);
        mpicrypt_plot_point(plot, panel, curve, (double) cell->bytes, cell->predicted_us);
    }
    int rc = mpicrypt_plot_write(plot, path);
    mpicrypt_plot_free(plot);
    return rc;
}

/* ---- the file ---- */

enum { DEFAULT_SEGMENT = 106400, LARGEST = 1 << 30 };

/* Threads by size, as the model chooses them; a chunk is a segment for each. */
static void write_table(const mpicrypt_tune_t *tune, FILE *out)
{
    size_t segment = 0 == tune->choice.chunk_size ? DEFAULT_SEGMENT : tune->choice.chunk_size, last = 0;

    for (size_t bytes = MPICRYPT_TUNE_FIRST; bytes <= LARGEST; bytes *= 2) {
        double best = INFINITY;
        size_t threads = 1;
        for (size_t t = 1; t <= tune->most_threads; ++t) {
            size_t k = bytes > segment * t ? bytes / (segment * t) : 1;
            double us = opal_crypt_model_parts_us(&tune->model, (double) bytes, MPICRYPT_TUNE_FIRST,
                                                  (double) k, (double) t);
            if (us < best) {
                best = us;
                threads = t;
            }
        }
        if (threads != last) {
            fprintf(out, "%s%zu:%zu:%zu", 0 == last ? "pml_crypt_t = " : ",", bytes, threads, segment * threads);
            last = threads;
        }
    }
    fprintf(out, "\n");
}

static void write_pml(const mpicrypt_tune_t *tune, FILE *out)
{
    char text[512];

    if (0 != tune->choice.chunk_size) {
        fprintf(out, "pml_crypt_chunk_size = %zu\n", tune->choice.chunk_size);
    }
    if (0 != tune->choice.limit) {
        fprintf(out, "btl_tcp_eager_limit = %zu\nbtl_tcp_rndv_eager_limit = %zu\nbtl_tcp_max_send_size = %zu\n",
                tune->choice.limit, tune->choice.limit, tune->choice.limit);
    }
    if (tune->most_threads > 1) {
        write_table(tune, out);
    }
    fprintf(out, "\n# The model, for mpicrypt model --profile; pml/crypt takes what is above.\n"
            "# Median error of its predictions when this was written: %.1f%%, with the first part and a\n"
            "# chunk's latency %.1f%%.\n", tune->papers_error, tune->median_error);
    if (opal_crypt_model_print_comm(&tune->model, text, sizeof(text))) {
        fprintf(out, "mpicrypt_model_comm = %s\n", text);
    }
    if (opal_crypt_model_print_enc(&tune->model, text, sizeof(text))) {
        fprintf(out, "mpicrypt_model_enc = %s\n", text);
    }
}

static void write_btl(const mpicrypt_tune_t *tune, FILE *out)
{
    mpicrypt_words_t words = {NULL, 0};

    mpicrypt_words_split(&words, tune->settings);
    fputs(0 == words.count ? "# Every default was best.\n" : "", out);
    for (int i = 0; i < words.count; ++i) {
        size_t name = strcspn(words.value[i], "=");
        fprintf(out, "%.*s = %s\n", (int) name, words.value[i], words.value[i] + name + 1);
    }
    mpicrypt_words_free(&words);
}

static void write_lines(const mpicrypt_tune_t *tune, FILE *out)
{
    time_t now = time(NULL);
    struct tm *day = gmtime(&now);

    fprintf(out, "# Written by mpicrypt tune on %04d-%02d-%02d, on %s (%s),\n# for %s, %zu-bit keys (%s),\n"
            "# ranks with %zu processor%s, TCP congestion control %s.\n#\n"
            "# mpirun --mca mca_base_param_files FILE reads it (instead of the files that Open MPI\n"
            "# reads by default), or copy it into one of those.  It is for jobs in which\n# %s.\n",
            day->tm_year + 1900, day->tm_mon + 1, day->tm_mday, tune->places.hosts, tune->places.processor,
            tune->plan.host, tune->plan.bits.value[0], tune->provider, tune->processors,
            1 == tune->processors ? "" : "s", tune->places.tcp, tune->over_btl ? "btl/crypt encrypts" :
            "pml/crypt encrypts: over TCP only those with crypt_transport=pml, which this does not set");
    (tune->over_btl ? write_btl : write_pml)(tune, out);
}

int mpicrypt_tune_write(const mpicrypt_tune_t *tune, const char *path)
{
    FILE *out = fopen(path, "w");

    if (NULL == out) {
        return mpicrypt_error(MPICRYPT_FAILED, "cannot write %s: %s", path, strerror(errno));
    }
    write_lines(tune, out);
    bool bad = 0 != ferror(out);
    if (0 != fclose(out) || bad) {
        return mpicrypt_error(MPICRYPT_FAILED, "cannot write %s", path);
    }
    return MPICRYPT_OK;
}
