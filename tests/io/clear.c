/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Looking for plaintext on storage.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "clear.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool clear_in(const char *path, const void *bytes, size_t count)
{
    struct stat status;
    int fd = open(path, O_RDONLY);

    MT_CHECK(fd >= 0 && 0 == fstat(fd, &status), "%s cannot be read", path);
    size_t size = (size_t) status.st_size;
    void *all = size > 0 ? mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0) : NULL;
    MT_CHECK(MAP_FAILED != all, "%s cannot be mapped", path);
    bool found = NULL != all && NULL != memmem(all, size, bytes, count);
    if (NULL != all) {
        munmap(all, size);
    }
    close(fd);
    return found;
}

bool clear_below(const char *directory, const void *bytes, size_t count)
{
    DIR *list = opendir(directory);
    bool found = false;
    char path[2048];

    MT_CHECK(NULL != list, "%s cannot be read", directory);
    for (struct dirent *entry = readdir(list); NULL != entry && !found; entry = readdir(list)) {
        snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        found = DT_REG == entry->d_type && clear_in(path, bytes, count);
        if (found) {
            printf("in clear: %s\n", path);
        }
    }
    closedir(list);
    return found;
}
