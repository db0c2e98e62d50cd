/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A key server, HashiCorp Vault or OpenBao: its settings, the token, one request of its API.
 *
 *     backend_vault.c: records, making
 *            |
 *            v
 *     vault_transit.c: using --> vault_call.c: retries, errors --> https.c
 *                                     |  ^
 *                                     v  |
 *                                vault_login.c: the token
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

enum { OPAL_CRYPTFILE_VAULT_BATCH = 128 };      /* wrapped keys in one request */

/* The last request to unwrap, with its answer or the reason of its failure; and the newest version of one label.  In secret memory. */
typedef struct opal_cryptfile_vault_cache {
    opal_cryptfile_keystore_record_t newest;    /* version 0: not known */
    int64_t until;
    char label[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1];
    uint16_t version;
    size_t count;
    int64_t same_until;
    int rc;                                     /* not OK: because of `why` */
    opal_crypt_why_t why;
    uint8_t wrapped[OPAL_CRYPTFILE_VAULT_BATCH][OPAL_CRYPTFILE_TRANSIT_BYTES], keys[OPAL_CRYPTFILE_VAULT_BATCH][OPAL_CRYPTFILE_DATA_KEY_BYTES];
} opal_cryptfile_vault_cache_t;

typedef struct opal_cryptfile_vault {
    opal_cryptfile_vault_settings_t settings;
    opal_cryptfile_https_t *https;
    char *token;                        /* secret memory; of a login */
    bool renewable;
    int64_t made_at, renew_at, ends_at; /* monotonic milliseconds; renew_at 0: never */
    opal_crypt_patience_t patience;     /* of a call, with its login and all repetitions */
    opal_cryptfile_vault_cache_t *cache;
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

/* ---- transit (cryptfile/keystore/vault_transit.c) ---- */
/* One request, `what` of transit, about a label (NULL: about all); the body is in the exchange. */
int opal_cryptfile_vault_ask(const opal_cryptfile_keystore_t *keystore, const char *method, const char *what, const char *label,
                             const char *more, opal_cryptfile_vault_exchange_t *exchange, opal_crypt_why_t *why);
/* Has the server nothing to say but that it is not there? */
bool opal_cryptfile_vault_nothing(const opal_cryptfile_vault_exchange_t *exchange);
/* A member of the answer's "data". */
bool opal_cryptfile_vault_data(const opal_cryptfile_vault_exchange_t *exchange, const char *name, opal_cryptfile_json_t *value);
/* "vault:vN:BASE64" of this version. */
bool opal_cryptfile_vault_text(const opal_cryptfile_json_t *value, uint16_t version, uint8_t *bytes, size_t count);
/* As in keystore_object.h. */
int opal_cryptfile_vault_wrap(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                              const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES], uint8_t *wrapped, opal_crypt_why_t *why);
int opal_cryptfile_vault_unwrap(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                                const opal_cryptfile_unwrap_t *blobs, size_t count, size_t *which, opal_crypt_why_t *why);

#endif
