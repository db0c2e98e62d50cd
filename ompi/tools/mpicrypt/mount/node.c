/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The nodes of a mount: names that the kernel has looked up, by parent and name.  A name that leads to another file than
 * before gets another node, and the old one stays until the kernel forgets it, so that an open file goes on.
 *
 * By name, and not by inode: a directory to which links lead is several directories of the mount, because the kernel
 * wants each to have one place; and a path can be told for each node.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mount.h"

enum { BUCKETS = 4096 };

pthread_mutex_t mpicrypt_mount_mutex = PTHREAD_MUTEX_INITIALIZER;
static mpicrypt_mount_node_t *buckets[BUCKETS];
static mpicrypt_mount_node_t mount_root;

static mpicrypt_mount_node_t **bucket_of(const mpicrypt_mount_node_t *parent, const char *name)
{
    uint64_t hash = (uint64_t) (uintptr_t) parent >> 4;

    for (; '\0' != *name; ++name) {
        hash = (hash ^ (uint8_t) *name) * 0x100000001b3u;
    }
    return &buckets[(hash ^ hash >> 32) % BUCKETS];
}

int mpicrypt_mount_nodes_begin(const struct stat *root)
{
    mount_root = (mpicrypt_mount_node_t){.device = root->st_dev, .inode = root->st_ino, .lookups = 1};
    mount_root.name = strdup(".");
    return NULL == mount_root.name ? ENOMEM : 0;
}

mpicrypt_mount_node_t *mpicrypt_mount_node(fuse_ino_t number)
{
    return FUSE_ROOT_ID == number ? &mount_root : (mpicrypt_mount_node_t *) (uintptr_t) number;
}

fuse_ino_t mpicrypt_mount_number(const mpicrypt_mount_node_t *node)
{
    return &mount_root == node ? FUSE_ROOT_ID : (fuse_ino_t) (uintptr_t) node;
}

/* ---- with the mutex ---- */

static mpicrypt_mount_node_t *find_listed(const mpicrypt_mount_node_t *parent, const char *name)
{
    for (mpicrypt_mount_node_t *node = *bucket_of(parent, name); NULL != node; node = node->next) {
        if (node->parent == parent && 0 == strcmp(node->name, name)) {
            return node;
        }
    }
    return NULL;
}

static void unlist(mpicrypt_mount_node_t *node)
{
    mpicrypt_mount_node_t **at = bucket_of(node->parent, node->name);

    while (node->listed && *at != node) {
        at = &(*at)->next;
    }
    if (node->listed) {
        *at = node->next;
        node->listed = false;
    }
}

static mpicrypt_mount_node_t *make_listed(mpicrypt_mount_node_t *parent, const char *name, const struct stat *status)
{
    mpicrypt_mount_node_t *node = calloc(1, sizeof(*node)), **bucket = bucket_of(parent, name);

    if (NULL == node || NULL == (node->name = strdup(name))) {
        free(node);
        return NULL;
    }
    node->parent = parent;
    ++parent->uses;
    node->device = status->st_dev;
    node->inode = status->st_ino;
    node->next = *bucket;
    node->listed = true;
    *bucket = node;
    return node;
}

/* ---- lookups ---- */

mpicrypt_mount_node_t *mpicrypt_mount_look_up(mpicrypt_mount_node_t *parent, const char *name, const struct stat *status)
{
    pthread_mutex_lock(&mpicrypt_mount_mutex);
    mpicrypt_mount_node_t *node = find_listed(parent, name);
    if (NULL != node && (node->device != status->st_dev || node->inode != status->st_ino)) {
        unlist(node);
        node = NULL;
    }
    node = NULL == node ? make_listed(parent, name, status) : node;
    if (NULL != node) {
        ++node->lookups;
    }
    pthread_mutex_unlock(&mpicrypt_mount_mutex);
    return node;
}

void mpicrypt_mount_forget(mpicrypt_mount_node_t *node, uint64_t lookups)
{
    mpicrypt_mount_content_t *closing = NULL;

    pthread_mutex_lock(&mpicrypt_mount_mutex);
    node->lookups -= lookups < node->lookups ? lookups : node->lookups;
    /* A node keeps its parent, which may be the next to go.  Only the first can be a file. */
    while (&mount_root != node && 0 == node->lookups && 0 == node->uses) {
        mpicrypt_mount_node_t *parent = node->parent;
        unlist(node);
        closing = NULL == closing ? mpicrypt_mount_detach(node) : closing;
        free(node->name);
        free(node);
        --parent->uses;
        node = parent;
    }
    pthread_mutex_unlock(&mpicrypt_mount_mutex);
    mpicrypt_mount_close(closing);
}

/* Nodes do not matter any more, but what their files have in memory does. */
void mpicrypt_mount_nodes_end(void)
{
    for (int i = 0; i < BUCKETS; ++i) {
        for (mpicrypt_mount_node_t *node = buckets[i]; NULL != node; node = node->next) {
            mpicrypt_mount_close(node->content);
            node->content = NULL;
        }
    }
}

/* ---- what does not change while the node exists ---- */

int mpicrypt_mount_path(const mpicrypt_mount_node_t *node, const char *name, char path[PATH_MAX])
{
    size_t at = PATH_MAX - 1;

    path[at] = '\0';
    for (;;) {
        if (NULL != name) {
            size_t bytes = strlen(name);
            if (bytes + 1 > at) {
                return ENAMETOOLONG;
            }
            if ('\0' != path[at]) {
                path[--at] = '/';
            }
            at -= bytes;
            memcpy(path + at, name, bytes);
        }
        if (NULL == node->parent) {
            break;
        }
        name = node->name;
        node = node->parent;
    }
    if ('\0' == path[at]) {
        path[--at] = '.';
    }
    memmove(path, path + at, PATH_MAX - at);
    return 0;
}

bool mpicrypt_mount_above(const mpicrypt_mount_node_t *node, const struct stat *status)
{
    while (NULL != node && (node->device != status->st_dev || node->inode != status->st_ino)) {
        node = node->parent;
    }
    return NULL != node;
}
