/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * cells TABLE SECTION [part=K parts=N] [one=CELL] [all-bits] [no-local]
 *
 * Runs the cells of a table of attacks, under pml/tamper between pml/crypt and
 * ob1 and crypt_on_auth_failure=error; with MPI_THREAD_MULTIPLE if CELLS_THREADS
 * is in the environment.  Receives end in one of
 *
 *     0 1 2 ...   with the message of that number, every byte of it
 *     E           with our error class, through the communicator's handler, and
 *                 nothing of any message in the buffer
 *     W           not: it waits
 *     C           with other bytes than any message has
 *
 * A receive that should end and does not within WATCHDOG seconds is a hang.  no-local: without the
 * rows whose frames are plain within a node.
 */
#include "cells.h"

#include <signal.h>
#include <unistd.h>

enum { WATCHDOG = 100, POISON = 0xa7, TARGETS = 2 };
#define PATIENCE 0.2        /* seconds, for what should wait */

static MPI_Comm control, targets[TARGETS];
static MPI_T_cvar_handle plan_handle;
static const cell_t *volatile running;
static int handler_calls, failures;
static MPI_Errhandler handler;

static void on_alarm(int sig)
{
    static const char text[] = "watchdog: a cell hangs: ";
    (void) sig;
    if (write(2, text, sizeof(text) - 1) < 0 || write(2, running->row, strlen(running->row)) < 0
        || write(2, " | ", 3) < 0 || write(2, running->plans[2], strlen(running->plans[2])) < 0 || write(2, "\n", 1) < 0) {
        _exit(98);
    }
    _exit(99);
}

static void set_plan(const char *plan)
{
    char text[CELL_TEXT];
    snprintf(text, sizeof(text), "%s", plan);
    MT_CHECK(MPI_SUCCESS == MPI_T_cvar_write(plan_handle, text), "MPI_T_cvar_write");
}

static void count_calls(MPI_Comm *comm, int *code, ...)
{
    (void) comm;
    (void) code;
    handler_calls++;
}

static void set_up(void)
{
    int given, index, count;
    char name[16];
    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &control));
    MT_MPI(MPI_Comm_create_errhandler(count_calls, &handler));
    for (int i = 0; i < TARGETS; i++) {
        MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &targets[i]));
        snprintf(name, sizeof(name), "target%d", i);
        MT_MPI(MPI_Comm_set_name(targets[i], name));
        MT_MPI(MPI_Comm_set_errhandler(targets[i], handler));
    }
    MT_CHECK(MPI_SUCCESS == MPI_T_init_thread(MPI_THREAD_SINGLE, &given), "MPI_T_init_thread");
    MT_CHECK(MPI_SUCCESS == MPI_T_cvar_get_index("pml_tamper_plan", &index), "pml/tamper is not there");
    MT_CHECK(MPI_SUCCESS == MPI_T_cvar_handle_alloc(index, NULL, &plan_handle, &count), "MPI_T_cvar_handle_alloc");
}

/* ---- one cell ---- */

static uint64_t key(const cell_t *cell, int message) { return mt_key(cell->number, message, 1, 1); }

/* How a receive that completed with this code ended. */
static char end_of(const cell_t *cell, const part_t *receive, const mt_buf_t *buf, int code, const MPI_Status *status)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, n;
    if (MPI_SUCCESS != code) {
        MT_MPI(MPI_Error_string(code, text, &length));
        if (NULL == strstr(text, "MPI_ERR_CRYPT")) {
            return '?';
        }
        for (size_t i = 0; i < buf->n; i++) {
            if (0 != buf->p[i] && POISON != buf->p[i]) {
                return '!';             /* something of it was left */
            }
        }
        return 'E';
    }
    MT_MPI(MPI_Get_count(status, MPI_BYTE, &n));
    for (int m = 0; m < cell->sends_count; m++) {
        const part_t *sent = &cell->sends[m];
        if (n == (int) cell->bytes && n == (int) mt_differs(buf->p, cell->bytes, key(cell, m))) {
            MT_CHECK(status->MPI_SOURCE == sent->from && status->MPI_TAG == sent->tag && receive->comm == sent->comm,
                     "%s | message %d with source %d, tag %d", cell->row, m, status->MPI_SOURCE, status->MPI_TAG);
            return (char) ('0' + m);
        }
    }
    return 'C';
}

typedef struct running_t {
    MPI_Request sends[CELL_PARTS], receives[CELL_PARTS];
    mt_buf_t buf[CELL_PARTS];
    unsigned char *out[CELL_PARTS];
    char ends[CELL_PARTS];
} running_t;

/* Any kind of probe; a code of ours is the end of the receive that would follow it. */
static int probe_now(const char *how, const part_t *r, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    int rc = MPI_SUCCESS, found = 0;
    if (0 == strcmp(how, "probe")) {
        return MPI_Probe(r->from, r->tag, comm, status);
    }
    if (0 == strcmp(how, "mprobe")) {
        return MPI_Mprobe(r->from, r->tag, comm, message, status);
    }
    MT_CHECK(0 == strcmp(how, "iprobe") || 0 == strcmp(how, "improbe"), "%s: how is that received?", how);
    while (MPI_SUCCESS == rc && !found) {
        rc = 0 == strcmp(how, "iprobe") ? MPI_Iprobe(r->from, r->tag, comm, &found, status)
                                        : MPI_Improbe(r->from, r->tag, comm, &found, message, status);
    }
    return rc;
}

/* A receive that does not return before it ended. */
static void receive_now(const cell_t *cell, const part_t *r, const mt_buf_t *buf, char *end)
{
    MPI_Comm comm = targets[r->comm];
    MPI_Status status;
    MPI_Message message;
    int rc, n = (int) buf->n;
    if (0 == strcmp(cell->how, "recv")) {
        rc = MPI_Recv(buf->p, n, MPI_BYTE, r->from, r->tag, comm, &status);
    } else {
        rc = probe_now(cell->how, r, comm, &message, &status);
        if (MPI_SUCCESS == rc && NULL == strchr(cell->how, 'm')) {
            rc = MPI_Recv(buf->p, n, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm, &status);
        } else if (MPI_SUCCESS == rc) {
            rc = MPI_Mrecv(buf->p, n, MPI_BYTE, &message, &status);
        }
    }
    *end = end_of(cell, r, buf, rc, &status);
}

static void begin(const cell_t *cell, running_t *run)
{
    bool at_once = 0 == strcmp(cell->how, "irecv");
    for (int i = 0; i < cell->receives_count; i++) {
        const part_t *r = &cell->receives[i];
        run->receives[i] = MPI_REQUEST_NULL;
        run->ends[i] = '-';
        if (r->to == mt_rank) {
            /* Room for more, so that a longer message would be seen. */
            mt_buf_new(&run->buf[i], cell->bytes + 100);
            run->ends[i] = 'W';
            if (at_once) {
                MT_MPI(MPI_Irecv(run->buf[i].p, (int) run->buf[i].n, MPI_BYTE, r->from, r->tag, targets[r->comm],
                                 &run->receives[i]));
            }
        }
    }
    for (int m = 0; m < cell->sends_count; m++) {
        const part_t *s = &cell->sends[m];
        run->sends[m] = MPI_REQUEST_NULL;
        run->out[m] = NULL;
        if (s->from == mt_rank) {
            run->out[m] = malloc(cell->bytes + 1);
            mt_fill(run->out[m], cell->bytes, key(cell, m));
            MT_MPI(MPI_Isend(run->out[m], (int) cell->bytes, MPI_BYTE, s->to, s->tag, targets[s->comm], &run->sends[m]));
        }
    }
    for (int i = 0; i < cell->receives_count && !at_once; i++) {
        if (cell->receives[i].to == mt_rank) {
            receive_now(cell, &cell->receives[i], &run->buf[i], &run->ends[i]);
        }
    }
}

/* Until everything has ended, or nothing that should end is left and patience is over. */
static void carry_on(const cell_t *cell, running_t *run, const char *expected)
{
    double since = MPI_Wtime();
    for (bool open = true, may_end = false; open && !(may_end && MPI_Wtime() - since > PATIENCE);) {
        open = false;
        may_end = true;
        for (int i = 0; i < cell->receives_count; i++) {
            MPI_Status status;
            int done;
            if (MPI_REQUEST_NULL != run->receives[i]) {
                int rc = MPI_Test(&run->receives[i], &done, &status);
                if (done || MPI_SUCCESS != rc) {
                    run->ends[i] = end_of(cell, &cell->receives[i], &run->buf[i], rc, &status);
                    run->receives[i] = MPI_REQUEST_NULL;
                } else {
                    open = true;
                    may_end = may_end && 'W' == expected[i];
                }
            }
        }
        for (int m = 0; m < cell->sends_count; m++) {
            int done;
            if (MPI_REQUEST_NULL != run->sends[m]) {
                MT_MPI(MPI_Test(&run->sends[m], &done, MPI_STATUS_IGNORE));
                open = open || !done;
                may_end = may_end && (done || cell->stuck || NULL != strchr(expected, 'W'));
            }
        }
    }
}

static void compare(const cell_t *cell, const running_t *run, const char *expected)
{
    for (int i = 0; i < cell->receives_count; i++) {
        if (cell->receives[i].to == mt_rank && run->ends[i] != expected[i]) {
            fprintf(stderr, "cell %d, rank %d, receive %d: ended %c, expected %c (%s)\n    %s\n    plans: %s | %s | %s | %s\n",
                    cell->number, mt_rank, i, run->ends[i], expected[i], expected, cell->row, cell->plans[0],
                    cell->plans[1], cell->plans[2], cell->plans[3]);
            failures++;
        }
    }
}

static void end(const cell_t *cell, running_t *run)
{
    int errors = 0;
    for (int i = 0; i < cell->receives_count; i++) {
        if (MPI_REQUEST_NULL != run->receives[i]) {
            MT_MPI(MPI_Cancel(&run->receives[i]));
            MT_MPI(MPI_Wait(&run->receives[i], MPI_STATUS_IGNORE));
        }
        if (cell->receives[i].to == mt_rank) {
            errors += 'E' == run->ends[i];
            mt_buf_free(&run->buf[i]);
        }
    }
    if (handler_calls != errors) {
        fprintf(stderr, "cell %d, rank %d: %d errors, but the handler was called %d times\n    %s\n", cell->number, mt_rank,
                errors, handler_calls, cell->row);
        failures++;
    }
    handler_calls = 0;
    for (int m = 0; m < cell->sends_count; m++) {
        if (MPI_REQUEST_NULL != run->sends[m]) {
            MT_MPI(MPI_Request_free(&run->sends[m]));   /* its buffer stays */
        } else {
            free(run->out[m]);
        }
    }
}

static void run_cell(const cell_t *cell)
{
    running_t run;
    running = cell;
    alarm(WATCHDOG);
    set_plan(mt_rank < 4 ? cell->plans[mt_rank] : "");
    MT_MPI(MPI_Barrier(control));
    begin(cell, &run);
    carry_on(cell, &run, cell->ends);
    compare(cell, &run, cell->ends);
    if ('\0' != cell->later[0]) {
        char release[CELL_TEXT];
        MT_MPI(MPI_Barrier(control));
        snprintf(release, sizeof(release), "%d any 0 0 release", cell->number);
        set_plan(release);
        MT_MPI(MPI_Barrier(control));   /* any message makes the attacker look at his plan */
        carry_on(cell, &run, cell->later);
        compare(cell, &run, cell->later);
    }
    MT_MPI(MPI_Barrier(control));
    set_plan("");
    end(cell, &run);
    MT_MPI(MPI_Barrier(control));
}

int main(int argc, char **argv)
{
    int count, part, parts, only, done = 0, all = 0;
    bool sealed_only;
    const char *row = "";
    cell_t *cells;
    mt_start(&argc, &argv, NULL == getenv("CELLS_THREADS") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE);
    MT_CHECK(argc > 2 && 4 == mt_size, "cells TABLE SECTION, by 4 ranks");
    cells = cells_read(argv[1], argv[2], mt_flag("all-bits"), &count);
    MT_CHECK(count > 0, "no cells in section %s of %s", argv[2], argv[1]);
    signal(SIGALRM, on_alarm);
    set_up();
    part = (int) mt_arg("part", 0);
    parts = (int) mt_arg("parts", 1);
    only = (int) mt_arg("one", -1);
    sealed_only = mt_flag("no-local");
    for (int i = 0; i < count; i++) {
        if (sealed_only && (NULL != strstr(cells[i].row, "local") || NULL != strstr(cells[i].row, "body"))) {
            continue;
        }
        if (only >= 0 ? i == only : i % parts == part) {
            run_cell(&cells[i]);
            done++;
        }
        if (0 == mt_rank && 0 != strcmp(row, cells[i].row) && 0 == part && only < 0) {
            printf("%s\n", row = cells[i].row);
        }
    }
    MT_MPI(MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, control));
    if (0 == mt_rank) {
        printf("%s: %d of %d cells, %d failures\n", argv[2], done, count, all);
    }
    free(cells);
    for (int i = 0; i < TARGETS; i++) {
        MT_MPI(MPI_Comm_free(&targets[i]));
    }
    MT_MPI(MPI_Comm_free(&control));
    return mt_end() || all > 0;
}
