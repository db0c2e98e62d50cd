/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt ps: the pages of other nodes.  `mpicrypt ps --pages` there writes lines, and these are
 * read here:
 *
 *     node NAME            the node's pages were read
 *     page HEX             one process, as struct opal_crypt_status_process
 *     refused              a page was refused, with a message on standard error
 *
 * A line may come from any user of that node: it is checked like a page.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mpicrypt_launch.h"
#include "opal/mca/common/crypt/base/hex.h"
#include "ps.h"

enum { AT_A_TIME = 32, PAGES_MOST = 4096 };     /* hosts; processes of a node */

/* ---- lines ---- */

void mpicrypt_ps_pages(const mpicrypt_ps_list_t *list)
{
    static char hex[2 * sizeof(list->processes[0]) + 1];
    char host[65] = "";

    (void) gethostname(host, sizeof(host) - 1);
    printf("node %s\n", host);
    for (int i = 0; i < list->count; ++i) {
        opal_crypt_hex_write((const uint8_t *) &list->processes[i], sizeof(list->processes[i]), hex);
        printf("page %s\n", hex);
    }
    for (int i = 0; i < list->refused; ++i) {
        puts("refused");
    }
}

static bool take_page(const char *hex, mpicrypt_ps_list_t *list)
{
    opal_crypt_status_process_t process;
    char why[256];

    bool good = 2 * sizeof(process) == strlen(hex) && opal_crypt_hex_read(hex, (uint8_t *) &process, sizeof(process))
                && opal_crypt_status_valid(&process, why, sizeof(why))
                && (0 == process.state || (process.state > ' ' && process.state <= '~'));
    if (good) {
        mpicrypt_ps_add(list, &process);
    }
    return good;
}

/* False: they are not what ps writes.  *nodes: how many nodes were read. */
static bool take_lines(FILE *from, mpicrypt_ps_list_t *list, int *nodes)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t bytes;
    int pages = 0;
    bool good = true;

    while (good && (bytes = getline(&line, &capacity, from)) > 0) {
        if ('\n' == line[bytes - 1]) {
            line[bytes - 1] = '\0';
        }
        if (0 == strncmp(line, "node ", 5)) {
            ++*nodes;
        } else if (0 == strcmp(line, "refused")) {
            ++list->refused;
        } else if (0 == strncmp(line, "page ", 5)) {
            good = ++pages <= PAGES_MOST * (*nodes + 1) && take_page(line + 5, list);
        } else {
            good = false;
        }
    }
    free(line);
    return good;
}

/* ---- commands ---- */

typedef struct child {
    pid_t pid;
    FILE *out;
    const char *name;
} child_t;

static bool start(child_t *child, const char *name, mpicrypt_words_t *words)
{
    int ends[2];

    *child = (child_t){.pid = -1, .name = name};
    if (0 != pipe2(ends, O_CLOEXEC)) {
        return false;
    }
    fflush(NULL);
    child->pid = fork();
    if (0 == child->pid) {
        (void) dup2(ends[1], STDOUT_FILENO);
        close(STDIN_FILENO);
        execvp(words->value[0], words->value);
        _exit(127);
    }
    close(ends[1]);
    child->out = child->pid < 0 ? NULL : fdopen(ends[0], "r");
    if (NULL == child->out) {
        close(ends[0]);
    }
    return NULL != child->out;
}

/* Wait for what was started; name a node that could not be read. */
static void finish(child_t *child, mpicrypt_ps_list_t *list)
{
    int nodes = 0, status = -1;
    bool good = false, whole;

    if (NULL != child->out) {
        good = take_lines(child->out, list, &nodes);
        fclose(child->out);
    }
    while (child->pid > 0 && waitpid(child->pid, &status, 0) < 0 && EINTR == errno) {
    }
    whole = WIFEXITED(status) && (MPICRYPT_OK == WEXITSTATUS(status) || MPICRYPT_MISSING == WEXITSTATUS(status));
    if (!good || 0 == nodes || !whole) {
        ++list->unreached;
        mpicrypt_error(MPICRYPT_MISSING, "%s: it cannot be looked at (%s)", mpicrypt_ps_text(child->name),
                       !good && NULL != child->out ? "what it answers is not from 'mpicrypt ps'"
                       : WIFEXITED(status) && 127 == WEXITSTATUS(status) ? "there is no such program"
                       : 0 == nodes ? "no answer" : "its answer was cut off");
    }
}

static bool own_path(char *path, size_t capacity)
{
    const ssize_t bytes = readlink("/proc/self/exe", path, capacity - 1);

    path[bytes > 0 ? bytes : 0] = '\0';
    return bytes > 0 && NULL == strchr(path, '\'');
}

/* Is a job's name safe for a shell?  Only characters that launchers use. */
static bool is_plain(const char *job)
{
    return NULL == job || strlen(job) == strspn(job, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@._:-");
}

static bool is_this_node(const char *host)
{
    char own[65] = "";

    (void) gethostname(own, sizeof(own) - 1);
    return 0 == strcmp(host, own) || 0 == strcmp(host, "localhost");
}

/* The command that runs `mpicrypt ps --pages` on `host`: by `rsh HOST COMMAND`, as ssh takes it, or by srun. */
static void add_command(mpicrypt_words_t *words, const mpicrypt_ps_way_t *way, const char *host, const char *path, const char *job)
{
    if (NULL == way->slurm) {
        mpicrypt_words_split(words, way->rsh);
        mpicrypt_words_add(words, "%s", host);
    } else {
        /* One step for each node: srun ends a step of several nodes when one of them fails.  The
         * step needs no resources of its own, and gives up if Slurm lets it wait. */
        mpicrypt_words_split(words, "srun --overlap --nodes=1 --ntasks=1 --immediate=10 --mpi=none --chdir=/ "
                                    "--input=none --quiet");
        mpicrypt_words_add(words, "--jobid=%s", way->slurm);
        mpicrypt_words_add(words, "--nodelist=%s", host);
        mpicrypt_words_split(words, "sh -c");
    }
    mpicrypt_words_add(words, "exec '%s' ps --pages %s", path, NULL == job ? "" : job);
}

int mpicrypt_ps_hosts(const mpicrypt_names_t *hosts, const mpicrypt_ps_way_t *way, const char *job, mpicrypt_ps_list_t *list)
{
    char path[4096];
    int rc = MPICRYPT_OK;

    if (!own_path(path, sizeof(path)) || !is_plain(job)) {
        return mpicrypt_error(MPICRYPT_USAGE, "with --host and --slurm the name of a job has letters, digits and @._:- only");
    }
    for (int from = 0; from < hosts->count && MPICRYPT_OK == rc; from += AT_A_TIME) {
        child_t children[AT_A_TIME];
        int count = 0;

        for (int i = from; i < hosts->count && i < from + AT_A_TIME && MPICRYPT_OK == rc; ++i) {
            mpicrypt_words_t words = {NULL, 0};

            if (is_this_node(hosts->value[i])) {
                rc = mpicrypt_ps_node(job, list);
                continue;
            }
            add_command(&words, way, hosts->value[i], path, job);
            (void) start(&children[count++], hosts->value[i], &words);
            mpicrypt_words_free(&words);
        }
        for (int i = 0; i < count; ++i) {
            finish(&children[i], list);
        }
    }
    return rc;
}
