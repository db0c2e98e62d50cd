/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Key agreement by libcrypto.
 */
#include "kex.h"
#include "opal/mca/common/crypt/base/fork.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <string.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>

const char *opal_crypt_kex_name(unsigned kex)
{
    return OPAL_CRYPT_KEX_X25519 == kex ? "X25519" : OPAL_CRYPT_KEX_P256 == kex ? "P-256" : "unknown";
}

/* ---- libcrypto's objects, each to be freed by the caller ---- */

static EVP_PKEY *x25519_private(const opal_crypt_library_t *library, const uint8_t private[32])
{
    return EVP_PKEY_new_raw_private_key_ex(library->context, "X25519", library->properties, private, 32);
}

/* A P-256 key from its point and, for our own, its scalar.  fromdata reads the scalar in place: no copy of it is left
 * behind. */
static EVP_PKEY *p256_key(const opal_crypt_library_t *library, const uint8_t public[65], uint8_t *private)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(library->context, "EC", library->properties);
    EVP_PKEY *key = NULL;
    OSSL_PARAM parameters[4], *p = parameters;
    char group[] = "P-256";

    *p++ = OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0);
    *p++ = OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *) (uintptr_t) public, 65);
    if (NULL != private) {
        *p++ = OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, private, 32);
    }
    *p = OSSL_PARAM_construct_end();

    if (NULL == context || 1 != EVP_PKEY_fromdata_init(context)
        || 1 != EVP_PKEY_fromdata(context, &key, NULL == private ? EVP_PKEY_PUBLIC_KEY : EVP_PKEY_KEYPAIR,
                                  parameters)) {
        key = NULL;
    }
    EVP_PKEY_CTX_free(context);
    return key;
}

/* ---- making a pair ---- */

static int x25519_make(const opal_crypt_library_t *library, opal_crypt_keypair_t *pair)
{
    EVP_PKEY *key = x25519_private(library, pair->private);
    size_t bytes = 32;
    bool good = NULL != key && 1 == EVP_PKEY_get_raw_public_key(key, pair->public, &bytes) && 32 == bytes;

    EVP_PKEY_free(key);
    return good ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_LIBRARY;
}

static int p256_make(const opal_crypt_library_t *library, opal_crypt_keypair_t *pair)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(library->context, library->properties, "EC", "P-256");
    OSSL_PARAM private[] = {
        OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, pair->private, 32),
        OSSL_PARAM_construct_end(),
    };
    size_t bytes = 0;
    bool good = NULL != key && 1 == EVP_PKEY_get_params(key, private)
                && 1 == EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, pair->public, 65, &bytes)
                && 65 == bytes && 0x04 == pair->public[0];

    EVP_PKEY_free(key);
    return good ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_LIBRARY;
}

static int make(opal_crypt_kex_t kex, const uint8_t *given, opal_crypt_keypair_t *pair)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    int rc;

    memset(pair, 0, sizeof(*pair));
    if (NULL == library) {
        return OPAL_CRYPT_ERR_LIBRARY;
    }
    pair->kex = kex;
    pair->private = opal_crypt_secmem_alloc(32);
    if (NULL == pair->private) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    opal_crypt_secret_begin();
    if (OPAL_CRYPT_KEX_P256 == kex) {
        rc = p256_make(library, pair);
    } else {
        if (NULL != given) {
            memcpy(pair->private, given, 32);
        } else {
            opal_crypt_random(pair->private, 32);
        }
        rc = x25519_make(library, pair);
    }
    opal_crypt_secret_end();
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_keypair_wipe(pair);
    }
    return rc;
}

int opal_crypt_keypair_make(opal_crypt_kex_t kex, opal_crypt_keypair_t *pair)
{
    return make(kex, NULL, pair);
}

int opal_crypt_keypair_from_private(const uint8_t private[32], opal_crypt_keypair_t *pair)
{
    return make(OPAL_CRYPT_KEX_X25519, private, pair);
}

void opal_crypt_keypair_wipe(opal_crypt_keypair_t *pair)
{
    opal_crypt_secmem_free(pair->private);
    opal_crypt_wipe(pair, sizeof(*pair));
}

/* ---- the shared secret ---- */

int opal_crypt_kex_derive(const opal_crypt_keypair_t *pair, const uint8_t *peer_public,
                          uint8_t secret[OPAL_CRYPT_KEX_SECRET])
{
    static const uint8_t zeros[OPAL_CRYPT_KEX_SECRET];
    const opal_crypt_library_t *library = opal_crypt_library();
    EVP_PKEY *ours = NULL, *theirs = NULL;
    EVP_PKEY_CTX *context = NULL;
    size_t bytes = OPAL_CRYPT_KEX_SECRET;
    int rc = OPAL_CRYPT_ERR_LIBRARY;

    /* The error queue belongs to the application. */
    ERR_set_mark();
    opal_crypt_secret_begin();
    if (NULL == library) {
        goto done;
    }
    if (OPAL_CRYPT_KEX_X25519 == pair->kex) {
        ours = x25519_private(library, pair->private);
        theirs = EVP_PKEY_new_raw_public_key_ex(library->context, "X25519", library->properties, peer_public, 32);
    } else {
        ours = p256_key(library, pair->public, pair->private);
        theirs = 0x04 == peer_public[0] ? p256_key(library, peer_public, NULL) : NULL;
    }
    context = NULL == ours ? NULL : EVP_PKEY_CTX_new_from_pkey(library->context, ours, library->properties);
    if (NULL == context || 1 != EVP_PKEY_derive_init(context)) {
        goto done;
    }
    /* From here on a failure is due to the peer's key: set_peer checks that it is on the curve, and X25519 itself
     * rejects a result of zeros. */
    rc = OPAL_CRYPT_ERR_AUTH;
    if (NULL != theirs && 1 == EVP_PKEY_derive_set_peer(context, theirs)
        && 1 == EVP_PKEY_derive(context, secret, &bytes) && OPAL_CRYPT_KEX_SECRET == bytes
        && 0 != opal_crypt_differ(secret, zeros, sizeof(zeros))) {
        rc = OPAL_CRYPT_OK;
    }
done:
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_wipe(secret, OPAL_CRYPT_KEX_SECRET);
    }
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(theirs);
    EVP_PKEY_free(ours);
    opal_crypt_secret_end();
    ERR_pop_to_mark();
    return rc;
}
