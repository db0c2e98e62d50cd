/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Escrow: a data key also wrapped under a recovery key, so that a file can be
 * read if its label is lost.  The recovery key's private half is needed only
 * then, and is best kept offline.
 *
 *     RSA  | 1 | key id 8 | RSAES-OAEP, SHA-256, MGF1-SHA-256, no label |
 *     EC   | 2 | key id 8 | ephemeral point 65 | RFC 3394 under
 *            Expand(HKDF-Extract(32 zero bytes, ECDH x), 'escrow', key id | point) 40 |
 *
 * key id = the first 8 bytes of SHA-256(SubjectPublicKeyInfo).
 */
#include "opal/mca/common/crypt/base/fork.h"
#include "keystore_object.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/trust_file.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/decoder.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

enum { ESCROW_RSA = 1, ESCROW_EC = 2, KEY_ID_BYTES = 8, POINT_BYTES = 65, X_BYTES = 32, BODY_AT = 1 + KEY_ID_BYTES };

/* The escrow that the key can be used for: ESCROW_RSA, ESCROW_EC, or 0. */
static int kind_of(const EVP_PKEY *key)
{
    char group[32] = "";

    if (EVP_PKEY_is_a(key, "RSA")) {
        return EVP_PKEY_get_bits(key) >= 2048 && EVP_PKEY_get_bits(key) <= 4096 ? ESCROW_RSA : 0;
    }
    if (EVP_PKEY_is_a(key, "EC") &&
        1 == EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof(group), NULL) &&
        (0 == strcmp(group, "prime256v1") || 0 == strcmp(group, "P-256"))) {
        return ESCROW_EC;
    }
    return 0;
}

static int key_id(const uint8_t *spki, size_t spki_bytes, uint8_t id[KEY_ID_BYTES])
{
    opal_crypt_input_t piece = {spki, spki_bytes};
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    int rc = opal_crypt_sha256(&piece, 1, hash);

    memcpy(id, hash, KEY_ID_BYTES);
    return rc;
}

static EVP_PKEY *parse_public(const opal_crypt_trust_file_t *file)
{
    BIO *stream = BIO_new_mem_buf(file->bytes, (int) file->count);
    EVP_PKEY *key = NULL == stream ? NULL : PEM_read_bio_PUBKEY(stream, NULL, NULL, NULL);

    BIO_free(stream);
    return key;
}

int opal_cryptfile_escrow_key(const opal_cryptfile_keystore_t *keystore, const char *public_pem,
                              uint8_t spki[OPAL_CRYPTFILE_SPKI_MAX], uint16_t *bytes, opal_crypt_why_t *why)
{
    opal_crypt_trust_file_t file;
    uint8_t *der = NULL;
    int rc = opal_crypt_trust_file_read(public_pem, "recovery key", "keystore-recovery-key", keystore->secret_on_netfs,
                                        &file, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    EVP_PKEY *key = parse_public(&file);
    int der_bytes = NULL == key || 0 == kind_of(key) ? -1 : i2d_PUBKEY(key, &der);
    if (der_bytes < 1 || der_bytes > OPAL_CRYPTFILE_SPKI_MAX) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-recovery-key", "%.512s: %s", public_pem,
                               NULL == key ? "it holds no public key in PEM"
                                           : "it is neither RSA of 2048 to 4096 bits nor EC P-256");
    } else {
        memcpy(spki, der, (size_t) der_bytes);
        *bytes = (uint16_t) der_bytes;
    }
    OPENSSL_free(der);
    EVP_PKEY_free(key);
    opal_crypt_wipe(file.bytes, file.count);        /* it may be the private half, by mistake */
    free(file.bytes);
    return rc;
}

/* ---- RSA ---- */

static EVP_PKEY_CTX *oaep_context(EVP_PKEY *key, bool wrapping)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    EVP_PKEY_CTX *context = NULL == library ? NULL : EVP_PKEY_CTX_new_from_pkey(library->context, key, library->properties);

    if (NULL != context && 1 == (wrapping ? EVP_PKEY_encrypt_init(context) : EVP_PKEY_decrypt_init(context)) &&
        1 == EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_OAEP_PADDING) &&
        1 == EVP_PKEY_CTX_set_rsa_oaep_md_name(context, "SHA256", NULL) &&
        1 == EVP_PKEY_CTX_set_rsa_mgf1_md_name(context, "SHA256", NULL)) {
        return context;
    }
    EVP_PKEY_CTX_free(context);
    return NULL;
}

static int rsa_wrap(EVP_PKEY *key, const uint8_t *data_key, uint8_t *body, size_t max, size_t *bytes)
{
    EVP_PKEY_CTX *context = oaep_context(key, true);
    int rc = OPAL_CRYPT_ERR_LIBRARY;

    *bytes = max;
    if (NULL != context && 1 == EVP_PKEY_encrypt(context, body, bytes, data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES)) {
        rc = OPAL_CRYPT_OK;
    }
    EVP_PKEY_CTX_free(context);
    return rc;
}

static int rsa_unwrap(EVP_PKEY *key, const uint8_t *body, size_t bytes, uint8_t *data_key)
{
    EVP_PKEY_CTX *context = oaep_context(key, false);
    uint8_t *plain = opal_crypt_secmem_alloc(512);
    size_t plain_bytes = 512;
    int rc = OPAL_CRYPT_ERR_AUTH;

    if (NULL != context && NULL != plain && 1 == EVP_PKEY_decrypt(context, plain, &plain_bytes, body, bytes) &&
        OPAL_CRYPTFILE_DATA_KEY_BYTES == plain_bytes) {
        memcpy(data_key, plain, OPAL_CRYPTFILE_DATA_KEY_BYTES);
        rc = OPAL_CRYPT_OK;
    }
    opal_crypt_secmem_free(plain);
    EVP_PKEY_CTX_free(context);
    return rc;
}

/* ---- EC ---- */

/* The wrapping key from ECDH of `own` and `peer`, in secret memory. */
static int ec_key(EVP_PKEY *own, EVP_PKEY *peer, const uint8_t *id_and_point, uint8_t **key)
{
    static const uint8_t zeros[OPAL_CRYPT_HASH_BYTES];
    const opal_crypt_library_t *library = opal_crypt_library();
    EVP_PKEY_CTX *context = NULL == library ? NULL : EVP_PKEY_CTX_new_from_pkey(library->context, own, library->properties);
    uint8_t *secret = opal_crypt_secmem_alloc(X_BYTES + 2 * OPAL_CRYPT_HASH_BYTES);
    size_t bytes = X_BYTES;
    int rc = OPAL_CRYPT_ERR_AUTH;

    if (NULL != context && NULL != secret && 1 == EVP_PKEY_derive_init(context) &&
        1 == EVP_PKEY_derive_set_peer(context, peer) && 1 == EVP_PKEY_derive(context, secret, &bytes) &&
        X_BYTES == bytes) {
        uint8_t *prk = secret + X_BYTES;
        rc = opal_crypt_hkdf_extract(zeros, sizeof(zeros), secret, X_BYTES, prk);
        if (OPAL_CRYPT_OK == rc) {
            rc = opal_crypt_kdf_expand(prk, OPAL_CRYPT_LABEL_ESCROW, id_and_point, KEY_ID_BYTES + POINT_BYTES,
                                       secret, OPAL_CRYPT_SECRET_BYTES);
        }
    }
    EVP_PKEY_CTX_free(context);
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_secmem_free(secret);
        return rc;
    }
    *key = secret;
    return OPAL_CRYPT_OK;
}

static int ec_wrap(EVP_PKEY *peer, const uint8_t *data_key, uint8_t *id_and_body, size_t *bytes)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    uint8_t *point = id_and_body + KEY_ID_BYTES, *key = NULL;
    size_t point_bytes = 0;
    EVP_PKEY *ephemeral = NULL == library ? NULL
                                          : EVP_PKEY_Q_keygen(library->context, library->properties, "EC", "P-256");
    int rc = OPAL_CRYPT_ERR_LIBRARY;

    if (NULL != ephemeral &&
        1 == EVP_PKEY_get_octet_string_param(ephemeral, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, point, POINT_BYTES,
                                             &point_bytes) &&
        POINT_BYTES == point_bytes) {
        rc = ec_key(ephemeral, peer, id_and_body, &key);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_rfc3394_wrap(key, data_key, point + POINT_BYTES);
        *bytes = POINT_BYTES + OPAL_CRYPTFILE_RFC3394_BYTES;
    }
    opal_crypt_secmem_free(key);
    EVP_PKEY_free(ephemeral);
    return rc;
}

static int ec_unwrap(EVP_PKEY *own, const uint8_t *id_and_body, size_t bytes, uint8_t *data_key)
{
    const uint8_t *point = id_and_body + KEY_ID_BYTES;
    EVP_PKEY *ephemeral = NULL;
    uint8_t *key = NULL;
    int rc = OPAL_CRYPT_ERR_AUTH;

    if (POINT_BYTES + OPAL_CRYPTFILE_RFC3394_BYTES != bytes || 4 != point[0]) {
        return rc;
    }
    ephemeral = EVP_PKEY_new();
    if (NULL != ephemeral && 1 == EVP_PKEY_copy_parameters(ephemeral, own) &&
        1 == EVP_PKEY_set1_encoded_public_key(ephemeral, point, POINT_BYTES)) {
        rc = ec_key(own, ephemeral, id_and_body, &key);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_rfc3394_unwrap(key, point + POINT_BYTES, data_key);
    }
    opal_crypt_secmem_free(key);
    EVP_PKEY_free(ephemeral);
    return rc;
}

/* ---- both ---- */

int opal_cryptfile_escrow_wrap(const uint8_t *spki, size_t spki_bytes,
                               const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES],
                               uint8_t escrow[OPAL_CRYPTFILE_ESCROW_MAX], uint16_t *bytes)
{
    const uint8_t *at = spki;
    EVP_PKEY *key = d2i_PUBKEY(NULL, &at, (long) spki_bytes);
    int kind = NULL == key ? 0 : kind_of(key);
    int rc = 0 == kind ? OPAL_CRYPT_ERR_CONFIG : key_id(spki, spki_bytes, escrow + 1);
    size_t body_bytes = 0;

    if (OPAL_CRYPT_OK == rc) {
        escrow[0] = (uint8_t) kind;
        opal_crypt_secret_begin();
        rc = ESCROW_RSA == kind ? rsa_wrap(key, data_key, escrow + BODY_AT, OPAL_CRYPTFILE_ESCROW_MAX - BODY_AT, &body_bytes)
                                : ec_wrap(key, data_key, escrow + 1, &body_bytes);
        opal_crypt_secret_end();
    }
    *bytes = OPAL_CRYPT_OK == rc ? (uint16_t) (BODY_AT + body_bytes) : 0;
    EVP_PKEY_free(key);
    return rc;
}

/* Read the recovery key, and check that the escrow was made for it. */
static int recovery_key(const char *private_pem, bool secret_on_netfs, const uint8_t *escrow, EVP_PKEY **key,
                        opal_crypt_why_t *why)
{
    opal_crypt_secret_file_t file;
    uint8_t *der = NULL, id[KEY_ID_BYTES];
    int rc = opal_crypt_secret_file_read(private_pem, "recovery key", 1, 16384, secret_on_netfs, &file, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    BIO *bio = BIO_new_mem_buf(file.bytes, (int) file.count);
    *key = NULL == bio ? NULL : PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    opal_crypt_secmem_free(file.bytes);
    int der_bytes = NULL == *key ? -1 : i2d_PUBKEY(*key, &der);
    rc = der_bytes < 1 ? OPAL_CRYPT_ERR_CONFIG : key_id(der, (size_t) der_bytes, id);
    OPENSSL_free(der);
    if (OPAL_CRYPT_OK != rc) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-recovery-key",
                                 "%.512s: it holds no private key in PEM", private_pem);
    }
    if (0 != memcmp(id, escrow + 1, KEY_ID_BYTES) || kind_of(*key) != escrow[0]) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "keystore-recovery-key",
                                 "%.512s: the file was escrowed to another key", private_pem);
    }
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_escrow_unwrap(const char *private_pem, bool secret_on_netfs, const uint8_t *escrow,
                                 size_t bytes, uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES],
                                 opal_crypt_why_t *why)
{
    EVP_PKEY *key = NULL;

    if (bytes <= BODY_AT || bytes > OPAL_CRYPTFILE_ESCROW_MAX) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-no-escrow", "%zu bytes", bytes);
    }
    opal_crypt_secret_begin();
    int rc = recovery_key(private_pem, secret_on_netfs, escrow, &key, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = ESCROW_RSA == escrow[0] ? rsa_unwrap(key, escrow + BODY_AT, bytes - BODY_AT, data_key)
                                     : ec_unwrap(key, escrow + 1, bytes - BODY_AT, data_key);
        if (OPAL_CRYPT_OK != rc) {
            opal_crypt_wipe(data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES);
            rc = opal_crypt_refuse(why, rc, "keystore-unwrap", "escrow");
        }
    }
    EVP_PKEY_free(key);
    opal_crypt_secret_end();
    return rc;
}
