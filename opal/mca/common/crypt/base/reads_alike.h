/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Could another process read here what this one can?  Answered by the kernel, not by that process.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPT_BASE_READS_ALIKE_H
#define OPAL_CRYPT_BASE_READS_ALIKE_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* Nanoseconds since this machine was booted, also while it slept. */
uint64_t opal_crypt_since_boot(void);

/* Has the process that connected this Unix socket, or listens at its other end, the same user, groups, capabilities, root
 * directory (on the same mount), mount and user namespace, security label and seccomp mode as the calling thread?  It must have begun
 * before the time `before`, from opal_crypt_since_boot, at which the socket did not exist yet.  False, too, if that cannot be found out,
 * and for processes with no_new_privs. */
bool opal_crypt_reads_alike(int connection, uint64_t before);

#pragma GCC visibility pop

#endif
