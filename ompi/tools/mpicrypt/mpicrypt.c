/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt VERB [options]: the one command-line tool.  This file finds the
 * verb, has its options parsed and runs it; every verb has a file of its own.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpicrypt.h"
#include "mpicrypt_signals.h"
#include "opal/mca/aead/aead_version.h"
#include "opal/mca/common/crypt/base/text.h"

static const mpicrypt_verb_t *const verbs[] = {
    &mpicrypt_bench_verb,
    &mpicrypt_doctor_verb,
    &mpicrypt_file_verb,
    &mpicrypt_key_verb,
    &mpicrypt_keygen_verb,
    &mpicrypt_model_verb,
    &mpicrypt_ps_verb,
    &mpicrypt_speed_verb,
    &mpicrypt_tune_verb,
    NULL
};

static const char *running = NULL;

int mpicrypt_error(int code, const char *format, ...)
{
    char *text = NULL;
    va_list list;

    va_start(list, format);
    if (vasprintf(&text, format, list) < 0) {
        text = NULL;
    }
    va_end(list);
    mpicrypt_progress_end();
    fprintf(stderr, "mpicrypt%s%s: %s\n", NULL != running ? " " : "", NULL != running ? running : "",
            NULL == text ? strerror(ENOMEM) : opal_crypt_harmless(text, "\n"));
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

static bool asks_help(int argc, char **argv)
{
    for (int i = 0; i < argc && 0 != strcmp(argv[i], "--"); ++i) {
        if (0 == strcmp(argv[i], "--help") || 0 == strcmp(argv[i], "-h")) {
            return true;
        }
    }
    return false;
}

/* mpicrypt help [VERB] */
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
    mpicrypt_help_verb(stdout, verb);
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
    (void) signal(SIGCHLD, SIG_DFL);            /* if it was ignored, nobody could be waited for */
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
    if (asks_help(argc - 2, argv + 2)) {
        mpicrypt_help_verb(stdout, verb);
        return flushed(MPICRYPT_OK);
    }

    int operand_count;
    int rc = mpicrypt_options_parse(verb, argc - 2, argv + 2, &operand_count);
    if (MPICRYPT_OK == rc) {
        rc = verb->run(operand_count, argv + 2);
    }
    mpicrypt_options_free(verb);
    rc = flushed(rc);
    mpicrypt_signals_finish();
    return rc;
}
