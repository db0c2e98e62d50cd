/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt-mount [OPTION]... DIR MOUNTPOINT, which `mpicrypt mount` starts: mount, serve, and end by a signal or when it
 * is unmounted.  In the foreground only: a child of a process that has keys has none.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mount.h"

/* The exit codes of mpicrypt.h. */
enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_MISSING = 3 };

/* For each file's opened blocks.  The kernel keeps what was read, so the library's cache only serves reads of partial blocks. */
enum { FILE_CACHE_BYTES = 1 << 20 };

mpicrypt_mount_t mpicrypt_mount = {.root = -1};

static int fails(int code, const char *what, const char *why)
{
    fprintf(stderr, "mpicrypt mount: %s: %s\n", what, why);
    return code;
}

static int parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"with-plain", no_argument, NULL, 'p'}, {"label", required_argument, NULL, 'l'},
        {"keystore-dir", required_argument, NULL, 'k'}, {NULL}};
    int letter;

    mpicrypt_mount.options = (mpicrypt_file_options_t){.bytes = sizeof(mpicrypt_mount.options), .cache_bytes = FILE_CACHE_BYTES};
    while (-1 != (letter = getopt_long(argc, argv, "", options, NULL))) {
        switch (letter) {
        case 'p':
            mpicrypt_mount.with_plain = true;
            mpicrypt_mount.options.flags |= MPICRYPT_FILE_PLAIN;
            break;
        case 'l': mpicrypt_mount.options.label = optarg; break;
        case 'k': mpicrypt_mount.options.keystore = optarg; break;
        default:  return EXIT_USAGE;
        }
    }
    return argc == optind + 2 ? 0 : fails(EXIT_USAGE, "DIR MOUNTPOINT", "this program is started by 'mpicrypt mount'");
}

/* Keep other processes and core files away from plaintext and keys. */
static int protect(void)
{
    const struct rlimit none = {0, 0};
    struct rlimit files;

    if (0 != setrlimit(RLIMIT_CORE, &none) || 0 != prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)) {
        return fails(EXIT_FAILED, "core dumps", strerror(errno));
    }
    if (0 == getrlimit(RLIMIT_NOFILE, &files)) {            /* each open file of the mount has two */
        files.rlim_cur = files.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &files);
    }
    return 0;
}

static int open_root(const char *directory)
{
    struct stat status, again;
    int fd, error;

    mpicrypt_mount.uid = getuid();
    mpicrypt_mount.gid = getgid();
    mpicrypt_mount.root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (mpicrypt_mount.root < 0 || 0 != fstat(mpicrypt_mount.root, &status)) {
        return fails(EXIT_FAILED, directory, strerror(errno));
    }
    mpicrypt_mount.device = status.st_dev;
    error = mpicrypt_mount_nodes_begin(&status);
    error = 0 == error ? mpicrypt_mount_resolve(mpicrypt_mount_node(FUSE_ROOT_ID), NULL, &fd, &again) : error;
    if (0 == error) {
        close(fd);
    }
    return 0 == error ? 0 : ENOSYS == error ? fails(EXIT_MISSING, "openat2", "this needs Linux 5.6 or later")
                                            : fails(EXIT_FAILED, directory, strerror(error));
}

/* The number of a signal, 0: unmounted, or a negative errno. */
static int serve(struct fuse_session *session, const char *directory, const char *mountpoint)
{
    struct fuse_loop_config config = {.clone_fd = 0, .max_idle_threads = 10};

    int error = mpicrypt_mount_idle_begin();
    if (0 != error) {
        return -error;
    }
    printf("mounted %s on %s\n", directory, mountpoint);
    fflush(stdout);
    int ended = fuse_session_loop_mt(session, &config);
    mpicrypt_mount_idle_end();
    mpicrypt_mount_nodes_end();         /* the threads of requests have ended, and their memory was wiped */
    return ended;
}

static int mount_and_serve(const char *directory, const char *mountpoint)
{
    char *words[] = {"mpicrypt-mount", "-o", "ro,nosuid,nodev,default_permissions,fsname=mpicrypt,subtype=mpicrypt", NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, words);
    int ended = -EIO;

    struct fuse_session *session = fuse_session_new(&args, &mpicrypt_mount_ops, sizeof(mpicrypt_mount_ops), NULL);
    if (NULL == session) {
        return fails(EXIT_FAILED, mountpoint, "libfuse3 cannot be used");
    }
    if (0 == fuse_set_signal_handlers(session)) {
        if (0 == fuse_session_mount(session, mountpoint)) {                 /* else libfuse has said why */
            ended = serve(session, directory, mountpoint);
            fuse_session_unmount(session);
        }
        fuse_remove_signal_handlers(session);
    }
    fuse_session_destroy(session);
    if (ended > 0) {                    /* as any program that a signal ends */
        signal(ended, SIG_DFL);
        raise(ended);
    }
    return 0 == ended ? 0 : fails(EXIT_FAILED, mountpoint, "the mount failed, or has ended by an error");
}

int main(int argc, char **argv)
{
    int code = parse(argc, argv);

    code = 0 == code ? protect() : code;
    code = 0 == code ? open_root(argv[optind]) : code;
    return 0 == code ? mount_and_serve(argv[optind], argv[optind + 1]) : code;
}
