/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The report of a job: adding up the lines of its processes, and writing the sum
 * as text, as JSON, or as a line for syslog.
 */
#include "cryptmpi.h"
#include "cryptmpi_report.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "opal/mca/common/crypt/wire/points.h"

typedef ompi_common_cryptmpi_report_line_t line_t;

/* ---- adding up ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void add(line_t *sum, const line_t *one)
{
    /* The statistics consist only of numbers to add. */
    for (size_t i = 0; i < sizeof(sum->stats) / sizeof(uint64_t); i++) {
        ((uint64_t *) &sum->stats)[i] += ((const uint64_t *) &one->stats)[i];
    }
    sum->sealed_peers += one->sealed_peers;
    sum->local_peers += one->local_peers;
    sum->pq_peers += one->pq_peers;
    sum->kernel_peers += one->kernel_peers;
    sum->wall_ns += one->wall_ns;
    sum->threads = larger(sum->threads, one->threads);
    sum->segments = larger(sum->segments, one->segments);
}

static int by_provider(const void *a, const void *b)
{
    return strncmp(((const line_t *) a)->provider, ((const line_t *) b)->provider, sizeof(((line_t *) 0)->provider));
}

/* "NAME (COUNT), ..." from sorted lines; the name that a library reports may contain
 * characters that end a string elsewhere. */
static char *providers(const line_t *lines, int count)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    for (int i = 0, first = 0; NULL != out && i < count; i++) {
        if (i + 1 == count || 0 != by_provider(&lines[i], &lines[i + 1])) {
            fprintf(out, "%s%.63s (%d)", first > 0 ? ", " : "", lines[i].provider, i + 1 - first);
            first = i + 1;
        }
    }
    if (NULL == out || 0 != fclose(out)) {
        return NULL;
    }
    for (char *at = text; '\0' != *at; at++) {
        *at = '"' == *at || '\\' == *at || (unsigned char) *at < ' ' ? '_' : *at;
    }
    return text;
}

/* "TRANSPORT (COUNT), ...", or "none". */
static void raised_limits(const line_t *lines, int count, char *text, size_t bytes)
{
    static const char *const names[OMPI_COMMON_CRYPTMPI_RAISED_COUNT] = {
        [OMPI_COMMON_CRYPTMPI_RAISED_TCP] = "btl/tcp",
        [OMPI_COMMON_CRYPTMPI_RAISED_SM] = "shared memory",
        [OMPI_COMMON_CRYPTMPI_RAISED_UCX] = "ucx over tcp",
    };
    size_t used = 0;

    snprintf(text, bytes, "none");
    for (int t = 0; t < OMPI_COMMON_CRYPTMPI_RAISED_COUNT; t++) {
        int processes = 0;

        for (int i = 0; i < count; i++) {
            processes += (int) (lines[i].raised >> t & 1);
        }
        if (processes > 0 && used < bytes) {
            used += (size_t) snprintf(text + used, bytes - used, "%s%s (%d)", used > 0 ? ", " : "", names[t], processes);
        }
    }
}

/* ---- writing ---- */

/* The fields of a report are listed once; a form says how each is printed. */
typedef struct form {
    const char *begin, *text, *number, *share, *end;
} form_t;

static const form_t as_text = {"ompi-crypt report\n", "    %-24s %s\n", "    %-24s %" PRIu64 "\n", "    %-24s %.4f\n", ""};
static const form_t as_json = {"{", "\"%s\": \"%s\", ", "\"%s\": %" PRIu64 ", ", "\"%s\": %.6f", "}\n"};
static const form_t as_line = {"ompi-crypt:", " %s=\"%s\"", " %s=%" PRIu64, " %s=%.4f", ""};

/* What is shown by process, not as a sum. */
typedef struct told {
    const char *providers;
    char raised[128];
    int processes, reporting;
} told_t;

/* How keys of sealed peers were agreed on; over a btl, they are counted by method. */
static void key_agreement(const line_t *sum, char *text, size_t bytes)
{
    const char *usual = opal_cryptproc_params.options.fips ? "P-256" : "X25519";

    if (0 == sum->pq_peers) {
        snprintf(text, bytes, "%s", usual);
    } else if (sum->pq_peers == sum->sealed_peers) {
        snprintf(text, bytes, "X25519MLKEM768");
    } else {
        snprintf(text, bytes, "X25519MLKEM768 (%" PRIu64 "), %s (%" PRIu64 ")", sum->pq_peers, usual,
                 sum->sealed_peers - sum->pq_peers);
    }
}

/* Why nothing was sealed, or NULL.  What the kernel seals is not in the statistics. */
static const char *remark(const line_t *sum)
{
    if (sum->stats.sealed_calls > 0 || sum->stats.opened_calls > 0 || sum->kernel_peers > 0) {
        return NULL;
    }
    return OPAL_CRYPTPROC_ALL == opal_cryptproc_params.scope                          ? "no message was sent"
           : ompi_proc_world_size() > 1 + (int) opal_process_info.num_local_peers ? "no message was sent to another node"
           : "the job is on one node, and messages within a node are not encrypted (crypt_scope)";
}

/* Over btl/crypt they need no line of their own. */
static void write_windows(FILE *out, const form_t *form)
{
    char text[320];

    if (!opal_cryptproc_has_transport() && NULL != ompi_common_cryptmpi_windows()) {
        ompi_common_cryptmpi_windows_text(text, sizeof(text));
        fprintf(out, form->text, "windows", text);
    }
}

static void write_report(FILE *out, const form_t *form, const line_t *sum, const told_t *told)
{
    const opal_cryptproc_params_t *p = &opal_cryptproc_params;
    const opal_crypt_stats_t *s = &sum->stats;
    const char *why_none = remark(sum);
    char job[32], cipher[16], agreement[80], protection[OMPI_COMMON_CRYPTMPI_PROTECTION], unused[320];

    key_agreement(sum, agreement, sizeof(agreement));
    ompi_common_cryptmpi_protection(sum->sealed_peers > 0 ? agreement : NULL, protection);
    snprintf(job, sizeof(job), "%08" PRIx32, (uint32_t) OPAL_PROC_MY_NAME.jobid);
    snprintf(cipher, sizeof(cipher), "AES-%u-GCM", p->key_bits);
    fputs(form->begin, out);
    fprintf(out, form->text, "job", job);
    fprintf(out, form->number, "uid", (uint64_t) geteuid());
    fprintf(out, form->number, "processes", (uint64_t) told->processes);
    fprintf(out, form->number, "reporting", (uint64_t) told->reporting);
    fprintf(out, form->text, "protection", protection);
    fprintf(out, form->text, "authentication",
            opal_crypt_auth_name(opal_crypt_local_auth(opal_cryptproc_local())));
    fprintf(out, form->text, "cipher", cipher);
    fprintf(out, form->text, "providers", NULL == told->providers ? "" : told->providers);
    fprintf(out, form->text, "transport", opal_cryptproc_has_transport() ? opal_cryptproc_transport_is : "pml");
    fprintf(out, form->text, "host", NULL == ompi_common_cryptmpi_host_name() ? "ob1" : ompi_common_cryptmpi_host_name());
    write_windows(out, form);
    fprintf(out, form->text, "scope", OPAL_CRYPTPROC_ALL == p->scope ? "all" : "internode");
    fprintf(out, form->text, "audit", OPAL_CRYPTPROC_AUDIT_WARN == p->audit ? "PLAINTEXT POSSIBLE" : "abort");
    fprintf(out, form->text, "raised_limits", told->raised);
    ompi_common_cryptmpi_unused(unused, sizeof(unused));
    if (opal_cryptproc_has_transport() && '\0' != unused[0]) {
        fprintf(out, form->text, "unused", unused);
    }
    fprintf(out, form->text, "key_agreement", agreement);
    fprintf(out, form->number, "sealed_peers", sum->sealed_peers);
    fprintf(out, form->number, "local_peers", sum->local_peers);
    fprintf(out, form->number, "kernel_peers", sum->kernel_peers);
    fprintf(out, form->number, "sealed_messages", s->sealed_calls);
    fprintf(out, form->number, "sealed_bytes", s->sealed_bytes);
    if (NULL != why_none) {
        fprintf(out, form->text, "remark", why_none);
    }
    fprintf(out, form->number, "opened_messages", s->opened_calls);
    fprintf(out, form->number, "opened_bytes", s->opened_bytes);
    fprintf(out, form->number, "chopped_sent", s->chopped_sealed);
    fprintf(out, form->number, "chopped_received", s->chopped_opened);
    fprintf(out, form->number, "most_segments", sum->segments);
    fprintf(out, form->number, "most_threads", sum->threads);
    fprintf(out, form->number, "epochs", s->epochs);
    fprintf(out, form->number, "authentication_failures", s->failed_opens);
    fprintf(out, form->share, "crypto_share", sum->wall_ns > 0 ? (double) s->aead_ns / (double) sum->wall_ns : 0.0);
    fputs(form->end, out);
}

static FILE *open_file(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    return fd < 0 ? NULL : fdopen(fd, "w");
}

static void deliver(const line_t *sum, const told_t *told)
{
    const char *report = opal_cryptproc_params.report;
    char *text = NULL;
    size_t bytes;
    FILE *out = 0 == strncmp(report, "json:", 5) ? open_file(report + 5) : open_memstream(&text, &bytes);

    if (NULL == out) {
        fprintf(stderr, "ompi-crypt: the report cannot be written to %s: %m\n", report);
        return;
    }
    write_report(out, NULL == text && 'j' == *report ? &as_json : 's' == *report ? &as_line : &as_text, sum, told);
    if (0 != fclose(out)) {
        fprintf(stderr, "ompi-crypt: the report cannot be written to %s: %m\n", report);
    } else if ('s' == *report) {
        syslog(LOG_USER | LOG_INFO, "%s", text);
    } else if ('1' == *report) {
        fputs(text, stderr);
    }
    free(text);
}

void ompi_common_cryptmpi_report_write(ompi_common_cryptmpi_report_line_t *lines, int count, int processes)
{
    told_t told = {.processes = processes, .reporting = count};
    line_t sum = {.wall_ns = 0};
    char *used;

    for (int i = 0; i < count; i++) {
        add(&sum, &lines[i]);
    }
    qsort(lines, (size_t) count, sizeof(*lines), by_provider);
    told.providers = used = providers(lines, count);
    raised_limits(lines, count, told.raised, sizeof(told.raised));
    locale_t before = opal_crypt_points();
    deliver(&sum, &told);
    opal_crypt_points_end(before);
    free(used);
}
