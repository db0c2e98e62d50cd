/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * HKDF, HMAC and SHA-256 with libcrypto, and the texts of all labels.
 */
#include "kdf.h"
#include "fork.h"
#include "library.h"
#include "secmem.h"

#include <string.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

/* All texts must differ. */
static const char *const texts[OPAL_CRYPT_LABELS] = {
    [OPAL_CRYPT_LABEL_PSK_AUTH] = "ompi-crypt v1 psk auth",
    [OPAL_CRYPT_LABEL_PSK_MIX] = "ompi-crypt v1 psk mix",
    [OPAL_CRYPT_LABEL_DIRECTION] = "ompi-crypt v1 direction",
    [OPAL_CRYPT_LABEL_CHOP] = "ompi-crypt v1 chop",
    [OPAL_CRYPT_LABEL_PIECE] = "ompi-crypt v1 piece",
    [OPAL_CRYPT_LABEL_LOCAL_TOKEN] = "ompi-crypt v1 local token",
    [OPAL_CRYPT_LABEL_TRANSPORT] = "ompi-crypt v1 transport",
    [OPAL_CRYPT_LABEL_EPOCH_KEY] = "ompi-crypt v1 epoch key",
    [OPAL_CRYPT_LABEL_EPOCH_IV] = "ompi-crypt v1 epoch iv",
    [OPAL_CRYPT_LABEL_CHOP_KEY] = "ompi-crypt v1 chop key",
    [OPAL_CRYPT_LABEL_PIECE_KEY] = "ompi-crypt v1 piece key",
    [OPAL_CRYPT_LABEL_PIECE_IV] = "ompi-crypt v1 piece iv",
    [OPAL_CRYPT_LABEL_GROUP_KEY] = "ompi-crypt v1 group key",
    [OPAL_CRYPT_LABEL_GROUP_IV] = "ompi-crypt v1 group iv",
    [OPAL_CRYPT_LABEL_FILE_MAP] = "ompi-crypt v1 file map",
    [OPAL_CRYPT_LABEL_FILE_BLOCK] = "ompi-crypt v1 file block",
    [OPAL_CRYPT_LABEL_FILE_SEAL] = "ompi-crypt v1 file seal",
    [OPAL_CRYPT_LABEL_KEYSTORE_RECORD] = "ompi-crypt v1 keystore record",
    [OPAL_CRYPT_LABEL_ESCROW] = "ompi-crypt v1 escrow",
};

const char *opal_crypt_label_text(opal_crypt_label_t label)
{
    return (unsigned) label < OPAL_CRYPT_LABELS ? texts[label] : NULL;
}

/* One run of OpenSSL's HKDF.  Its parameters take pointers to non-const, but it does not write through them. */
static int hkdf(int mode, char *digest, const void *key, size_t key_bytes, const char *octets_name,
                const void *octets, size_t octets_bytes, void *out, size_t bytes)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    EVP_KDF_CTX *context = NULL == library ? NULL : EVP_KDF_CTX_new(library->hkdf);
    OSSL_PARAM parameters[5], *p = parameters;
    int rc = OPAL_CRYPT_ERR_LIBRARY;

    if (NULL == context || opal_crypt_forked()) {
        rc = NULL == context ? rc : OPAL_CRYPT_ERR_FORKED;
        EVP_KDF_CTX_free(context);
        goto zero;
    }
    opal_crypt_secret_begin();
    *p++ = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
    *p++ = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0);
    *p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *) (uintptr_t) key, key_bytes);
    if (octets_bytes > 0) {
        *p++ = OSSL_PARAM_construct_octet_string(octets_name, (void *) (uintptr_t) octets, octets_bytes);
    }
    *p = OSSL_PARAM_construct_end();
    if (1 == EVP_KDF_derive(context, out, bytes, parameters)) {
        rc = OPAL_CRYPT_OK;
    }
    EVP_KDF_CTX_free(context);
    opal_crypt_secret_end();
zero:
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_wipe(out, bytes);
    }
    return rc;
}

int opal_crypt_hkdf_extract(const void *salt, size_t salt_bytes,
                            const void *input, size_t input_bytes,
                            uint8_t prk[OPAL_CRYPT_HASH_BYTES])
{
    char digest[] = "SHA256";

    return hkdf(EVP_KDF_HKDF_MODE_EXTRACT_ONLY, digest, input, input_bytes, OSSL_KDF_PARAM_SALT,
                salt, salt_bytes, prk, OPAL_CRYPT_HASH_BYTES);
}

int opal_crypt_hkdf_expand(const uint8_t prk[OPAL_CRYPT_HASH_BYTES],
                           const void *info, size_t info_bytes, void *out, size_t bytes)
{
    char digest[] = "SHA256";

    return hkdf(EVP_KDF_HKDF_MODE_EXPAND_ONLY, digest, prk, OPAL_CRYPT_HASH_BYTES, OSSL_KDF_PARAM_INFO,
                info, info_bytes, out, bytes);
}

/* info = | bytes 2 | length 1 | "tls13 " || label | 0 1 | */
int opal_crypt_tls_expand(bool sha384, const uint8_t *secret, const char *label, void *out, size_t bytes)
{
    static const char title[] = "tls13 ";
    const size_t title_bytes = sizeof(title) - 1, label_bytes = strlen(label);
    char digest[] = "SHA256", longer[] = "SHA384";
    uint8_t info[3 + sizeof(title) - 1 + 32 + 1];

    if (label_bytes > 32 || 0 == bytes || bytes > UINT8_MAX) {
        opal_crypt_wipe(out, bytes);
        return OPAL_CRYPT_ERR_LIBRARY;
    }
    opal_crypt_put16(info, (uint16_t) bytes);
    info[2] = (uint8_t) (title_bytes + label_bytes);
    memcpy(info + 3, title, title_bytes);
    memcpy(info + 3 + title_bytes, label, label_bytes);
    info[3 + title_bytes + label_bytes] = 0;
    return hkdf(EVP_KDF_HKDF_MODE_EXPAND_ONLY, sha384 ? longer : digest, secret, sha384 ? 48 : 32,
                OSSL_KDF_PARAM_INFO, info, 3 + title_bytes + label_bytes + 1, out, bytes);
}

int opal_crypt_kdf_expand(const uint8_t secret[OPAL_CRYPT_SECRET_BYTES],
                          opal_crypt_label_t label,
                          const void *context, size_t context_bytes, void *out, size_t bytes)
{
    const char *text = opal_crypt_label_text(label);
    uint8_t info[3 + 255 + OPAL_CRYPT_KDF_CONTEXT_MAX];
    size_t text_bytes;

    if (NULL == text || context_bytes > OPAL_CRYPT_KDF_CONTEXT_MAX || 0 == bytes || bytes > OPAL_CRYPT_KDF_MAX) {
        opal_crypt_wipe(out, bytes);
        return OPAL_CRYPT_ERR_LIBRARY;
    }
    text_bytes = strlen(text);
    opal_crypt_put16(info, (uint16_t) bytes);
    info[2] = (uint8_t) text_bytes;
    memcpy(info + 3, text, text_bytes);
    if (context_bytes > 0) {
        memcpy(info + 3 + text_bytes, context, context_bytes);
    }
    return opal_crypt_hkdf_expand(secret, info, 3 + text_bytes + context_bytes, out, bytes);
}

int opal_crypt_hmac(const uint8_t key[OPAL_CRYPT_SECRET_BYTES],
                    const opal_crypt_input_t *pieces, int count,
                    uint8_t mac[OPAL_CRYPT_HASH_BYTES])
{
    const opal_crypt_library_t *library = opal_crypt_library();
    EVP_MAC_CTX *context = NULL == library ? NULL : EVP_MAC_CTX_new(library->hmac);
    char digest[] = "SHA256";
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    size_t written = 0;
    bool good;

    opal_crypt_secret_begin();
    good = NULL != context && !opal_crypt_forked() && 1 == EVP_MAC_init(context, key, OPAL_CRYPT_SECRET_BYTES, parameters);
    for (int i = 0; good && i < count; ++i) {
        good = 0 == pieces[i].bytes || 1 == EVP_MAC_update(context, pieces[i].base, pieces[i].bytes);
    }
    good = good && 1 == EVP_MAC_final(context, mac, &written, OPAL_CRYPT_HASH_BYTES)
           && OPAL_CRYPT_HASH_BYTES == written;
    EVP_MAC_CTX_free(context);
    opal_crypt_secret_end();
    if (!good) {
        opal_crypt_wipe(mac, OPAL_CRYPT_HASH_BYTES);
    }
    return good ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_LIBRARY;
}

int opal_crypt_sha256(const opal_crypt_input_t *pieces, int count,
                      uint8_t hash[OPAL_CRYPT_HASH_BYTES])
{
    const opal_crypt_library_t *library = opal_crypt_library();
    EVP_MD_CTX *context = NULL == library ? NULL : EVP_MD_CTX_new();
    bool good;

    good = NULL != context && 1 == EVP_DigestInit_ex2(context, library->sha256, NULL);
    for (int i = 0; good && i < count; ++i) {
        good = 0 == pieces[i].bytes || 1 == EVP_DigestUpdate(context, pieces[i].base, pieces[i].bytes);
    }
    good = good && 1 == EVP_DigestFinal_ex(context, hash, NULL);
    EVP_MD_CTX_free(context);
    if (!good) {
        opal_crypt_wipe(hash, OPAL_CRYPT_HASH_BYTES);
    }
    return good ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_LIBRARY;
}
