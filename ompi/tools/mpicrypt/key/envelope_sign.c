/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Signing a sealed message, and verifying the signature, by libcrypto's CMS.  What is signed is ciphertext.
 */
#include "envelope.h"
#include "opal/mca/common/crypt/base/fork.h"
#include "opal/mca/common/crypt/base/library.h"

#include <openssl/bio.h>
#include <openssl/cms.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

/* Plain bytes, not lines of mail; the caller chooses the certificates. */
enum { SIGN_FLAGS = CMS_BINARY | CMS_PARTIAL | CMS_NOSMIMECAP, VERIFY_FLAGS = CMS_BINARY | CMS_NO_SIGNER_CERT_VERIFY | CMS_NOINTERN };

static CMS_ContentInfo *signed_data(const mpicrypt_identity_t *signer, const mpicrypt_message_t *message)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    CMS_ContentInfo *cms = NULL == library ? NULL
                           : CMS_sign_ex(NULL, NULL, NULL, NULL, SIGN_FLAGS, library->context, library->properties);
    BIO *stream = BIO_new_mem_buf(message->bytes, (int) message->count);

    if (NULL == cms || NULL == stream || 1 != CMS_set1_eContentType(cms, OBJ_nid2obj(NID_id_smime_ct_contentInfo))
        || NULL == CMS_add1_signer(cms, signer->certificate, signer->key, EVP_sha256(), SIGN_FLAGS)
        || 1 != CMS_final(cms, stream, NULL, SIGN_FLAGS)) {
        CMS_ContentInfo_free(cms);
        cms = NULL;
    }
    BIO_free(stream);
    return cms;
}

int mpicrypt_envelope_sign(const mpicrypt_identity_t *signer, mpicrypt_message_t *message, opal_crypt_why_t *why)
{
    mpicrypt_envelope_t made;
    unsigned char *bytes = NULL;

    opal_crypt_secret_begin();
    CMS_ContentInfo *cms = signed_data(signer, message);
    int count = NULL == cms ? 0 : i2d_CMS_ContentInfo(cms, &bytes);
    CMS_ContentInfo_free(cms);
    opal_crypt_secret_end();
    ERR_clear_error();
    if (count <= 0) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_LIBRARY, "library", "the message could not be signed");
    }
    OPENSSL_free(message->bytes);
    *message = (mpicrypt_message_t){bytes, (size_t) count};
    return mpicrypt_envelope_check(message->bytes, message->count, &made, why);
}

/* ---- verifying ---- */

/* The signed attribute contentType, which the signature binds to the content (RFC 5652, 5.4); libcrypto does not compare it. */
static bool type_is_signed(CMS_ContentInfo *cms)
{
    STACK_OF(CMS_SignerInfo) *signers = CMS_get0_SignerInfos(cms);
    ASN1_OBJECT *type = 1 != sk_CMS_SignerInfo_num(signers) ? NULL
                        : CMS_signed_get0_data_by_OBJ(sk_CMS_SignerInfo_value(signers, 0), OBJ_nid2obj(NID_pkcs9_contentType), -3,
                                                      V_ASN1_OBJECT);

    return NULL != type && NID_id_smime_ct_contentInfo == OBJ_obj2nid(type);
}

static bool is_signed_by(const uint8_t *message, size_t bytes, X509 *signer)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    CMS_ContentInfo *cms = CMS_ContentInfo_new_ex(library->context, library->properties);
    STACK_OF(X509) *signers = sk_X509_new_null();
    const unsigned char *at = message;
    bool good = NULL != cms && NULL != signers && sk_X509_push(signers, signer) > 0
                && NULL != d2i_CMS_ContentInfo(&cms, &at, (long) bytes) && at == message + bytes
                && 1 == CMS_verify(cms, signers, NULL, NULL, NULL, VERIFY_FLAGS) && type_is_signed(cms);

    sk_X509_free(signers);
    CMS_ContentInfo_free(cms);
    return good;
}

int mpicrypt_envelope_verify(const uint8_t *message, size_t bytes, const mpicrypt_envelope_t *envelope, X509 **signer,
                             opal_crypt_why_t *why)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    X509 *certificate = NULL == library ? NULL : X509_new_ex(library->context, library->properties);
    const unsigned char *at = envelope->certificate;
    bool good = NULL != certificate && NULL != d2i_X509(&certificate, &at, (long) envelope->certificate_bytes)
                && at == envelope->certificate + envelope->certificate_bytes && is_signed_by(message, bytes, certificate);

    ERR_clear_error();
    if (!good) {
        X509_free(certificate);
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "envelope-signature", "it was changed, or not signed with the certificate in it");
    }
    *signer = certificate;
    return OPAL_CRYPT_OK;
}
