/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The temporary name of the file that encrypt, decrypt, cp and reencrypt create, beside its final place:
 *
 *     begin       TO.0123456789abcdef.part
 *     finish      renamed to TO, never over an existing file; or exchanged for TO, if that is still the file that was
 *                 copied
 *     drop, or a signal that ends the command: deleted
 *
 * TO is complete or absent; a command killed by SIGKILL leaves a file whose name says
 * what it is.
 *
 * Each thread may have one.  A signal may be delivered to any thread.  Its handler deletes the parts that exist, and ends
 * the command; while a thread creates or renames a part, it leaves both to the last such thread.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crew.h"
#include "file.h"
#include "opal/mca/common/crypt/base/secmem.h"

enum { BASE_MAX = 200,                  /* of TO's name, so that the part's name is not too long */
       PARTS = MPICRYPT_FILE_THREADS_MAX };

static const int fatal[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU, SIGXFSZ};
enum { FATAL_COUNT = sizeof(fatal) / sizeof(fatal[0]) };

/* A part that is UNUSED, CHOSEN or RENAMED is not the handler's. */
enum { UNUSED, CHOSEN, EXISTS, RENAMED, DELETED };
struct mpicrypt_file_part {
    char name[PATH_MAX];
    atomic_int state;
    bool is_theirs;                     /* the file of that name is another's: never delete it */
};

static mpicrypt_file_part_t parts[PARTS];
static atomic_int ending;               /* the signal that came */
static atomic_int critical;            /* threads that create or rename a part: the last of them ends the command */
static const char *last_words = "";

/* ---- signals ---- */

static void delete_parts(void)
{
    for (int i = 0; i < PARTS; ++i) {
        int exists = EXISTS;
        if (atomic_compare_exchange_strong(&parts[i].state, &exists, DELETED)) {
            (void) unlink(parts[i].name);
        }
    }
}

/* By the signal.  It may be blocked: then its handler is running, or `finish` is. */
static void end_now(void)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    sigset_t set;
    int number = atomic_load(&ending);

    if (atomic_flag_test_and_set(&begun)) {     /* another thread may still be deleting */
        return;
    }
    delete_parts();
    sigemptyset(&set);
    sigaddset(&set, number);
    (void) signal(number, SIG_DFL);
    (void) pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    (void) raise(number);
}

static void on_fatal(int number)
{
    int none = 0, error = errno;

    if (!atomic_compare_exchange_strong(&ending, &none, number)) {
        return;
    }
    if (SIGPIPE != number && write(STDERR_FILENO, last_words, strlen(last_words)) < 0) {
        errno = 0;                      /* there is nobody to tell */
    }
    if (0 == atomic_load(&critical)) {
        end_now();
    }
    errno = error;
}

static void critical_end(void)
{
    if (1 == atomic_fetch_sub(&critical, 1) && 0 != atomic_load(&ending)) {
        end_now();
    }
}

static void wait_for_the_end(void)
{
    for (;;) {
        pause();                        /* another thread is handling the signal that ends us */
    }
}

/* Once a signal came, nothing is created or renamed any more: the thread that ends the command may not see it. */
static void critical_begin(void)
{
    (void) atomic_fetch_add(&critical, 1);
    if (0 != atomic_load(&ending)) {
        critical_end();
        wait_for_the_end();
    }
}

static void fatal_set(sigset_t *set)
{
    sigemptyset(set);
    for (int i = 0; i < FATAL_COUNT; ++i) {
        sigaddset(set, fatal[i]);
    }
}

void mpicrypt_file_signals(const char *words)
{
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = SA_RESTART}, before;

    last_words = words;
    fatal_set(&action.sa_mask);
    for (int i = 0; i < FATAL_COUNT; ++i) {
        sigaction(fatal[i], NULL, &before);
        if (SIG_IGN != before.sa_handler) {                     /* keeps nohup working */
            sigaction(fatal[i], &action, NULL);
        }
    }
}

/* ---- a part ---- */

static mpicrypt_file_part_t *unused_part(void)
{
    for (int i = 0; i < PARTS; ++i) {
        int unused = UNUSED;
        if (atomic_compare_exchange_strong(&parts[i].state, &unused, CHOSEN)) {
            return &parts[i];
        }
    }
    return NULL;
}

int mpicrypt_file_begin(const char *to, const struct stat *was, mpicrypt_file_part_t **part)
{
    const char *slash = strrchr(to, '/'), *base = NULL == slash ? to : slash + 1;
    struct stat status;
    uint64_t number;

    if (NULL == was && 0 == lstat(to, &status)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", to, strerror(EEXIST));
    }
    mpicrypt_file_part_t *chosen = unused_part();
    if (NULL == chosen) {               /* each thread has one at a time */
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", to, strerror(EMFILE));
    }
    opal_crypt_random(&number, sizeof(number));
    int bytes = snprintf(chosen->name, sizeof(chosen->name), "%.*s%.*s.%016llx.part", (int) (base - to), to, BASE_MAX, base,
                         (unsigned long long) number);
    if (bytes < 0 || bytes >= (int) sizeof(chosen->name)) {
        atomic_store(&chosen->state, UNUSED);
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", to, strerror(ENAMETOOLONG));
    }
    chosen->is_theirs = false;
    critical_begin();
    *part = chosen;
    return MPICRYPT_OK;
}

const char *mpicrypt_file_part_name(const mpicrypt_file_part_t *part) { return part->name; }

void mpicrypt_file_created(mpicrypt_file_part_t *part)
{
    atomic_store(&part->state, EXISTS);
    critical_end();
}

/* Deletes the file, unless the handler does it. */
static void forget(mpicrypt_file_part_t *part)
{
    if (!part->is_theirs) {
        (void) unlink(part->name);
    }
    atomic_store(&part->state, UNUSED);
}

void mpicrypt_file_drop(mpicrypt_file_part_t *part)
{
    int exists = EXISTS;

    if (CHOSEN == atomic_load(&part->state)) {
        forget(part);
        critical_end();
    } else if (atomic_compare_exchange_strong(&part->state, &exists, CHOSEN)) {
        forget(part);
    }
}

static int rename_part(const mpicrypt_file_part_t *part, const char *to)
{
    return 0 == ompi_common_cryptmpio_posix_rename(part->name, to) ? MPICRYPT_OK
           : mpicrypt_error(MPICRYPT_FAILED, "%s to %s: %s", part->name, to, strerror(errno));
}

/* ---- over the file that was copied ---- */

/* `copied`: what is replaced, before it was read.  Renaming a file changes its ctime.  When a name is opened, NFS asks the
 * server what has it. */
static bool is_what_was_copied(const char *path, const struct stat *copied)
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

static bool exchange(const mpicrypt_file_part_t *part, const char *to)
{
    return 0 == renameat2(AT_FDCWD, part->name, AT_FDCWD, to, RENAME_EXCHANGE);
}

/* What came out is not what was copied.  Only if the name changes hands once more meanwhile does it stay at `part`. */
static int put_back(mpicrypt_file_part_t *part, const char *to, const struct stat *ours)
{
    struct stat there;

    if (exchange(part, to)) {
        part->is_theirs = 0 != lstat(part->name, &there) || there.st_dev != ours->st_dev || there.st_ino != ours->st_ino;
    } else {
        part->is_theirs = 0 != ompi_common_cryptmpio_posix_rename(part->name, to);
    }
    return part->is_theirs ? mpicrypt_error(MPICRYPT_FAILED, "%s: what had this name for a moment is %s now; keep it", to, part->name)
                           : is_another(to);
}

/* Whatever gets the name meanwhile is not lost: it comes out, and goes back.  File systems without this exchange, such as
 * NFS, leave a moment between a look at the name and the renaming. */
static int rename_part_over(mpicrypt_file_part_t *part, const char *to, const struct stat *copied)
{
    struct stat ours;

    if (!is_what_was_copied(to, copied)) {
        return is_another(to);
    }
    if (0 != lstat(part->name, &ours)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", part->name, strerror(errno));
    }
    if (exchange(part, to)) {
        return !is_what_was_copied(part->name, copied) ? put_back(part, to, &ours)
               : 0 == unlink(part->name) ? MPICRYPT_OK
                                         : mpicrypt_error(MPICRYPT_FAILED, "%s: this is the old file, and cannot be deleted: %s",
                                                          part->name, strerror(errno));
    }
    return (EINVAL == errno || ENOSYS == errno) && 0 == rename(part->name, to)
               ? MPICRYPT_OK : ENOENT == errno ? is_another(to) : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", to, strerror(errno));
}

int mpicrypt_file_finish(mpicrypt_file_part_t *part, const char *to, const struct stat *was)
{
    int exists = EXISTS;

    critical_begin();
    if (!atomic_compare_exchange_strong(&part->state, &exists, RENAMED)) {
        critical_end();
        wait_for_the_end();
    }
    int code = NULL == was ? rename_part(part, to) : rename_part_over(part, to, was);
    if (MPICRYPT_OK == code) {
        atomic_store(&part->state, UNUSED);
    } else {
        forget(part);
    }
    critical_end();
    return MPICRYPT_OK != code || OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_sync_names(to) ? code
           : mpicrypt_error(MPICRYPT_FAILED, "%s: it is there, but the name may not survive a power cut: %s", to, strerror(errno));
}
