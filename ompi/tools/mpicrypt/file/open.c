/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Opening encrypted files by the steps of libmpicrypt_file (opening.h), for any provider, with recovery keys, and also
 * for writing.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "opal/constants.h"
#include "opal/mca/aead/base/base.h"
#include "opal/mca/common/crypt/base/secmem.h"

enum { SECRET_PART_BYTES = 1 << 20 };   /* read by one call of the system, as libmpicrypt_file does */

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

static int failed(const mpicrypt_opened_t *file, const char *what, const char *reason)
{
    mpicrypt_file_finds(file->subject, MPICRYPT_FILE_HAS_ERROR);
    return mpicrypt_error(MPICRYPT_FAILED, "%s: %s%s%s", file->path, what, '\0' == *reason ? "" : ": ", reason);
}

static int said(const mpicrypt_opened_t *file, int status)
{
    return MPICRYPT_FILE_OK == status ? MPICRYPT_OK : mpicrypt_file_says(file->subject, file->path, &file->error);
}

int mpicrypt_file_engine(const mpicrypt_file_choices_t *options, mpicrypt_opened_t *file, opal_cryptfile_map_t *map,
                         opal_cryptfile_key_t *keys)
{
    const opal_cryptfile_of_t of = {&file->posix.super, provider, (void *) (uintptr_t) &options->keystore,
                                    options->secret ? SECRET_PART_BYTES : 0};
    int rc = opal_cryptfile_create(&of, &file->file);

    if (OPAL_CRYPT_OK == rc && options->secret) {
        opal_cryptfile_work_secret(file->file);
    }
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

int mpicrypt_file_open_data(mpicrypt_opened_t *file, int flags, unsigned mode)
{
    int fd = open(file->path, flags | (file->subject->found ? O_NOFOLLOW : 0) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                  mode);                /* it may be a FIFO or a device */

    file->found = (mpicrypt_opening_t){.path = file->path, .posix = &file->posix, .error = &file->error};
    ompi_common_cryptmpio_posix_init(&file->posix, fd, O_RDONLY != (flags & O_ACCMODE));
    ompi_common_cryptmpio_posix_find_system(&file->posix);
    return fd < 0 ? failed(file, strerror(errno), "") : MPICRYPT_OK;
}

/* ---- the copies of the map ---- */

/* Anyone with the public recovery key can have wrapped a key of their own.  The keystore can tell if it still has that
 * version of the label, even expired or revoked. */
static int prove(const mpicrypt_opened_t *file, opal_cryptfile_copy_state_t *copy, const opal_cryptfile_region_t *region,
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
static void recover(const mpicrypt_file_choices_t *options, const mpicrypt_opened_t *file, opal_cryptfile_copy_state_t *copy)
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

static int judge(const mpicrypt_file_choices_t *options, mpicrypt_opened_t *file)
{
    int code = said(file, mpicrypt_opening_judge(&file->found, file->keystore));

    for (int i = 0; MPICRYPT_OK == code && NULL != options->recovery && i < OPAL_CRYPTFILE_COPIES; ++i) {
        recover(options, file, &file->found.copies[i]);
    }
    if (MPICRYPT_OK != code || MPICRYPT_FILE_OK != mpicrypt_opening_choose(&file->found)) {
        return code;                    /* none counts: file->error */
    }
    opal_cryptfile_copy_state_t *best = &file->found.copies[file->found.best];
    code = mpicrypt_file_engine(options, file, best->map, best->keys);
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

int mpicrypt_file_proved(const mpicrypt_opened_t *file)
{
    return file->recovered ? failed(file, "under no label is what a key from the escrow alone opens: decrypt it, look at it, and "
                                    "encrypt it", "") : MPICRYPT_OK;
}

/* ---- opening ---- */

int mpicrypt_file_take(mpicrypt_opened_t *file, bool alone)
{
    int status = mpicrypt_opening_take(&file->found, alone);

    if (!file->found.busy) {
        return said(file, status);
    }
    mpicrypt_file_finds(file->subject, MPICRYPT_FILE_IS_BUSY);
    return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", file->path, file->error.text);
}

int mpicrypt_file_open_engine(const mpicrypt_file_choices_t *options, const char *path, bool may_write, mpicrypt_opened_t *file)
{
    *file = (mpicrypt_opened_t){.path = path, .subject = options->subject};
    int code = mpicrypt_file_open_data(file, may_write ? O_RDWR : O_RDONLY, 0);

    code = MPICRYPT_OK == code ? said(file, mpicrypt_opening_begin(&file->found)) : code;
    code = MPICRYPT_OK == code ? mpicrypt_file_take(file, options->alone) : code;
    code = MPICRYPT_OK == code ? said(file, mpicrypt_opening_header(&file->found)) : code;
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

int mpicrypt_file_demand(mpicrypt_opened_t *file, const uint8_t *wanted)
{
    uint8_t root[OPAL_CRYPT_HASH_BYTES];
    int status = mpicrypt_opening_seal(&file->found, file->file, wanted, root);

    /* The file's size is the sealed one, not the one that the storage reported before. */
    (void) opal_cryptfile_sealed_bytes(file->file, &file->bytes);
    return said(file, status);
}

static int expect(const mpicrypt_file_choices_t *options, mpicrypt_opened_t *file)
{
    int code = options->secret && NULL != options->label ? said(file, mpicrypt_opening_label(&file->found, file->map, options->label))
                                                         : MPICRYPT_OK;

    return MPICRYPT_OK != code || !(options->sealed || (options->secret && file->found.sealed))
               ? code : mpicrypt_file_demand(file, NULL == options->root ? NULL : options->wanted);
}

int mpicrypt_file_open_verified(const mpicrypt_file_choices_t *options, const char *path, bool may_write,
                                mpicrypt_opened_t *file)
{
    int code = mpicrypt_file_open_engine(options, path, may_write, file);

    if (MPICRYPT_OK != code) {
        return code;
    }
    code = NULL == file->file ? mpicrypt_file_says(file->subject, path, &file->error) : expect(options, file);
    if (MPICRYPT_OK != code) {
        mpicrypt_file_close_engine(file);
    }
    return code;
}

void mpicrypt_file_close_engine(mpicrypt_opened_t *file)
{
    if (NULL != file->keys) {
        opal_cryptfile_keys_free(file->keys, file->map->region_count);
    }
    opal_cryptfile_destroy(file->file);
    mpicrypt_opening_end(&file->found);
    mpicrypt_file_keystore_give(file->keystore);
    ompi_common_cryptmpio_posix_release(&file->posix);
    if (file->posix.data_fd >= 0) {
        close(file->posix.data_fd);
    }
    *file = (mpicrypt_opened_t){.path = file->path, .subject = file->subject};
    ompi_common_cryptmpio_posix_init(&file->posix, -1, false);
}

int mpicrypt_file_failed(const mpicrypt_opened_t *file, const opal_cryptfile_outcome_t *outcome)
{
    mpicrypt_file_error_t error;

    (void) mpicrypt_fail_engine(&error, NULL, file->file, outcome);
    return mpicrypt_file_says(file->subject, file->path, &error);
}
