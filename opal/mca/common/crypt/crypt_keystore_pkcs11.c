/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The backend `pkcs11`: keys in a token that does not give them away.
 *
 *     secret key  label NAME, id NAME.VERSION, AES, sensitive, not extractable
 *     data object label NAME.VERSION, application ompi-crypt, private: the record
 *
 * A data key enters and leaves the token as a session object, by
 * CKM_AES_KEY_WRAP (RFC 3394).
 */
#include "crypt_keystore_object.h"
#include "crypt_p11.h"

#ifdef OMPI_CRYPT_HAVE_PKCS11

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECTS = 64 };

typedef opal_common_crypt_p11_t token_t;

static CK_OBJECT_CLASS secret_class = CKO_SECRET_KEY, data_class = CKO_DATA;
static CK_KEY_TYPE aes_type = CKK_AES, generic_type = CKK_GENERIC_SECRET;
static CK_BBOOL yes = CK_TRUE, no = CK_FALSE;
static char application[] = "ompi-crypt";

#define ATTRIBUTE(type, value) {type, &(value), sizeof(value)}

static int open_token(opal_common_crypt_keystore_t *keystore, const opal_common_crypt_keystore_options_t *options,
                      opal_common_crypt_why_t *why)
{
    token_t *token;
    int rc = opal_common_crypt_p11_open(options, &token, why);

    keystore->token = token;
    return rc;
}

static void close_token(opal_common_crypt_keystore_t *keystore)
{
    opal_common_crypt_p11_close(keystore->token);
    keystore->token = NULL;
}

/* ---- objects ---- */

static int name_of(const char *label, unsigned version, char name[OPAL_CRYPT_KEY_LABEL_MAX + 8])
{
    return snprintf(name, OPAL_CRYPT_KEY_LABEL_MAX + 8, "%s.%u", label, version);
}

/* The one data object NAME.VERSION. */
static int record_object(token_t *token, const char *label, unsigned version, CK_OBJECT_HANDLE *handle,
                         opal_common_crypt_why_t *why)
{
    char name[OPAL_CRYPT_KEY_LABEL_MAX + 8];
    CK_ULONG bytes = (CK_ULONG) name_of(label, version, name), found;
    CK_ATTRIBUTE attributes[] = {ATTRIBUTE(CKA_CLASS, data_class), {CKA_APPLICATION, application, sizeof(application) - 1},
                                 {CKA_LABEL, name, bytes}};
    CK_OBJECT_HANDLE handles[2];
    int rc = opal_common_crypt_p11_find(token, attributes, 3, handles, 2, &found, why);

    if (OPAL_CRYPT_OK == rc && 1 != found) {
        rc = opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, 0 == found ? "keystore-no-label" : "keystore-pkcs11",
                                      "%s: %lu records", name, (unsigned long) found);
    }
    *handle = handles[0];
    return rc;
}

static int key_object(token_t *token, const char *label, unsigned version, CK_OBJECT_HANDLE *handle,
                      opal_common_crypt_why_t *why)
{
    char name[OPAL_CRYPT_KEY_LABEL_MAX + 8];
    CK_ULONG bytes = (CK_ULONG) name_of(label, version, name), found;
    CK_ATTRIBUTE attributes[] = {ATTRIBUTE(CKA_CLASS, secret_class), {CKA_ID, name, bytes}};
    CK_OBJECT_HANDLE handles[2];
    int rc = opal_common_crypt_p11_find(token, attributes, 2, handles, 2, &found, why);

    if (OPAL_CRYPT_OK == rc && 1 != found) {
        rc = opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "%s: %lu keys", name,
                                      (unsigned long) found);
    }
    *handle = handles[0];
    return rc;
}

static int parse_object(token_t *token, CK_OBJECT_HANDLE handle, opal_common_crypt_keystore_record_t *record,
                        opal_common_crypt_why_t *why)
{
    char text[OPAL_CRYPT_RECORD_TEXT_MAX];
    CK_ATTRIBUTE value = {CKA_VALUE, text, sizeof(text)};
    size_t used;
    CK_RV rv = token->call->C_GetAttributeValue(token->session, handle, &value, 1);

    if (CKR_OK != rv) {
        return opal_common_crypt_p11_refuse(why, "C_GetAttributeValue of a record", rv);
    }
    if (OPAL_CRYPT_OK != opal_common_crypt_keystore_record_parse(text, value.ulValueLen, &used, record) ||
        used != value.ulValueLen) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "a record is not as it was written");
    }
    return OPAL_CRYPT_OK;
}

static int read_record(opal_common_crypt_keystore_t *keystore, const char *label, uint16_t version,
                       opal_common_crypt_keystore_record_t *record, opal_common_crypt_why_t *why)
{
    CK_OBJECT_HANDLE handle;
    int rc = record_object(keystore->token, label, version, &handle, why);

    if (OPAL_CRYPT_OK == rc) {
        rc = parse_object(keystore->token, handle, record, why);
    }
    if (OPAL_CRYPT_OK == rc && (0 != strcmp(record->label, label) || record->version != version)) {
        rc = opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "%s.%u: its record is another's",
                                      label, version);
    }
    return rc;
}

static int walk(opal_common_crypt_keystore_t *keystore, const char *label,
                int (*each)(const opal_common_crypt_keystore_record_t *record, void *arg),
                void (*bad)(const opal_common_crypt_why_t *why, void *arg), void *arg, opal_common_crypt_why_t *why)
{
    opal_common_crypt_why_t bad_why = {.topic = NULL};
    token_t *token = keystore->token;
    CK_ATTRIBUTE attributes[] = {ATTRIBUTE(CKA_CLASS, data_class), {CKA_APPLICATION, application, sizeof(application) - 1}};
    CK_ULONG max = OBJECTS, found = OBJECTS;
    CK_OBJECT_HANDLE *handles = NULL;
    opal_common_crypt_keystore_record_t record;
    int rc = OPAL_CRYPT_OK;

    /* Ask for more until there are fewer than asked for. */
    while (OPAL_CRYPT_OK == rc && found == max) {
        max *= 2;
        free(handles);
        handles = calloc(max, sizeof(*handles));
        rc = NULL == handles ? OPAL_CRYPT_ERR_MEMORY
                             : opal_common_crypt_p11_find(token, attributes, 2, handles, max, &found, why);
    }
    for (CK_ULONG i = 0; OPAL_CRYPT_OK == rc && i < found; ++i) {
        rc = parse_object(token, handles[i], &record, NULL == bad ? why : &bad_why);
        if (OPAL_CRYPT_OK == rc && (NULL == label || 0 == strcmp(label, record.label))) {
            rc = each(&record, arg);
        } else if (NULL != bad && OPAL_CRYPT_ERR_CONFIG == rc) {
            bad(&bad_why, arg);
            rc = OPAL_CRYPT_OK;
        }
    }
    free(handles);
    return rc;
}

/* ---- making ---- */

static int put_record(token_t *token, const opal_common_crypt_keystore_record_t *record, opal_common_crypt_why_t *why)
{
    char text[OPAL_CRYPT_RECORD_TEXT_MAX], name[OPAL_CRYPT_KEY_LABEL_MAX + 8];
    CK_ULONG name_bytes = (CK_ULONG) name_of(record->label, record->version, name);
    int bytes = opal_common_crypt_keystore_record_write(record, text, sizeof(text));
    CK_OBJECT_HANDLE handle;

    if (bytes < 0) {
        return bytes;
    }
    CK_ATTRIBUTE attributes[] = {ATTRIBUTE(CKA_CLASS, data_class), ATTRIBUTE(CKA_TOKEN, yes), ATTRIBUTE(CKA_PRIVATE, yes),
                                 {CKA_APPLICATION, application, sizeof(application) - 1},
                                 {CKA_LABEL, name, name_bytes}, {CKA_VALUE, text, (CK_ULONG) bytes}};
    CK_RV rv = token->call->C_CreateObject(token->session, attributes, 6, &handle);
    return CKR_OK == rv ? OPAL_CRYPT_OK : opal_common_crypt_p11_refuse(why, "C_CreateObject", rv);
}

static int create(opal_common_crypt_keystore_t *keystore, const opal_common_crypt_keystore_record_t *record,
                  opal_common_crypt_why_t *why)
{
    token_t *token = keystore->token;
    CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0};
    CK_ULONG key_bytes = record->bits / 8;
    char label[OPAL_CRYPT_KEY_LABEL_MAX + 1], name[OPAL_CRYPT_KEY_LABEL_MAX + 8];
    CK_ULONG name_bytes = (CK_ULONG) name_of(record->label, record->version, name);
    CK_OBJECT_HANDLE handle;

    if (OPAL_CRYPT_OK == record_object(token, record->label, record->version, &handle, NULL)) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-label-exists", "%s", name);
    }
    memcpy(label, record->label, sizeof(label));
    CK_ATTRIBUTE attributes[] = {ATTRIBUTE(CKA_CLASS, secret_class), ATTRIBUTE(CKA_KEY_TYPE, aes_type),
                                 ATTRIBUTE(CKA_VALUE_LEN, key_bytes), ATTRIBUTE(CKA_TOKEN, yes),
                                 ATTRIBUTE(CKA_PRIVATE, yes), ATTRIBUTE(CKA_SENSITIVE, yes),
                                 ATTRIBUTE(CKA_EXTRACTABLE, no), ATTRIBUTE(CKA_WRAP, yes), ATTRIBUTE(CKA_UNWRAP, yes),
                                 ATTRIBUTE(CKA_ENCRYPT, no), ATTRIBUTE(CKA_DECRYPT, no),
                                 {CKA_LABEL, label, strlen(label)}, {CKA_ID, name, name_bytes}};
    CK_RV rv = token->call->C_GenerateKey(token->session, &generate, attributes,
                                          sizeof(attributes) / sizeof(*attributes), &handle);
    if (CKR_OK != rv) {
        return opal_common_crypt_p11_refuse(why, "C_GenerateKey", rv);
    }
    int rc = put_record(token, record, why);
    if (OPAL_CRYPT_OK != rc) {
        token->call->C_DestroyObject(token->session, handle);
    }
    return rc;
}

/* The new record is there before the old one goes: two of one name are refused
 * by record_object, never the older one taken. */
static int update(opal_common_crypt_keystore_t *keystore, const opal_common_crypt_keystore_record_t *record,
                  opal_common_crypt_why_t *why)
{
    token_t *token = keystore->token;
    CK_OBJECT_HANDLE old;
    int rc = record_object(token, record->label, record->version, &old, why);

    if (OPAL_CRYPT_OK == rc) {
        rc = put_record(token, record, why);
    }
    if (OPAL_CRYPT_OK == rc) {
        CK_RV rv = token->call->C_DestroyObject(token->session, old);
        rc = CKR_OK == rv ? OPAL_CRYPT_OK : opal_common_crypt_p11_refuse(why, "C_DestroyObject", rv);
    }
    return rc;
}

/* ---- using ---- */

static int wrap(opal_common_crypt_keystore_t *keystore, const opal_common_crypt_keystore_record_t *record,
                const uint8_t data_key[OPAL_CRYPT_DATA_KEY_BYTES], uint8_t wrapped[OPAL_CRYPT_RFC3394_BYTES],
                opal_common_crypt_why_t *why)
{
    token_t *token = keystore->token;
    CK_MECHANISM mechanism = {CKM_AES_KEY_WRAP, NULL, 0};
    CK_ATTRIBUTE attributes[] = {ATTRIBUTE(CKA_CLASS, secret_class), ATTRIBUTE(CKA_KEY_TYPE, generic_type),
                                 ATTRIBUTE(CKA_TOKEN, no), ATTRIBUTE(CKA_EXTRACTABLE, yes),
                                 {CKA_VALUE, (void *) (uintptr_t) data_key, OPAL_CRYPT_DATA_KEY_BYTES}};
    CK_OBJECT_HANDLE kek, object;
    CK_ULONG bytes = OPAL_CRYPT_RFC3394_BYTES;
    int rc = key_object(token, record->label, record->version, &kek, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    CK_RV rv = token->call->C_CreateObject(token->session, attributes, 5, &object);
    if (CKR_OK != rv) {
        return opal_common_crypt_p11_refuse(why, "C_CreateObject of a data key", rv);
    }
    rv = token->call->C_WrapKey(token->session, &mechanism, kek, object, wrapped, &bytes);
    token->call->C_DestroyObject(token->session, object);
    return CKR_OK == rv && OPAL_CRYPT_RFC3394_BYTES == bytes ? OPAL_CRYPT_OK
                                                             : opal_common_crypt_p11_refuse(why, "C_WrapKey", rv);
}

/* The token or its session failed: that says nothing about the wrapped key. */
static bool token_failed(CK_RV rv)
{
    return CKR_HOST_MEMORY == rv || CKR_DEVICE_ERROR == rv || CKR_DEVICE_MEMORY == rv || CKR_DEVICE_REMOVED == rv
           || CKR_SESSION_CLOSED == rv || CKR_SESSION_HANDLE_INVALID == rv || CKR_TOKEN_NOT_PRESENT == rv
           || CKR_USER_NOT_LOGGED_IN == rv || CKR_CRYPTOKI_NOT_INITIALIZED == rv;
}

static int unwrap_one(token_t *token, CK_OBJECT_HANDLE kek, const opal_common_crypt_keystore_record_t *record,
                      const uint8_t wrapped[OPAL_CRYPT_RFC3394_BYTES], uint8_t data_key[OPAL_CRYPT_DATA_KEY_BYTES],
                      opal_common_crypt_why_t *why)
{
    CK_MECHANISM mechanism = {CKM_AES_KEY_WRAP, NULL, 0};
    CK_ATTRIBUTE attributes[] = {ATTRIBUTE(CKA_CLASS, secret_class), ATTRIBUTE(CKA_KEY_TYPE, generic_type),
                                 ATTRIBUTE(CKA_TOKEN, no), ATTRIBUTE(CKA_SENSITIVE, no), ATTRIBUTE(CKA_EXTRACTABLE, yes)};
    CK_ATTRIBUTE value = {CKA_VALUE, data_key, OPAL_CRYPT_DATA_KEY_BYTES};
    CK_OBJECT_HANDLE object;
    CK_RV rv = token->call->C_UnwrapKey(token->session, &mechanism, kek, (uint8_t *) (uintptr_t) wrapped,
                                        OPAL_CRYPT_RFC3394_BYTES, attributes, 5, &object);
    if (token_failed(rv)) {
        return opal_common_crypt_p11_refuse(why, "C_UnwrapKey", rv);
    }
    if (CKR_OK != rv) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "keystore-unwrap", "%s, version %u: 0x%lx", record->label,
                                        record->version, (unsigned long) rv);
    }
    rv = token->call->C_GetAttributeValue(token->session, object, &value, 1);
    token->call->C_DestroyObject(token->session, object);
    if (CKR_OK != rv || OPAL_CRYPT_DATA_KEY_BYTES != value.ulValueLen) {
        return opal_common_crypt_p11_refuse(why, "C_GetAttributeValue", rv);
    }
    return OPAL_CRYPT_OK;
}

static int unwrap(opal_common_crypt_keystore_t *keystore, const opal_common_crypt_keystore_record_t *record,
                  const opal_common_crypt_unwrap_t *blobs, size_t count, size_t *which, opal_common_crypt_why_t *why)
{
    CK_OBJECT_HANDLE kek;
    int rc = key_object(keystore->token, record->label, record->version, &kek, why);

    for (*which = 0; OPAL_CRYPT_OK == rc && *which < count; *which += OPAL_CRYPT_OK == rc) {
        rc = unwrap_one(keystore->token, kek, record, blobs[*which].wrapped->blob + OPAL_CRYPT_BLOB_WRAPPED_AT,
                        blobs[*which].data_key, why);
    }
    return rc;
}

const opal_common_crypt_keystore_ops_t opal_common_crypt_keystore_pkcs11_ops = {
    .name = "pkcs11",
    .open = open_token,
    .close = close_token,
    .walk = walk,
    .read = read_record,
    .create = create,
    .update = update,
    .wrap = wrap,
    .unwrap = unwrap,
};

#else /* built without the header of PKCS#11: opening says so, nothing else is reached */

static int open_token(opal_common_crypt_keystore_t *keystore, const opal_common_crypt_keystore_options_t *options,
                      opal_common_crypt_why_t *why)
{
    (void) keystore;
    (void) options;
    return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "this build has no PKCS#11");
}

static void close_token(opal_common_crypt_keystore_t *keystore)
{
    (void) keystore;
}

const opal_common_crypt_keystore_ops_t opal_common_crypt_keystore_pkcs11_ops = {
    .name = "pkcs11",
    .open = open_token,
    .close = close_token,
};

#endif
