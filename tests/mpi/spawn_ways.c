/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a spawned process gets, and what is made from an intercommunicator: arguments that a shell or mpirun would take
 * for theirs, none at all, info keys (wdir, host), one spawn by each rank alone, "multiple" programs with arguments of
 * their own; communicators created from, and split off, an intercommunicator, and MPI_Intercomm_create over the merged one.
 */
#include "mt_inter.h"

#include <unistd.h>

enum { TAG_SAYS = 5, MOST = 4096, CHILDREN = 2 };

static char *odd[] = {"with a blank", "\"quoted\"", "it's", "$HOME", "*", "a;b|c&d", "--mca", "pml", "ob1", "-n", "2", ":",
                      "\\back\\slash", "=", "last", NULL};

/* ---- children: they report what they were given, to the first parent ---- */

static void say(MPI_Comm parent, const char *text)
{
    MT_MPI(MPI_Send(text, (int) strlen(text) + 1, MPI_CHAR, 0, TAG_SAYS, parent));
}

static void make_more(MPI_Comm inter, int side);

static void child(MPI_Comm parent, int argc, char **argv)
{
    char text[MOST], host[MPI_MAX_PROCESSOR_NAME];
    int bytes;

    snprintf(text, sizeof(text), "%d", argc - 1);
    say(parent, text);
    for (int i = 1; i < argc; i++) {
        say(parent, argv[i]);
    }
    MT_CHECK(NULL != getcwd(text, sizeof(text)), "a working directory");
    say(parent, text);
    MT_MPI(MPI_Get_processor_name(host, &bytes));
    say(parent, host);
    make_more(parent, 1);
    MT_MPI(MPI_Comm_disconnect(&parent));
    MT_MPI(MPI_Finalize());
    exit(0);
}

static void hears(MPI_Comm children, int rank, char text[MOST])
{
    MT_MPI(MPI_Recv(text, MOST, MPI_CHAR, rank, TAG_SAYS, children, MPI_STATUS_IGNORE));
}

static void expect(MPI_Comm children, int rank, const char *what, const char *text)
{
    char got[MOST];

    hears(children, rank, got);
    MT_CHECK(0 == strcmp(text, got), "%s of child %d: <%s> instead of <%s>", what, rank, got, text);
}

/* NULL: not checked. */
static void check_child(MPI_Comm children, int rank, char **arguments, const char *directory, const char *host)
{
    char text[MOST];
    int count = 0;

    while (NULL != arguments && NULL != arguments[count]) {
        count++;
    }
    snprintf(text, sizeof(text), "%d", count);
    expect(children, rank, "the number of arguments", text);
    for (int i = 0; i < count; i++) {
        expect(children, rank, "an argument", arguments[i]);
    }
    hears(children, rank, text);
    MT_CHECK(NULL == directory || 0 == strcmp(text, directory), "child %d is in %s", rank, text);
    hears(children, rank, text);
    MT_CHECK(NULL == host || 0 == strcmp(text, host), "child %d is on %s", rank, text);
}

/* ---- what is made from an intercommunicator ---- */

/* With the first of each group alone. */
static void created(MPI_Comm inter, int side)
{
    const int first = 0;
    MPI_Group group, one;
    MPI_Comm made;
    int rank;

    MT_MPI(MPI_Comm_rank(inter, &rank));
    MT_MPI(MPI_Comm_group(inter, &group));
    MT_MPI(MPI_Group_incl(group, 1, &first, &one));
    MT_MPI(MPI_Comm_create(inter, one, &made));
    if (0 == rank) {
        MT_CHECK(MPI_COMM_NULL != made, "nothing was created");
        mt_inter_talk(made, side, 1);
        MT_MPI(MPI_Comm_free(&made));
    }
    MT_MPI(MPI_Group_free(&one));
    MT_MPI(MPI_Group_free(&group));
}

/* All of them, in reverse. */
static void split(MPI_Comm inter, int side)
{
    MPI_Comm made;
    int rank;

    MT_MPI(MPI_Comm_rank(inter, &rank));
    MT_MPI(MPI_Comm_split(inter, 0, -rank, &made));
    mt_inter_talk(made, side, 2);
    MT_MPI(MPI_Comm_free(&made));
}

static void over_merged(MPI_Comm inter, int side)
{
    MPI_Comm merged, half, made;
    int own, far;

    MT_MPI(MPI_Comm_size(inter, &own));
    MT_MPI(MPI_Comm_remote_size(inter, &far));
    MT_MPI(MPI_Intercomm_merge(inter, side, &merged));
    MT_MPI(MPI_Comm_split(merged, side, 0, &half));
    MT_MPI(MPI_Intercomm_create(half, 0, merged, side ? 0 : own, 9, &made));
    mt_inter_talk(made, side, 3);
    MT_MPI(MPI_Comm_free(&made));
    MT_MPI(MPI_Comm_free(&half));
    MT_MPI(MPI_Comm_free(&merged));
}

static void make_more(MPI_Comm inter, int side)
{
    created(inter, side);
    split(inter, side);
    over_merged(inter, side);
}

/* ---- parents ---- */

/* By all of `parents`, with info KEY=VALUE unless KEY is NULL. */
static void spawn(MPI_Comm parents, char *program, char **arguments, int count, const char *key, const char *value)
{
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm children;
    int rank;

    if (NULL != key) {
        MT_MPI(MPI_Info_create(&info));
        MT_MPI(MPI_Info_set(info, key, value));
    }
    MT_MPI(MPI_Comm_spawn(program, NULL == arguments ? MPI_ARGV_NULL : arguments, count, info, 0, parents, &children,
                          MPI_ERRCODES_IGNORE));
    MT_MPI(MPI_Comm_rank(parents, &rank));
    for (int i = 0; i < count && 0 == rank; i++) {
        check_child(children, i, arguments, NULL != key && 0 == strcmp("wdir", key) ? value : NULL,
                    NULL != key && 0 == strcmp("host", key) ? value : NULL);
    }
    make_more(children, 0);
    MT_MPI(MPI_Comm_disconnect(&children));
    if (NULL != key) {
        MT_MPI(MPI_Info_free(&info));
    }
}

static void last_host(char host[MPI_MAX_PROCESSOR_NAME])
{
    int bytes;

    memset(host, 0, MPI_MAX_PROCESSOR_NAME);
    MT_MPI(MPI_Get_processor_name(host, &bytes));
    MT_MPI(MPI_Bcast(host, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, mt_size - 1, MPI_COMM_WORLD));
}

static void multiple(char *program)
{
    char *first[] = {"first", "one of two", NULL}, *second[] = {"second", NULL};
    char *programs[] = {program, program}, **arguments[] = {first, second}, host[MPI_MAX_PROCESSOR_NAME];
    int counts[] = {1, 1};
    MPI_Info infos[2];
    MPI_Comm children;

    last_host(host);
    for (int i = 0; i < 2; i++) {
        MT_MPI(MPI_Info_create(&infos[i]));
        MT_MPI(MPI_Info_set(infos[i], i ? "wdir" : "host", i ? "/" : host));
    }
    MT_MPI(MPI_Comm_spawn_multiple(2, programs, arguments, counts, infos, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    if (0 == mt_rank) {
        check_child(children, 0, first, NULL, host);
        check_child(children, 1, second, "/", NULL);
    }
    make_more(children, 0);
    MT_MPI(MPI_Comm_disconnect(&children));
    for (int i = 0; i < 2; i++) {
        MT_MPI(MPI_Info_free(&infos[i]));
    }
    mt_group("two programs with arguments and info of their own");
}

int main(int argc, char **argv)
{
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm parent;

    mt_start_alone(&argc, &argv, MPI_THREAD_SINGLE);
    MT_MPI(MPI_Comm_get_parent(&parent));
    if (MPI_COMM_NULL != parent) {
        child(parent, argc, argv);
    } else if (mt_flag("multiple")) {
        multiple(argv[0]);
        return mt_end();
    }
    spawn(MPI_COMM_WORLD, argv[0], odd, CHILDREN, NULL, NULL);
    mt_group("arguments that others would take for theirs");
    spawn(MPI_COMM_WORLD, argv[0], NULL, 1, NULL, NULL);
    mt_group("no arguments");
    spawn(MPI_COMM_WORLD, argv[0], odd, 1, "wdir", "/");
    mt_group("a working directory");
    last_host(host);
    spawn(MPI_COMM_WORLD, argv[0], odd, 1, "host", host);
    mt_group("a host");
    spawn(MPI_COMM_SELF, argv[0], odd, 1, "bind_to", "none");      /* they are more than the processors */
    mt_group("each rank alone");
    return mt_end();
}
