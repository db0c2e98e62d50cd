/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Opening encrypted files as fs/crypt does, for one process.  What is read is
 * trusted only after a key of ours has verified the map.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "lib/mpicrypt_file/sentences.h"
#include "opal/constants.h"
#include "opal/mca/aead/base/base.h"
#include "opal/mca/common/crypt/base/secmem.h"

static const opal_aead_module_t *provider(void *arg, opal_aead_cipher_t cipher)
{
    static pthread_mutex_t selects = PTHREAD_MUTEX_INITIALIZER;         /* providers share memory for their versions */
    const opal_aead_module_t *module = NULL;
    opal_aead_why_t why = {0};

    pthread_mutex_lock(&selects);
    bool selected = OPAL_SUCCESS == opal_aead_base_select(NULL, cipher, mpicrypt_keystore_fips(arg), &module, &why);
    if (!selected) {
        opal_aead_base_show(&why);
    }
    pthread_mutex_unlock(&selects);
    return selected ? module : NULL;
}

/* The same for all failures of opening: what they say about the file, and the message. */
static int refused_as(const mpicrypt_file_t *file, mpicrypt_file_state_t state, const char *what, const char *reason)
{
    mpicrypt_file_finds(file->subject, state);
    return mpicrypt_error(MPICRYPT_FAILED, "%s: %s%s%s", file->path, what, '\0' == *reason ? "" : ": ", reason);
}

static int failed(const mpicrypt_file_t *file, const char *what, const char *reason)
{
    return refused_as(file, MPICRYPT_FILE_HAS_ERROR, what, reason);
}

int mpicrypt_file_engine(const mpicrypt_file_options_t *options, mpicrypt_file_t *file, opal_cryptfile_map_t *map,
                         opal_cryptfile_key_t *keys)
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

int mpicrypt_file_open_data(mpicrypt_file_t *file, int flags, unsigned mode)
{
    struct stat status;
    int fd = open(file->path, flags | (file->subject->found ? O_NOFOLLOW : 0) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                  mode);                /* it may be a FIFO or a device */

    ompi_common_cryptmpio_posix_init(&file->posix, fd, O_RDONLY != (flags & O_ACCMODE));
    if (fd < 0) {
        return failed(file, strerror(errno), "");
    }
    if (0 != fstat(fd, &status) || !S_ISREG(status.st_mode)) {
        return failed(file, "it is no regular file", "");
    }
    file->bytes = (uint64_t) status.st_size;
    return MPICRYPT_OK;
}

/* ---- the copies of the map ---- */

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
        copy->unasked = false;
    }
}

static int judge_copy(mpicrypt_file_t *file, opal_cryptfile_copy_t copy)
{
    const bool attribute = OPAL_CRYPTFILE_COPY_ATTRIBUTE == copy;
    uint8_t *bytes;
    size_t count;
    int rc = attribute ? ompi_common_cryptmpio_posix_attribute_read(&file->posix, &bytes, &count)
                       : opal_cryptfile_place_read(&file->posix.super, &file->header,
                                                   (unsigned) copy - OPAL_CRYPTFILE_COPY_PLACE_0, &bytes, &count);

    if (OPAL_CRYPT_OK == rc) {
        opal_cryptfile_copy_state_t *state = &file->copies[copy];
        rc = attribute ? opal_cryptfile_copy_judge(bytes, count, file->keystore, NULL, state)
                       : opal_cryptfile_place_judge(bytes, count, &file->header, file->keystore, &file->copies[copy - 1], state);
        free(bytes);
    }
    return rc;
}

static int judge(const mpicrypt_file_options_t *options, mpicrypt_file_t *file)
{
    opal_cryptfile_copy_t chosen;
    int rc = OPAL_CRYPT_OK;

    for (int i = 0; i < OPAL_CRYPTFILE_COPIES && OPAL_CRYPT_OK == rc; ++i) {
        rc = judge_copy(file, (opal_cryptfile_copy_t) i);
        if (OPAL_CRYPT_OK == rc && NULL != options->recovery) {
            recover(options, file, &file->copies[i]);
        }
    }
    if (OPAL_CRYPT_OK != rc) {
        return failed(file, "its map cannot be read", OPAL_CRYPT_ERR_STORAGE == rc ? strerror(errno) : opal_crypt_strerror(rc));
    }
    if (OPAL_CRYPT_OK != opal_cryptfile_header_choose(file->copies, &file->header, &chosen, &file->differ, &file->why)) {
        return MPICRYPT_OK;             /* there is none: file->why */
    }
    file->best = (int) chosen;
    opal_cryptfile_copy_state_t *best = &file->copies[chosen];
    int code = mpicrypt_file_engine(options, file, best->map, best->keys);
    if (MPICRYPT_OK == code) {          /* now owned by the engine (map) and by us (keys) */
        best->map = NULL;
        best->keys = NULL;
        file->recovered = best->recovered;
        code = OPAL_CRYPT_OK == opal_cryptfile_size(file->file, &file->bytes) ? code : failed(file, strerror(errno), "");
        file->subject->sized = MPICRYPT_OK == code;
        file->subject->bytes = file->bytes;
    }
    if (file->recovered) {
        (void) mpicrypt_error(MPICRYPT_OK, "%s: a key is from its escrow alone: anyone who has the public recovery key can have "
                              "made this file", file->path);
    }
    return code;
}

int mpicrypt_file_proved(const mpicrypt_file_t *file)
{
    return file->recovered ? failed(file, "under no label is what a key from the escrow alone opens: decrypt it, look at it, and "
                                    "encrypt it", "") : MPICRYPT_OK;
}

/* ---- opening ---- */

int mpicrypt_file_take(const mpicrypt_file_t *file, bool alone)
{
    ompi_common_cryptmpio_use_t use = OMPI_CRYPTMPIO_USE_OURS;
    bool stays = true;

    if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_use(&file->posix, file->path, alone, &use)) {
        return alone ? failed(file, "whether somebody has it open cannot be told without locks", strerror(errno)) : MPICRYPT_OK;
    }
    /* As a job tries it (cryptmpio_probe.c): the lock must not end with another descriptor of the file. */
    if (alone && OMPI_CRYPTMPIO_USE_OURS == use
        && OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_lock_stays(&file->posix, OMPI_CRYPTMPIO_LOCK_USE, &stays)) {
        return failed(file, "whether its lock holds cannot be told", strerror(errno));
    }
    if (!stays) {
        return failed(file, "locks of its file system end when any descriptor of the file is closed, so it cannot be changed "
                      "safely", "");
    }
    return OMPI_CRYPTMPIO_USE_OURS == use ? MPICRYPT_OK
           : alone && OMPI_CRYPTMPIO_USE_BUSY == use
               ? refused_as(file, MPICRYPT_FILE_IS_BUSY, "a job or another mpicrypt has it open, and nobody may have it open for this", "")
               : refused_as(file, MPICRYPT_FILE_IS_BUSY, ompi_common_cryptmpio_posix_why_not(use), "");
}

static int refuse_old(const mpicrypt_file_t *file, const char *found)
{
    mpicrypt_file_finds(file->subject, MPICRYPT_FILE_IS_OTHER);
    return mpicrypt_error(MPICRYPT_FAILED, "%s: it was encrypted by a development version (found: %s), and this version cannot "
                          "read it: decrypt it with that version", file->path, found);
}

static bool has_old_attribute(const mpicrypt_file_t *file)
{
    uint8_t *bytes = NULL;
    size_t count = 0;
    bool has = OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_attribute_read(&file->posix, &bytes, &count)
               && opal_cryptfile_header_old(bytes, count);

    free(bytes);
    return has;
}

/* Before any lock: another file may have other users. */
static int is_ours(mpicrypt_file_t *file)
{
    opal_cryptfile_state_t state;
    bool magic;
    int rc = opal_cryptfile_beginning_read(&file->posix.super, &magic, &file->header, &state);

    if (magic) {
        return MPICRYPT_OK;
    }
    if (OPAL_CRYPT_ERR_STORAGE == rc) {
        return failed(file, strerror(errno), "");
    }
    if (OPAL_CRYPT_ERR_CONFIG == rc || has_old_attribute(file)) {
        return refuse_old(file, OPAL_CRYPT_ERR_CONFIG == rc ? "its first bytes" : "its attribute " OMPI_CRYPTMPIO_ATTRIBUTE);
    }
    if (file->subject->found) {
        mpicrypt_file_finds(file->subject, MPICRYPT_FILE_IS_PLAIN);
        return MPICRYPT_FAILED;
    }
    return refused_as(file, MPICRYPT_FILE_IS_PLAIN, "it is not encrypted", "");
}

static int read_header(mpicrypt_file_t *file)
{
    opal_cryptfile_state_t state = OPAL_CRYPTFILE_STATE_OPEN;
    bool magic;
    int rc = opal_cryptfile_beginning_read(&file->posix.super, &magic, &file->header, &state);

    file->sealed = OPAL_CRYPTFILE_STATE_SEALED == state;
    return OPAL_CRYPT_ERR_STORAGE == rc ? failed(file, strerror(errno), "")
           : OPAL_CRYPT_ERR_CONFIG == rc ? refused_as(file, MPICRYPT_FILE_IS_OTHER, "another version of ompi-crypt made it", "")
           : OPAL_CRYPT_OK != rc || !magic ? refused_as(file, MPICRYPT_FILE_IS_FORGED, "its header is damaged", "")
           : OPAL_CRYPTFILE_STATE_MAKING == state
               ? refused_as(file, MPICRYPT_FILE_IS_BEGUN, "it is being made, or its maker was killed", "") : MPICRYPT_OK;
}

int mpicrypt_file_open_engine(const mpicrypt_file_options_t *options, const char *path, bool may_write, mpicrypt_file_t *file)
{
    *file = (mpicrypt_file_t){.path = path, .subject = options->subject, .best = -1};
    int code = mpicrypt_file_open_data(file, may_write ? O_RDWR : O_RDONLY, 0);

    code = MPICRYPT_OK == code ? is_ours(file) : code;
    code = MPICRYPT_OK == code ? mpicrypt_file_take(file, options->alone) : code;
    /* A job may have extended it, and sealed it, before we got the lock. */
    if (MPICRYPT_OK == code
        && OPAL_CRYPT_OK != file->posix.super.size(&file->posix.super, &file->bytes)) {
        code = failed(file, strerror(errno), "");
    }
    code = MPICRYPT_OK == code ? read_header(file) : code;
    if (MPICRYPT_OK == code) {
        int opened = mpicrypt_file_keystore(options, &file->keystore);
        code = MPICRYPT_USAGE == opened || (NULL == options->recovery && !options->go_on) ? opened : code;
        if (MPICRYPT_OK != code) {
            mpicrypt_file_finds(file->subject, MPICRYPT_FILE_HAS_NO_KEY);
        }
    }
    code = MPICRYPT_OK == code ? judge(options, file) : code;
    if (MPICRYPT_OK != code) {
        mpicrypt_file_close_engine(file);
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
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_file_refused(file->subject, file->path, rc, &why);
}

int mpicrypt_file_open_verified(const mpicrypt_file_options_t *options, const char *path, bool may_write,
                                mpicrypt_file_t *file)
{
    int code = mpicrypt_file_open_engine(options, path, may_write, file);

    if (MPICRYPT_OK != code) {
        return code;
    }
    if (file->best < 0) {
        code = mpicrypt_file_refused(file->subject, path, OPAL_CRYPT_ERR_ACCESS, &file->why);
    } else if (options->sealed || NULL != options->root) {
        code = demand_seal(options, file);
    }
    if (MPICRYPT_OK != code) {
        mpicrypt_file_close_engine(file);
    }
    return code;
}

void mpicrypt_file_close_engine(mpicrypt_file_t *file)
{
    if (NULL != file->keys) {
        opal_cryptfile_keys_free(file->keys, file->map->region_count);
    }
    opal_cryptfile_destroy(file->file);
    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        opal_cryptfile_copy_free(&file->copies[i]);
    }
    mpicrypt_file_keystore_give(file->keystore);
    ompi_common_cryptmpio_posix_release(&file->posix);
    if (file->posix.data_fd >= 0) {
        close(file->posix.data_fd);
    }
    *file = (mpicrypt_file_t){.path = file->path, .subject = file->subject, .best = -1};
    ompi_common_cryptmpio_posix_init(&file->posix, -1, false);
}

int mpicrypt_file_failed(const mpicrypt_file_t *file, const opal_cryptfile_outcome_t *outcome)
{
    const char *reason = OPAL_CRYPT_ERR_STORAGE == outcome->rc ? strerror(outcome->error)
                                                              : mpicrypt_sentence_of(outcome->rc);

    mpicrypt_file_finds(file->subject, OPAL_CRYPT_ERR_AUTH == outcome->rc ? MPICRYPT_FILE_IS_FORGED
                        : OPAL_CRYPT_ERR_TORN == outcome->rc ? MPICRYPT_FILE_IS_TORN
                        : OPAL_CRYPT_ERR_ACCESS == outcome->rc ? MPICRYPT_FILE_HAS_NO_KEY : MPICRYPT_FILE_HAS_ERROR);
    return mpicrypt_error(MPICRYPT_FAILED, "%s: at offset %llu: %s", file->path, (unsigned long long) outcome->file_offset, reason);
}
