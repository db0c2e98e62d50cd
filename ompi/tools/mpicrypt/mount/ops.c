/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Requests of the kernel about files; directory.c has those about directories.  Everything appears as the mounting user's,
 * readable: only that user sees it, and opening the file below decides whether it may be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "mount.h"

static const double VALID_SECONDS = 1.0;                    /* what the kernel may remember of names and attributes */
enum { READ_AT_MOST = 16 << 20 };

/* ---- names and attributes ---- */

static void attributes(const struct stat *found, uint64_t plain_bytes, struct stat *shown)
{
    const bool directory = S_ISDIR(found->st_mode);

    *shown = (struct stat){.st_ino = found->st_ino, .st_nlink = 1, .st_uid = mpicrypt_mount.uid, .st_gid = mpicrypt_mount.gid,
                           .st_mode = directory ? S_IFDIR | 0500 : S_IFREG | 0400, .st_blksize = found->st_blksize,
                           .st_atim = found->st_atim, .st_mtim = found->st_mtim, .st_ctim = found->st_ctim};
    if (!directory) {
        shown->st_size = (off_t) plain_bytes;
        shown->st_blocks = (blkcnt_t) (plain_bytes / 512 + (0 != plain_bytes % 512));
    }
}

/* 0 or an errno. */
static int shown_attributes(mpicrypt_mount_node_t *node, int fd, const struct stat *found, struct stat *shown)
{
    uint64_t bytes = 0;
    int error = S_ISREG(found->st_mode) ? mpicrypt_mount_plain_bytes(node, fd, found, &bytes) : 0;

    if (0 == error) {
        attributes(found, bytes, shown);
    }
    return error;
}

static void mount_lookup(fuse_req_t req, fuse_ino_t number, const char *name)
{
    struct fuse_entry_param entry = {.attr_timeout = VALID_SECONDS, .entry_timeout = VALID_SECONDS};
    struct stat found;
    int fd, error = mpicrypt_mount_resolve(mpicrypt_mount_node(number), name, &fd, &found);

    if (0 != error) {
        fuse_reply_err(req, error);
        return;
    }
    mpicrypt_mount_node_t *node = mpicrypt_mount_look_up(mpicrypt_mount_node(number), name, &found);
    error = NULL == node ? ENOMEM : shown_attributes(node, fd, &found, &entry.attr);
    close(fd);
    if (0 != error) {
        if (NULL != node) {
            mpicrypt_mount_forget(node, 1);
        }
        fuse_reply_err(req, error);
        return;
    }
    entry.ino = mpicrypt_mount_number(node);
    if (0 != fuse_reply_entry(req, &entry)) {               /* interrupted: the kernel has no lookup to forget */
        mpicrypt_mount_forget(node, 1);
    }
}

static void mount_forget(fuse_req_t req, fuse_ino_t number, uint64_t lookups)
{
    mpicrypt_mount_forget(mpicrypt_mount_node(number), lookups);
    fuse_reply_none(req);
}

static void mount_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; ++i) {
        mpicrypt_mount_forget(mpicrypt_mount_node(forgets[i].ino), forgets[i].nlookup);
    }
    fuse_reply_none(req);
}

/* A descriptor of the node's own file, by its name.  ESTALE: the name leads to another file now; the kernel then looks it
 * up again. */
static int own_file(mpicrypt_mount_node_t *node, int *fd, struct stat *found)
{
    int error = mpicrypt_mount_resolve(node, NULL, fd, found);

    if (0 == error && (found->st_dev != node->device || found->st_ino != node->inode)) {
        close(*fd);
        error = ESTALE;
    }
    return error;
}

/* A descriptor of a file that lost its name while a program has it open in the mount. */
static int opened_file(mpicrypt_mount_node_t *node, int *fd, struct stat *found)
{
    int error = ESTALE;

    pthread_mutex_lock(&mpicrypt_mount_mutex);
    if (NULL != node->content && 0 != node->content->uses) {
        *fd = dup(node->content->fd);
        error = *fd < 0 ? errno : 0;
    }
    pthread_mutex_unlock(&mpicrypt_mount_mutex);
    if (0 == error && 0 != fstat(*fd, found)) {
        error = errno;
        close(*fd);
    }
    return error;
}

static void mount_getattr(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *info)
{
    mpicrypt_mount_node_t *node = mpicrypt_mount_node(number);
    struct stat found, shown;
    int fd, error = own_file(node, &fd, &found);

    (void) info;                        /* the kernel passes it for some calls only */
    if (0 != error && 0 != opened_file(node, &fd, &found)) {
        fuse_reply_err(req, error);
        return;
    }
    error = shown_attributes(node, fd, &found, &shown);
    close(fd);
    if (0 == error) {
        fuse_reply_attr(req, &shown, VALID_SECONDS);
    } else {
        fuse_reply_err(req, error);
    }
}

/* ---- content ---- */

static void mount_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *info)
{
    mpicrypt_mount_node_t *node = mpicrypt_mount_node(number);
    mpicrypt_mount_content_t *content;
    struct stat found;
    int fd, error = O_RDONLY != (info->flags & O_ACCMODE) ? EROFS : own_file(node, &fd, &found);

    if (0 != error) {
        fuse_reply_err(req, error);
        return;
    }
    error = mpicrypt_mount_acquire(node, fd, &found, &content);
    close(fd);
    if (0 != error) {
        fuse_reply_err(req, error);
        return;
    }
    pthread_mutex_lock(&mpicrypt_mount_mutex);
    info->keep_cache = mpicrypt_mount_same(&node->paged, &content->version);
    node->paged = content->version;
    pthread_mutex_unlock(&mpicrypt_mount_mutex);
    info->fh = (uint64_t) (uintptr_t) content;
    if (0 != fuse_reply_open(req, info)) {                  /* interrupted: there will be no release */
        mpicrypt_mount_release(content);
    }
}

static void mount_release(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *info)
{
    (void) number;
    mpicrypt_mount_release((mpicrypt_mount_content_t *) (uintptr_t) info->fh);
    fuse_reply_err(req, 0);
}

static void mount_read(fuse_req_t req, fuse_ino_t number, size_t bytes, off_t offset, struct fuse_file_info *info)
{
    mpicrypt_mount_content_t *content = (mpicrypt_mount_content_t *) (uintptr_t) info->fh;
    mpicrypt_file_error_t error = {.status = MPICRYPT_FILE_OK};
    size_t got = 0;

    (void) number;
    if (bytes > READ_AT_MOST || offset < 0) {
        fuse_reply_err(req, EINVAL);
        return;
    }
    void *memory = mpicrypt_mount_buffer(bytes);
    if (NULL == memory) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    if (MPICRYPT_FILE_OK != mpicrypt_file_read(content->file, (uint64_t) offset, memory, bytes, &got, &error)) {
        mpicrypt_mount_log(content->name, error.status, error.text);
        fuse_reply_err(req, EIO);
        return;
    }
    fuse_reply_buf(req, memory, got < bytes ? got : bytes);
}

static void mount_statfs(fuse_req_t req, fuse_ino_t number)
{
    struct statvfs status;
    int fd, error = mpicrypt_mount_reopen(mpicrypt_mount.root, O_RDONLY | O_DIRECTORY, &fd);

    (void) number;
    if (0 != error) {
        fuse_reply_err(req, error);
        return;
    }
    error = 0 == fstatvfs(fd, &status) ? 0 : errno;
    close(fd);
    if (0 == error) {
        fuse_reply_statfs(req, &status);
    } else {
        fuse_reply_err(req, error);
    }
}

const struct fuse_lowlevel_ops mpicrypt_mount_ops = {
    .lookup = mount_lookup,
    .forget = mount_forget,
    .forget_multi = mount_forget_multi,
    .getattr = mount_getattr,
    .open = mount_open,
    .read = mount_read,
    .release = mount_release,
    .opendir = mpicrypt_mount_opendir,
    .readdir = mpicrypt_mount_readdir,
    .releasedir = mpicrypt_mount_releasedir,
    .statfs = mount_statfs
};
