/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A private key from PEM: every intermediate buffer is memory of crypt_secmem, and libcrypto reads the numbers in
 * place (EVP_PKEY_fromdata).
 *
 *     PEM --base64--> DER --> | algorithm | inner key | --> EVP_PKEY
 */
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "x509_key.h"

#include <string.h>

#include <openssl/asn1.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

/* The unread rest of a DER structure. */
typedef struct der {
    const uint8_t *at, *end;
} der_t;

/* Step over one element, which must have this universal tag, and return its content. */
static bool expect(der_t *der, int wanted, der_t *content)
{
    const unsigned char *p = der->at;
    long bytes;
    int found, tag, class;

    if (der->at >= der->end) {
        return false;
    }
    /* 0x80: the element is incomplete; 0x01: of indefinite length. */
    found = ASN1_get_object(&p, &bytes, &tag, &class, der->end - der->at);
    if (0 != (found & 0x81) || V_ASN1_UNIVERSAL != class || tag != wanted) {
        return false;
    }
    content->at = p;
    content->end = der->at = p + bytes;
    return true;
}

static bool content_is(const der_t *content, const void *bytes, size_t count)
{
    return (size_t) (content->end - content->at) == count && 0 == memcmp(content->at, bytes, count);
}

/* ---- PEM ---- */

/* The DER of the block `name`, in memory of crypt_secmem; NULL if there is no such block or it is damaged. */
static uint8_t *pem_block(const char *pem, size_t pem_bytes, const char *name, size_t *der_bytes)
{
    char begin[64], end[64];
    const char *from, *to;
    uint8_t *base64, *der;
    size_t count = 0;
    int decoded;

    strcat(strcat(strcpy(begin, "-----BEGIN "), name), "-----");
    strcat(strcat(strcpy(end, "-----END "), name), "-----");
    from = strstr(pem, begin);
    to = NULL == from ? NULL : strstr(from, end);
    base64 = NULL == to ? NULL : opal_crypt_secmem_alloc(pem_bytes + 1);
    der = NULL == base64 ? NULL : opal_crypt_secmem_alloc(pem_bytes + 1);
    if (NULL == der) {
        opal_crypt_secmem_free(base64);
        return NULL;
    }
    for (from += strlen(begin); from < to; ++from) {
        if (*from > ' ') {
            base64[count++] = (uint8_t) *from;
        }
    }
    decoded = count > 4 && 0 == count % 4 ? EVP_DecodeBlock(der, base64, (int) count) : -1;
    if (decoded > 0) {
        decoded -= ('=' == base64[count - 1]) + ('=' == base64[count - 2]);
    }
    opal_crypt_secmem_free(base64);
    if (decoded <= 0) {
        opal_crypt_secmem_free(der);
        return NULL;
    }
    *der_bytes = (size_t) decoded;
    return der;
}

/* ---- numbers, in the machine's byte order ---- */

static OSSL_PARAM number(const char *name, const der_t *content, uint8_t *scratch)
{
    size_t bytes = (size_t) (content->end - content->at);

    for (size_t i = 0; i < bytes; ++i) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        scratch[i] = content->end[-1 - (long) i];
#else
        scratch[i] = content->at[i];
#endif
    }
    return OSSL_PARAM_construct_BN(name, scratch, bytes);
}

static EVP_PKEY *from_parameters(const char *type, OSSL_PARAM *parameters)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(library->context, type, library->properties);
    EVP_PKEY *key = NULL;

    if (NULL == context || 1 != EVP_PKEY_fromdata_init(context)
        || 1 != EVP_PKEY_fromdata(context, &key, EVP_PKEY_KEYPAIR, parameters)) {
        key = NULL;
    }
    EVP_PKEY_CTX_free(context);
    return key;
}

/* ---- the inner keys ---- */

/* ECPrivateKey, RFC 5915.  Group and point come from the certificate. */
static EVP_PKEY *ec_key(der_t der, EVP_PKEY *public_key, uint8_t *scratch)
{
    OSSL_PARAM parameters[4];
    der_t body, version, scalar;
    char group[64];
    uint8_t point[133];
    size_t point_bytes = 0;

    if (!expect(&der, V_ASN1_SEQUENCE, &body) || !expect(&body, V_ASN1_INTEGER, &version)
        || !expect(&body, V_ASN1_OCTET_STRING, &scalar) || scalar.end - scalar.at > 66
        || 1 != EVP_PKEY_get_group_name(public_key, group, sizeof(group), NULL)
        || 1 != EVP_PKEY_get_octet_string_param(public_key, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point),
                                                &point_bytes)) {
        return NULL;
    }
    parameters[0] = OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0);
    parameters[1] = OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, point_bytes);
    parameters[2] = number(OSSL_PKEY_PARAM_PRIV_KEY, &scalar, scratch);
    parameters[3] = OSSL_PARAM_construct_end();
    return from_parameters("EC", parameters);
}

/* RSAPrivateKey, RFC 8017 A.1.2. */
static EVP_PKEY *rsa_key(der_t der, EVP_PKEY *public_key, uint8_t *scratch)
{
    static const char *const names[] = {
        OSSL_PKEY_PARAM_RSA_N, OSSL_PKEY_PARAM_RSA_E, OSSL_PKEY_PARAM_RSA_D,
        OSSL_PKEY_PARAM_RSA_FACTOR1, OSSL_PKEY_PARAM_RSA_FACTOR2,
        OSSL_PKEY_PARAM_RSA_EXPONENT1, OSSL_PKEY_PARAM_RSA_EXPONENT2, OSSL_PKEY_PARAM_RSA_COEFFICIENT1,
    };
    OSSL_PARAM parameters[9];
    der_t body, content;

    if (!expect(&der, V_ASN1_SEQUENCE, &body) || !expect(&body, V_ASN1_INTEGER, &content)) {
        return NULL;
    }
    for (int i = 0; i < 8; ++i) {
        if (!expect(&body, V_ASN1_INTEGER, &content)) {
            return NULL;
        }
        parameters[i] = number(names[i], &content, scratch);
        scratch += content.end - content.at;
    }
    parameters[8] = OSSL_PARAM_construct_end();
    return from_parameters(EVP_PKEY_is_a(public_key, "RSA-PSS") ? "RSA-PSS" : "RSA", parameters);
}

/* CurvePrivateKey, RFC 8410 section 7. */
static EVP_PKEY *ed25519_key(der_t der)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    der_t content;

    if (!expect(&der, V_ASN1_OCTET_STRING, &content) || 32 != content.end - content.at) {
        return NULL;
    }
    return EVP_PKEY_new_raw_private_key_ex(library->context, "ED25519", library->properties, content.at, 32);
}

/* PrivateKeyInfo, RFC 5958; its algorithm must be that of the certificate. */
static EVP_PKEY *pkcs8_key(der_t der, EVP_PKEY *public_key, uint8_t *scratch)
{
    static const uint8_t ed25519[] = {0x2b, 0x65, 0x70};
    static const uint8_t ec[] = {0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01};
    static const uint8_t rsa[] = {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01};
    static const uint8_t pss[] = {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a};
    der_t body, version, algorithm, name, inner;

    if (!expect(&der, V_ASN1_SEQUENCE, &body) || !expect(&body, V_ASN1_INTEGER, &version)
        || !expect(&body, V_ASN1_SEQUENCE, &algorithm) || !expect(&algorithm, V_ASN1_OBJECT, &name)
        || !expect(&body, V_ASN1_OCTET_STRING, &inner)) {
        return NULL;
    }
    if (content_is(&name, ed25519, sizeof(ed25519))) {
        return ed25519_key(inner);
    }
    if (content_is(&name, ec, sizeof(ec)) && EVP_PKEY_is_a(public_key, "EC")) {
        return ec_key(inner, public_key, scratch);
    }
    if ((content_is(&name, rsa, sizeof(rsa)) || content_is(&name, pss, sizeof(pss)))
        && (EVP_PKEY_is_a(public_key, "RSA") || EVP_PKEY_is_a(public_key, "RSA-PSS"))) {
        return rsa_key(inner, public_key, scratch);
    }
    return NULL;
}

int opal_crypt_private_key(const char *pem, size_t pem_bytes, EVP_PKEY *public_key, const char *path,
                           EVP_PKEY **key, opal_crypt_why_t *why)
{
    static const char *const names[] = {"PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"};
    uint8_t *der = NULL, *scratch = opal_crypt_secmem_alloc(pem_bytes);
    size_t der_bytes = 0;
    bool readable;
    int form;

    *key = NULL;
    if (NULL == scratch) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "no-secret-memory", "private key %s", path);
    }
    for (form = 0; form < 3 && NULL == der; ++form) {
        der = pem_block(pem, pem_bytes, names[form], &der_bytes);
    }
    if (NULL != der) {
        der_t whole = {der, der + der_bytes};

        *key = 1 == form ? pkcs8_key(whole, public_key, scratch)
             : 2 == form && EVP_PKEY_is_a(public_key, "EC") ? ec_key(whole, public_key, scratch)
             : 3 == form && EVP_PKEY_is_a(public_key, "RSA") ? rsa_key(whole, public_key, scratch) : NULL;
    }
    readable = NULL != der;
    opal_crypt_secmem_free(scratch);
    opal_crypt_secmem_free(der);
    if (NULL != *key) {
        return OPAL_CRYPT_OK;
    }
    if (NULL != strstr(pem, "ENCRYPTED")) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "x509-key-encrypted", "%s", path);
    }
    if (!readable) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "x509-key-unreadable", "%s", path);
    }
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "x509-key-mismatch", "%s", path);
}
