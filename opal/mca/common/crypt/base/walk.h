/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Walking along a file's path, one descriptor per step: each directory and each link belongs to root or to us, and
 * nobody else may write to it.  Only a directory in which users cannot rename each other's entries (mode 1777, like
 * /tmp) may be writable by others.  What was checked is what is used, even if the names change meanwhile.
 *
 * An access control list need not be checked: its entries are limited by the group bits, which count here.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPT_BASE_WALK_H
#define OPAL_CRYPT_BASE_WALK_H

#include "base.h"

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

#pragma GCC visibility push(default)

typedef struct opal_crypt_walk {
    /* set by the caller */
    const char *path, *what;            /* for messages: the whole name, and the kind of file */
    const char *topic, *unsafe;         /* reasons: a step cannot be examined; others may write to it */
    bool containers;                    /* accept unmapped owners: see opal_crypt_unmapped */
    opal_crypt_why_t *why;
    /* how far the walk came */
    int at;                             /* the directory reached, or -1 */
    bool shared, shared_above;          /* others may write to it; to any directory on the way */
    int links;
    int error;                          /* errno of what could not be examined, or 0 */
    char step[NAME_MAX + 1];            /* the entry of `at` that is not a directory; "" if all were */
    char rest[PATH_MAX];                /* the unresolved rest of the name */
} opal_crypt_walk_t;

/* Walk along `name` to its last directory.  OK, or ERR_CONFIG with `why` filled; call walk_end in both cases. */
int opal_crypt_walk(opal_crypt_walk_t *walk, const char *name);
void opal_crypt_walk_end(opal_crypt_walk_t *walk);

/* May users other than its owner write to it? */
static inline bool opal_crypt_others_write(const struct stat *status)
{
    return 0 != (status->st_mode & (S_IWGRP | S_IWOTH));
}

/* Refuse the entry reached. */
int opal_crypt_walk_errno(opal_crypt_walk_t *walk, int error);

/* Refuse a link or a file in a directory where others may create entries: it could be a second name (hard link) of
 * another file. */
int opal_crypt_walk_alone(opal_crypt_walk_t *walk, const char *step);

/* In a user namespace all unmapped users look alike, root of the node as well as an attacker.  Such an owner is taken
 * for root if nobody else can have made the entry: no directory above it is writable by others. */
bool opal_crypt_unmapped(uid_t uid);

#pragma GCC visibility pop

#endif
