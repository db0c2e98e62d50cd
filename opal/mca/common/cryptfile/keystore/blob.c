/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Data keys: wrapped and unwrapped if the key may be used, each time with a line in the
 * log; and the blob that a map keeps.
 *
 *     | format 1 = 1 | backend 1 | key version 2 | fingerprint 16 | created 8 | n 2 | wrapped n | e 2 | escrow e |
 *
 * n is 40 (RFC 3394), or 60 of a key server.
 */
#include "keystore_object.h"
#include "opal/mca/common/crypt/base/le.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    BLOB_FORMAT = 1,
    BLOB_FINGERPRINT_AT = 4,
    BLOB_CREATED_AT = BLOB_FINGERPRINT_AT + OPAL_CRYPTFILE_FINGERPRINT_BYTES,
    BLOB_BY_BYTES = BLOB_CREATED_AT + 8         /* names the key that it was wrapped under */
};
static_assert(BLOB_BY_BYTES + 2 == OPAL_CRYPTFILE_BLOB_WRAPPED_AT, "docs/file-format.rst");

static_assert(OPAL_CRYPTFILE_BLOB_WRAPPED_AT + OPAL_CRYPTFILE_TRANSIT_BYTES + 2 + OPAL_CRYPTFILE_ESCROW_MAX <= OPAL_CRYPTFILE_WRAPPED_MAX,
              "the largest blob");

/* ---- the blob ---- */

/* n of a backend; 0: there is no such backend. */
static uint16_t blob_inner(unsigned backend)
{
    return OPAL_CRYPTFILE_KEYSTORE_FILE == backend || OPAL_CRYPTFILE_KEYSTORE_PKCS11 == backend ? OPAL_CRYPTFILE_RFC3394_BYTES
           : OPAL_CRYPTFILE_KEYSTORE_VAULT == backend                                           ? OPAL_CRYPTFILE_TRANSIT_BYTES
                                                                                                : 0;
}

/* Where e is. */
static size_t blob_escrow_at(unsigned backend)
{
    return OPAL_CRYPTFILE_BLOB_WRAPPED_AT + blob_inner(backend);
}

static void blob_write(const opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record, uint16_t escrow_bytes,
                       opal_cryptfile_wrapped_t *wrapped)
{
    const size_t escrow_at = blob_escrow_at(keystore->backend);

    wrapped->blob[0] = BLOB_FORMAT;
    wrapped->blob[1] = (uint8_t) keystore->backend;
    opal_crypt_le_put16(wrapped->blob + 2, record->version);
    memcpy(wrapped->blob + BLOB_FINGERPRINT_AT, record->fingerprint, sizeof(record->fingerprint));
    opal_crypt_le_put64(wrapped->blob + BLOB_CREATED_AT, (uint64_t) record->created);
    opal_crypt_le_put16(wrapped->blob + BLOB_BY_BYTES, blob_inner(keystore->backend));
    opal_crypt_le_put16(wrapped->blob + escrow_at, escrow_bytes);
    wrapped->bytes = (uint16_t) (escrow_at + 2 + escrow_bytes);
}

int opal_cryptfile_wrapped_parse(const opal_cryptfile_wrapped_t *wrapped, opal_cryptfile_wrapped_by_t *by)
{
    const uint8_t *blob = wrapped->blob;
    const size_t escrow_at = blob_escrow_at(blob[1]);

    if (wrapped->bytes < escrow_at + 2 || wrapped->bytes > OPAL_CRYPTFILE_WRAPPED_MAX || BLOB_FORMAT != blob[0] || 0 == blob_inner(blob[1]) ||
        0 == opal_crypt_le_get16(blob + 2) || opal_crypt_le_get64(blob + BLOB_CREATED_AT) > INT64_MAX ||
        blob_inner(blob[1]) != opal_crypt_le_get16(blob + BLOB_BY_BYTES) ||
        wrapped->bytes != escrow_at + 2 + opal_crypt_le_get16(blob + escrow_at)) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    by->backend = (opal_cryptfile_keystore_backend_t) blob[1];
    by->version = opal_crypt_le_get16(blob + 2);
    memcpy(by->fingerprint, blob + BLOB_FINGERPRINT_AT, sizeof(by->fingerprint));
    by->created = (int64_t) opal_crypt_le_get64(blob + BLOB_CREATED_AT);
    return OPAL_CRYPT_OK;
}

bool opal_cryptfile_wrapped_alike(const opal_cryptfile_wrapped_t *a, const opal_cryptfile_wrapped_t *b)
{
    return 0 == memcmp(a->blob, b->blob, BLOB_BY_BYTES);
}

int opal_cryptfile_wrapped_recover(const opal_cryptfile_wrapped_t *wrapped, const char *private_pem,
                                   bool secret_on_netfs, uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES],
                                   opal_crypt_why_t *why)
{
    opal_cryptfile_wrapped_by_t by;

    if (OPAL_CRYPT_OK != opal_cryptfile_wrapped_parse(wrapped, &by)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "keystore-blob", "%u bytes", wrapped->bytes);
    }
    const uint8_t *escrow = wrapped->blob + blob_escrow_at(by.backend);
    return opal_cryptfile_escrow_unwrap(private_pem, secret_on_netfs, escrow + 2, opal_crypt_le_get16(escrow), data_key, why);
}

/* ---- wrap and unwrap ---- */

static void enter_call(opal_cryptfile_keystore_t *keystore)
{
    pthread_mutex_lock(&keystore->lock);
    keystore->keeps = true;
}

static void leave_call(opal_cryptfile_keystore_t *keystore)
{
    opal_crypt_secmem_free(keystore->kept);
    keystore->kept = NULL;
    keystore->keeps = false;
    pthread_mutex_unlock(&keystore->lock);
}

enum { NAMES_BYTES = 2 * OPAL_CRYPTFILE_KEY_TEXT_BYTES + 64 };

/* The key that a file needs and, if the keystore has another one under that name (`record`, if not NULL), both. */
static const char *names_of(const opal_cryptfile_wrapped_by_t *by, const opal_cryptfile_keystore_record_t *record, char text[NAMES_BYTES])
{
    char needed[OPAL_CRYPTFILE_KEY_TEXT_BYTES], kept[OPAL_CRYPTFILE_KEY_TEXT_BYTES];

    opal_cryptfile_key_text(by->fingerprint, by->created, needed);
    if (NULL == record || 0 == memcmp(by->fingerprint, record->fingerprint, sizeof(by->fingerprint))) {
        snprintf(text, NAMES_BYTES, "%s", needed);
    } else {
        snprintf(text, NAMES_BYTES, "the file has %s, the keystore %s", needed,
                 opal_cryptfile_key_text(record->fingerprint, record->created, kept));
    }
    return text;
}

static int refuse_use(opal_cryptfile_keystore_t *keystore, const char *verb, const char *label, const opal_cryptfile_wrapped_by_t *by,
                      const opal_cryptfile_keystore_record_t *record, const uint8_t *uuid, const char *refusal, opal_crypt_why_t *why)
{
    char names[NAMES_BYTES];
    int rc = opal_cryptfile_keystore_log(keystore, verb, label, by->version, uuid, refusal, why);

    return OPAL_CRYPT_OK != rc ? rc : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-refused", "%s, version %u (%s): %s", label,
                                                        by->version, names_of(by, record, names), refusal);
}

static opal_cryptfile_wrapped_by_t by_record(const opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record)
{
    opal_cryptfile_wrapped_by_t by = {.backend = keystore->backend, .version = record->version, .created = record->created};

    memcpy(by.fingerprint, record->fingerprint, sizeof(by.fingerprint));
    return by;
}

static int blob_wrap(opal_cryptfile_keystore_t *keystore, const char *label, const uint8_t *uuid,
                     const uint8_t *data_key, opal_cryptfile_wrapped_t *wrapped, opal_crypt_why_t *why)
{
    opal_cryptfile_keystore_record_t record;
    const char *refusal;
    uint16_t escrow_bytes = 0;
    int rc = opal_cryptfile_keystore_look_up(keystore, label, 0, false, &record, why);

    if (OPAL_CRYPT_OK != rc) {
        (void) opal_cryptfile_keystore_log(keystore, "wrap", label, 0, uuid, "no such key", NULL);
        return rc;
    }
    if (OPAL_CRYPTFILE_GRANT_SEAL != opal_cryptfile_keystore_grant_of(keystore, &record, &refusal)) {
        const opal_cryptfile_wrapped_by_t by = by_record(keystore, &record);

        return refuse_use(keystore, "wrap", label, &by, NULL, uuid, refusal, why);
    }
    rc = keystore->ops->wrap(keystore, &record, data_key, wrapped->blob + OPAL_CRYPTFILE_BLOB_WRAPPED_AT, why);
    if (OPAL_CRYPT_OK == rc && 0 != record.escrow_bytes) {
        rc = opal_cryptfile_escrow_wrap(record.escrow, record.escrow_bytes, data_key,
                                        wrapped->blob + blob_escrow_at(keystore->backend) + 2, &escrow_bytes);
    }
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    blob_write(keystore, &record, escrow_bytes, wrapped);
    return opal_cryptfile_keystore_log(keystore, "wrap", label, record.version, uuid, NULL, why);
}

int opal_cryptfile_keystore_wrap(opal_cryptfile_keystore_t *keystore, const char *label,
                                 const uint8_t *uuid, const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES],
                                 opal_cryptfile_wrapped_t *wrapped, opal_crypt_why_t *why)
{
    enter_call(keystore);
    memset(wrapped, 0, sizeof(*wrapped));
    int rc = blob_wrap(keystore, label, uuid, data_key, wrapped, why);
    if (OPAL_CRYPT_OK != rc) {
        memset(wrapped, 0, sizeof(*wrapped));
    }
    leave_call(keystore);
    return rc;
}

/* Check that all blobs are well-formed, and of one version. */
static int parse_all(const opal_cryptfile_unwrap_t *blobs, size_t count, size_t *which,
                     opal_cryptfile_wrapped_by_t *by, opal_crypt_why_t *why)
{
    for (*which = 0; *which < count; ++*which) {
        const opal_cryptfile_wrapped_t *wrapped = blobs[*which].wrapped;
        if (OPAL_CRYPT_OK != opal_cryptfile_wrapped_parse(wrapped, by) ||
            !opal_cryptfile_wrapped_alike(wrapped, blobs[0].wrapped)) {
            return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "keystore-blob", "%u bytes", wrapped->bytes);
        }
    }
    return OPAL_CRYPT_OK;
}

/* The record under which to unwrap.  If a server decides, it is what the blob says, and no request is needed. */
static int blob_record(opal_cryptfile_keystore_t *keystore, const char *label, const opal_cryptfile_wrapped_by_t *by,
                       opal_cryptfile_keystore_record_t *record, opal_crypt_why_t *why)
{
    if (!keystore->ops->server || !opal_cryptfile_key_label_valid(label)) {
        return opal_cryptfile_keystore_look_up(keystore, label, by->version, true, record, why);
    }
    *record = (opal_cryptfile_keystore_record_t){.version = by->version, .created = by->created};
    strcpy(record->label, label);
    memcpy(record->fingerprint, by->fingerprint, sizeof(record->fingerprint));
    return OPAL_CRYPT_OK;
}

/* Does the server say that there is no such key for this process?  Anything else does not tell. */
static bool server_refused(const opal_crypt_why_t *why)
{
    return NULL != why && NULL != why->topic && (0 == strcmp("keystore-refused", why->topic) || 0 == strcmp("keystore-no-label", why->topic));
}

static int blob_unwrap(opal_cryptfile_keystore_t *keystore, const char *label, const uint8_t *uuid,
                       const opal_cryptfile_unwrap_t *blobs, size_t count, size_t *which,
                       opal_cryptfile_grant_t *grant, opal_crypt_why_t *why)
{
    opal_cryptfile_keystore_record_t record;
    opal_cryptfile_wrapped_by_t by = {.backend = keystore->backend};
    const char *refusal;
    int rc = parse_all(blobs, count, which, &by, why);
    char names[NAMES_BYTES];

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    if (by.backend != keystore->backend) {
        return refuse_use(keystore, "unwrap", label, &by, NULL, uuid,
                          "the file's key was wrapped by another keystore backend", why);
    }
    rc = blob_record(keystore, label, &by, &record, why);
    if (OPAL_CRYPT_OK != rc) {
        (void) opal_cryptfile_keystore_log(keystore, "unwrap", label, by.version, uuid, "no such key", NULL);
        if (NULL != why && 0 == strcmp("keystore-no-label", why->topic)) {
            opal_crypt_refuse(why, rc, why->topic, "%s, version %u (%s), keystore %s %.512s", label, by.version,
                              names_of(&by, NULL, names), keystore->ops->name, keystore->directory);
        }
        return rc;
    }
    *grant = opal_cryptfile_keystore_grant_of(keystore, &record, &refusal);
    if (OPAL_CRYPTFILE_GRANT_NONE == *grant) {
        return refuse_use(keystore, "unwrap", label, &by, &record, uuid, refusal, why);
    }
    rc = keystore->ops->unwrap(keystore, &record, blobs, count, which, why);
    if (OPAL_CRYPT_OK != rc) {
        const bool other = OPAL_CRYPT_ERR_AUTH == rc || !keystore->ops->server;
        (void) opal_cryptfile_keystore_log(keystore, "unwrap", label, by.version, uuid,
                                           other ? "not wrapped by this key" : "the key server did not unwrap it", NULL);
        if (OPAL_CRYPT_ERR_AUTH == rc && keystore->ops->server &&       /* which key is it there? */
            OPAL_CRYPT_OK != opal_cryptfile_keystore_look_up(keystore, label, by.version, true, &record, NULL)) {
            (void) blob_record(keystore, label, &by, &record, NULL);
        }
        if (keystore->ops->server && OPAL_CRYPT_ERR_AUTH != rc && OPAL_CRYPT_ERR_MEMORY != rc && !server_refused(why)) {
            return OPAL_CRYPT_ERR_PEER;
        }
        return OPAL_CRYPT_ERR_AUTH != rc ? rc : opal_crypt_refuse(why, rc, "keystore-unwrap", "%s, version %u (%s)", label, by.version,
                                                                  names_of(&by, &record, names));
    }
    return opal_cryptfile_keystore_log(keystore, "unwrap", label, by.version, uuid, NULL, why);
}

int opal_cryptfile_keystore_unwrap_all(opal_cryptfile_keystore_t *keystore, const char *label,
                                       const uint8_t *uuid, const opal_cryptfile_unwrap_t *blobs, size_t count,
                                       size_t *which, opal_cryptfile_grant_t *grant, opal_crypt_why_t *why)
{
    enter_call(keystore);
    int rc = 0 == count ? OPAL_CRYPT_ERR_LIBRARY : blob_unwrap(keystore, label, uuid, blobs, count, which, grant, why);
    if (OPAL_CRYPT_OK != rc) {
        for (size_t i = 0; i < count; ++i) {
            opal_crypt_wipe(blobs[i].data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES);
        }
        *grant = OPAL_CRYPTFILE_GRANT_NONE;
    }
    leave_call(keystore);
    return rc;
}

static int agrees(opal_cryptfile_keystore_t *keystore, const char *label, const opal_cryptfile_wrapped_t *wrapped,
                  const uint8_t *data_key, uint16_t *version)
{
    uint8_t *own = opal_crypt_secmem_alloc(OPAL_CRYPTFILE_DATA_KEY_BYTES);
    const opal_cryptfile_unwrap_t blob = {wrapped, own};
    opal_cryptfile_keystore_record_t record;
    opal_cryptfile_wrapped_by_t by;
    opal_crypt_why_t why = {.topic = NULL};
    size_t which = 0;
    int rc = NULL == own ? OPAL_CRYPT_ERR_MEMORY : opal_cryptfile_wrapped_parse(wrapped, &by);

    *version = OPAL_CRYPT_OK == rc ? by.version : 0;
    if (OPAL_CRYPT_OK == rc && by.backend != keystore->backend) {
        rc = OPAL_CRYPT_ERR_CONFIG;
    }
    rc = rc ? rc : blob_record(keystore, label, &by, &record, &why);
    rc = rc ? rc : keystore->ops->unwrap(keystore, &record, &blob, 1, &which, &why);
    if (OPAL_CRYPT_OK == rc && 0 != opal_crypt_differ(own, data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES)) {
        rc = OPAL_CRYPT_ERR_AUTH;
    }
    opal_crypt_secmem_free(own);
    return OPAL_CRYPT_OK == rc || OPAL_CRYPT_ERR_AUTH == rc || OPAL_CRYPT_ERR_MEMORY == rc ? rc : OPAL_CRYPT_ERR_CONFIG;
}

int opal_cryptfile_keystore_agrees(opal_cryptfile_keystore_t *keystore, const char *label, const uint8_t *uuid,
                                   const opal_cryptfile_wrapped_t *wrapped,
                                   const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES])
{
    uint16_t version = 0;

    enter_call(keystore);
    int rc = agrees(keystore, label, wrapped, data_key, &version);
    (void) opal_cryptfile_keystore_log(keystore, "compare", label, version, uuid,
                                       OPAL_CRYPT_OK == rc ? NULL : OPAL_CRYPT_ERR_AUTH == rc ? "another key" : "no such key", NULL);
    leave_call(keystore);
    return rc;
}
