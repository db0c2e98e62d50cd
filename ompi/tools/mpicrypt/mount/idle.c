/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Opened files that no program has open any more.  They stay open for the next program: a limited number, and for some
 * seconds, because `mpicrypt file rekey` and the like need a file that nobody has open.
 */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "mount.h"

enum { IDLE_CONTENTS = 64, IDLE_SECONDS = 5 };

static struct {
    mpicrypt_mount_content_t *first, *last;                 /* the first has been idle for longest */
    unsigned count;
    bool over;
    pthread_t closer;
    pthread_cond_t end;
} idle;

static time_t seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* ---- with the mutex ---- */

void mpicrypt_mount_idle_remove(mpicrypt_mount_content_t *content)
{
    *(NULL == content->before ? &idle.first : &content->before->after) = content->after;
    *(NULL == content->after ? &idle.last : &content->after->before) = content->before;
    content->before = content->after = NULL;
    --idle.count;
}

mpicrypt_mount_content_t *mpicrypt_mount_detach(mpicrypt_mount_node_t *node)
{
    mpicrypt_mount_content_t *content = node->content;

    if (NULL == content) {
        return NULL;
    }
    node->content = NULL;
    content->node = NULL;
    if (0 != content->uses) {
        return NULL;                    /* its last user closes it */
    }
    mpicrypt_mount_idle_remove(content);
    return content;
}

mpicrypt_mount_content_t *mpicrypt_mount_idle_add(mpicrypt_mount_content_t *content)
{
    mpicrypt_mount_content_t *oldest = NULL;

    content->before = idle.last;
    content->after = NULL;
    content->idle_since = seconds_now();
    *(NULL == idle.last ? &idle.first : &idle.last->after) = content;
    idle.last = content;
    if (++idle.count > IDLE_CONTENTS) {
        oldest = mpicrypt_mount_detach(idle.first->node);
    }
    return oldest;
}

/* ---- the thread that closes them ---- */

static void *close_idle(void *arg)
{
    struct timespec until;

    pthread_mutex_lock(&mpicrypt_mount_mutex);
    while (!idle.over) {
        if (NULL != idle.first && seconds_now() - idle.first->idle_since >= IDLE_SECONDS) {
            mpicrypt_mount_content_t *oldest = mpicrypt_mount_detach(idle.first->node);
            pthread_mutex_unlock(&mpicrypt_mount_mutex);
            mpicrypt_mount_close(oldest);
            pthread_mutex_lock(&mpicrypt_mount_mutex);
            continue;
        }
        clock_gettime(CLOCK_MONOTONIC, &until);
        ++until.tv_sec;
        (void) pthread_cond_timedwait(&idle.end, &mpicrypt_mount_mutex, &until);
    }
    pthread_mutex_unlock(&mpicrypt_mount_mutex);
    return arg;
}

int mpicrypt_mount_idle_begin(void)
{
    pthread_condattr_t attributes;
    sigset_t all, before;

    if (0 != pthread_condattr_init(&attributes) || 0 != pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        || 0 != pthread_cond_init(&idle.end, &attributes)) {
        return ENOMEM;
    }
    sigfillset(&all);                   /* the main thread handles signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&idle.closer, NULL, close_idle, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void mpicrypt_mount_idle_end(void)
{
    pthread_mutex_lock(&mpicrypt_mount_mutex);
    idle.over = true;
    pthread_cond_signal(&idle.end);
    pthread_mutex_unlock(&mpicrypt_mount_mutex);
    pthread_join(idle.closer, NULL);
}
