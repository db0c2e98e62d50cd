/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Names of MCA parameters: ours, misspelt ones, and those that do not concern us.
 *
 *     test_parameter names           prints ours, and what their values are
 *     test_parameter judge < NAMES   prints those that are not taken for foreign
 */
#include "unit.h"

#include "opal/mca/common/crypt/base/parameter.h"

static const char *const kinds[] = {"foreign", "known", "unknown", "near", "unreadable", "range"};

static bool judged(const char *name, opal_crypt_parameter_t wanted, const char *wanted_nearest)
{
    const char *nearest = "?";
    const opal_crypt_parameter_t kind = opal_crypt_parameter(name, NULL, &nearest);
    const bool right = kind == wanted && (NULL == wanted_nearest ? NULL == nearest
                                          : NULL != nearest && 0 == strcmp(nearest, wanted_nearest));

    if (!right) {
        printf("%s: %s, %s\n", name, kinds[kind], NULL == nearest ? "-" : nearest);
    }
    return right;
}

static void print_judged(void)
{
    char line[512];

    while (NULL != fgets(line, sizeof(line), stdin)) {
        const char *nearest;
        line[strcspn(line, "\n")] = '\0';
        const opal_crypt_parameter_t kind = opal_crypt_parameter(line, NULL, &nearest);
        if (OPAL_CRYPT_PARAMETER_FOREIGN != kind) {
            printf("%s %s\n", kinds[kind], line);
        }
    }
}

static int seen;

static void visit(const char *name, const char *value, opal_crypt_parameter_t kind, const char *nearest, void *argument)
{
    if (OPAL_CRYPT_PARAMETER_KNOWN == kind && 0 != strcmp("fs_crypt_key_label", name)) {
        return;                         /* from the caller's environment */
    }
    UNIT_CHECK(&seen == argument && 0 == strcmp(value, OPAL_CRYPT_PARAMETER_NEAR == kind ? "" : "site"));
    UNIT_CHECK((OPAL_CRYPT_PARAMETER_UNKNOWN == kind && 0 == strcmp("fs_crypt_key_labl", name)
                && 0 == strcmp("fs_crypt_key_label", nearest))
               || (OPAL_CRYPT_PARAMETER_NEAR == kind && 0 == strcmp("fs_crytp_key_label", name))
               || OPAL_CRYPT_PARAMETER_KNOWN == kind);
    seen++;
}

static void values_of_ours(void)
{
    static const struct {
        const char *name, *value;
        opal_crypt_parameter_t kind;
    } values[] = {
        {"pml_crypt_chunk_size", "1e30", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"pml_crypt_chunk_size", "64KB", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"pml_crypt_chunk_size", "64k", OPAL_CRYPT_PARAMETER_KNOWN},
        {"pml_crypt_chunk_size", "0x10000", OPAL_CRYPT_PARAMETER_KNOWN},
        {"pml_crypt_chunk_size", "", OPAL_CRYPT_PARAMETER_KNOWN},
        {"pml_crypt_chunk_size", "K", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"pml_crypt_chunk_size", "-1", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"pml_crypt_chunk_size", "0", OPAL_CRYPT_PARAMETER_RANGE},
        {"pml_crypt_chunk_size", "4294967296", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"pml_crypt_chunk_size", "99999999999999999999999", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"coll_cryptag_shm_max", "17179869183G", OPAL_CRYPT_PARAMETER_KNOWN},
        {"coll_cryptag_shm_max", "17179869184G", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"pml_crypt_chunk_size", "65M", OPAL_CRYPT_PARAMETER_RANGE},
        {"coll_cryptag_fragment", "65M", OPAL_CRYPT_PARAMETER_RANGE},
        {"pml_crypt_chop_min", "8M", OPAL_CRYPT_PARAMETER_RANGE},
        {"pml_crypt_chop_min", "eight", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"crypt_key_bits", "100", OPAL_CRYPT_PARAMETER_RANGE},
        {"coll_cryptag_fragment", "-5", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"coll_cryptag_fragment", "-", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"fs_crypt_require", "maybe", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"fs_crypt_require", "Yes", OPAL_CRYPT_PARAMETER_KNOWN},
        {"fs_crypt_require", "1 ", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"fs_crypt_key_label", "1e30", OPAL_CRYPT_PARAMETER_KNOWN},
        {"btl_crypt_pq", "require", OPAL_CRYPT_PARAMETER_KNOWN},
        {"btl_crypt_pq", "auto", OPAL_CRYPT_PARAMETER_KNOWN},
        {"btl_crypt_pq", "2", OPAL_CRYPT_PARAMETER_KNOWN},
        {"btl_crypt_pq", "", OPAL_CRYPT_PARAMETER_KNOWN},
        {"btl_crypt_pq", "maybe", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"btl_crypt_pq", "auto off", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"btl_crypt_pq", "of", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"btl_crypt_pq", "Off", OPAL_CRYPT_PARAMETER_UNREADABLE},
        {"crypt_audit", "warning", OPAL_CRYPT_PARAMETER_UNREADABLE},
    };

    UNIT_GROUP("values");
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const char *nearest;
        const opal_crypt_parameter_t kind = opal_crypt_parameter(values[i].name, values[i].value, &nearest);
        if (kind != values[i].kind) {
            printf("%s=%s: %s\n", values[i].name, values[i].value, kinds[kind]);
        }
        UNIT_CHECK(kind == values[i].kind);
        UNIT_CHECK(OPAL_CRYPT_PARAMETER_UNREADABLE != kind
                   || (NULL != nearest) == (NULL != strstr(values[i].name, "pq") || NULL != strstr(values[i].name, "audit")));
    }
}

int main(int argc, char **argv)
{
    static char longest[4096];
    static const char *const types[] = {"text", "", "", "flag", "number", "size"};
    const opal_crypt_parameter_row_t *row;
    unsigned own = 0;

    if (argc > 1 && 0 == strcmp(argv[1], "names")) {
        for (size_t i = 0; NULL != (row = opal_crypt_parameter_at(i)); i++) {
            printf("%s %s\n", row->name, NULL != row->words ? row->words : types[row->type]);
        }
        return 0;
    }
    if (argc > 1) {
        print_judged();
        return 0;
    }
    UNIT_GROUP("ours");
    for (size_t i = 0; NULL != (row = opal_crypt_parameter_at(i)); i++) {
        const char *nearest;

        UNIT_CHECK(judged(row->name, OPAL_CRYPT_PARAMETER_KNOWN, row->name) && row == opal_crypt_parameter_row(row->name));
        own += row->level > 0 && 0 != strcmp(row->name, "crypt_epoch_shift");
        UNIT_CHECK(NULL == row->start || OPAL_CRYPT_PARAMETER_KNOWN == opal_crypt_parameter(row->name, row->start, &nearest));
    }
    UNIT_CHECK(own <= 59);              /* docs/design/011-parameters.rst: remove one, or argue there */
    UNIT_GROUP("begin as ours do");
    UNIT_CHECK(judged("fs_crypt_key_labl", OPAL_CRYPT_PARAMETER_UNKNOWN, "fs_crypt_key_label"));
    UNIT_CHECK(judged("fs_crypt_keylabel", OPAL_CRYPT_PARAMETER_UNKNOWN, "fs_crypt_key_label"));
    UNIT_CHECK(judged("crypt_key_label", OPAL_CRYPT_PARAMETER_UNKNOWN, "fs_crypt_key_label"));
    UNIT_CHECK(judged("pml_crypt_audit", OPAL_CRYPT_PARAMETER_UNKNOWN, "crypt_audit"));
    UNIT_CHECK(judged("crypt_psk", OPAL_CRYPT_PARAMETER_UNKNOWN, "crypt_psk_file"));
    UNIT_CHECK(judged("crypt_chunk_size", OPAL_CRYPT_PARAMETER_UNKNOWN, "pml_crypt_chunk_size"));
    UNIT_CHECK(judged("fs_crypt_audit", OPAL_CRYPT_PARAMETER_UNKNOWN, "crypt_audit"));
    UNIT_CHECK(judged("coll_cryptag_key_label", OPAL_CRYPT_PARAMETER_UNKNOWN, "fs_crypt_key_label"));
    UNIT_CHECK(judged("hook_crypt_verbose", OPAL_CRYPT_PARAMETER_UNKNOWN, "crypt_verbose"));
    UNIT_CHECK(judged("crypt_cipher", OPAL_CRYPT_PARAMETER_UNKNOWN, "crypt_key_bits (of AES-GCM), or aead (which library)"));
    UNIT_CHECK(judged("crypt_provider", OPAL_CRYPT_PARAMETER_UNKNOWN, "aead"));
    UNIT_CHECK(judged("crypt_color", OPAL_CRYPT_PARAMETER_UNKNOWN, NULL));
    UNIT_CHECK(judged("coll_cryptag_zzzzzzzzzzzzzzzzzzzzzzzzzzzz", OPAL_CRYPT_PARAMETER_UNKNOWN, NULL));
    UNIT_CHECK(judged("crypt_", OPAL_CRYPT_PARAMETER_UNKNOWN, NULL));
    UNIT_CHECK(judged("fs_crypt_KEY_LABEL", OPAL_CRYPT_PARAMETER_UNKNOWN, "fs_crypt_key_label"));
    memset(longest, 'x', sizeof(longest) - 1);
    memcpy(longest, "pml_crypt_", 10);
    UNIT_CHECK(judged(longest, OPAL_CRYPT_PARAMETER_UNKNOWN, NULL));
    UNIT_GROUP("are like ours");
    UNIT_CHECK(judged("fs_crytp_key_label", OPAL_CRYPT_PARAMETER_NEAR, "fs_crypt_key_label"));
    UNIT_CHECK(judged("fs_cryptkey_label", OPAL_CRYPT_PARAMETER_NEAR, "fs_crypt_key_label"));
    UNIT_CHECK(judged("rcypt_auth", OPAL_CRYPT_PARAMETER_NEAR, "crypt_auth"));
    UNIT_CHECK(judged("crypto_auth", OPAL_CRYPT_PARAMETER_NEAR, "crypt_auth"));
    UNIT_GROUP("are somebody else's");
    static const char *const others[] = {"", "pml", "read", "aeae", "fs_ufs_priority", "pml_ob1_verbose",
                                         "btl_tcp_eager_limit", "coll_tuned_use_dynamic_rules", "crypto_aead_name", "fs_lustre_stripe_size"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        UNIT_CHECK(judged(others[i], OPAL_CRYPT_PARAMETER_FOREIGN, NULL));
    }
    longest[0] = 'q';
    UNIT_CHECK(judged(longest, OPAL_CRYPT_PARAMETER_FOREIGN, NULL));
    values_of_ours();
    UNIT_GROUP("of messages");
    static const char *const messages[] = {"crypt_report", "crypt_transport", "pml_crypt_t", "btl_crypt_pq",
                                           "coll_cryptag_fragment", "crypt_psk_file"};
    static const char *const not_messages[] = {"crypt_keystore", "crypt_keystore_dir", "crypt_pkcs11_token", "crypt_fips",
                                               "crypt_secret_on_netfs", "crypt_required", "crypt_verbose", "aead",
                                               "aead_base_verbose", "fs_crypt_key_label", "fbtl_crypt_x"};
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        UNIT_CHECK(opal_crypt_parameter_of_messages(messages[i]));
    }
    for (size_t i = 0; i < sizeof(not_messages) / sizeof(not_messages[0]); i++) {
        UNIT_CHECK(!opal_crypt_parameter_of_messages(not_messages[i]));
    }
    UNIT_GROUP("in the environment");
    setenv("OMPI_MCA_fs_crypt_key_labl", "site", 1);
    setenv("OMPI_MCA_fs_crytp_key_label", "", 1);
    setenv("OMPI_MCA_fs_crypt_key_label", "site", 1);
    setenv("OMPI_MCA_pml", "crypt", 1);
    setenv("OMPI_MCA_", "crypt", 1);
    setenv("fs_crypt_key_labl", "site", 1);
    opal_crypt_parameter_environment(visit, &seen);
    UNIT_CHECK(3 == seen);
    return unit_done();
}
