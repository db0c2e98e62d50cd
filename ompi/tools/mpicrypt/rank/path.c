/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The verb `path`: the lists of steps are gone through with each node alone, with each node and itself, and with the first and
 * each other node, both ways; then all nodes write at once.  Every process is told every answer, and so all come
 * to the same findings.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "path.h"
#include "rank.h"
#include "ompi/tools/mpicrypt/doctor/check.h"

#include "opal/mca/common/crypt/base/patience.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/secret_file.h"

enum { ANSWER_MS = 10000, ALL_MS = 60000, LIMIT_SECONDS = 180, RACE_ROUNDS = 200, TEXT = 400, HOST = 64 };
enum { STOPPED = MPICRYPT_PATH_ROWS, TEXTS };

static char found[TEXTS][TEXT];         /* by row; empty: nothing wrong was seen */
static uint64_t type, waited;           /* of the file system; until a node read a closed file, in milliseconds */
static int nodes, *leader;              /* the first rank of each node */
static char (*hosts)[HOST];             /* of each rank */
static mpicrypt_path_order_t order;
static int helper;

/* ---- steps ---- */

static bool is_right(int row) { return '\0' == found[row][0]; }

/* A helper that is late is not asked again. */
static mpicrypt_path_answer_t ask_helper(void)
{
    static int ended = MPICRYPT_PATH_GONE;
    mpicrypt_path_answer_t answer = {.seen = 0};
    opal_crypt_patience_t patience = opal_crypt_patience(ANSWER_MS);
    struct pollfd from = {.fd = helper, .events = POLLIN};
    int ready = sizeof(order) == send(helper, &order, sizeof(order), MSG_NOSIGNAL) ? 0 : -1;

    while (0 == ready && 0 < opal_crypt_patience_left(&patience)) {
        ready = poll(&from, 1, 50);
    }
    if (ready <= 0 || sizeof(answer) != recv(helper, &answer, sizeof(answer), 0)) {
        ended = 0 == ready ? MPICRYPT_PATH_LATE : ended;
        answer.seen = ended;
        close(helper);
        helper = -1;
    }
    return answer;
}

/* Is an answer right?  What is wrong first is what a row has. */
static bool judge(const mpicrypt_path_answer_t *answer, const mpicrypt_path_step_t *step, int rank, int other)
{
    const bool late = MPICRYPT_PATH_LATE == answer->seen, stops = late || MPICRYPT_PATH_GONE == answer->seen;
    int row = step->list >= MPICRYPT_PATH_ROWS ? MPICRYPT_PATH_NODES : step->list;
    char wrong[TEXT / 2] = "", text[TEXT] = "";

    if (OMPI_CRYPTMPIO_SEEN_RIGHT == answer->seen) {
        return true;
    }
    if (NULL != step->wrong) {
        snprintf(wrong, sizeof(wrong), step->wrong, hosts[other]);
    }
    if (stops) {
        snprintf(text, TEXT, late ? "%s did not %s within %d seconds" : "%s did not %s: its process ended", hosts[rank], step->what, ANSWER_MS / 1000);
    } else if (OMPI_CRYPTMPIO_SEEN_ERROR == answer->seen) {
        snprintf(text, TEXT, "%s could not %s: %s", hosts[rank], step->what, strerror(answer->error));
    } else {
        snprintf(text, TEXT, "%s %s%s", hosts[rank], MPICRYPT_PATH_WRONG == answer->seen ? "" : OMPI_CRYPTMPIO_SEEN_SIZE == answer->seen
                 ? "read an old size " : "read old data ", wrong);
    }
    row = MPICRYPT_PATH_NODES == row && rank == other ? MPICRYPT_PATH_ONE_NODE : row;
    memcpy(found[STOPPED], stops && is_right(STOPPED) ? text : found[STOPPED], TEXT);
    if (is_right(row) && !(MPICRYPT_PATH_LEFT == row && (stops || rank != leader[0]))) {       /* another does it, or it will */
        memcpy(found[row], text, TEXT);
    }
    return false;
}

/* Up to what is wrong. */
static void go_through(int list, int first, int second)
{
    mpicrypt_path_answer_t answer = {.seen = 0};
    const mpicrypt_path_step_t *step = mpicrypt_path_steps;
    bool right = is_right(STOPPED) || MPICRYPT_PATH_LEFT == list;

    order.pass += 0 == order.index;
    for (order.step = 0; right && NULL != step->take; ++step, ++order.step) {
        if (list == step->list) {
            const int rank = 0 == step->side ? first : second;
            answer = mpicrypt_mpi_rank == rank ? ask_helper() : answer;
            MPI_Bcast(&answer, sizeof(answer), MPI_BYTE, rank, MPI_COMM_WORLD);
            right = judge(&answer, step, rank, 0 == step->side ? second : first);
            type = MPICRYPT_PATH_UNUSABLE == list && right ? answer.value : type;
            waited = MPICRYPT_PATH_READING == list && right && answer.value > waited ? answer.value : waited;
        }
    }
}

static void each_goes_through(int list)
{
    for (order.index = 0; order.index < nodes; ++order.index) {
        go_through(list, leader[order.index], leader[0 == order.index && nodes > 1]);
    }
    order.index = 0;
}

/* ---- all nodes ---- */

static void race_all(void)
{
    mpicrypt_path_answer_t answer = {.seen = 0}, *answers = mpicrypt_mpi_memory((size_t) mpicrypt_mpi_size * sizeof(answer));
    const int racers = nodes < MPICRYPT_PATH_RACERS ? nodes : MPICRYPT_PATH_RACERS;
    uint64_t most = 0, sum = 0;

    each_goes_through(MPICRYPT_PATH_START);
    for (order.step = 0; MPICRYPT_PATH_RACE != mpicrypt_path_steps[order.step].list; ++order.step) {
    }
    order.rounds = 1 + RACE_ROUNDS / racers;
    for (order.index = 0; order.index < racers && is_right(MPICRYPT_PATH_NODES); ++order.index) {
        answer = mpicrypt_mpi_rank == leader[order.index] ? ask_helper() : answer;
    }
    MPI_Allgather(&answer, sizeof(answer), MPI_BYTE, answers, sizeof(answer), MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < racers; ++i) {
        (void) judge(&answers[leader[i]], &mpicrypt_path_steps[order.step], leader[i], leader[0 == i]);
        most = answers[leader[i]].value >> 32 > most ? answers[leader[i]].value >> 32 : most;
        sum += answers[leader[i]].value & UINT32_MAX;
    }
    if (most != sum && is_right(MPICRYPT_PATH_NODES)) {
        snprintf(found[MPICRYPT_PATH_NODES], TEXT, "of %u writes under the lock, by all nodes at once, %u are there", (unsigned) sum, (unsigned) most);
    }
    free(answers);
}

static void test_all(void)
{
    opal_crypt_patience_t patience = opal_crypt_patience(ALL_MS);

    for (int i = 0; i < nodes && is_right(STOPPED) && is_right(MPICRYPT_PATH_UNUSABLE); ++i) {
        int late = 0 == opal_crypt_patience_left(&patience);
        MPI_Bcast(&late, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (late) {
            snprintf(found[STOPPED], TEXT, "%d of %d nodes were tested in %d seconds", i, nodes, ALL_MS / 1000);
        }
        go_through(MPICRYPT_PATH_ONE_WRITER, leader[i], leader[i]);
        for (int way = 0; way < 1 + (i > 0); ++way) {
            go_through(MPICRYPT_PATH_READING, leader[way * i], leader[i - way * i]);
            go_through(MPICRYPT_PATH_NODES, leader[way * i], leader[i - way * i]);
            go_through(MPICRYPT_PATH_ATTRIBUTES, leader[way * i], leader[i - way * i]);
        }
        if (i > 0) {
            go_through(MPICRYPT_PATH_RANGES, leader[0], leader[i]);
            go_through(MPICRYPT_PATH_NODES, leader[i], leader[i]);
        }
    }
    bool right = nodes > 1;
    for (int row = 0; row < TEXTS; ++row) {
        right = right && (is_right(row) || MPICRYPT_PATH_READING == row || MPICRYPT_PATH_ATTRIBUTES == row);
    }
    if (right) {
        race_all();
    }
}

/* ---- the report ---- */

#define SYSTEMS ": \"File systems\" in docs/mpi-io.rst."

static const struct {
    int needs;                          /* another verdict, or itself */
    mpicrypt_found_t state;
    const char *check, *what, *remedy;
} rows[MPICRYPT_PATH_ROWS] = {
    [MPICRYPT_PATH_READING] = {MPICRYPT_PATH_READING, MPICRYPT_FOUND_FAIL, "reading", "reading",
        "Mount it so that a node asks the server again when it opens a file" SYSTEMS},
    [MPICRYPT_PATH_ONE_WRITER] = {MPICRYPT_PATH_ONE_WRITER, MPICRYPT_FOUND_FAIL, "writer", "one writer",
        "Encrypted files cannot be written there" SYSTEMS},
    [MPICRYPT_PATH_ONE_NODE] = {MPICRYPT_PATH_ONE_WRITER, MPICRYPT_FOUND_FAIL, "one-node", "writers on one node",
        "Let one process write a file" SYSTEMS},
    [MPICRYPT_PATH_NODES] = {MPICRYPT_PATH_ONE_NODE, MPICRYPT_FOUND_FAIL, "nodes", "writers on several nodes",
        "Let the processes of one node write a file, and one job at a time; or mount it so that nodes see each other's locks and, "
        "under a lock, each other's writes" SYSTEMS},
    [MPICRYPT_PATH_ATTRIBUTES] = {MPICRYPT_PATH_ATTRIBUTES, MPICRYPT_FOUND_NOTE, "attributes", "maps are in the files alone",
        "If another program overwrites an encrypted file, only a label or fs_crypt_require=1 shows that it was one."},
    [MPICRYPT_PATH_LEFT] = {MPICRYPT_PATH_LEFT, MPICRYPT_FOUND_WARN, "left", "files are left", "Delete .mpicrypt-doctor-* there."},
    [MPICRYPT_PATH_UNUSABLE] = {MPICRYPT_PATH_UNUSABLE, MPICRYPT_FOUND_FAIL, "directory", "nothing was tested",
        "Name a directory that all nodes share, and in which you may make files."}
};

static void report_row(mpicrypt_report_t *report, int row, const char *where)
{
    const bool verdict = row < MPICRYPT_PATH_VERDICTS, others = MPICRYPT_PATH_READING == row || MPICRYPT_PATH_NODES == row;
    char text[TEXT + HOST] = "safe";
    mpicrypt_found_t state = MPICRYPT_FOUND_OK;
    int why = row;

    while (is_right(why) && rows[why].needs != why) {
        why = rows[why].needs;
    }
    if (is_right(why) && (!verdict || !is_right(MPICRYPT_PATH_UNUSABLE))) {
        return;
    } else if (!is_right(why)) {
        snprintf(text, sizeof(text), "%s%s", verdict ? "NOT safe: " : "", found[why]);
        state = rows[row].state;
    } else if (!is_right(STOPPED) || (others && 1 == nodes)) {
        snprintf(text, sizeof(text), "not known: %s", is_right(STOPPED) ? "one node was tested; --mpirun names a launcher" : found[STOPPED]);
        state = is_right(STOPPED) ? MPICRYPT_FOUND_NOTE : MPICRYPT_FOUND_WARN;
    } else if (MPICRYPT_PATH_READING == row && waited > 0) {
        snprintf(text, sizeof(text), "safe, but not at once: %u ms after a file was closed or replaced, or later", (unsigned) waited);
        state = MPICRYPT_FOUND_WARN;
    }
    mpicrypt_report_add(report, state, rows[row].check, state == rows[row].state ? rows[row].remedy : "", "%s: %s: %s", where, rows[row].what, text);
}

/* All report the same: it is a finding of all nodes. */
static void report_all(void)
{
    mpicrypt_report_t *report = mpicrypt_mpi_memory(sizeof(*report));
    const char *name = "";
    char where[TEXT];

    (void) opal_crypt_fs_kind((unsigned long) type, &name);
    snprintf(where, sizeof(where), "%.*s (%s)", TEXT - HOST, mpicrypt_mpi_job.io.directory, name);
    mpicrypt_report_begin(report);
    for (int row = 0; row < MPICRYPT_PATH_ROWS; ++row) {
        report_row(report, row, where);
    }
    mpicrypt_report_end(report);
    mpicrypt_mpi_print_reports(report);
    free(report);
}

void mpicrypt_mpi_path(int socket)
{
    const size_t ranks = (size_t) mpicrypt_mpi_size;
    char host[HOST] = "";

    (void) alarm(LIMIT_SECONDS);
    helper = socket;
    (void) gethostname(host, sizeof(host) - 1);
    hosts = mpicrypt_mpi_memory(ranks * sizeof(*hosts));
    MPI_Allgather(host, HOST, MPI_CHAR, hosts, HOST, MPI_CHAR, MPI_COMM_WORLD);
    leader = mpicrypt_mpi_memory(ranks * sizeof(*leader));
    (void) mpicrypt_mpi_nodes(leader);
    for (int i = 0; i < mpicrypt_mpi_size; ++i) {
        hosts[i][HOST - 1] = '\0';
        if (leader[i] == nodes) {
            leader[nodes++] = i;        /* at or before i */
        }
    }
    opal_crypt_random(&order.number, sizeof(order.number));
    MPI_Bcast(&order.number, sizeof(order.number), MPI_BYTE, 0, MPI_COMM_WORLD);
    each_goes_through(MPICRYPT_PATH_UNUSABLE);
    test_all();
    for (int i = nodes - 1; i >= 0; --i) {
        go_through(MPICRYPT_PATH_LEFT, leader[i], leader[0]);
    }
    report_all();
    free(leader);
    free(hosts);
}
