/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Directories of a mount: directories, files that begin like encrypted ones, plain ones only if asked for, and links to
 * any of these under the name of the link.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mount.h"

typedef struct mount_listing {
    pthread_mutex_t mutex;
    DIR *stream;
    off_t offset;                       /* where the stream is */
    struct dirent *entry;               /* read, but it did not fit into the last reply */
} mount_listing_t;

static mount_listing_t *listing_of(const struct fuse_file_info *info)
{
    return (mount_listing_t *) (uintptr_t) info->fh;
}

static void listing_free(mount_listing_t *listing)
{
    closedir(listing->stream);
    pthread_mutex_destroy(&listing->mutex);
    free(listing);
}

/* 0 or an errno. */
static int listing_new(const mpicrypt_mount_node_t *node, mount_listing_t **made)
{
    struct stat found;
    int path_fd, fd, error = mpicrypt_mount_resolve(node, NULL, &path_fd, &found);

    if (0 != error) {
        return error;
    }
    error = found.st_dev != node->device || found.st_ino != node->inode ? ESTALE
            : mpicrypt_mount_reopen(path_fd, O_RDONLY | O_DIRECTORY, &fd);
    close(path_fd);
    if (0 != error) {
        return error;
    }
    mount_listing_t *listing = calloc(1, sizeof(*listing));
    if (NULL == listing || NULL == (listing->stream = fdopendir(fd))) {
        free(listing);
        close(fd);
        return ENOMEM;
    }
    pthread_mutex_init(&listing->mutex, NULL);
    *made = listing;
    return 0;
}

void mpicrypt_mount_opendir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *info)
{
    mount_listing_t *listing;
    int error = listing_new(mpicrypt_mount_node(number), &listing);

    if (0 != error) {
        fuse_reply_err(req, error);
        return;
    }
    info->fh = (uint64_t) (uintptr_t) listing;
    if (0 != fuse_reply_open(req, info)) {
        listing_free(listing);
    }
}

void mpicrypt_mount_releasedir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *info)
{
    (void) number;
    listing_free(listing_of(info));
    fuse_reply_err(req, 0);
}

/* Does the listing show an entry, and as what type?  It leaves out what cannot be examined. */
static bool is_listed(const mpicrypt_mount_node_t *node, const struct dirent *entry, struct stat *shown)
{
    struct stat found;
    int fd;

    *shown = (struct stat){.st_ino = entry->d_ino, .st_mode = S_IFDIR};
    if (0 == strcmp(entry->d_name, ".") || 0 == strcmp(entry->d_name, "..")) {
        return true;
    }
    if (DT_FIFO == entry->d_type || DT_SOCK == entry->d_type || DT_CHR == entry->d_type || DT_BLK == entry->d_type
        || 0 != mpicrypt_mount_resolve(node, entry->d_name, &fd, &found)) {
        return false;
    }
    bool listed = S_ISDIR(found.st_mode) || mpicrypt_mount.with_plain || mpicrypt_mount_begins(fd);
    close(fd);
    shown->st_ino = found.st_ino;
    shown->st_mode = found.st_mode & S_IFMT;
    return listed;
}

/* Fill `memory`, from an offset on.  0 or an errno. */
static int fill(fuse_req_t req, const mpicrypt_mount_node_t *node, mount_listing_t *listing, off_t offset, char *memory,
                size_t bytes, size_t *used)
{
    struct stat shown;

    *used = 0;
    if (offset != listing->offset) {
        seekdir(listing->stream, offset);
        listing->offset = offset;
        listing->entry = NULL;
    }
    for (;;) {
        errno = 0;
        if (NULL == listing->entry && NULL == (listing->entry = readdir(listing->stream))) {
            return 0 == *used ? errno : 0;
        }
        off_t next = listing->entry->d_off;
        if (is_listed(node, listing->entry, &shown)) {
            size_t taken = fuse_add_direntry(req, memory + *used, bytes - *used, listing->entry->d_name, &shown, next);
            if (taken > bytes - *used) {
                return 0;
            }
            *used += taken;
        }
        listing->entry = NULL;
        listing->offset = next;
    }
}

void mpicrypt_mount_readdir(fuse_req_t req, fuse_ino_t number, size_t bytes, off_t offset, struct fuse_file_info *info)
{
    mount_listing_t *listing = listing_of(info);
    size_t used;
    char *memory = bytes > 1 << 20 ? NULL : malloc(bytes);

    if (NULL == memory) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    pthread_mutex_lock(&listing->mutex);
    int error = fill(req, mpicrypt_mount_node(number), listing, offset, memory, bytes, &used);
    pthread_mutex_unlock(&listing->mutex);
    if (0 == error) {
        fuse_reply_buf(req, memory, used);
    } else {
        fuse_reply_err(req, error);
    }
    free(memory);
}
