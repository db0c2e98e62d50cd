/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reports, and the verb `check`.
 */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "mpicrypt_mpi_check.h"

#include "opal/mca/aead/base/base.h"
#include "opal/runtime/opal.h"

/* ---- reports ---- */

void mpicrypt_report_begin(mpicrypt_report_t *report)
{
    memset(report, 0, sizeof(*report));
    gethostname(report->host, sizeof(report->host) - 1);
    report->used = (size_t) snprintf(report->text, sizeof(report->text), "@mpicrypt report %s\n", report->host);
}

/* Room is kept for the last line. */
void mpicrypt_report_add(mpicrypt_report_t *report, mpicrypt_found_t state, const char *check, const char *remedy,
                         const char *format, ...)
{
    static const char *const states[] = {"ok", "note", "warn", "fail"};
    enum { LAST_LINE = 128 };
    size_t room = sizeof(report->text) - LAST_LINE - report->used;
    char *line = report->text + report->used, detail[1024];
    va_list list;

    va_start(list, format);
    vsnprintf(detail, sizeof(detail), format, list);
    va_end(list);
    int bytes = snprintf(line, room, "@mpicrypt finding %s\t%s\t%s\t%s\t%s", report->host, states[state], check, remedy,
                         detail);
    ++report->findings;
    if (bytes < 0 || (size_t) bytes + 1 >= room) {
        *line = '\0';
        return;
    }
    for (int i = 0; i < bytes; ++i) {
        line[i] = '\n' == line[i] ? '\036' : line[i];
    }
    line[bytes] = '\n';
    report->used += (size_t) bytes + 1;
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

/* ---- parameters ---- */

int mpicrypt_check_open(void)
{
    if (OPAL_SUCCESS != opal_init_util(NULL, NULL)) {
        return mpicrypt_error(MPICRYPT_MISSING, "Open MPI's utility layer does not start here");
    }
    if (OMPI_SUCCESS != ompi_common_cryptmpi_params_register()) {
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
    opal_common_crypt_local_t *local = mpicrypt_check_keys(&report, 0);
    mpicrypt_check_system(&report);
    mpicrypt_check_ways_around(&report);
    for (int i = 0; i < directories->count; ++i) {
        if (0 != strcmp(directories->value[i], "-")) {
            mpicrypt_check_directory(&report, directories->value[i]);
        }
    }
    mpicrypt_report_end(&report);
    if (NULL != local) {
        opal_common_crypt_local_destroy(local);
    }
    mpicrypt_check_close();
    return (ssize_t) report.used == write(STDOUT_FILENO, report.text, report.used) ? MPICRYPT_OK : MPICRYPT_FAILED;
}
