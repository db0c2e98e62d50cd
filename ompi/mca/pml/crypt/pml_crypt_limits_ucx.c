/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The limits of UCX over TCP, raised where the user set none.
 *
 * UCX cuts eager messages into pieces of 8 KiB, each with a system call of its own;
 * 128 KiB hold a whole segment.  It reads its settings from the environment while the
 * host opens: they are set for that time only, so that neither the application's own
 * use of UCX nor its children see them.
 *
 * UCX warns about settings that it did not use, so they are made only where it may
 * use TCP.  A receiver with other settings than the sender may have too small a
 * buffer: processes must agree (pml_crypt_start.c).
 */
#include "pml_crypt_host.h"
#include "opal/mca/common/crypt/base/environment.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

#define SEGMENT "131072"

static const char *const names[] = {"TCP_TX_SEG_SIZE", "TCP_RX_SEG_SIZE"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static bool raised;

bool ompi_pml_crypt_limits_ucx_raised(void)
{
    return raised;
}

/* The variable UCX_NAME, or UCX_MPI_NAME, which takes precedence where an MPI uses UCX. */
static const char *setting(const char *name)
{
    char variable[64];
    const char *value;

    snprintf(variable, sizeof(variable), "UCX_MPI_%s", name);
    value = getenv(variable);
    snprintf(variable, sizeof(variable), "UCX_%s", name);
    return NULL != value ? value : getenv(variable);
}

/* May UCX use TCP?  Names of RDMA devices have a port, mlx5_0:1. */
static bool may_use_tcp(void)
{
    const char *transports = setting("TLS"), *devices = setting("NET_DEVICES");

    if (NULL != transports
        && ('^' == transports[0] || (NULL == strstr(transports, "tcp") && NULL == strstr(transports, "all")))) {
        return false;
    }
    for (const char *at = devices; NULL != at && '\0' != *at; at += strspn(at, ",")) {
        size_t length = strcspn(at, ",");

        if (NULL == memchr(at, ':', length)) {
            return true;
        }
        at += length;
    }
    return NULL == devices;
}

/* Does the configuration file in this directory set one of them? */
static bool set_in(const char *directory)
{
    char path[PATH_MAX], *line = NULL;
    bool found = false;
    size_t capacity = 0;
    FILE *file;

    if (NULL == directory || snprintf(path, sizeof(path), "%s/ucx.conf", directory) >= (int) sizeof(path)
        || NULL == (file = fopen(path, "re"))) {
        return false;
    }
    while (!found && getline(&line, &capacity, file) >= 0) {
        for (int i = 0; i < NAMES; i++) {
            const char *at = strstr(line, names[i]);
            found = found || (NULL != at && NULL == memchr(line, '#', (size_t) (at - line)));
        }
    }
    free(line);
    fclose(file);
    return found;
}

static bool set_by_nobody(void)
{
    for (char **variable = environ; NULL != variable && NULL != *variable; variable++) {
        for (int i = 0; i < NAMES; i++) {
            const char *at = 0 == strncmp(*variable, "UCX_", 4) ? strstr(*variable, names[i]) : NULL;

            if (NULL != at && '=' == at[strlen(names[i])]) {
                return false;
            }
        }
    }
    return !set_in("/etc/ucx") && !set_in(getenv("HOME")) && !set_in(getenv("UCX_CONFIG_DIR")) && !set_in(".");
}

void ompi_pml_crypt_limits_ucx_raise(void)
{
    const char *host = ompi_pml_crypt.params.host;
    char variable[64];

    raised = (0 == strcmp(host, "ucx") || 0 == strcmp(host, "auto")) && may_use_tcp() && set_by_nobody();
    for (int i = 0; raised && i < NAMES; i++) {
        snprintf(variable, sizeof(variable), "UCX_%s", names[i]);
        (void) opal_crypt_environment_set(variable, SEGMENT);
    }
}

void ompi_pml_crypt_limits_ucx_restore(const char *host)
{
    char variable[64];

    for (int i = 0; raised && i < NAMES; i++) {
        snprintf(variable, sizeof(variable), "UCX_%s", names[i]);
        (void) opal_crypt_environment_set(variable, NULL);
    }
    raised = raised && 0 == strcmp(host, "ucx");
    if (raised) {
        ompi_common_cryptmpi_report_raised(OMPI_COMMON_CRYPTMPI_RAISED_UCX);
    }
}
