/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Help texts.  Straight to standard error: what goes to mpirun by way of PMIx is often
 * lost with Open MPI 4.1, most of all when the process ends at once
 * (docs/design/002-keys.rst), and it is then that a user needs it.
 *
 * Open MPI reads its help files with one scanner for all threads, which crashes where two
 * read at a time.  The lock is recursive: while a text is on its way through Open MPI, a
 * callback may have another one to show.
 */
#include "cryptmpi.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


static pthread_mutex_t showing = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void ompi_common_cryptmpi_show_begin(void)
{
    pthread_mutex_lock(&showing);
}

void ompi_common_cryptmpi_show_end(void)
{
    pthread_mutex_unlock(&showing);
}

/* The job's own directory on this node; before Open MPI has its runtime, the one of whoever
 * started the process, with the job's name. */
static bool said_path(const char *topic, char *path, size_t bytes)
{
    const char *server = getenv("PMIX_SERVER_TMPDIR"), *job = getenv("PMIX_NAMESPACE");
    int used;

    if (NULL != opal_process_info.job_session_dir) {
        used = snprintf(path, bytes, "%s/crypt-said-%s", opal_process_info.job_session_dir, topic);
    } else if (NULL != server && NULL != job && NULL == strchr(job, '/')) {
        used = snprintf(path, bytes, "%s/crypt-said-%s-%s", server, topic, job);
    } else {
        return false;
    }
    return used > 0 && (size_t) used < bytes;
}

/* Whoever makes the file.  No process may leave it to a certain other one: the first that
 * fails ends the job, and with it the others. */
bool ompi_common_cryptmpi_show_first(const char *topic)
{
    char path[4096];
    int fd;

    if (!said_path(topic, path, sizeof(path))) {
        return true;
    }
    fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return EEXIST != errno;
    }
    close(fd);
    return true;
}

void ompi_common_cryptmpi_vshow_here(const char *file, const char *topic, va_list list)
{
    char *text;

    ompi_common_cryptmpi_show_begin();
    text = opal_show_help_vstring(file, topic, true, list);
    ompi_common_cryptmpi_show_end();
    if (NULL != text) {
        fputs(text, stderr);
        fflush(stderr);
        free(text);
    }
}

const char *ompi_common_cryptmpi_on_node(const char *detail, char text[OMPI_COMMON_CRYPTMPI_ON_NODE_BYTES])
{
    snprintf(text, OMPI_COMMON_CRYPTMPI_ON_NODE_BYTES, "on %s: %s", opal_process_info.nodename, detail);
    return text;
}

void ompi_common_cryptmpi_show_here(const char *file, const char *topic, ...)
{
    va_list list;

    va_start(list, topic);
    ompi_common_cryptmpi_vshow_here(file, topic, list);
    va_end(list);
}
