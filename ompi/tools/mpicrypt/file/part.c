/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The temporary name of the file that encrypt, decrypt, cp and reencrypt create, beside its final place:
 *
 *     begin       TO.0123456789abcdef.part [and ....part.mpicrypt]
 *     finish      renamed to TO.mpicrypt and TO, never over an existing file
 *     over        the same, over the existing files; one file is exchanged for the one that was copied
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

static char part[PATH_MAX], part_sidecar[PATH_MAX + sizeof(OPAL_CRYPTFILE_SIDECAR_SUFFIX)];
static struct sigaction before[FATAL_COUNT];
enum { WORKS, RENAMES, DELETES };
static atomic_int doing, noted;

/* The file at `part` belongs to the sidecar already at TO, or to somebody else: never delete it. */
static bool belongs;

static void remove_part(int signal_number)
{
    int works = WORKS;

    if (atomic_compare_exchange_strong(&doing, &works, DELETES)) {
        (void) unlink(part);
        (void) unlink(part_sidecar);
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

static bool exists(const char *path)
{
    struct stat status;

    return 0 == lstat(path, &status);
}

static bool sidecar_of(const char *path, char sidecar[PATH_MAX])
{
    return snprintf(sidecar, PATH_MAX, "%s" OPAL_CRYPTFILE_SIDECAR_SUFFIX, path) < PATH_MAX;
}

bool mpicrypt_file_part_name(const char *to, uint64_t number, char name[PATH_MAX])
{
    const char *slash = strrchr(to, '/'), *base = NULL == slash ? to : slash + 1;
    int bytes = snprintf(name, PATH_MAX, "%.*s%.*s.%016llx.part", (int) (base - to), to, BASE_MAX, base, (unsigned long long) number);

    return bytes > 0 && bytes < PATH_MAX;
}

static int begin(const char *to, const char **name, uint64_t *number)
{
    opal_crypt_random(number, sizeof(*number));
    if (!mpicrypt_file_part_name(to, *number, part)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", to, strerror(ENAMETOOLONG));
    }
    strcat(strcpy(part_sidecar, part), OPAL_CRYPTFILE_SIDECAR_SUFFIX);
    belongs = false;
    atomic_store(&doing, WORKS);
    catch_signals();
    *name = part;
    return MPICRYPT_OK;
}

int mpicrypt_file_begin(const char *to, bool with_sidecar, const char **name, uint64_t *number)
{
    char sidecar[PATH_MAX];

    if (!sidecar_of(to, sidecar)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", to, strerror(ENAMETOOLONG));
    }
    if (exists(to)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", to, strerror(EEXIST));
    }
    if (exists(sidecar)) {              /* with a sidecar, every program would take TO for encrypted */
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s%s", sidecar, strerror(EEXIST),
                              with_sidecar ? "" : "; a file beside it is taken for an encrypted one");
    }
    return begin(to, name, number);
}

int mpicrypt_file_begin_over(const char *to, const char **name, uint64_t *number) { return begin(to, name, number); }

void mpicrypt_file_drop(void)
{
    (void) unlink(part);
    (void) unlink(part_sidecar);
    leave_signals();
}

/* The sidecar first, as in mv: TO never exists without its map.  If another process has created TO meanwhile, the
 * sidecar may be its own, too. */
static int rename_both(const char *to)
{
    char sidecar[PATH_MAX];
    struct stat ours, there;

    (void) sidecar_of(to, sidecar);
    bool known = 0 == lstat(part_sidecar, &ours);
    int code = mpicrypt_file_rename(part_sidecar, sidecar);
    if (MPICRYPT_OK == code) {
        code = mpicrypt_file_rename(part, to);
        if (MPICRYPT_OK != code && known && 0 == lstat(sidecar, &there) && there.st_dev == ours.st_dev && there.st_ino == ours.st_ino) {
            (void) unlink(sidecar);
        }
    }
    return code;
}

static int rename_part(const char *to) { return mpicrypt_file_rename(part, to); }

/* ---- one file, over the one that was copied ---- */

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
        belongs = 0 != lstat(part, &there) || there.st_dev != ours->st_dev || there.st_ino != ours->st_ino;
    } else {
        belongs = 0 != ompi_common_cryptmpio_posix_rename(part, to);
    }
    return belongs ? mpicrypt_error(MPICRYPT_FAILED, "%s: what had this name for a moment is %s now; keep it", to, part)
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

static int rename_both_over(const char *to)
{
    char sidecar[PATH_MAX];

    if (!sidecar_of(to, sidecar) || 0 != rename(part_sidecar, sidecar)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", to, strerror(errno));
    }
    belongs = true;
    return 0 == rename(part, to) ? MPICRYPT_OK
           : mpicrypt_error(MPICRYPT_FAILED, "%s to %s: %s; the same command again finishes it", part, to, strerror(errno));
}

int mpicrypt_file_name_stays(const char *path)
{
    return OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_sync_names(path) ? MPICRYPT_OK
           : mpicrypt_error(MPICRYPT_FAILED, "%s: it is there, but the name may not survive a power cut: %s", path, strerror(errno));
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
    if (MPICRYPT_OK == code || belongs) {
        leave_signals();
    } else {
        mpicrypt_file_drop();
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (0 != atomic_load(&noted)) {
        (void) raise(atomic_load(&noted));
    }
    return MPICRYPT_OK == code ? mpicrypt_file_name_stays(to) : code;
}

int mpicrypt_file_finish(const char *to, bool with_sidecar) { return finish(to, with_sidecar ? rename_both : rename_part); }

int mpicrypt_file_finish_over(const char *to) { return finish(to, rename_both_over); }

int mpicrypt_file_finish_one(const char *to, const struct stat *was)
{
    copied = was;
    return finish(to, rename_part_over);
}
