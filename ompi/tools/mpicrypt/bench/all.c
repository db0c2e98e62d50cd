/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * `mpicrypt bench all` and `--html`: each benchmark is this command once more,
 * with the user's words and files of ours for what it finds.  One that fails is
 * reported, and the others go on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "html.h"
#include "mpicrypt_launch.h"

static const struct {
    const char *name, *about;
    bool collective;
} benchmarks[] = {
    {"speed", "How fast this machine seals and opens, by provider; no message is sent.", false},
    {"pingpong", "One-way time of a message that goes to another node and back.", false},
    {"pairs", "Several ranks of a node each send a window of messages to a partner on another node.", false},
    {"stencil", "Ranks compute, then exchange messages with their neighbors in a periodic grid.", false},
    {"allgather", "MPI_Allgather over all ranks; the size is what a rank contributes.", true},
    {"bcast", "MPI_Bcast from rank 0.", true},
    {"alltoall", "MPI_Alltoall; the size is the block between two ranks.", true},
    {"io", "Collective access to files; the size is the block size of the encryption.", false},
    {NULL, NULL, false}
};

typedef struct places {
    char directory[4096], svg[4200], csv[4200], scratch[4200];
} places_t;

/* ---- the user's words ---- */

/* This process's command line: everything behind the verb, but for --html and
 * its value. */
static int read_words(mpicrypt_words_t *words, char *command, size_t bytes)
{
    FILE *in = fopen("/proc/self/cmdline", "r");
    char *word = NULL;
    size_t room = 0;
    bool verb = false, value = false;

    for (int i = 0; NULL != in && getdelim(&word, &room, '\0', in) > 0; ++i) {
        size_t used = strlen(command);
        snprintf(command + used, bytes - used, "%s%s%s%s", 0 == i ? "" : " ", strchr(word, ' ') ? "'" : "",
                 0 == i ? "mpicrypt" : word, strchr(word, ' ') ? "'" : "");
        if (verb && !value && 0 != strcmp(word, "--html") && 0 != strncmp(word, "--html=", 7)) {
            mpicrypt_words_add(words, "%s", word);
        }
        value = verb && 0 == strcmp(word, "--html");
        verb = verb || 0 == strcmp(word, "bench");
    }
    free(word);
    if (NULL == in) {
        return mpicrypt_error(MPICRYPT_FAILED, "cannot read /proc/self/cmdline: %s", strerror(errno));
    }
    fclose(in);
    return MPICRYPT_OK;
}

/* ---- one benchmark ---- */

/* Is word `i` the value of the option before it? */
static bool is_value(const mpicrypt_words_t *words, int i)
{
    return i > 0 && mpicrypt_options_take_next(&mpicrypt_bench_verb, words->value[i - 1]);
}

/* `which`: the name that stands in the user's words for the benchmark. */
static void make_command(int b, const char *which, const mpicrypt_words_t *words, const places_t *places, size_t fast,
                         double lap_ms, mpicrypt_words_t *command)
{
    mpicrypt_words_add(command, "/proc/self/exe");
    if (0 == strcmp(benchmarks[b].name, "speed")) {
        mpicrypt_words_add(command, "speed");
        mpicrypt_words_add(command, "--rounds=%zu", fast);
        mpicrypt_words_add(command, "--batch-ms=%g", 0.3 * lap_ms);
    } else {
        bool replaced = false;
        mpicrypt_words_add(command, "bench");
        for (int i = 0; i < words->count; ++i) {
            bool mine = !replaced && 0 == strcmp(words->value[i], which) && !is_value(words, i);
            replaced = replaced || mine;
            if (0 != strcmp(benchmarks[b].name, "io") || 0 != strcmp(words->value[i], "--paper")) {
                mpicrypt_words_add(command, "%s", mine ? benchmarks[b].name : words->value[i]);
            }
        }
    }
    mpicrypt_words_add(command, "--csv=%s", places->csv);
    mpicrypt_words_add(command, "--plot=%s", places->svg);
}

/* Runs it and adds what it says to the page, or prints that. */
static int measure(int b, const mpicrypt_words_t *command, const places_t *places, FILE *page)
{
    mpicrypt_words_t settings = {NULL, 0};
    mpicrypt_launch_t result;
    int rc = mpicrypt_launch(command, &settings, &result);

    if (MPICRYPT_OK != rc) {
        return rc;
    }
    bool good = 0 == result.code;
    if (!good) {
        fprintf(stderr, "%s", result.err);
        rc = mpicrypt_error(MPICRYPT_FAILED, "%s failed (status %d); its messages are above", benchmarks[b].name,
                            result.code);
    }
    if (NULL != page) {
        mpicrypt_section_t section = {benchmarks[b].name, benchmarks[b].about, good ? result.out : result.err,
                                      good ? places->svg : NULL, good ? places->csv : NULL};
        int written = mpicrypt_html_section(page, &section, places->scratch);
        rc = rc ? rc : written;
    } else {
        printf("== %s\n\n%s\n", benchmarks[b].name, result.out);
        fflush(stdout);
    }
    mpicrypt_launch_free(&result);
    return rc;
}

/* A workload on files needs the label of a key. */
static int leave_out_io(int b, FILE *page)
{
    const char *why = "not measured: it needs a key of files (mpicrypt key new LABEL, then --label LABEL), and --dir";

    if (NULL == page) {
        printf("== %s\n\n%s\n", benchmarks[b].name, why);
        return MPICRYPT_OK;
    }
    return mpicrypt_html_section(page, &(mpicrypt_section_t){benchmarks[b].name, benchmarks[b].about, why, NULL, NULL},
                                 NULL);
}

/* ---- all ---- */

static int make_places(places_t *places)
{
    const char *parent = getenv("TMPDIR");

    snprintf(places->directory, sizeof(places->directory), "%.3000s/mpicrypt-XXXXXX",
             NULL == parent || '\0' == *parent ? "/tmp" : parent);
    if (NULL == mkdtemp(places->directory)) {
        return mpicrypt_error(MPICRYPT_FAILED, "cannot make %s: %s", places->directory, strerror(errno));
    }
    snprintf(places->svg, sizeof(places->svg), "%s/plot.svg", places->directory);
    snprintf(places->csv, sizeof(places->csv), "%s/results.csv", places->directory);
    snprintf(places->scratch, sizeof(places->scratch), "%s/scratch.svg", places->directory);
    return MPICRYPT_OK;
}

static void remove_places(const places_t *places)
{
    unlink(places->svg);
    unlink(places->csv);
    unlink(places->scratch);
    rmdir(places->directory);
}

static int run_all(const char *pattern, const mpicrypt_words_t *words, const places_t *places, FILE *page,
                   const char *label, size_t fast, double lap_ms)
{
    bool all = 0 == strcmp(pattern, "all");
    int rc = MPICRYPT_OK, total = (int) (sizeof(benchmarks) / sizeof(benchmarks[0])) - 1;

    for (int b = 0; b < total; ++b) {
        mpicrypt_words_t command = {NULL, 0};
        int one;
        if (!all && 0 != strcmp(pattern, benchmarks[b].name)) {
            continue;
        }
        mpicrypt_progress(benchmarks[b].name, (size_t) b, (size_t) total);
        if (0 == strcmp(benchmarks[b].name, "io") && NULL == label) {
            one = leave_out_io(b, page);
        } else {
            make_command(b, pattern, words, places, fast, lap_ms, &command);
            one = measure(b, &command, places, page);
        }
        rc = rc ? rc : one;
        mpicrypt_words_free(&command);
    }
    mpicrypt_progress_end();
    return rc;
}

int mpicrypt_bench_all(const char *pattern, const char *html, const char *label, size_t fast, double lap_ms)
{
    static char command[8192];
    mpicrypt_words_t words = {NULL, 0};
    places_t places;
    FILE *page = NULL;
    int rc = read_words(&words, command, sizeof(command));

    rc = rc ? rc : make_places(&places);
    if (MPICRYPT_OK == rc) {
        if (NULL != html && NULL == (page = mpicrypt_html_begin(html, command))) {
            rc = MPICRYPT_FAILED;
        }
        rc = rc ? rc : run_all(pattern, &words, &places, page, label, fast, lap_ms);
        if (NULL != page) {
            int end = mpicrypt_html_end(page, html);
            rc = rc ? rc : end;
        }
        remove_places(&places);
    }
    mpicrypt_words_free(&words);
    return rc;
}
