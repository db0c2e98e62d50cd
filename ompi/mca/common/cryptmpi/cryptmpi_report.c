/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * crypt_report: one summary of a job, for its user or for an auditor.
 *
 *     MPI_Finalize begins (hook/crypt) --> every process sends a line_t to rank 0,
 *         sealed as any message
 *     after Open MPI's barrier (pml/crypt) --> rank 0 takes what has come, adds it
 *         up and writes text, JSON, or a line for syslog
 *
 * No collective: where processes were not all asked for a report (parameter
 * files differ from node to node) nobody waits for those who send nothing.
 *
 * It holds no secret and nothing of what was sent.  A job that ends otherwise
 * than by MPI_Finalize leaves no report.
 */
#include "cryptmpi.h"
#include "cryptmpi_internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "opal/mca/common/crypt/crypt_stats.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/show_help.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/runtime/mpiruntime.h"
#include "ompi/runtime/params.h"

#define SECOND UINT64_C(1000000000)     /* in nanoseconds */

enum { LIMIT = 5 };     /* seconds after the barrier; the lines were sent before it */

typedef struct line {
    opal_common_crypt_stats_t stats;
    uint64_t sealed_peers, local_peers, wall_ns;
    uint64_t threads, segments;         /* the most that a chopped message had */
    char provider[64];
} line_t;

static bool wanted, hooked;
static uint64_t began, most_threads, most_segments;

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return SECOND * (uint64_t) time.tv_sec + (uint64_t) time.tv_nsec;
}

/* ---- before ---- */

void ompi_common_cryptmpi_report_hooked(void)
{
    hooked = true;
}

int ompi_common_cryptmpi_report_start(void)
{
    const char *report = ompi_common_cryptmpi_params.report;

    wanted = NULL != report && '\0' != *report && 0 != strcmp(report, "0");
    if (!wanted) {
        return OMPI_SUCCESS;
    }
    if (0 != strcmp(report, "1") && 0 != strcmp(report, "syslog")
        && (0 != strncmp(report, "json:", 5) || '\0' == report[5])) {
        opal_show_help("help-ompi-common-cryptmpi.txt", "bad-report", true, report);
        return OMPI_ERR_BAD_PARAM;
    }
    if (!hooked) {
        opal_show_help("help-ompi-common-cryptmpi.txt", "report-unhooked", true, report);
        return OMPI_ERR_NOT_AVAILABLE;
    }
    began = now();
    most_threads = most_segments = 0;
    opal_common_crypt_stats_timing(true);
    return OMPI_SUCCESS;
}

/* Several threads may be here; a line that one of them loses is no harm. */
void ompi_common_cryptmpi_report_cut(unsigned threads, uint32_t segments)
{
    if (threads > __atomic_load_n(&most_threads, __ATOMIC_RELAXED)) {
        __atomic_store_n(&most_threads, threads, __ATOMIC_RELAXED);
    }
    if (segments > __atomic_load_n(&most_segments, __ATOMIC_RELAXED)) {
        __atomic_store_n(&most_segments, segments, __ATOMIC_RELAXED);
    }
}

/* ---- adding up ---- */

static void fill(line_t *line)
{
    const opal_aead_module_t *aead = ompi_common_cryptmpi_params.options.aead;

    memset(line, 0, sizeof(*line));
    opal_common_crypt_stats(&line->stats);
    ompi_common_cryptmpi_peers_count(&line->sealed_peers, &line->local_peers);
    line->wall_ns = now() - began;
    line->threads = most_threads;
    line->segments = most_segments;
    snprintf(line->provider, sizeof(line->provider), "%s", NULL == aead ? "none needed" : aead->version());
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void add(line_t *sum, const line_t *one)
{
    /* The statistics are nothing but numbers to add. */
    for (size_t i = 0; i < sizeof(sum->stats) / sizeof(uint64_t); i++) {
        ((uint64_t *) &sum->stats)[i] += ((const uint64_t *) &one->stats)[i];
    }
    sum->sealed_peers += one->sealed_peers;
    sum->local_peers += one->local_peers;
    sum->wall_ns += one->wall_ns;
    sum->threads = larger(sum->threads, one->threads);
    sum->segments = larger(sum->segments, one->segments);
}

static int by_provider(const void *a, const void *b)
{
    return strncmp(((const line_t *) a)->provider, ((const line_t *) b)->provider, sizeof(((line_t *) 0)->provider));
}

/* "NAME (COUNT), ..." of sorted lines; a library's own name for itself may have
 * what ends a string elsewhere. */
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

/* ---- writing ---- */

/* One home for what a report has; FORM says how a line of it looks. */
typedef struct form {
    const char *begin, *text, *number, *share, *end;
} form_t;

static const form_t as_text = {"ompi-crypt report\n", "    %-24s %s\n", "    %-24s %" PRIu64 "\n", "    %-24s %.4f\n", ""};
static const form_t as_json = {"{", "\"%s\": \"%s\", ", "\"%s\": %" PRIu64 ", ", "\"%s\": %.6f", "}\n"};
static const form_t as_line = {"ompi-crypt:", " %s=\"%s\"", " %s=%" PRIu64, " %s=%.4f", ""};

static void write_report(FILE *out, const form_t *form, const line_t *sum, const char *used, int processes, int reporting)
{
    const ompi_common_cryptmpi_params_t *p = &ompi_common_cryptmpi_params;
    const opal_common_crypt_stats_t *s = &sum->stats;
    char job[32], cipher[16];

    snprintf(job, sizeof(job), "%08" PRIx32, (uint32_t) OPAL_PROC_MY_NAME.jobid);
    snprintf(cipher, sizeof(cipher), "AES-%u-GCM", p->key_bits);
    fputs(form->begin, out);
    fprintf(out, form->text, "job", job);
    fprintf(out, form->number, "uid", (uint64_t) geteuid());
    fprintf(out, form->number, "processes", (uint64_t) processes);
    fprintf(out, form->number, "reporting", (uint64_t) reporting);
    fprintf(out, form->text, "authentication",
            opal_common_crypt_auth_name(opal_common_crypt_local_auth(ompi_common_cryptmpi_local())));
    fprintf(out, form->text, "cipher", cipher);
    fprintf(out, form->text, "providers", NULL == used ? "" : used);
    fprintf(out, form->text, "scope", OMPI_COMMON_CRYPTMPI_ALL == p->scope ? "all" : "internode");
    fprintf(out, form->text, "audit", OMPI_COMMON_CRYPTMPI_AUDIT_WARN == p->audit ? "PLAINTEXT POSSIBLE" : "abort");
    fprintf(out, form->number, "sealed_peers", sum->sealed_peers);
    fprintf(out, form->number, "local_peers", sum->local_peers);
    fprintf(out, form->number, "sealed_messages", s->sealed_calls);
    fprintf(out, form->number, "sealed_bytes", s->sealed_bytes);
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

static void deliver(const line_t *sum, const char *used, int processes, int reporting)
{
    const char *report = ompi_common_cryptmpi_params.report;
    char *text = NULL;
    size_t bytes;
    FILE *out = 0 == strncmp(report, "json:", 5) ? open_file(report + 5) : open_memstream(&text, &bytes);

    if (NULL == out) {
        fprintf(stderr, "ompi-crypt: the report cannot be written to %s: %m\n", report);
        return;
    }
    write_report(out, NULL == text && 'j' == *report ? &as_json : 's' == *report ? &as_line : &as_text, sum, used,
                 processes, reporting);
    if (0 != fclose(out)) {
        fprintf(stderr, "ompi-crypt: the report cannot be written to %s: %m\n", report);
    } else if ('s' == *report) {
        syslog(LOG_USER | LOG_INFO, "%s", text);
    } else if ('1' == *report) {
        fputs(text, stderr);
    }
    free(text);
}

/* ---- collecting ---- */

static line_t mine;
static ompi_request_t *sending;
static bool filled;

/* Rank 0 hears of it in Open MPI's barrier at the latest.  That must not come
 * later: by a first connection while everything is taken down, the transports of
 * 5.0 crash. */
static void send_mine(ompi_communicator_t *world)
{
    const uint64_t end = now() + SECOND * LIMIT;

    if (OMPI_SUCCESS != MCA_PML_CALL(isend(&mine, sizeof(mine), MPI_BYTE, 0, OMPI_COMMON_CRYPTMPI_TAG_REPORT,
                                           MCA_PML_BASE_SEND_STANDARD, world, &sending))) {
        sending = NULL;
        return;
    }
    while (!REQUEST_COMPLETE(sending) && (!ompi_async_mpi_finalize || now() < end)) {
        opal_progress();
    }
}

void ompi_common_cryptmpi_report(void)
{
    ompi_communicator_t *world = &ompi_mpi_comm_world.comm;

    if (!wanted || !ompi_common_cryptmpi_active() || OMPI_MPI_STATE_INIT_COMPLETED != ompi_mpi_state) {
        return;
    }
    wanted = false;
    filled = true;
    sending = NULL;
    fill(&mine);
    if (0 != ompi_comm_rank(world)) {
        send_mine(world);
    }
}

/* The line of `rank`, if it has come. */
static bool take_line(ompi_communicator_t *world, int rank, line_t *line)
{
    ompi_status_public_t status;
    int arrived = 0;

    return OMPI_SUCCESS == MCA_PML_CALL(iprobe(rank, OMPI_COMMON_CRYPTMPI_TAG_REPORT, world, &arrived, &status))
           && arrived && sizeof(*line) == status._ucount
           && OMPI_SUCCESS == MCA_PML_CALL(recv(line, sizeof(*line), MPI_BYTE, rank, OMPI_COMMON_CRYPTMPI_TAG_REPORT,
                                                world, &status));
}

/* Of rank 0: all lines, or those that came before `end`; how many. */
static int take_lines(ompi_communicator_t *world, line_t *lines, uint64_t end)
{
    const int processes = ompi_comm_size(world);
    bool *here = calloc((size_t) processes, sizeof(*here));
    line_t line;
    int count = 1;

    lines[0] = mine;
    while (NULL != here && count < processes && now() < end) {
        for (int rank = 1; rank < processes; rank++) {
            if (!here[rank] && take_line(world, rank, &line)) {
                here[rank] = true;
                lines[count++] = line;
            }
        }
        opal_progress();
    }
    free(here);
    return count;
}

static void write_lines(line_t *lines, int count, int processes)
{
    line_t sum = {.wall_ns = 0};
    char *used;

    for (int i = 0; i < count; i++) {
        add(&sum, &lines[i]);
    }
    qsort(lines, (size_t) count, sizeof(*lines), by_provider);
    used = providers(lines, count);
    deliver(&sum, used, processes, count);
    free(used);
}

void ompi_common_cryptmpi_report_end(void)
{
    ompi_communicator_t *world = &ompi_mpi_comm_world.comm;
    const uint64_t end = now() + SECOND * LIMIT;
    line_t *lines;

    if (!filled) {
        return;
    }
    filled = false;
    if (0 != ompi_comm_rank(world)) {
        if (NULL != sending && REQUEST_COMPLETE(sending)) {
            ompi_request_free(&sending);
        }
        return;
    }
    lines = calloc((size_t) ompi_comm_size(world), sizeof(*lines));
    if (NULL == lines) {
        fprintf(stderr, "ompi-crypt: no report: out of memory\n");
        return;
    }
    write_lines(lines, take_lines(world, lines, end), ompi_comm_size(world));
    free(lines);
}
