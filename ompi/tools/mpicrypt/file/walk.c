/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Walking through directories (walk.h).  The names of a directory are read before the first of its files is worked on, so
 * that what the work creates there is not found.  So memory holds the names of one directory, and of the directories
 * beside those that lead to it; and a descriptor is open for each of these.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "walk.h"

enum { OPEN_DIRECTORY = O_RDONLY | O_DIRECTORY | O_CLOEXEC };

/* ---- directories ---- */

typedef struct held_directory {
    mpicrypt_file_directory_t super;
    atomic_uint users;
} held_directory_t;

void mpicrypt_file_directory_hold(mpicrypt_file_directory_t *directory)
{
    (void) atomic_fetch_add(&((held_directory_t *) directory)->users, 1);
}

void mpicrypt_file_directory_leave(mpicrypt_file_directory_t *directory)
{
    if (NULL == directory || 1 != atomic_fetch_sub(&((held_directory_t *) directory)->users, 1)) {
        return;
    }
    close(directory->fd);
    if (directory->to_fd >= 0) {
        close(directory->to_fd);
    }
    free(directory->shown);
    free(directory->to_shown);
    free(directory);
}

static void place_of(int fd, char place[MPICRYPT_FILE_PLACE_BYTES])
{
    snprintf(place, MPICRYPT_FILE_PLACE_BYTES, "/proc/self/fd/%d/", fd);
}

/* "ABOVE/NAME/"; NULL: no memory. */
static char *joined(const char *above, const char *name)
{
    char *text;
    const size_t bytes = strlen(name);

    return asprintf(&text, "%s%s%s", above, name, bytes > 0 && '/' == name[bytes - 1] ? "" : "/") < 0 ? NULL : text;
}

/* Takes the descriptors, and the names, of which none may be NULL without an error. */
static mpicrypt_file_directory_t *directory_new(int fd, int to_fd, char *shown, char *to_shown)
{
    held_directory_t *made = calloc(1, sizeof(*made));

    if (NULL == made || NULL == shown || (to_fd >= 0 && NULL == to_shown)) {
        free(made);
        free(shown);
        free(to_shown);
        close(fd);
        if (to_fd >= 0) {
            close(to_fd);
        }
        errno = ENOMEM;
        return NULL;
    }
    made->super = (mpicrypt_file_directory_t){.fd = fd, .to_fd = to_fd, .shown = shown, .to_shown = to_shown};
    place_of(fd, made->super.place);
    place_of(to_fd, made->super.to_place);
    atomic_init(&made->users, 1);
    return &made->super;
}

/* The directory of that name in the tree of new files: made, if it is missing.  -1: errno. */
static int open_to(const mpicrypt_file_walk_t *walk, int at, const char *name, int flags)
{
    const mode_t mode = walk->private_to ? 0700 : 0777;

    return 0 == mkdirat(at, name, mode) || EEXIST == errno ? openat(at, name, OPEN_DIRECTORY | flags) : -1;
}

char *mpicrypt_file_last_name(const char *path)
{
    size_t end = strlen(path), begin;

    while (end > 1 && '/' == path[end - 1]) {
        --end;
    }
    for (begin = end; begin > 0 && '/' != path[begin - 1]; --begin) {
    }
    char *name = strndup(path + begin, end - begin);
    if (NULL != name && (0 == strcmp(name, ".") || 0 == strcmp(name, "..") || 0 == strcmp(name, "/"))) {
        *name = '\0';
    }
    return name;
}

/* ---- the names in a directory ---- */

static int is_below(const struct dirent *entry) { return 0 != strcmp(entry->d_name, ".") && 0 != strcmp(entry->d_name, ".."); }

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

/* ---- walking ---- */

typedef struct walker {
    const mpicrypt_file_walk_t *walk;
    bool stopped;
    struct stat to;                     /* of the tree of new files, which is not walked through */
} walker_t;

static void report(const walker_t *walker, const mpicrypt_file_directory_t *directory, const char *name)
{
    int error = errno;
    char *shown = joined(directory->shown, name);

    walker->walk->failed(walker->walk->arg, NULL == shown ? directory->shown : shown, error);
    free(shown);
}

static void walk_directory(walker_t *walker, mpicrypt_file_directory_t *directory);

static void enter(walker_t *walker, mpicrypt_file_directory_t *above, const char *name)
{
    struct stat status;
    int fd = openat(above->fd, name, OPEN_DIRECTORY | O_NOFOLLOW), to_fd = -1;

    if (fd < 0 || 0 != fstat(fd, &status)) {
        report(walker, above, name);
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    if (above->to_fd >= 0 && status.st_dev == walker->to.st_dev && status.st_ino == walker->to.st_ino) {
        close(fd);
        return;
    }
    if (above->to_fd >= 0) {
        to_fd = open_to(walker->walk, above->to_fd, name, O_NOFOLLOW);
        if (to_fd < 0) {
            report(walker, above, name);
            close(fd);
            return;
        }
    }
    mpicrypt_file_directory_t *directory = directory_new(fd, to_fd, joined(above->shown, name),
                                                         to_fd < 0 ? NULL : joined(above->to_shown, name));
    if (NULL == directory) {
        report(walker, above, name);
        return;
    }
    walk_directory(walker, directory);
    mpicrypt_file_directory_leave(directory);
}

/* The files of a directory; the entries of its directories stay, and their number is returned. */
static int walk_files(walker_t *walker, mpicrypt_file_directory_t *directory, struct dirent **entries, int count)
{
    const mpicrypt_file_walk_t *walk = walker->walk;
    int directories = 0;

    for (int i = 0; i < count; ++i) {
        struct stat status;
        struct dirent *entry = entries[i];
        if (walker->stopped) {
            free(entry);
            continue;
        }
        if (0 != fstatat(directory->fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW)) {
            if (ENOENT != errno) {      /* deleted since */
                report(walker, directory, entry->d_name);
            }
        } else if (S_ISDIR(status.st_mode)) {
            entries[directories++] = entry;
            continue;
        } else {
            walker->stopped = !walk->found(walk->arg, directory, entry->d_name, S_ISREG(status.st_mode) ? MPICRYPT_FILE_WALK_FILE
                                           : S_ISLNK(status.st_mode) ? MPICRYPT_FILE_WALK_LINK : MPICRYPT_FILE_WALK_SPECIAL);
        }
        free(entry);
    }
    return directories;
}

static void walk_directory(walker_t *walker, mpicrypt_file_directory_t *directory)
{
    struct dirent **entries;
    int count = scandirat(directory->fd, ".", &entries, is_below, by_name);

    if (count < 0) {
        report(walker, directory, "");
        return;
    }
    count = walk_files(walker, directory, entries, count);
    for (int i = 0; i < count; ++i) {
        if (!walker->stopped) {
            enter(walker, directory, entries[i]->d_name);
        }
        free(entries[i]);
    }
    free(entries);
}

/* As `cp -r`: below the last name of `path`, unless it has none, as "." */
static int open_first_to(walker_t *walker, const char *path, char **shown)
{
    const mpicrypt_file_walk_t *walk = walker->walk;
    char *name = mpicrypt_file_last_name(path), *above = joined("", walk->to);
    int fd = open_to(walk, AT_FDCWD, walk->to, 0);

    *shown = NULL == name || NULL == above ? NULL : '\0' == *name ? strdup(above) : joined(above, name);
    if (fd >= 0 && 0 == fstat(fd, &walker->to) && NULL != name && '\0' != *name) {
        int below = open_to(walk, fd, name, O_NOFOLLOW), error = errno;
        close(fd);
        errno = error;
        fd = below;
    }
    free(name);
    free(above);
    return fd;
}

void mpicrypt_file_walk(const mpicrypt_file_walk_t *walk, const char *path)
{
    walker_t walker = {.walk = walk};
    char *to_shown = NULL;
    int fd = open(path, OPEN_DIRECTORY), to_fd = -1;

    if (fd >= 0 && NULL != walk->to) {
        to_fd = open_first_to(&walker, path, &to_shown);
        if (to_fd < 0) {
            int error = errno;
            close(fd);
            free(to_shown);
            walk->failed(walk->arg, walk->to, error);
            return;
        }
    }
    mpicrypt_file_directory_t *directory = fd < 0 ? NULL : directory_new(fd, to_fd, joined("", path), to_shown);
    if (NULL == directory) {
        walk->failed(walk->arg, path, errno);
        return;
    }
    walk_directory(&walker, directory);
    mpicrypt_file_directory_leave(directory);
}
