/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Certificates for an exchange.  Files are read as those of jobs are: anyone who could change a certificate could choose who
 * reads a key.
 */
#include "certificate.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/secret_file.h"
#include "opal/mca/common/crypt/base/text.h"
#include "opal/mca/common/crypt/identity/x509_chain.h"
#include "opal/mca/common/crypt/identity/x509_key.h"

#include <time.h>

#include <openssl/evp.h>

enum { PRIVATE_KEY_FILE_MAX = 65536, RSA_BITS_MAX = 8192 };

int mpicrypt_certificate_read(const char *path, bool netfs, X509 **certificate, opal_crypt_why_t *why)
{
    STACK_OF(X509) *chain;
    int rc = NULL == opal_crypt_library() ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_LIBRARY, "library", "libcrypto")
             : opal_crypt_chain_read(path, "certificate", netfs, &chain, NULL, why);

    if (OPAL_CRYPT_OK == rc) {
        *certificate = sk_X509_shift(chain);
        opal_crypt_chain_free(chain);
    }
    return rc;
}

/* RSA, or EC on a curve that the format has. */
static bool key_is_good(X509 *certificate)
{
    EVP_PKEY *key = X509_get0_pubkey(certificate);
    char group[32] = "";

    if (NULL != key && EVP_PKEY_is_a(key, "RSA")) {
        return EVP_PKEY_get_bits(key) >= OPAL_CRYPT_RSA_BITS_MIN && EVP_PKEY_get_bits(key) <= RSA_BITS_MAX;
    }
    return NULL != key && EVP_PKEY_is_a(key, "EC") && 1 == EVP_PKEY_get_group_name(key, group, sizeof(group), NULL)
           && (0 == strcmp("prime256v1", group) || 0 == strcmp("P-256", group) || 0 == strcmp("secp384r1", group)
               || 0 == strcmp("P-384", group));
}

static uint32_t usage_of(X509 *certificate, mpicrypt_certificate_use_t use)
{
    return MPICRYPT_CERTIFICATE_SIGNS == use ? KU_DIGITAL_SIGNATURE | KU_NON_REPUDIATION
           : EVP_PKEY_is_a(X509_get0_pubkey(certificate), "RSA") ? KU_KEY_ENCIPHERMENT : KU_KEY_AGREEMENT;
}

static int check_chain(X509 *certificate, uint32_t usage, const char *ca, bool netfs, opal_crypt_why_t *why)
{
    STACK_OF(X509) *chain = sk_X509_new_null();
    opal_crypt_trust_t trust;
    X509 *anchor = NULL;
    int rc = NULL == chain || sk_X509_push(chain, certificate) < 1 ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "out of memory")
             : opal_crypt_trust_open(ca, "CA", NULL, netfs, &trust, NULL, why);

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_chain_verify(&trust, chain, (int64_t) time(NULL), usage, "the certificate", OPAL_CRYPT_ERR_CONFIG, &anchor, why);
        X509_free(anchor);
        opal_crypt_trust_close(&trust);
    }
    sk_X509_free(chain);
    return rc;
}

int mpicrypt_certificate_check(X509 *certificate, mpicrypt_certificate_use_t use, const char *ca, bool netfs, opal_crypt_why_t *why)
{
    char subject[256];

    opal_crypt_subject_text(certificate, subject, sizeof(subject));
    if (!key_is_good(certificate)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "exchange-key-type", "%s", subject);
    }
    if (X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "x509-expired", "%s", subject);
    }
    if (X509_cmp_current_time(X509_get0_notBefore(certificate)) >= 0) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "x509-not-yet-valid", "%s", subject);
    }
    const uint32_t usage = usage_of(certificate, use);
    if (0 == (X509_get_key_usage(certificate) & usage)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "exchange-key-usage", "%s: %s", subject,
                                 MPICRYPT_CERTIFICATE_SIGNS == use ? "it lacks digitalSignature"
                                 : KU_KEY_AGREEMENT == usage ? "it lacks keyAgreement" : "it lacks keyEncipherment");
    }
    return NULL == ca ? OPAL_CRYPT_OK : check_chain(certificate, usage, ca, netfs, why);
}

int mpicrypt_identity_read(const char *certificate, const char *key, bool netfs, mpicrypt_identity_t *identity, opal_crypt_why_t *why)
{
    opal_crypt_secret_file_t file;
    int rc = mpicrypt_certificate_read(certificate, netfs, &identity->certificate, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    rc = opal_crypt_secret_file_read(key, "private key", 1, PRIVATE_KEY_FILE_MAX, netfs, &file, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_private_key((const char *) file.bytes, file.count, X509_get0_pubkey(identity->certificate), key, &identity->key, why);
        opal_crypt_secmem_free(file.bytes);
    }
    if (OPAL_CRYPT_OK == rc && 1 != EVP_PKEY_eq(identity->key, X509_get0_pubkey(identity->certificate))) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "x509-key-mismatch", "%s", key);
    }
    if (OPAL_CRYPT_OK != rc) {
        mpicrypt_identity_free(identity);
    }
    return rc;
}

void mpicrypt_identity_free(mpicrypt_identity_t *identity)
{
    X509_free(identity->certificate);
    EVP_PKEY_free(identity->key);
    *identity = (mpicrypt_identity_t){NULL, NULL};
}

void mpicrypt_certificate_print(FILE *out, const char *what, X509 *certificate)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned bytes = 0;
    char subject[256];

    opal_crypt_subject_text(certificate, subject, sizeof(subject));
    fprintf(out, "%s %s\n    SHA-256 ", what, opal_crypt_harmless(subject, ""));
    if (1 == X509_digest(certificate, EVP_sha256(), hash, &bytes)) {
        for (unsigned i = 0; i < bytes; ++i) {
            fprintf(out, "%s%02X", 0 == i ? "" : ":", hash[i]);
        }
    }
    fputc('\n', out);
}
