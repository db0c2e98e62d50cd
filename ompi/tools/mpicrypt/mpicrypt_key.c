/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt key: the labels of a keystore.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mpicrypt.h"
#include "mpicrypt_keystore.h"

static mpicrypt_keystore_t where;
static const char *not_after, *recovery;
static mpicrypt_sizes_t owners;
static size_t version;

static const mpicrypt_option_t options[] = {
    MPICRYPT_KEYSTORE_OPTIONS(where),
    {"not-after", MPICRYPT_TEXT, "DATE", NULL, &not_after,
     "new, rotate: the last day (YYYY-MM-DD, UTC) on which the key encrypts; afterwards it only decrypts."},
    {"owners", MPICRYPT_SIZES, "UIDS", NULL, &owners,
     "new, rotate: user ids that may use the key. Without it, whoever can open the keystore."},
    {"recovery", MPICRYPT_TEXT, "PEM", NULL, &recovery,
     "new, rotate: a public key (RSA of at least 2048 bits, or P-256) to which data keys are wrapped besides."},
    {"version", MPICRYPT_COUNT, "N", "0", &version, "revoke: this version only; 0: all."},
    {NULL}
};

static int parse_day(const char *text, int64_t *end)
{
    struct tm day = {.tm_hour = 23, .tm_min = 59, .tm_sec = 59};
    const char *rest = strptime(text, "%Y-%m-%d", &day);

    if (NULL == rest || '\0' != *rest) {
        return mpicrypt_error(MPICRYPT_USAGE, "--not-after is a day as 2030-12-31, not '%s'", text);
    }
    day.tm_hour = 23;
    day.tm_min = day.tm_sec = 59;
    *end = (int64_t) timegm(&day);
    return MPICRYPT_OK;
}

static const char *day_of(int64_t seconds, char text[32])
{
    time_t at = (time_t) seconds;
    struct tm day;

    if (0 == seconds || NULL == gmtime_r(&at, &day) || 0 == strftime(text, 32, "%Y-%m-%d", &day)) {
        strcpy(text, "-");
    }
    return text;
}

static int make(opal_common_crypt_keystore_t *keystore, const char *label, bool rotate)
{
    opal_common_crypt_keystore_record_t record = {.version = 0};
    opal_common_crypt_why_t why = {.topic = NULL};

    if (!opal_common_crypt_key_label_valid(label)) {
        return mpicrypt_error(MPICRYPT_USAGE, "a label is 1 to %d letters, digits, dots, dashes and underscores: '%s'",
                              OPAL_CRYPT_KEY_LABEL_MAX, label);
    }
    if (owners.count > OPAL_CRYPT_KEYSTORE_OWNERS) {
        return mpicrypt_error(MPICRYPT_USAGE, "at most %d owners", OPAL_CRYPT_KEYSTORE_OWNERS);
    }
    strcpy(record.label, label);
    for (int i = 0; i < owners.count; ++i) {
        record.owners[record.owner_count++] = (uint32_t) owners.value[i];
    }
    if (NULL != not_after && MPICRYPT_OK != parse_day(not_after, &record.not_after)) {
        return MPICRYPT_USAGE;
    }
    int rc = NULL == recovery ? OPAL_CRYPT_OK
                              : opal_common_crypt_escrow_key(recovery, record.escrow, &record.escrow_bytes, &why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_common_crypt_keystore_new(keystore, rotate, &record, &why);
    }
    if (OPAL_CRYPT_OK != rc) {
        return mpicrypt_refused(label, rc, &why);
    }
    printf("%s: version %u, AES-%u\n", label, record.version, record.bits);
    if (rotate) {
        printf("New files and regions use it.  \"mpicrypt file rekey FILE\" brings a file that exists under it.\n");
    }
    return MPICRYPT_OK;
}

static int add_row(const opal_common_crypt_keystore_record_t *record, void *arg)
{
    mpicrypt_table_t *table = arg;
    char text[32], list[16 * OPAL_CRYPT_KEYSTORE_OWNERS] = "all";

    mpicrypt_table_text(table, record->label);
    mpicrypt_table_count(table, record->version);
    mpicrypt_table_count(table, record->bits);
    mpicrypt_table_text(table, day_of(record->created, text));
    mpicrypt_table_text(table, day_of(record->not_after, text));
    for (unsigned i = 0, at = 0; i < record->owner_count; ++i) {
        at += (unsigned) snprintf(list + at, sizeof(list) - at, "%s%u", 0 == i ? "" : ",", (unsigned) record->owners[i]);
    }
    mpicrypt_table_text(table, list);
    mpicrypt_table_text(table, 0 != record->escrow_bytes ? "yes" : "no");
    mpicrypt_table_text(table, record->revoked ? "revoked"
                               : 0 != record->not_after && (int64_t) time(NULL) > record->not_after ? "decrypts only" : "in use");
    return 0;
}

static int list_all(opal_common_crypt_keystore_t *keystore)
{
    static const mpicrypt_column_t columns[] = {{"label", "label", 0}, {"version", "version", 0}, {"bits", "bits", 0},
                                                {"created", "created", 0}, {"not_after", "not after", 0}, {"owners", "owners", 0},
                                                {"escrow", "escrow", 0}, {"state", "state", 0}, {NULL, NULL, 0}};
    opal_common_crypt_why_t why = {.topic = NULL};
    mpicrypt_table_t *table = mpicrypt_table_new(columns);
    int rc = opal_common_crypt_keystore_list(keystore, add_row, table, &why);

    if (OPAL_CRYPT_OK == rc) {
        mpicrypt_table_print(table, stdout);
    }
    mpicrypt_table_free(table);
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused("list", rc, &why);
}

static int act(opal_common_crypt_keystore_t *keystore, const char *verb, int count, char **operands)
{
    opal_common_crypt_why_t why = {.topic = NULL};
    int rc;

    if (0 == strcmp(verb, "list") && 0 == count) {
        return list_all(keystore);
    }
    if ((0 == strcmp(verb, "new") || 0 == strcmp(verb, "rotate")) && 1 == count) {
        return make(keystore, operands[0], 0 == strcmp(verb, "rotate"));
    }
    if (0 == strcmp(verb, "revoke") && 1 == count) {
        rc = opal_common_crypt_keystore_revoke(keystore, operands[0], (uint16_t) version, &why);
    } else if (0 == strcmp(verb, "escrow") && 2 == count) {
        rc = opal_common_crypt_keystore_escrow(keystore, operands[0], operands[1], &why);
    } else {
        return mpicrypt_error(MPICRYPT_USAGE, "new LABEL, list, rotate LABEL, revoke LABEL or escrow LABEL PEM; see --help");
    }
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused(operands[0], rc, &why);
}

static int run(int operand_count, char **operands)
{
    opal_common_crypt_keystore_t *keystore;

    if (0 == operand_count) {
        return mpicrypt_error(MPICRYPT_USAGE, "new, list, rotate, revoke or escrow; see --help");
    }
    int code = 0 == strcmp(operands[0], "new") ? mpicrypt_keystore_directory(&where) : MPICRYPT_OK;
    code = MPICRYPT_OK == code ? mpicrypt_keystore_open(&where, &keystore) : code;
    if (MPICRYPT_OK == code) {
        code = act(keystore, operands[0], operand_count - 1, operands + 1);
        opal_common_crypt_keystore_close(keystore);
    }
    return code;
}

const mpicrypt_verb_t mpicrypt_key_verb = {
    .name = "key",
    .summary = "make, list, rotate and revoke the keys of files",
    .synopsis = "new LABEL | list | rotate LABEL | revoke LABEL | escrow LABEL PEM [options]",
    .description = "Files are encrypted under labels. A label's key stays in the keystore, which only wraps and "
                   "unwraps the data keys of files, and logs every use.\n\n"
                   "rotate makes the next version of a key, which new files use; files that exist keep the old one until "
                   "they are rekeyed. revoke ends all use of a key: what is encrypted under it can then only be read "
                   "through escrow. escrow names a recovery key to which data keys are wrapped from now on.",
    .options = options,
    .examples = "mpicrypt key new results\nmpicrypt key new results-2099 --not-after 2099-12-31 --recovery site.pem\n"
                "mpicrypt key list",
    .run = run,
    .takes_operands = true,
};
