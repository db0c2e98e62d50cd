/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sealing and opening a message by libcrypto's CMS.  The text goes from and to secret memory directly through the BIO
 * that encrypts: CMS_encrypt and CMS_decrypt would leave it in buffers on the heap.
 */
#include "envelope.h"
#include "opal/mca/common/crypt/base/fork.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <limits.h>

#include <openssl/bio.h>
#include <openssl/cms.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

/* ---- sealing ---- */

static bool add_certificate(CMS_ContentInfo *cms, X509 *certificate)
{
    CMS_RecipientInfo *recipient = CMS_add1_recipient_cert(cms, certificate, CMS_KEY_PARAM);
    EVP_PKEY_CTX *context = NULL == recipient ? NULL : CMS_RecipientInfo_get0_pkey_ctx(recipient);

    if (NULL == context) {
        return false;
    }
    return CMS_RECIPINFO_TRANS == CMS_RecipientInfo_type(recipient)
               ? 1 == EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_OAEP_PADDING)
                     && 1 == EVP_PKEY_CTX_set_rsa_oaep_md(context, EVP_sha256())
                     && 1 == EVP_PKEY_CTX_set_rsa_mgf1_md(context, EVP_sha256())
               : 1 == EVP_PKEY_CTX_set_ecdh_kdf_md(context, EVP_sha256());
}

/* libcrypto owns both copies, and wipes that of the key. */
static bool add_kek(CMS_ContentInfo *cms, const mpicrypt_recipient_t *recipient)
{
    uint8_t *key = OPENSSL_malloc(MPICRYPT_KEK_BYTES), *id = OPENSSL_malloc(MPICRYPT_SCRYPT_ID_BYTES);

    if (NULL != key && NULL != id) {
        memcpy(key, recipient->kek, MPICRYPT_KEK_BYTES);
        mpicrypt_scrypt_id(&recipient->scrypt, id);
        if (NULL != CMS_add0_recipient_key(cms, NID_id_aes256_wrap, key, MPICRYPT_KEK_BYTES, id, MPICRYPT_SCRYPT_ID_BYTES, NULL, NULL,
                                           NULL)) {
            return true;
        }
    }
    OPENSSL_clear_free(key, MPICRYPT_KEK_BYTES);
    OPENSSL_free(id);
    return false;
}

static bool encrypt_text(CMS_ContentInfo *cms, const char *text, size_t bytes)
{
    BIO *chain = 1 == CMS_set_detached(cms, 0) ? CMS_dataInit(cms, NULL) : NULL;
    bool good = NULL != chain && (int) bytes == BIO_write(chain, text, (int) bytes) && 1 == BIO_flush(chain)
                && 1 == CMS_dataFinal(cms, chain);

    BIO_free_all(chain);
    return good;
}

static bool message_of(CMS_ContentInfo *cms, mpicrypt_message_t *message)
{
    unsigned char *bytes = NULL;
    int count = i2d_CMS_ContentInfo(cms, &bytes);

    if (count <= 0) {
        return false;
    }
    *message = (mpicrypt_message_t){bytes, (size_t) count};
    return true;
}

int mpicrypt_envelope_seal(const char *text, size_t bytes, const mpicrypt_recipient_t *recipient, mpicrypt_message_t *message,
                           opal_crypt_why_t *why)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    mpicrypt_envelope_t made;

    if (NULL == library || bytes > INT_MAX) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_LIBRARY, "library", "CMS");
    }
    opal_crypt_secret_begin();
    CMS_ContentInfo *cms = CMS_AuthEnvelopedData_create_ex(EVP_aes_256_gcm(), library->context, library->properties);
    bool good = NULL != cms && (NULL != recipient->certificate ? add_certificate(cms, recipient->certificate) : add_kek(cms, recipient))
                && encrypt_text(cms, text, bytes) && message_of(cms, message);
    CMS_ContentInfo_free(cms);
    opal_crypt_secret_end();
    ERR_clear_error();
    if (!good) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_LIBRARY, "library", "the keys could not be encrypted");
    }
    /* What could not be read back is no export. */
    int rc = mpicrypt_envelope_check(message->bytes, message->count, &made, why);
    if (OPAL_CRYPT_OK != rc) {
        OPENSSL_free(message->bytes);
    }
    return rc;
}

/* ---- opening ---- */

static CMS_ContentInfo *parse_inner(const mpicrypt_envelope_t *envelope)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    CMS_ContentInfo *cms = NULL == library ? NULL : CMS_ContentInfo_new_ex(library->context, library->properties);
    const unsigned char *at = envelope->inner;

    if (NULL != cms && NULL != d2i_CMS_ContentInfo(&cms, &at, (long) envelope->inner_bytes)
        && at == envelope->inner + envelope->inner_bytes && NID_id_smime_ct_authEnvelopedData == OBJ_obj2nid(CMS_get0_type(cms))) {
        return cms;
    }
    CMS_ContentInfo_free(cms);
    return NULL;
}

/* The IssuerAndSerialNumber of the certificate, as CMS has it. */
static int issuer_and_serial(X509 *certificate, uint8_t **der)
{
    unsigned char *name = NULL, *serial = NULL, *at;
    int name_bytes = i2d_X509_NAME(X509_get_issuer_name(certificate), &name);
    int serial_bytes = i2d_ASN1_INTEGER(X509_get0_serialNumber(certificate), &serial);
    int bytes = name_bytes <= 0 || serial_bytes <= 0 ? 0 : ASN1_object_size(1, name_bytes + serial_bytes, V_ASN1_SEQUENCE);

    *der = bytes <= 0 ? NULL : OPENSSL_malloc((size_t) bytes);
    if (NULL != *der) {
        at = *der;
        ASN1_put_object(&at, 1, name_bytes + serial_bytes, V_ASN1_SEQUENCE, V_ASN1_UNIVERSAL);
        memcpy(at, name, (size_t) name_bytes);
        memcpy(at + name_bytes, serial, (size_t) serial_bytes);
    }
    OPENSSL_free(name);
    OPENSSL_free(serial);
    return NULL == *der ? 0 : bytes;
}

bool mpicrypt_envelope_is_for(const mpicrypt_envelope_t *envelope, X509 *certificate)
{
    uint8_t *der;
    int bytes = issuer_and_serial(certificate, &der);
    bool is = bytes > 0 && (size_t) bytes == envelope->recipient_bytes && 0 == memcmp(der, envelope->recipient, (size_t) bytes);

    OPENSSL_free(der);
    return is;
}

static bool unlock_message(CMS_ContentInfo *cms, const mpicrypt_envelope_t *envelope, const uint8_t *kek, const mpicrypt_identity_t *identity)
{
    uint8_t id[MPICRYPT_SCRYPT_ID_BYTES];

    if (MPICRYPT_TO_PASSPHRASE != envelope->kind) {
        return 1 == CMS_decrypt_set1_pkey(cms, identity->key, identity->certificate);
    }
    mpicrypt_scrypt_id(&envelope->scrypt, id);
    return 1 == CMS_decrypt_set1_key(cms, (unsigned char *) (uintptr_t) kek, MPICRYPT_KEK_BYTES, id, sizeof(id));
}

/* All of the text, and the tag fits it. */
static bool decrypt_text(CMS_ContentInfo *cms, char *text, size_t bytes)
{
    BIO *chain = CMS_dataInit(cms, NULL);
    size_t done = 0;
    char more;

    for (int got = 1; NULL != chain && got > 0 && done < bytes; done += got > 0 ? (size_t) got : 0) {
        got = BIO_read(chain, text + done, (int) (bytes - done));
    }
    bool good = NULL != chain && done == bytes && BIO_read(chain, &more, 1) <= 0 && 1 == BIO_get_cipher_status(chain);

    BIO_free_all(chain);
    return good;
}

int mpicrypt_envelope_open(const mpicrypt_envelope_t *envelope, const uint8_t *kek, const mpicrypt_identity_t *identity,
                           char **text, size_t *text_bytes, opal_crypt_why_t *why)
{
    char *made = opal_crypt_secmem_alloc(envelope->cipher_bytes + 1);

    if (NULL == made) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "no-secret-memory", "%zu bytes", envelope->cipher_bytes);
    }
    opal_crypt_secret_begin();
    CMS_ContentInfo *cms = parse_inner(envelope);
    bool good = NULL != cms && unlock_message(cms, envelope, kek, identity) && decrypt_text(cms, made, envelope->cipher_bytes);
    CMS_ContentInfo_free(cms);
    opal_crypt_secret_end();
    ERR_clear_error();
    if (!good) {
        opal_crypt_secmem_free(made);
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "envelope-closed", "%s",
                                 MPICRYPT_TO_PASSPHRASE == envelope->kind ? "the passphrase is another one, or the message was changed"
                                                                          : "the private key is another one, or the message was changed");
    }
    *text = made;
    *text_bytes = envelope->cipher_bytes;
    return OPAL_CRYPT_OK;
}
