/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The keystore of encrypted files, opened as a job here would open it.  What nodes with the same keys report is the same
 * text: `doctor` compares them.
 */
#include <string.h>

#include "check.h"

#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/cryptfile/keystore/keystore.h"

#define FROM_ANOTHER_NODE "On a node that has the keys: mpicrypt key push LABEL --hosts LIST. For a new one: mpicrypt key new LABEL."

static struct {
    int backend;
    const char *directory, *group, *log_file, *machine_key_file, *label;
} set;

static const opal_cryptproc_parameter_t keystore_parameters[] = {
    {"crypt_keystore", &set.backend},         {"crypt_keystore_dir", &set.directory},
    {"crypt_keystore_group", &set.group},     {"crypt_keystore_log", &set.log_file},
    {"crypt_keystore_machine_key", &set.machine_key_file}, {"fs_crypt_key_label", &set.label},
};

static const char *set_or_null(const char *text)
{
    return NULL == text || '\0' == *text ? NULL : text;
}

/* The keys of a keystore, in any order. */
typedef struct keystore_sum {
    unsigned versions;
    uint8_t together[OPAL_CRYPT_HASH_BYTES];
    opal_crypt_why_t bad;               /* of the first that cannot be read; topic NULL: all can */
} keystore_sum_t;

static int add_version(const opal_cryptfile_keystore_record_t *record, void *arg)
{
    const uint8_t state[] = {(uint8_t) (record->version >> 8), (uint8_t) record->version, record->revoked};
    const opal_crypt_input_t pieces[] = {{state, sizeof(state)}, {record->fingerprint, sizeof(record->fingerprint)},
                                         {record->label, strlen(record->label)}};
    keystore_sum_t *sum = arg;
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    int rc = opal_crypt_sha256(pieces, 3, hash);

    for (size_t i = 0; OPAL_CRYPT_OK == rc && i < sizeof(hash); ++i) {
        sum->together[i] ^= hash[i];
    }
    ++sum->versions;
    return rc;
}

static void note_unreadable(const opal_crypt_why_t *why, void *arg)
{
    keystore_sum_t *sum = arg;

    if (NULL == sum->bad.topic) {
        sum->bad = *why;
    }
}

/* Texts about secret files are the core's; the others name what is wrong in their detail. */
static void keystore_fails(mpicrypt_report_t *report, const opal_crypt_why_t *why)
{
    if (0 == strncmp("secret-", why->topic, 7)) {
        mpicrypt_report_why(report, MPICRYPT_FOUND_FAIL, "keystore", MPICRYPT_CORE_HELP, why->topic, why->detail);
    } else {
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "keystore", "\"mpicrypt key list\" on this node says more; docs/keys.rst has what belongs where.",
                            "%s", why->detail);
    }
}

static void check_content(mpicrypt_report_t *report, opal_cryptfile_keystore_t *keystore)
{
    keystore_sum_t sum = {.versions = 0};
    char hex[2 * 8 + 1];
    opal_crypt_why_t why = {.topic = NULL};
    int rc = opal_cryptfile_keystore_list(keystore, add_version, note_unreadable, &sum, &why);

    if (OPAL_CRYPT_OK != rc || NULL != sum.bad.topic) {
        keystore_fails(report, OPAL_CRYPT_OK != rc ? &why : &sum.bad);
    } else if (NULL != set_or_null(set.label) && OPAL_CRYPTFILE_GRANT_SEAL != opal_cryptfile_keystore_grant(keystore, set.label)) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "keystore", FROM_ANOTHER_NODE,
                            "fs_crypt_key_label=%s: the keystore of this node has no key of this label that encrypts", set.label);
    } else {
        opal_crypt_hex_write(sum.together, 8, hex);
        mpicrypt_report_add(report, MPICRYPT_FOUND_OK, "keystore", "", "%u version%s of keys of files%s (together %s)", sum.versions,
                            1 == sum.versions ? "" : "s", NULL == set_or_null(set.machine_key_file) ? "" : ", under the machine key", hex);
    }
}

void mpicrypt_check_keystore(mpicrypt_report_t *report)
{
    opal_cryptfile_keystore_t *keystore = NULL;
    opal_crypt_why_t why = {.topic = NULL};
    const char *failed;

    if (OPAL_SUCCESS != opal_cryptproc_register(keystore_parameters, sizeof(keystore_parameters) / sizeof(keystore_parameters[0]), &failed)
        || OPAL_CRYPTFILE_KEYSTORE_FILE != set.backend) {
        return;                         /* unreadable values: doctor/check_names.c.  A token is not opened for a check */
    }
    const opal_cryptfile_keystore_options_t options = {
        .backend = OPAL_CRYPTFILE_KEYSTORE_FILE, .directory = set_or_null(set.directory), .group = set_or_null(set.group),
        .log_file = set_or_null(set.log_file), .machine_key_file = set_or_null(set.machine_key_file),
        .secret_on_netfs = opal_cryptproc_params.options.secret_on_netfs};

    if (OPAL_CRYPT_OK == opal_cryptfile_keystore_open(&options, &keystore, &why)) {
        check_content(report, keystore);
        opal_cryptfile_keystore_close(keystore);
    } else if (0 != strcmp("keystore-missing", why.topic)) {
        keystore_fails(report, &why);
    } else if (NULL != set_or_null(set.label)) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "keystore", FROM_ANOTHER_NODE, "fs_crypt_key_label=%s: %s", set.label, why.detail);
    } else {
        mpicrypt_report_add(report, MPICRYPT_FOUND_OK, "keystore", "", "no keys of files");
    }
}
