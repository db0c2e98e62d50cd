/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The text of keys in exchange, written and read.  There is one text for the same keys: order, numbers and digits
 * leave no choice, and what departs from it is refused.
 */
#include "bundle.h"
#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUNDLE_KEY_DIGITS = 2 * OPAL_CRYPTFILE_LABEL_KEY_BYTES };

static const char bundle_first[] = "ompi-crypt keys 1\n", bundle_key[] = "key ", bundle_last[] = "end\n";

/* ---- writing ---- */

int opal_cryptfile_bundle_begin(opal_cryptfile_bundle_t *bundle, int64_t exported, unsigned count)
{
    bundle->text = opal_crypt_secmem_alloc(OPAL_CRYPTFILE_BUNDLE_MAX + 1);
    if (NULL == bundle->text) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    bundle->used = (size_t) snprintf(bundle->text, OPAL_CRYPTFILE_BUNDLE_MAX, "%sexported %" PRId64 "\nkeys %u\n", bundle_first,
                                     exported, count);
    return count <= OPAL_CRYPTFILE_BUNDLE_KEYS ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_EXHAUSTED;
}

int opal_cryptfile_bundle_add(opal_cryptfile_bundle_t *bundle, const opal_cryptfile_key_file_t *content)
{
    char *at = bundle->text + bundle->used;

    if (OPAL_CRYPTFILE_BUNDLE_MAX - bundle->used < OPAL_CRYPTFILE_RECORD_TEXT_MAX + BUNDLE_KEY_DIGITS) {
        return OPAL_CRYPT_ERR_EXHAUSTED;
    }
    int bytes = opal_cryptfile_keystore_record_write(&content->record, at, OPAL_CRYPTFILE_RECORD_TEXT_MAX);
    if (bytes < 0) {
        return bytes;
    }
    at += bytes;
    at = stpcpy(at, bundle_key);
    opal_crypt_hex_write(content->key, sizeof(content->key), at);
    at[BUNDLE_KEY_DIGITS] = '\n';
    bundle->used = (size_t) (at + BUNDLE_KEY_DIGITS + 1 - bundle->text);
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_bundle_end(opal_cryptfile_bundle_t *bundle)
{
    if (OPAL_CRYPTFILE_BUNDLE_MAX - bundle->used < sizeof(bundle_last)) {
        return OPAL_CRYPT_ERR_EXHAUSTED;
    }
    memcpy(bundle->text + bundle->used, bundle_last, sizeof(bundle_last));
    bundle->used += sizeof(bundle_last) - 1;
    return OPAL_CRYPT_OK;
}

/* ---- reading ---- */

/* Step over this text. */
static bool bundle_skip(opal_cryptfile_bundle_reader_t *reader, const char *text)
{
    const size_t bytes = strlen(text);

    if ((size_t) (reader->stop - reader->at) < bytes || 0 != memcmp(reader->at, text, bytes)) {
        return false;
    }
    reader->at += bytes;
    return true;
}

/* "NAME NUMBER\n", as printf writes it. */
static bool bundle_number(opal_cryptfile_bundle_reader_t *reader, const char *name, int64_t max, int64_t *value)
{
    char line[64];
    const char *newline = memchr(reader->at, '\n', (size_t) (reader->stop - reader->at));
    const size_t bytes = NULL == newline ? 0 : (size_t) (newline - reader->at) + 1, name_bytes = strlen(name);

    if (bytes <= name_bytes + 1 || bytes > name_bytes + 22 || 0 != memcmp(reader->at, name, name_bytes)) {
        return false;
    }
    memcpy(line, reader->at, bytes);
    line[bytes - 1] = '\0';
    *value = strtoll(line + name_bytes, NULL, 10);
    snprintf(line, sizeof(line), "%s%" PRId64 "\n", name, *value);
    return *value >= 0 && *value <= max && bundle_skip(reader, line);
}

int opal_cryptfile_bundle_next(opal_cryptfile_bundle_reader_t *reader, opal_cryptfile_key_file_t *content)
{
    uint8_t fingerprint[OPAL_CRYPTFILE_FINGERPRINT_BYTES];
    size_t used, left = (size_t) (reader->stop - reader->at);
    int rc = opal_cryptfile_keystore_record_parse(reader->at, left, &used, &content->record);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    reader->at += used;
    if (8 * OPAL_CRYPTFILE_LABEL_KEY_BYTES != content->record.bits || !bundle_skip(reader, bundle_key)
        || reader->stop - reader->at < BUNDLE_KEY_DIGITS + 1 || '\n' != reader->at[BUNDLE_KEY_DIGITS]
        || !opal_crypt_hex_read(reader->at, content->key, sizeof(content->key))
        || opal_crypt_all_zero(content->key, sizeof(content->key))) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    reader->at += BUNDLE_KEY_DIGITS + 1;
    /* People compare fingerprints; a record may not show that of another key. */
    rc = opal_cryptfile_fingerprint_of_key(content->key, fingerprint);
    return OPAL_CRYPT_OK != rc ? rc
           : 0 == memcmp(fingerprint, content->record.fingerprint, sizeof(fingerprint)) ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH;
}

int opal_cryptfile_bundle_check(const char *text, size_t bytes, opal_cryptfile_key_file_t *scratch,
                                opal_cryptfile_bundle_reader_t *reader)
{
    opal_cryptfile_bundle_reader_t at = {text, text + bytes, 0, 0};
    char label[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1] = "";
    unsigned version = 0;
    int64_t count;

    if (bytes > OPAL_CRYPTFILE_BUNDLE_MAX || !bundle_skip(&at, bundle_first) || !bundle_number(&at, "exported ", INT64_MAX, &at.exported)
        || !bundle_number(&at, "keys ", OPAL_CRYPTFILE_BUNDLE_KEYS, &count) || 0 == count) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    at.count = (unsigned) count;
    *reader = at;
    for (unsigned i = 0; i < at.count; ++i) {
        int rc = opal_cryptfile_bundle_next(&at, scratch);
        int order = OPAL_CRYPT_OK == rc ? strcmp(label, scratch->record.label) : 0;

        if (OPAL_CRYPT_OK != rc || order > 0 || (0 == order && version <= scratch->record.version)) {
            return OPAL_CRYPT_ERR_AUTH;
        }
        strcpy(label, scratch->record.label);
        version = scratch->record.version;
    }
    return bundle_skip(&at, bundle_last) && at.at == at.stop ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH;
}
