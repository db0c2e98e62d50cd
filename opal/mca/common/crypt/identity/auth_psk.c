/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Authentication by a pre-shared key: 32 random bytes in a file.
 *
 *     psk_auth, psk_mix = Expand(psk, two labels)
 *     authenticator     = HMAC-SHA256(psk_auth, body)
 *
 * psk_mix is the salt of every pair secret, so recorded traffic stays secret even if X25519 is broken, as long as the
 * psk is not known.
 */
#include "auth.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/secret_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* In memory of crypt_secmem; the psk itself is not kept. */
typedef struct psk_state {
    uint8_t auth[OPAL_CRYPT_SECRET_BYTES];
    uint8_t mix[OPAL_CRYPT_SECRET_BYTES];
    char *path;                         /* for messages; not secret, and not in crypt_secmem */
} psk_state_t;

static int psk_path(const opal_crypt_options_t *options, char *path, size_t path_bytes,
                    opal_crypt_why_t *why)
{
    if (NULL == options->psk_file) {
        return opal_crypt_home_path("psk", path, path_bytes, why);
    }
    if (strlen(options->psk_file) >= path_bytes) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-open",
                                 "pre-shared key: the file's name is too long");
    }
    memcpy(path, options->psk_file, strlen(options->psk_file) + 1);
    return OPAL_CRYPT_OK;
}

/* Anything but "no such file" counts: an unusable file is refused with its reason, not passed over. */
static bool psk_configured(const opal_crypt_options_t *options)
{
    char path[4096];
    struct stat status;

    if (NULL != options->psk_file) {
        return true;
    }
    return OPAL_CRYPT_OK == psk_path(options, path, sizeof(path), NULL)
           && (0 == lstat(path, &status) || (ENOENT != errno && ENOTDIR != errno));
}

static void psk_close(void *state)
{
    psk_state_t *keys = state;

    if (NULL != keys) {
        free(keys->path);
    }
    opal_crypt_secmem_free(keys);
}

static int psk_open(const opal_crypt_options_t *options, void **state,
                    opal_crypt_why_t *warning, opal_crypt_why_t *why)
{
    char path[4096];
    psk_state_t *keys;
    uint8_t *psk;
    int rc;

    *state = NULL;
    rc = psk_path(options, path, sizeof(path), why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_secret_file_hex(path, "pre-shared key", options->secret_on_netfs,
                                        &psk, warning, why);
    }
    if (OPAL_CRYPT_OK != rc) {
        if (NULL != why && NULL != why->topic && 0 == strcmp(why->topic, "secret-missing")) {
            why->topic = "psk-missing";
        }
        return rc;
    }
    keys = opal_crypt_secmem_alloc(sizeof(*keys));
    if (NULL == keys || NULL == (keys->path = strdup(path))) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "no-secret-memory", "pre-shared key %s", path);
        goto free_keys;
    }
    rc = opal_crypt_kdf_expand(psk, OPAL_CRYPT_LABEL_PSK_AUTH, NULL, 0, keys->auth, sizeof(keys->auth));
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_kdf_expand(psk, OPAL_CRYPT_LABEL_PSK_MIX, NULL, 0, keys->mix, sizeof(keys->mix));
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_refuse(why, rc, "library", "HKDF");
        goto free_keys;
    }
    *state = keys;
    keys = NULL;
free_keys:
    psk_close(keys);
    opal_crypt_secmem_free(psk);
    return rc;
}

static int psk_mac(const psk_state_t *keys, const uint8_t *body, size_t body_bytes,
                   uint8_t mac[OPAL_CRYPT_HASH_BYTES])
{
    opal_crypt_input_t input = {body, body_bytes};

    return opal_crypt_hmac(keys->auth, &input, 1, mac);
}

static int psk_sign(void *state, const uint8_t *body, size_t body_bytes,
                    uint8_t *out, size_t capacity, size_t *bytes, opal_crypt_why_t *why)
{
    int rc = capacity < OPAL_CRYPT_HASH_BYTES ? OPAL_CRYPT_ERR_LIBRARY : psk_mac(state, body, body_bytes, out);

    *bytes = OPAL_CRYPT_HASH_BYTES;
    return OPAL_CRYPT_OK == rc ? rc : opal_crypt_refuse(why, rc, "library", "HMAC");
}

static int psk_verify(const void *state, const opal_crypt_claim_t *claim, opal_crypt_why_t *why)
{
    uint8_t mac[OPAL_CRYPT_HASH_BYTES];
    int rc = psk_mac(state, claim->body, claim->body_bytes, mac);

    if (OPAL_CRYPT_OK != rc) {
        return opal_crypt_refuse(why, rc, "library", "HMAC");
    }
    if (OPAL_CRYPT_HASH_BYTES != claim->authenticator_bytes
        || 0 != opal_crypt_differ(mac, claim->authenticator, sizeof(mac))) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "record-authenticator",
                               "the record was not made with the pre-shared key of this process, %.300s",
                               ((const psk_state_t *) state)->path);
    }
    opal_crypt_wipe(mac, sizeof(mac));
    return rc;
}

static const uint8_t *psk_mix(const void *state)
{
    return ((const psk_state_t *) state)->mix;
}

const opal_crypt_auth_method_t opal_crypt_auth_psk = {
    .auth = OPAL_CRYPT_AUTH_PSK,
    .name = "psk",
    .configured = psk_configured,
    .open = psk_open,
    .close = psk_close,
    .sign = psk_sign,
    .verify = psk_verify,
    .mix = psk_mix,
};
