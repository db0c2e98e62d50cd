/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The key that scrypt derives from a passphrase.  libcrypto wipes the memory that it mixes.
 */
#include "passphrase.h"
#include "opal/mca/common/crypt/base/fork.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

int mpicrypt_passphrase_key(const mpicrypt_passphrase_t *passphrase, const mpicrypt_scrypt_t *scrypt, uint8_t **kek,
                            opal_crypt_why_t *why)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    EVP_KDF *kdf = NULL == library || !mpicrypt_scrypt_sound(scrypt) ? NULL
                   : EVP_KDF_fetch(library->context, "SCRYPT", library->properties);
    EVP_KDF_CTX *context = NULL == kdf ? NULL : EVP_KDF_CTX_new(kdf);
    uint64_t n = UINT64_C(1) << scrypt->n, most = UINT64_C(1100) << 20;
    uint32_t r = scrypt->r, p = scrypt->p;
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PASSWORD, passphrase->text, passphrase->bytes),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *) (uintptr_t) scrypt->salt, sizeof(scrypt->salt)),
        OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_N, &n), OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_R, &r),
        OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_P, &p), OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_MAXMEM, &most),
        OSSL_PARAM_construct_end()};

    *kek = opal_crypt_secmem_alloc(MPICRYPT_KEK_BYTES);
    opal_crypt_secret_begin();
    bool good = NULL != *kek && NULL != context && 1 == EVP_KDF_derive(context, *kek, MPICRYPT_KEK_BYTES, parameters);
    EVP_KDF_CTX_free(context);
    opal_crypt_secret_end();
    if (good) {
        EVP_KDF_free(kdf);
        return OPAL_CRYPT_OK;
    }
    int rc = NULL == kdf ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "exchange-no-scrypt", "%s", NULL == library ? "libcrypto" : "SCRYPT")
                         : opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "exchange-memory", "%llu MiB", (unsigned long long) (128 * r * n >> 20));
    EVP_KDF_free(kdf);
    opal_crypt_secmem_free(*kek);
    *kek = NULL;
    return rc;
}
