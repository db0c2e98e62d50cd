/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt ps: what do the processes of encrypted jobs wait for?
 */
#include <stdlib.h>
#include <string.h>

#include "ps.h"

static bool all, json, pages;
static double after;
static mpicrypt_names_t hosts;
static const char *rsh, *slurm;

static const mpicrypt_option_t options[] = {
    {"host", MPICRYPT_HOSTS, "LIST", NULL, &hosts,
     "Look at these nodes, as in node[01-64],login1, by ssh, and not at this one unless it is in the list. mpicrypt must "
     "be at the same path there."},
    {"slurm", MPICRYPT_TEXT, "JOBID", NULL, &slurm,
     "Look at the nodes of this Slurm job: squeue names them, srun --overlap reaches them."},
    {"after", MPICRYPT_REAL, "SECONDS", "10", &after,
     "Report a wait once it has lasted this long."},
    {"all", MPICRYPT_FLAG, NULL, NULL, &all,
     "Print everything about every process."},
    {"json", MPICRYPT_FLAG, NULL, NULL, &json,
     "The same for programs."},
    {"rsh", MPICRYPT_TEXT, "PROGRAM", "ssh -o BatchMode=yes -o ConnectTimeout=10", &rsh,
     "What runs a command on a host, called as PROGRAM HOST COMMAND."},
    {"pages", MPICRYPT_FLAG, NULL, NULL, &pages,
     "Write the pages of this node for another mpicrypt ps, which calls this one so."},
    {NULL}
};

static int by_job_and_rank(const void *a, const void *b)
{
    const opal_crypt_status_who_t *first = &((const opal_crypt_status_process_t *) a)->who;
    const opal_crypt_status_who_t *second = &((const opal_crypt_status_process_t *) b)->who;
    int order = strcmp(first->job, second->job);

    order = 0 != order ? order : (first->uid > second->uid) - (first->uid < second->uid);
    return 0 != order ? order : (first->rank > second->rank) - (first->rank < second->rank);
}

static bool same_job(const opal_crypt_status_process_t *a, const opal_crypt_status_process_t *b)
{
    return a->who.uid == b->who.uid && 0 == strcmp(a->who.job, b->who.job);
}

static uint32_t ranks_of(const opal_crypt_status_process_t *processes, int count)
{
    uint32_t ranks = 0;

    for (int i = 0; i < count; ++i) {
        ranks = processes[i].snapshot.ranks > ranks ? processes[i].snapshot.ranks : ranks;
    }
    return ranks;
}

typedef struct verdict {
    int found;
    bool known;
    char *wrong, *not_seen;         /* lines, to be freed */
} verdict_t;

static verdict_t judge(const opal_crypt_status_process_t *processes, int count)
{
    verdict_t verdict = {.found = 0};
    size_t bytes[2];
    FILE *wrong = mpicrypt_checked(open_memstream(&verdict.wrong, &bytes[0]));
    FILE *not_seen = mpicrypt_checked(open_memstream(&verdict.not_seen, &bytes[1]));

    verdict.found = mpicrypt_ps_judge(processes, count, ranks_of(processes, count), after, wrong, not_seen, &verdict.known);
    fclose(wrong);
    fclose(not_seen);
    return verdict;
}

static void free_verdict(verdict_t *verdict)
{
    free(verdict->wrong);
    free(verdict->not_seen);
}

/* All processes of a job say the same. */
static void show_protection(const opal_crypt_status_process_t *processes, int count)
{
    for (int i = 0; i < count; ++i) {
        if ('\0' != processes[i].who.protection[0]
            && (0 == i || 0 != strcmp(processes[i].who.protection, processes[i - 1].who.protection))) {
            printf("  %s\n", mpicrypt_ps_text(processes[i].who.protection));
        }
    }
}

static void show_text(const opal_crypt_status_process_t *processes, int count, const verdict_t *verdict)
{
    const uint32_t ranks = ranks_of(processes, count);
    const char *rest = verdict->not_seen;

    printf("job %s: %d of ", mpicrypt_ps_text(processes->who.job), count);
    if (0 == ranks) {
        fputs("its", stdout);
    } else {
        printf("%u", ranks);
    }
    printf(" processes seen%s%s\n", 0 == verdict->found && verdict->known ? ": nothing looks wrong" : "",
           0 == verdict->found && verdict->known && '\0' != *rest ? " in what was seen" : "");
    show_protection(processes, count);
    fputs(verdict->wrong, stdout);
    for (; '\0' != *rest; rest += strcspn(rest, "\n") + 1) {
        printf("  not seen: %.*s\n", (int) strcspn(rest, "\n"), rest);
    }
    for (int i = 0; i < count && all; ++i) {
        mpicrypt_ps_show(&processes[i], stdout);
    }
}

static void json_lines(const char *name, char *rest)
{
    printf("\"%s\": [", name);
    for (int i = 0; NULL != rest && '\0' != *rest; ++i) {
        const char *line = strsep(&rest, "\n");

        fputs(0 == i ? "" : ", ", stdout);
        mpicrypt_json_text(stdout, line + strspn(line, " "));
    }
    fputs("], ", stdout);
}

static void show_json(const opal_crypt_status_process_t *processes, int count, const verdict_t *verdict, bool first)
{
    printf("%s {\"job\": ", first ? "" : ",\n");
    mpicrypt_json_text(stdout, mpicrypt_ps_text(processes->who.job));
    printf(", \"ranks\": %u, ", ranks_of(processes, count));
    json_lines("wrong", verdict->wrong);
    json_lines("not_seen", verdict->not_seen);
    fputs("\"processes\": [\n", stdout);
    for (int i = 0; i < count; ++i) {
        fputs(0 == i ? "    " : ",\n    ", stdout);
        mpicrypt_ps_json(&processes[i], stdout);
    }
    fputs("]}", stdout);
}

/* *unknown: the number of jobs that cannot be judged. */
static int show(mpicrypt_ps_list_t *list, int *unknown)
{
    int found = 0;

    qsort(list->processes, (size_t) list->count, sizeof(*list->processes), by_job_and_rank);
    fputs(json ? "[" : "", stdout);
    for (int i = 0, end; i < list->count; i = end) {
        for (end = i + 1; end < list->count && same_job(&list->processes[i], &list->processes[end]); ++end) {
        }
        verdict_t verdict = judge(&list->processes[i], end - i);

        found += verdict.found;
        *unknown += verdict.known ? 0 : 1;
        if (json) {
            show_json(&list->processes[i], end - i, &verdict, 0 == i);
        } else {
            show_text(&list->processes[i], end - i, &verdict);
        }
        free_verdict(&verdict);
    }
    fputs(json ? "]\n" : "", stdout);
    return found;
}

static int read_pages(const char *job, mpicrypt_ps_list_t *list)
{
    if (NULL != slurm && hosts.count > 0) {
        return mpicrypt_error(MPICRYPT_USAGE, "--slurm and --host exclude each other");
    }
    return NULL != slurm ? mpicrypt_ps_slurm(slurm, job, list)
           : hosts.count > 0 ? mpicrypt_ps_hosts(&hosts, &(mpicrypt_ps_way_t){.rsh = rsh}, job, list) : mpicrypt_ps_node(job, list);
}

static int run(int operand_count, char **operands)
{
    const char *job = operand_count > 0 ? operands[0] : NULL;
    mpicrypt_ps_list_t list = {0};
    int rc, found = 0, unknown = 0;

    if (operand_count > 1) {
        return mpicrypt_error(MPICRYPT_USAGE, "unexpected word '%s'; see 'mpicrypt ps --help'", operands[1]);
    }
    rc = read_pages(job, &list);
    if (MPICRYPT_OK == rc && pages) {
        mpicrypt_ps_pages(&list);
    } else if (MPICRYPT_OK == rc) {
        found = show(&list, &unknown);
        if (0 == list.count && 0 == list.refused && 0 == list.unreached) {
            rc = NULL == job ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_MISSING, "no process of an encrypted job '%s' was seen", job);
            fputs(NULL == job && !json ? "no encrypted job was seen\n" : "", stdout);
        }
    }
    free(list.processes);
    if (MPICRYPT_OK != rc) {
        return rc;
    }
    return list.refused > 0 || list.unreached > 0 ? MPICRYPT_MISSING
           : found > 0                            ? MPICRYPT_FAILED
           : unknown > 0                          ? MPICRYPT_MISSING : MPICRYPT_OK;
}

const mpicrypt_verb_t mpicrypt_ps_verb = {
    .name = "ps",
    .summary = "what the processes of encrypted jobs wait for",
    .synopsis = "[JOB] [--host LIST | --slurm JOBID] [--all | --json]",
    .description =
        "Every process of an encrypted job keeps a status page, which only its owner and root can read. ps reads the pages "
        "of a node, or of several, compares them, and prints what looks wrong: who is stopped or gone, who waits "
        "for what, and what the other side says of it. It asks nothing of the processes, so it also works when they "
        "are stopped.\n\n"
        "JOB is a part of a job's name. Without --host and --slurm ps looks at this node only, and then it knows one "
        "side of most waits.\n\n"
        "What it cannot see it names (\"not seen\"): processes of other nodes, and what those wait for that are inside MPI in "
        "neither a message nor a collective, as in a one-sided call.\n\n"
        "Exit status: 0, nothing looks wrong in what was seen; 1, something does; 3, nobody is seen to go on, and why "
        "cannot be seen, a node could not be looked at, a page was refused, or there is no such job.",
    .options = options,
    .examples =
        "  mpicrypt ps\n"
        "  mpicrypt ps --host 'node[01-16]'\n"
        "  mpicrypt ps --slurm 4711\n",
    .run = run,
    .takes_operands = true,
};
