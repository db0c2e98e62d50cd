/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Processes that connect by a port, in the way named on the command line: "connect" (two halves of the world), "name"
 * (the same, under a published name), "join" (each rank of one half and its counterpart, by MPI_Comm_join over a socket of their
 * own), "jobs" (two spawned jobs, then, with "join", their first ranks by MPI_Comm_join), "file=PATH" (two jobs of two
 * launchers: the first writes the port there, the other, which has "connects", waits for it and reads it).
 *
 * "brief": one message each way, and what a process keeps is printed as by dynamic.c.
 */
#include "mt_inter.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TAG_PORT = 78, WARM_UP = 20, CHILDREN = 2 };

static void meet(MPI_Comm inter, int side, int turn)
{
    if (mt_flag("brief")) {
        mt_inter_first_words(inter, 0 == side);
        mt_inter_first_words(inter, 1 == side);
    } else {
        mt_inter_talk(inter, side, turn);
    }
}

/* Side 1 connects to side 0; the first rank of each has the port. */
static void by_port(const char *port, MPI_Comm half, int side, int meetings)
{
    mt_kept_t before = {0, 0};
    MPI_Comm inter;

    for (int i = 0; i < meetings; i++) {
        if (WARM_UP == i) {
            before = mt_kept();
        }
        MT_MPI(side ? MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter)
                    : MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter));
        meet(inter, side, i);
        MT_MPI(MPI_Comm_disconnect(&inter));
    }
    if (mt_flag("brief") && meetings > WARM_UP) {
        mt_kept_check(&before, meetings - WARM_UP);
    }
}

/* ---- one job ---- */

/* The lower half accepts, the upper one connects. */
static void halves(int meetings, bool by_name)
{
    const char *service = "ompi-crypt-tests-ports";
    const int side = mt_rank >= mt_size / 2;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half;
    int rank;

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
    by_port(port, half, side, meetings);
    mt_group("%d meetings by a port%s", meetings, by_name ? " with a published name" : "");
    if (0 == mt_rank) {
        if (by_name) {
            MT_MPI(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
        }
        MT_MPI(MPI_Close_port(port));
    }
    MT_MPI(MPI_Comm_free(&half));
}

/* ---- MPI_Comm_join ---- */

/* A socket between this process and a peer in `over`: side 0 listens, and sends its address. */
static int socket_with(MPI_Comm over, int peer, int side)
{
    struct sockaddr_in at;
    socklen_t bytes = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM, 0), listening;

    if (1 == side) {
        MT_MPI(MPI_Recv(&at, sizeof(at), MPI_BYTE, peer, TAG_PORT, over, MPI_STATUS_IGNORE));
        MT_CHECK(0 == connect(fd, (struct sockaddr *) &at, bytes), "a connection");
        return fd;
    }
    char host[256] = "";
    const struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;

    MT_CHECK(0 == gethostname(host, sizeof(host) - 1) && 0 == getaddrinfo(host, NULL, &wanted, &found), "this node's address");
    memcpy(&at, found->ai_addr, sizeof(at));
    freeaddrinfo(found);
    listening = fd;
    MT_CHECK(0 == bind(listening, (struct sockaddr *) &at, bytes) && 0 == listen(listening, 1)
             && 0 == getsockname(listening, (struct sockaddr *) &at, &bytes), "a socket");
    MT_MPI(MPI_Send(&at, sizeof(at), MPI_BYTE, peer, TAG_PORT, over));
    fd = accept(listening, NULL, NULL);
    MT_CHECK(fd >= 0, "a connection");
    close(listening);
    return fd;
}

static void join(MPI_Comm over, int peer, int side, int meetings)
{
    const int fd = socket_with(over, peer, side);
    MPI_Comm inter;

    for (int i = 0; i < meetings; i++) {
        MT_MPI(MPI_Comm_join(fd, &inter));
        meet(inter, side, i);
        MT_MPI(MPI_Comm_disconnect(&inter));
    }
    close(fd);
}

static void join_halves(int meetings)
{
    const int half = mt_size / 2;

    if (mt_rank < 2 * half) {
        join(MPI_COMM_WORLD, mt_rank < half ? mt_rank + half : mt_rank - half, mt_rank >= half, meetings);
    }
    mt_group("%d meetings by sockets", meetings);
}

/* ---- two jobs, neither of which has spawned the other ---- */

static void spawned_job(MPI_Comm parent, int side, int meetings)
{
    char port[MPI_MAX_PORT_NAME] = "";

    if (0 == mt_rank && 0 == side) {
        MT_MPI(MPI_Open_port(MPI_INFO_NULL, port));
        MT_MPI(MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG_PORT, parent));
    } else if (0 == mt_rank) {
        MT_MPI(MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, TAG_PORT, parent, MPI_STATUS_IGNORE));
    }
    by_port(port, MPI_COMM_WORLD, side, meetings);
    if (mt_flag("join") && 0 == mt_rank) {
        join(parent, 0, side, 1);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == mt_rank && 0 == side) {
        MT_MPI(MPI_Close_port(port));
    }
    MT_MPI(MPI_Comm_disconnect(&parent));
    MT_MPI(MPI_Finalize());
    exit(0);
}

/* We pass on what the first job has to tell the second one. */
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
        MT_MPI(MPI_Comm_spawn(argv[0], arguments, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &jobs[side], MPI_ERRCODES_IGNORE));
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

/* ---- two launchers ---- */

static const char *file_of_port(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (0 == strncmp("file=", argv[i], 5)) {
            return argv[i] + 5;
        }
    }
    return NULL;
}

/* The file appears only when it is complete. */
static void say_port(const char *path, const char *port)
{
    char made[4096];
    FILE *f;

    snprintf(made, sizeof(made), "%s.new", path);
    f = fopen(made, "w");
    MT_CHECK(NULL != f && fputs(port, f) >= 0 && 0 == fclose(f) && 0 == rename(made, path), "%s", path);
}

static void read_port(const char *path, char port[MPI_MAX_PORT_NAME])
{
    FILE *f = NULL;

    MT_AT();
    while (NULL == (f = fopen(path, "r"))) {
        usleep(10000);                          /* the watchdog runs */
    }
    MT_CHECK(NULL != fgets(port, MPI_MAX_PORT_NAME, f), "%s", path);
    fclose(f);
}

static void launched_job(const char *path, int side, int meetings)
{
    char port[MPI_MAX_PORT_NAME] = "";

    if (0 == mt_rank && 0 == side) {
        MT_MPI(MPI_Open_port(MPI_INFO_NULL, port));
        say_port(path, port);
    } else if (0 == mt_rank) {
        read_port(path, port);
    }
    by_port(port, MPI_COMM_WORLD, side, meetings);
    mt_group("%d meetings with a job of another launcher", meetings);
    if (0 == mt_rank && 0 == side) {
        MT_MPI(MPI_Close_port(port));
    }
}

int main(int argc, char **argv)
{
    const char *path = file_of_port(argc, argv);
    MPI_Comm parent;
    int meetings;

    mt_start_alone(&argc, &argv, MPI_THREAD_SINGLE);
    meetings = (int) mt_arg("meetings", 2);
    MT_MPI(MPI_Comm_get_parent(&parent));
    if (MPI_COMM_NULL != parent) {
        spawned_job(parent, mt_flag("connects"), meetings);
    } else if (NULL != path) {
        launched_job(path, mt_flag("connects"), meetings);
    } else if (mt_flag("jobs")) {
        spawn_jobs(argc, argv);
    } else if (mt_flag("join")) {
        join_halves(meetings);
    } else {
        halves(meetings, mt_flag("name"));
    }
    return mt_end();
}
