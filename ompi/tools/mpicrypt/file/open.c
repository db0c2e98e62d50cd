/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Opening and creating encrypted files as fs/crypt does, for one process.
 * What is read is trusted only after a key of ours has verified the map.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "opal/constants.h"
#include "opal/mca/aead/base/base.h"
#include "opal/mca/common/crypt/base/secmem.h"

enum { OWNER = 0600 };

/* ---- common to both ---- */

static const opal_aead_module_t *provider(void *arg, opal_aead_cipher_t cipher)
{
    const opal_aead_module_t *module = NULL;
    opal_aead_why_t why = {0};

    if (OPAL_SUCCESS != opal_aead_base_select(NULL, cipher, mpicrypt_keystore_fips(arg), &module, &why)) {
        opal_aead_base_show(&why);
        return NULL;
    }
    return module;
}

static int failed(const mpicrypt_file_t *file, const char *what, const char *reason)
{
    return mpicrypt_error(MPICRYPT_FAILED, "%s: %s%s%s", file->path, what, '\0' == *reason ? "" : ": ", reason);
}

static int engine(const mpicrypt_file_options_t *options, mpicrypt_file_t *file, opal_cryptfile_map_t *map, opal_cryptfile_key_t *keys)
{
    const opal_cryptfile_of_t of = {&file->posix.super, provider, (void *) (uintptr_t) &options->keystore, 0};
    int rc = opal_cryptfile_create(&of, &file->file);

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_use(file->file, map, keys);
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_cryptfile_destroy(file->file);
        file->file = NULL;
        return failed(file, "cannot be used", opal_crypt_strerror(rc));
    }
    file->map = map;
    file->keys = keys;
    return MPICRYPT_OK;
}

static int open_data(mpicrypt_file_t *file, int flags, unsigned mode)
{
    struct stat status;
    int fd = open(file->path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode);     /* it may be a FIFO or a device */

    ompi_common_cryptmpio_posix_init(&file->posix, fd, O_RDONLY != (flags & O_ACCMODE));
    if (fd < 0) {
        return failed(file, strerror(errno), "");
    }
    if (0 != fstat(fd, &status) || !S_ISREG(status.st_mode)) {
        return failed(file, "it is no regular file", "");
    }
    file->bytes = (uint64_t) status.st_size;
    file->sidecar = ompi_common_cryptmpio_posix_sidecar(file->path);
    return NULL == file->sidecar ? failed(file, strerror(errno), "") : MPICRYPT_OK;
}

/* ---- opening ---- */

/* Anyone with the public recovery key can have wrapped a key of their own.  The keystore can tell if it still has that
 * version of the label, even expired or revoked. */
static int prove(const mpicrypt_file_t *file, opal_cryptfile_copy_state_t *copy, const opal_cryptfile_region_t *region,
                 const uint8_t *data_key, opal_crypt_why_t *why)
{
    int rc = NULL == file->keystore ? OPAL_CRYPT_ERR_CONFIG
             : opal_cryptfile_keystore_agrees(file->keystore, region->label, copy->map->uuid, region->wrapped, data_key);

    if (OPAL_CRYPT_ERR_CONFIG == rc) {
        copy->recovered = true;
        return OPAL_CRYPT_OK;
    }
    return OPAL_CRYPT_ERR_AUTH == rc ? opal_crypt_refuse(why, rc, "file-map-other-key", "label %s, by its escrow", region->label) : rc;
}

/* Unwrap the data keys that the keystore did not provide, from the map's escrow parts. */
static void recover(const mpicrypt_file_options_t *options, const mpicrypt_file_t *file, opal_cryptfile_copy_state_t *copy)
{
    opal_crypt_why_t why = {.topic = NULL};

    for (uint32_t i = 0; NULL != copy->map && i < copy->map->region_count; ++i) {
        const opal_cryptfile_region_t *region = &copy->map->regions[i];
        opal_cryptfile_key_t *key = &copy->keys[i];
        if (!region->encrypted || NULL != key->data_key) {
            continue;
        }
        key->data_key = opal_crypt_secmem_alloc(OPAL_CRYPTFILE_DATA_KEY_BYTES);
        int rc = NULL == key->data_key ? OPAL_CRYPT_ERR_MEMORY
                 : opal_cryptfile_wrapped_recover(region->wrapped, options->recovery, options->keystore.netfs, key->data_key, &why);
        if (OPAL_CRYPT_OK == rc) {
            rc = opal_cryptfile_map_check(copy->map, i, key->data_key);
            rc = rc ? rc : prove(file, copy, region, key->data_key, &why);
            copy->refused = copy->refused || OPAL_CRYPT_ERR_AUTH == rc;
        }
        if (OPAL_CRYPT_OK != rc) {
            opal_crypt_secmem_free(key->data_key);
            key->data_key = NULL;
            copy->why = NULL == why.topic ? copy->why : why;
            continue;
        }
        key->grant = OPAL_CRYPTFILE_GRANT_OPEN;
        copy->verified = true;
    }
}

static int judge(const mpicrypt_file_options_t *options, mpicrypt_file_t *file)
{
    int rc = OPAL_CRYPT_OK;

    for (int i = 0; i < OPAL_CRYPTFILE_COPIES && OPAL_CRYPT_OK == rc; ++i) {
        rc = mpicrypt_file_judge_copy(file, (opal_cryptfile_copy_t) i);
        if (OPAL_CRYPT_OK == rc && NULL != options->recovery) {
            recover(options, file, &file->copies[i]);
        }
    }
    if (OPAL_CRYPT_OK != rc) {
        return failed(file, "its map cannot be read", OPAL_CRYPT_ERR_STORAGE == rc ? strerror(errno) : opal_crypt_strerror(rc));
    }
    file->best = mpicrypt_file_choose(file);
    if (file->best < 0) {
        return MPICRYPT_OK;
    }
    opal_cryptfile_copy_state_t *best = &file->copies[file->best];
    rc = ompi_common_cryptmpio_posix_is_one(&file->posix) ? OPAL_CRYPT_OK : opal_cryptfile_sidecar_whole(&file->posix.super, &file->header, best->map, &file->why);
    if (OPAL_CRYPT_OK != rc) {
        file->best = -1;
        return NULL != file->why.topic ? MPICRYPT_OK : failed(file, "its sidecar cannot be read", strerror(errno));
    }
    int code = engine(options, file, best->map, best->keys);
    if (MPICRYPT_OK == code) {          /* now owned by the engine (map) and by us (keys) */
        best->map = NULL;
        best->keys = NULL;
        file->recovered = best->recovered;
        code = OPAL_CRYPT_OK == opal_cryptfile_size(file->file, &file->bytes) ? code : failed(file, strerror(errno), "");
    }
    if (file->recovered) {
        (void) mpicrypt_error(MPICRYPT_OK, "%s: a key is from its escrow alone: whoever has the public recovery key can have made "
                              "this file", file->path);
    }
    return code;
}

int mpicrypt_file_proved(const mpicrypt_file_t *file)
{
    return file->recovered ? failed(file, "under no label is what a key from the escrow alone opens: decrypt it, look at it, and "
                                    "encrypt it", "") : MPICRYPT_OK;
}

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

static bool protect(int fd, unsigned lacks)
{
    struct stat now;

    return 0 == fstat(fd, &now) && 0 == fchmod(fd, now.st_mode & 0777 & ~lacks);
}

bool mpicrypt_file_protect(const mpicrypt_file_t *file, unsigned mode)
{
    const unsigned lacks = OWNER & ~mode;

    return 0 == lacks || (protect(file->posix.data_fd, lacks) && protect(file->posix.sidecar_fd, lacks));
}

int mpicrypt_file_take(const mpicrypt_file_t *file, bool alone)
{
    ompi_common_cryptmpio_use_t use = OMPI_CRYPTMPIO_USE_OURS;

    if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_use(&file->posix, file->sidecar, alone, &use)) {
        return alone ? failed(file, "whether somebody has it open cannot be told without locks", strerror(errno)) : MPICRYPT_OK;
    }
    return OMPI_CRYPTMPIO_USE_OURS == use ? MPICRYPT_OK
           : alone && OMPI_CRYPTMPIO_USE_BUSY == use
               ? failed(file, "a job or another mpicrypt has it open, and nobody may have it open for this", "")
               : failed(file, ompi_common_cryptmpio_posix_why_not(use), "");
}

int mpicrypt_file_elsewhere(const char *path, const char *found, const char *sidecar)
{
    return mpicrypt_error(MPICRYPT_FAILED, "%s: %s has its UUID, but the name of a file that exists, or it is in use, cannot be renamed "
                          "by you, or is one of several; if it belongs to this file, rename it to %s, or copy it for a copy",
                          path, found, sidecar);
}

static int open_sidecar(mpicrypt_file_t *file)
{
    char found[PATH_MAX];
    int code = MPICRYPT_OK;

    if (OMPI_CRYPTMPIO_FIND_ELSEWHERE == ompi_common_cryptmpio_posix_find(&file->posix, file->sidecar, found)) {
        code = mpicrypt_file_elsewhere(file->path, found, file->sidecar);
    }
    if (MPICRYPT_OK == code && OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_open(&file->posix, file->sidecar, 0)) {
        code = ENOENT == errno ? failed(file, "it is not encrypted, or its sidecar is missing", file->sidecar)
                               : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", file->sidecar, strerror(errno));
    }
    return code;
}

int mpicrypt_file_open(const mpicrypt_file_options_t *options, const char *path, bool may_write, mpicrypt_file_t *file)
{
    bool one = false;

    *file = (mpicrypt_file_t){.path = path, .best = -1};
    int code = open_data(file, may_write ? O_RDWR : O_RDONLY, 0);

    if (MPICRYPT_OK == code && OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_begins_as_one(&file->posix, &one)) {
        code = failed(file, strerror(errno), "");
    }
    if (one) {
        ompi_common_cryptmpio_posix_one(&file->posix);
    }
    code = MPICRYPT_OK != code || one ? code : open_sidecar(file);
    code = MPICRYPT_OK == code ? mpicrypt_file_take(file, options->alone) : code;
    /* A job may have extended it, and sealed it, before we got the lock. */
    if (MPICRYPT_OK == code
        && OPAL_CRYPT_OK != file->posix.super.size(&file->posix.super, OPAL_CRYPTFILE_DATA, &file->bytes)) {
        code = failed(file, strerror(errno), "");
    }
    if (MPICRYPT_OK == code && one) {
        code = mpicrypt_file_beginning(file);
    } else if (MPICRYPT_OK == code && OPAL_CRYPT_OK != opal_cryptfile_sidecar_read(&file->posix.super, &file->header)) {
        code = mpicrypt_error(MPICRYPT_FAILED, "%s: it is damaged, or no such thing at all", file->sidecar);
    }
    if (MPICRYPT_OK == code) {
        int opened = mpicrypt_keystore_open(&options->keystore, &file->keystore);
        code = MPICRYPT_USAGE == opened || (NULL == options->recovery && !options->go_on) ? opened : code;
    }
    if (MPICRYPT_OK == code) {
        code = judge(options, file);
    }
    if (MPICRYPT_OK != code) {
        mpicrypt_file_close(file);
    }
    return code;
}

int mpicrypt_file_demand(mpicrypt_file_t *file, const uint8_t *wanted, opal_crypt_why_t *why)
{
    int rc = opal_cryptfile_seal_demand(file->file, wanted, why);

    /* The file's size is the sealed one, not the one that the storage reported before. */
    (void) opal_cryptfile_sealed_bytes(file->file, &file->bytes);
    return rc;
}

static int demand_seal(const mpicrypt_file_options_t *options, mpicrypt_file_t *file)
{
    uint8_t wanted[OPAL_CRYPT_HASH_BYTES];
    opal_crypt_why_t why = {.topic = NULL};

    if (NULL != options->root && !opal_cryptfile_seal_parse(options->root, wanted)) {
        return mpicrypt_error(MPICRYPT_USAGE, "--root: 64 hexadecimal digits");
    }
    int rc = mpicrypt_file_demand(file, NULL == options->root ? NULL : wanted, &why);
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused(file->path, rc, &why);
}

int mpicrypt_file_open_verified(const mpicrypt_file_options_t *options, const char *path, bool may_write,
                                mpicrypt_file_t *file)
{
    int code = mpicrypt_file_open(options, path, may_write, file);

    if (MPICRYPT_OK != code) {
        return code;
    }
    if (file->best < 0) {
        code = mpicrypt_refused(path, OPAL_CRYPT_ERR_ACCESS, &file->why);
    } else if (options->sealed || NULL != options->root) {
        code = demand_seal(options, file);
    }
    if (MPICRYPT_OK != code) {
        mpicrypt_file_close(file);
    }
    return code;
}

/* ---- creating ---- */

static int make_map(const mpicrypt_file_options_t *options, const mpicrypt_file_t *file, opal_cryptfile_map_t **map,
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
        rc = opal_cryptfile_geometry_choose(*map, opal_cryptfile_map_bytes(*map) + OPAL_CRYPTFILE_GEOMETRY_BYTES);
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
        rc = opal_cryptfile_map_parse_kind(bytes, count, 0 == map->geometry.group_bytes ? OPAL_CRYPTFILE_KIND_MAP
                                                                                        : OPAL_CRYPTFILE_KIND_ONE_MAP, copy);
    }
    free(bytes);
    return rc;
}

/* The new keys may be longer than those that the geometry was chosen for. */
static int fit_geometry(opal_cryptfile_map_t *map)
{
    size_t count = opal_cryptfile_map_bytes(map);
    int rc = 0 == map->geometry.group_bytes ? OPAL_CRYPT_OK : opal_cryptfile_geometry_fits(map, count);

    return OPAL_CRYPT_ERR_AUTH == rc ? opal_cryptfile_geometry_choose(map, count) : rc;
}

/* The map of another file, with new data keys. */
static int make_map_like(const opal_cryptfile_map_t *like, uint64_t number, const mpicrypt_file_t *file,
                         opal_cryptfile_map_t **map, opal_cryptfile_key_t *keys, opal_crypt_why_t *why)
{
    int rc = mpicrypt_file_map_copy(like, map);

    if (OPAL_CRYPT_OK == rc) {
        opal_crypt_random((*map)->uuid, sizeof((*map)->uuid));
        memcpy((*map)->uuid, &number, sizeof(number));
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

/* `like`: NULL, or the map whose regions the file gets. */
static int make_parts(const mpicrypt_file_options_t *options, const opal_cryptfile_map_t *like, uint64_t number, mpicrypt_file_t *file)
{
    opal_cryptfile_map_t *map = NULL;
    uint32_t regions = NULL == like ? 1 : like->region_count;
    opal_cryptfile_key_t *keys = calloc(regions, sizeof(*keys));
    opal_crypt_why_t why = {.topic = NULL};
    int rc = NULL == keys ? OPAL_CRYPT_ERR_MEMORY : NULL == like ? make_map(options, file, &map, keys, &why)
                                                                 : make_map_like(like, number, file, &map, keys, &why);
    int code = OPAL_CRYPT_OK == rc ? engine(options, file, map, keys) : mpicrypt_refused(file->path, rc, &why);

    if (MPICRYPT_OK != code) {
        opal_cryptfile_keys_free(keys, NULL == keys ? 0 : regions);
        opal_cryptfile_map_destroy(map);
        return code;
    }
    return OPAL_CRYPT_OK == mpicrypt_file_make_one(file) ? MPICRYPT_OK : failed(file, "its map cannot be stored", strerror(errno));
}

static void remove_parts(mpicrypt_file_t *file)
{
    if (file->posix.data_fd >= 0) {
        (void) unlink(file->path);
    }
    if (file->posix.sidecar_fd >= 0 && !ompi_common_cryptmpio_posix_is_one(&file->posix)) {
        (void) unlink(file->sidecar);
    }
    mpicrypt_file_close(file);
}

static int make(const mpicrypt_file_options_t *options, const opal_cryptfile_map_t *like, uint64_t number, const char *path,
                unsigned mode, mpicrypt_file_t *file)
{
    *file = (mpicrypt_file_t){.path = path, .best = -1};
    ompi_common_cryptmpio_posix_init(&file->posix, -1, true);
    int code = mpicrypt_keystore_open(&options->keystore, &file->keystore);

    if (MPICRYPT_OK == code) {
        code = open_data(file, O_RDWR | O_CREAT | O_EXCL, mode | OWNER);     /* fsetxattr needs write access */
    }
    if (MPICRYPT_OK == code) {
        code = make_parts(options, like, number, file);
    }
    if (MPICRYPT_OK != code) {
        remove_parts(file);
    }
    return code;
}

int mpicrypt_file_make_like(const mpicrypt_file_options_t *options, const mpicrypt_file_t *like, const char *path, unsigned mode,
                            uint64_t number, mpicrypt_file_t *file)
{
    return make(options, like->map, number, path, mode, file);
}

int mpicrypt_file_make(const mpicrypt_file_options_t *options, const char *path, unsigned mode, mpicrypt_file_t *file)
{
    *file = (mpicrypt_file_t){.path = path, .best = -1};
    if (1 != options->block_size.count) {
        return mpicrypt_error(MPICRYPT_USAGE, "--block-size is one size");
    }
    if (options->block_size.value[0] > UINT32_MAX) {    /* the map has 32 bits for it, and checks the rest */
        return mpicrypt_error(MPICRYPT_USAGE, "--block-size is a power of two from 512 to 16M");
    }
    return make(options, NULL, 0, path, mode, file);
}

/* ---- closing ---- */

void mpicrypt_file_close(mpicrypt_file_t *file)
{
    if (NULL != file->keys) {
        opal_cryptfile_keys_free(file->keys, file->map->region_count);
    }
    opal_cryptfile_destroy(file->file);
    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        opal_cryptfile_copy_free(&file->copies[i]);
    }
    opal_cryptfile_keystore_close(file->keystore);
    ompi_common_cryptmpio_posix_close(&file->posix);
    if (file->posix.data_fd >= 0) {
        close(file->posix.data_fd);
    }
    free(file->sidecar);
    *file = (mpicrypt_file_t){.path = file->path, .best = -1};
    file->posix.data_fd = file->posix.sidecar_fd = -1;
}

int mpicrypt_file_failed(const mpicrypt_file_t *file, const opal_cryptfile_outcome_t *outcome)
{
    const char *reason = OPAL_CRYPT_ERR_STORAGE == outcome->rc ? strerror(outcome->error)
                         : OPAL_CRYPT_ERR_ACCESS == outcome->rc ? "no key for these bytes, or no region that they belong to"
                                                                : opal_crypt_strerror(outcome->rc);

    return mpicrypt_error(MPICRYPT_FAILED, "%s: at offset %llu: %s", file->path, (unsigned long long) outcome->file_offset, reason);
}
