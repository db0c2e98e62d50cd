/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt key list, key info: what the keystore says of its keys; and how the other verbs name keys and owners.
 */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "list.h"
#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/text.h"

typedef struct key_rows {
    const char *label;                  /* only this one; NULL: all */
    opal_cryptfile_keystore_record_t *records;
    size_t count, capacity;
    int code;
} key_rows_t;

const char *mpicrypt_key_day(int64_t seconds, char text[32])
{
    time_t at = (time_t) seconds;
    struct tm day;

    if (0 == seconds || NULL == gmtime_r(&at, &day) || 0 == strftime(text, 32, "%Y-%m-%d", &day)) {
        strcpy(text, "-");
    }
    return text;
}

static const char *key_state(const opal_cryptfile_keystore_record_t *record)
{
    return record->revoked ? "revoked" : 0 != record->not_after && (int64_t) time(NULL) > record->not_after ? "decrypts only" : "in use";
}

/* ---- reading ---- */

/* The other keys are still listed. */
static void report_bad(const opal_crypt_why_t *why, void *arg)
{
    ((key_rows_t *) arg)->code = mpicrypt_refused("list", OPAL_CRYPT_ERR_CONFIG, why);
}

static int add_record(const opal_cryptfile_keystore_record_t *record, void *arg)
{
    key_rows_t *rows = arg;

    if (NULL != rows->label && 0 != strcmp(rows->label, record->label)) {
        return OPAL_CRYPT_OK;
    }
    if (rows->count == rows->capacity) {
        rows->capacity = 0 == rows->capacity ? 64 : 2 * rows->capacity;
        rows->records = mpicrypt_checked(realloc(rows->records, rows->capacity * sizeof(*rows->records)));
    }
    rows->records[rows->count++] = *record;
    return OPAL_CRYPT_OK;
}

static int compare_labels(const void *a, const void *b)
{
    const opal_cryptfile_keystore_record_t *x = a, *y = b;
    int labels = strcmp(x->label, y->label);

    return 0 != labels ? labels : (int) x->version - (int) y->version;
}

/* ---- printing ---- */

static void print_table(const key_rows_t *rows)
{
    static const mpicrypt_column_t columns[] = {{"label", "label", 0}, {"version", "version", 0}, {"fingerprint", "fingerprint", 0},
                                                {"created", "created", 0}, {"not_after", "not after", 0}, {"owners", "owners", 0},
                                                {"escrow", "escrow", 0}, {"state", "state", 0}, {NULL, NULL, 0}};
    mpicrypt_table_t *table = mpicrypt_table_new(columns);
    char text[32], hex[2 * MPICRYPT_KEY_SHOWN_BYTES + 1];

    for (size_t i = 0; i < rows->count; ++i) {
        const opal_cryptfile_keystore_record_t *record = &rows->records[i];
        char list[16 * OPAL_CRYPTFILE_KEYSTORE_OWNERS] = "all";

        opal_crypt_hex_write(record->fingerprint, MPICRYPT_KEY_SHOWN_BYTES, hex);
        mpicrypt_table_text(table, record->label);
        mpicrypt_table_count(table, record->version);
        mpicrypt_table_text(table, hex);
        mpicrypt_table_text(table, mpicrypt_key_day(record->created, text));
        mpicrypt_table_text(table, mpicrypt_key_day(record->not_after, text));
        for (unsigned o = 0, at = 0; o < record->owner_count; ++o) {
            at += (unsigned) snprintf(list + at, sizeof(list) - at, "%s%u", 0 == o ? "" : ",", (unsigned) record->owners[o]);
        }
        mpicrypt_table_text(table, list);
        mpicrypt_table_text(table, 0 != record->escrow_bytes ? "yes" : "no");
        mpicrypt_table_text(table, key_state(record));
    }
    mpicrypt_table_print(table, stdout);
    mpicrypt_table_free(table);
}

static void print_owners(const opal_cryptfile_keystore_record_t *record)
{
    printf("  owners       %s", 0 == record->owner_count ? "everyone who can open the keystore" : "");
    for (unsigned i = 0; i < record->owner_count; ++i) {
        const struct passwd *user = getpwuid((uid_t) record->owners[i]);
        char name[64] = "no name here";

        if (NULL != user) {
            snprintf(name, sizeof(name), "%s", user->pw_name);
        }
        printf("%s%u (%s)", 0 == i ? "" : ", ", (unsigned) record->owners[i], opal_crypt_harmless(name, ""));
    }
    printf("\n");
}

static void print_long(const key_rows_t *rows)
{
    char text[32], hex[2 * OPAL_CRYPTFILE_FINGERPRINT_BYTES + 1];

    for (size_t i = 0; i < rows->count; ++i) {
        const opal_cryptfile_keystore_record_t *record = &rows->records[i];

        opal_crypt_hex_write(record->fingerprint, sizeof(record->fingerprint), hex);
        printf("%s, version %u\n  fingerprint  %s\n  key          AES-%u, made on %s\n", record->label, record->version, hex, record->bits,
               mpicrypt_key_day(record->created, text));
        printf("  state        %s; %s%s\n", key_state(record), 0 == record->not_after ? "no last day" : "last day ",
               0 == record->not_after ? "" : mpicrypt_key_day(record->not_after, text));
        print_owners(record);
        printf("  recovery     %s\n", 0 != record->escrow_bytes ? "a recovery key can read its files, too" : "none");
    }
}

static void print_keys_json(const key_rows_t *rows)
{
    char hex[2 * OPAL_CRYPTFILE_FINGERPRINT_BYTES + 1];

    for (size_t i = 0; i < rows->count; ++i) {
        const opal_cryptfile_keystore_record_t *record = &rows->records[i];

        opal_crypt_hex_write(record->fingerprint, sizeof(record->fingerprint), hex);
        printf("%s{\"label\": \"%s\", \"version\": %u, \"fingerprint\": \"%s\", \"bits\": %u, \"created\": %lld, \"not_after\": ",
               0 == i ? "[" : ",\n ", record->label, record->version, hex, record->bits, (long long) record->created);
        if (0 == record->not_after) {
            printf("null");
        } else {
            printf("%lld", (long long) record->not_after);
        }
        printf(", \"owners\": %s", 0 == record->owner_count ? "null" : "[");
        for (unsigned o = 0; o < record->owner_count; ++o) {
            printf("%s%u%s", 0 == o ? "" : ", ", (unsigned) record->owners[o], o + 1 == record->owner_count ? "]" : "");
        }
        printf(", \"escrow\": %s, \"state\": \"%s\"}", 0 != record->escrow_bytes ? "true" : "false", key_state(record));
    }
    printf("%s]\n", 0 == rows->count ? "[" : "");
}

int mpicrypt_key_list(opal_cryptfile_keystore_t *keystore, const char *label, bool json)
{
    opal_crypt_why_t why = {.topic = NULL};
    key_rows_t rows = {.label = label, .code = MPICRYPT_OK};
    int rc = opal_cryptfile_keystore_list(keystore, add_record, report_bad, &rows, &why);

    if (OPAL_CRYPT_OK == rc && NULL != label && 0 == rows.count && MPICRYPT_OK == rows.code) {
        rows.code = mpicrypt_error(MPICRYPT_FAILED, "%s: the keystore has no key for this label ('mpicrypt key list' shows what it has)", label);
    } else if (OPAL_CRYPT_OK == rc) {
        if (0 != rows.count) {
            qsort(rows.records, rows.count, sizeof(*rows.records), compare_labels);
        }
        (json ? print_keys_json : NULL == label ? print_table : print_long)(&rows);
    }
    free(rows.records);
    return OPAL_CRYPT_OK == rc ? rows.code : mpicrypt_refused("list", rc, &why);
}
