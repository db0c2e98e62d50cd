/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The backend `vault`: keys of the transit engine of HashiCorp Vault or OpenBao, which never leave it: their records, and
 * making them.
 *
 *     label NAME, version N     transit/keys/NAME, type aes256-gcm96, its version N
 *
 * docs/design/020-key-server.rst has the reasons.  What the server has no place for (owners, a last day, a recovery key) is
 * refused here, and what is its administrator's (revoking) is done there.
 */
#include "vault.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    VAULT_REMEMBER_MS = 60000,
    VAULT_HMAC_BYTES = OPAL_CRYPTFILE_KNOWN_BYTES + 8           /* as the wrapped text of other backends */
};

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
    vault->cache = opal_crypt_secmem_alloc(sizeof(opal_cryptfile_vault_cache_t));
    if (NULL == vault->cache) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "no-secret-memory", "key server");
    }
    int rc = opal_cryptfile_vault_settings(keystore->directory, options->secret_on_netfs, &vault->settings, why);
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_https_open(&vault->settings.to, &vault->https, why) : rc;
}

/* ---- records ---- */

static bool vault_data_number(const opal_cryptfile_vault_exchange_t *exchange, const char *name, uint64_t max, uint64_t *number)
{
    opal_cryptfile_json_t value;

    return opal_cryptfile_vault_data(exchange, name, &value) && opal_cryptfile_json_number(&value, max, number);
}

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
    int rc = opal_cryptfile_vault_ask(keystore, "POST", "hmac", record->label, "/sha2-256", exchange, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_vault_data(exchange, "hmac", &value) && opal_cryptfile_vault_text(&value, record->version, known, sizeof(known))
                 ? opal_cryptfile_fingerprint_make(known, record->fingerprint) : opal_cryptfile_vault_strange(keystore->token, "hmac", why);
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

    if (!opal_cryptfile_vault_data(exchange, "name", &value) || !opal_cryptfile_json_equals(&value, label) ||
        !opal_cryptfile_vault_data(exchange, "type", &value)) {
        return opal_cryptfile_vault_strange(keystore->token, "keys", why);
    }
    *ours = opal_cryptfile_json_equals(&value, "aes256-gcm96");
    if (!*ours) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "%s: its type is not aes256-gcm96", label);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        if (opal_cryptfile_vault_data(exchange, wrong[i], &value) && opal_cryptfile_json_true(&value)) {
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
    int rc = NULL == exchange ? OPAL_CRYPT_ERR_MEMORY : opal_cryptfile_vault_ask(keystore, "GET", "keys", label, "", exchange, why);

    *ours = true;
    rc = OPAL_CRYPT_OK == rc ? vault_check_key(keystore, label, exchange, ours, why) : rc;
    if (OPAL_CRYPT_OK == rc && (!opal_cryptfile_vault_data(exchange, "keys", &rest) || '{' != *rest.at ||
                                !vault_data_number(exchange, "latest_version", UINT16_MAX, &latest) || 0 == latest ||
                                !vault_data_number(exchange, "min_decryption_version", UINT16_MAX, &least))) {
        rc = opal_cryptfile_vault_strange(keystore->token, "keys", why);
    }
    version = newest ? (uint16_t) latest : version;
    while (OPAL_CRYPT_OK == rc && opal_cryptfile_json_next(&rest, &name, &value)) {
        opal_cryptfile_keystore_record_t record = {.bits = 256};
        const opal_cryptfile_json_t digits = {name.at + 1, name.end - 1};
        uint64_t number;

        if (!opal_cryptfile_json_number(&digits, latest, &number) || 0 == number || !opal_cryptfile_json_number(&value, INT64_MAX, &created)) {
            rc = opal_cryptfile_vault_strange(keystore->token, "keys", why);
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
    opal_cryptfile_vault_cache_t *cache = ((opal_cryptfile_vault_t *) keystore->token)->cache;
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
    int rc = NULL == exchange ? OPAL_CRYPT_ERR_MEMORY : opal_cryptfile_vault_ask(keystore, "GET", "keys?list=true", NULL, "", exchange, &bad_why);
    if (OPAL_CRYPT_ERR_CONFIG == rc && NULL != exchange && opal_cryptfile_vault_nothing(exchange)) {
        opal_crypt_secmem_free(exchange);
        return OPAL_CRYPT_OK;                   /* there are none */
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_refuse(why, rc, bad_why.topic, "%s", bad_why.detail);
    } else if (!opal_cryptfile_vault_data(exchange, "keys", &rest) || '[' != *rest.at) {
        rc = opal_cryptfile_vault_strange(keystore->token, "keys", why);
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
    opal_cryptfile_vault_cache_t *cache = ((opal_cryptfile_vault_t *) keystore->token)->cache;
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
    int rc = opal_cryptfile_vault_ask(keystore, "POST", "keys", record->label, 1 == version ? "" : "/rotate", exchange, why);
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

const opal_cryptfile_keystore_ops_t opal_cryptfile_keystore_vault_ops = {
    .name = "vault",
    .server = true,
    .open = open_vault,
    .close = close_vault,
    .walk = vault_walk,
    .read = vault_read_record,
    .create = vault_create,
    .wrap = opal_cryptfile_vault_wrap,
    .unwrap = opal_cryptfile_vault_unwrap,
};
