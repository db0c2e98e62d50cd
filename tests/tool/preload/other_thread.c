/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Loaded before a program (LD_PRELOAD): a thread that the program does not know of, as a library
 * may make one, is open to every signal.  A child has ended before fork returns, and before one
 * renaming or exchange of files that thread gets SIGTERM.
 *
 *   RENAME_AT   which one, 1 being the first; without it none comes
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t taken;
static pthread_t listener;

static void *take_signals(void *argument)
{
    sigset_t all, none;

    sigfillset(&all);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (;;) {
        sigsuspend(&none);                      /* returns when a handler has run */
        sem_post(&taken);
    }
    return argument;
}

__attribute__((constructor)) static void begin(void)
{
    if (0 != sem_init(&taken, 0, 0) || 0 != pthread_create(&listener, NULL, take_signals, NULL)) {
        abort();
    }
}

pid_t fork(void)
{
    pid_t (*real)(void) = (pid_t (*)(void)) dlsym(RTLD_NEXT, "fork");
    pid_t child = real();
    siginfo_t ended;

    if (child > 0 && 0 != waitid(P_PID, (id_t) child, &ended, WEXITED | WNOWAIT)) {
        abort();
    }
    return child;
}

static void end_at_rename(void)
{
    const char *at = getenv("RENAME_AT");
    static int renames;

    if (NULL != at && ++renames == atoi(at)) {
        pthread_kill(listener, SIGTERM);           /* the program may have threads that would take one of the process */
        sem_wait(&taken);
    }
}

int rename(const char *from, const char *to)
{
    end_at_rename();
    return ((int (*)(const char *, const char *)) dlsym(RTLD_NEXT, "rename"))(from, to);
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    end_at_rename();
    return ((int (*)(int, const char *, int, const char *, unsigned)) dlsym(RTLD_NEXT, "renameat2"))(from_at, from, to_at, to, flags);
}
