/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What `mpicrypt file` prints about many files: a line or a JSON object for each, and in the end how many there were of
 * each kind.  What a verb prints about a file is kept until the verb has ended, so that it stays together.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "many.h"
#include "opal/mca/common/crypt/base/text.h"

struct mpicrypt_file_report {
    const mpicrypt_file_command_t *command;
    bool lines, json, quiet, verdict;
    pthread_mutex_t lock;
    uint64_t count[2][MPICRYPT_FILE_STATES];    /* [1]: of those that were skipped */
    int worst;
};

mpicrypt_file_report_t *mpicrypt_file_report_new(const mpicrypt_file_command_t *command, const mpicrypt_file_choices_t *options,
                                                 bool lines)
{
    mpicrypt_file_report_t *report = calloc(1, sizeof(*report));

    if (NULL != report) {
        *report = (mpicrypt_file_report_t){.command = command, .lines = lines, .json = options->json, .quiet = options->quiet,
                                           .verdict = options->verdict, .lock = PTHREAD_MUTEX_INITIALIZER, .worst = MPICRYPT_OK};
    }
    return report;
}

bool mpicrypt_file_report_begin(mpicrypt_file_report_t *report, mpicrypt_file_subject_t *subject, char **text, size_t *bytes)
{
    *text = NULL;
    subject->out = report->lines || report->json ? open_memstream(text, bytes) : stdout;
    subject->errors = report->json ? open_memstream(&subject->error_text, &subject->error_bytes) : NULL;
    mpicrypt_error_list(subject->errors);
    return NULL != subject->out && (!report->json || NULL != subject->errors);
}

/* ---- one file ---- */

/* The verb is not for this file, which is no error where it was found below a directory, or is one of many. */
static bool is_skipped(const mpicrypt_file_report_t *report, const mpicrypt_file_subject_t *subject)
{
    switch (subject->state) {
    case MPICRYPT_FILE_IS_PLAIN:
        return subject->found;
    case MPICRYPT_FILE_IS_ENCRYPTED:
    case MPICRYPT_FILE_IS_LINK:
    case MPICRYPT_FILE_IS_SPECIAL:
        return true;
    case MPICRYPT_FILE_IS_LEFT:
        return !report->verdict;
    default:
        return false;
    }
}

static void print_members(const mpicrypt_file_report_t *report, const mpicrypt_file_subject_t *subject)
{
    const char *advice = mpicrypt_file_state_advice(subject->state);

    printf("{\"file\": ");
    mpicrypt_json_text(stdout, subject->shown);
    printf(", \"state\": \"%s\"", mpicrypt_file_state_of(subject));
    if (subject->sized) {
        printf(", \"bytes\": %llu", (unsigned long long) subject->bytes);
    }
    if ('\0' != subject->root[0]) {
        printf(", \"root\": \"%s\"", subject->root);
    }
    if (report->verdict && NULL != advice) {
        printf(", \"advice\": \"%s\"", advice);
    }
}

/* `own`: what the verb has printed of the object; NULL: nothing. */
static void print_object(const mpicrypt_file_report_t *report, const mpicrypt_file_subject_t *subject, const char *own)
{
    if (NULL == own) {
        print_members(report, subject);
    } else {
        fputs(own, stdout);
    }
    if (subject->error_bytes > 0) {
        printf(", \"errors\": [%s]", subject->error_text);
    }
    printf("}\n");
}

/* What the verb printed, below the line about the file. */
static void print_below(const char *text)
{
    for (const char *end; '\0' != *text; text = end) {
        end = text + strcspn(text, "\n");
        printf("%s%.*s\n", end > text ? "  " : "", (int) (end - text), text);
        end += '\n' == *end;
    }
}

static void print_line(const mpicrypt_file_report_t *report, const mpicrypt_file_subject_t *subject, const char *text)
{
    const bool well = MPICRYPT_FILE_IS_WHOLE == subject->state;
    const char *advice = report->verdict ? mpicrypt_file_state_advice(subject->state) : NULL;
    char *name = strdup(subject->shown);

    printf("%s: %s", NULL == name ? "?" : opal_crypt_harmless(name, ""), mpicrypt_file_state_of(subject));
    if (NULL != advice) {
        printf(": %s", advice);
    }
    printf("%s%s\n", '\0' == subject->root[0] ? "" : ", root ", subject->root);
    if (!well || report->command->details) {
        print_below(text);
    }
    free(name);
}

int mpicrypt_file_report_end(mpicrypt_file_report_t *report, mpicrypt_file_subject_t *subject, int code, char **text)
{
    if (MPICRYPT_OK != code && MPICRYPT_FILE_IS_WHOLE == subject->state) {
        subject->state = MPICRYPT_FILE_HAS_ERROR;
    }
    const bool skipped = is_skipped(report, subject);
    code = skipped ? MPICRYPT_OK : MPICRYPT_FILE_IS_LEFT == subject->state ? MPICRYPT_FAILED : code;
    const bool silent = report->quiet && MPICRYPT_OK == code && '\0' == subject->root[0];

    mpicrypt_error_list(NULL);
    if (NULL != subject->errors && 0 != fclose(subject->errors)) {
        subject->error_bytes = 0;
    }
    pthread_mutex_lock(&report->lock);
    ++report->count[skipped][subject->state];
    report->worst = code > report->worst ? code : report->worst;
    if (report->lines || report->json) {
        mpicrypt_progress_end();
        const bool kept = 0 == fclose(subject->out) && NULL != *text;
        const char *own = report->json && report->command->prints && kept && '\0' != **text ? *text : NULL;
        if (report->json && (NULL != own || !silent)) {
            print_object(report, subject, own);
        } else if (!report->json && !silent && !skipped) {
            print_line(report, subject, kept ? *text : "");
        }
        fflush(stdout);                 /* what was done is known, even if a signal ends the next file */
    }
    pthread_mutex_unlock(&report->lock);
    free(subject->error_text);
    free(*text);
    return code;
}

/* ---- the summary ---- */

/* "3 whole, 1 torn"; two states may have one name. */
static void print_counts(const mpicrypt_file_report_t *report, const uint64_t count[MPICRYPT_FILE_STATES])
{
    const char *separator = "";

    for (int i = 0; i < MPICRYPT_FILE_STATES; ++i) {
        const char *name = 0 == i ? report->command->done : mpicrypt_file_state_name((mpicrypt_file_state_t) i);
        uint64_t sum = 0;
        bool first = true;
        for (int k = 0; k < MPICRYPT_FILE_STATES; ++k) {
            bool same = i == k || (i > 0 && k > 0 && 0 == strcmp(name, mpicrypt_file_state_name((mpicrypt_file_state_t) k)));
            sum += same ? count[k] : 0;
            first = first && !(same && k < i);
        }
        if (first && sum > 0) {
            printf("%s%llu %s", separator, (unsigned long long) sum, name);
            separator = ", ";
        }
    }
}

int mpicrypt_file_report_free(mpicrypt_file_report_t *report)
{
    uint64_t all = 0, skipped = 0;
    int worst = report->worst;

    for (int i = 0; i < MPICRYPT_FILE_STATES; ++i) {
        all += report->count[0][i];
        skipped += report->count[1][i];
    }
    mpicrypt_progress_end();
    if (report->lines && !report->json && !report->quiet) {
        printf("%llu %s%s", (unsigned long long) all, 1 == all ? "file" : "files", all > 0 ? ": " : "");
        print_counts(report, report->count[0]);
        printf("%s", skipped > 0 ? "; skipped: " : "");
        print_counts(report, report->count[1]);
        printf("\n");
    }
    pthread_mutex_destroy(&report->lock);
    free(report);
    return worst;
}
