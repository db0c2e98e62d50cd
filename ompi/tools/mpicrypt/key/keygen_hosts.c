/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt keygen, key push: install a key on many hosts, some at a time.
 *
 *     start (the key goes into the child's standard input)  ->  a signal: a child ended,
 *     or we are to end  ->  reap  ->  report, in the order of the list  ->  summary
 *
 * Signals are delivered at one place only (ppoll), so that they interrupt no other code.
 * They come through a pipe: a library that we are linked with may have a thread of its own,
 * which takes a signal in our place, and one without a handler (sigwait) is lost there.  A
 * child's output is kept, and shown if it failed.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "keygen.h"

enum { SAID_BYTES = 2000, END_SECONDS = 5 };

static const int signals[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof(signals) / sizeof(signals[0]) };

typedef enum { WAITS, RUNS, INSTALLED, REFUSED, FAILED, BROKEN_OFF } state_t;

typedef struct {
    const char *name;
    pid_t child;
    int said;                   /* what it wrote, -1: nothing to read */
    int status;                 /* exit status; -1: a signal, or it could not be started */
    bool cut;                   /* it did not take all of the key */
    state_t state;
} host_t;

typedef struct {
    const mpicrypt_keygen_job_t *job;
    host_t *host;
    int count, started, running, ended, shown;
    int caught;                 /* the signal by which we are to end, or 0 */
    struct sigaction action_before[SIGNALS];
    sigset_t before, waiting;   /* masks */
} run_t;

/* ---- signals ---- */

static int noted[2] = {-1, -1};         /* a pipe: their numbers */

static void note(int number)
{
    const int error = errno;
    const unsigned char byte = (unsigned char) number;

    if (write(noted[1], &byte, 1) < 0) {
        /* The pipe is full of signals, of which one is enough. */
    }
    errno = error;
}

static bool hold_signals(run_t *run)
{
    const struct sigaction action = {.sa_handler = note};
    sigset_t held;

    if (0 != pipe2(noted, O_CLOEXEC | O_NONBLOCK)) {
        return false;
    }
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&held);
    for (int i = 0; i < SIGNALS; ++i) {
        sigaddset(&held, signals[i]);
    }
    sigprocmask(SIG_BLOCK, &held, &run->before);
    run->waiting = run->before;
    for (int i = 0; i < SIGNALS; ++i) {
        sigdelset(&run->waiting, signals[i]);
        sigaction(signals[i], NULL, &run->action_before[i]);
        if (SIG_IGN != run->action_before[i].sa_handler) {      /* nohup */
            sigaction(signals[i], &action, NULL);
        }
    }
    return true;
}

static void release_signals(const run_t *run)
{
    for (int i = 0; i < SIGNALS; ++i) {
        sigaction(signals[i], &run->action_before[i], NULL);
    }
    sigprocmask(SIG_SETMASK, &run->before, NULL);
}

/* ---- children ---- */

static void become(const run_t *run, const host_t *host, int input)
{
    if (dup2(input, STDIN_FILENO) < 0 || dup2(host->said, STDOUT_FILENO) < 0 || dup2(host->said, STDERR_FILENO) < 0) {
        _exit(126);
    }
    signal(SIGPIPE, SIG_DFL);
    release_signals(run);
    execlp(run->job->rsh, run->job->rsh, host->name, run->job->command, (char *) NULL);
    dprintf(STDERR_FILENO, "%s: %s\n", run->job->rsh, strerror(errno));
    _exit(127);
}

/* Make the pipe take all of the input at once, so that writing does not wait for the program. */
static bool pipe_holds(int pipe_end, size_t bytes)
{
    int capacity = fcntl(pipe_end, F_GETPIPE_SZ);

    return capacity >= 0 && ((size_t) capacity >= bytes || fcntl(pipe_end, F_SETPIPE_SZ, (int) bytes) >= (int) bytes);
}

static void start(run_t *run, host_t *host)
{
    int ends[2] = {-1, -1};

    host->status = -1;
    host->state = FAILED;
    host->said = memfd_create("mpicrypt", MFD_CLOEXEC);
    if (host->said >= 0 && 0 == pipe2(ends, O_CLOEXEC) && pipe_holds(ends[1], run->job->input_bytes)) {
        fflush(NULL);
        host->child = fork();
        if (0 == host->child) {
            become(run, host, ends[0]);
        }
        close(ends[0]);
        ends[0] = -1;
        if (host->child > 0) {
            host->cut = (ssize_t) run->job->input_bytes != write(ends[1], run->job->input, run->job->input_bytes);
            host->state = RUNS;
            ++run->running;
        }
    }
    const int error = errno;
    for (int i = 0; i < 2; ++i) {
        if (ends[i] >= 0) {
            close(ends[i]);
        }
    }
    if (RUNS != host->state) {
        dprintf(host->said, "it cannot be started: %s\n", strerror(error));
        ++run->ended;
    }
}

static state_t outcome(const run_t *run, const host_t *host)
{
    if (0 == host->status && !host->cut) {
        return INSTALLED;
    }
    return NULL != run->job->refusal(host->status) ? REFUSED
           : 0 != run->caught ? BROKEN_OFF : FAILED;
}

static void reap(run_t *run)
{
    int status;

    for (int i = 0; i < run->started; ++i) {
        host_t *host = &run->host[i];
        if (RUNS == host->state && host->child == waitpid(host->child, &status, WNOHANG)) {
            host->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
            host->state = outcome(run, host);
            if (INSTALLED == host->state) {     /* it may have to wait for a slow host before it is shown */
                close(host->said);
                host->said = -1;
            }
            --run->running;
            ++run->ended;
        }
    }
}

static void kill_all(const run_t *run, int signal_number)
{
    for (int i = 0; i < run->started; ++i) {
        if (RUNS == run->host[i].state) {
            (void) kill(run->host[i].child, signal_number);
        }
    }
}

/* Wait until a child has ended.  On the first signal to us, children are asked to end, then killed. */
static void take_signal(run_t *run)
{
    const struct timespec end = {.tv_sec = END_SECONDS};
    struct pollfd signal_pipe = {.fd = noted[0], .events = POLLIN};
    unsigned char number;

    if (0 == ppoll(&signal_pipe, 1, 0 == run->caught ? NULL : &end, &run->waiting)) {
        kill_all(run, SIGKILL);
    }
    while (1 == read(noted[0], &number, 1)) {   /* before reap: a child may have ended by the signal that we got, too */
        if (SIGCHLD != number) {
            kill_all(run, 0 == run->caught ? SIGTERM : SIGKILL);
            run->caught = number;
        }
    }
    reap(run);
}

/* ---- results ---- */

/* A program may write anything. */
static void show_said(const host_t *host)
{
    char text[SAID_BYTES];
    ssize_t bytes = host->said < 0 ? -1 : pread(host->said, text, sizeof(text), 0);
    bool begins = true;

    for (ssize_t i = 0; i < bytes; ++i) {
        if ('\r' == text[i] || ('\n' == text[i] && begins)) {
            continue;
        }
        if (begins) {
            fputs("    ", stderr);
        }
        begins = '\n' == text[i];
        fputc(begins || isprint((unsigned char) text[i]) ? text[i] : '?', stderr);
    }
    if (!begins) {
        fputc('\n', stderr);
    }
}

static void show(const run_t *run, const host_t *host)
{
    if (INSTALLED == host->state) {
        printf("%s: installed\n", host->name);
        fflush(stdout);
    } else if (REFUSED == host->state) {
        mpicrypt_error(MPICRYPT_FAILED, "%s: %s", host->name, run->job->refusal(host->status));
    } else if (BROKEN_OFF == host->state) {
        mpicrypt_error(MPICRYPT_FAILED, "%s: interrupted; it may have the new key or not", host->name);
    } else if (127 == host->status) {
        mpicrypt_error(MPICRYPT_FAILED, "%s: %s, or what it should run there, cannot be run", host->name, run->job->rsh);
        show_said(host);
    } else if (host->status < 0) {
        mpicrypt_error(MPICRYPT_FAILED, "%s: the key was not installed (%s did not run to its end)", host->name, run->job->rsh);
        show_said(host);
    } else {
        mpicrypt_error(MPICRYPT_FAILED, "%s: the key was not installed (%s ended with status %d)", host->name, run->job->rsh,
                       host->status);
        show_said(host);
    }
}

static void show_those_that_ended(run_t *run)
{
    if (run->shown < run->started && WAITS != run->host[run->shown].state && RUNS != run->host[run->shown].state) {
        mpicrypt_progress_end();
    }
    for (; run->shown < run->started && RUNS != run->host[run->shown].state; ++run->shown) {
        host_t *host = &run->host[run->shown];
        show(run, host);
        if (host->said >= 0) {
            close(host->said);
            host->said = -1;
        }
    }
    if (run->shown < run->count) {
        mpicrypt_progress(run->host[run->shown].name, (size_t) run->ended, (size_t) run->count);
    }
}

static int count_of(const run_t *run, state_t state)
{
    int count = 0;

    for (int i = 0; i < run->count; ++i) {
        count += state == run->host[i].state;
    }
    return count;
}

static void name_those(const run_t *run, state_t state, const char *what)
{
    const char *comma = "";

    if (0 == count_of(run, state)) {
        return;
    }
    fprintf(stderr, "  %s (%d): ", what, count_of(run, state));
    for (int i = 0; i < run->count; ++i) {
        if (state == run->host[i].state) {
            fprintf(stderr, "%s%s", comma, run->host[i].name);
            comma = ",";
        }
    }
    fputc('\n', stderr);
}

static int summary(const run_t *run)
{
    int installed = count_of(run, INSTALLED);

    if (installed == run->count) {
        printf("%d host%s and this node have the key\n", installed, 1 == installed ? "" : "s");
        return MPICRYPT_OK;
    }
    fflush(stdout);
    fprintf(stderr, "mpicrypt %s: %d of %d hosts %s the key of this node\n", run->job->verb, installed, run->count,
            1 == installed ? "has" : "have");
    name_those(run, REFUSED, "refused, as they were");
    name_those(run, FAILED, "failed, most likely as they were");
    name_those(run, BROKEN_OFF, "interrupted, not known");
    name_those(run, WAITS, "not tried, as they were");
    fprintf(stderr, "  %s\n", run->job->advice);
    return MPICRYPT_FAILED;
}

/* ---- all of it ---- */

int mpicrypt_keygen_install(const mpicrypt_keygen_job_t *job)
{
    run_t run = {.job = job, .count = job->hosts->count, .host = calloc((size_t) job->hosts->count, sizeof(host_t))};

    if (NULL == run.host) {
        return mpicrypt_error(MPICRYPT_FAILED, "out of memory");
    }
    for (int i = 0; i < run.count; ++i) {
        run.host[i] = (host_t){.name = job->hosts->value[i], .said = -1};
    }
    if (!hold_signals(&run)) {
        free(run.host);
        return mpicrypt_error(MPICRYPT_FAILED, "no pipe for signals: %s", strerror(errno));
    }
    while (run.ended < run.count && (0 == run.caught || run.running > 0)) {
        while (0 == run.caught && run.started < run.count && (size_t) run.running < job->at_once) {
            start(&run, &run.host[run.started++]);
        }
        if (run.running > 0) {
            take_signal(&run);
        }
        show_those_that_ended(&run);
    }
    mpicrypt_progress_end();
    int rc = summary(&run);

    free(run.host);
    fflush(NULL);
    release_signals(&run);
    if (0 != run.caught) {
        signal(run.caught, SIG_DFL);
        raise(run.caught);
    }
    return rc;
}
