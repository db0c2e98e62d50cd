/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Signing and verifying, one scheme for each kind of key.
 */
#include "opal/mca/common/crypt/base/library.h"
#include "x509_key.h"

#include <string.h>

#include <openssl/evp.h>
#include <openssl/rsa.h>

int opal_crypt_sign_scheme(EVP_PKEY *key, const char *whose, int rc, unsigned *scheme,
                           opal_crypt_why_t *why)
{
    char group[64] = "";
    const char *type = EVP_PKEY_get0_type_name(key);

    if (EVP_PKEY_is_a(key, "ED25519")) {
        *scheme = OPAL_CRYPT_SIGN_ED25519;
        return OPAL_CRYPT_OK;
    }
    if (EVP_PKEY_is_a(key, "RSA") || EVP_PKEY_is_a(key, "RSA-PSS")) {
        if (EVP_PKEY_get_bits(key) < OPAL_CRYPT_RSA_BITS_MIN) {
            return opal_crypt_refuse(why, rc, "x509-weak-key", "%s: an RSA key of %d bits", whose,
                                     EVP_PKEY_get_bits(key));
        }
        *scheme = EVP_PKEY_is_a(key, "RSA") ? OPAL_CRYPT_SIGN_RSA_PSS : OPAL_CRYPT_SIGN_RSA_PSS_PSS;
        return OPAL_CRYPT_OK;
    }
    if (EVP_PKEY_is_a(key, "EC") && 1 == EVP_PKEY_get_group_name(key, group, sizeof(group), NULL)) {
        if (0 == strcmp(group, "prime256v1") || 0 == strcmp(group, "P-256")) {
            *scheme = OPAL_CRYPT_SIGN_ECDSA_P256;
            return OPAL_CRYPT_OK;
        }
        if (0 == strcmp(group, "secp384r1") || 0 == strcmp(group, "P-384")) {
            *scheme = OPAL_CRYPT_SIGN_ECDSA_P384;
            return OPAL_CRYPT_OK;
        }
    }
    return opal_crypt_refuse(why, rc, "x509-key-type", "%s: a key of type %s %s", whose,
                             NULL == type ? "unknown" : type, group);
}

static const char *digest_of(unsigned scheme)
{
    return OPAL_CRYPT_SIGN_ED25519 == scheme ? NULL
         : OPAL_CRYPT_SIGN_ECDSA_P384 == scheme ? "SHA384" : "SHA256";
}

/* RSA: PSS with SHA-256 throughout and a salt of 32 bytes. */
static bool set_padding(EVP_PKEY_CTX *context, unsigned scheme)
{
    if (OPAL_CRYPT_SIGN_RSA_PSS != scheme && OPAL_CRYPT_SIGN_RSA_PSS_PSS != scheme) {
        return true;
    }
    return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) > 0
           && EVP_PKEY_CTX_set_rsa_mgf1_md_name(context, "SHA256", NULL) > 0
           && EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) > 0;
}

int opal_crypt_sign(EVP_PKEY *key, unsigned scheme, const void *text, size_t text_bytes,
                    uint8_t *signature, size_t *signature_bytes)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *inner = NULL;
    bool good;

    *signature_bytes = OPAL_CRYPT_SIGNATURE_MAX;
    good = NULL != library && NULL != context
           && 1 == EVP_DigestSignInit_ex(context, &inner, digest_of(scheme), library->context,
                                         library->properties, key, NULL)
           && set_padding(inner, scheme)
           && 1 == EVP_DigestSign(context, signature, signature_bytes, text, text_bytes);
    EVP_MD_CTX_free(context);
    return good ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_LIBRARY;
}

int opal_crypt_sign_verify(EVP_PKEY *key, unsigned scheme, const void *text, size_t text_bytes,
                           const uint8_t *signature, size_t signature_bytes)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *inner = NULL;
    bool good;

    good = NULL != library && NULL != context
           && 1 == EVP_DigestVerifyInit_ex(context, &inner, digest_of(scheme), library->context,
                                           library->properties, key, NULL)
           && set_padding(inner, scheme)
           && 1 == EVP_DigestVerify(context, signature, signature_bytes, text, text_bytes);
    EVP_MD_CTX_free(context);
    return good ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH;
}
