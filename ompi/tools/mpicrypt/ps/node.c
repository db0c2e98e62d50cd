/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt ps: the status pages of this node.
 *
 * A user sees his own, root all of them, and trusts none (crypt/base/status_read.c).  The page of a
 * process that is gone stays while others of its job run here: it shows which one is missing.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ps.h"

void mpicrypt_ps_add(mpicrypt_ps_list_t *list, const opal_crypt_status_process_t *process)
{
    if (list->count == list->capacity) {
        list->capacity = 0 == list->capacity ? 64 : 2 * list->capacity;
        list->processes = mpicrypt_checked(realloc(list->processes, (size_t) list->capacity * sizeof(*list->processes)));
    }
    list->processes[list->count++] = *process;
}

static bool is_page(const char *name)
{
    return 0 == strncmp(name, OPAL_CRYPT_STATUS_PREFIX, sizeof(OPAL_CRYPT_STATUS_PREFIX) - 1);
}

static bool is_of_another_user(const char *name)
{
    const unsigned long uid = strtoul(name + sizeof(OPAL_CRYPT_STATUS_PREFIX) - 1, NULL, 10);

    return 0 != geteuid() && geteuid() != (uid_t) uid;
}

/* `names`: the pages' names, in the order of the list. */
static void read_all(DIR *directory, const char *job, mpicrypt_ps_list_t *list, mpicrypt_names_t *names)
{
    opal_crypt_status_process_t process;
    const struct dirent *entry;
    char why[256];

    while (NULL != (entry = readdir(directory))) {
        opal_crypt_status_rc_t rc;

        if (!is_page(entry->d_name) || is_of_another_user(entry->d_name)) {
            continue;
        }
        rc = opal_crypt_status_read(dirfd(directory), entry->d_name, &process, why, sizeof(why));
        if (OPAL_CRYPT_STATUS_BAD == rc && process.gone && 0 == process.who.magic) {
            (void) unlinkat(dirfd(directory), entry->d_name, 0);
        } else if (OPAL_CRYPT_STATUS_BAD == rc) {
            ++list->refused;
            mpicrypt_error(MPICRYPT_FAILED, "%s/%s: this page is refused: %s", OPAL_CRYPT_STATUS_DIRECTORY,
                           mpicrypt_ps_text(entry->d_name), mpicrypt_ps_text(why));
        } else if (OPAL_CRYPT_STATUS_GOOD == rc && (NULL == job || NULL != strstr(process.who.job, job))) {
            mpicrypt_ps_add(list, &process);
            mpicrypt_names_add(names, strdup(entry->d_name));
        }
    }
}

static bool any_running(const mpicrypt_ps_list_t *list, const opal_crypt_status_who_t *who)
{
    for (int i = 0; i < list->count; ++i) {
        const opal_crypt_status_process_t *s = &list->processes[i];

        if (!s->gone && s->who.uid == who->uid && 0 == strcmp(s->who.job, who->job)) {
            return true;
        }
    }
    return false;
}

static void remove_stale(int directory, mpicrypt_ps_list_t *list, const mpicrypt_names_t *names)
{
    int kept = 0;

    for (int i = 0; i < list->count; ++i) {
        if (list->processes[i].gone && !any_running(list, &list->processes[i].who)) {
            (void) unlinkat(directory, names->value[i], 0);
            list->processes[i].who.job[0] = '\0';   /* of no job */
        }
    }
    for (int i = 0; i < list->count; ++i) {
        if ('\0' != list->processes[i].who.job[0]) {
            list->processes[kept++] = list->processes[i];
        }
    }
    list->count = kept;
}

int mpicrypt_ps_node(const char *job, mpicrypt_ps_list_t *list)
{
    mpicrypt_ps_list_t here = {0};
    mpicrypt_names_t names = {0};
    DIR *directory = opendir(OPAL_CRYPT_STATUS_DIRECTORY);

    if (NULL == directory) {
        return mpicrypt_error(MPICRYPT_MISSING, "%s: %s", OPAL_CRYPT_STATUS_DIRECTORY, strerror(errno));
    }
    read_all(directory, job, &here, &names);
    remove_stale(dirfd(directory), &here, &names);
    for (int i = 0; i < here.count; ++i) {
        mpicrypt_ps_add(list, &here.processes[i]);
    }
    list->refused += here.refused;
    free(here.processes);
    mpicrypt_names_free(&names);
    closedir(directory);
    return MPICRYPT_OK;
}
