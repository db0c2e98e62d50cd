/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Groups of MPI sessions that connect, in the way named on the command line: "groups" (two halves of a process set, by
 * MPI_Intercomm_create_from_groups, without MPI_Init), "ports" (the same halves by a port), "spawn" (a communicator of a session
 * spawns, and the spawned job has a session of its own besides its parents' messages), "world" (the same, by a process
 * that has called MPI_Init).  Each group has a communicator of its own meanwhile, with messages, too.
 */
#include "mt_inter.h"

#if MT_HAS_MPI4

#include <unistd.h>

enum { CHILDREN = 2 };

static MPI_Session session;

static void begin(void)
{
    MT_MPI(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
}

/* Of all processes of this job. */
static MPI_Group all(void)
{
    MPI_Group group;

    MT_MPI(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    return group;
}

static MPI_Comm made_of(MPI_Group group, const char *tag)
{
    MPI_Comm comm;

    MT_MPI(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    return comm;
}

/* Of half of them: *other is the group of the other half. */
static MPI_Group half_of(MPI_Group group, int *side, MPI_Group *other)
{
    MPI_Group lower, upper;
    int range[1][3], rank, size;

    MT_MPI(MPI_Group_rank(group, &rank));
    MT_MPI(MPI_Group_size(group, &size));
    *side = rank >= size / 2;
    range[0][0] = 0;
    range[0][1] = size / 2 - 1;
    range[0][2] = 1;
    MT_MPI(MPI_Group_range_incl(group, 1, range, &lower));
    MT_MPI(MPI_Group_range_excl(group, 1, range, &upper));
    *other = *side ? lower : upper;
    return *side ? upper : lower;
}

/* Messages within a group, besides those between groups. */
static void among_us(MPI_Comm comm)
{
    int rank, size, sum = 0;

    MT_MPI(MPI_Comm_rank(comm, &rank));
    MT_MPI(MPI_Comm_size(comm, &size));
    MT_MPI(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    MT_CHECK(size * (size - 1) / 2 == sum, "the sum of the ranks is %d", sum);
}

static void said(const char *what)
{
    MPI_Group group = all();
    MPI_Comm comm = made_of(group, "ompi-crypt.tests.said");
    int rank;

    among_us(comm);
    MT_MPI(MPI_Comm_rank(comm, &rank));
    if (0 == rank) {
        printf("ok sessions_meet: %s\n", what);
        fflush(stdout);
    }
    MT_MPI(MPI_Comm_free(&comm));
    MT_MPI(MPI_Group_free(&group));
}

/* ---- two halves of a process set ---- */

static void by_groups(MPI_Group ours, MPI_Group theirs, MPI_Comm among, int side)
{
    MPI_Comm inter;

    for (int turn = 0; turn < 3; turn++) {
        MT_MPI(MPI_Intercomm_create_from_groups(ours, 0, theirs, 0, "ompi-crypt.tests.inter", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                                                &inter));
        mt_inter_talk(inter, side, turn);
        among_us(among);
        MT_MPI(MPI_Comm_free(&inter));
    }
    said("two groups of a session");
}

static void by_port(MPI_Comm among, int side)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Group group = all();
    MPI_Comm comm = made_of(group, "ompi-crypt.tests.port"), inter;
    int rank;

    MT_MPI(MPI_Comm_rank(comm, &rank));
    if (0 == rank) {
        MT_MPI(MPI_Open_port(MPI_INFO_NULL, port));
    }
    MT_MPI(MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, comm));
    MT_MPI(side ? MPI_Comm_connect(port, MPI_INFO_NULL, 0, among, &inter) : MPI_Comm_accept(port, MPI_INFO_NULL, 0, among, &inter));
    mt_inter_talk(inter, side, 0);
    among_us(among);
    MT_MPI(MPI_Comm_disconnect(&inter));
    MT_MPI(MPI_Barrier(comm));
    if (0 == rank) {
        MT_MPI(MPI_Close_port(port));
    }
    MT_MPI(MPI_Comm_free(&comm));
    MT_MPI(MPI_Group_free(&group));
    said("two groups of a session, by a port");
}

static void halves(bool port)
{
    MPI_Group group = all(), ours, theirs;
    MPI_Comm among;
    int side;

    ours = half_of(group, &side, &theirs);
    among = made_of(ours, side ? "ompi-crypt.tests.upper" : "ompi-crypt.tests.lower");
    among_us(among);
    if (port) {
        by_port(among, side);
    } else {
        by_groups(ours, theirs, among, side);
    }
    MT_MPI(MPI_Comm_free(&among));
    MT_MPI(MPI_Group_free(&theirs));
    MT_MPI(MPI_Group_free(&ours));
    MT_MPI(MPI_Group_free(&group));
}

/* ---- two jobs ---- */

static void talk_beside(MPI_Comm inter, int side)
{
    MPI_Group group = all();
    MPI_Comm among = made_of(group, "ompi-crypt.tests.among");

    for (int turn = 0; turn < 2; turn++) {
        mt_inter_talk(inter, side, turn);
        among_us(among);
    }
    MT_MPI(MPI_Comm_free(&among));
    MT_MPI(MPI_Group_free(&group));
}

static void spawn(char *program, MPI_Comm over)
{
    MPI_Comm children;

    MT_MPI(MPI_Comm_spawn(program, MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, over, &children, MPI_ERRCODES_IGNORE));
    talk_beside(children, 0);
    MT_MPI(MPI_Comm_disconnect(&children));
    said("a session, and a spawned job with one");
}

static void spawn_from_session(char *program)
{
    MPI_Group group = all();
    MPI_Comm comm = made_of(group, "ompi-crypt.tests.spawn");

    spawn(program, comm);
    MT_MPI(MPI_Comm_free(&comm));
    MT_MPI(MPI_Group_free(&group));
}

/* Only a process that has called MPI_Init can ask for its parents. */
static bool is_spawned(void)
{
    MPI_Comm parent;

    MT_MPI(MPI_Comm_get_parent(&parent));
    if (MPI_COMM_NULL == parent) {
        return false;
    }
    begin();
    talk_beside(parent, 1);
    MT_MPI(MPI_Comm_disconnect(&parent));
    return true;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "child";
    const bool world = 0 == strcmp("world", way) || 0 == strcmp("child", way);

    alarm(300);
    if (world) {
        MT_MPI(MPI_Init(&argc, &argv));
    }
    if (!world || !is_spawned()) {
        begin();
        if (0 == strcmp("world", way)) {
            spawn(argv[0], MPI_COMM_WORLD);
        } else if (0 == strcmp("spawn", way)) {
            spawn_from_session(argv[0]);
        } else {
            MT_CHECK(0 == strcmp("groups", way) || 0 == strcmp("ports", way), "an unknown word: %s", way);
            halves(0 == strcmp("ports", way));
        }
    }
    MT_MPI(MPI_Session_finalize(&session));
    if (world) {
        MT_MPI(MPI_Finalize());
    }
    return 0;
}

#else

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    mt_skip("this MPI has no sessions");
}

#endif
