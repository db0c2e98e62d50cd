/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Processes that meet at run time, by the way named on the command line:
 * "spawn" (MPI_Comm_spawn), "multiple", "connect" (a port between two halves
 * of the world), "name" (the port under a published name), "last" (spawned processes
 * whose first message is their last), "silent" (that end without any), "jobs" (two spawned jobs meet
 * by a port, then by MPI_Comm_join).  Each time messages
 * of all sizes in both directions, wildcards, probes, collectives, a merged
 * communicator, and MPI_Comm_disconnect with a second meeting afterwards.
 *
 * "parents-first" and "children-first": only that side speaks at first.  "brief": nobody says more, and what a process
 * keeps after each meeting is printed, at most kib= KiB and files= descriptors for 100.
 */
#include "mt.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TAG_FIRST = 77, TAG_PORT, CHILDREN = 2 };

static int turn;        /* so that the second meeting is not the first one's echo */

static void talk(MPI_Comm inter, int side)
{
    int rank, far, n_own;
    MPI_Comm merged;
    MPI_Status status;
    mt_buf_t buf;
    MT_MPI(MPI_Comm_rank(inter, &rank));
    MT_MPI(MPI_Comm_size(inter, &n_own));
    MT_MPI(MPI_Comm_remote_size(inter, &far));
    for (int s = 0; s < mt_few_sizes_count; s++) {
        size_t n = mt_few_sizes[s];
        unsigned char *p = malloc((size_t) far * n + 1);
        MPI_Request *req = malloc((size_t) far * sizeof(*req));
        for (int i = 0; i < far; i++) {
            mt_fill(p + (size_t) i * n, n, mt_key(turn, rank * 2 + side, i, s));
            MT_MPI(MPI_Isend(p + (size_t) i * n, (int) n, MPI_BYTE, i, s, inter, &req[i]));
        }
        for (int i = 0; i < far; i++) {
            mt_buf_new(&buf, n);
            MT_MPI(MPI_Probe(s % 2 ? i : MPI_ANY_SOURCE, s, inter, &status));
            MT_STATUS(&status, status.MPI_SOURCE, s, n);
            MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, status.MPI_SOURCE, s, inter, &status));
            MT_BUF(&buf, n, mt_key(turn, status.MPI_SOURCE * 2 + 1 - side, rank, s));
            mt_buf_free(&buf);
        }
        MT_MPI(MPI_Waitall(far, req, MPI_STATUSES_IGNORE));
        free(req);
        free(p);
    }
    MT_MPI(MPI_Intercomm_merge(inter, side, &merged));
    int me, all, sum = 0, expected;
    MT_MPI(MPI_Comm_rank(merged, &me));
    MT_MPI(MPI_Comm_size(merged, &all));
    MT_CHECK(all == n_own + far, "merged size %d", all);
    MT_MPI(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, merged));
    expected = all * (all - 1) / 2;
    MT_CHECK(sum == expected, "sum %d of %d", sum, expected);
    unsigned char *big = malloc(300001);
    mt_fill(big, 300001, mt_key(turn, 0 == me ? 5 : 6, 0, 0));
    MT_MPI(MPI_Bcast(big, 300001, MPI_BYTE, 0, merged));
    MT_SAME(big, 300001, mt_key(turn, 5, 0, 0), "bcast over the merged communicator");
    free(big);
    MT_MPI(MPI_Comm_free(&merged));
    turn++;
}

/* One side to all of the other. */
static void first_words(MPI_Comm inter, bool speaks)
{
    int rank, far, word;

    MT_MPI(MPI_Comm_rank(inter, &rank));
    MT_MPI(MPI_Comm_remote_size(inter, &far));
    for (int i = 0; i < far; i++) {
        if (speaks) {
            word = 100 * rank + i;
            MT_MPI(MPI_Send(&word, 1, MPI_INT, i, TAG_FIRST, inter));
        } else {
            MT_MPI(MPI_Recv(&word, 1, MPI_INT, i, TAG_FIRST, inter, MPI_STATUS_IGNORE));
            MT_CHECK(100 * i + rank == word, "%d from %d", word, i);
        }
    }
}

static void meet(MPI_Comm inter, int side)
{
    turn = 0;
    if (mt_flag("parents-first") || mt_flag("children-first")) {
        first_words(inter, mt_flag("parents-first") == (0 == side));
    }
    if (!mt_flag("brief")) {
        talk(inter, side);
    }
}

/* ---- what a process keeps ---- */

typedef struct {
    long kib, files;
} kept_t;

static kept_t kept(void)
{
    kept_t now = {0, 0};
    char line[200];
    FILE *status = fopen("/proc/self/status", "r");
    DIR *files = opendir("/proc/self/fd");

    while (NULL != status && NULL != fgets(line, sizeof(line), status)) {
        if (1 == sscanf(line, "VmRSS: %ld", &now.kib)) {
            break;
        }
    }
    while (NULL != files && NULL != readdir(files)) {
        now.files++;
    }
    MT_CHECK(NULL != status && NULL != files && now.kib > 0, "/proc cannot be read");
    fclose(status);
    closedir(files);
    return now;
}

/* Of each 100 meetings after the first ones. */
static void check_kept(const kept_t *before, int meetings)
{
    const kept_t now = kept();
    const long kib = 100 * (now.kib - before->kib) / meetings, files = 100 * (now.files - before->files) / meetings;

    printf("rank %d kept %ld KiB and %ld descriptors of each 100 meetings\n", mt_rank, kib, files);
    MT_CHECK(kib <= mt_arg("kib", kib) && files <= mt_arg("files", files), "that is too much");
}

/* ---- spawned processes ---- */

static void spawn_once(char *program, char **arguments, bool multiple, MPI_Comm *children)
{
    int codes[CHILDREN];

    if (multiple) {
        char *programs[] = {program, program}, **both[] = {arguments, arguments};
        int counts[] = {1, 1};
        MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
        MT_MPI(MPI_Comm_spawn_multiple(2, programs, both, counts, infos, 0, MPI_COMM_WORLD, children, codes));
    } else {
        MT_MPI(MPI_Comm_spawn(program, arguments, (int) mt_arg("children", CHILDREN), MPI_INFO_NULL, 0, MPI_COMM_WORLD, children,
                              codes));
    }
}

/* The arguments of the children are ours. */
static void spawn(int meetings, char **argv)
{
    enum { WARM_UP = 10 };
    kept_t before = {0, 0};

    for (int i = 0; i < meetings; i++) {
        MPI_Comm children;

        if (WARM_UP == i) {
            before = kept();
        }
        spawn_once(argv[0], argv + 1, mt_flag("multiple"), &children);
        meet(children, 0);
        MT_MPI(MPI_Comm_disconnect(&children));
        if (!mt_flag("brief")) {
            mt_group("meeting %d with spawned processes", i);
        }
    }
    if (mt_flag("brief") && meetings > WARM_UP) {
        check_kept(&before, meetings - WARM_UP);
    }
}

static void child(MPI_Comm parent, int argc)
{
    MT_CHECK(argc > 1, "a spawned process without arguments");
    meet(parent, 1);
    MT_MPI(MPI_Comm_disconnect(&parent));
    MT_MPI(MPI_Finalize());
    exit(0);
}

/* They end while their parents do not look, having said nothing. */
static void spawn_silent(char **argv)
{
    MPI_Comm children;

    spawn_once(argv[0], argv + 1, false, &children);
    usleep(500000);
    MT_MPI(MPI_Comm_disconnect(&children));
    mt_group("spawned processes that say nothing");
}

static void silent(MPI_Comm parent)
{
    MT_MPI(MPI_Comm_disconnect(&parent));
    MT_MPI(MPI_Finalize());
    exit(0);
}

/* ---- two jobs, neither of which has spawned the other ---- */

static void join(MPI_Comm parent, int side)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM, 0), listening = -1;
    MPI_Comm inter;

    if (0 == side) {
        listening = fd;
        MT_CHECK(0 == bind(fd, (struct sockaddr *) &at, bytes) && 0 == listen(fd, 1)
                 && 0 == getsockname(fd, (struct sockaddr *) &at, &bytes), "a socket");
        MT_MPI(MPI_Send(&at, sizeof(at), MPI_BYTE, 0, TAG_PORT, parent));
        fd = accept(listening, NULL, NULL);
    } else {
        MT_MPI(MPI_Recv(&at, sizeof(at), MPI_BYTE, 0, TAG_PORT, parent, MPI_STATUS_IGNORE));
        MT_CHECK(0 == connect(fd, (struct sockaddr *) &at, bytes), "a connection");
    }
    MT_CHECK(fd >= 0, "a connection");
    MT_MPI(MPI_Comm_join(fd, &inter));
    talk(inter, side);
    MT_MPI(MPI_Comm_disconnect(&inter));
    close(fd);
    close(listening);
}

/* The first of each job joins the first of the other: on one node, for the socket. */
static void job(MPI_Comm parent, int side, int meetings)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;

    if (0 == mt_rank && 0 == side) {
        MT_MPI(MPI_Open_port(MPI_INFO_NULL, port));
        MT_MPI(MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG_PORT, parent));
    } else if (0 == mt_rank) {
        MT_MPI(MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG_PORT, parent, MPI_STATUS_IGNORE));
    }
    for (int i = 0; i < meetings; i++) {
        MT_MPI(side ? MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)
                    : MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        meet(inter, side);
        MT_MPI(MPI_Comm_disconnect(&inter));
    }
    if (mt_flag("join") && 0 == mt_rank) {
        join(parent, side);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == mt_rank && 0 == side) {
        MT_MPI(MPI_Close_port(port));
    }
    MT_MPI(MPI_Comm_disconnect(&parent));
    MT_MPI(MPI_Finalize());
    exit(0);
}

/* What the first job has to say to the second one goes through our hands. */
static void pass_on(MPI_Comm from, MPI_Comm to)
{
    char bytes[MPI_MAX_PORT_NAME];
    MPI_Status status;
    int count;

    if (0 == mt_rank) {
        MT_MPI(MPI_Recv(bytes, sizeof(bytes), MPI_BYTE, 0, TAG_PORT, from, &status));
        MT_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
        MT_MPI(MPI_Send(bytes, count, MPI_BYTE, 0, TAG_PORT, to));
    }
}

static void spawn_jobs(int argc, char **argv)
{
    char **arguments = calloc((size_t) argc + 1, sizeof(*arguments));
    MPI_Comm jobs[2];

    MT_CHECK(NULL != arguments, "memory");
    memcpy(arguments, argv + 1, (size_t) (argc - 1) * sizeof(*arguments));
    for (int side = 0; side < 2; side++) {
        arguments[argc - 1] = side ? "connects" : "accepts";
        spawn_once(argv[0], arguments, false, &jobs[side]);
    }
    free(arguments);
    pass_on(jobs[0], jobs[1]);
    if (mt_flag("join")) {
        pass_on(jobs[0], jobs[1]);
    }
    MT_MPI(MPI_Comm_disconnect(&jobs[0]));
    MT_MPI(MPI_Comm_disconnect(&jobs[1]));
    mt_group("two spawned jobs");
}

/* What they send they do not wait for, nor does MPI_Finalize, while those who are to receive it do something else. */
static void spawn_last(char *program)
{
    char *argv[] = {"child", "last", NULL};
    MPI_Comm children;
    int codes[2], got;

    MT_MPI(MPI_Comm_spawn(program, argv, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes));
    usleep(1500000);
    for (int i = 0; i < 2; i++) {
        MT_MPI(MPI_Recv(&got, 1, MPI_INT, i, 7, children, MPI_STATUS_IGNORE));
        MT_CHECK(100 * i + mt_rank == got, "%d from child %d", got, i);
    }
    mt_group("the last words of spawned processes");
}

static void last_words(MPI_Comm parent)
{
    static int words[64];
    int far;
    MPI_Request request;

    MT_MPI(MPI_Comm_remote_size(parent, &far));
    MT_CHECK(far <= 64, "at most 64 parents");
    for (int i = 0; i < far; i++) {
        words[i] = 100 * mt_rank + i;
        MT_MPI(MPI_Isend(&words[i], 1, MPI_INT, i, 7, parent, &request));
        MT_MPI(MPI_Request_free(&request));
    }
    MT_MPI(MPI_Finalize());
    exit(0);
}

/* The lower half accepts, the upper one connects. */
static void connect_halves(int meetings, bool by_name)
{
    int side = mt_rank >= mt_size / 2, rank;
    char port[MPI_MAX_PORT_NAME] = "";
    const char *service = "ompi-crypt-tests-dynamic";
    MPI_Comm half, inter;
    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, side, mt_rank, &half));
    MT_MPI(MPI_Comm_rank(half, &rank));
    if (0 == mt_rank) {
        MT_MPI(MPI_Open_port(MPI_INFO_NULL, port));
        if (by_name) {
            MT_MPI(MPI_Publish_name(service, MPI_INFO_NULL, port));
        }
    }
    if (by_name) {
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        if (side && 0 == rank) {
            MT_MPI(MPI_Lookup_name(service, MPI_INFO_NULL, port));
        }
    } else {
        MT_MPI(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    }
    for (int i = 0; i < meetings; i++) {
        MT_MPI(side ? MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter)
                    : MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter));
        talk(inter, side);
        MT_MPI(MPI_Comm_disconnect(&inter));
        mt_group("meeting %d by a port%s", i, by_name ? " with a published name" : "");
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == mt_rank) {
        if (by_name) {
            MT_MPI(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
        }
        MT_MPI(MPI_Close_port(port));
    }
    MT_MPI(MPI_Comm_free(&half));
}

static void be_spawned(MPI_Comm parent, int argc, int meetings)
{
    if (mt_flag("last")) {
        last_words(parent);
    } else if (mt_flag("silent")) {
        silent(parent);
    } else if (mt_flag("accepts") || mt_flag("connects")) {
        job(parent, mt_flag("connects"), meetings);
    } else {
        child(parent, argc);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    int meetings;

    mt_start_alone(&argc, &argv, MPI_THREAD_SINGLE);
    meetings = (int) mt_arg("meetings", 2);
    MT_MPI(MPI_Comm_get_parent(&parent));
    if (MPI_COMM_NULL != parent) {
        be_spawned(parent, argc, meetings);
    } else if (mt_flag("connect") || mt_flag("name")) {
        connect_halves(meetings, mt_flag("name"));
    } else if (mt_flag("last")) {
        spawn_last(argv[0]);
    } else if (mt_flag("silent")) {
        spawn_silent(argv);
    } else if (mt_flag("jobs")) {
        spawn_jobs(argc, argv);
    } else {
        spawn(meetings, argv);
    }
    return mt_end();
}
