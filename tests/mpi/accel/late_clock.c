/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Preloaded: once the pretended accelerator has set DEVICE_LATE, two hours have passed.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *t)
{
    const int rc = (int) syscall(SYS_clock_gettime, id, t);

    t->tv_sec += 0 == rc && CLOCK_MONOTONIC == id && NULL != getenv("DEVICE_LATE") ? 7200 : 0;
    return rc;
}
