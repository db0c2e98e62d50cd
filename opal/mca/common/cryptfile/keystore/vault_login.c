/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The token of a key server: from a file, read for each request; from a login, renewed after two thirds of its lease; or
 * none, as the agent behind a Unix socket adds its own.
 */
#include "vault.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdio.h>
#include <string.h>

enum { VAULT_YOUNG_MS = 60000 };                /* a token of this age that is refused is not asked for again */

/* Read a secret of one line: characters that need no escape in a header or in JSON. */
static int vault_secret(const opal_cryptfile_vault_t *vault, const char *path, const char *what, size_t max, char **secret,
                        opal_crypt_why_t *why)
{
    opal_crypt_secret_file_t file;
    int rc = opal_crypt_secret_file_read(path, what, 1, max, vault->settings.to.allow_network, &file, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    size_t bytes = file.count - ('\n' == file.bytes[file.count - 1]);
    bool good = bytes > 0;
    for (size_t i = 0; i < bytes; ++i) {
        good = good && file.bytes[i] > 0x20 && file.bytes[i] < 0x7f && '"' != file.bytes[i] && '\\' != file.bytes[i];
    }
    if (!good) {
        opal_crypt_secmem_free(file.bytes);
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "%s %.512s: not one line of printable characters", what, path);
    }
    file.bytes[bytes] = '\0';
    *secret = (char *) file.bytes;
    return OPAL_CRYPT_OK;
}

static void vault_forget(opal_cryptfile_vault_t *vault)
{
    opal_crypt_secmem_free(vault->token);
    vault->token = NULL;
    vault->renew_at = vault->ends_at = 0;
    vault->renewable = false;
}

/* The token of an answer to a login or renewal. */
static int vault_take_token(opal_cryptfile_vault_t *vault, const opal_cryptfile_vault_exchange_t *exchange, const char *path,
                            opal_crypt_why_t *why)
{
    opal_cryptfile_json_t auth, value;
    const char *text;
    uint64_t lease = 0;
    size_t bytes;
    char words[256];

    if (200 != exchange->status) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "%.200s: it refuses the login (%.200s): %s",
                                 vault->settings.address, path, opal_cryptfile_vault_words(exchange, words));
    }
    if (!opal_cryptfile_json_member(&exchange->json, "auth", &auth) || !opal_cryptfile_json_member(&auth, "lease_duration", &value) ||
        !opal_cryptfile_json_number(&value, UINT32_MAX, &lease) || !opal_cryptfile_json_member(&auth, "client_token", &value) ||
        !opal_cryptfile_json_string(&value, &text, &bytes) || 0 == bytes || bytes >= OPAL_CRYPTFILE_VAULT_TOKEN_MAX) {
        return opal_cryptfile_vault_strange(vault, path, why);
    }
    for (size_t i = 0; i < bytes; ++i) {
        if (text[i] <= 0x20 || text[i] >= 0x7f) {
            return opal_cryptfile_vault_strange(vault, path, why);
        }
    }
    char *token = opal_crypt_secmem_alloc(bytes + 1);
    if (NULL == token) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    memcpy(token, text, bytes);
    vault_forget(vault);
    vault->token = token;
    vault->renewable = opal_cryptfile_json_member(&auth, "renewable", &value) && opal_cryptfile_json_true(&value);
    vault->renew_at = 0 == lease ? 0 : opal_crypt_milliseconds() + (int64_t) lease * 667;
    vault->ends_at = opal_crypt_milliseconds() + (int64_t) lease * 1000;
    return OPAL_CRYPT_OK;
}

static void vault_put_member(opal_cryptfile_vault_exchange_t *exchange, const char *name, const char *value)
{
    opal_cryptfile_vault_put(exchange, 0 == exchange->body_bytes ? "{\"" : ",\"");
    opal_cryptfile_vault_put(exchange, name);
    opal_cryptfile_vault_put(exchange, "\":\"");
    opal_cryptfile_vault_put(exchange, value);
    opal_cryptfile_vault_put(exchange, "\"");
}

static int vault_login(opal_cryptfile_vault_t *vault, opal_crypt_why_t *why)
{
    const opal_cryptfile_vault_settings_t *s = &vault->settings;
    opal_cryptfile_vault_exchange_t *exchange = opal_cryptfile_vault_exchange();
    char path[300], *secret = NULL;
    bool forbidden = false;
    int rc = NULL == exchange ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;

    snprintf(path, sizeof(path), "auth/%s/login", s->auth);
    if (OPAL_CRYPT_OK == rc && NULL != s->secret_id) {
        rc = vault_secret(vault, s->secret_id, "secret id", OPAL_CRYPTFILE_VAULT_TOKEN_MAX, &secret, why);
    } else if (OPAL_CRYPT_OK == rc && NULL != s->jwt) {
        rc = vault_secret(vault, s->jwt, "JWT", OPAL_CRYPTFILE_VAULT_JWT_MAX, &secret, why);
    }
    if (OPAL_CRYPT_OK == rc) {
        if (NULL != s->role) {
            vault_put_member(exchange, NULL != s->secret_id ? "role_id" : NULL != s->jwt ? "role" : "name", s->role);
        }
        if (NULL != secret) {
            vault_put_member(exchange, NULL != s->secret_id ? "secret_id" : "jwt", secret);
        }
        opal_cryptfile_vault_put(exchange, 0 == exchange->body_bytes ? "{}" : "}");
        exchange->once = true;                  /* a secret ID may be good for one login */
        rc = opal_cryptfile_vault_call_with(vault, NULL, "POST", path, exchange, &forbidden, why);
    }
    opal_crypt_secmem_free(secret);
    vault->made_at = opal_crypt_milliseconds();
    rc = OPAL_CRYPT_OK == rc ? vault_take_token(vault, exchange, path, why) : rc;
    opal_crypt_secmem_free(exchange);
    return rc;
}

/* False: the token has reached the end of its life, or the policy has no renewal. */
static bool vault_renew(opal_cryptfile_vault_t *vault)
{
    static const char path[] = "auth/token/renew-self";
    opal_cryptfile_vault_exchange_t *exchange = opal_cryptfile_vault_exchange();
    bool forbidden = false;
    int rc = NULL == exchange ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;

    if (OPAL_CRYPT_OK == rc) {
        opal_cryptfile_vault_put(exchange, "{}");
        rc = opal_cryptfile_vault_call_with(vault, vault->token, "POST", path, exchange, &forbidden, NULL);
    }
    rc = OPAL_CRYPT_OK == rc ? vault_take_token(vault, exchange, path, NULL) : rc;
    opal_crypt_secmem_free(exchange);
    return OPAL_CRYPT_OK == rc && 0 != vault->renew_at;
}

/* Have a token of a login.  One that can be neither renewed nor replaced is good until its lease ends; try again half way. */
static int vault_logged_in(opal_cryptfile_vault_t *vault, opal_crypt_why_t *why)
{
    const bool old = NULL != vault->token && 0 != vault->renew_at && opal_crypt_milliseconds() >= vault->renew_at;

    if (NULL != vault->token && (!old || (vault->renewable && vault_renew(vault)))) {
        return OPAL_CRYPT_OK;
    }
    int rc = vault_login(vault, why);
    const int64_t now = opal_crypt_milliseconds(), left = vault->ends_at - now;
    if (OPAL_CRYPT_OK != rc && NULL != vault->token && left > 0) {
        vault->renew_at = now + (left + 1) / 2;
        rc = OPAL_CRYPT_OK;
    }
    return rc;
}

int opal_cryptfile_vault_call(opal_cryptfile_vault_t *vault, const char *method, const char *path,
                              opal_cryptfile_vault_exchange_t *exchange, opal_crypt_why_t *why)
{
    const opal_cryptfile_vault_settings_t *s = &vault->settings;
    const bool login = NULL != s->secret_id || NULL != s->jwt || NULL != s->to.key;
    bool forbidden = false;
    char *token = NULL;
    int rc = OPAL_CRYPT_OK;

    vault->patience = opal_crypt_patience((int64_t) s->timeout * 1000);
    if (!login) {
        rc = NULL == s->token ? rc : vault_secret(vault, s->token, "token", OPAL_CRYPTFILE_VAULT_TOKEN_MAX, &token, why);
        rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_vault_call_with(vault, token, method, path, exchange, &forbidden, why) : rc;
        opal_crypt_secmem_free(token);
        return rc;
    }
    rc = vault_logged_in(vault, why);
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_vault_call_with(vault, vault->token, method, path, exchange, &forbidden, why) : rc;
    if (forbidden && opal_crypt_milliseconds() - vault->made_at > VAULT_YOUNG_MS) {     /* it may have been revoked */
        vault_forget(vault);
        forbidden = false;
        rc = vault_login(vault, why);
        rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_vault_call_with(vault, vault->token, method, path, exchange, &forbidden, why) : rc;
    }
    return rc;
}
