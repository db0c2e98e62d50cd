/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Signals while a command runs (mpicrypt_signals.h).  A terminal sends a signal to the
 * whole group, and so to the command, too; a second one would make mpirun leave its
 * processes behind.  So only a signal to this process alone is forwarded.
 */
#include "mpicrypt_signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static const int fatal[] = {SIGINT, SIGTERM, SIGHUP};
enum { FATAL_COUNT = sizeof(fatal) / sizeof(fatal[0]) };

static struct sigaction before[FATAL_COUNT];
static sigset_t mask_before;
static volatile sig_atomic_t caught;
static _Atomic pid_t running = -1;
static atomic_int unsaid;                       /* to the child; sent once, even if a library's thread takes it */

static void hand_on_to(pid_t child)
{
    int number = child > 0 ? atomic_exchange(&unsaid, 0) : 0;

    if (0 != number) {
        (void) kill(child, number);
    }
}

static void hand_on(int number, siginfo_t *info, void *context)
{
    (void) context;
    caught = number;
    if (SI_USER == info->si_code || SI_TKILL == info->si_code || SI_QUEUE == info->si_code) {
        unsaid = number;
        hand_on_to(running);
    }
}

void mpicrypt_signals_hold(void)
{
    struct sigaction action = {.sa_sigaction = hand_on, .sa_flags = SA_SIGINFO};

    sigemptyset(&action.sa_mask);
    for (int i = 0; i < FATAL_COUNT; ++i) {
        sigaddset(&action.sa_mask, fatal[i]);
    }
    sigprocmask(SIG_BLOCK, &action.sa_mask, &mask_before);
    for (int i = 0; i < FATAL_COUNT; ++i) {
        sigaction(fatal[i], NULL, &before[i]);
        if (SIG_IGN != before[i].sa_handler) {                  /* nohup */
            sigaction(fatal[i], &action, NULL);
        }
    }
}

void mpicrypt_signals_over(void)
{
    running = -1;
    for (int i = 0; i < FATAL_COUNT; ++i) {
        sigaction(fatal[i], &before[i], NULL);
    }
}

void mpicrypt_signals_child(void)
{
    mpicrypt_signals_over();
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

void mpicrypt_signals_parent(pid_t child)
{
    running = child;
    hand_on_to(child);
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

bool mpicrypt_signals_caught(void)
{
    return 0 != caught;
}

void mpicrypt_signals_finish(void)
{
    if (0 != caught) {
        signal(caught, SIG_DFL);
        raise(caught);
    }
}
