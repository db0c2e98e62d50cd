/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * RFC 3394 key wrap by libcrypto: 32 bytes under a 256-bit key make 40, with
 * an integrity check of 64 bits.  The decisive check is the map's MAC,
 * made from the unwrapped key.
 */
#include "opal/mca/common/crypt/base/constant.h"
#include "opal/mca/common/crypt/base/fork.h"
#include "keystore_object.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <openssl/evp.h>

static int run(bool wrapping, const uint8_t *key, const uint8_t *in, int in_bytes, uint8_t *out, int out_bytes)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    EVP_CIPHER *cipher = NULL == library ? NULL : EVP_CIPHER_fetch(library->context, "AES-256-WRAP", library->properties);
    EVP_CIPHER_CTX *context = NULL == cipher ? NULL : EVP_CIPHER_CTX_new();
    int rc = OPAL_CRYPT_ERR_LIBRARY, done = 0, last = 0;

    opal_crypt_secret_begin();
    if (NULL != context && !opal_crypt_forked()) {
        EVP_CIPHER_CTX_set_flags(context, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
        if (1 == EVP_CipherInit_ex2(context, cipher, key, NULL, wrapping, NULL)) {
            rc = 1 == EVP_CipherUpdate(context, out, &done, in, in_bytes) &&
                         1 == EVP_CipherFinal_ex(context, out + done, &last) && out_bytes == done + last
                     ? OPAL_CRYPT_OK
                     : OPAL_CRYPT_ERR_AUTH;
        }
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_wipe(out, (size_t) out_bytes);
    }
    EVP_CIPHER_CTX_free(context);
    opal_crypt_secret_end();
    EVP_CIPHER_free(cipher);
    return rc;
}

int opal_cryptfile_rfc3394_known(const uint8_t key[32], uint8_t wrapped[OPAL_CRYPTFILE_KNOWN_BYTES + 8])
{
    int rc = run(true, key, (const uint8_t *) OPAL_CRYPTFILE_KNOWN, OPAL_CRYPTFILE_KNOWN_BYTES, wrapped, OPAL_CRYPTFILE_KNOWN_BYTES + 8);

    return OPAL_CRYPT_ERR_AUTH == rc ? OPAL_CRYPT_ERR_LIBRARY : rc;
}

int opal_cryptfile_rfc3394_wrap(const uint8_t key[32], const uint8_t plain[32], uint8_t wrapped[40])
{
    int rc = run(true, key, plain, 32, wrapped, 40);

    OPAL_CRYPT_PUBLIC(wrapped, 40);             /* made to be stored */
    return OPAL_CRYPT_ERR_AUTH == rc ? OPAL_CRYPT_ERR_LIBRARY : rc;
}

int opal_cryptfile_rfc3394_unwrap(const uint8_t key[32], const uint8_t wrapped[40], uint8_t plain[32])
{
    return run(false, key, wrapped, 40, plain, 32);
}
