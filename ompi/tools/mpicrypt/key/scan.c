/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt key delete --scan: which files below a directory need a label, by what their maps claim; no key is used.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "move.h"
#include "ompi/mca/common/cryptmpio/cryptmpio_posix.h"
#include "ompi/tools/mpicrypt/file/walk.h"
#include "opal/mca/common/crypt/base/text.h"
#include "opal/mca/common/cryptfile/file/header.h"

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

/* ---- the files ---- */

typedef struct scanning {
    const char *directory, *label;
    mpicrypt_key_scan_t *scan;
    int error;                          /* the directory itself cannot be read */
} scanning_t;

/* Only regular files are opened: not a device or a FIFO. */
static bool scan_found(void *arg, mpicrypt_file_directory_t *directory, const char *name, mpicrypt_file_walk_kind_t kind)
{
    const scanning_t *scanning = arg;
    struct stat status;

    if (MPICRYPT_FILE_WALK_FILE != kind) {
        return true;
    }
    int fd = openat(directory->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && 0 == fstat(fd, &status) && S_ISREG(status.st_mode)) {
        scan_file(fd, name, scanning->label, scanning->scan);
    } else {
        ++scanning->scan->skipped;
    }
    if (fd >= 0) {
        close(fd);
    }
    return true;
}

static void scan_failed(void *arg, const char *shown, int error)
{
    scanning_t *scanning = arg;

    ++scanning->scan->skipped;
    if (strlen(shown) <= strlen(scanning->directory) + strlen("/")) {   /* not one below it */
        scanning->error = error;
    }
}

bool mpicrypt_key_scan(const char *directory, const char *label, mpicrypt_key_scan_t *scan)
{
    scanning_t scanning = {.directory = directory, .label = label, .scan = scan};
    const mpicrypt_file_walk_t walk = {.arg = &scanning, .found = scan_found, .failed = scan_failed};

    memset(scan, 0, sizeof(*scan));
    mpicrypt_file_walk(&walk, directory);
    errno = scanning.error;
    return 0 == scanning.error;
}
