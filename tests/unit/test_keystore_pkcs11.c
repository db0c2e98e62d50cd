/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The keystore with its backend `pkcs11`, on a token of SoftHSM2.
 */
#include "keystore_cases.h"

#include "opal/mca/common/cryptfile/keystore/exchange.h"
#include "opal/mca/common/cryptfile/keystore/keystore_object.h"

#if __has_include(<p11-kit-1/p11-kit/pkcs11.h>)
#define OMPI_CRYPT_HAVE_PKCS11      /* it has the header; whether the core was built with it is seen at run time */
#include "opal/mca/common/cryptfile/keystore/p11.h"

static const char *module_path(void)
{
    static const char *const libraries[] = {"/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/softhsm/libsofthsm2.so",
                                         "/usr/local/lib/softhsm/libsofthsm2.so"};

    for (unsigned i = 0; i < sizeof(libraries) / sizeof(*libraries); ++i) {
        if (0 == access(libraries[i], R_OK)) {
            return libraries[i];
        }
    }
    return NULL;
}

/* A token of ours in `directory`. */
static bool make_token(const char *directory)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/softhsm2.conf", directory);
    FILE *file = fopen(path, "w");
    UNIT_REQUIRE(NULL != file);
    fprintf(file, "directories.tokendir = %s/tokens\nobjectstore.backend = file\nlog.level = ERROR\n", directory);
    fclose(file);
    setenv("SOFTHSM2_CONF", path, 1);
    return 0 == shell("umask 077; mkdir %s/tokens && echo 4711 > %s/pin && echo 0815 > %s/wrong && "
                      "softhsm2-util --init-token --free --label 'a token' --pin 4711 --so-pin 123456 > /dev/null",
                      directory, directory, directory);
}

static void case_refused(opal_cryptfile_keystore_options_t options, const char *directory)
{
    opal_cryptfile_keystore_t *keystore;
    opal_crypt_why_t why;
    char wrong[160];

    UNIT_GROUP("a wrong PIN, token, module; a PIN that others can read");
    snprintf(wrong, sizeof(wrong), "%s/wrong", directory);
    const char *pin = options.pkcs11_pin_file, *token = options.pkcs11_token;
    options.pkcs11_pin_file = wrong;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_open(&options, &keystore, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-pkcs11") && NULL == strstr(why.detail, "0815"));
    options.pkcs11_pin_file = pin;
    options.pkcs11_token = "a toke";
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_open(&options, &keystore, &why));
    options.pkcs11_token = token;
    options.pkcs11_module = "/nowhere/module.so";
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_open(&options, &keystore, &why));
    options.pkcs11_module = module_path();
    UNIT_CHECK(0 == chmod(pin, 0644));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_open(&options, &keystore, &why) && 0 == strcmp(why.topic, "secret-mode"));
    UNIT_CHECK(0 == chmod(pin, 0600));
}

/* ---- a token with faults: calls that fail, or do nothing as if the process had died before ---- */

static CK_FUNCTION_LIST faulty;
static CK_FUNCTION_LIST *real;
static int unwraps_fail, every_other;

static CK_RV flaky_unwrap(CK_SESSION_HANDLE session, CK_MECHANISM *mechanism, CK_OBJECT_HANDLE key, CK_BYTE *wrapped,
                          CK_ULONG bytes, CK_ATTRIBUTE *attributes, CK_ULONG count, CK_OBJECT_HANDLE *made)
{
    if (unwraps_fail > 0 || (every_other && 1 == every_other++ % 2)) {
        unwraps_fail -= unwraps_fail > 0;
        return CKR_GENERAL_ERROR;
    }
    return real->C_UnwrapKey(session, mechanism, key, wrapped, bytes, attributes, count, made);
}

static CK_RV destroy_nothing(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE object)
{
    (void) session;
    (void) object;
    return CKR_OK;
}

static CK_RV create_nothing(CK_SESSION_HANDLE session, CK_ATTRIBUTE *attributes, CK_ULONG count, CK_OBJECT_HANDLE *made)
{
    (void) session;
    (void) attributes;
    (void) count;
    (void) made;
    return CKR_DEVICE_REMOVED;
}

static CK_RV read_nothing(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE object, CK_ATTRIBUTE *attributes, CK_ULONG count)
{
    (void) session;
    (void) object;
    (void) attributes;
    (void) count;
    return CKR_DEVICE_REMOVED;
}

static uint8_t known_key[32] = "a key that is known everywhere!!";

/* With its value, where the token would have drawn one. */
static CK_RV generate_known(CK_SESSION_HANDLE session, CK_MECHANISM *mechanism, CK_ATTRIBUTE *attributes, CK_ULONG count,
                            CK_OBJECT_HANDLE *made)
{
    CK_ATTRIBUTE all[20];

    (void) mechanism;
    UNIT_REQUIRE(count <= 20);
    for (CK_ULONG i = 0; i < count; ++i) {
        all[i] = CKA_VALUE_LEN == attributes[i].type ? (CK_ATTRIBUTE){CKA_VALUE, known_key, sizeof(known_key)} : attributes[i];
    }
    return real->C_CreateObject(session, all, count, made);
}

static void with_faults(opal_cryptfile_keystore_t *keystore)
{
    opal_cryptfile_p11_t *token = keystore->token;

    real = token->call;
    faulty = *real;
    token->call = &faulty;
}

static void case_flaky(opal_cryptfile_keystore_t *keystore)
{
    opal_cryptfile_wrapped_t wrapped, other;
    opal_cryptfile_grant_t grant;
    opal_crypt_why_t why;
    uint8_t out[32];

    UNIT_GROUP("a token that fails is no forgery, and a forgery is one while the token fails now and then");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(keystore, "lab", case_uuid, case_key, &wrapped, &why));
    with_faults(keystore);
    faulty.C_UnwrapKey = flaky_unwrap;
    unwraps_fail = 1000;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == unwrap(keystore, "lab", &wrapped, out, &grant, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-pkcs11"));
    unwraps_fail = 1;
    UNIT_CHECK(OPAL_CRYPT_OK == unwrap(keystore, "lab", &wrapped, out, &grant, &why));
    UNIT_EQUAL_BYTES(out, case_key, 32);
    unwraps_fail = 0;
    other = wrapped;
    other.blob[OPAL_CRYPTFILE_BLOB_WRAPPED_AT + 14] ^= 1;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == unwrap(keystore, "lab", &other, out, &grant, &why));
    every_other = 1;            /* the wrong blob fails, the known key goes through, the wrong blob fails */
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == unwrap(keystore, "lab", &other, out, &grant, &why));
    every_other = 0;
    ((opal_cryptfile_p11_t *) keystore->token)->call = real;
}

static void case_unreadable(opal_cryptfile_keystore_t *keystore)
{
    opal_cryptfile_keystore_record_t found, before;
    opal_crypt_why_t why;

    UNIT_GROUP("a record that cannot be read is not replaced by what the stack had");
    memset(&found, 0x5a, sizeof(found));
    before = found;
    with_faults(keystore);
    faulty.C_GetAttributeValue = read_nothing;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == keystore->ops->read(keystore, "lab", 1, &found, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-pkcs11"));
    UNIT_CHECK(0 == memcmp(&before, &found, sizeof(found)));
    ((opal_cryptfile_p11_t *) keystore->token)->call = real;
}

static void case_fingerprint(opal_cryptfile_keystore_t *keystore)
{
    opal_cryptfile_keystore_record_t record = {.label = "known"};
    uint8_t expected[OPAL_CRYPTFILE_FINGERPRINT_BYTES];
    opal_crypt_why_t why;

    UNIT_GROUP("a key has the fingerprint that it would have in a file");
    with_faults(keystore);
    faulty.C_GenerateKey = generate_known;
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_NEW, &record, &why));
    ((opal_cryptfile_p11_t *) keystore->token)->call = real;
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_fingerprint_of_key(known_key, expected));
    UNIT_EQUAL_BYTES(expected, record.fingerprint, sizeof(expected));
}

static void case_killed(opal_cryptfile_keystore_t *keystore)
{
    opal_cryptfile_keystore_record_t record = {.label = "killed"}, found;
    opal_cryptfile_wrapped_t wrapped;
    opal_cryptfile_grant_t grant;
    opal_crypt_why_t why;
    unsigned count = 0;
    uint8_t out[32];

    UNIT_GROUP("killed between a key and its record: the next one takes the key over");
    with_faults(keystore);
    faulty.C_CreateObject = create_nothing;
    faulty.C_DestroyObject = destroy_nothing;
    UNIT_CHECK(OPAL_CRYPT_OK != opal_cryptfile_keystore_new(keystore, false, &record, &why));
    ((opal_cryptfile_p11_t *) keystore->token)->call = real;
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, false, &record, &why) && 1 == record.version);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(keystore, "killed", case_uuid, case_key, &wrapped, &why));

    UNIT_GROUP("killed between the new record and the end of the old one: the new one counts");
    with_faults(keystore);
    faulty.C_DestroyObject = destroy_nothing;
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_revoke(keystore, "killed", 1, &why));
    ((opal_cryptfile_p11_t *) keystore->token)->call = real;
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_find(keystore, "killed", 1, &found, &why) && found.revoked);
    UNIT_CHECK(OPAL_CRYPTFILE_GRANT_NONE == opal_cryptfile_keystore_grant(keystore, "killed"));
    UNIT_CHECK(OPAL_CRYPT_OK != unwrap(keystore, "killed", &wrapped, out, &grant, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-refused") && NULL != strstr(why.detail, "revoked"));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_list(keystore, count_record, NULL, &count, &why) && 10 == count);
}

/* A program that uses the token itself, logged in before us or after. */
static void case_application(opal_cryptfile_keystore_options_t *options)
{
    opal_cryptfile_keystore_t *keystore = reopen(NULL, options, NOW);
    CK_FUNCTION_LIST *call = ((opal_cryptfile_p11_t *) keystore->token)->call;
    unsigned char pin[] = "4711";
    CK_SESSION_HANDLE session;
    CK_SESSION_INFO info;

    opal_cryptfile_p11_t *token = keystore->token;
    UNIT_GROUP("the application's own session outlives ours");
    UNIT_CHECK(CKR_OK == call->C_GetSessionInfo(token->session, &info));
    UNIT_CHECK(CKR_OK == call->C_OpenSession(info.slotID, CKF_SERIAL_SESSION, NULL, NULL, &session));
    opal_cryptfile_keystore_close(keystore);
    UNIT_CHECK(CKR_OK == call->C_GetSessionInfo(session, &info) && CKS_RO_USER_FUNCTIONS == info.state);
    keystore = reopen(NULL, options, NOW);      /* it is logged in already */
    opal_cryptfile_keystore_close(keystore);
    UNIT_CHECK(CKR_OK == call->C_GetSessionInfo(session, &info) && CKS_RO_USER_FUNCTIONS == info.state);
    UNIT_CHECK(CKR_OK == call->C_CloseSession(session));
    UNIT_CHECK(CKR_OK == call->C_OpenSession(info.slotID, CKF_SERIAL_SESSION, NULL, NULL, &session));
    UNIT_CHECK(CKR_OK == call->C_GetSessionInfo(session, &info) && CKS_RO_PUBLIC_SESSION == info.state);
    UNIT_CHECK(CKR_OK == call->C_Login(session, CKU_USER, pin, 4) && CKR_OK == call->C_CloseSession(session));
}

int main(void)
{
    char *directory = scratch(), pin[160];
    opal_cryptfile_keystore_t *keystore = NULL;
    opal_cryptfile_keystore_record_t record = {.label = "lab"}, other = {.label = "other"};
    opal_cryptfile_wrapped_t wrapped = {0};
    opal_cryptfile_grant_t grant;
    opal_crypt_why_t why;
    unsigned count = 0;
    uint8_t out[32];

    snprintf(pin, sizeof(pin), "%s/pin", directory);
    opal_cryptfile_keystore_options_t options = {.backend = OPAL_CRYPTFILE_KEYSTORE_PKCS11, .directory = directory, .secret_on_netfs = true,
                                                    .pkcs11_module = module_path(), .pkcs11_token = "a token", .pkcs11_pin_file = pin, .now = NOW};
    if (NULL == options.pkcs11_module || 0 != shell("command -v softhsm2-util > /dev/null")) {
        shell("rm -rf %s", directory);
        return unit_skip("SoftHSM2 is not installed (Debian: softhsm2)");
    }
    UNIT_REQUIRE(make_token(directory));
    if (OPAL_CRYPT_OK != opal_cryptfile_keystore_open(&options, &keystore, &why) && NULL != strstr(why.detail, "this build has no PKCS#11")) {
        shell("rm -rf %s", directory);
        return unit_skip("built without PKCS#11 (Debian: libp11-kit-dev)");
    }
    make_recovery_keys(directory);
    keystore = reopen(keystore, &options, NOW);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, false, &record, &why));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, false, &other, &why));
    case_wrap(keystore, directory, 2);
    keystore = case_policy(keystore, directory, &options);
    case_escrow(keystore, directory);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_list(keystore, count_record, NULL, &count, &why) && 9 == count);

    UNIT_GROUP("what is wrapped in one session unwraps in the next; the token gives no key away");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(keystore, "lab", case_uuid, case_key, &wrapped, &why));
    keystore = reopen(keystore, &options, NOW);
    UNIT_CHECK(OPAL_CRYPT_OK == unwrap(keystore, "lab", &wrapped, out, &grant, &why));
    UNIT_EQUAL_BYTES(out, case_key, 32);
    UNIT_CHECK(0 != shell("command -v pkcs11-tool > /dev/null") ||
               0 == shell("test 9 = \"$(pkcs11-tool --module %s --token-label 'a token' --login --pin 4711 --list-objects --type secrkey 2>/dev/null "
                          "| grep -c 'Access: *sensitive, always sensitive, never extractable')\"", options.pkcs11_module));
    UNIT_CHECK(0 == shell("! grep -q 4711 %s/log", directory));
    UNIT_GROUP("keys neither leave the token nor enter it");
    char *text = NULL;
    size_t text_bytes;
    unsigned removed;
    opal_cryptfile_import_to_t to = {.dry_run = false};
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_export(keystore, "lab", &text, &text_bytes, &why) && NULL == text);
    UNIT_CHECK(0 == strcmp("keystore-in-token", why.topic));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_import(keystore, "", 0, &to, &why));
    UNIT_CHECK(0 == strcmp("keystore-in-token", why.topic));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_delete(keystore, "lab", &removed, &why) && 0 == removed);
    UNIT_CHECK(0 == strcmp("keystore-in-token", why.topic));
    case_flaky(keystore);
    case_unreadable(keystore);
    case_killed(keystore);
    case_fingerprint(keystore);
    opal_cryptfile_keystore_close(keystore);
    case_application(&options);

    UNIT_GROUP("a blob of the other backend");
    options.backend = OPAL_CRYPTFILE_KEYSTORE_FILE;
    keystore = reopen(NULL, &options, NOW);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == unwrap(keystore, "lab", &wrapped, out, &grant, &why));
    UNIT_CHECK(NULL != strstr(why.detail, "other keystore backend"));
    opal_cryptfile_keystore_close(keystore);
    options.backend = OPAL_CRYPTFILE_KEYSTORE_PKCS11;
    case_refused(options, directory);
    shell("rm -rf %s", directory);
    opal_crypt_secmem_finalize();
    return unit_done();
}

#else

int main(void)
{
    return unit_skip("built without PKCS#11 (Debian: libp11-kit-dev)");
}

#endif
