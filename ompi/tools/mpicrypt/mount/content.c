/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The files that a mount has opened with libmpicrypt_file, and with them keys and blocks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mount.h"

static mpicrypt_mount_version_t version_of(const struct stat *status)
{
    return (mpicrypt_mount_version_t){.device = status->st_dev, .inode = status->st_ino, .bytes = status->st_size,
                                      .modified = status->st_mtim, .changed = status->st_ctim};
}

static bool same_time(const struct timespec *one, const struct timespec *two)
{
    return one->tv_sec == two->tv_sec && one->tv_nsec == two->tv_nsec;
}

bool mpicrypt_mount_same(const mpicrypt_mount_version_t *one, const mpicrypt_mount_version_t *two)
{
    return one->inode == two->inode && one->device == two->device && one->bytes == two->bytes
           && same_time(&one->modified, &two->modified) && same_time(&one->changed, &two->changed);
}

/* ---- opening ---- */

/* With the mutex. */
static void content_use(mpicrypt_mount_content_t *content)
{
    if (0 == content->uses++) {
        mpicrypt_mount_idle_remove(content);
    }
}

void mpicrypt_mount_close(mpicrypt_mount_content_t *content)
{
    if (NULL != content) {
        mpicrypt_file_close(content->file);
        if (content->fd >= 0) {
            close(content->fd);
        }
        free(content);
    }
}

/* Whatever the library does not open is an error: no unverified byte reaches a program. */
static int errno_of(const mpicrypt_file_error_t *error)
{
    switch (error->status) {
    case MPICRYPT_FILE_OK:         return 0;
    case MPICRYPT_FILE_ERR_PLAIN:  return ENOENT;
    case MPICRYPT_FILE_ERR_KEY:    return EACCES;
    case MPICRYPT_FILE_ERR_MEMORY: return ENOMEM;
    case MPICRYPT_FILE_ERR_IO:     return 0 < error->os_error ? error->os_error : EIO;
    default:                       return EIO;
    }
}

static int open_content(mpicrypt_mount_node_t *node, int path_fd, const struct stat *status, mpicrypt_mount_content_t **content)
{
    char path[PATH_MAX];
    mpicrypt_file_error_t error = {.status = MPICRYPT_FILE_OK};
    int code = mpicrypt_mount_path(node, NULL, path);

    mpicrypt_mount_content_t *made = 0 == code ? calloc(1, sizeof(*made) + strlen(path) + 1) : NULL;
    if (NULL == made) {
        return 0 == code ? ENOMEM : code;
    }
    strcpy(made->name, path);
    made->version = version_of(status);
    made->uses = 1;
    code = mpicrypt_mount_reopen(path_fd, O_RDONLY | O_NONBLOCK, &made->fd);
    if (0 == code && MPICRYPT_FILE_OK != mpicrypt_file_open_fd(made->fd, made->name, &mpicrypt_mount.options, &made->file, &error)) {
        made->file = NULL;
        code = errno_of(&error);
        if (MPICRYPT_FILE_ERR_PLAIN != error.status) {
            mpicrypt_mount_log(made->name, error.status, error.text);
        }
    }
    if (0 != code) {
        mpicrypt_mount_close(made);
        return code;
    }
    *content = made;
    return 0;
}

/* With the mutex: the node's content, if it is of this version. */
static mpicrypt_mount_content_t *take_current(mpicrypt_mount_node_t *node, const mpicrypt_mount_version_t *version)
{
    mpicrypt_mount_content_t *content = node->content;

    if (NULL == content || !mpicrypt_mount_same(&content->version, version)) {
        return NULL;
    }
    content_use(content);
    return content;
}

int mpicrypt_mount_acquire(mpicrypt_mount_node_t *node, int path_fd, const struct stat *status, mpicrypt_mount_content_t **content)
{
    const mpicrypt_mount_version_t version = version_of(status);
    mpicrypt_mount_content_t *made, *closing;

    pthread_mutex_lock(&mpicrypt_mount_mutex);
    *content = take_current(node, &version);
    pthread_mutex_unlock(&mpicrypt_mount_mutex);
    if (NULL != *content) {
        return 0;
    }
    int code = open_content(node, path_fd, status, &made);
    if (0 != code) {
        return code;
    }
    pthread_mutex_lock(&mpicrypt_mount_mutex);
    *content = take_current(node, &version);
    closing = made;
    if (NULL == *content) {             /* no other thread opened it meanwhile */
        closing = mpicrypt_mount_detach(node);
        node->content = *content = made;
        made->node = node;
    }
    pthread_mutex_unlock(&mpicrypt_mount_mutex);
    mpicrypt_mount_close(closing);
    return 0;
}

void mpicrypt_mount_release(mpicrypt_mount_content_t *content)
{
    mpicrypt_mount_content_t *closing = NULL;

    pthread_mutex_lock(&mpicrypt_mount_mutex);
    if (0 == --content->uses) {
        closing = NULL == content->node ? content : mpicrypt_mount_idle_add(content);
    }
    pthread_mutex_unlock(&mpicrypt_mount_mutex);
    mpicrypt_mount_close(closing);
}

int mpicrypt_mount_plain_bytes(mpicrypt_mount_node_t *node, int path_fd, const struct stat *status, uint64_t *bytes)
{
    const mpicrypt_mount_version_t version = version_of(status);
    mpicrypt_mount_content_t *content;
    mpicrypt_file_error_t error = {.status = MPICRYPT_FILE_OK};

    pthread_mutex_lock(&mpicrypt_mount_mutex);
    bool known = mpicrypt_mount_same(&node->sized, &version);
    *bytes = node->plain_bytes;
    pthread_mutex_unlock(&mpicrypt_mount_mutex);
    if (known) {
        return 0;
    }
    int code = mpicrypt_mount_acquire(node, path_fd, status, &content);
    if (0 != code) {
        return code;
    }
    if (MPICRYPT_FILE_OK != mpicrypt_file_size(content->file, bytes, &error)) {
        code = errno_of(&error);
        mpicrypt_mount_log(content->name, error.status, error.text);
    } else if (*bytes > INT64_MAX) {
        code = EOVERFLOW;
    } else {
        pthread_mutex_lock(&mpicrypt_mount_mutex);
        node->sized = version;
        node->plain_bytes = *bytes;
        pthread_mutex_unlock(&mpicrypt_mount_mutex);
    }
    mpicrypt_mount_release(content);
    return code;
}
