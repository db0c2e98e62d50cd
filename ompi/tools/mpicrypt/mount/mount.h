/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt-mount, the program behind `mpicrypt mount`: the plaintext of encrypted files as a file system.
 *
 *     kernel --FUSE--> ops.c, directory.c    requests
 *                        |
 *                      node.c                names that the kernel knows
 *                      resolve.c             a name to a descriptor, never outside DIR
 *                      content.c, idle.c     descriptors to opened files of libmpicrypt_file
 *                      buffer.c              memory for what is read
 *                      log.c                 a line for each file and kind of error
 *
 * Names are resolved anew at each request, so that the number of descriptors does not grow with that of names.
 *
 * Threads: requests come on any.  One mutex (node.c) guards nodes, and which content is whose; nothing is opened, read
 * or closed under it.
 */
#ifndef MPICRYPT_MOUNT_H
#define MPICRYPT_MOUNT_H

#define FUSE_USE_VERSION 34
#include <fuse_lowlevel.h>

#include <linux/limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "lib/mpicrypt_file/mpicrypt_file.h"

typedef struct mpicrypt_mount {
    int root;                           /* O_PATH: DIR, as it was before the mount */
    dev_t device;                       /* its file system; others below it are not shown */
    uid_t uid;
    gid_t gid;
    bool with_plain;
    mpicrypt_file_options_t options;
} mpicrypt_mount_t;

extern mpicrypt_mount_t mpicrypt_mount;

/* Identifies what a file contained at some time.  If it differs, so may the plaintext. */
typedef struct mpicrypt_mount_version {
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec modified, changed;
} mpicrypt_mount_version_t;

bool mpicrypt_mount_same(const mpicrypt_mount_version_t *one, const mpicrypt_mount_version_t *two);

/* ---- nodes: the inodes of the mount ---- */

typedef struct mpicrypt_mount_content mpicrypt_mount_content_t;
typedef struct mpicrypt_mount_node mpicrypt_mount_node_t;

/* What a name in a directory led to when it was looked up.  `parent`, `name`, `device` and `inode` do not change; the mutex
 * guards everything else. */
struct mpicrypt_mount_node {
    mpicrypt_mount_node_t *parent;      /* NULL: this is DIR */
    char *name;
    dev_t device;
    ino_t inode;
    mpicrypt_mount_node_t *next;        /* in its bucket */
    bool listed;                        /* in a bucket */
    uint64_t lookups;                   /* of the kernel */
    uint64_t uses;                      /* children */
    mpicrypt_mount_content_t *content;  /* the last one that was opened; NULL: none, or it was closed */
    mpicrypt_mount_version_t sized, paged;
    uint64_t plain_bytes;               /* of the version `sized`; the kernel may have pages of the version `paged` */
};

extern pthread_mutex_t mpicrypt_mount_mutex;

int mpicrypt_mount_nodes_begin(const struct stat *root);
void mpicrypt_mount_nodes_end(void);                    /* no request runs any more */

mpicrypt_mount_node_t *mpicrypt_mount_node(fuse_ino_t number);
fuse_ino_t mpicrypt_mount_number(const mpicrypt_mount_node_t *node);

/* The node of a name, with one lookup more.  NULL: no memory. */
mpicrypt_mount_node_t *mpicrypt_mount_look_up(mpicrypt_mount_node_t *parent, const char *name, const struct stat *status);
void mpicrypt_mount_forget(mpicrypt_mount_node_t *node, uint64_t lookups);

/* The path of a name in a node (NULL: of the node itself) from DIR on.  0 or an errno. */
int mpicrypt_mount_path(const mpicrypt_mount_node_t *node, const char *name, char path[PATH_MAX]);
/* Is this directory the node or above it?  Then a link to it would make an endless tree. */
bool mpicrypt_mount_above(const mpicrypt_mount_node_t *node, const struct stat *status);

/* ---- from a name to a descriptor ---- */

/* O_PATH descriptor of what the name leads to, by links, too: a directory or a regular file of DIR's file system,
 * beneath DIR.  0 or an errno. */
int mpicrypt_mount_resolve(const mpicrypt_mount_node_t *node, const char *name, int *fd, struct stat *status);
/* The same object again, to be read.  0 or an errno. */
int mpicrypt_mount_reopen(int path_fd, int flags, int *fd);
/* Does it begin like an encrypted file? */
bool mpicrypt_mount_begins(int path_fd);

/* ---- opened files ---- */

struct mpicrypt_mount_content {
    mpicrypt_file_t *file;
    int fd;
    mpicrypt_mount_version_t version;
    mpicrypt_mount_node_t *node;        /* that has it as its content; NULL: only programs that opened it still use it */
    uint64_t uses;
    mpicrypt_mount_content_t *before, *after;           /* in the list of idle ones */
    time_t idle_since;
    char name[];                        /* for messages */
};

/* The content of a node for the current version of its file, given an O_PATH descriptor and its status.  0 or an errno;
 * ENOENT: a plain file that the mount hides.  The caller releases *content. */
int mpicrypt_mount_acquire(mpicrypt_mount_node_t *node, int path_fd, const struct stat *status,
                           mpicrypt_mount_content_t **content);
void mpicrypt_mount_release(mpicrypt_mount_content_t *content);
/* Takes its content from a node; the caller holds the mutex.  Returns what to close after unlocking, or NULL. */
mpicrypt_mount_content_t *mpicrypt_mount_detach(mpicrypt_mount_node_t *node);
void mpicrypt_mount_close(mpicrypt_mount_content_t *content);           /* NULL allowed */

/* With the mutex: a content loses its last user, or gets one again.  Add returns what to close in its place after
 * unlocking, or NULL. */
mpicrypt_mount_content_t *mpicrypt_mount_idle_add(mpicrypt_mount_content_t *content);
void mpicrypt_mount_idle_remove(mpicrypt_mount_content_t *content);
/* The thread that closes what has been idle: 0 or an errno; and its end, when no request runs any more. */
int mpicrypt_mount_idle_begin(void);
void mpicrypt_mount_idle_end(void);

/* The plaintext size of the current version of the file, which is opened if the size is not known.  0 or an errno. */
int mpicrypt_mount_plain_bytes(mpicrypt_mount_node_t *node, int path_fd, const struct stat *status, uint64_t *bytes);

/* ---- requests ---- */

extern const struct fuse_lowlevel_ops mpicrypt_mount_ops;
void mpicrypt_mount_opendir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *info);
void mpicrypt_mount_readdir(fuse_req_t req, fuse_ino_t number, size_t bytes, off_t offset, struct fuse_file_info *info);
void mpicrypt_mount_releasedir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *info);

/* This thread's memory for plaintext: not in core dumps, not in children, wiped when the thread ends.  NULL: none. */
void *mpicrypt_mount_buffer(size_t bytes);

/* ---- the log, standard error ---- */

/* A line, once for each path and kind: a status of libmpicrypt_file, or one of these. */
enum { MPICRYPT_MOUNT_OUTSIDE = 1000 };
void mpicrypt_mount_log(const char *path, int kind, const char *text);

#endif
