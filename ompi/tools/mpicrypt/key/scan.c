/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt key delete --scan: which files below a directory need a label, by what their maps claim; no key is used.  The
 * walk follows no link and keeps one directory open for each level, so its memory does not grow with the number of files.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "move.h"
#include "ompi/mca/common/cryptmpio/cryptmpio_posix.h"
#include "opal/mca/common/crypt/base/text.h"
#include "opal/mca/common/cryptfile/file/header.h"

enum { LEVELS_MAX = 200 };

static bool map_needs(const opal_cryptfile_map_t *map, const char *label)
{
    for (uint32_t i = 0; NULL != map && i < map->region_count; ++i) {
        if (map->regions[i].encrypted && 0 == strcmp(label, map->regions[i].label)) {
            return true;
        }
    }
    return false;
}

/* Does a copy of the map name the label?  *readable: one could be read. */
static bool copies_need(ompi_common_cryptmpio_posix_t *posix, const opal_cryptfile_header_t *header, const char *label, bool *readable)
{
    bool needs = false;

    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        const bool attribute = OPAL_CRYPTFILE_COPY_ATTRIBUTE == i;
        opal_cryptfile_copy_state_t state = {.map = NULL};
        uint8_t *bytes = NULL;
        size_t count = 0;
        int rc = attribute ? ompi_common_cryptmpio_posix_attribute_read(posix, &bytes, &count)
                 : NULL == header ? OPAL_CRYPT_ERR_AUTH
                 : opal_cryptfile_place_read(&posix->super, header, (unsigned) i - OPAL_CRYPTFILE_COPY_PLACE_0, &bytes, &count);

        if (OPAL_CRYPT_OK == rc && NULL != bytes) {
            rc = attribute ? opal_cryptfile_copy_judge(bytes, count, NULL, NULL, &state)
                           : opal_cryptfile_place_judge(bytes, count, header, NULL, NULL, &state);
            *readable = *readable || (OPAL_CRYPT_OK == rc && NULL != state.map);
            needs = needs || (OPAL_CRYPT_OK == rc && map_needs(state.map, label));
            opal_cryptfile_copy_free(&state);
        }
        free(bytes);
    }
    return needs;
}

static void scan_file(int fd, const char *name, const char *label, mpicrypt_key_scan_t *scan)
{
    ompi_common_cryptmpio_posix_t posix;
    opal_cryptfile_header_t header;
    opal_cryptfile_state_t state;
    bool magic = false, readable = false;

    ompi_common_cryptmpio_posix_init(&posix, fd, false);
    int rc = opal_cryptfile_beginning_read(&posix.super, &magic, &header, &state);
    scan->skipped += !magic && OPAL_CRYPT_OK != rc;
    if (magic) {
        /* A damaged file may be one that a backup of the map can repair. */
        const bool needs = copies_need(&posix, OPAL_CRYPT_OK == rc ? &header : NULL, label, &readable);
        ++scan->encrypted;
        scan->skipped += !readable;
        if (needs && 0 == scan->found++) {
            snprintf(scan->example, sizeof(scan->example), "%s", name);
            (void) opal_crypt_harmless(scan->example, "");
        }
    }
    ++scan->files;
}

/* Takes over the descriptor.  False: errno. */
static bool scan_directory(int fd, unsigned level, const char *label, mpicrypt_key_scan_t *scan)
{
    DIR *directory = fdopendir(fd);
    struct dirent *entry;
    struct stat status;

    if (NULL == directory) {
        close(fd);
        return false;
    }
    while (errno = 0, NULL != (entry = readdir(directory))) {
        const char *name = entry->d_name;
        if (0 == strcmp(name, ".") || 0 == strcmp(name, "..") || 0 != fstatat(dirfd(directory), name, &status, AT_SYMLINK_NOFOLLOW)
            || (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))) {
            continue;                   /* a device or a FIFO must not be opened */
        }
        int one = openat(dirfd(directory), name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (one < 0 || 0 != fstat(one, &status)) {
            ++scan->skipped;
        } else if (S_ISREG(status.st_mode)) {
            scan_file(one, name, label, scan);
        } else if (S_ISDIR(status.st_mode) && level < LEVELS_MAX) {
            scan->skipped += !scan_directory(one, level + 1, label, scan);
            one = -1;
        } else {
            ++scan->skipped;
        }
        if (one >= 0) {
            close(one);
        }
    }
    const int error = errno;
    closedir(directory);
    errno = error;
    return 0 == error;
}

bool mpicrypt_key_scan(const char *directory, const char *label, mpicrypt_key_scan_t *scan)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    memset(scan, 0, sizeof(*scan));
    return fd >= 0 && scan_directory(fd, 0, label, scan);
}
