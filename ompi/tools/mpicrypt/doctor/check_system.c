/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The node itself: limits of processes, temporary files, and directories that
 * are to hold encrypted files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "check.h"

#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/secret_file.h"

/* ---- limits ---- */

static void limit_text(int resource, char *text, size_t bytes)
{
    struct rlimit limit = {0, 0};

    getrlimit(resource, &limit);
    if (RLIM_INFINITY == limit.rlim_cur) {
        snprintf(text, bytes, "unlimited");
    } else {
        snprintf(text, bytes, "%llu bytes", (unsigned long long) limit.rlim_cur);
    }
}

static void check_memlock(mpicrypt_report_t *report)
{
    bool locked = opal_crypt_secmem_locked();
    char text[64];

    limit_text(RLIMIT_MEMLOCK, text, sizeof(text));
    mpicrypt_report_add(report, locked ? MPICRYPT_FOUND_OK : MPICRYPT_FOUND_WARN, "memlock", locked ? "" :
                        "Raise the limit: memlock in /etc/security/limits.conf, LimitMEMLOCK of the service that starts "
                        "jobs (slurmd.service); or use no swap, or encrypted swap.",
                        locked ? "keys stay in memory (limit: %s)" : "keys may be swapped to disk (limit: %s)", text);
}

/* The program that gets core files, if the kernel's core_pattern is a pipe. */
static bool core_program(char *text, size_t bytes)
{
    FILE *in = fopen("/proc/sys/kernel/core_pattern", "r");
    bool pipe = NULL != in && '|' == fgetc(in) && NULL != fgets(text, (int) bytes, in);

    if (NULL != in) {
        fclose(in);
    }
    if (pipe) {
        text[strcspn(text, " \t\n")] = '\0';
    }
    return pipe;
}

/* Linux runs a core_pattern's program whatever the soft limit is, except 1 byte (aead_util.h). */
static void check_core(mpicrypt_report_t *report)
{
    struct rlimit limit = {0, 0};
    char program[256];

    getrlimit(RLIMIT_CORE, &limit);
    if (1 != limit.rlim_cur && core_program(program, sizeof(program))) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_NOTE, "core", "No limit but a soft one of 1 byte stops that; see kernel.core_pattern.",
                            "core files go to the program %s, also with ulimit -c 0: without keys, but with the application's data",
                            program);
    } else if (limit.rlim_cur > 1) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_NOTE, "core", "To have none: ulimit -c 0.",
                            "core files are written: without keys, but with the application's data");
    } else {
        mpicrypt_report_add(report, MPICRYPT_FOUND_OK, "core", "", "no core files");
    }
}

/* ---- temporary files ---- */

static void check_tmp(mpicrypt_report_t *report)
{
    const char *path = getenv("TMPDIR"), *name = "";
    opal_crypt_fs_t kind;

    path = NULL == path || '\0' == *path ? "/tmp" : path;
    if (OPAL_CRYPT_OK != opal_crypt_fs_of(path, &kind, &name)) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "tmp", "Set TMPDIR to a directory of this node.",
                            "%s cannot be looked at: %s", path, strerror(errno));
        return;
    }
    bool network = OPAL_CRYPT_FS_NETWORK == kind;
    mpicrypt_report_add(report, network ? MPICRYPT_FOUND_FAIL : MPICRYPT_FOUND_OK, "tmp", network ?
                        "Set TMPDIR to a directory of this node: shared memory of jobs may be backed by files there." : "",
                        "%s (%s)", path, name);
}

void mpicrypt_check_system(mpicrypt_report_t *report)
{
    check_memlock(report);
    check_core(report);
    check_tmp(report);
}

/* ---- a directory for encrypted files ---- */

#define OTHER_FS "Put encrypted files on a file system that has them (ext4, xfs, btrfs, Lustre; BeeGFS after " \
                 "storeClientXAttrs=true and sysXAttrsEnabled=true)."

/* The map of a file's encryption is an attribute of up to a few thousand bytes. */
static int try_xattr(int file)
{
    static char value[3000];

    return fsetxattr(file, "user.mpicrypt.doctor", value, sizeof(value), 0);
}

static int try_lock(int file)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};

    return fcntl(file, F_OFD_SETLK, &lock);
}

void mpicrypt_check_directory(mpicrypt_report_t *report, const char *path)
{
    opal_crypt_fs_t kind;
    const char *name = "";
    char file_name[4096];

    snprintf(file_name, sizeof(file_name), "%s/.mpicrypt-doctor-XXXXXX", path);
    int file = mkostemp(file_name, O_CLOEXEC);
    if (file < 0) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "directory", "Name a directory in which files can be made.",
                            "%s: %s", path, strerror(errno));
        return;
    }
    opal_crypt_fs_of(path, &kind, &name);
    if (0 != try_xattr(file)) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "directory", OTHER_FS,
                            "%s (%s): no extended attributes user.*, in which the map of an encrypted file lies: %s", path,
                            name, strerror(errno));
    } else if (0 != try_lock(file)) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "directory", "Mount it with locks that all nodes see.",
                            "%s (%s): no locks of byte ranges: %s", path, name, strerror(errno));
    } else {
        mpicrypt_report_add(report, MPICRYPT_FOUND_OK, "directory", "", "%s (%s): extended attributes and locks", path,
                            name);
    }
    close(file);
    unlink(file_name);
}
