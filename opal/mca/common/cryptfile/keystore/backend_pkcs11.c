/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The backend `pkcs11`: keys in a token that does not export them.
 *
 *     secret key  label NAME, id NAME.VERSION, AES, sensitive, not extractable
 *     data object label NAME.VERSION, application ompi-crypt, private: the record
 *
 * A data key enters and leaves the token as a session object, by
 * CKM_AES_KEY_WRAP (RFC 3394).
 */
#include "keystore_object.h"
#include "p11.h"
#include "opal/mca/common/crypt/base/secmem.h"

#ifdef OMPI_CRYPT_HAVE_PKCS11

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECTS = 64, RECORDS = 8 };

typedef opal_cryptfile_p11_t token_t;

static CK_OBJECT_CLASS secret_class = CKO_SECRET_KEY, data_class = CKO_DATA;
static CK_KEY_TYPE aes_type = CKK_AES, generic_type = CKK_GENERIC_SECRET;
static CK_BBOOL yes = CK_TRUE, no = CK_FALSE;
static char application[] = "ompi-crypt";

#define ATTRIBUTE(type, value) {type, &(value), sizeof(value)}

static int open_token(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_options_t *options,
                      opal_crypt_why_t *why)
{
    token_t *token;
    int rc = opal_cryptfile_p11_open(options, &token, why);

    keystore->token = token;
    return rc;
}

static void close_token(opal_cryptfile_keystore_t *keystore)
{
    opal_cryptfile_p11_close(keystore->token);
    keystore->token = NULL;
}

/* ---- objects ---- */

static int name_of(const char *label, unsigned version, char name[OPAL_CRYPTFILE_KEY_LABEL_MAX + 8])
{
    return snprintf(name, OPAL_CRYPTFILE_KEY_LABEL_MAX + 8, "%s.%u", label, version);
}

/* The data objects NAME.VERSION: one, or more if a command was killed while changing it. */
static int record_objects(token_t *token, const char *label, unsigned version, CK_OBJECT_HANDLE handles[RECORDS],
                          CK_ULONG *found, opal_crypt_why_t *why)
{
    char name[OPAL_CRYPTFILE_KEY_LABEL_MAX + 8];
    CK_ULONG bytes = (CK_ULONG) name_of(label, version, name);
    CK_ATTRIBUTE attributes[] = {ATTRIBUTE(CKA_CLASS, data_class), {CKA_APPLICATION, application, sizeof(application) - 1},
                                 {CKA_LABEL, name, bytes}};
    int rc = opal_cryptfile_p11_find(token, attributes, 3, handles, RECORDS, found, why);

    if (OPAL_CRYPT_OK == rc && 0 == *found) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-no-label", "%s: 0 records", name);
    }
    return rc;
}

static int key_objects(token_t *token, const char *label, unsigned version, CK_OBJECT_HANDLE handles[2], CK_ULONG *found,
                       opal_crypt_why_t *why)
{
    char name[OPAL_CRYPTFILE_KEY_LABEL_MAX + 8];
    CK_ULONG bytes = (CK_ULONG) name_of(label, version, name);
    CK_ATTRIBUTE attributes[] = {ATTRIBUTE(CKA_CLASS, secret_class), {CKA_ID, name, bytes}};
    int rc = opal_cryptfile_p11_find(token, attributes, 2, handles, 2, found, why);

    if (OPAL_CRYPT_OK == rc && *found > 1) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "%s: %lu keys", name,
                               (unsigned long) *found);
    }
    return rc;
}

static int key_object(token_t *token, const char *label, unsigned version, CK_OBJECT_HANDLE *handle,
                      opal_crypt_why_t *why)
{
    CK_OBJECT_HANDLE handles[2];
    CK_ULONG found;
    int rc = key_objects(token, label, version, handles, &found, why);

    if (OPAL_CRYPT_OK == rc && 1 != found) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "%s.%u: there is no key", label, version);
    }
    *handle = handles[0];
    return rc;
}

static int parse_object(token_t *token, CK_OBJECT_HANDLE handle, opal_cryptfile_keystore_record_t *record,
                        opal_crypt_why_t *why)
{
    char text[OPAL_CRYPTFILE_RECORD_TEXT_MAX];
    CK_ATTRIBUTE value = {CKA_VALUE, text, sizeof(text)};
    size_t used;
    CK_RV rv = token->call->C_GetAttributeValue(token->session, handle, &value, 1);

    if (CKR_OK != rv) {
        return opal_cryptfile_p11_refuse(why, "C_GetAttributeValue of a record", rv);
    }
    if (OPAL_CRYPT_OK != opal_cryptfile_keystore_record_parse(text, value.ulValueLen, &used, record) ||
        used != value.ulValueLen) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "a record is not as it was written");
    }
    return OPAL_CRYPT_OK;
}

/* If there are several, the one changed last counts: the others were about to be deleted. */
static int p11_read_record(opal_cryptfile_keystore_t *keystore, const char *label, uint16_t version,
                           opal_cryptfile_keystore_record_t *record, opal_crypt_why_t *why)
{
    opal_cryptfile_keystore_record_t one;
    CK_OBJECT_HANDLE handles[RECORDS];
    CK_ULONG found;
    int rc = record_objects(keystore->token, label, version, handles, &found, why);

    for (CK_ULONG i = 0; OPAL_CRYPT_OK == rc && i < found; ++i) {
        rc = parse_object(keystore->token, handles[i], &one, why);
        if (OPAL_CRYPT_OK == rc && (0 == i || one.changes > record->changes)) {
            *record = one;
        }
    }
    if (OPAL_CRYPT_OK == rc && (0 != strcmp(record->label, label) || record->version != version)) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "%s.%u: its record is another's",
                               label, version);
    }
    return rc;
}

static int p11_walk(opal_cryptfile_keystore_t *keystore, const char *label,
                    int (*each)(const opal_cryptfile_keystore_record_t *record, void *arg),
                    void (*bad)(const opal_crypt_why_t *why, void *arg), void *arg, opal_crypt_why_t *why)
{
    opal_crypt_why_t bad_why = {.topic = NULL};
    token_t *token = keystore->token;
    CK_ATTRIBUTE attributes[] = {ATTRIBUTE(CKA_CLASS, data_class), {CKA_APPLICATION, application, sizeof(application) - 1}};
    CK_ULONG max = OBJECTS, found = OBJECTS;
    CK_OBJECT_HANDLE *handles = NULL;
    opal_cryptfile_keystore_record_t record, counts;
    int rc = OPAL_CRYPT_OK;

    /* Ask for more until fewer are found than asked for. */
    while (OPAL_CRYPT_OK == rc && found == max) {
        max *= 2;
        free(handles);
        handles = calloc(max, sizeof(*handles));
        rc = NULL == handles ? OPAL_CRYPT_ERR_MEMORY
                             : opal_cryptfile_p11_find(token, attributes, 2, handles, max, &found, why);
    }
    for (CK_ULONG i = 0; OPAL_CRYPT_OK == rc && i < found; ++i) {
        bool wanted = true;

        rc = parse_object(token, handles[i], &record, NULL == bad ? why : &bad_why);
        if (OPAL_CRYPT_OK == rc) {
            wanted = NULL == label || 0 == strcmp(label, record.label);
            rc = wanted ? p11_read_record(keystore, record.label, record.version, &counts, NULL == bad ? why : &bad_why) : rc;
        }
        if (OPAL_CRYPT_OK == rc) {      /* skips a record that a newer one is about to replace */
            rc = wanted && counts.changes == record.changes ? each(&record, arg) : OPAL_CRYPT_OK;
        } else if (NULL != bad && OPAL_CRYPT_ERR_CONFIG == rc) {
            bad(&bad_why, arg);
            rc = OPAL_CRYPT_OK;
        }
    }
    free(handles);
    return rc;
}

/* ---- making ---- */

static int put_record(token_t *token, const opal_cryptfile_keystore_record_t *record, opal_crypt_why_t *why)
{
    char text[OPAL_CRYPTFILE_RECORD_TEXT_MAX], name[OPAL_CRYPTFILE_KEY_LABEL_MAX + 8];
    CK_ULONG name_bytes = (CK_ULONG) name_of(record->label, record->version, name);
    int bytes = opal_cryptfile_keystore_record_write(record, text, sizeof(text));
    CK_OBJECT_HANDLE handle;

    if (bytes < 0) {
        return bytes;
    }
    CK_ATTRIBUTE attributes[] = {ATTRIBUTE(CKA_CLASS, data_class), ATTRIBUTE(CKA_TOKEN, yes), ATTRIBUTE(CKA_PRIVATE, yes),
                                 {CKA_APPLICATION, application, sizeof(application) - 1},
                                 {CKA_LABEL, name, name_bytes}, {CKA_VALUE, text, (CK_ULONG) bytes}};
    CK_RV rv = token->call->C_CreateObject(token->session, attributes, 6, &handle);
    return CKR_OK == rv ? OPAL_CRYPT_OK : opal_cryptfile_p11_refuse(why, "C_CreateObject", rv);
}

static int generate(token_t *token, const opal_cryptfile_keystore_record_t *record, opal_crypt_why_t *why)
{
    CK_MECHANISM mechanism = {CKM_AES_KEY_GEN, NULL, 0};
    CK_ULONG key_bytes = record->bits / 8;
    char label[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1], name[OPAL_CRYPTFILE_KEY_LABEL_MAX + 8];
    CK_ULONG name_bytes = (CK_ULONG) name_of(record->label, record->version, name);
    CK_OBJECT_HANDLE handle;

    memcpy(label, record->label, sizeof(label));
    CK_ATTRIBUTE attributes[] = {ATTRIBUTE(CKA_CLASS, secret_class), ATTRIBUTE(CKA_KEY_TYPE, aes_type),
                                 ATTRIBUTE(CKA_VALUE_LEN, key_bytes), ATTRIBUTE(CKA_TOKEN, yes),
                                 ATTRIBUTE(CKA_PRIVATE, yes), ATTRIBUTE(CKA_SENSITIVE, yes),
                                 ATTRIBUTE(CKA_EXTRACTABLE, no), ATTRIBUTE(CKA_WRAP, yes), ATTRIBUTE(CKA_UNWRAP, yes),
                                 ATTRIBUTE(CKA_ENCRYPT, no), ATTRIBUTE(CKA_DECRYPT, no),
                                 {CKA_LABEL, label, strlen(label)}, {CKA_ID, name, name_bytes}};
    CK_RV rv = token->call->C_GenerateKey(token->session, &mechanism, attributes,
                                          sizeof(attributes) / sizeof(*attributes), &handle);
    return CKR_OK == rv ? OPAL_CRYPT_OK : opal_cryptfile_p11_refuse(why, "C_GenerateKey", rv);
}

/* Was it generated in this token, for us, and has it never left the token? */
static int check_ours(token_t *token, CK_OBJECT_HANDLE handle, const char *name, opal_crypt_why_t *why)
{
    CK_BBOOL local = CK_FALSE, hidden = CK_FALSE, kept = CK_FALSE;
    CK_KEY_TYPE type = 0;
    CK_ATTRIBUTE attributes[] = {ATTRIBUTE(CKA_LOCAL, local), ATTRIBUTE(CKA_ALWAYS_SENSITIVE, hidden),
                                 ATTRIBUTE(CKA_NEVER_EXTRACTABLE, kept), ATTRIBUTE(CKA_KEY_TYPE, type)};
    CK_RV rv = token->call->C_GetAttributeValue(token->session, handle, attributes, 4);

    if (CKR_OK != rv) {
        return opal_cryptfile_p11_refuse(why, "C_GetAttributeValue of a key", rv);
    }
    return local && hidden && kept && CKK_AES == type
               ? OPAL_CRYPT_OK
               : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11",
                                   "%s: there is a key of this id that was not made by mpicrypt key", name);
}

/* `key` gets 8 bytes longer. */
static CK_RV wrap_once(token_t *token, CK_OBJECT_HANDLE kek, const uint8_t *key, CK_ULONG key_bytes, uint8_t *wrapped)
{
    CK_MECHANISM mechanism = {CKM_AES_KEY_WRAP, NULL, 0};
    CK_ATTRIBUTE attributes[] = {ATTRIBUTE(CKA_CLASS, secret_class), ATTRIBUTE(CKA_KEY_TYPE, generic_type),
                                 ATTRIBUTE(CKA_TOKEN, no), ATTRIBUTE(CKA_EXTRACTABLE, yes),
                                 {CKA_VALUE, (void *) (uintptr_t) key, key_bytes}};
    CK_OBJECT_HANDLE object;
    CK_ULONG bytes = key_bytes + 8;
    CK_RV rv = token->call->C_CreateObject(token->session, attributes, 5, &object);

    if (CKR_OK == rv) {
        rv = token->call->C_WrapKey(token->session, &mechanism, kek, object, wrapped, &bytes);
        token->call->C_DestroyObject(token->session, object);
        rv = CKR_OK == rv && key_bytes + 8 != bytes ? CKR_GENERAL_ERROR : rv;
    }
    return rv;
}

/* The token wraps a known text, from which the fingerprint is made: its key cannot be hashed outside. */
static int token_fingerprint(token_t *token, opal_cryptfile_keystore_record_t *record, opal_crypt_why_t *why)
{
    uint8_t known[OPAL_CRYPTFILE_KNOWN_BYTES + 8];
    CK_OBJECT_HANDLE kek;
    int rc = key_object(token, record->label, record->version, &kek, why);
    CK_RV rv = OPAL_CRYPT_OK != rc ? CKR_OK
                                   : wrap_once(token, kek, (const uint8_t *) OPAL_CRYPTFILE_KNOWN, OPAL_CRYPTFILE_KNOWN_BYTES, known);

    rc = CKR_OK != rv ? opal_cryptfile_p11_refuse(why, "C_WrapKey", rv) : rc;
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_fingerprint_make(known, record->fingerprint) : rc;
    opal_crypt_wipe(known, sizeof(known));
    return rc;
}

/* The key first: a key without a record has never been used, since its maker was killed; the next
 * process that creates this version takes it over. */
static int p11_create(opal_cryptfile_keystore_t *keystore, opal_cryptfile_keystore_record_t *record,
                      opal_crypt_why_t *why)
{
    token_t *token = keystore->token;
    char name[OPAL_CRYPTFILE_KEY_LABEL_MAX + 8];
    CK_OBJECT_HANDLE records[RECORDS], keys[2];
    CK_ULONG found;
    int rc;

    name_of(record->label, record->version, name);
    if (OPAL_CRYPT_OK == record_objects(token, record->label, record->version, records, &found, NULL)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-label-exists", "%s", name);
    }
    rc = key_objects(token, record->label, record->version, keys, &found, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = 1 == found ? check_ours(token, keys[0], name, why) : generate(token, record, why);
    }
    rc = OPAL_CRYPT_OK == rc ? token_fingerprint(token, record, why) : rc;
    return OPAL_CRYPT_OK == rc ? put_record(token, record, why) : rc;
}

/* The new record is written before the old ones are deleted: if the process is killed in between,
 * read_record still finds the one changed last. */
static int p11_update(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                      opal_crypt_why_t *why)
{
    token_t *token = keystore->token;
    CK_OBJECT_HANDLE old[RECORDS];
    CK_ULONG found;
    int rc = record_objects(token, record->label, record->version, old, &found, why);

    if (OPAL_CRYPT_OK == rc) {
        rc = put_record(token, record, why);
    }
    for (CK_ULONG i = 0; OPAL_CRYPT_OK == rc && i < found; ++i) {
        CK_RV rv = token->call->C_DestroyObject(token->session, old[i]);
        rc = CKR_OK == rv ? OPAL_CRYPT_OK : opal_cryptfile_p11_refuse(why, "C_DestroyObject", rv);
    }
    return rc;
}

/* ---- using ---- */

static int p11_wrap(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                    const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES], uint8_t *wrapped, opal_crypt_why_t *why)
{
    CK_OBJECT_HANDLE kek;
    int rc = key_object(keystore->token, record->label, record->version, &kek, why);
    CK_RV rv = OPAL_CRYPT_OK == rc ? wrap_once(keystore->token, kek, data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES, wrapped) : CKR_OK;

    return CKR_OK == rv ? rc : opal_cryptfile_p11_refuse(why, "C_WrapKey", rv);
}

/* The token says that the wrapped key itself is wrong.  Any other answer may be a failure of the
 * token, which must not be reported as a forgery. */
static bool blob_is_wrong(CK_RV rv)
{
    return CKR_WRAPPED_KEY_INVALID == rv || CKR_WRAPPED_KEY_LEN_RANGE == rv || CKR_ENCRYPTED_DATA_INVALID == rv
           || CKR_ENCRYPTED_DATA_LEN_RANGE == rv;
}

static CK_RV unwrap_once(token_t *token, CK_OBJECT_HANDLE kek, const uint8_t wrapped[OPAL_CRYPTFILE_RFC3394_BYTES],
                         uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES])
{
    CK_MECHANISM mechanism = {CKM_AES_KEY_WRAP, NULL, 0};
    CK_ATTRIBUTE attributes[] = {ATTRIBUTE(CKA_CLASS, secret_class), ATTRIBUTE(CKA_KEY_TYPE, generic_type),
                                 ATTRIBUTE(CKA_TOKEN, no), ATTRIBUTE(CKA_SENSITIVE, no), ATTRIBUTE(CKA_EXTRACTABLE, yes)};
    CK_ATTRIBUTE value = {CKA_VALUE, data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES};
    CK_OBJECT_HANDLE object;
    CK_RV rv = token->call->C_UnwrapKey(token->session, &mechanism, kek, (uint8_t *) (uintptr_t) wrapped,
                                        OPAL_CRYPTFILE_RFC3394_BYTES, attributes, 5, &object);

    if (CKR_OK == rv) {
        rv = token->call->C_GetAttributeValue(token->session, object, &value, 1);
        token->call->C_DestroyObject(token->session, object);
        rv = CKR_OK == rv && OPAL_CRYPTFILE_DATA_KEY_BYTES != value.ulValueLen ? CKR_GENERAL_ERROR : rv;
    }
    return rv;
}

/* Can the token currently unwrap what it wraps? */
static bool token_works(token_t *token, CK_OBJECT_HANDLE kek)
{
    uint8_t known[OPAL_CRYPTFILE_DATA_KEY_BYTES], wrapped[OPAL_CRYPTFILE_RFC3394_BYTES], out[OPAL_CRYPTFILE_DATA_KEY_BYTES];
    bool works;

    opal_crypt_random(known, sizeof(known));
    works = CKR_OK == wrap_once(token, kek, known, sizeof(known), wrapped) && CKR_OK == unwrap_once(token, kek, wrapped, out)
            && 0 == memcmp(known, out, sizeof(known));
    opal_crypt_wipe(known, sizeof(known));
    opal_crypt_wipe(out, sizeof(out));
    return works;
}

/* SoftHSM and others return CKR_GENERAL_ERROR both for a wrong wrapped key and for failures of their
 * own.  So the key counts as wrong only if it fails again after another key was unwrapped. */
static int unwrap_one(token_t *token, CK_OBJECT_HANDLE kek, const opal_cryptfile_keystore_record_t *record,
                      const uint8_t wrapped[OPAL_CRYPTFILE_RFC3394_BYTES], uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES],
                      opal_crypt_why_t *why)
{
    CK_RV rv = unwrap_once(token, kek, wrapped, data_key);

    if (CKR_OK != rv && !blob_is_wrong(rv)) {
        if (!token_works(token, kek)) {
            return opal_cryptfile_p11_refuse(why, "C_UnwrapKey", rv);
        }
        rv = unwrap_once(token, kek, wrapped, data_key);
    }
    return CKR_OK == rv ? OPAL_CRYPT_OK
                        : opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "keystore-unwrap", "%s, version %u: 0x%lx",
                                            record->label, record->version, (unsigned long) rv);
}

static int p11_unwrap(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                      const opal_cryptfile_unwrap_t *blobs, size_t count, size_t *which, opal_crypt_why_t *why)
{
    CK_OBJECT_HANDLE kek;
    int rc = key_object(keystore->token, record->label, record->version, &kek, why);

    for (*which = 0; OPAL_CRYPT_OK == rc && *which < count; *which += OPAL_CRYPT_OK == rc) {
        rc = unwrap_one(keystore->token, kek, record, blobs[*which].wrapped->blob + OPAL_CRYPTFILE_BLOB_WRAPPED_AT,
                        blobs[*which].data_key, why);
    }
    return rc;
}

const opal_cryptfile_keystore_ops_t opal_cryptfile_keystore_pkcs11_ops = {
    .name = "pkcs11",
    .open = open_token,
    .close = close_token,
    .walk = p11_walk,
    .read = p11_read_record,
    .create = p11_create,
    .update = p11_update,
    .wrap = p11_wrap,
    .unwrap = p11_unwrap,
};

#else /* built without the PKCS#11 header: opening fails and says so; nothing else is called */

static int open_token(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_options_t *options,
                      opal_crypt_why_t *why)
{
    (void) keystore;
    (void) options;
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "this build has no PKCS#11");
}

static void close_token(opal_cryptfile_keystore_t *keystore)
{
    (void) keystore;
}

const opal_cryptfile_keystore_ops_t opal_cryptfile_keystore_pkcs11_ops = {
    .name = "pkcs11",
    .open = open_token,
    .close = close_token,
};

#endif
