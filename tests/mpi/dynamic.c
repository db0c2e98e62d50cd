/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Processes that are spawned: "spawn" (MPI_Comm_spawn), "multiple", "last" (whose first message is their last),
 * "silent" (that end without any).  Each time messages of all sizes in both directions, wildcards, probes, collectives, a
 * merged communicator, and MPI_Comm_disconnect followed by a second connection.  "window": the merged communicator has a window, too.
 *
 * "parents-first" and "children-first": only that side sends at first.  "brief": nothing more is sent, and what a
 * process keeps after each connection but the first 20 is printed, at most kib= KiB and files= descriptors for 100.
 */
#include "mt_inter.h"

#include <string.h>
#include <unistd.h>

enum { CHILDREN = 2, WARM_UP = 20 };

/* Everybody puts its rank into everybody's memory. */
static void put_to_all(MPI_Comm inter, int side)
{
    MPI_Comm both;
    MPI_Win window;
    int rank, size, *base;

    MT_MPI(MPI_Intercomm_merge(inter, side, &both));
    MT_MPI(MPI_Comm_rank(both, &rank));
    MT_MPI(MPI_Comm_size(both, &size));
    MT_MPI(MPI_Win_allocate(size * (MPI_Aint) sizeof(int), sizeof(int), MPI_INFO_NULL, both, &base, &window));
    memset(base, 0xff, (size_t) size * sizeof(int));
    MT_MPI(MPI_Win_fence(0, window));
    for (int i = 0; i < size; i++) {
        MT_MPI(MPI_Put(&rank, 1, MPI_INT, i, rank, 1, MPI_INT, window));
    }
    MT_MPI(MPI_Win_fence(0, window));
    for (int i = 0; i < size; i++) {
        MT_CHECK(i == base[i], "%d from %d", base[i], i);
    }
    MT_MPI(MPI_Win_free(&window));
    MT_MPI(MPI_Comm_free(&both));
}

static void meet(MPI_Comm inter, int side)
{
    if (mt_flag("parents-first") || mt_flag("children-first")) {
        mt_inter_first_words(inter, mt_flag("parents-first") == (0 == side));
    }
    if (!mt_flag("brief")) {
        mt_inter_talk(inter, side, 0);
    }
    if (mt_flag("window")) {
        put_to_all(inter, side);
    }
}

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
    mt_kept_t before = {0, 0};

    for (int i = 0; i < meetings; i++) {
        MPI_Comm children;

        if (WARM_UP == i) {
            before = mt_kept();
        }
        spawn_once(argv[0], argv + 1, mt_flag("multiple"), &children);
        meet(children, 0);
        MT_MPI(MPI_Comm_disconnect(&children));
        if (!mt_flag("brief")) {
            mt_group("meeting %d with spawned processes", i);
        }
    }
    if (mt_flag("brief") && meetings > WARM_UP) {
        mt_kept_check(&before, meetings - WARM_UP);
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

/* They end without a message while their parents make no progress. */
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

/* Neither they nor MPI_Finalize wait for what they send, while the receivers do something else. */
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

int main(int argc, char **argv)
{
    MPI_Comm parent;

    mt_start_alone(&argc, &argv, MPI_THREAD_SINGLE);
    MT_MPI(MPI_Comm_get_parent(&parent));
    if (MPI_COMM_NULL != parent) {
        mt_flag("last") ? last_words(parent) : mt_flag("silent") ? silent(parent) : child(parent, argc);
    } else if (mt_flag("last")) {
        spawn_last(argv[0]);
    } else if (mt_flag("silent")) {
        spawn_silent(argv);
    } else {
        spawn((int) mt_arg("meetings", 2), argv);
    }
    return mt_end();
}
