/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The backend `pkcs11`: keys in a token that does not give them away.
 *
 *     secret key  label NAME, id NAME.VERSION, AES, sensitive, not extractable
 *     data object label NAME.VERSION, application ompi-crypt, private: the record
 *
 * A data key enters and leaves the token as a session object, by
 * CKM_AES_KEY_WRAP (RFC 3394).  The PIN is read from a file and goes nowhere
 * but into C_Login.
 */
#include "crypt_keystore_object.h"
#include "crypt_secmem.h"

#ifdef OMPI_CRYPT_HAVE_PKCS11

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <p11-kit-1/p11-kit/pkcs11.h>

enum { SLOTS = 64, OBJECTS = 64 };

typedef struct token {
    void *library;
    CK_FUNCTION_LIST *call;
    CK_SESSION_HANDLE session;
    bool initialized, in_session;
} token_t;

static CK_OBJECT_CLASS secret_class = CKO_SECRET_KEY, data_class = CKO_DATA;
static CK_KEY_TYPE aes_type = CKK_AES, generic_type = CKK_GENERIC_SECRET;
static CK_BBOOL yes = CK_TRUE, no = CK_FALSE;
static char application[] = "ompi-crypt";

#define ATTRIBUTE(type, value) {type, &(value), sizeof(value)}

static int refuse(opal_common_crypt_why_t *why, const char *what, CK_RV rv)
{
    return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "%.512s: 0x%lx", what, (unsigned long) rv);
}

/* ---- open and close ---- */

static void close_token(opal_common_crypt_keystore_t *keystore)
{
    token_t *token = keystore->token;

    if (NULL == token) {
        return;
    }
    if (token->in_session) {
        token->call->C_Logout(token->session);
        token->call->C_CloseSession(token->session);
    }
    if (token->initialized) {
        token->call->C_Finalize(NULL);
    }
    if (NULL != token->library) {
        dlclose(token->library);
    }
    free(token);
    keystore->token = NULL;
}

static int load_library(token_t *token, const char *path, opal_common_crypt_why_t *why)
{
    CK_C_INITIALIZE_ARGS threads = {.flags = CKF_OS_LOCKING_OK};

    token->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (NULL == token->library) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "%.512s", dlerror());
    }
    CK_C_GetFunctionList get = NULL;
    *(void **) &get = dlsym(token->library, "C_GetFunctionList");
    if (NULL == get || CKR_OK != get(&token->call)) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "%.512s: not a PKCS#11 module", path);
    }
    CK_RV rv = token->call->C_Initialize(&threads);
    if (CKR_OK != rv && CKR_CRYPTOKI_ALREADY_INITIALIZED != rv) {
        return refuse(why, "C_Initialize", rv);
    }
    token->initialized = CKR_OK == rv;
    return OPAL_CRYPT_OK;
}

/* Token labels are padded with spaces to 32. */
static bool label_is(const CK_TOKEN_INFO *info, const char *label)
{
    size_t bytes = strlen(label);

    if (bytes > sizeof(info->label) || 0 != memcmp(info->label, label, bytes)) {
        return false;
    }
    for (; bytes < sizeof(info->label); ++bytes) {
        if (' ' != info->label[bytes]) {
            return false;
        }
    }
    return true;
}

static int find_slot(token_t *token, const char *label, CK_SLOT_ID *slot, opal_common_crypt_why_t *why)
{
    CK_SLOT_ID slots[SLOTS];
    CK_ULONG count = SLOTS;
    CK_TOKEN_INFO info;
    CK_RV rv = token->call->C_GetSlotList(CK_TRUE, slots, &count);

    if (CKR_OK != rv) {
        return refuse(why, "C_GetSlotList", rv);
    }
    for (CK_ULONG i = 0; i < count; ++i) {
        if (CKR_OK == token->call->C_GetTokenInfo(slots[i], &info) && label_is(&info, label)) {
            *slot = slots[i];
            return OPAL_CRYPT_OK;
        }
    }
    return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "there is no token %.64s", label);
}

static int login(token_t *token, CK_SLOT_ID slot, const opal_common_crypt_keystore_options_t *options,
                 opal_common_crypt_why_t *why)
{
    opal_common_crypt_secret_file_t pin;
    int rc = opal_common_crypt_secret_file_read(options->pkcs11_pin_file, "PIN", 1, 256, options->secret_on_netfs, &pin, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    CK_RV rv = token->call->C_OpenSession(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &token->session);
    token->in_session = CKR_OK == rv;
    if (token->in_session) {
        size_t bytes = pin.count - ('\n' == pin.bytes[pin.count - 1]);
        rv = token->call->C_Login(token->session, CKU_USER, pin.bytes, bytes);
    }
    opal_common_crypt_secmem_free(pin.bytes);
    return CKR_OK == rv || CKR_USER_ALREADY_LOGGED_IN == rv ? OPAL_CRYPT_OK : refuse(why, "C_Login", rv);
}

static int open_token(opal_common_crypt_keystore_t *keystore, const opal_common_crypt_keystore_options_t *options,
                      opal_common_crypt_why_t *why)
{
    CK_SLOT_ID slot;

    if (NULL == options->pkcs11_module || NULL == options->pkcs11_token || NULL == options->pkcs11_pin_file) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11",
                                        "module, token and PIN file must all be named");
    }
    token_t *token = calloc(1, sizeof(*token));
    if (NULL == token) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    keystore->token = token;
    int rc = load_library(token, options->pkcs11_module, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = find_slot(token, options->pkcs11_token, &slot, why);
    }
    return OPAL_CRYPT_OK == rc ? login(token, slot, options, why) : rc;
}

/* ---- objects ---- */

static int find_objects(token_t *token, CK_ATTRIBUTE *attributes, CK_ULONG count,
                        CK_OBJECT_HANDLE *handles, CK_ULONG max, CK_ULONG *found, opal_common_crypt_why_t *why)
{
    CK_RV rv = token->call->C_FindObjectsInit(token->session, attributes, count);

    *found = 0;
    while (CKR_OK == rv && *found < max) {
        CK_ULONG more = 0;
        rv = token->call->C_FindObjects(token->session, handles + *found, max - *found, &more);
        if (0 == more) {
            break;
        }
        *found += more;
    }
    token->call->C_FindObjectsFinal(token->session);
    return CKR_OK == rv ? OPAL_CRYPT_OK : refuse(why, "C_FindObjects", rv);
}

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
    int rc = find_objects(token, attributes, 3, handles, 2, &found, why);

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
    int rc = find_objects(token, attributes, 2, handles, 2, &found, why);

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
        return refuse(why, "C_GetAttributeValue of a record", rv);
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
                int (*each)(const opal_common_crypt_keystore_record_t *record, void *arg), void *arg,
                opal_common_crypt_why_t *why)
{
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
        rc = NULL == handles ? OPAL_CRYPT_ERR_MEMORY : find_objects(token, attributes, 2, handles, max, &found, why);
    }
    for (CK_ULONG i = 0; OPAL_CRYPT_OK == rc && i < found; ++i) {
        rc = parse_object(token, handles[i], &record, why);
        if (OPAL_CRYPT_OK == rc && (NULL == label || 0 == strcmp(label, record.label))) {
            rc = each(&record, arg);
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
    return CKR_OK == rv ? OPAL_CRYPT_OK : refuse(why, "C_CreateObject", rv);
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
        return refuse(why, "C_GenerateKey", rv);
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
        rc = CKR_OK == rv ? OPAL_CRYPT_OK : refuse(why, "C_DestroyObject", rv);
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
        return refuse(why, "C_CreateObject of a data key", rv);
    }
    rv = token->call->C_WrapKey(token->session, &mechanism, kek, object, wrapped, &bytes);
    token->call->C_DestroyObject(token->session, object);
    return CKR_OK == rv && OPAL_CRYPT_RFC3394_BYTES == bytes ? OPAL_CRYPT_OK : refuse(why, "C_WrapKey", rv);
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
    if (CKR_OK != rv) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "keystore-unwrap", "%s, version %u: 0x%lx", record->label,
                                        record->version, (unsigned long) rv);
    }
    rv = token->call->C_GetAttributeValue(token->session, object, &value, 1);
    token->call->C_DestroyObject(token->session, object);
    return CKR_OK == rv && OPAL_CRYPT_DATA_KEY_BYTES == value.ulValueLen ? OPAL_CRYPT_OK
                                                                         : refuse(why, "C_GetAttributeValue", rv);
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
