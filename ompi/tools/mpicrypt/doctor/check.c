/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reports, and the verb `check`.
 */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#include "opal/mca/aead/base/base.h"
#include "opal/runtime/opal.h"

/* ---- reports ---- */

static void begin_one(mpicrypt_report_t *report)
{
    report->start = report->used;
    report->findings = 0;
    report->used += (size_t) snprintf(report->text + report->used, sizeof(report->text) - report->used,
                                      "@mpicrypt report %s\n", report->host);
}

void mpicrypt_report_begin(mpicrypt_report_t *report)
{
    memset(report, 0, sizeof(*report));
    gethostname(report->host, sizeof(report->host) - 1);
    begin_one(report);
}

/* Keeps room for the last line. */
static bool add_line(mpicrypt_report_t *report, const char *state, const char *check, const char *remedy,
                     const char *detail)
{
    enum { LAST_LINE = 128 };
    size_t capacity = report->start + MPICRYPT_REPORT_BYTES - LAST_LINE - report->used;
    char *line = report->text + report->used;
    int bytes = snprintf(line, capacity, "@mpicrypt finding %s\t%s\t%s\t%s\t%s", report->host, state, check, remedy,
                         detail);

    if (bytes < 0 || (size_t) bytes + 1 >= capacity) {
        *line = '\0';
        return false;
    }
    for (int i = 0; i < bytes; ++i) {
        line[i] = '\n' == line[i] ? '\036' : line[i];
    }
    line[bytes] = '\n';
    report->used += (size_t) bytes + 1;
    return true;
}

void mpicrypt_report_add(mpicrypt_report_t *report, mpicrypt_found_t state, const char *check, const char *remedy,
                         const char *format, ...)
{
    static const char *const states[] = {"ok", "note", "warn", "fail"};
    char detail[1024];
    va_list list;

    va_start(list, format);
    vsnprintf(detail, sizeof(detail), format, list);
    va_end(list);
    if (!add_line(report, states[state], check, remedy, detail)
        && report->start + 2 * MPICRYPT_REPORT_BYTES <= sizeof(report->text)) {
        mpicrypt_report_end(report);
        begin_one(report);
        add_line(report, states[state], check, remedy, detail);
    }
    ++report->findings;
}

void mpicrypt_report_why(mpicrypt_report_t *report, mpicrypt_found_t state, const char *check, const char *help_file,
                         const char *topic, const char *detail)
{
    char remedy[128];

    snprintf(remedy, sizeof(remedy), "%s:%s", help_file, topic);
    mpicrypt_report_add(report, state, check, remedy, "%s", detail);
}

void mpicrypt_report_end(mpicrypt_report_t *report)
{
    report->used += (size_t) snprintf(report->text + report->used, sizeof(report->text) - report->used,
                                      "@mpicrypt end %s %d\n", report->host, report->findings);
}

/* To standard output, one report at a time.  Findings contain no line ends, so a line that begins with "report" is ours. */
static int write_report(const mpicrypt_report_t *report)
{
    for (const char *from = report->text, *to; '\0' != *from; from = to) {
        const char *next = strstr(from, "\n@mpicrypt report ");
        to = NULL == next ? report->text + report->used : next + 1;
        if (to - from != write(STDOUT_FILENO, from, (size_t) (to - from))) {
            return MPICRYPT_FAILED;
        }
    }
    return MPICRYPT_OK;
}

/* ---- parameters ---- */

int mpicrypt_check_open(void)
{
    if (OPAL_SUCCESS != opal_init_util(NULL, NULL)) {
        return mpicrypt_error(MPICRYPT_MISSING, "Open MPI's utility layer does not start here");
    }
    if (OMPI_SUCCESS != opal_cryptproc_params_register()) {
        opal_finalize_util();
        return mpicrypt_error(MPICRYPT_FAILED, "the parameters crypt_* have values that cannot be used");
    }
    return MPICRYPT_OK;
}

void mpicrypt_check_close(void)
{
    if (mca_base_framework_is_open(&opal_aead_base_framework)) {
        mca_base_framework_close(&opal_aead_base_framework);
    }
    opal_finalize_util();
}

/* ---- the verb ---- */

int mpicrypt_mpi_check_verb(const mpicrypt_names_t *directories)
{
    static mpicrypt_report_t report;
    int rc = mpicrypt_check_open();

    if (MPICRYPT_OK != rc) {
        return rc;
    }
    mpicrypt_report_begin(&report);
    mpicrypt_check_installation(&report);
    mpicrypt_check_names(&report);
    opal_crypt_local_t *local = mpicrypt_check_keys(&report, 0);
    mpicrypt_check_keystore(&report);
    mpicrypt_check_system(&report);
    mpicrypt_check_ways_around(&report);
    for (int i = 0; i < directories->count; ++i) {
        if (0 != strcmp(directories->value[i], "-")) {
            mpicrypt_check_directory(&report, directories->value[i]);
        }
    }
    mpicrypt_report_end(&report);
    if (NULL != local) {
        opal_crypt_local_destroy(local);
    }
    mpicrypt_check_close();
    return write_report(&report);
}
