/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The name under which encrypt and decrypt work, beside the file that they make:
 *
 *     begin       TO.0123456789abcdef.part [and ....part.mpicrypt]
 *     finish      renamed to TO.mpicrypt and TO, never over something
 *     drop, or a signal that ends the command: deleted
 *
 * TO is there in full, or not at all; who is killed by SIGKILL leaves a file whose name
 * says what it is.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpicrypt_file.h"
#include "opal/mca/common/crypt/crypt_secmem.h"

enum { BASE_MAX = 200 };                /* of TO's name, so that the longer one fits a directory, too */

static const int fatal[] = {SIGINT, SIGTERM, SIGHUP};
enum { FATAL_COUNT = sizeof(fatal) / sizeof(fatal[0]) };

static char part[PATH_MAX], part_sidecar[PATH_MAX + sizeof(OPAL_CRYPT_SIDECAR_SUFFIX)];
static struct sigaction before[FATAL_COUNT];

/* The action is SIG_DFL again when this runs; the signal comes once it returns. */
static void remove_part(int signal_number)
{
    (void) unlink(part);
    (void) unlink(part_sidecar);
    (void) raise(signal_number);
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
    struct sigaction action = {.sa_handler = remove_part, .sa_flags = (int) SA_RESETHAND};

    fatal_set(&action.sa_mask);
    for (int i = 0; i < FATAL_COUNT; ++i) {
        sigaction(fatal[i], NULL, &before[i]);
        if (SIG_IGN != before[i].sa_handler) {                  /* nohup */
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
    return snprintf(sidecar, PATH_MAX, "%s" OPAL_CRYPT_SIDECAR_SUFFIX, path) < PATH_MAX;
}

int mpicrypt_file_begin(const char *to, bool with_sidecar, const char **name)
{
    char sidecar[PATH_MAX];
    const char *slash = strrchr(to, '/'), *base = NULL == slash ? to : slash + 1;
    uint64_t number;

    if (!sidecar_of(to, sidecar)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", to, strerror(ENAMETOOLONG));
    }
    if (exists(to) || (with_sidecar && exists(sidecar))) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", exists(to) ? to : sidecar, strerror(EEXIST));
    }
    opal_common_crypt_random(&number, sizeof(number));
    int bytes = snprintf(part, sizeof(part), "%.*s%.*s.%016llx.part", (int) (base - to), to, BASE_MAX, base,
                         (unsigned long long) number);
    if (bytes < 0 || bytes >= PATH_MAX) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", to, strerror(ENAMETOOLONG));
    }
    strcat(strcpy(part_sidecar, part), OPAL_CRYPT_SIDECAR_SUFFIX);
    catch_signals();
    *name = part;
    return MPICRYPT_OK;
}

void mpicrypt_file_drop(void)
{
    (void) unlink(part);
    (void) unlink(part_sidecar);
    leave_signals();
}

/* The sidecar first, as mv does it: a file without its map is never at TO. */
static int rename_both(const char *to, bool with_sidecar)
{
    char sidecar[PATH_MAX];

    (void) sidecar_of(to, sidecar);
    int code = with_sidecar ? mpicrypt_file_rename(part_sidecar, sidecar) : MPICRYPT_OK;
    if (MPICRYPT_OK == code) {
        code = mpicrypt_file_rename(part, to);
        if (MPICRYPT_OK != code && with_sidecar) {
            (void) unlink(sidecar);
        }
    }
    return code;
}

int mpicrypt_file_finish(const char *to, bool with_sidecar)
{
    sigset_t set, old;

    fatal_set(&set);
    sigprocmask(SIG_BLOCK, &set, &old);
    int code = rename_both(to, with_sidecar);
    if (MPICRYPT_OK == code) {
        leave_signals();
    } else {
        mpicrypt_file_drop();
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    return code;
}
