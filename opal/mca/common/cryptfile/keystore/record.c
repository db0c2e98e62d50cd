/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The attributes of a label besides its key, as lines of text in one fixed order.
 * Both backends keep this text: `file` before the key in the label's file,
 * `pkcs11` in a data object beside the key.
 *
 *     ompi-crypt key 1
 *     label NAME
 *     version N
 *     type aes
 *     bits N
 *     fingerprint HEX32
 *     created SECONDS
 *     not-after SECONDS          0: no end
 *     state active|revoked
 *     changes N                  since it was made
 *     owners UID ...             empty: any
 *     escrow HEX                 empty: none
 */
#include "keystore_object.h"
#include "opal/mca/common/crypt/base/hex.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A record that could not be read back would be lost with its key. */
static bool can_be_read(const char *text, int bytes)
{
    opal_cryptfile_keystore_record_t read;
    size_t used;

    return OPAL_CRYPT_OK == opal_cryptfile_keystore_record_parse(text, (size_t) bytes, &used, &read) && (size_t) bytes == used;
}

int opal_cryptfile_keystore_record_write(const opal_cryptfile_keystore_record_t *record,
                                         char *text, size_t max)
{
    if (record->owner_count > OPAL_CRYPTFILE_KEYSTORE_OWNERS || record->escrow_bytes > OPAL_CRYPTFILE_SPKI_MAX) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    char fingerprint[2 * OPAL_CRYPTFILE_FINGERPRINT_BYTES + 1];
    opal_crypt_hex_write(record->fingerprint, sizeof(record->fingerprint), fingerprint);
    int used = snprintf(text, max,
                        "ompi-crypt key 1\nlabel %s\nversion %u\ntype aes\nbits %u\nfingerprint %s\ncreated %" PRId64
                        "\nnot-after %" PRId64 "\nstate %s\nchanges %" PRIu32 "\nowners",
                        record->label, record->version, record->bits, fingerprint, record->created, record->not_after,
                        record->revoked ? "revoked" : "active", record->changes);

    if (used < 0 || (size_t) used + OPAL_CRYPTFILE_KEYSTORE_OWNERS * 11 + 2 * OPAL_CRYPTFILE_SPKI_MAX + 16 > max) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    for (unsigned i = 0; i < record->owner_count; ++i) {
        used += snprintf(text + used, max - (size_t) used, " %" PRIu32, record->owners[i]);
    }
    used += snprintf(text + used, max - (size_t) used, "\nescrow%s", 0 != record->escrow_bytes ? " " : "");
    opal_crypt_hex_write(record->escrow, record->escrow_bytes, text + used);
    used += 2 * record->escrow_bytes;
    used += snprintf(text + used, max - (size_t) used, "\n");
    return can_be_read(text, used) ? used : OPAL_CRYPT_ERR_CONFIG;
}

/* ---- reading ---- */

/* The value of the next line, which must begin with `name`; *value ends at *end. */
static bool next_line(const char **at, const char *stop, const char *name, const char **value, const char **end)
{
    size_t name_bytes = strlen(name);
    const char *newline = memchr(*at, '\n', (size_t) (stop - *at));

    if (NULL == newline || (size_t) (newline - *at) < name_bytes || 0 != memcmp(*at, name, name_bytes)) {
        return false;
    }
    *value = *at + name_bytes;
    *end = newline;
    *at = newline + 1;
    return true;
}

static bool value_is(const char *value, const char *end, const char *text)
{
    return (size_t) (end - value) == strlen(text) && 0 == memcmp(value, text, strlen(text));
}

/* " 123": a space and a decimal number without leading zeros, up to *end. */
static bool value_number(const char **value, const char *end, uint64_t max, uint64_t *result)
{
    const char *p = *value;
    uint64_t sum = 0;

    if (p >= end || ' ' != *p++ || p >= end || *p < '0' || *p > '9' || ('0' == *p && p + 1 < end && ' ' != p[1])) {
        return false;
    }
    for (; p < end && *p >= '0' && *p <= '9'; ++p) {
        if (sum > (max - (uint64_t) (*p - '0')) / 10) {
            return false;
        }
        sum = 10 * sum + (uint64_t) (*p - '0');
    }
    *value = p;
    *result = sum;
    return true;
}

static bool number_line(const char **at, const char *stop, const char *name, uint64_t max, uint64_t *result)
{
    const char *value, *end;

    return next_line(at, stop, name, &value, &end) && value_number(&value, end, max, result) && value == end;
}

static bool owners_line(const char **at, const char *stop, opal_cryptfile_keystore_record_t *record)
{
    const char *value, *end;
    uint64_t owner;

    if (!next_line(at, stop, "owners", &value, &end)) {
        return false;
    }
    while (value < end) {
        if (OPAL_CRYPTFILE_KEYSTORE_OWNERS == record->owner_count || !value_number(&value, end, UINT32_MAX, &owner)) {
            return false;
        }
        record->owners[record->owner_count++] = (uint32_t) owner;
    }
    return true;
}

static bool escrow_line(const char **at, const char *stop, opal_cryptfile_keystore_record_t *record)
{
    const char *value, *end;

    if (!next_line(at, stop, "escrow", &value, &end)) {
        return false;
    }
    if (value == end) {
        return true;
    }
    size_t digits = (size_t) (end - value) - 1;
    if (' ' != *value || 0 == digits || 0 != digits % 2 || digits / 2 > OPAL_CRYPTFILE_SPKI_MAX) {
        return false;
    }
    record->escrow_bytes = (uint16_t) (digits / 2);
    return opal_crypt_hex_read(value + 1, record->escrow, record->escrow_bytes);
}

static bool label_line(const char **at, const char *stop, opal_cryptfile_keystore_record_t *record)
{
    const char *value, *end;

    if (!next_line(at, stop, "label ", &value, &end) || (size_t) (end - value) > OPAL_CRYPTFILE_KEY_LABEL_MAX ||
        NULL != memchr(value, '\0', (size_t) (end - value))) {
        return false;
    }
    memcpy(record->label, value, (size_t) (end - value));
    return opal_cryptfile_key_label_valid(record->label);
}

static bool fingerprint_line(const char **at, const char *stop, opal_cryptfile_keystore_record_t *record)
{
    const char *value, *end;

    return next_line(at, stop, "fingerprint ", &value, &end) && 2 * sizeof(record->fingerprint) == (size_t) (end - value) &&
           opal_crypt_hex_read(value, record->fingerprint, sizeof(record->fingerprint));
}

static bool state_line(const char **at, const char *stop, opal_cryptfile_keystore_record_t *record)
{
    const char *value, *end;

    if (!next_line(at, stop, "state ", &value, &end)) {
        return false;
    }
    record->revoked = value_is(value, end, "revoked");
    return record->revoked || value_is(value, end, "active");
}

int opal_cryptfile_keystore_record_parse(const char *text, size_t bytes, size_t *used,
                                         opal_cryptfile_keystore_record_t *record)
{
    const char *at = text, *stop = text + bytes, *value, *end;
    uint64_t version = 0, bits = 0, created = 0, not_after = 0, changes = 0;

    memset(record, 0, sizeof(*record));
    if (!next_line(&at, stop, "ompi-crypt key 1", &value, &end) || value != end || !label_line(&at, stop, record) ||
        !number_line(&at, stop, "version", UINT16_MAX, &version) || 0 == version ||
        !next_line(&at, stop, "type ", &value, &end) || !value_is(value, end, "aes") ||
        !number_line(&at, stop, "bits", 256, &bits) || !fingerprint_line(&at, stop, record) || !number_line(&at, stop, "created", INT64_MAX, &created) ||
        !number_line(&at, stop, "not-after", INT64_MAX, &not_after) || !state_line(&at, stop, record) ||
        !number_line(&at, stop, "changes", UINT32_MAX, &changes) || !owners_line(&at, stop, record) || !escrow_line(&at, stop, record) ||
        (128 != bits && 192 != bits && 256 != bits)) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    record->version = (uint16_t) version;
    record->bits = (unsigned) bits;
    record->created = (int64_t) created;
    record->not_after = (int64_t) not_after;
    record->changes = (uint32_t) changes;
    *used = (size_t) (at - text);
    return OPAL_CRYPT_OK;
}
