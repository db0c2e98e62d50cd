/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * To be loaded before a process: a text that begins with ERROR reaches standard error late, so that
 * the others of the node have their time to end the job before.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef int fputs_t(const char *, FILE *);

int fputs(const char *text, FILE *stream)
{
    fputs_t *real = (fputs_t *) dlsym(RTLD_NEXT, "fputs");

    if (stderr == stream && NULL != strstr(text, "ERROR: ")) {
        sleep(3);
    }
    return real(text, stream);
}
