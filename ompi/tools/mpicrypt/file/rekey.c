/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file rekey: the data keys of a file are wrapped under the newest
 * versions of their labels.  The MACs do not cover wrapped keys, so regions under
 * other users' labels stay as they are, and the map's generation stays, too.  The
 * old wrapped keys are overwritten in all copies of the map.  The file is locked
 * exclusively meanwhile: the map is read once and written over all others, so a region
 * added by a job, or keys wrapped by another rekey, would be lost.
 */
#include <errno.h>
#include <string.h>

#include "file.h"

/* The key that a data key is wrapped under; version 0: it cannot be read. */
static opal_cryptfile_wrapped_by_t wrapped_by(const opal_cryptfile_wrapped_t *wrapped, char text[OPAL_CRYPTFILE_KEY_TEXT_BYTES])
{
    opal_cryptfile_wrapped_by_t by;

    if (OPAL_CRYPT_OK != opal_cryptfile_wrapped_parse(wrapped, &by)) {
        by = (opal_cryptfile_wrapped_by_t){.version = 0};
    }
    opal_cryptfile_key_text(by.fingerprint, by.created, text);
    return by;
}

static int wrap_all(mpicrypt_opened_t *file, unsigned *count)
{
    opal_crypt_why_t why = {.topic = NULL};

    *count = 0;
    for (uint32_t i = 0; i < file->map->region_count; ++i) {
        opal_cryptfile_region_t *region = &file->map->regions[i];
        if (!region->encrypted || NULL == file->keys[i].data_key) {
            continue;
        }
        int rc = opal_cryptfile_keystore_wrap(file->keystore, region->label, file->map->uuid, file->keys[i].data_key,
                                              region->wrapped, &why);
        if (OPAL_CRYPT_OK != rc) {
            return mpicrypt_file_refused(file->subject, file->path, MPICRYPT_FILE_ERR_KEY, rc, &why);
        }
        ++*count;
    }
    return MPICRYPT_OK;
}

static void print(const mpicrypt_opened_t *file, const opal_cryptfile_map_t *before)
{
    char key[OPAL_CRYPTFILE_KEY_TEXT_BYTES], old[OPAL_CRYPTFILE_KEY_TEXT_BYTES];

    for (uint32_t i = 0; i < file->map->region_count; ++i) {
        const opal_cryptfile_region_t *region = &file->map->regions[i];
        if (region->encrypted && NULL != file->keys[i].data_key) {
            unsigned version = wrapped_by(region->wrapped, key).version, was = wrapped_by(before->regions[i].wrapped, old).version;
            fprintf(file->subject->out, "region %u: %s: version %u, was %u; %s, was %s\n", (unsigned) i, region->label, version, was,
                    key, old);
        } else if (region->encrypted) {
            unsigned version = wrapped_by(region->wrapped, key).version;
            fprintf(file->subject->out, "region %u: %s: there is no key for it here; it stays under version %u (%s)\n", (unsigned) i,
                    region->label, version, key);
        }
    }
}

/* After the map in a place there may be the end of a longer one, with keys that must no longer open the file. */
static int wipe_behind(mpicrypt_opened_t *file)
{
    opal_cryptfile_storage_t *storage = &file->posix.super;
    const opal_cryptfile_geometry_t *geometry = &file->map->geometry;
    size_t count = opal_cryptfile_place_bytes(file->map);
    int rc = OPAL_CRYPT_OK;

    for (unsigned place = 0; place < 2 && OPAL_CRYPT_OK == rc && count < geometry->map_bytes; ++place) {
        rc = storage->zero(storage, opal_cryptfile_geometry_map_at(geometry, place) + count,
                           geometry->map_bytes - count);
    }
    return rc;
}

/* The file's map replaces `now`.  The place with the map that counts is not touched before the other one has a copy,
 * key for key. */
static int store(mpicrypt_opened_t *file, const opal_cryptfile_map_t *now)
{
    int rc = opal_cryptfile_geometry_fits(file->map, opal_cryptfile_map_bytes(file->map));

    if (OPAL_CRYPT_ERR_AUTH == rc) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: its keys are longer now than there is room for in the file; 'mpicrypt file "
                              "reencrypt' makes a file that has it", file->path);
    }
    rc = rc ? rc : opal_cryptfile_map_replace(&file->posix.super, now, file->map);
    rc = rc ? rc : wipe_behind(file);
    rc = rc ? rc : ompi_common_cryptmpio_posix_attribute_write(&file->posix, file->map);
    rc = rc ? rc : ompi_common_cryptmpio_posix_sync(&file->posix);
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", file->path,
                                                              OPAL_CRYPT_ERR_STORAGE == rc ? strerror(errno) : opal_crypt_strerror(rc));
}

/* Prints only what is stored. */
static int rekey(mpicrypt_opened_t *file)
{
    opal_cryptfile_map_t *before = NULL;
    unsigned count = 0;
    int code = OPAL_CRYPT_OK != mpicrypt_file_map_copy(file->map, &before) ? mpicrypt_error(MPICRYPT_FAILED, "out of memory")
                                                                           : wrap_all(file, &count);

    if (MPICRYPT_OK == code && count > 0) {
        code = store(file, before);
    }
    if (MPICRYPT_OK == code) {
        print(file, before);
    }
    opal_cryptfile_map_destroy(before);
    return code;
}

int mpicrypt_file_rekey(const mpicrypt_file_choices_t *options, const char *path)
{
    mpicrypt_opened_t file;
    int code = mpicrypt_file_open_verified(options, path, true, &file);

    if (MPICRYPT_OK != code) {
        return code;
    }
    code = mpicrypt_file_proved(&file);
    code = MPICRYPT_OK != code ? code
           : NULL == file.keystore ? mpicrypt_error(MPICRYPT_FAILED, "%s: without a keystore there is nothing to wrap under", path)
                                 : rekey(&file);
    mpicrypt_file_close_engine(&file);
    return code;
}
