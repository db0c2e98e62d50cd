/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * machine [seed=N | file=PATH] [from=N] [to=N] [seconds=N] [threads=N] [ucx] [at=PATH]
 * machine print seed=N step=N [ucx]
 *
 * A fuzzer with a state: step after step of machine.h in one job of 4 ranks on two nodes,
 * drawn from a seed or read from a file.  Rank 0 receives, by one thread or several.
 * After what attackers touch, every step sends messages that they do not, so that every
 * receive ends, and drains what is left; each of these has to arrive.
 *
 * A hang is a step that takes LIMIT seconds of processor time, not of the clock: a
 * loaded machine is no reason.  `at` is a file that holds the number of the step that
 * runs, for whoever finds the job dead.
 */
#include "machine.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

/* A process ends its job after 1,000 failures, of which a receive may have many. */
enum { LIMIT = 60, MOST_FAILURES = 800 };

MPI_Comm control, targets[COMMS];
static char running[TEXT + 64];
static int threads;
static bool ucx;
static tally_t tally;

/* ---- when it goes wrong ---- */

static void on_limit(int sig)
{
    static const char text[] = "machine: hangs in this step:\n";
    (void) sig;
    if (write(2, text, sizeof(text) - 1) < 0 || write(2, running, strlen(running)) < 0) {
        _exit(98);
    }
    _exit(99);
}

static void set_limit(void)
{
    const struct itimerval limit = {.it_value = {.tv_sec = (threads > 1 ? threads : 1) * LIMIT}};
    setitimer(ITIMER_PROF, &limit, NULL);
}

static void must(const char *wrong, int receive)
{
    MT_CHECK(NULL == wrong, "receive %d: %s, in this step:\n%s", receive, wrong, running);
}

/* ---- rank 0 ---- */

/* What no receive took, until every sender has said that there is no more. */
static void drain(const step_t *step, expected_t *list, int count, int *weak, bool in_order)
{
    size_t room = 0;

    for (int i = 0; i < count; i++) {
        room = list[i].bytes > room ? list[i].bytes : room;
    }
    for (int comm = 0; comm < COMMS; comm++) {
        int senders = 0;
        for (int rank = 1; rank < RANKS; rank++) {
            senders += sends(step, rank);
        }
        while (senders > 0) {
            receive_t how = {.way = RECV, .comm = comm, .source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
            landing_t l;
            landing_open(&l, &how, room + 64);
            l.rc = MPI_Recv(l.at, l.count, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, targets[comm], &l.status);
            if (MPI_SUCCESS == l.rc && LAST_TAG == l.status.MPI_TAG) {
                senders--;
            } else {
                must(check(&l, list, count, in_order, weak, &tally), -1);
            }
            landing_close(&l);
        }
    }
}

static void receiver(const step_t *step, expected_t *list, int count)
{
    landing_t landings[RECEIVES];
    int weak[EXPECTED] = {0};

    receive_all(step, threads, landings);
    for (int rank = 1; rank < RANKS; rank++) {  /* no receive of the step may take the last messages */
        if (sends(step, rank)) {
            MT_MPI(MPI_Send(NULL, 0, MPI_BYTE, rank, LAST_TAG, control));
        }
    }
    for (int i = 0; i < step->receives_count; i++) {
        must(check(&landings[i], list, count, 1 == threads, weak, &tally), i);
        landing_close(&landings[i]);
    }
    drain(step, list, count, weak, 1 == threads);
    must(check_all(list, count, weak), -1);
}

/* ---- steps ---- */

static unsigned long long failures(void)
{
    static MPI_T_pvar_session session;
    static MPI_T_pvar_handle handle;
    static bool ready;
    unsigned long long value;
    int provided, index, elements;

    if (!ready) {
        MT_MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
        MT_MPI(MPI_T_pvar_session_create(&session));
        MT_MPI(MPI_T_pvar_get_index("crypt_authentication_failures", MPI_T_PVAR_CLASS_COUNTER, &index));
        MT_MPI(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &elements));
        ready = true;
    }
    MT_MPI(MPI_T_pvar_read(session, handle, &value));
    return value;
}

/* True: go on.  What rank 0 has received for certain ends at its sender, too. */
static bool run_step(const step_t *step, long number, double until)
{
    MPI_Request sent[EXPECTED];
    void *buffers[EXPECTED];
    unsigned char seen[EXPECTED + 1] = {0};
    expected_t *list;
    int n = snprintf(running, sizeof(running), "# step %ld\n", number), count = expect(step, number, &list);

    step_print(step, running + n);
    set_limit();
    if (0 == mt_rank) {
        receiver(step, list, count);
        for (int i = 0; i < count; i++) {
            seen[i] = list[i].seen;
        }
        seen[count] = failures() < MOST_FAILURES && MPI_Wtime() < until;
    } else if (sends(step, mt_rank)) {
        send_all(step, list, count, sent, buffers);
    }
    MT_MPI(MPI_Bcast(seen, count + 1, MPI_BYTE, 0, control));
    if (0 != mt_rank) {
        send_end(list, count, sent, buffers, seen);
    }
    free(list);
    return seen[count];
}

/* Of a receive that is cancelled while another thread makes progress, ob1 may lose the message, and
 * later ones (docs/troubleshooting.rst), and UCX aborts: by several threads, nothing is cancelled. */
static void cancel_nothing(step_t *step)
{
    for (int i = 0; i < step->receives_count; i++) {
        receive_t *r = &step->receives[i];
        r->way = CANCEL == r->way ? IRECV : r->way;
    }
}

static void set_up(void)
{
    char name[16];

    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &control));
    for (int i = 0; i < COMMS; i++) {
        MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &targets[i]));
        snprintf(name, sizeof(name), "target%d", i);
        MT_MPI(MPI_Comm_set_name(targets[i], name));
        MT_MPI(MPI_Comm_set_errhandler(targets[i], MPI_ERRORS_RETURN));
    }
    plan_open();
}

static void tear_down(void)
{
    send_forget();
    for (int i = 0; i < COMMS; i++) {
        MT_MPI(MPI_Comm_free(&targets[i]));
    }
    MT_MPI(MPI_Comm_free(&control));
}

static const char *text_arg(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++) {
        if (0 == strncmp(argv[i], name, strlen(name)) && '=' == argv[i][strlen(name)]) {
            return argv[i] + strlen(name) + 1;
        }
    }
    return NULL;
}

static void say_where(const char *path, long number)
{
    FILE *f = NULL == path || 0 != mt_rank ? NULL : fopen(path, "w");

    if (NULL != f) {
        fprintf(f, "%ld\n", number);
        fclose(f);
    }
}

/* Also into PATH.ends: mpirun of Open MPI 5.0 may lose the last lines that a job prints. */
static void say_ends(const char *path, long steps)
{
    char text[160], name[1024];
    FILE *f;

    if (0 != mt_rank) {
        return;
    }
    snprintf(text, sizeof(text), "machine: %ld steps; %ld receives exact, %ld truncated, %ld refused, %ld cancelled\n", steps,
             tally.exact, tally.cut, tally.refused, tally.cancelled);
    fputs(text, stdout);
    snprintf(name, sizeof(name), "%s.ends", NULL == path ? "" : path);
    f = NULL == path ? NULL : fopen(name, "w");
    if (NULL != f) {
        fputs(text, f);
        fclose(f);
    }
}

static int print(int argc, char **argv)
{
    char text[TEXT];
    step_t step;

    step_draw(&step, strtoul(text_arg(argc, argv, "seed"), NULL, 10), atol(text_arg(argc, argv, "step")),
              argc > 4 && 0 == strcmp(argv[4], "ucx"));
    step_print(&step, text);
    printf("%s", text);
    return 0;
}

int main(int argc, char **argv)
{
    const char *path = text_arg(argc, argv, "file"), *at = text_arg(argc, argv, "at");
    FILE *file = NULL;
    bool go_on = true;
    long number, to, seed;
    double until;
    step_t step;

    if (argc >= 4 && 0 == strcmp(argv[1], "print")) {
        return print(argc, argv);
    }
    threads = NULL == text_arg(argc, argv, "threads") ? 1 : atoi(text_arg(argc, argv, "threads"));
    MT_CHECK(threads >= 1 && threads <= THREADS, "threads: 1 to %d", THREADS);
    mt_start(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    MT_CHECK(RANKS == mt_size, "machine: by 4 ranks");
    alarm(0);                   /* the limit is of processor time */
    signal(SIGPROF, on_limit);
    set_up();
    ucx = mt_flag("ucx");
    seed = mt_arg("seed", 1);
    number = mt_arg("from", 0);
    to = mt_arg("to", 1000000000);
    until = MPI_Wtime() + (double) mt_arg("seconds", 86400);
    if (NULL != path) {
        file = fopen(path, "r");
        MT_CHECK(NULL != file, "cannot read %s", path);
    }
    while (go_on && number <= to) {
        if (NULL == file) {
            step_draw(&step, (uint64_t) seed, number, ucx);
        } else if (!step_read(file, &step)) {
            break;
        }
        if (threads > 1) {
            cancel_nothing(&step);
        }
        say_where(at, number);
        go_on = run_step(&step, number++, until);
    }
    say_where(at, number);
    say_ends(at, number - mt_arg("from", 0));
    tear_down();
    return mt_end();
}
