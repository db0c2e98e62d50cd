/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a process reports: help texts, and verbose streams (crypt_verbose).  Both name processes, methods, algorithms,
 * lengths and counts, and never a key or payload.
 *
 * Help texts go straight to standard error: with Open MPI 4.1 what goes to mpirun through PMIx is often lost,
 * especially when the process ends at once (docs/design/002-keys.rst), which is when a user needs it.
 *
 * Open MPI reads its help files with one scanner for all threads, which crashes if two read at a time.  The lock is
 * recursive: while Open MPI handles a text, a callback may have another one to show.
 */
#include "cryptproc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/common/crypt/base/text.h"

/* ---- help texts ---- */

static pthread_mutex_t showing = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void opal_cryptproc_show_begin(void)
{
    pthread_mutex_lock(&showing);
}

void opal_cryptproc_show_end(void)
{
    pthread_mutex_unlock(&showing);
}

/* In the job's own directory on this node; before Open MPI has its runtime, in the launcher's (PMIX_SERVER_TMPDIR),
 * with the job's name. */
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

enum { SAID = -1, ALONE = -2 };

static bool was_said(int fd)
{
    struct stat status;

    return 0 == fstat(fd, &status) && status.st_size > 0;
}

/* Should this process show the text?  The file is locked while a process shows it, and not empty afterwards.  No
 * process may leave it to a particular other one, or go on before it is shown: the first that fails ends the job, and
 * with it the others.  Returns a file, SAID, or ALONE: no coordination is possible.  If files cannot be locked, the
 * process that made the file shows it. */
static int turn_begin(const char *name)
{
    const int how = O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
    char path[4096];
    bool made;
    int fd;

    if (!said_path(name, path, sizeof(path))) {
        return ALONE;
    }
    fd = open(path, how | O_EXCL, 0600);
    made = fd >= 0;
    if (!made && EEXIST == errno) {
        fd = open(path, how, 0600);
    }
    if (fd < 0) {
        return ALONE;
    }
    while (!was_said(fd) && 0 != flock(fd, LOCK_EX)) {
        if (EINTR != errno) {
            close(fd);
            return made ? ALONE : SAID;
        }
    }
    if (was_said(fd)) {
        (void) flock(fd, LOCK_UN);
        close(fd);
        return SAID;
    }
    return fd;
}

/* Unlock at once: a child forked meanwhile has the file open too. */
static void turn_end(int fd)
{
    if (ALONE != fd) {
        (void) !ftruncate(fd, 1);
        (void) flock(fd, LOCK_UN);
        close(fd);
    }
}

void opal_cryptproc_vshow_here(const char *file, const char *topic, va_list list)
{
    char *text;

    opal_cryptproc_show_begin();
    text = opal_aead_base_help_vstring(file, topic, true, list);
    opal_cryptproc_show_end();
    if (NULL != text) {
        fputs(opal_crypt_harmless(text, "\n\t"), stderr);       /* it may contain a file name */
        fflush(stderr);
        free(text);
    }
}

bool opal_cryptproc_vshow_once(const char *name, const char *file, const char *topic, va_list list)
{
    int turn;

    opal_cryptproc_show_begin();        /* before the file's lock, as in a callback Open MPI's is held already */
    turn = turn_begin(name);
    if (SAID != turn) {
        opal_cryptproc_vshow_here(file, topic, list);
        turn_end(turn);
    }
    opal_cryptproc_show_end();
    return SAID != turn;
}

bool opal_cryptproc_show_once(const char *file, const char *topic, ...)
{
    va_list list;
    bool first;

    va_start(list, topic);
    first = opal_cryptproc_vshow_once(topic, file, topic, list);
    va_end(list);
    return first;
}

const char *opal_cryptproc_on_node(const char *detail, char text[OPAL_CRYPTPROC_ON_NODE_BYTES])
{
    snprintf(text, OPAL_CRYPTPROC_ON_NODE_BYTES, "on %s: %s", opal_process_info.nodename, detail);
    return text;
}

void opal_cryptproc_show_here(const char *file, const char *topic, ...)
{
    va_list list;

    va_start(list, topic);
    opal_cryptproc_vshow_here(file, topic, list);
    va_end(list);
}

/* ---- verbose streams ---- */

int opal_cryptproc_stream = -1;

int opal_cryptproc_verbose_open(void)
{
    const unsigned level = opal_cryptproc_params.verbose;
    int stream = level > 0 ? opal_output_open(NULL) : -1;

    if (stream >= 0) {
        opal_output_set_verbosity(stream, level < 100 ? (int) level : 100);
    }
    return stream;
}

void opal_cryptproc_verbose_close(int *stream)
{
    if (*stream >= 0) {
        opal_output_close(*stream);
    }
    *stream = -1;
}
