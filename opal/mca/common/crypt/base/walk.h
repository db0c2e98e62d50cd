/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Walking along the name of a file, one descriptor a step: each directory and each link belongs to
 * root or to us, and nobody else may write to it.  Only a directory in which nobody can rename what
 * belongs to others (mode 1777, as /tmp) may be open to them.  What was checked is what is used, whatever
 * becomes of the names meanwhile.
 *
 * An access control list needs no look: its entries are limited by the bits of the group, which count here.
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
    /* the caller's */
    const char *path, *what;            /* for messages: the whole name, and what it is of */
    const char *topic, *unsafe;         /* reasons: a step cannot be looked at; it is open to others */
    bool containers;                    /* take unmapped owners: see opal_crypt_unmapped */
    opal_crypt_why_t *why;
    /* how far it came */
    int at;                             /* the directory that was reached, or -1 */
    bool shared, shared_above;          /* others may write to it, too; to any on the way */
    int links;
    int error;                          /* errno of what could not be looked at, or 0 */
    char step[NAME_MAX + 1];            /* behind `at`: what is no directory; "" if all were */
    char rest[PATH_MAX];                /* of the name */
} opal_crypt_walk_t;

/* Along `name`, to its last directory.  OK, or ERR_CONFIG with `why` filled; opal_crypt_walk_end in both cases. */
int opal_crypt_walk(opal_crypt_walk_t *walk, const char *name);
void opal_crypt_walk_end(opal_crypt_walk_t *walk);

/* May others than its owner write to it? */
static inline bool opal_crypt_others_write(const struct stat *status)
{
    return 0 != (status->st_mode & (S_IWGRP | S_IWOTH));
}

/* Refuse what was reached. */
int opal_crypt_walk_errno(opal_crypt_walk_t *walk, int error);

/* Refuse a link or a file in a directory where others, too, may make entries: it could be a second name of
 * another file. */
int opal_crypt_walk_alone(opal_crypt_walk_t *walk, const char *step);

/* In a user namespace all users whom it does not map look alike, root of the node as well as an attacker.  Such an owner
 * is taken for root where nobody else could have made the entry: no directory above it is open to others. */
bool opal_crypt_unmapped(uid_t uid);

#pragma GCC visibility pop

#endif
