/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A file that was renamed without its sidecar, by a program that knows nothing of it (write, then rename): the sidecar
 * is found by its UUID, which is in the file's attribute, too, and renamed to match the file.
 *
 *     FILE.mpicrypt is there, and has the UUID     nothing to do
 *     it is damaged                                nothing is done
 *     it has another one                           set aside, as UUID.mpic-old, if its own is found
 *     one sidecar in the directory has the UUID,
 *     and belongs to no file                       renamed to FILE.mpicrypt
 *     none does, or several do                     nothing is done; a message names one
 *
 * The UUIDs are not verified here: the sidecar found is judged like any other.  It is renamed while no other process
 * can make, use or rename it; nothing is ever deleted or replaced.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "cryptmpio_posix.h"

#include "opal/mca/common/cryptfile/file/sidecar.h"
#include "opal/mca/common/cryptfile/file/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_MAX = 100000, SIDECARS_MAX = 4096 };       /* search limits: an attacker can fill the directory */

typedef ompi_common_cryptmpio_posix_t posix_t;

/* ---- whose is it? ---- */

/* Parsed alone: no keystore is open yet, and crypt_fips may have to be set before anything is hashed. */
bool ompi_common_cryptmpio_posix_uuid(const posix_t *posix, uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES])
{
    opal_cryptfile_map_digest_t digest;
    opal_cryptfile_map_t *map = NULL;
    uint8_t *bytes = NULL;
    size_t count = 0;
    bool known = OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_attribute_read(posix, &bytes, &count) && count > 0;
    bool short_form = known && OPAL_CRYPT_OK == opal_cryptfile_map_digest_parse(bytes, count, &digest);

    known = short_form || (known && OPAL_CRYPT_OK == opal_cryptfile_map_parse(bytes, count, &map));
    if (known) {
        memcpy(uuid, short_form ? digest.uuid : map->uuid, OPAL_CRYPTFILE_UUID_BYTES);
    }
    opal_cryptfile_map_destroy(map);
    free(bytes);
    return known;
}

bool ompi_common_cryptmpio_posix_uuid_at(const char *path, uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES])
{
    posix_t posix;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

    ompi_common_cryptmpio_posix_init(&posix, fd, false);
    bool known = fd >= 0 && ompi_common_cryptmpio_posix_uuid(&posix, uuid);
    if (fd >= 0) {
        close(fd);
    }
    return known;
}

bool ompi_common_cryptmpio_posix_is_of(posix_t *posix, const uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES])
{
    opal_cryptfile_sidecar_header_t header;

    return OPAL_CRYPT_OK == opal_cryptfile_sidecar_read(&posix->super, &header) && 0 == memcmp(uuid, header.uuid, sizeof(header.uuid));
}

/* Opens regular files only, and follows no link. */
static bool open_at(posix_t *posix, const char *path, int how)
{
    struct stat status;

    ompi_common_cryptmpio_posix_init(posix, -1, O_RDWR == how);
    posix->sidecar_fd = open(path, how | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (posix->sidecar_fd >= 0 && (0 != fstat(posix->sidecar_fd, &status) || !S_ISREG(status.st_mode))) {
        ompi_common_cryptmpio_posix_close(posix);
        errno = EINVAL;
    }
    return posix->sidecar_fd >= 0;
}

static bool path_is_of(const char *path, const uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES])
{
    posix_t posix;
    bool is = open_at(&posix, path, O_RDONLY) && ompi_common_cryptmpio_posix_is_of(&posix, uuid);

    ompi_common_cryptmpio_posix_close(&posix);
    return is;
}

/* Is there no sidecar beside the file, or an intact one with another UUID?  A damaged one may be its own. */
static bool lacks_its_own(const char *sidecar, const uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES])
{
    opal_cryptfile_sidecar_header_t header;
    posix_t posix;
    bool there = open_at(&posix, sidecar, O_RDONLY);
    bool lacks = there ? OPAL_CRYPT_OK == opal_cryptfile_sidecar_read(&posix.super, &header)
                             && 0 != memcmp(uuid, header.uuid, sizeof(header.uuid))
                       : ENOENT == errno;

    ompi_common_cryptmpio_posix_close(&posix);
    return lacks;
}

static bool ends_in(const char *name, const char *ending)
{
    size_t bytes = strlen(name), of = strlen(ending);

    return bytes > of && 0 == strcmp(name + bytes - of, ending);
}

/* A sidecar stays with the file that it is named after, unless that file has another UUID.  (A copy without
 * attributes has no UUID.) */
static bool has_file(const char *path, const uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES])
{
    char *file = ends_in(path, OPAL_CRYPTFILE_SIDECAR_SUFFIX) ? strndup(path, strlen(path) - strlen(OPAL_CRYPTFILE_SIDECAR_SUFFIX)) : NULL;
    uint8_t its[OPAL_CRYPTFILE_UUID_BYTES];
    struct stat status;
    bool has = NULL != file && (0 == lstat(file, &status) || ENOENT != errno);

    if (has && ompi_common_cryptmpio_posix_uuid_at(file, its)) {
        has = 0 == memcmp(uuid, its, sizeof(its));
    }
    free(file);
    return has;
}

/* ---- the directory ---- */

/* `found`: a sidecar that has the UUID.  Returns the number of those without a file. */
static int search(const char *sidecar, const uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES], char found[PATH_MAX])
{
    const char *own = strrchr(sidecar, '/');
    char path[PATH_MAX];
    int free_ones = 0, names = 0, sidecars = 0, length = NULL == own ? 0 : (int) (own - sidecar);
    snprintf(path, sizeof(path), "%.*s/", length, sidecar);
    DIR *directory = opendir(path);
    struct dirent *entry;

    while (NULL != directory && NULL != (entry = readdir(directory)) && ++names <= NAMES_MAX && sidecars < SIDECARS_MAX) {
        if ((!ends_in(entry->d_name, OPAL_CRYPTFILE_SIDECAR_SUFFIX) && !ends_in(entry->d_name, OMPI_CRYPTMPIO_ASIDE))
            || snprintf(path, sizeof(path), "%.*s/%s", length, sidecar, entry->d_name) >= (int) sizeof(path)
            || 0 == strcmp(path, sidecar)) {
            continue;
        }
        ++sidecars;
        if (path_is_of(path, uuid)) {
            bool is_free = !has_file(path, uuid);
            if (is_free || '\0' == *found) {
                strcpy(found, path);
            }
            free_ones += is_free;
        }
    }
    if (NULL != directory) {
        closedir(directory);
    }
    return free_ones;
}

/* Open it, and keep out all other makers and users until it is closed. */
static bool hold(posix_t *posix, const char *path)
{
    bool alone = false;
    bool got = open_at(posix, path, O_RDWR)
               && OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_lock_now(posix, OMPI_CRYPTMPIO_LOCK_MAKER, true, &alone) && alone
               && OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_lock_now(posix, OMPI_CRYPTMPIO_LOCK_USE, true, &alone) && alone
               && ompi_common_cryptmpio_posix_lies_at(posix->sidecar_fd, path);

    if (!got) {
        ompi_common_cryptmpio_posix_close(posix);
    }
    return got;
}

/* `sidecar`: the target name, either free or taken by another file's sidecar. */
static bool bring(const char *found, const char *sidecar, const uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES])
{
    posix_t one, other;
    struct stat status;
    bool brought = false;

    if (!hold(&one, found)) {
        return false;
    }
    if (ompi_common_cryptmpio_posix_is_of(&one, uuid) && !has_file(found, uuid)) {
        brought = 0 != lstat(sidecar, &status)
                  || (hold(&other, sidecar) && OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_set_aside(&other, sidecar));
        brought = brought && 0 == ompi_common_cryptmpio_posix_rename(found, sidecar);
    }
    ompi_common_cryptmpio_posix_close(&one);
    return brought;
}

ompi_common_cryptmpio_find_t ompi_common_cryptmpio_posix_find(const posix_t *posix, const char *sidecar, char found[PATH_MAX])
{
    uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES];

    *found = '\0';
    if (!ompi_common_cryptmpio_posix_uuid(posix, uuid) || !lacks_its_own(sidecar, uuid)) {
        return OMPI_CRYPTMPIO_FIND_NOTHING;
    }
    int free_ones = search(sidecar, uuid, found);
    if ('\0' == *found) {
        return OMPI_CRYPTMPIO_FIND_NOTHING;
    }
    /* Another process may have moved it at the same time. */
    return (1 == free_ones && bring(found, sidecar, uuid)) || path_is_of(sidecar, uuid) ? OMPI_CRYPTMPIO_FIND_BROUGHT
                                                                                        : OMPI_CRYPTMPIO_FIND_ELSEWHERE;
}
