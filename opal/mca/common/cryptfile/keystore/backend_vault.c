/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The backend `vault`: keys of the transit engine of HashiCorp Vault or OpenBao, which never leave it.
 *
 *     label NAME, version N     transit/keys/NAME, type aes256-gcm96, its version N
 *     wrapped key, 60 bytes     of "vault:vN:BASE64", what BASE64 says: | nonce 12 | ciphertext 32 | tag 16 |
 *
 * docs/design/020-key-server.rst has the reasons.  What the server has no place for (owners, a last day, a recovery key) is
 * refused here, and what is its administrator's (revoking) is done there.
 */
#include "vault.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

enum {
    VAULT_BATCH = 128,                          /* wrapped keys in one request */
    VAULT_REMEMBER_MS = 60000,
    VAULT_SAME_MS = 5000,                       /* for the three copies of a file's map, which are judged one after the other */
    VAULT_HMAC_BYTES = OPAL_CRYPTFILE_KNOWN_BYTES + 8,          /* as the wrapped text of other backends */
    VAULT_KEY_DIGITS = 44                       /* base64 of a data key */
};

#define VAULT_DOMAIN "ompi-crypt v1 data key"

/* The last request to unwrap, with its answer or the reason of its failure; and the newest version of one label. */
typedef struct vault_cache {
    opal_cryptfile_keystore_record_t newest;    /* version 0: not known */
    int64_t until;
    char label[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1];
    uint16_t version;
    size_t count;
    int64_t same_until;
    int rc;                                     /* not OK: because of `why` */
    opal_crypt_why_t why;
    uint8_t wrapped[VAULT_BATCH][OPAL_CRYPTFILE_TRANSIT_BYTES], keys[VAULT_BATCH][OPAL_CRYPTFILE_DATA_KEY_BYTES];
} vault_cache_t;

/* ---- open and close ---- */

static void close_vault(opal_cryptfile_keystore_t *keystore)
{
    opal_cryptfile_vault_t *vault = keystore->token;

    if (NULL != vault) {
        opal_cryptfile_https_close(vault->https);
        opal_cryptfile_vault_settings_free(&vault->settings);
        opal_crypt_secmem_free(vault->token);
        opal_crypt_secmem_free(vault->cache);
        free(vault);
    }
    keystore->token = NULL;
}

static int open_vault(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_options_t *options, opal_crypt_why_t *why)
{
    opal_cryptfile_vault_t *vault = calloc(1, sizeof(*vault));

    if (NULL == vault) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    keystore->token = vault;
    vault->cache = opal_crypt_secmem_alloc(sizeof(vault_cache_t));
    if (NULL == vault->cache) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "no-secret-memory", "key server");
    }
    int rc = opal_cryptfile_vault_settings(keystore->directory, options->secret_on_netfs, &vault->settings, why);
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_https_open(&vault->settings.to, &vault->https, why) : rc;
}

/* ---- requests ---- */

/* Has the server nothing to say but that it is not there? */
static bool vault_nothing(const opal_cryptfile_vault_exchange_t *exchange)
{
    opal_cryptfile_json_t errors, name, first;

    return 404 == exchange->status && opal_cryptfile_json_member(&exchange->json, "errors", &errors) && '[' == *errors.at
           && !opal_cryptfile_json_next(&errors, &name, &first);
}

/* One request about a label, `what` of transit; the body is in the exchange. */
static int vault_ask(const opal_cryptfile_keystore_t *keystore, const char *method, const char *what, const char *label, const char *more,
                     opal_cryptfile_vault_exchange_t *exchange, opal_crypt_why_t *why)
{
    opal_cryptfile_vault_t *vault = keystore->token;
    char path[512], words[256];

    snprintf(path, sizeof(path), "%s/%s%s%s%s", vault->settings.mount, what, NULL == label ? "" : "/", NULL == label ? "" : label, more);
    int rc = opal_cryptfile_vault_call(vault, method, path, exchange, why);
    if (OPAL_CRYPT_OK != rc || 200 == exchange->status || 204 == exchange->status) {
        return rc;
    }
    opal_cryptfile_vault_words(exchange, words);
    return NULL != label && (vault_nothing(exchange) || NULL != strstr(words, "key not found"))
               ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-no-label", "%s, keystore vault %.512s", label, vault->settings.address)
               : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "%.200s: it refuses %.200s: %s", vault->settings.address, path, words);
}

static bool vault_data(const opal_cryptfile_vault_exchange_t *exchange, const char *name, opal_cryptfile_json_t *value)
{
    opal_cryptfile_json_t data;

    return opal_cryptfile_json_member(&exchange->json, "data", &data) && opal_cryptfile_json_member(&data, name, value);
}

static bool vault_data_number(const opal_cryptfile_vault_exchange_t *exchange, const char *name, uint64_t max, uint64_t *number)
{
    opal_cryptfile_json_t value;

    return vault_data(exchange, name, &value) && opal_cryptfile_json_number(&value, max, number);
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

/* "vault:vN:BASE64" of this version. */
static bool vault_text(const opal_cryptfile_json_t *value, uint16_t version, uint8_t *bytes, size_t count)
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

static int vault_strange(const opal_cryptfile_keystore_t *keystore, const char *what, opal_crypt_why_t *why)
{
    return opal_cryptfile_vault_strange(keystore->token, what, why);
}

/* ---- records ---- */

static int vault_fingerprint(opal_cryptfile_keystore_t *keystore, opal_cryptfile_keystore_record_t *record, opal_crypt_why_t *why)
{
    opal_cryptfile_vault_exchange_t *exchange = opal_cryptfile_vault_exchange();
    uint8_t known[VAULT_HMAC_BYTES];
    opal_cryptfile_json_t value;
    char end[32];

    if (NULL == exchange) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    opal_cryptfile_vault_put(exchange, "{\"input\":\"");
    opal_cryptfile_vault_put_base64(exchange, (const uint8_t *) OPAL_CRYPTFILE_KNOWN, OPAL_CRYPTFILE_KNOWN_BYTES);
    snprintf(end, sizeof(end), "\",\"key_version\":%u}", record->version);
    opal_cryptfile_vault_put(exchange, end);
    int rc = vault_ask(keystore, "POST", "hmac", record->label, "/sha2-256", exchange, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = vault_data(exchange, "hmac", &value) && vault_text(&value, record->version, known, sizeof(known))
                 ? opal_cryptfile_fingerprint_make(known, record->fingerprint) : vault_strange(keystore, "hmac", why);
    }
    opal_crypt_wipe(known, sizeof(known));
    opal_crypt_secmem_free(exchange);
    return rc;
}

/* Is it a key that only this server can use, for AES-256-GCM? */
static int vault_check_key(const opal_cryptfile_keystore_t *keystore, const char *label, const opal_cryptfile_vault_exchange_t *exchange,
                           bool *ours, opal_crypt_why_t *why)
{
    static const char *const wrong[] = {"exportable", "allow_plaintext_backup", "derived", "convergent_encryption"};
    opal_cryptfile_json_t value;

    if (!vault_data(exchange, "name", &value) || !opal_cryptfile_json_equals(&value, label) || !vault_data(exchange, "type", &value)) {
        return vault_strange(keystore, "keys", why);
    }
    *ours = opal_cryptfile_json_equals(&value, "aes256-gcm96");
    if (!*ours) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "%s: its type is not aes256-gcm96", label);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        if (vault_data(exchange, wrong[i], &value) && opal_cryptfile_json_true(&value)) {
            return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "%s: a key that is %s is not used", label, wrong[i]);
        }
    }
    return OPAL_CRYPT_OK;
}

/* The versions of a label that can be used.  `version` 0: all, or else one.  *ours false: a key for something else. */
static int vault_versions(opal_cryptfile_keystore_t *keystore, const char *label, uint16_t version, bool newest, bool *ours,
                          int (*each)(const opal_cryptfile_keystore_record_t *record, void *arg), void *arg, opal_crypt_why_t *why)
{
    opal_cryptfile_vault_exchange_t *exchange = opal_cryptfile_vault_exchange();
    opal_cryptfile_json_t rest, name, value;
    uint64_t latest = 0, least, created;
    int rc = NULL == exchange ? OPAL_CRYPT_ERR_MEMORY : vault_ask(keystore, "GET", "keys", label, "", exchange, why);

    *ours = true;
    rc = OPAL_CRYPT_OK == rc ? vault_check_key(keystore, label, exchange, ours, why) : rc;
    if (OPAL_CRYPT_OK == rc && (!vault_data(exchange, "keys", &rest) || '{' != *rest.at || !vault_data_number(exchange, "latest_version", UINT16_MAX, &latest)
                                || 0 == latest || !vault_data_number(exchange, "min_decryption_version", UINT16_MAX, &least))) {
        rc = vault_strange(keystore, "keys", why);
    }
    version = newest ? (uint16_t) latest : version;
    while (OPAL_CRYPT_OK == rc && opal_cryptfile_json_next(&rest, &name, &value)) {
        opal_cryptfile_keystore_record_t record = {.bits = 256};
        const opal_cryptfile_json_t digits = {name.at + 1, name.end - 1};
        uint64_t number;

        if (!opal_cryptfile_json_number(&digits, latest, &number) || 0 == number || !opal_cryptfile_json_number(&value, INT64_MAX, &created)) {
            rc = vault_strange(keystore, "keys", why);
        } else if (number >= least && (0 == version || version == number)) {
            strcpy(record.label, label);
            record.version = (uint16_t) number;
            record.created = (int64_t) created;
            rc = vault_fingerprint(keystore, &record, why);
            rc = OPAL_CRYPT_OK == rc ? each(&record, arg) : rc;
        }
    }
    opal_crypt_secmem_free(exchange);
    return rc;
}

static int vault_keep(const opal_cryptfile_keystore_record_t *record, void *arg)
{
    *(opal_cryptfile_keystore_record_t *) arg = *record;
    return OPAL_CRYPT_OK;
}

static int vault_read_record(opal_cryptfile_keystore_t *keystore, const char *label, uint16_t version,
                             opal_cryptfile_keystore_record_t *record, opal_crypt_why_t *why)
{
    bool ours;

    memset(record, 0, sizeof(*record));
    int rc = vault_versions(keystore, label, version, false, &ours, vault_keep, record, why);
    return OPAL_CRYPT_OK == rc && 0 == record->version
               ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-no-label", "%s, version %u, keystore vault %.512s", label, version,
                                   ((opal_cryptfile_vault_t *) keystore->token)->settings.address)
               : rc;
}

/* The newest version only: nobody asks for more of one label. */
static int vault_walk_label(opal_cryptfile_keystore_t *keystore, const char *label,
                            int (*each)(const opal_cryptfile_keystore_record_t *record, void *arg), void *arg, opal_crypt_why_t *why)
{
    vault_cache_t *cache = ((opal_cryptfile_vault_t *) keystore->token)->cache;
    opal_crypt_why_t mine = {.topic = NULL}, *to = NULL == why ? &mine : why;
    bool ours;

    if (0 != cache->newest.version && 0 == strcmp(cache->newest.label, label) && opal_crypt_milliseconds() < cache->until) {
        return each(&cache->newest, arg);
    }
    cache->newest.version = 0;
    int rc = vault_versions(keystore, label, 0, true, &ours, vault_keep, &cache->newest, to);
    if (OPAL_CRYPT_OK != rc) {
        cache->newest.version = 0;
        return NULL != to->topic && 0 == strcmp("keystore-no-label", to->topic) ? OPAL_CRYPT_OK : rc;
    }
    cache->until = opal_crypt_milliseconds() + VAULT_REMEMBER_MS;
    return 0 == cache->newest.version ? OPAL_CRYPT_OK : each(&cache->newest, arg);
}

static int vault_walk(opal_cryptfile_keystore_t *keystore, const char *label,
                      int (*each)(const opal_cryptfile_keystore_record_t *record, void *arg),
                      void (*bad)(const opal_crypt_why_t *why, void *arg), void *arg, opal_crypt_why_t *why)
{
    opal_crypt_why_t bad_why = {.topic = NULL};
    opal_cryptfile_json_t rest, name, value;
    char one[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1];
    const char *text;
    size_t bytes;

    if (NULL != label) {
        return vault_walk_label(keystore, label, each, arg, why);
    }
    opal_cryptfile_vault_exchange_t *exchange = opal_cryptfile_vault_exchange();
    int rc = NULL == exchange ? OPAL_CRYPT_ERR_MEMORY : vault_ask(keystore, "GET", "keys?list=true", NULL, "", exchange, &bad_why);
    if (OPAL_CRYPT_ERR_CONFIG == rc && NULL != exchange && vault_nothing(exchange)) {
        opal_crypt_secmem_free(exchange);
        return OPAL_CRYPT_OK;                   /* there are none */
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_refuse(why, rc, bad_why.topic, "%s", bad_why.detail);
    } else if (!vault_data(exchange, "keys", &rest) || '[' != *rest.at) {
        rc = vault_strange(keystore, "keys", why);
    }
    while (OPAL_CRYPT_OK == rc && opal_cryptfile_json_next(&rest, &name, &value)) {
        bool ours;

        if (!opal_cryptfile_json_string(&value, &text, &bytes) || bytes > OPAL_CRYPTFILE_KEY_LABEL_MAX) {
            continue;                           /* no label of ours */
        }
        snprintf(one, sizeof(one), "%.*s", (int) bytes, text);
        if (!opal_cryptfile_key_label_valid(one)) {
            continue;
        }
        rc = vault_versions(keystore, one, 0, false, &ours, each, arg, NULL == bad ? why : &bad_why);
        if (OPAL_CRYPT_ERR_CONFIG == rc && (!ours || NULL != bad)) {
            if (ours) {
                bad(&bad_why, arg);
            }
            rc = OPAL_CRYPT_OK;
        }
    }
    opal_crypt_secmem_free(exchange);
    return rc;
}

/* ---- making ---- */

static int vault_create(opal_cryptfile_keystore_t *keystore, opal_cryptfile_keystore_record_t *record, opal_crypt_why_t *why)
{
    vault_cache_t *cache = ((opal_cryptfile_vault_t *) keystore->token)->cache;
    opal_cryptfile_keystore_record_t made = {.version = 0};
    const uint16_t version = record->version;
    opal_cryptfile_json_t warnings, name, first;
    bool ours;

    if (0 != record->not_after || 0 != record->owner_count || 0 != record->escrow_bytes) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-at-server", "owners, a last day or a recovery key of %s", record->label);
    }
    opal_cryptfile_vault_exchange_t *exchange = opal_cryptfile_vault_exchange();
    if (NULL == exchange) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    opal_cryptfile_vault_put(exchange, 1 == version ? "{\"type\":\"aes256-gcm96\"}" : "{}");
    exchange->once = true;
    int rc = vault_ask(keystore, "POST", "keys", record->label, 1 == version ? "" : "/rotate", exchange, why);
    const bool warned = OPAL_CRYPT_OK == rc && opal_cryptfile_json_member(&exchange->json, "warnings", &warnings) && '[' == *warnings.at
                        && opal_cryptfile_json_next(&warnings, &name, &first);       /* it was there already */
    opal_crypt_secmem_free(exchange);
    cache->newest.version = 0;
    rc = OPAL_CRYPT_OK == rc ? vault_versions(keystore, record->label, version, 1 == version, &ours, vault_keep, &made, why) : rc;
    if (OPAL_CRYPT_OK == rc && (warned || version != made.version)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, 1 == version ? "keystore-label-exists" : "keystore-no-label", "%s, version %u",
                                 record->label, 1 == version ? made.version : version);
    }
    if (OPAL_CRYPT_OK == rc) {
        *record = made;
    }
    return rc;
}

/* ---- using ---- */

static bool vault_remembered(vault_cache_t *cache, const opal_cryptfile_keystore_record_t *record, const opal_cryptfile_unwrap_t *blobs,
                             size_t count)
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

static void vault_remember(vault_cache_t *cache, const opal_cryptfile_keystore_record_t *record, const opal_cryptfile_unwrap_t *blobs, size_t count)
{
    opal_crypt_wipe(cache->keys, sizeof(cache->keys));
    cache->count = count <= VAULT_BATCH ? count : 0;
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
    return vault_strange(keystore, "decrypt", why);
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
               ? OPAL_CRYPT_OK : vault_strange(keystore, "decrypt", why);
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
    int rc = vault_ask(keystore, "POST", "decrypt", record->label, "", exchange, &refused);
    if (OPAL_CRYPT_OK != rc && !(400 == exchange->status && vault_data(exchange, "batch_results", &rest))) {
        return opal_crypt_refuse(why, rc, NULL == refused.topic ? "library" : refused.topic, "%s", refused.detail);
    }
    if (!vault_data(exchange, "batch_results", &rest) || '[' != *rest.at) {
        return vault_strange(keystore, "decrypt", why);
    }
    rc = OPAL_CRYPT_OK;
    for (*which = 0; OPAL_CRYPT_OK == rc && *which < count; *which += OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_json_next(&rest, &name, &value) ? vault_plain(keystore, record, &value, blobs[*which].data_key, why)
                                                             : vault_strange(keystore, "decrypt", why);
    }
    return OPAL_CRYPT_OK == rc && opal_cryptfile_json_next(&rest, &name, &value) ? vault_strange(keystore, "decrypt", why) : rc;
}

static int vault_unwrap(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                        const opal_cryptfile_unwrap_t *blobs, size_t count, size_t *which, opal_crypt_why_t *why)
{
    vault_cache_t *cache = ((opal_cryptfile_vault_t *) keystore->token)->cache;
    opal_cryptfile_vault_exchange_t *exchange;
    int rc = OPAL_CRYPT_OK;

    if (vault_remembered(cache, record, blobs, count)) {
        return OPAL_CRYPT_OK == cache->rc ? cache->rc : opal_crypt_refuse(why, cache->rc, cache->why.topic, "%s", cache->why.detail);
    }
    exchange = opal_cryptfile_vault_exchange();
    if (NULL == exchange) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    for (size_t done = 0; OPAL_CRYPT_OK == rc && done < count; done += VAULT_BATCH) {
        rc = vault_decrypt(keystore, record, blobs + done, count - done < VAULT_BATCH ? count - done : VAULT_BATCH, which, exchange, why);
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

static int vault_wrap(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
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
    int rc = vault_ask(keystore, "POST", "encrypt", record->label, "", exchange, why);
    if (OPAL_CRYPT_OK == rc && !(vault_data(exchange, "ciphertext", &value) && vault_text(&value, record->version, wrapped, OPAL_CRYPTFILE_TRANSIT_BYTES))) {
        rc = vault_strange(keystore, "encrypt", why);
    }
    rc = OPAL_CRYPT_OK == rc ? vault_prove(keystore, record, data_key, wrapped, exchange, why) : rc;
    opal_crypt_secmem_free(exchange);
    return rc;
}

const opal_cryptfile_keystore_ops_t opal_cryptfile_keystore_vault_ops = {
    .name = "vault",
    .server = true,
    .open = open_vault,
    .close = close_vault,
    .walk = vault_walk,
    .read = vault_read_record,
    .create = vault_create,
    .wrap = vault_wrap,
    .unwrap = vault_unwrap,
};
