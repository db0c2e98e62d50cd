/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What every keystore backend must do, run by test_keystore (file) and
 * test_keystore_pkcs11 on a keystore that they set up.
 */
#ifndef TESTS_KEYSTORE_CASES_H
#define TESTS_KEYSTORE_CASES_H

#include "opal/mca/common/cryptfile/keystore/keystore.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "tests/unit/unit.h"

#include <sys/stat.h>
#include <unistd.h>

#define NOW 1800000000      /* the keystore's clock in these tests */

static const uint8_t case_uuid[16] = "a file's uuid 16";
static const uint8_t case_key[32] = "a data key of thirty-two bytes!";

/* One blob alone. */
static inline int unwrap(opal_cryptfile_keystore_t *keystore, const char *label, const opal_cryptfile_wrapped_t *wrapped,
                         uint8_t *data_key, opal_cryptfile_grant_t *grant, opal_crypt_why_t *why)
{
    const opal_cryptfile_unwrap_t blob = {wrapped, data_key};
    size_t which;

    return opal_cryptfile_keystore_unwrap_all(keystore, label, case_uuid, &blob, 1, &which, grant, why);
}

/* Lines of the log that hold all of these words. */
static inline unsigned log_lines(const char *directory, const char *a, const char *b, const char *c)
{
    char path[512], line[1024];
    unsigned found = 0;

    snprintf(path, sizeof(path), "%s/log", directory);
    FILE *file = fopen(path, "r");
    UNIT_REQUIRE(NULL != file);
    while (NULL != fgets(line, sizeof(line), file)) {
        found += NULL != strstr(line, a) && NULL != strstr(line, b) && NULL != strstr(line, c);
    }
    fclose(file);
    return found;
}

static inline opal_cryptfile_keystore_t *reopen(opal_cryptfile_keystore_t *keystore,
                                                opal_cryptfile_keystore_options_t *options, time_t now)
{
    opal_crypt_why_t why = {NULL, ""};

    opal_cryptfile_keystore_close(keystore);
    keystore = NULL;
    options->now = now;
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_open(options, &keystore, &why));
    if (NULL == keystore) {
        fprintf(stderr, "%s: %s\n", why.topic, why.detail);
        exit(1);
    }
    return keystore;
}

static inline int count_record(const opal_cryptfile_keystore_record_t *record, void *arg)
{
    (void) record;
    ++*(unsigned *) arg;
    return 0;
}

static inline void case_wrap(opal_cryptfile_keystore_t *keystore, const char *directory, uint8_t backend)
{
    opal_cryptfile_wrapped_t wrapped, other;
    opal_cryptfile_grant_t grant;
    opal_crypt_why_t why;
    uint8_t out[32];
    unsigned opened = 0;

    UNIT_GROUP("wrap and unwrap");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(keystore, "lab", case_uuid, case_key, &wrapped, &why));
    UNIT_CHECK(72 == wrapped.bytes && 1 == wrapped.blob[0] && backend == wrapped.blob[1]);
    opal_cryptfile_keystore_record_t lab, others;
    opal_cryptfile_wrapped_by_t by;
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_find(keystore, "lab", 0, &lab, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_find(keystore, "other", 0, &others, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_wrapped_parse(&wrapped, &by) && NOW == by.created && 1 == by.version);
    UNIT_EQUAL_BYTES(lab.fingerprint, by.fingerprint, sizeof(by.fingerprint));
    UNIT_CHECK(0 != memcmp(lab.fingerprint, others.fingerprint, sizeof(by.fingerprint)));
    UNIT_CHECK(OPAL_CRYPT_OK == unwrap(keystore, "lab", &wrapped, out, &grant, &why));
    UNIT_EQUAL_BYTES(out, case_key, 32);
    UNIT_CHECK(OPAL_CRYPTFILE_GRANT_SEAL == grant && OPAL_CRYPTFILE_GRANT_SEAL == opal_cryptfile_keystore_grant(keystore, "lab"));
    UNIT_CHECK(1 == log_lines(directory, " wrap ", "label=lab version=1 file=612066696c6527732075756964203136", "granted"));
    UNIT_CHECK(1 == log_lines(directory, " unwrap ", "label=lab version=1", "granted"));

    UNIT_GROUP("every byte of a wrapped key flipped, every length, another label");
    for (unsigned at = 0; at < wrapped.bytes; ++at) {
        other = wrapped;
        other.blob[at] ^= 0x20;
        memset(out, 1, sizeof(out));
        if (at >= 4 && at < 28) {       /* fingerprint and created: nothing is decided by them */
            UNIT_CHECK(OPAL_CRYPT_OK == unwrap(keystore, "lab", &other, out, &grant, NULL));
            UNIT_EQUAL_BYTES(out, case_key, 32);
            UNIT_CHECK(!opal_cryptfile_wrapped_alike(&wrapped, &other));
            continue;
        }
        opened += OPAL_CRYPT_OK == unwrap(keystore, "lab", &other, out, &grant, NULL) ||
                  OPAL_CRYPTFILE_GRANT_NONE != grant || 0 != out[0];
    }
    for (unsigned bytes = 0; bytes < 90; ++bytes) {
        other = wrapped;
        other.bytes = (uint16_t) bytes;
        opened += 72 != bytes && OPAL_CRYPT_OK == unwrap(keystore, "lab", &other, out, &grant, NULL);
    }
    UNIT_CHECK(0 == opened);
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == unwrap(keystore, "other", &wrapped, out, &grant, &why));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == unwrap(keystore, "absent", &wrapped, out, &grant, &why));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_wrap(keystore, "absent", case_uuid, case_key, &wrapped, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-no-label") && 0 == wrapped.bytes);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_wrap(keystore, "../lab", case_uuid, case_key, &wrapped, &why));
    UNIT_CHECK(OPAL_CRYPTFILE_GRANT_NONE == opal_cryptfile_keystore_grant(keystore, "absent"));
    UNIT_CHECK(log_lines(directory, "wrap ", "label=absent", "refused: no such key") >= 2);
}

/* Uses label "old", which expires at NOW, and "alien", owned by somebody else. */
static inline opal_cryptfile_keystore_t *case_policy(opal_cryptfile_keystore_t *keystore, const char *directory,
                                                     opal_cryptfile_keystore_options_t *options)
{
    opal_cryptfile_keystore_record_t record = {.label = "old", .not_after = NOW};
    opal_cryptfile_wrapped_t wrapped;
    opal_cryptfile_grant_t grant;
    opal_crypt_why_t why;
    uint8_t out[32];

    UNIT_GROUP("an expired key decrypts and encrypts nothing more");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, false, &record, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(keystore, "old", case_uuid, case_key, &wrapped, &why));
    keystore = reopen(keystore, options, NOW + 1);
    UNIT_CHECK(OPAL_CRYPTFILE_GRANT_OPEN == opal_cryptfile_keystore_grant(keystore, "old"));
    UNIT_CHECK(OPAL_CRYPT_OK == unwrap(keystore, "old", &wrapped, out, &grant, &why));
    UNIT_CHECK(OPAL_CRYPTFILE_GRANT_OPEN == grant && 0 == memcmp(out, case_key, 32));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_wrap(keystore, "old", case_uuid, case_key, &wrapped, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-refused") && NULL != strstr(why.detail, "expired"));
    UNIT_CHECK(1 == log_lines(directory, " wrap ", "label=old", "refused: the key has expired"));
    keystore = reopen(keystore, options, NOW);

    UNIT_GROUP("owners");
    record = (opal_cryptfile_keystore_record_t){.label = "alien", .owner_count = 2, .owners = {geteuid() + 1, geteuid() + 2}};
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, false, &record, &why));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_wrap(keystore, "alien", case_uuid, case_key, &wrapped, &why));
    UNIT_CHECK(NULL != strstr(why.detail, "not an owner") && 1 == log_lines(directory, " wrap ", "label=alien", "refused: this user"));
    record = (opal_cryptfile_keystore_record_t){.label = "ours", .owner_count = 2, .owners = {geteuid() + 1, geteuid()}};
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, false, &record, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(keystore, "ours", case_uuid, case_key, &wrapped, &why));

    UNIT_GROUP("a label is made once, rotated, and revoked");
    record = (opal_cryptfile_keystore_record_t){.label = "turn"};
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_new(keystore, true, &record, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, false, &record, &why) && 1 == record.version);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(keystore, "turn", case_uuid, case_key, &wrapped, &why));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_new(keystore, false, &record, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-label-exists"));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, true, &record, &why) && 2 == record.version);
    opal_cryptfile_wrapped_t second;
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(keystore, "turn", case_uuid, case_key, &second, &why));
    UNIT_CHECK(1 == wrapped.blob[2] && 2 == second.blob[2]);
    UNIT_CHECK(OPAL_CRYPT_OK == unwrap(keystore, "turn", &wrapped, out, &grant, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_revoke(keystore, "turn", 1, &why));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == unwrap(keystore, "turn", &wrapped, out, &grant, &why));
    UNIT_CHECK(NULL != strstr(why.detail, "revoked") && 1 == log_lines(directory, " unwrap ", "label=turn version=1", "refused: the key is revoked"));
    UNIT_CHECK(OPAL_CRYPT_OK == unwrap(keystore, "turn", &second, out, &grant, &why));
    UNIT_EQUAL_BYTES(out, case_key, 32);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_revoke(keystore, "turn", 0, &why));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == unwrap(keystore, "turn", &second, out, &grant, &why));
    UNIT_CHECK(OPAL_CRYPTFILE_GRANT_NONE == opal_cryptfile_keystore_grant(keystore, "turn"));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_new(keystore, false, &record, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, true, &record, &why) && 3 == record.version);
    return keystore;
}

/* `recovery` is a directory with rsa.pem, rsa.pub, ec.pem, ec.pub, weak.pub. */
static inline void case_escrow(opal_cryptfile_keystore_t *keystore, const char *recovery)
{
    opal_cryptfile_keystore_record_t record = {.label = "kept"};
    opal_cryptfile_wrapped_t wrapped, other;
    opal_crypt_why_t why;
    char public_pem[512], private_pem[512];
    uint8_t out[32];

    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, false, &record, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(keystore, "kept", case_uuid, case_key, &wrapped, &why));
    snprintf(private_pem, sizeof(private_pem), "%s/rsa.pem", recovery);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_wrapped_recover(&wrapped, private_pem, true, out, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-no-escrow"));
    snprintf(public_pem, sizeof(public_pem), "%s/weak.pub", recovery);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_escrow(keystore, "kept", public_pem, &why));
    static const char *const kinds[] = {"rsa", "ec"};
    for (int i = 0; i < 2; ++i) {
        UNIT_GROUP("escrow to an %s key", kinds[i]);
        snprintf(public_pem, sizeof(public_pem), "%s/%s.pub", recovery, kinds[i]);
        snprintf(private_pem, sizeof(private_pem), "%s/%s.pem", recovery, kinds[i]);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_escrow(keystore, "kept", public_pem, &why));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(keystore, "kept", case_uuid, case_key, &wrapped, &why));
        UNIT_CHECK(wrapped.bytes > 72);
        memset(out, 0, sizeof(out));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_wrapped_recover(&wrapped, private_pem, true, out, &why));
        UNIT_EQUAL_BYTES(out, case_key, 32);
        unsigned opened = 0;
        for (unsigned at = 72; at < wrapped.bytes; ++at) {
            other = wrapped;
            other.blob[at] ^= 1;
            opened += OPAL_CRYPT_OK == opal_cryptfile_wrapped_recover(&other, private_pem, true, out, NULL);
        }
        UNIT_CHECK(0 == opened);
        snprintf(private_pem, sizeof(private_pem), "%s/%s.pem", recovery, kinds[!i]);
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_wrapped_recover(&wrapped, private_pem, true, out, &why));
    }
}

static inline int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

#include <stdarg.h>

static inline int shell(const char *format, ...)
{
    char command[2048];
    va_list list;

    va_start(list, format);
    vsnprintf(command, sizeof(command), format, list);
    va_end(list);
    return system(command);
}

/* A directory of our own, 0700. */
static inline char *scratch(void)
{
    static char path[64];

    strcpy(path, "/tmp/ompi-crypt-test-XXXXXX");
    UNIT_REQUIRE(NULL != mkdtemp(path));
    return path;
}

static inline void make_recovery_keys(const char *directory)
{
    UNIT_REQUIRE(0 == shell("cd %s && umask 077 && openssl genpkey -quiet -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.pem && "
                            "openssl pkey -in rsa.pem -pubout -out rsa.pub && "
                            "openssl genpkey -quiet -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out weak.pem && "
                            "openssl pkey -in weak.pem -pubout -out weak.pub && "
                            "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out ec.pem && "
                            "openssl pkey -in ec.pem -pubout -out ec.pub", directory));
}

#endif
