/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Help texts from a table of our own, for an Open MPI that accepts only its own (aead_base_help.h).
 */
#include "opal_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/pmix/pmix-internal.h"

#include "opal/mca/aead/base/aead_base_help.h"

#define DASHES "--------------------------------------------------------------------------\n"

static const char *find(const char *file, const char *topic)
{
    const opal_aead_base_help_text_t *entry = opal_aead_base_help_texts;

    while (NULL != entry->file && (0 != strcmp(entry->file, file) || 0 != strcmp(entry->topic, topic))) {
        ++entry;
    }
    return entry->text;
}

char *opal_aead_base_help_vstring(const char *file, const char *topic, bool framed, va_list list)
{
    const char *format = find(file, topic);
    char *text = NULL, *whole = NULL;

    if (NULL == format || vasprintf(&text, format, list) < 0) {
        return NULL;
    }
    if (framed && asprintf(&whole, DASHES "%s" DASHES, text) < 0) {
        whole = NULL;
    }
    if (framed) {
        free(text);
    }
    return framed ? whole : text;
}

/* Memory that the runtime uses until it calls back. */
typedef struct {
    char *text;
    pmix_info_t data, how[3];
} report_t;

static void say(report_t *report)
{
    fputs(report->text, stderr);
    fflush(stderr);
}

static void reported(pmix_status_t status, void *argument)
{
    report_t *report = argument;

    if (PMIX_SUCCESS != status && PMIX_OPERATION_SUCCEEDED != status) {
        say(report);
    }
    PMIX_INFO_DESTRUCT(&report->data);
    for (int i = 0; i < 3; i++) {
        PMIX_INFO_DESTRUCT(&report->how[i]);
    }
    free(report->text);
    free(report);
}

void opal_aead_base_help(const char *file, const char *topic, ...)
{
    report_t *report = calloc(1, sizeof(*report));
    const bool together = true;
    pmix_status_t status = PMIX_ERR_INIT;
    va_list list;

    va_start(list, topic);
    if (NULL != report) {
        report->text = opal_aead_base_help_vstring(file, topic, true, list);
    }
    va_end(list);
    if (NULL == report || NULL == report->text) {
        free(report);
        return;
    }
    PMIX_INFO_LOAD(&report->data, PMIX_LOG_STDERR, report->text, PMIX_STRING);
    PMIX_INFO_LOAD(&report->how[0], PMIX_LOG_AGG, &together, PMIX_BOOL);
    PMIX_INFO_LOAD(&report->how[1], PMIX_LOG_KEY, file, PMIX_STRING);
    PMIX_INFO_LOAD(&report->how[2], PMIX_LOG_VAL, topic, PMIX_STRING);
    if (PMIx_Initialized()) {
        status = PMIx_Log_nb(&report->data, 1, report->how, 3, reported, report);
    }
    if (PMIX_SUCCESS != status) {       /* then there is no callback */
        reported(status, report);
    }
}

void opal_aead_base_help_dir(void)
{
}
