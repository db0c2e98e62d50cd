/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Packing, parsing and comparing records.  The format is drawn in
 * crypt/identity/record.h; pack and parse mirror each other field by field.
 */
#include "record.h"
#include "kex.h"

#include <stdio.h>
#include <string.h>

/* The unread rest; every step checks before it advances. */
typedef struct record_reader {
    const uint8_t *at;
    size_t left;
    bool good;
} record_reader_t;

static const uint8_t *skip(record_reader_t *reader, size_t bytes)
{
    const uint8_t *field = reader->at;

    if (!reader->good || bytes > reader->left) {
        reader->good = false;
        return NULL;
    }
    reader->at += bytes;
    reader->left -= bytes;
    return field;
}

static uint64_t read_number(record_reader_t *reader, size_t bytes)
{
    const uint8_t *field = skip(reader, bytes);
    uint64_t value = 0;

    for (size_t i = 0; NULL != field && i < bytes; ++i) {
        value = value << 8 | field[i];
    }
    return value;
}

int opal_crypt_record_parse(const uint8_t *bytes, size_t count, opal_crypt_record_t *record)
{
    record_reader_t reader = {bytes, count, NULL != bytes && count <= OPAL_CRYPT_RECORD_MAX};

    memset(record, 0, sizeof(*record));

    /* 1. common to all versions */
    record->version = (uint16_t) read_number(&reader, 2);
    record->name_bytes = (size_t) read_number(&reader, 1);
    record->name = (const char *) skip(&reader, record->name_bytes);
    record->rank = (uint32_t) read_number(&reader, 4);
    record->instance = (uint32_t) read_number(&reader, 4);
    if (!reader.good || 0 == record->name_bytes || NULL != memchr(record->name, 0, record->name_bytes)) {
        goto refused;
    }
    if (OPAL_CRYPT_PROTOCOL_VERSION != record->version) {
        return OPAL_CRYPT_ERR_PEER;
    }

    /* 2. the rest of the body */
    record->method = (uint8_t) read_number(&reader, 1);
    record->kex = (uint8_t) read_number(&reader, 1);
    record->cipher = (uint8_t) read_number(&reader, 1);
    record->epoch_shift = (uint8_t) read_number(&reader, 1);
    record->flags = (uint16_t) read_number(&reader, 2);
    record->boot_id = skip(&reader, 16);
    record->node_nonce = skip(&reader, 16);
    record->created = read_number(&reader, 8);
    record->agreed_bytes = (size_t) read_number(&reader, 2);
    if (record->agreed_bytes > OPAL_CRYPT_RECORD_AGREED_MAX) {
        goto refused;
    }
    record->agreed = (const char *) skip(&reader, record->agreed_bytes);
    record->public_bytes = opal_crypt_kex_public_bytes(record->kex);
    record->public_key = skip(&reader, record->public_bytes);
    record->extensions_bytes = (size_t) read_number(&reader, 2);
    record->extensions = skip(&reader, record->extensions_bytes);
    if (!reader.good || 0 == record->public_bytes || 0 != (record->flags & ~OPAL_CRYPT_RECORD_FLAGS)
        || NULL != memchr(record->agreed, 0, record->agreed_bytes)
        || !opal_crypt_extensions_good(record->extensions, record->extensions_bytes)) {
        goto refused;
    }
    record->body = bytes;
    record->body_bytes = (size_t) (reader.at - bytes);

    /* 3. the authenticator, which ends the record */
    record->authenticator_bytes = (size_t) read_number(&reader, 4);
    record->authenticator = skip(&reader, record->authenticator_bytes);
    if (!reader.good || 0 != reader.left) {
        goto refused;
    }
    return OPAL_CRYPT_OK;

refused:
    memset(record, 0, sizeof(*record));
    return OPAL_CRYPT_ERR_AUTH;
}

size_t opal_crypt_record_pack(const opal_crypt_record_t *record, uint8_t *out, size_t capacity)
{
    size_t public_bytes = opal_crypt_kex_public_bytes(record->kex);
    size_t bytes = OPAL_CRYPT_RECORD_FIXED + record->name_bytes + record->agreed_bytes + public_bytes
                   + record->extensions_bytes;
    uint8_t *p = out;

    if (0 == record->name_bytes || record->name_bytes > OPAL_CRYPT_RECORD_NAME_MAX
        || record->agreed_bytes > OPAL_CRYPT_RECORD_AGREED_MAX || 0 == public_bytes || bytes > capacity
        || (record->extensions_bytes > 0
            && !opal_crypt_extensions_good(record->extensions, record->extensions_bytes))) {
        return 0;
    }
    opal_crypt_put16(p, record->version);
    p[2] = (uint8_t) record->name_bytes;
    memcpy(p + 3, record->name, record->name_bytes);
    p += 3 + record->name_bytes;
    opal_crypt_put32(p, record->rank);
    opal_crypt_put32(p + 4, record->instance);
    p[8] = record->method;
    p[9] = record->kex;
    p[10] = record->cipher;
    p[11] = record->epoch_shift;
    opal_crypt_put16(p + 12, record->flags);
    memcpy(p + 14, record->boot_id, 16);
    memcpy(p + 30, record->node_nonce, 16);
    opal_crypt_put64(p + 46, record->created);
    opal_crypt_put16(p + 54, (uint16_t) record->agreed_bytes);
    p += 56;
    if (record->agreed_bytes > 0) {
        memcpy(p, record->agreed, record->agreed_bytes);
        p += record->agreed_bytes;
    }
    memcpy(p, record->public_key, public_bytes);
    p += public_bytes;
    opal_crypt_put16(p, (uint16_t) record->extensions_bytes);
    if (record->extensions_bytes > 0) {
        memcpy(p + 2, record->extensions, record->extensions_bytes);
    }
    return bytes;
}

/* ---- as text ---- */

static int printable(char *out, size_t capacity, const char *in, size_t bytes)
{
    size_t i;

    for (i = 0; i < bytes && i + 1 < capacity; ++i) {
        out[i] = in[i] >= ' ' && in[i] <= '~' ? in[i] : '?';
    }
    out[i] = 0;
    return (int) i;
}

void opal_crypt_record_title(const opal_crypt_record_t *record, char *text, size_t text_bytes)
{
    char name[100];

    printable(name, sizeof(name), record->name, record->name_bytes);
    snprintf(text, text_bytes, "%s rank %lu", name, (unsigned long) record->rank);
}

/* The end of the item that starts at `from`: at ';' or the end. */
static size_t item_bytes(const char *text, size_t bytes, size_t from)
{
    size_t end = from;

    while (end < bytes && ';' != text[end]) {
        ++end;
    }
    return end - from;
}

/* The item of "name=value;name=value" with this "name=", or NULL. */
static const char *item_of(const opal_crypt_record_t *record, const char *name, size_t name_bytes, size_t *bytes)
{
    for (size_t at = 0; at < record->agreed_bytes; at += *bytes + 1) {
        *bytes = item_bytes(record->agreed, record->agreed_bytes, at);
        if (*bytes >= name_bytes && 0 == memcmp(record->agreed + at, name, name_bytes)) {
            return record->agreed + at;
        }
    }
    *bytes = 0;
    return NULL;
}

/* The first item of `one` that differs, or is missing, in the other. */
static bool first_difference(const opal_crypt_record_t *one, const opal_crypt_record_t *other,
                             const char **item, size_t *item_length, const char **others, size_t *others_length)
{
    for (size_t at = 0; at < one->agreed_bytes; at += *item_length + 1) {
        const char *equals;

        *item = one->agreed + at;
        *item_length = item_bytes(one->agreed, one->agreed_bytes, at);
        equals = memchr(*item, '=', *item_length);
        *others = item_of(other, *item, NULL == equals ? *item_length : (size_t) (equals - *item) + 1, others_length);
        if (NULL == *others || *others_length != *item_length || 0 != memcmp(*item, *others, *item_length)) {
            return true;
        }
    }
    return false;
}

static void agreed_difference(const opal_crypt_record_t *ours, const opal_crypt_record_t *theirs,
                              char *text, size_t text_bytes)
{
    const char *a = NULL, *b = NULL;
    size_t na = 0, nb = 0;
    char here[128] = "", there[128] = "";

    if (first_difference(ours, theirs, &a, &na, &b, &nb) || first_difference(theirs, ours, &b, &nb, &a, &na)) {
        printable(here, sizeof(here), a, na);
        printable(there, sizeof(there), b, nb);
        snprintf(text, text_bytes, "parameter: %s here, %s there", here[0] ? here : "nothing", there[0] ? there : "nothing");
    } else {
        snprintf(text, text_bytes, "parameter: the same ones, in another order or more than once");
    }
}

/* A record without this item comes from an earlier version or another program. */
static bool versions_differ(const opal_crypt_record_t *ours, const opal_crypt_record_t *theirs, char *text, size_t text_bytes)
{
    static const char item[] = OPAL_CRYPT_RECORD_VERSION_ITEM;
    const size_t skip = sizeof(item) - 1;
    const opal_crypt_record_t *record[2] = {ours, theirs};
    char version[2][64] = {"unknown", "unknown"};

    for (int i = 0; i < 2; ++i) {
        size_t bytes;
        const char *found = item_of(record[i], item, skip, &bytes);

        if (NULL != found) {
            printable(version[i], sizeof(version[i]), found + skip, bytes - skip);
        }
    }
    snprintf(text, text_bytes, "ompi-crypt %s here, %s there", version[0], version[1]);
    return 0 != strcmp(version[0], version[1]);
}

const char *opal_crypt_record_difference(const opal_crypt_record_t *ours,
                                         const opal_crypt_record_t *theirs,
                                         char *text, size_t text_bytes)
{
    static const char *const parameter = "record-parameter";

    if (versions_differ(ours, theirs, text, text_bytes)) {
        return "record-version";
    }
    if (ours->method != theirs->method) {
        snprintf(text, text_bytes, "authentication (crypt_auth): %s here, %s there",
                 opal_crypt_auth_name(ours->method), opal_crypt_auth_name(theirs->method));
        return "record-method";
    }
    if (ours->kex != theirs->kex) {
        snprintf(text, text_bytes, "key agreement (crypt_fips): %s here, %s there",
                 opal_crypt_kex_name(ours->kex), opal_crypt_kex_name(theirs->kex));
        return parameter;
    }
    if (ours->cipher != theirs->cipher) {
        snprintf(text, text_bytes, "cipher (crypt_key_bits): %s here, %s there",
                 opal_aead_cipher_name(ours->cipher), opal_aead_cipher_name(theirs->cipher));
        return parameter;
    }
    if (ours->epoch_shift != theirs->epoch_shift) {
        snprintf(text, text_bytes, "messages in an epoch: 2^%u here, 2^%u there",
                 ours->epoch_shift, theirs->epoch_shift);
        return parameter;
    }
    if (ours->flags != theirs->flags) {
        snprintf(text, text_bytes, "crypt_scope: %s here, %s there",
                 ours->flags & OPAL_CRYPT_RECORD_SCOPE_ALL ? "all" : "internode",
                 theirs->flags & OPAL_CRYPT_RECORD_SCOPE_ALL ? "all" : "internode");
        return parameter;
    }
    if (ours->agreed_bytes != theirs->agreed_bytes
        || 0 != memcmp(ours->agreed, theirs->agreed, ours->agreed_bytes)) {
        agreed_difference(ours, theirs, text, text_bytes);
        return parameter;
    }
    return NULL;
}
