/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The verb `meet`: the nodes authenticate each other as processes of a job do.
 * The job itself is plain; it only sends records, which are public.
 */
#include <stdlib.h>
#include <string.h>

#include "rank.h"
#include "ompi/tools/mpicrypt/doctor/check.h"

/* All records, each in OPAL_CRYPT_RECORD_MAX bytes; bytes[rank] 0: the rank has none. */
static uint8_t *gather_records(const opal_crypt_local_t *local, int *bytes)
{
    uint8_t *mine = mpicrypt_mpi_memory(OPAL_CRYPT_RECORD_MAX);
    uint8_t *all = mpicrypt_mpi_memory((size_t) mpicrypt_mpi_size * OPAL_CRYPT_RECORD_MAX);
    size_t mine_bytes = 0;
    int count = 0;

    if (NULL != local) {
        const uint8_t *record = opal_crypt_local_record(local, &mine_bytes);
        memcpy(mine, record, mine_bytes);
        count = (int) mine_bytes;
    }
    MPI_Allgather(&count, 1, MPI_INT, bytes, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgather(mine, OPAL_CRYPT_RECORD_MAX, MPI_BYTE, all, OPAL_CRYPT_RECORD_MAX, MPI_BYTE, MPI_COMM_WORLD);
    free(mine);
    return all;
}

static bool know(const opal_crypt_local_t *local, const uint8_t *record, int bytes, int rank,
                 opal_crypt_why_t *why)
{
    opal_crypt_expect_t expect = {.nspace = MPICRYPT_CHECK_NAMESPACE, .rank = (uint32_t) rank};
    opal_crypt_schedule_t *schedule;

    if (OPAL_CRYPT_OK != opal_crypt_schedule_create(local, record, (size_t) bytes, &expect, &schedule, why)) {
        return false;
    }
    opal_crypt_schedule_destroy(schedule);
    return true;
}

/* The reason without the two lines that name the processes, so that nodes which
 * refuse the same peers for the same reason report the same. */
static const char *reason(const opal_crypt_why_t *why)
{
    const char *peer = strstr(why->detail, "the peer:"), *line = NULL == peer ? NULL : strchr(peer, '\n');

    return NULL == line ? why->detail : line + 1 + strspn(line + 1, " ");
}

typedef struct refused {
    char names[512];                    /* of nodes */
    int count;
    opal_crypt_why_t first;
} refused_t;

static void refuse(refused_t *refused, const char *host, const opal_crypt_why_t *why)
{
    size_t used = strlen(refused->names);

    if (0 == refused->count++) {
        refused->first = *why;
    }
    if (used + strlen(host) + 16 < sizeof(refused->names)) {
        snprintf(refused->names + used, sizeof(refused->names) - used, "%s%s", 0 == used ? "" : ", ", host);
    } else if ('.' != refused->names[used - 1]) {
        strcat(refused->names, " ...");
    }
}

static void show_peers(mpicrypt_report_t *report, const opal_crypt_local_t *local, const refused_t *refused,
                       int known)
{
    char detail[1280];

    if (refused->count > 0) {
        snprintf(detail, sizeof(detail), "refused: %s: %s", refused->names, reason(&refused->first));
        mpicrypt_report_why(report, MPICRYPT_FOUND_FAIL, "peers", MPICRYPT_CORE_HELP, refused->first.topic, detail);
        return;
    }
    bool all = known == mpicrypt_mpi_size - 1;
    mpicrypt_report_add(report, all ? MPICRYPT_FOUND_OK : MPICRYPT_FOUND_NOTE, "peers",
                        all ? "" : "The others have no key: see their own findings.", "%d of %d authenticated by %s",
                        known, mpicrypt_mpi_size - 1,
                        opal_crypt_auth_name(opal_crypt_local_auth(local)));
}

static void check_peers(mpicrypt_report_t *report, const opal_crypt_local_t *local)
{
    enum { HOST = sizeof(report->host) };
    int *bytes = mpicrypt_mpi_memory((size_t) mpicrypt_mpi_size * sizeof(*bytes)), known = 0;
    char *hosts = mpicrypt_mpi_memory((size_t) mpicrypt_mpi_size * HOST);
    uint8_t *records = gather_records(local, bytes);
    opal_crypt_why_t why = {0};
    refused_t refused = {.count = 0};

    MPI_Allgather(report->host, HOST, MPI_CHAR, hosts, HOST, MPI_CHAR, MPI_COMM_WORLD);
    for (int rank = 0; rank < mpicrypt_mpi_size && NULL != local; ++rank) {
        if (rank == mpicrypt_mpi_rank || 0 == bytes[rank]) {
            continue;
        }
        if (know(local, records + (size_t) rank * OPAL_CRYPT_RECORD_MAX, bytes[rank], rank, &why)) {
            ++known;
        } else {
            refuse(&refused, hosts + (size_t) rank * HOST, &why);
        }
    }
    if (NULL != local) {
        show_peers(report, local, &refused, known);
    }
    free(records);
    free(hosts);
    free(bytes);
}

void mpicrypt_mpi_print_reports(const mpicrypt_report_t *mine)
{
    mpicrypt_report_t *report = mpicrypt_mpi_memory(sizeof(*report));

    if (0 != mpicrypt_mpi_rank) {
        MPI_Send(mine, (int) sizeof(*mine), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    } else {
        fwrite(mine->text, 1, mine->used, stdout);
        for (int rank = 1; rank < mpicrypt_mpi_size; ++rank) {
            MPI_Recv(report, (int) sizeof(*report), MPI_BYTE, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            fwrite(report->text, 1, report->used, stdout);
        }
    }
    free(report);
}

int mpicrypt_mpi_meet_verb(void)
{
    static mpicrypt_report_t report, unseen;
    int rc = mpicrypt_check_open();

    if (MPICRYPT_OK != rc) {
        mpicrypt_mpi_abort(rc, "the parameters of this node cannot be read");
    }
    mpicrypt_report_begin(&report);
    mpicrypt_report_begin(&unseen);     /* `check` has shown what this would */
    opal_crypt_local_t *local = mpicrypt_check_keys(&unseen, (uint32_t) mpicrypt_mpi_rank);
    check_peers(&report, local);
    mpicrypt_report_end(&report);
    mpicrypt_mpi_print_reports(&report);
    if (NULL != local) {
        opal_crypt_local_destroy(local);
    }
    mpicrypt_check_close();
    return MPICRYPT_OK;
}
