/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Walking through directories.  A directory is opened from the one above it, never through a link, and the files in it
 * are named through its descriptor: /proc/self/fd/N/NAME.  So a directory that is renamed, or replaced by a link,
 * meanwhile leads nobody out of the tree.
 */
#ifndef MPICRYPT_FILE_WALK_H
#define MPICRYPT_FILE_WALK_H

#include <stdbool.h>
#include <sys/types.h>

enum { MPICRYPT_FILE_PLACE_BYTES = 64 };

/* A directory, until the last of its users has left it. */
typedef struct mpicrypt_file_directory mpicrypt_file_directory_t;
struct mpicrypt_file_directory {
    int fd, to_fd;                      /* to_fd: the same in the tree of new files; -1: there is none */
    char *shown, *to_shown;             /* with a slash at the end */
    char place[MPICRYPT_FILE_PLACE_BYTES], to_place[MPICRYPT_FILE_PLACE_BYTES];     /* the same for the system */
};
void mpicrypt_file_directory_hold(mpicrypt_file_directory_t *directory);
void mpicrypt_file_directory_leave(mpicrypt_file_directory_t *directory);       /* NULL allowed */

typedef enum { MPICRYPT_FILE_WALK_FILE, MPICRYPT_FILE_WALK_LINK, MPICRYPT_FILE_WALK_SPECIAL } mpicrypt_file_walk_kind_t;

typedef struct mpicrypt_file_walk {
    const char *to;                     /* the directory of new files; NULL: none */
    bool private_to;                    /* directories that are made there are for their owner only */
    void *arg;
    /* A name that is no directory.  False: stop. */
    bool (*found)(void *arg, mpicrypt_file_directory_t *directory, const char *name, mpicrypt_file_walk_kind_t kind);
    /* A directory that cannot be read or made, after its name for people; errno. */
    void (*failed)(void *arg, const char *shown, int error);
} mpicrypt_file_walk_t;

/* Everything below the directory `path`.  In each directory names are sorted, and files come first. */
void mpicrypt_file_walk(const mpicrypt_file_walk_t *walk, const char *path);

/* The last component of a path, malloc'd; empty if that is ".", ".." or the root. */
char *mpicrypt_file_last_name(const char *path);

#endif
