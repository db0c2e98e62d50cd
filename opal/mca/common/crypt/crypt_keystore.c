/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What is the same for every backend: who may do what when, the log, and the
 * blob that a map keeps.
 *
 *     | format 1 = 1 | backend 1 | key version 2 | n 2 = 40 | wrapped 40 | e 2 | escrow e |
 */
#include "crypt_keystore_object.h"
#include "crypt_file_le.h"
#include "crypt_secmem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOB_FORMAT = 1, BLOB_HEAD = 4, BLOB_ESCROW_AT = OPAL_CRYPT_BLOB_WRAPPED_AT + OPAL_CRYPT_RFC3394_BYTES };

static_assert(BLOB_ESCROW_AT + 2 + OPAL_CRYPT_ESCROW_MAX <= OPAL_CRYPT_WRAPPED_MAX, "the largest blob");

/* ---- open and close ---- */

int opal_common_crypt_keystore_open(const opal_common_crypt_keystore_options_t *options,
                                    opal_common_crypt_keystore_t **keystore, opal_common_crypt_why_t *why)
{
    char directory[4096];
    opal_common_crypt_keystore_t *made = calloc(1, sizeof(*made));
    int rc = OPAL_CRYPT_ERR_MEMORY;

    if (NULL == made) {
        return rc;
    }
    pthread_mutex_init(&made->lock, NULL);
    made->log_fd = -1;
    made->backend = options->backend;
    made->ops = OPAL_CRYPT_KEYSTORE_PKCS11 == options->backend ? &opal_common_crypt_keystore_pkcs11_ops
                                                               : &opal_common_crypt_keystore_file_ops;
    made->secret_on_netfs = options->secret_on_netfs;
    made->now = options->now;
    if (NULL != options->directory) {
        made->directory = strdup(options->directory);
    } else {
        rc = opal_common_crypt_home_path("keys", directory, sizeof(directory), why);
        if (OPAL_CRYPT_OK != rc) {
            goto undo;
        }
        made->directory = strdup(directory);
    }
    rc = NULL == made->directory ? OPAL_CRYPT_ERR_MEMORY
                                 : opal_common_crypt_keystore_log_open(made, options->log_file, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = made->ops->open(made, options, why);
    }
undo:
    if (OPAL_CRYPT_OK != rc) {
        opal_common_crypt_keystore_close(made);
        return rc;
    }
    *keystore = made;
    return OPAL_CRYPT_OK;
}

void opal_common_crypt_keystore_close(opal_common_crypt_keystore_t *keystore)
{
    if (NULL == keystore) {
        return;
    }
    keystore->ops->close(keystore);
    if (keystore->log_fd >= 0) {
        close(keystore->log_fd);
    }
    pthread_mutex_destroy(&keystore->lock);
    free(keystore->directory);
    free(keystore);
}

/* ---- who may do what when ---- */

static opal_common_crypt_grant_t grant_of(const opal_common_crypt_keystore_t *keystore,
                                          const opal_common_crypt_keystore_record_t *record, const char **refusal)
{
    int64_t now = 0 != keystore->now ? (int64_t) keystore->now : (int64_t) time(NULL);
    bool owner = 0 == record->owner_count;

    for (unsigned i = 0; i < record->owner_count; ++i) {
        owner = owner || record->owners[i] == (uint32_t) geteuid();
    }
    *refusal = !owner ? "this user is not an owner of the key" : record->revoked ? "the key is revoked" : NULL;
    if (NULL != *refusal) {
        return OPAL_CRYPT_GRANT_NONE;
    }
    if (0 != record->not_after && now > record->not_after) {
        *refusal = "the key has expired: it decrypts, but encrypts nothing more";
        return OPAL_CRYPT_GRANT_OPEN;
    }
    return OPAL_CRYPT_GRANT_SEAL;
}

typedef struct newest {
    bool revoked_too;
    opal_common_crypt_keystore_record_t *record;
} newest_t;

static int keep_newest(const opal_common_crypt_keystore_record_t *record, void *arg)
{
    newest_t *newest = arg;

    if ((newest->revoked_too || !record->revoked) && record->version > newest->record->version) {
        *newest->record = *record;
    }
    return 0;
}

/* The record of a version, or (0) the newest that may be used. */
static int find(opal_common_crypt_keystore_t *keystore, const char *label, uint16_t version,
                bool revoked_too, opal_common_crypt_keystore_record_t *record, opal_common_crypt_why_t *why)
{
    newest_t newest = {revoked_too, record};

    if (!opal_common_crypt_key_label_valid(label)) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-label", "%.80s", label);
    }
    memset(record, 0, sizeof(*record));
    if (0 != version) {
        return keystore->ops->read(keystore, label, version, record, why);
    }
    int rc = keystore->ops->walk(keystore, label, keep_newest, NULL, &newest, why);
    if (OPAL_CRYPT_OK == rc && 0 == record->version) {
        rc = opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-no-label", "%s, keystore %s %s",
                                      label, keystore->ops->name, keystore->directory);
    }
    return rc;
}

int opal_common_crypt_keystore_find(opal_common_crypt_keystore_t *keystore, const char *label, uint16_t version,
                                    opal_common_crypt_keystore_record_t *record, opal_common_crypt_why_t *why)
{
    pthread_mutex_lock(&keystore->lock);
    int rc = find(keystore, label, version, false, record, why);
    pthread_mutex_unlock(&keystore->lock);
    return rc;
}

opal_common_crypt_grant_t opal_common_crypt_keystore_grant(opal_common_crypt_keystore_t *keystore,
                                                           const char *label)
{
    opal_common_crypt_keystore_record_t record;
    const char *refusal;

    if (OPAL_CRYPT_OK != opal_common_crypt_keystore_find(keystore, label, 0, &record, NULL)) {
        return OPAL_CRYPT_GRANT_NONE;
    }
    return grant_of(keystore, &record, &refusal);
}

static int refuse_use(opal_common_crypt_keystore_t *keystore, const char *verb, const char *label,
                      unsigned version, const uint8_t *uuid, const char *refusal, opal_common_crypt_why_t *why)
{
    int rc = opal_common_crypt_keystore_log(keystore, verb, label, version, uuid, refusal, why);

    return OPAL_CRYPT_OK != rc ? rc : opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-refused",
                                                               "%s, version %u: %s", label, version, refusal);
}

/* ---- wrap and unwrap ---- */

static void blob_write(const opal_common_crypt_keystore_t *keystore, uint16_t version, uint16_t escrow_bytes,
                       opal_common_crypt_wrapped_t *wrapped)
{
    wrapped->blob[0] = BLOB_FORMAT;
    wrapped->blob[1] = (uint8_t) keystore->backend;
    opal_common_crypt_le_put16(wrapped->blob + 2, version);
    opal_common_crypt_le_put16(wrapped->blob + 4, OPAL_CRYPT_RFC3394_BYTES);
    opal_common_crypt_le_put16(wrapped->blob + BLOB_ESCROW_AT, escrow_bytes);
    wrapped->bytes = (uint16_t) (BLOB_ESCROW_AT + 2 + escrow_bytes);
}

int opal_common_crypt_wrapped_parse(const opal_common_crypt_wrapped_t *wrapped,
                                    opal_common_crypt_keystore_backend_t *backend, uint16_t *version)
{
    const uint8_t *blob = wrapped->blob;

    if (wrapped->bytes < BLOB_ESCROW_AT + 2 || wrapped->bytes > OPAL_CRYPT_WRAPPED_MAX || BLOB_FORMAT != blob[0] ||
        (OPAL_CRYPT_KEYSTORE_FILE != blob[1] && OPAL_CRYPT_KEYSTORE_PKCS11 != blob[1]) ||
        0 == opal_common_crypt_le_get16(blob + 2) ||
        OPAL_CRYPT_RFC3394_BYTES != opal_common_crypt_le_get16(blob + 4) ||
        wrapped->bytes != BLOB_ESCROW_AT + 2 + opal_common_crypt_le_get16(blob + BLOB_ESCROW_AT)) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    *backend = (opal_common_crypt_keystore_backend_t) blob[1];
    *version = opal_common_crypt_le_get16(blob + 2);
    return OPAL_CRYPT_OK;
}

bool opal_common_crypt_wrapped_alike(const opal_common_crypt_wrapped_t *a, const opal_common_crypt_wrapped_t *b)
{
    return 0 == memcmp(a->blob, b->blob, BLOB_HEAD);
}

int opal_common_crypt_wrapped_recover(const opal_common_crypt_wrapped_t *wrapped, const char *private_pem,
                                      bool secret_on_netfs, uint8_t data_key[OPAL_CRYPT_DATA_KEY_BYTES],
                                      opal_common_crypt_why_t *why)
{
    opal_common_crypt_keystore_backend_t backend;
    uint16_t version;

    if (OPAL_CRYPT_OK != opal_common_crypt_wrapped_parse(wrapped, &backend, &version)) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "keystore-blob", "%u bytes", wrapped->bytes);
    }
    return opal_common_crypt_escrow_unwrap(private_pem, secret_on_netfs, wrapped->blob + BLOB_ESCROW_AT + 2,
                                           opal_common_crypt_le_get16(wrapped->blob + BLOB_ESCROW_AT), data_key, why);
}

static int wrap(opal_common_crypt_keystore_t *keystore, const char *label, const uint8_t *uuid,
                const uint8_t *data_key, opal_common_crypt_wrapped_t *wrapped, opal_common_crypt_why_t *why)
{
    opal_common_crypt_keystore_record_t record;
    const char *refusal;
    uint16_t escrow_bytes = 0;
    int rc = find(keystore, label, 0, false, &record, why);

    if (OPAL_CRYPT_OK != rc) {
        (void) opal_common_crypt_keystore_log(keystore, "wrap", label, 0, uuid, "no such key", NULL);
        return rc;
    }
    if (OPAL_CRYPT_GRANT_SEAL != grant_of(keystore, &record, &refusal)) {
        return refuse_use(keystore, "wrap", label, record.version, uuid, refusal, why);
    }
    rc = keystore->ops->wrap(keystore, &record, data_key, wrapped->blob + OPAL_CRYPT_BLOB_WRAPPED_AT, why);
    if (OPAL_CRYPT_OK == rc && 0 != record.escrow_bytes) {
        rc = opal_common_crypt_escrow_wrap(record.escrow, record.escrow_bytes, data_key,
                                           wrapped->blob + BLOB_ESCROW_AT + 2, &escrow_bytes);
    }
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    blob_write(keystore, record.version, escrow_bytes, wrapped);
    return opal_common_crypt_keystore_log(keystore, "wrap", label, record.version, uuid, NULL, why);
}

int opal_common_crypt_keystore_wrap(opal_common_crypt_keystore_t *keystore, const char *label,
                                    const uint8_t *uuid, const uint8_t data_key[OPAL_CRYPT_DATA_KEY_BYTES],
                                    opal_common_crypt_wrapped_t *wrapped, opal_common_crypt_why_t *why)
{
    pthread_mutex_lock(&keystore->lock);
    memset(wrapped, 0, sizeof(*wrapped));
    int rc = wrap(keystore, label, uuid, data_key, wrapped, why);
    if (OPAL_CRYPT_OK != rc) {
        memset(wrapped, 0, sizeof(*wrapped));
    }
    pthread_mutex_unlock(&keystore->lock);
    return rc;
}

/* All blobs are what they should be, and of one version. */
static int parse_all(const opal_common_crypt_unwrap_t *blobs, size_t count, size_t *which,
                     opal_common_crypt_keystore_backend_t *backend, uint16_t *version, opal_common_crypt_why_t *why)
{
    for (*which = 0; *which < count; ++*which) {
        const opal_common_crypt_wrapped_t *wrapped = blobs[*which].wrapped;
        if (OPAL_CRYPT_OK != opal_common_crypt_wrapped_parse(wrapped, backend, version) ||
            !opal_common_crypt_wrapped_alike(wrapped, blobs[0].wrapped)) {
            return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "keystore-blob", "%u bytes", wrapped->bytes);
        }
    }
    return OPAL_CRYPT_OK;
}

static int unwrap(opal_common_crypt_keystore_t *keystore, const char *label, const uint8_t *uuid,
                  const opal_common_crypt_unwrap_t *blobs, size_t count, size_t *which,
                  opal_common_crypt_grant_t *grant, opal_common_crypt_why_t *why)
{
    opal_common_crypt_keystore_record_t record;
    opal_common_crypt_keystore_backend_t backend;
    uint16_t version;
    const char *refusal;
    int rc = parse_all(blobs, count, which, &backend, &version, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    if (backend != keystore->backend) {
        return refuse_use(keystore, "unwrap", label, version, uuid,
                          "the file's key was wrapped by the other keystore backend", why);
    }
    rc = find(keystore, label, version, true, &record, why);
    if (OPAL_CRYPT_OK != rc) {
        (void) opal_common_crypt_keystore_log(keystore, "unwrap", label, version, uuid, "no such key", NULL);
        return rc;
    }
    *grant = grant_of(keystore, &record, &refusal);
    if (OPAL_CRYPT_GRANT_NONE == *grant) {
        return refuse_use(keystore, "unwrap", label, version, uuid, refusal, why);
    }
    rc = keystore->ops->unwrap(keystore, &record, blobs, count, which, why);
    if (OPAL_CRYPT_OK != rc) {
        (void) opal_common_crypt_keystore_log(keystore, "unwrap", label, version, uuid, "not wrapped by this key", NULL);
        return rc;
    }
    return opal_common_crypt_keystore_log(keystore, "unwrap", label, version, uuid, NULL, why);
}

int opal_common_crypt_keystore_unwrap_all(opal_common_crypt_keystore_t *keystore, const char *label,
                                          const uint8_t *uuid, const opal_common_crypt_unwrap_t *blobs, size_t count,
                                          size_t *which, opal_common_crypt_grant_t *grant, opal_common_crypt_why_t *why)
{
    pthread_mutex_lock(&keystore->lock);
    int rc = 0 == count ? OPAL_CRYPT_ERR_LIBRARY : unwrap(keystore, label, uuid, blobs, count, which, grant, why);
    if (OPAL_CRYPT_OK != rc) {
        for (size_t i = 0; i < count; ++i) {
            opal_common_crypt_wipe(blobs[i].data_key, OPAL_CRYPT_DATA_KEY_BYTES);
        }
        *grant = OPAL_CRYPT_GRANT_NONE;
    }
    pthread_mutex_unlock(&keystore->lock);
    return rc;
}

int opal_common_crypt_keystore_unwrap(opal_common_crypt_keystore_t *keystore, const char *label,
                                      const uint8_t *uuid, const opal_common_crypt_wrapped_t *wrapped,
                                      uint8_t data_key[OPAL_CRYPT_DATA_KEY_BYTES],
                                      opal_common_crypt_grant_t *grant, opal_common_crypt_why_t *why)
{
    const opal_common_crypt_unwrap_t one = {wrapped, data_key};
    size_t which;

    return opal_common_crypt_keystore_unwrap_all(keystore, label, uuid, &one, 1, &which, grant, why);
}

/* ---- management ---- */

/* No other thread and no other process changes a record until end_change. */
static int begin_change(opal_common_crypt_keystore_t *keystore, int *fd, opal_common_crypt_why_t *why)
{
    int rc = opal_common_crypt_keystore_lock(keystore, fd, why);

    if (OPAL_CRYPT_OK == rc) {
        pthread_mutex_lock(&keystore->lock);
    }
    return rc;
}

static void end_change(opal_common_crypt_keystore_t *keystore, int fd)
{
    pthread_mutex_unlock(&keystore->lock);
    opal_common_crypt_keystore_unlock(fd);
}

static int new_key(opal_common_crypt_keystore_t *keystore, bool rotate,
                   opal_common_crypt_keystore_record_t *record, opal_common_crypt_why_t *why)
{
    opal_common_crypt_keystore_record_t newest;
    int rc = find(keystore, record->label, 0, true, &newest, why);

    if (!rotate && OPAL_CRYPT_OK == rc) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-label-exists", "%s", record->label);
    }
    if (!rotate && 0 != newest.version) {
        return rc;
    }
    if (rotate && OPAL_CRYPT_OK != rc) {
        return rc;
    }
    if (rotate && UINT16_MAX == newest.version) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_EXHAUSTED, "keystore-versions", "%s", record->label);
    }
    if (rotate && 0 == record->escrow_bytes) {      /* once named, a recovery key stays */
        memcpy(record->escrow, newest.escrow, sizeof(record->escrow));
        record->escrow_bytes = newest.escrow_bytes;
    }
    record->version = (uint16_t) (newest.version + 1);
    record->bits = 256;
    record->created = 0 != keystore->now ? (int64_t) keystore->now : (int64_t) time(NULL);
    record->revoked = false;
    rc = keystore->ops->create(keystore, record, why);
    return OPAL_CRYPT_OK != rc ? rc : opal_common_crypt_keystore_log(keystore, rotate ? "rotate" : "new", record->label,
                                                                     record->version, NULL, NULL, why);
}

int opal_common_crypt_keystore_new(opal_common_crypt_keystore_t *keystore, bool rotate,
                                   opal_common_crypt_keystore_record_t *record, opal_common_crypt_why_t *why)
{
    opal_common_crypt_why_t mine;

    if (!opal_common_crypt_key_label_valid(record->label)) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-label", "%.80s", record->label);
    }
    int fd, rc = begin_change(keystore, &fd, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = new_key(keystore, rotate, record, NULL == why ? &mine : why);
        end_change(keystore, fd);
    }
    return rc;
}

int opal_common_crypt_keystore_list(opal_common_crypt_keystore_t *keystore,
                                    int (*each)(const opal_common_crypt_keystore_record_t *record, void *arg),
                                    void (*bad)(const opal_common_crypt_why_t *why, void *arg), void *arg,
                                    opal_common_crypt_why_t *why)
{
    pthread_mutex_lock(&keystore->lock);
    int rc = keystore->ops->walk(keystore, NULL, each, bad, arg, why);
    pthread_mutex_unlock(&keystore->lock);
    return rc;
}

static int revoke_one(opal_common_crypt_keystore_t *keystore, const char *label, uint16_t version,
                      opal_common_crypt_why_t *why)
{
    opal_common_crypt_keystore_record_t record;
    int rc = keystore->ops->read(keystore, label, version, &record, why);

    if (OPAL_CRYPT_OK == rc && !record.revoked) {
        record.revoked = true;
        rc = keystore->ops->update(keystore, &record, why);
    }
    return OPAL_CRYPT_OK == rc ? opal_common_crypt_keystore_log(keystore, "revoke", label, version, NULL, NULL, why) : rc;
}

/* Revoke one version; of version 0, every one, the newest first, which new files use.  One
 * that is not there, or cannot be read, does not save those behind it; the first error counts. */
static int revoke_versions(opal_common_crypt_keystore_t *keystore, const char *label, uint16_t version,
                           opal_common_crypt_why_t *why)
{
    opal_common_crypt_keystore_record_t record;
    int result = find(keystore, label, version, true, &record, why);
    unsigned first = 0 == version ? 1 : version, last = OPAL_CRYPT_OK == result ? record.version : 0;

    for (unsigned i = last; i >= first; --i) {
        opal_common_crypt_why_t one = {.topic = NULL};
        int rc = revoke_one(keystore, label, (uint16_t) i, &one);
        bool missing = NULL != one.topic && 0 == strcmp("keystore-no-label", one.topic);
        if (OPAL_CRYPT_OK != rc && !missing && OPAL_CRYPT_OK == result) {
            result = rc;
            if (NULL != why) {
                *why = one;
            }
        }
    }
    return result;
}

int opal_common_crypt_keystore_revoke(opal_common_crypt_keystore_t *keystore, const char *label,
                                      uint16_t version, opal_common_crypt_why_t *why)
{
    int fd, rc = begin_change(keystore, &fd, why);

    if (OPAL_CRYPT_OK == rc) {
        rc = revoke_versions(keystore, label, version, why);
        end_change(keystore, fd);
    }
    return rc;
}

static int set_escrow(opal_common_crypt_keystore_t *keystore, const char *label, const char *public_pem,
                      opal_common_crypt_why_t *why)
{
    opal_common_crypt_keystore_record_t record;
    int rc = find(keystore, label, 0, false, &record, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_common_crypt_escrow_key(public_pem, record.escrow, &record.escrow_bytes, why);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = keystore->ops->update(keystore, &record, why);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_common_crypt_keystore_log(keystore, "escrow", label, record.version, NULL, NULL, why);
    }
    return rc;
}

int opal_common_crypt_keystore_escrow(opal_common_crypt_keystore_t *keystore, const char *label,
                                      const char *public_pem, opal_common_crypt_why_t *why)
{
    int fd, rc = begin_change(keystore, &fd, why);

    if (OPAL_CRYPT_OK == rc) {
        rc = set_escrow(keystore, label, public_pem, why);
        end_change(keystore, fd);
    }
    return rc;
}
