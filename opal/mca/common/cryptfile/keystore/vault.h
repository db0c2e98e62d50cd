/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A key server, HashiCorp Vault or OpenBao: its settings, the token, one request of its API.
 *
 *     backend_vault.c --> vault_call.c: retries, errors --> https.c
 *                              |  ^
 *                              v  |
 *                         vault_login.c: the token
 *
 * Threads: one at a time.
 */
#ifndef OPAL_CRYPTFILE_KEYSTORE_VAULT_H
#define OPAL_CRYPTFILE_KEYSTORE_VAULT_H

#include "https.h"
#include "json.h"
#include "keystore_object.h"

#define OPAL_CRYPTFILE_VAULT_TOKEN_MAX  8192
#define OPAL_CRYPTFILE_VAULT_JWT_MAX    16384

/* vault.conf (cryptfile/keystore/vault_settings.c); NULL where not given. */
typedef struct opal_cryptfile_vault_settings {
    opal_cryptfile_https_to_t to;
    char *address;                      /* as it was written, for messages */
    const char *mount, *space, *auth, *role;
    const char *token, *secret_id, *jwt;        /* paths of secret files */
    uint64_t timeout;                   /* seconds */
    char *text;                         /* what the names above point into */
} opal_cryptfile_vault_settings_t;

int opal_cryptfile_vault_settings(const char *directory, bool allow_network, opal_cryptfile_vault_settings_t *settings,
                                  opal_crypt_why_t *why);
void opal_cryptfile_vault_settings_free(opal_cryptfile_vault_settings_t *settings);

/* One request and its answer; in secret memory. */
typedef struct opal_cryptfile_vault_exchange {
    size_t body_bytes;                  /* larger than the body: it did not fit */
    unsigned status;                    /* of the answer: 200, 204, 400 or 404 */
    bool once;                          /* not to be carried out twice */
    opal_cryptfile_json_t json;         /* an object; {} if the answer is empty */
    char body[32768], request[49152], answer[65536 + 1];
} opal_cryptfile_vault_exchange_t;

typedef struct opal_cryptfile_vault {
    opal_cryptfile_vault_settings_t settings;
    opal_cryptfile_https_t *https;
    char *token;                        /* secret memory; of a login */
    bool renewable;
    int64_t made_at, renew_at, ends_at; /* monotonic milliseconds; renew_at 0: never */
    opal_crypt_patience_t patience;     /* of a call, with its login and all repetitions */
    void *cache;                        /* of the backend */
} opal_cryptfile_vault_t;

/* NULL without secret memory. */
opal_cryptfile_vault_exchange_t *opal_cryptfile_vault_exchange(void);
/* Compose the body. */
void opal_cryptfile_vault_put(opal_cryptfile_vault_exchange_t *exchange, const char *text);
void opal_cryptfile_vault_put_base64(opal_cryptfile_vault_exchange_t *exchange, const uint8_t *bytes, size_t count);

/* Send it and get an answer; `token` may be NULL.  The API's refusals (400 and 404), whose meaning depends on the request, are
 * the caller's to see.  ERR_PEER: the server did not answer, or was busy, until the end of our patience.  ERR_CONFIG: another answer, or
 * (topic "keystore-refused") a 403. */
int opal_cryptfile_vault_call_with(opal_cryptfile_vault_t *vault, const char *token, const char *method, const char *path,
                                   opal_cryptfile_vault_exchange_t *exchange, bool *forbidden, opal_crypt_why_t *why);
/* The same with the token, after a login if there is need of one (cryptfile/keystore/vault_login.c). */
int opal_cryptfile_vault_call(opal_cryptfile_vault_t *vault, const char *method, const char *path,
                              opal_cryptfile_vault_exchange_t *exchange, opal_crypt_why_t *why);

/* The server's own words for an error, harmless; "no reason" if there are none. */
const char *opal_cryptfile_vault_words(const opal_cryptfile_vault_exchange_t *exchange, char text[256]);
/* Refuse an answer that departs from the API. */
int opal_cryptfile_vault_strange(const opal_cryptfile_vault_t *vault, const char *path, opal_crypt_why_t *why);

#endif
