/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The temporary name of the file that encrypt, decrypt, cp and reencrypt create, beside its final place:
 *
 *     begin       TO.0123456789abcdef.part
 *     finish      renamed to TO, never over an existing file
 *     over        exchanged for TO, if that is still the file that was copied
 *     drop, or a signal that ends the command: deleted
 *
 * TO is complete or absent; a command killed by SIGKILL leaves a file whose name says
 * what it is.
 *
 * A signal may be delivered to a thread of a library, even if it is blocked here.  So deleting (by the
 * handler) and renaming exclude each other through the variable `doing`.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "opal/mca/common/crypt/base/secmem.h"

enum { BASE_MAX = 200 };                /* of TO's name, so that the part's name is not too long */

static const int fatal[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU, SIGXFSZ};
enum { FATAL_COUNT = sizeof(fatal) / sizeof(fatal[0]) };

static char part[PATH_MAX];
static struct sigaction before[FATAL_COUNT];
enum { WORKS, RENAMES, DELETES };
static atomic_int doing, noted;

/* The file at `part` is another's: never delete it. */
static bool is_theirs;

static void remove_part(int signal_number)
{
    int works = WORKS;

    if (atomic_compare_exchange_strong(&doing, &works, DELETES)) {
        (void) unlink(part);
        (void) signal(signal_number, SIG_DFL);
        (void) raise(signal_number);            /* delivered when this returns */
    } else if (RENAMES == works) {
        atomic_store(&noted, signal_number);
    }
}

static void fatal_set(sigset_t *set)
{
    sigemptyset(set);
    for (int i = 0; i < FATAL_COUNT; ++i) {
        sigaddset(set, fatal[i]);
    }
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = remove_part, .sa_flags = SA_RESTART};

    fatal_set(&action.sa_mask);
    for (int i = 0; i < FATAL_COUNT; ++i) {
        sigaction(fatal[i], NULL, &before[i]);
        if (SIG_IGN != before[i].sa_handler) {                  /* keeps nohup working */
            sigaction(fatal[i], &action, NULL);
        }
    }
}

static void leave_signals(void)
{
    for (int i = 0; i < FATAL_COUNT; ++i) {
        sigaction(fatal[i], &before[i], NULL);
    }
}

int mpicrypt_file_begin_over(const char *to, const char **name)
{
    const char *slash = strrchr(to, '/'), *base = NULL == slash ? to : slash + 1;
    uint64_t number;

    opal_crypt_random(&number, sizeof(number));
    int bytes = snprintf(part, sizeof(part), "%.*s%.*s.%016llx.part", (int) (base - to), to, BASE_MAX, base,
                         (unsigned long long) number);
    if (bytes < 0 || bytes >= (int) sizeof(part)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", to, strerror(ENAMETOOLONG));
    }
    is_theirs = false;
    atomic_store(&doing, WORKS);
    catch_signals();
    *name = part;
    return MPICRYPT_OK;
}

int mpicrypt_file_begin(const char *to, const char **name)
{
    struct stat status;
    int unknown;

    if (0 == lstat(to, &status)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", to, strerror(EEXIST));
    }
    if (NULL != ompi_common_cryptmpio_is_old(to, &unknown)) {   /* a plain TO would be refused */
        return 0 != unknown ? mpicrypt_error(MPICRYPT_FAILED, "%s.mpicrypt: %s", to, strerror(unknown)) : mpicrypt_error(MPICRYPT_FAILED, "%s.mpicrypt: it belongs to a file that a development version encrypted: delete it first",
                              to);
    }
    return mpicrypt_file_begin_over(to, name);
}

void mpicrypt_file_drop(void)
{
    (void) unlink(part);
    leave_signals();
}

static int rename_part(const char *to)
{
    return 0 == ompi_common_cryptmpio_posix_rename(part, to) ? MPICRYPT_OK
           : mpicrypt_error(MPICRYPT_FAILED, "%s to %s: %s", part, to, strerror(errno));
}

/* ---- over the file that was copied ---- */

static const struct stat *copied;               /* what is replaced, before it was read */

/* Renaming a file changes its ctime.  When a name is opened, NFS asks the server what has it. */
static bool is_what_was_copied(const char *path)
{
    struct stat now;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    bool is = fd >= 0 && 0 == fstat(fd, &now) && now.st_dev == copied->st_dev && now.st_ino == copied->st_ino
              && now.st_size == copied->st_size && now.st_mtim.tv_sec == copied->st_mtim.tv_sec
              && now.st_mtim.tv_nsec == copied->st_mtim.tv_nsec;

    if (fd >= 0) {
        close(fd);
    }
    return is;
}

static int is_another(const char *to)
{
    return mpicrypt_error(MPICRYPT_FAILED, "%s: it was written to, renamed or replaced while it was copied; nothing was done", to);
}

static bool exchange(const char *to) { return 0 == renameat2(AT_FDCWD, part, AT_FDCWD, to, RENAME_EXCHANGE); }

/* What came out is not what was copied.  Only if the name changes hands once more meanwhile does it stay at `part`. */
static int put_back(const char *to, const struct stat *ours)
{
    struct stat there;

    if (exchange(to)) {
        is_theirs = 0 != lstat(part, &there) || there.st_dev != ours->st_dev || there.st_ino != ours->st_ino;
    } else {
        is_theirs = 0 != ompi_common_cryptmpio_posix_rename(part, to);
    }
    return is_theirs ? mpicrypt_error(MPICRYPT_FAILED, "%s: what had this name for a moment is %s now; keep it", to, part)
                     : is_another(to);
}

/* Whatever gets the name meanwhile is not lost: it comes out, and goes back.  File systems without this exchange, such as
 * NFS, leave a moment between a look at the name and the renaming. */
static int rename_part_over(const char *to)
{
    struct stat ours;

    if (!is_what_was_copied(to)) {
        return is_another(to);
    }
    if (0 != lstat(part, &ours)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", part, strerror(errno));
    }
    if (exchange(to)) {
        return !is_what_was_copied(part) ? put_back(to, &ours)
               : 0 == unlink(part) ? MPICRYPT_OK
                                   : mpicrypt_error(MPICRYPT_FAILED, "%s: this is the old file, and cannot be deleted: %s", part, strerror(errno));
    }
    return (EINVAL == errno || ENOSYS == errno) && 0 == rename(part, to)
               ? MPICRYPT_OK : ENOENT == errno ? is_another(to) : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", to, strerror(errno));
}

static int finish(const char *to, int (*renaming)(const char *))
{
    sigset_t set, old;

    fatal_set(&set);
    sigprocmask(SIG_BLOCK, &set, &old);
    for (int works = WORKS; !atomic_compare_exchange_strong(&doing, &works, RENAMES); works = WORKS) {
        pause();                                /* another thread is handling the signal that ends us */
    }
    int code = renaming(to);
    if (MPICRYPT_OK == code || is_theirs) {
        leave_signals();
    } else {
        mpicrypt_file_drop();
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (0 != atomic_load(&noted)) {
        (void) raise(atomic_load(&noted));
    }
    return MPICRYPT_OK != code || OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_sync_names(to) ? code
           : mpicrypt_error(MPICRYPT_FAILED, "%s: it is there, but the name may not survive a power cut: %s", to, strerror(errno));
}

int mpicrypt_file_finish(const char *to) { return finish(to, rename_part); }

int mpicrypt_file_finish_over(const char *to, const struct stat *was)
{
    copied = was;
    return finish(to, rename_part_over);
}
