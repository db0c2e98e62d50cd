/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The keystore with its backend `pkcs11`, on a token of SoftHSM2.
 */
#include "keystore_cases.h"

static const char *module_path(void)
{
    static const char *const places[] = {"/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/softhsm/libsofthsm2.so",
                                         "/usr/local/lib/softhsm/libsofthsm2.so"};

    for (unsigned i = 0; i < sizeof(places) / sizeof(*places); ++i) {
        if (0 == access(places[i], R_OK)) {
            return places[i];
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

static void case_refused(opal_common_crypt_keystore_options_t options, const char *directory)
{
    opal_common_crypt_keystore_t *keystore;
    opal_common_crypt_why_t why;
    char wrong[160];

    UNIT_GROUP("a wrong PIN, token, module; a PIN that others can read");
    snprintf(wrong, sizeof(wrong), "%s/wrong", directory);
    const char *pin = options.pkcs11_pin_file, *token = options.pkcs11_token;
    options.pkcs11_pin_file = wrong;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_common_crypt_keystore_open(&options, &keystore, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-pkcs11") && NULL == strstr(why.detail, "0815"));
    options.pkcs11_pin_file = pin;
    options.pkcs11_token = "a toke";
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_common_crypt_keystore_open(&options, &keystore, &why));
    options.pkcs11_token = token;
    options.pkcs11_module = "/nowhere/module.so";
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_common_crypt_keystore_open(&options, &keystore, &why));
    options.pkcs11_module = module_path();
    UNIT_CHECK(0 == chmod(pin, 0644));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_common_crypt_keystore_open(&options, &keystore, &why) && 0 == strcmp(why.topic, "secret-mode"));
    UNIT_CHECK(0 == chmod(pin, 0600));
}

int main(void)
{
    char *directory = scratch(), pin[160];
    opal_common_crypt_keystore_t *keystore = NULL;
    opal_common_crypt_keystore_record_t record = {.label = "lab"}, other = {.label = "other"};
    opal_common_crypt_wrapped_t wrapped = {0};
    opal_common_crypt_grant_t grant;
    opal_common_crypt_why_t why;
    unsigned count = 0;
    uint8_t out[32];

    snprintf(pin, sizeof(pin), "%s/pin", directory);
    opal_common_crypt_keystore_options_t options = {.backend = OPAL_CRYPT_KEYSTORE_PKCS11, .directory = directory, .secret_on_netfs = true,
                                                    .pkcs11_module = module_path(), .pkcs11_token = "a token", .pkcs11_pin_file = pin, .now = NOW};
    if (NULL == options.pkcs11_module || 0 != shell("command -v softhsm2-util > /dev/null")) {
        shell("rm -rf %s", directory);
        return unit_skip("SoftHSM2 is not installed (Debian: softhsm2)");
    }
    UNIT_REQUIRE(make_token(directory));
    if (OPAL_CRYPT_OK != opal_common_crypt_keystore_open(&options, &keystore, &why) && NULL != strstr(why.detail, "this build has no PKCS#11")) {
        shell("rm -rf %s", directory);
        return unit_skip("built without PKCS#11 (Debian: libp11-kit-dev)");
    }
    make_recovery_keys(directory);
    keystore = reopen(keystore, &options, NOW);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_common_crypt_keystore_new(keystore, false, &record, &why));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_common_crypt_keystore_new(keystore, false, &other, &why));
    case_wrap(keystore, directory, 2);
    keystore = case_policy(keystore, directory, &options);
    case_escrow(keystore, directory);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_common_crypt_keystore_list(keystore, count_record, NULL, &count, &why) && 9 == count);

    UNIT_GROUP("what is wrapped in one session unwraps in the next; the token gives no key away");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_common_crypt_keystore_wrap(keystore, "lab", case_uuid, case_key, &wrapped, &why));
    keystore = reopen(keystore, &options, NOW);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_common_crypt_keystore_unwrap(keystore, "lab", case_uuid, &wrapped, out, &grant, &why));
    UNIT_EQUAL_BYTES(out, case_key, 32);
    UNIT_CHECK(0 != shell("command -v pkcs11-tool > /dev/null") ||
               0 == shell("test 9 = \"$(pkcs11-tool --module %s --token-label 'a token' --login --pin 4711 --list-objects --type secrkey 2>/dev/null "
                          "| grep -c 'Access: *sensitive, always sensitive, never extractable')\"", options.pkcs11_module));
    UNIT_CHECK(0 == shell("! grep -q 4711 %s/log", directory));
    opal_common_crypt_keystore_close(keystore);

    UNIT_GROUP("a blob of the other backend");
    options.backend = OPAL_CRYPT_KEYSTORE_FILE;
    keystore = reopen(NULL, &options, NOW);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_common_crypt_keystore_unwrap(keystore, "lab", case_uuid, &wrapped, out, &grant, &why));
    UNIT_CHECK(NULL != strstr(why.detail, "other keystore backend"));
    opal_common_crypt_keystore_close(keystore);
    options.backend = OPAL_CRYPT_KEYSTORE_PKCS11;
    case_refused(options, directory);
    shell("rm -rf %s", directory);
    opal_common_crypt_secmem_finalize();
    return unit_done();
}
