/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt VERB [options]: the one command-line tool.  This file finds the
 * verb, has its options parsed and runs it; every verb has a file of its own.
 * Verbs that measure or predict are Python (measure/), and started as programs.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpicrypt.h"
#include "mpicrypt_signals.h"
#include "opal/mca/aead/aead_version.h"
#include "opal/mca/common/crypt/base/text.h"

static const mpicrypt_verb_t bench_verb = {
    .name = "bench", .summary = "compare plain and encrypted communication between your nodes"
}, model_verb = {
    .name = "model", .summary = "predict times for machines that you do not have"
}, tune_verb = {
    .name = "tune", .summary = "measure your nodes and write parameters that suit them"
};

static const mpicrypt_verb_t *const verbs[] = {
    &bench_verb,
    &mpicrypt_doctor_verb,
    &mpicrypt_file_verb,
    &mpicrypt_key_verb,
    &mpicrypt_keygen_verb,
    &model_verb,
    &mpicrypt_mount_verb,
    &mpicrypt_ps_verb,
    &mpicrypt_speed_verb,
    &tune_verb,
    NULL
};

static const char *running = NULL;

/* ---- messages ---- */

static const char *kept = "\n";
static _Thread_local struct {
    char name[64];                      /* empty: unused */
    const char *shown;
} replacements[2];
static _Thread_local FILE *error_list;

void mpicrypt_error_one_line(void) { kept = ""; }

void mpicrypt_error_replace(int which, const char *name, const char *shown)
{
    snprintf(replacements[which].name, sizeof(replacements[which].name), "%s", NULL == name ? "" : name);
    replacements[which].shown = shown;
}

void mpicrypt_error_list(FILE *list) { error_list = list; }

/* `text`, or what replaces it. */
static char *with_shown(char *text, const char *name, const char *shown)
{
    size_t from = 0;
    char *found, *replaced;

    while (NULL != text && '\0' != *name && NULL != (found = strstr(text + from, name))) {
        from = (size_t) (found - text) + strlen(shown);
        if (asprintf(&replaced, "%.*s%s%s", (int) (found - text), text, shown, found + strlen(name)) < 0) {
            replaced = NULL;
        }
        free(text);
        text = replaced;
    }
    return text;
}

int mpicrypt_error(int code, const char *format, ...)
{
    char *text = NULL;
    va_list list;

    va_start(list, format);
    if (vasprintf(&text, format, list) < 0) {
        text = NULL;
    }
    va_end(list);
    for (size_t i = 0; i < sizeof(replacements) / sizeof(replacements[0]); ++i) {
        text = with_shown(text, replacements[i].name, replacements[i].shown);
    }
    if (NULL != error_list && MPICRYPT_OK != code) {
        fputs(ftell(error_list) > 0 ? ", " : "", error_list);
        mpicrypt_json_text(error_list, NULL == text ? strerror(ENOMEM) : text);
    }
    mpicrypt_progress_end();
    fprintf(stderr, "mpicrypt%s%s: %s\n", NULL != running ? " " : "", NULL != running ? running : "",
            NULL == text ? strerror(ENOMEM) : opal_crypt_harmless(text, kept));
    free(text);
    return code;
}

static const mpicrypt_verb_t *find(const char *name)
{
    for (int i = 0; NULL != verbs[i]; ++i) {
        if (0 == strcmp(verbs[i]->name, name)) {
            return verbs[i];
        }
    }
    return NULL;
}

/* Nothing of the user's directories is imported (-I), and nothing is written beside the program (-B).  The system's Python
 * comes first, as its packages have the libraries for plots. */
int mpicrypt_become(const char *name, int argc, char **argv)
{
    char path[4096], self[4096] = "", **words = calloc((size_t) argc + 7, sizeof(*words));

    if (NULL == words || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) {
        free(words);
        return mpicrypt_error(MPICRYPT_FAILED, "/proc/self/exe: %s", strerror(errno));
    }
    snprintf(path, sizeof(path), OMPI_CRYPT_LIBEXEC_DIR "/mpicrypt-%s", name);
    char *const start[] = {"python3", "-I", "-B", path, self, OMPI_CRYPT_PROFILE_DIR};
    memcpy(words, start, sizeof(start));
    for (int i = 0; i < argc; ++i) {
        words[sizeof(start) / sizeof(start[0]) + (size_t) i] = argv[i];
    }
    if (0 == access(path, R_OK)) {
        execv("/usr/bin/python3", words);
        execvp(words[0], words);
        (void) mpicrypt_error(MPICRYPT_MISSING, "python3 cannot be started (Debian: python3): %s", strerror(errno));
    } else {
        (void) mpicrypt_error(MPICRYPT_MISSING, "%s: %s", path, strerror(errno));
    }
    free(words);
    return MPICRYPT_MISSING;
}

static bool asks_help(int argc, char **argv)
{
    for (int i = 0; i < argc && 0 != strcmp(argv[i], "--"); ++i) {
        if (0 == strcmp(argv[i], "--help") || 0 == strcmp(argv[i], "-h")) {
            return true;
        }
    }
    return false;
}

static void help_page(const mpicrypt_verb_t *verb, int argc, char **argv)
{
    const char *command = mpicrypt_command_of(verb, argc, argv);

    if (NULL == command) {
        mpicrypt_help_verb(stdout, verb);
    } else {
        mpicrypt_help_command(stdout, verb, command);
    }
}

/* mpicrypt help [VERB [COMMAND]] */
static int help(int argc, char **argv)
{
    if (argc < 1) {
        mpicrypt_help_program(stdout, verbs);
        return MPICRYPT_OK;
    }
    const mpicrypt_verb_t *verb = find(argv[0]);
    if (NULL == verb) {
        return mpicrypt_error(MPICRYPT_USAGE, "there is no verb '%s'; see 'mpicrypt --help'", argv[0]);
    }
    if (NULL == verb->run) {
        return mpicrypt_become(verb->name, 1, (char *[]){"--help"});
    }
    if (argc > 1 && NULL == mpicrypt_command_of(verb, 1, argv + 1)) {
        return mpicrypt_error(MPICRYPT_USAGE, "%s has no command '%s'; see 'mpicrypt %s --help'", verb->name, argv[1], verb->name);
    }
    help_page(verb, argc - 1, argv + 1);
    return MPICRYPT_OK;
}

/* What was printed must have reached its file: a full disk is a failure. */
static int flushed(int rc)
{
    if (0 != fflush(stdout) || ferror(stdout)) {
        return mpicrypt_error(MPICRYPT_FAILED, "cannot write to standard output");
    }
    return rc;
}

int main(int argc, char **argv)
{
    mpicrypt_streams_open();
    (void) signal(SIGCHLD, SIG_DFL);            /* if it was ignored, no child could be waited for */
    if (argc < 2) {
        mpicrypt_help_program(stderr, verbs);
        return MPICRYPT_USAGE;
    }
    if (0 == strcmp(argv[1], "--help") || 0 == strcmp(argv[1], "-h") || 0 == strcmp(argv[1], "help")) {
        return flushed(help(argc - 2, argv + 2));
    }
    if (0 == strcmp(argv[1], "--version")) {
        printf("mpicrypt (ompi-crypt) %s\n", OPAL_CRYPT_VERSION);
        return flushed(MPICRYPT_OK);
    }

    const mpicrypt_verb_t *verb = find(argv[1]);
    if (NULL == verb) {
        return mpicrypt_error(MPICRYPT_USAGE, "unknown %s '%s'; see 'mpicrypt --help'",
                              '-' == argv[1][0] ? "option" : "verb", argv[1]);
    }
    running = verb->name;
    if (NULL == verb->run) {
        return mpicrypt_become(verb->name, argc - 2, argv + 2);
    }
    if (asks_help(argc - 2, argv + 2)) {
        help_page(verb, argc - 2, argv + 2);
        return flushed(MPICRYPT_OK);
    }

    bool given[MPICRYPT_OPTIONS_MAX];
    int operand_count;
    int rc = mpicrypt_options_parse(verb, argc - 2, argv + 2, given, &operand_count);
    if (MPICRYPT_OK == rc) {
        rc = mpicrypt_command_check(verb, given, operand_count, argv + 2);
    }
    if (MPICRYPT_OK == rc) {
        rc = verb->run(operand_count, argv + 2);
    }
    mpicrypt_options_free(verb);
    rc = flushed(rc);
    mpicrypt_signals_finish();
    return rc;
}
