/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Creating encrypted files: their maps, the files themselves, and their access rights.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "opal/mca/common/crypt/base/secmem.h"

enum { OWNER = 0600 };

/* ---- access rights ---- */

bool mpicrypt_file_own_as(int fd, int of)
{
    struct stat now, wanted;

    return 0 == fstat(fd, &now) && 0 == fstat(of, &wanted)
           && ((now.st_uid == wanted.st_uid && now.st_gid == wanted.st_gid) || 0 == fchown(fd, wanted.st_uid, wanted.st_gid))
           && ompi_common_cryptmpio_posix_copy_acl(fd, of) && 0 == fchmod(fd, wanted.st_mode & 0777);
}

unsigned mpicrypt_file_mode(int of, const struct stat *status)
{
    return status->st_mode & (ompi_common_cryptmpio_posix_no_acl(of) ? 0777 : 0707);
}

bool mpicrypt_file_protect(const mpicrypt_opened_t *file, unsigned mode)
{
    const unsigned lacks = OWNER & ~mode;
    const int fd = file->posix.data_fd;
    struct stat now;

    return 0 == lacks || (0 == fstat(fd, &now) && 0 == fchmod(fd, now.st_mode & 0777 & ~lacks));
}

/* ---- maps ---- */

static int make_map(const mpicrypt_file_choices_t *options, const mpicrypt_opened_t *file, opal_cryptfile_map_t **map,
                    opal_cryptfile_key_t *key, opal_crypt_why_t *why)
{
    const opal_cryptfile_run_t run = {0, 1, 0};
    opal_cryptfile_tiling_t tiling;
    opal_aead_cipher_t cipher;
    uint32_t region;
    bool added;
    int rc = opal_cryptfile_algorithm_parse(options->algorithm, &cipher, why);

    rc = rc ? rc : opal_cryptfile_map_create(map);
    rc = rc ? rc : opal_cryptfile_tiling_make(&tiling, 0, 1, false, &run, 1, why);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    const opal_cryptfile_region_ask_t ask = {true, cipher, (uint32_t) options->block_size.value[0], options->label, &tiling};
    rc = opal_cryptfile_map_add(*map, &ask, &region, &added, why);
    opal_cryptfile_tiling_free(&tiling);
    rc = rc ? rc : opal_cryptfile_map_lock(*map, region, file->keystore, key, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_geometry_choose(*map, opal_cryptfile_map_bytes(*map));
    }
    if (OPAL_CRYPT_OK == rc) {
        (*map)->generation = 1;
        rc = opal_cryptfile_map_mac(*map, region, key->data_key, (*map)->regions[region].mac);
    }
    return rc;
}

int mpicrypt_file_map_copy(const opal_cryptfile_map_t *map, opal_cryptfile_map_t **copy)
{
    size_t count = opal_cryptfile_map_bytes(map);
    uint8_t *bytes = malloc(count);
    int rc = NULL == bytes ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;

    if (OPAL_CRYPT_OK == rc) {
        opal_cryptfile_map_write(map, bytes);
        rc = opal_cryptfile_map_parse(bytes, count, copy);
    }
    free(bytes);
    return rc;
}

/* The new keys may be longer than those that the geometry was chosen for. */
static int fit_geometry(opal_cryptfile_map_t *map)
{
    size_t count = opal_cryptfile_map_bytes(map);
    int rc = opal_cryptfile_geometry_fits(map, count);

    return OPAL_CRYPT_ERR_AUTH == rc ? opal_cryptfile_geometry_choose(map, count) : rc;
}

/* The map of another file, with new data keys. */
static int make_map_like(const opal_cryptfile_map_t *like, const mpicrypt_opened_t *file, opal_cryptfile_map_t **map,
                         opal_cryptfile_key_t *keys, opal_crypt_why_t *why)
{
    int rc = mpicrypt_file_map_copy(like, map);

    if (OPAL_CRYPT_OK == rc) {
        opal_crypt_random((*map)->uuid, sizeof((*map)->uuid));
        (*map)->generation = 1;
    }
    for (uint32_t i = 0; OPAL_CRYPT_OK == rc && i < like->region_count; ++i) {
        rc = like->regions[i].encrypted ? opal_cryptfile_map_lock(*map, i, file->keystore, &keys[i], why) : OPAL_CRYPT_OK;
    }
    rc = OPAL_CRYPT_OK == rc ? fit_geometry(*map) : rc;
    for (uint32_t i = 0; OPAL_CRYPT_OK == rc && i < like->region_count; ++i) {
        rc = like->regions[i].encrypted ? opal_cryptfile_map_mac(*map, i, keys[i].data_key, (*map)->regions[i].mac) : OPAL_CRYPT_OK;
    }
    return rc;
}

/* ---- files ---- */

static int write_map(mpicrypt_opened_t *file)
{
    opal_cryptfile_storage_t *storage = &file->posix.super;
    bool there = false;
    int rc = ompi_common_cryptmpio_posix_maker_lock(&file->posix, file->path, &there);

    if (OPAL_CRYPT_OK == rc && !there) {
        errno = ESTALE;
        return OPAL_CRYPT_ERR_STORAGE;
    }
    rc = rc ? rc : opal_cryptfile_make_begin(storage, file->map);
    rc = rc ? rc : ompi_common_cryptmpio_posix_attribute_write(&file->posix, file->map);
    rc = rc ? rc : opal_cryptfile_make_end(storage, file->map);
    if (OPAL_CRYPT_OK == rc) {
        ompi_common_cryptmpio_posix_maker_unlock(&file->posix);
    }
    return rc;
}

static bool about_keys(int rc, const opal_crypt_why_t *why)
{
    return OPAL_CRYPT_ERR_ACCESS == rc
           || (NULL != why->topic && (0 == strncmp(why->topic, "keystore-", 9) || 0 == strncmp(why->topic, "secret-", 7)));
}

static int fill_in(const mpicrypt_file_choices_t *options, const opal_cryptfile_map_t *like, mpicrypt_opened_t *file)
{
    opal_cryptfile_map_t *map = NULL;
    uint32_t regions = NULL == like ? 1 : like->region_count;
    opal_cryptfile_key_t *keys = calloc(regions, sizeof(*keys));
    opal_crypt_why_t why = {.topic = NULL};
    int rc = NULL == keys ? OPAL_CRYPT_ERR_MEMORY : NULL == like ? make_map(options, file, &map, keys, &why)
                                                                 : make_map_like(like, file, &map, keys, &why);
    int code = OPAL_CRYPT_OK == rc ? mpicrypt_file_engine(options, file, map, keys)
               : mpicrypt_file_refused(file->subject, file->path, about_keys(rc, &why) ? MPICRYPT_FILE_ERR_KEY : MPICRYPT_FILE_ERR_ARGUMENT,
                                       rc, &why);

    if (MPICRYPT_OK != code) {
        opal_cryptfile_keys_free(keys, NULL == keys ? 0 : regions);
        opal_cryptfile_map_destroy(map);
        return code;
    }
    return OPAL_CRYPT_OK == write_map(file) ? MPICRYPT_OK
           : mpicrypt_error(MPICRYPT_FAILED, "%s: its map cannot be stored: %s", file->path, strerror(errno));
}

/* `like`: NULL, or the map whose regions the file gets. */
static int make(const mpicrypt_file_choices_t *options, const opal_cryptfile_map_t *like, const char *path, unsigned mode,
                mpicrypt_opened_t *file)
{
    *file = (mpicrypt_opened_t){.path = path, .subject = options->subject};
    ompi_common_cryptmpio_posix_init(&file->posix, -1, true);
    int code = mpicrypt_file_keystore(options, &file->keystore);

    if (MPICRYPT_OK == code) {
        code = mpicrypt_file_open_data(file, O_RDWR | O_CREAT | O_EXCL, mode | OWNER);     /* fsetxattr needs write access */
    }
    code = MPICRYPT_OK == code ? fill_in(options, like, file) : code;
    if (MPICRYPT_OK != code) {
        if (file->posix.data_fd >= 0) {
            (void) unlink(path);
        }
        mpicrypt_file_close_engine(file);
    }
    return code;
}

int mpicrypt_file_make_like(const mpicrypt_file_choices_t *options, const mpicrypt_opened_t *like, const char *path, unsigned mode,
                            mpicrypt_opened_t *file)
{
    return make(options, like->map, path, mode, file);
}

int mpicrypt_file_make(const mpicrypt_file_choices_t *options, const char *path, unsigned mode, mpicrypt_opened_t *file)
{
    *file = (mpicrypt_opened_t){.path = path, .subject = options->subject};
    if (1 != options->block_size.count) {
        return mpicrypt_error(MPICRYPT_USAGE, "--block-size is one size");
    }
    if (options->block_size.value[0] > UINT32_MAX) {    /* the map has 32 bits for it, and checks the rest */
        return mpicrypt_error(MPICRYPT_USAGE, "--block-size is a power of two from 512 to 16M");
    }
    return make(options, NULL, path, mode, file);
}
