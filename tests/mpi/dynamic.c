/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Processes that meet at run time, by the way named on the command line:
 * "spawn" (MPI_Comm_spawn), "multiple", "connect" (a port between two halves
 * of the world), "name" (the port under a published name), "last" (spawned processes
 * whose first message is their last).  Each time messages
 * of all sizes in both directions, wildcards, probes, collectives, a merged
 * communicator, and MPI_Comm_disconnect with a second meeting afterwards.
 */
#include "mt.h"

#include <unistd.h>

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

static void spawn(int meetings, char *program, bool multiple)
{
    for (int i = 0; i < meetings; i++) {
        MPI_Comm children;
        int codes[2];
        char *argv[] = {"child", NULL};
        if (multiple) {
            char *programs[] = {program, program}, **arguments[] = {argv, argv};
            int counts[] = {1, 1};
            MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
            MT_MPI(MPI_Comm_spawn_multiple(2, programs, arguments, counts, infos, 0, MPI_COMM_WORLD, &children, codes));
        } else {
            MT_MPI(MPI_Comm_spawn(program, argv, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes));
        }
        turn = 0;
        talk(children, 0);
        MT_MPI(MPI_Comm_disconnect(&children));
        mt_group("meeting %d with spawned processes", i);
    }
}

static void child(MPI_Comm parent)
{
    talk(parent, 1);
    MT_MPI(MPI_Comm_disconnect(&parent));
    MT_MPI(MPI_Finalize());
    exit(0);
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
static void connect(int meetings, bool by_name)
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

int main(int argc, char **argv)
{
    MPI_Comm parent;
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_MPI(MPI_Comm_get_parent(&parent));
    if (MPI_COMM_NULL != parent && mt_flag("last")) {
        last_words(parent);
    } else if (MPI_COMM_NULL != parent) {
        child(parent);
    }
    int meetings = (int) mt_arg("meetings", 2);
    if (mt_flag("connect") || mt_flag("name")) {
        connect(meetings, mt_flag("name"));
    } else if (mt_flag("last")) {
        spawn_last(argv[0]);
    } else {
        spawn(meetings, argv[0], mt_flag("multiple"));
    }
    return mt_end();
}
