/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a process says, for the programs here.
 */
#ifndef SAID_H
#define SAID_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/mca/btl/crypt/btl_crypt.h"

#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            printf("%s:%d: %s\n%s\n", __FILE__, __LINE__, #condition, said());  \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

static FILE *heard;

static void listen_to_stderr(void)
{
    heard = tmpfile();
    if (NULL == heard || dup2(fileno(heard), 2) < 0) {
        exit(1);
    }
}

static const char *said(void)
{
    static char text[8192];
    const ssize_t bytes = pread(fileno(heard), text, sizeof(text) - 1, 0);

    text[bytes > 0 ? bytes : 0] = '\0';
    return text;
}

static bool says(const char *words)
{
    return NULL != strstr(said(), words);
}

static void hear_anew(void)
{
    (void) !ftruncate(fileno(heard), 0);
    (void) lseek(fileno(heard), 0, SEEK_SET);
}

#if OPAL_MAJOR_VERSION >= 5
static char *elsewhere(const opal_proc_t *proc)
{
    static char name[] = "elsewhere";

    return name;
}
#endif

static opal_proc_t *proc_elsewhere(void)
{
    opal_proc_t *proc = OBJ_NEW(opal_proc_t);

#if OPAL_MAJOR_VERSION >= 5
    opal_get_proc_hostname = elsewhere;
#else
    proc->proc_hostname = strdup("elsewhere");
#endif
    return proc;
}

#endif
