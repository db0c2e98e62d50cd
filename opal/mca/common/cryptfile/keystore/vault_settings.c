/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * vault.conf in the keystore's directory, a line each, "#" before comments:
 *
 *     address https://HOST[:8200] | unix:PATH        where the server is, or an agent's socket
 *     ca FILE                                        who issued the server's certificate (https)
 *     token FILE | role ID, secret-id FILE | [role NAME,] jwt FILE | [role NAME,] certificate FILE, key FILE
 *     mount NAME, auth NAME, namespace NAME          where transit and the login are
 *     timeout SECONDS                                1 to 600, for a request with its repetitions
 *
 * FILE is absolute, or below ~/.ompi-crypt.  The file says whom to trust, and is read as such.
 */
#include "vault.h"
#include "opal/mca/common/crypt/base/trust_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VAULT_CONF_MAX = 16384, VAULT_FILES = 6 };

typedef enum { VAULT_WORD, VAULT_FILE } vault_kind_t;

typedef struct vault_setting {
    const char *name;
    vault_kind_t kind;
    const char **value;
} vault_setting_t;

static int vault_refuse_setting(const char *path, const char *what, const char *value, opal_crypt_why_t *why)
{
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "%.512s: %s%.100s", path, what, value);
}

/* Part of a request's first line or header, and of JSON text: no quote, space or control character. */
static bool vault_is_word(const char *value)
{
    return '\0' != *value && strlen(value) <= 256
           && strlen(value) == strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/@");
}

/* ---- the address ---- */

/* https://HOST[:PORT][/], where HOST may be [IPv6]; cuts the text. */
static bool vault_host(char *text, opal_cryptfile_https_to_t *to)
{
    char *end = text + strcspn(text, "/"), *port;

    if ('\0' != *end && '\0' != end[1]) {
        return false;
    }
    *end = '\0';
    if ('[' == *text) {
        end = strchr(text, ']');
        if (NULL == end || ('\0' != end[1] && ':' != end[1])) {
            return false;
        }
        *end++ = '\0';
        ++text;
        port = end;
    } else {
        port = text + strcspn(text, ":");
    }
    to->port = ':' == *port ? port + 1 : "8200";
    *port = '\0';
    to->host = text;
    return '\0' != *text && strlen(text) == strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-:")
           && strlen(to->port) >= 1 && strlen(to->port) <= 5 && strlen(to->port) == strspn(to->port, "0123456789");
}

static int vault_address(opal_cryptfile_vault_settings_t *settings, const char *path, char *value, opal_crypt_why_t *why)
{
    settings->address = strdup(value);
    if (NULL == settings->address) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    if (0 == strncmp(value, "unix:/", 6)) {
        settings->to.socket = value + 5;
        return OPAL_CRYPT_OK;
    }
    return 0 == strncmp(value, "https://", 8) && vault_host(value + 8, &settings->to)
               ? OPAL_CRYPT_OK
               : vault_refuse_setting(path, "an address is https://HOST[:PORT] or unix:/PATH, not ", settings->address, why);
}

/* ---- lines ---- */

/* Tokens and JWTs begin like this: such a word is not repeated in a message. */
static bool vault_is_secret(const char *word)
{
    return 0 == strncmp(word, "hvs.", 4) || 0 == strncmp(word, "hvb.", 4) || 0 == strncmp(word, "eyJ", 3)
           || ((0 == strncmp(word, "s.", 2) || 0 == strncmp(word, "b.", 2)) && strlen(word) >= 24);
}

static int vault_set(opal_cryptfile_vault_settings_t *settings, const char *path, const vault_setting_t *known, size_t count, char *line,
                     opal_crypt_why_t *why)
{
    char *value = line + strcspn(line, " \t"), *end;

    if ('\0' != *value) {
        *value++ = '\0';
        value += strspn(value, " \t");
    }
    if (vault_is_secret(line) || vault_is_secret(value)) {
        return vault_refuse_setting(path, "a secret is in it; only the name of a file with the secret belongs here", "", why);
    }
    if (0 == strcmp(line, "address")) {
        return NULL != settings->address ? vault_refuse_setting(path, "two lines have the name ", line, why) : vault_address(settings, path, value, why);
    }
    if (0 == strcmp(line, "timeout")) {
        settings->timeout = strtoul(value, &end, 10);
        return *value >= '0' && *value <= '9' && '\0' == *end && settings->timeout >= 1 && settings->timeout <= 600
                   ? OPAL_CRYPT_OK : vault_refuse_setting(path, "a timeout has 1 to 600 seconds, not ", value, why);
    }
    for (size_t i = 0; i < count; ++i) {
        if (0 != strcmp(line, known[i].name)) {
            continue;
        }
        if (NULL != *known[i].value) {
            return vault_refuse_setting(path, "two lines have the name ", line, why);
        }
        if (VAULT_WORD == known[i].kind ? !vault_is_word(value) : '\0' == *value) {
            return vault_refuse_setting(path, "there is no usable value for ", line, why);
        }
        *known[i].value = value;
        return OPAL_CRYPT_OK;
    }
    return vault_refuse_setting(path, "there is no setting ", line, why);
}

/* Exactly one login, and all of it. */
static int vault_check_login(const opal_cryptfile_vault_settings_t *s, const char *path, opal_crypt_why_t *why)
{
    const int logins = (NULL != s->token) + (NULL != s->secret_id) + (NULL != s->jwt) + (NULL != s->to.key);

    if (NULL == s->address || (NULL == s->to.socket) != (NULL != s->to.ca)) {
        return vault_refuse_setting(path, NULL == s->address ? "there is no address" : "a ca belongs to an address with https, and to no other", "", why);
    }
    if (logins > 1 || (0 == logins && NULL == s->to.socket) || (NULL == s->to.key) != (NULL == s->to.certificate)
        || (NULL != s->secret_id && NULL == s->role) || (NULL != s->to.key && NULL != s->to.socket)) {
        return vault_refuse_setting(path, "there must be one login: token; role and secret-id; jwt; certificate and key; none with an agent's socket", "", why);
    }
    return OPAL_CRYPT_OK;
}

/* The names of files, made absolute. */
static int vault_paths(const char **files[VAULT_FILES], char *space, opal_crypt_why_t *why)
{
    for (int i = 0; i < VAULT_FILES; ++i) {
        if (NULL != *files[i] && '/' != **files[i]) {
            int rc = opal_crypt_home_path(*files[i], space, PATH_MAX, why);
            if (OPAL_CRYPT_OK != rc) {
                return rc;
            }
            *files[i] = space;
            space += PATH_MAX;
        }
    }
    return OPAL_CRYPT_OK;
}

static int vault_parse(opal_cryptfile_vault_settings_t *s, const char *path, char *text, opal_crypt_why_t *why)
{
    const vault_setting_t known[] = {
        {"mount", VAULT_WORD, &s->mount}, {"namespace", VAULT_WORD, &s->space}, {"auth", VAULT_WORD, &s->auth}, {"role", VAULT_WORD, &s->role},
        {"ca", VAULT_FILE, &s->to.ca}, {"token", VAULT_FILE, &s->token}, {"secret-id", VAULT_FILE, &s->secret_id}, {"jwt", VAULT_FILE, &s->jwt},
        {"certificate", VAULT_FILE, &s->to.certificate}, {"key", VAULT_FILE, &s->to.key}};
    const char **files[VAULT_FILES] = {&s->to.ca, &s->token, &s->secret_id, &s->jwt, &s->to.certificate, &s->to.key};
    char *rest = text, *line;
    int rc = OPAL_CRYPT_OK;

    while (OPAL_CRYPT_OK == rc && NULL != (line = strsep(&rest, "\n"))) {
        line += strspn(line, " \t");
        for (size_t bytes = strlen(line); bytes > 0 && NULL != strchr(" \t\r", line[bytes - 1]); --bytes) {
            line[bytes - 1] = '\0';
        }
        if ('\0' != *line && '#' != *line) {
            rc = vault_set(s, path, known, sizeof(known) / sizeof(known[0]), line, why);
        }
    }
    rc = OPAL_CRYPT_OK == rc ? vault_check_login(s, path, why) : rc;
    s->mount = NULL == s->mount ? "transit" : s->mount;
    s->auth = NULL != s->auth ? s->auth : NULL != s->secret_id ? "approle" : NULL != s->jwt ? "jwt" : "cert";
    return OPAL_CRYPT_OK == rc ? vault_paths(files, text + VAULT_CONF_MAX + 1, why) : rc;
}

int opal_cryptfile_vault_settings(const char *directory, bool allow_network, opal_cryptfile_vault_settings_t *settings,
                                  opal_crypt_why_t *why)
{
    opal_crypt_trust_file_t file;
    char path[PATH_MAX];

    *settings = (opal_cryptfile_vault_settings_t){.timeout = 30, .to.allow_network = allow_network};
    snprintf(path, sizeof(path), "%s/vault.conf", directory);
    int rc = opal_crypt_trust_file_read(path, "settings", "keystore-vault", allow_network, &file, why);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    if (file.count > VAULT_CONF_MAX || strlen(file.bytes) != file.count) {
        free(file.bytes);
        return vault_refuse_setting(path, "this is not a file of settings", "", why);
    }
    settings->text = calloc(1, VAULT_CONF_MAX + 1 + VAULT_FILES * PATH_MAX);
    rc = NULL == settings->text ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;
    if (OPAL_CRYPT_OK == rc) {
        memcpy(settings->text, file.bytes, file.count);
        rc = vault_parse(settings, path, settings->text, why);
    }
    free(file.bytes);
    if (OPAL_CRYPT_OK != rc) {
        opal_cryptfile_vault_settings_free(settings);
    }
    return rc;
}

void opal_cryptfile_vault_settings_free(opal_cryptfile_vault_settings_t *settings)
{
    free(settings->address);
    free(settings->text);
    settings->address = settings->text = NULL;
}
