/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Loaded before a program (LD_PRELOAD): a thread that the program does not know of, as a library
 * may make one, is open to every signal, and a child has ended before fork returns.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *wait_for_signals(void *argument)
{
    for (;;) {
        pause();
    }
    return argument;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;

    if (0 != pthread_create(&thread, NULL, wait_for_signals, NULL)) {
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
