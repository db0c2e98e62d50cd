/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Requests of transit about one label; wrapping and unwrapping data keys by them.
 *
 *     wrapped key, 60 bytes     of "vault:vN:BASE64", what BASE64 says: | nonce 12 | ciphertext 32 | tag 16 |
 */
#include "vault.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

enum {
    VAULT_SAME_MS = 5000,                       /* for the three copies of a file's map, which are judged one after the other */
    VAULT_KEY_DIGITS = 44                       /* base64 of a data key */
};

#define VAULT_DOMAIN "ompi-crypt v1 data key"

/* ---- requests ---- */

bool opal_cryptfile_vault_nothing(const opal_cryptfile_vault_exchange_t *exchange)
{
    opal_cryptfile_json_t errors, name, first;

    return 404 == exchange->status && opal_cryptfile_json_member(&exchange->json, "errors", &errors) && '[' == *errors.at
           && !opal_cryptfile_json_next(&errors, &name, &first);
}

int opal_cryptfile_vault_ask(const opal_cryptfile_keystore_t *keystore, const char *method, const char *what, const char *label,
                             const char *more, opal_cryptfile_vault_exchange_t *exchange, opal_crypt_why_t *why)
{
    opal_cryptfile_vault_t *vault = keystore->token;
    char path[512], words[256];

    snprintf(path, sizeof(path), "%s/%s%s%s%s", vault->settings.mount, what, NULL == label ? "" : "/", NULL == label ? "" : label, more);
    int rc = opal_cryptfile_vault_call(vault, method, path, exchange, why);
    if (OPAL_CRYPT_OK != rc || 200 == exchange->status || 204 == exchange->status) {
        return rc;
    }
    opal_cryptfile_vault_words(exchange, words);
    return NULL != label && (opal_cryptfile_vault_nothing(exchange) || NULL != strstr(words, "key not found"))
               ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-no-label", "%s, keystore vault %.512s", label, vault->settings.address)
               : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "%.200s: it refuses %.200s: %s", vault->settings.address, path, words);
}

bool opal_cryptfile_vault_data(const opal_cryptfile_vault_exchange_t *exchange, const char *name, opal_cryptfile_json_t *value)
{
    opal_cryptfile_json_t data;

    return opal_cryptfile_json_member(&exchange->json, "data", &data) && opal_cryptfile_json_member(&data, name, value);
}

/* Exactly `count` bytes from base64. */
static bool vault_bytes(const char *text, size_t digits, uint8_t *bytes, size_t count)
{
    uint8_t space[96];                          /* count, and up to two zeros for the padding */
    const size_t padding = (3 - count % 3) % 3;
    const bool good = digits == (count + 2) / 3 * 4 && digits / 4 * 3 <= sizeof(space)
                      && padding == (size_t) (('=' == text[digits - 1]) + ('=' == text[digits - 2]))
                      && (int) (count + padding) == EVP_DecodeBlock(space, (const unsigned char *) text, (int) digits);

    if (good) {
        memcpy(bytes, space, count);
    }
    opal_crypt_wipe(space, sizeof(space));
    return good;
}

bool opal_cryptfile_vault_text(const opal_cryptfile_json_t *value, uint16_t version, uint8_t *bytes, size_t count)
{
    char prefix[20];
    const char *text;
    size_t digits;
    const size_t skip = (size_t) snprintf(prefix, sizeof(prefix), "vault:v%u:", version);

    return opal_cryptfile_json_string(value, &text, &digits) && digits > skip && 0 == memcmp(text, prefix, skip) &&
           vault_bytes(text + skip, digits - skip, bytes, count);
}

static void vault_put_domain(opal_cryptfile_vault_exchange_t *exchange)
{
    opal_cryptfile_vault_put(exchange, "\"associated_data\":\"");
    opal_cryptfile_vault_put_base64(exchange, (const uint8_t *) VAULT_DOMAIN, sizeof(VAULT_DOMAIN) - 1);
    opal_cryptfile_vault_put(exchange, "\"");
}

/* ---- using ---- */

static bool vault_remembered(opal_cryptfile_vault_cache_t *cache, const opal_cryptfile_keystore_record_t *record,
                             const opal_cryptfile_unwrap_t *blobs, size_t count)
{
    if (opal_crypt_milliseconds() >= cache->same_until) {
        cache->count = 0;
        opal_crypt_wipe(cache->keys, sizeof(cache->keys));
    }
    bool all = 0 != cache->count && cache->count == count && cache->version == record->version && 0 == strcmp(cache->label, record->label);

    for (size_t i = 0; all && i < count; ++i) {
        all = 0 == memcmp(cache->wrapped[i], blobs[i].wrapped->blob + OPAL_CRYPTFILE_BLOB_WRAPPED_AT, OPAL_CRYPTFILE_TRANSIT_BYTES);
    }
    for (size_t i = 0; all && OPAL_CRYPT_OK == cache->rc && i < count; ++i) {
        memcpy(blobs[i].data_key, cache->keys[i], OPAL_CRYPTFILE_DATA_KEY_BYTES);
    }
    return all;
}

static void vault_remember(opal_cryptfile_vault_cache_t *cache, const opal_cryptfile_keystore_record_t *record,
                           const opal_cryptfile_unwrap_t *blobs, size_t count)
{
    opal_crypt_wipe(cache->keys, sizeof(cache->keys));
    cache->count = count <= OPAL_CRYPTFILE_VAULT_BATCH ? count : 0;
    cache->version = record->version;
    cache->same_until = opal_crypt_milliseconds() + VAULT_SAME_MS;
    strcpy(cache->label, record->label);
    for (size_t i = 0; i < cache->count; ++i) {
        memcpy(cache->wrapped[i], blobs[i].wrapped->blob + OPAL_CRYPTFILE_BLOB_WRAPPED_AT, OPAL_CRYPTFILE_TRANSIT_BYTES);
        memcpy(cache->keys[i], blobs[i].data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES);
    }
}

/* What the server says of one wrapped key that it did not unwrap. */
static int vault_refused(const opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                         const opal_cryptfile_json_t *error, opal_crypt_why_t *why)
{
    char words[200], key[OPAL_CRYPTFILE_RECORD_TEXT_BYTES];

    snprintf(words, sizeof(words), "%.*s", (int) (error->end - error->at) - 2, error->at + 1);
    if (NULL != strstr(words, "too old")) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-refused", "%s: the server no longer decrypts with it",
                                 opal_cryptfile_record_text(record, key));
    }
    if (NULL != strstr(words, "authentication failed") || NULL != strstr(words, "invalid ciphertext")) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "keystore-unwrap", "%s, version %u", record->label, record->version);
    }
    return opal_cryptfile_vault_strange(keystore->token, "decrypt", why);
}

static int vault_plain(const opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record, opal_cryptfile_json_t *value,
                       uint8_t *data_key, opal_crypt_why_t *why)
{
    opal_cryptfile_json_t member;
    const char *text;
    size_t digits;

    if (opal_cryptfile_json_member(value, "error", &member) && '"' == *member.at && !opal_cryptfile_json_equals(&member, "")) {
        return vault_refused(keystore, record, &member, why);
    }
    return opal_cryptfile_json_member(value, "plaintext", &member) && opal_cryptfile_json_string(&member, &text, &digits) && VAULT_KEY_DIGITS == digits &&
                   vault_bytes(text, digits, data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES)
               ? OPAL_CRYPT_OK : opal_cryptfile_vault_strange(keystore->token, "decrypt", why);
}

/* The list of answers, one for each wrapped key in their order; a request of which one fails has the status 400. */
static int vault_decrypt(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record, const opal_cryptfile_unwrap_t *blobs,
                         size_t count, size_t *which, opal_cryptfile_vault_exchange_t *exchange, opal_crypt_why_t *why)
{
    opal_cryptfile_json_t rest, name, value;
    opal_crypt_why_t refused = {.topic = NULL};
    char start[48];

    exchange->body_bytes = 0;
    for (size_t i = 0; i < count; ++i) {
        snprintf(start, sizeof(start), "%s{\"ciphertext\":\"vault:v%u:", 0 == i ? "{\"batch_input\":[" : ",", record->version);
        opal_cryptfile_vault_put(exchange, start);
        opal_cryptfile_vault_put_base64(exchange, blobs[i].wrapped->blob + OPAL_CRYPTFILE_BLOB_WRAPPED_AT, OPAL_CRYPTFILE_TRANSIT_BYTES);
        opal_cryptfile_vault_put(exchange, "\",");
        vault_put_domain(exchange);
        opal_cryptfile_vault_put(exchange, "}");
    }
    opal_cryptfile_vault_put(exchange, "]}");
    int rc = opal_cryptfile_vault_ask(keystore, "POST", "decrypt", record->label, "", exchange, &refused);
    if (OPAL_CRYPT_OK != rc && !(400 == exchange->status && opal_cryptfile_vault_data(exchange, "batch_results", &rest))) {
        return opal_crypt_refuse(why, rc, NULL == refused.topic ? "library" : refused.topic, "%s", refused.detail);
    }
    if (!opal_cryptfile_vault_data(exchange, "batch_results", &rest) || '[' != *rest.at) {
        return opal_cryptfile_vault_strange(keystore->token, "decrypt", why);
    }
    rc = OPAL_CRYPT_OK;
    for (*which = 0; OPAL_CRYPT_OK == rc && *which < count; *which += OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_json_next(&rest, &name, &value) ? vault_plain(keystore, record, &value, blobs[*which].data_key, why)
                                                             : opal_cryptfile_vault_strange(keystore->token, "decrypt", why);
    }
    return OPAL_CRYPT_OK == rc && opal_cryptfile_json_next(&rest, &name, &value) ? opal_cryptfile_vault_strange(keystore->token, "decrypt", why) : rc;
}

int opal_cryptfile_vault_unwrap(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                                const opal_cryptfile_unwrap_t *blobs, size_t count, size_t *which, opal_crypt_why_t *why)
{
    opal_cryptfile_vault_cache_t *cache = ((opal_cryptfile_vault_t *) keystore->token)->cache;
    opal_cryptfile_vault_exchange_t *exchange;
    int rc = OPAL_CRYPT_OK;

    if (vault_remembered(cache, record, blobs, count)) {
        return OPAL_CRYPT_OK == cache->rc ? cache->rc : opal_crypt_refuse(why, cache->rc, cache->why.topic, "%s", cache->why.detail);
    }
    exchange = opal_cryptfile_vault_exchange();
    if (NULL == exchange) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    for (size_t done = 0; OPAL_CRYPT_OK == rc && done < count; done += OPAL_CRYPTFILE_VAULT_BATCH) {
        const size_t left = count - done;

        rc = vault_decrypt(keystore, record, blobs + done, left < OPAL_CRYPTFILE_VAULT_BATCH ? left : OPAL_CRYPTFILE_VAULT_BATCH, which, exchange, why);
        *which += done;
    }
    opal_crypt_secmem_free(exchange);
    vault_remember(cache, record, blobs, OPAL_CRYPT_ERR_AUTH == rc || OPAL_CRYPT_ERR_MEMORY == rc ? 0 : count);
    cache->rc = rc;
    cache->why = NULL == why || OPAL_CRYPT_OK == rc ? (opal_crypt_why_t){.topic = NULL} : *why;
    return rc;
}

/* What was wrapped is unwrapped once, before a file depends on it. */
static int vault_prove(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record, const uint8_t *data_key,
                       const uint8_t *made, opal_cryptfile_vault_exchange_t *exchange, opal_crypt_why_t *why)
{
    opal_cryptfile_wrapped_t wrapped = {.bytes = OPAL_CRYPTFILE_BLOB_WRAPPED_AT + OPAL_CRYPTFILE_TRANSIT_BYTES};
    uint8_t *again = opal_crypt_secmem_alloc(OPAL_CRYPTFILE_DATA_KEY_BYTES);
    const opal_cryptfile_unwrap_t blob = {&wrapped, again};
    size_t which;

    memcpy(wrapped.blob + OPAL_CRYPTFILE_BLOB_WRAPPED_AT, made, OPAL_CRYPTFILE_TRANSIT_BYTES);
    int rc = NULL == again ? OPAL_CRYPT_ERR_MEMORY : vault_decrypt(keystore, record, &blob, 1, &which, exchange, why);
    if (OPAL_CRYPT_ERR_AUTH == rc || (OPAL_CRYPT_OK == rc && 0 != opal_crypt_differ(again, data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES))) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "%s, version %u: the server does not decrypt what it has encrypted", record->label,
                               record->version);
    }
    opal_crypt_secmem_free(again);
    return rc;
}

int opal_cryptfile_vault_wrap(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                              const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES], uint8_t *wrapped, opal_crypt_why_t *why)
{
    opal_cryptfile_vault_exchange_t *exchange = opal_cryptfile_vault_exchange();
    opal_cryptfile_json_t value;
    char middle[48];

    if (NULL == exchange) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    opal_cryptfile_vault_put(exchange, "{\"plaintext\":\"");
    opal_cryptfile_vault_put_base64(exchange, data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES);
    snprintf(middle, sizeof(middle), "\",\"key_version\":%u,", record->version);
    opal_cryptfile_vault_put(exchange, middle);
    vault_put_domain(exchange);
    opal_cryptfile_vault_put(exchange, "}");
    int rc = opal_cryptfile_vault_ask(keystore, "POST", "encrypt", record->label, "", exchange, why);
    if (OPAL_CRYPT_OK == rc && !(opal_cryptfile_vault_data(exchange, "ciphertext", &value) &&
                                 opal_cryptfile_vault_text(&value, record->version, wrapped, OPAL_CRYPTFILE_TRANSIT_BYTES))) {
        rc = opal_cryptfile_vault_strange(keystore->token, "encrypt", why);
    }
    rc = OPAL_CRYPT_OK == rc ? vault_prove(keystore, record, data_key, wrapped, exchange, why) : rc;
    opal_crypt_secmem_free(exchange);
    return rc;
}
