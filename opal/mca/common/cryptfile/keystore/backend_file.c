/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The backend `file`: one file LABEL.VERSION for each key, mode 0600 (cryptfile/keystore/key_file.c).
 *
 * The key is in secret memory from the time it is read to the end of the one
 * call that uses it, which reads it once.
 */
#include "key_file.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <string.h>

static int open_file(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_options_t *options,
                     opal_crypt_why_t *why)
{
    if (NULL == options->machine_key_file) {
        return OPAL_CRYPT_OK;
    }
    return opal_crypt_secret_group_hex(keystore->group, options->machine_key_file, "machine key", false,
                                       &keystore->machine_key, NULL, why);
}

static void close_file(opal_cryptfile_keystore_t *keystore)
{
    opal_crypt_secmem_free(keystore->machine_key);
}

/* ---- reading ---- */

/* A call that wraps or unwraps reads the file once: the key that it uses is that of the record that it checked. */
static int load_kept(opal_cryptfile_keystore_t *keystore, const char *label, uint16_t version, opal_cryptfile_key_file_t **content,
                     opal_crypt_why_t *why)
{
    opal_cryptfile_key_file_t *kept = keystore->kept;

    if (NULL != kept && version == kept->record.version && 0 == strcmp(label, kept->record.label)) {
        keystore->kept = NULL;          /* let_go gives it back */
        *content = kept;
        return OPAL_CRYPT_OK;
    }
    return opal_cryptfile_key_file_load(keystore, label, version, content, why);
}

static void let_go(opal_cryptfile_keystore_t *keystore, opal_cryptfile_key_file_t *content)
{
    opal_crypt_secmem_free(keystore->keeps ? keystore->kept : content);
    keystore->kept = keystore->keeps ? content : NULL;
}

static int file_read_record(opal_cryptfile_keystore_t *keystore, const char *label, uint16_t version,
                            opal_cryptfile_keystore_record_t *record, opal_crypt_why_t *why)
{
    opal_cryptfile_key_file_t *content;
    int rc = load_kept(keystore, label, version, &content, why);

    if (OPAL_CRYPT_OK == rc) {
        *record = content->record;
        let_go(keystore, content);
    }
    return rc;
}

static int file_walk(opal_cryptfile_keystore_t *keystore, const char *label,
                     int (*each)(const opal_cryptfile_keystore_record_t *record, void *arg),
                     void (*bad)(const opal_crypt_why_t *why, void *arg), void *arg, opal_crypt_why_t *why)
{
    opal_crypt_why_t bad_why = {.topic = NULL};
    opal_cryptfile_keystore_record_t record;
    char name[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1];
    uint16_t version;
    DIR *directory;
    int rc = opal_cryptfile_keystore_directory(keystore, &directory, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    while (OPAL_CRYPT_OK == rc && opal_cryptfile_keystore_next(directory, label, name, &version)) {
        rc = file_read_record(keystore, name, version, &record, NULL == bad ? why : &bad_why);
        if (OPAL_CRYPT_OK == rc) {
            rc = each(&record, arg);
        } else if (NULL != bad && OPAL_CRYPT_ERR_CONFIG == rc) {
            bad(&bad_why, arg);
            rc = OPAL_CRYPT_OK;
        }
    }
    closedir(directory);
    return rc;
}

/* ---- changing ---- */

int opal_cryptfile_key_file_place(const opal_cryptfile_keystore_t *keystore, opal_crypt_why_t *why)
{
    opal_crypt_fs_t kind = OPAL_CRYPT_FS_UNKNOWN;
    const char *name = "unknown";

    if (NULL != keystore->machine_key || keystore->secret_on_netfs ||
        (OPAL_CRYPT_OK == opal_crypt_fs_of(keystore->directory, &kind, &name) && OPAL_CRYPT_FS_LOCAL == kind)) {
        return OPAL_CRYPT_OK;
    }
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-keystore", "keystore %.512s: the file system is of type %s",
                             keystore->directory, name);
}

static int file_create(opal_cryptfile_keystore_t *keystore, opal_cryptfile_keystore_record_t *record,
                       opal_crypt_why_t *why)
{
    int rc = opal_cryptfile_key_file_place(keystore, why);
    opal_cryptfile_key_file_t *content = OPAL_CRYPT_OK == rc ? opal_crypt_secmem_alloc(sizeof(*content)) : NULL;

    if (OPAL_CRYPT_OK != rc || NULL == content) {
        return OPAL_CRYPT_OK != rc ? rc : OPAL_CRYPT_ERR_MEMORY;
    }
    rc = opal_crypt_draw(content->key, sizeof(content->key));
    rc = rc ? rc : opal_cryptfile_fingerprint_of_key(content->key, record->fingerprint);
    content->record = *record;
    rc = rc ? rc : opal_cryptfile_key_file_store(keystore, content, true, why);
    opal_crypt_secmem_free(content);
    return rc;
}

static int file_update(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                       opal_crypt_why_t *why)
{
    opal_cryptfile_key_file_t *content;
    int rc = opal_cryptfile_key_file_load(keystore, record->label, record->version, &content, why);

    if (OPAL_CRYPT_OK == rc) {
        content->record = *record;
        rc = opal_cryptfile_key_file_store(keystore, content, false, why);
        opal_crypt_secmem_free(content);
    }
    return rc;
}

static int protect(opal_cryptfile_keystore_t *keystore, const char *label, unsigned *count,
                   opal_crypt_why_t *why)
{
    char name[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1];
    opal_cryptfile_key_file_t *content;
    uint16_t version;
    bool plain;
    DIR *directory;
    int rc = opal_cryptfile_keystore_directory(keystore, &directory, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    rc = opal_cryptfile_key_file_remove_unfinished(keystore, directory, label, why);
    while (OPAL_CRYPT_OK == rc && opal_cryptfile_keystore_next(directory, label, name, &version)) {
        rc = opal_cryptfile_key_file_load_any(keystore, label, version, &content, &plain, why);
        if (OPAL_CRYPT_OK == rc) {
            rc = plain ? opal_cryptfile_key_file_store(keystore, content, false, why) : OPAL_CRYPT_OK;
            *count += plain && OPAL_CRYPT_OK == rc;
            opal_crypt_secmem_free(content);
        }
    }
    closedir(directory);
    return rc;
}

/* ---- using ---- */

static int file_wrap(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                     const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES], uint8_t *wrapped, opal_crypt_why_t *why)
{
    opal_cryptfile_key_file_t *content;
    int rc = load_kept(keystore, record->label, record->version, &content, why);

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_rfc3394_wrap(content->key, data_key, wrapped);
        let_go(keystore, content);
    }
    return rc;
}

static int file_unwrap(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                       const opal_cryptfile_unwrap_t *blobs, size_t count, size_t *which, opal_crypt_why_t *why)
{
    opal_cryptfile_key_file_t *content;
    int rc = load_kept(keystore, record->label, record->version, &content, why);

    if (OPAL_CRYPT_OK == rc) {
        for (*which = 0; OPAL_CRYPT_OK == rc && *which < count; *which += OPAL_CRYPT_OK == rc) {
            rc = opal_cryptfile_rfc3394_unwrap(content->key, blobs[*which].wrapped->blob + OPAL_CRYPTFILE_BLOB_WRAPPED_AT,
                                               blobs[*which].data_key);
        }
        let_go(keystore, content);
        if (OPAL_CRYPT_ERR_AUTH == rc) {
            opal_crypt_refuse(why, rc, "keystore-unwrap", "%s, version %u", record->label, record->version);
        }
    }
    return rc;
}

const opal_cryptfile_keystore_ops_t opal_cryptfile_keystore_file_ops = {
    .name = "file",
    .open = open_file,
    .close = close_file,
    .walk = file_walk,
    .read = file_read_record,
    .create = file_create,
    .update = file_update,
    .wrap = file_wrap,
    .unwrap = file_unwrap,
    .protect = protect,
    .remove = opal_cryptfile_key_file_remove_all,
};
