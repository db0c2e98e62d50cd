/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Seal and open with Crypto++'s objects.  An object keeps its key: a message
 * costs no key set-up and no allocation.
 */
#include <cstdlib>
#include <memory>
#include <new>

#include <cryptopp/aes.h>
#include <cryptopp/chachapoly.h>
#include <cryptopp/config.h>
#include <cryptopp/gcm.h>

#include "aead_cryptopp_cipher.h"

using CryptoPP::AuthenticatedSymmetricCipher;

struct opal_aead_cryptopp_cipher {
    std::unique_ptr<AuthenticatedSymmetricCipher> object;
    std::size_t raw_bytes;
};

static AuthenticatedSymmetricCipher *make(opal_aead_cipher_t cipher, bool opening)
{
    if (OPAL_AEAD_CHACHA20_POLY1305 == cipher) {
        if (opening) {
            return new CryptoPP::ChaCha20Poly1305::Decryption;
        }
        return new CryptoPP::ChaCha20Poly1305::Encryption;
    }
    if (opening) {
        return new CryptoPP::GCM<CryptoPP::AES>::Decryption;
    }
    return new CryptoPP::GCM<CryptoPP::AES>::Encryption;
}

opal_aead_cryptopp_cipher_t *opal_aead_cryptopp_cipher_new(opal_aead_cipher_t cipher, const uint8_t *raw,
                                                           int opening)
{
    static const uint8_t no_nonce[OPAL_AEAD_NONCE_BYTES] = { 0 };      /* each message sets its own */

    try {
        std::unique_ptr<opal_aead_cryptopp_cipher> made(new opal_aead_cryptopp_cipher);

        made->object.reset(make(cipher, 0 != opening));
        made->raw_bytes = opal_aead_raw_key_bytes(cipher);
        made->object->SetKeyWithIV(raw, made->raw_bytes, no_nonce, sizeof(no_nonce));
        return made.release();
    } catch (...) {
        return nullptr;
    }
}

void opal_aead_cryptopp_cipher_forget(opal_aead_cryptopp_cipher_t *cipher)
{
    static const uint8_t zeros[OPAL_AEAD_KEY_MAX_BYTES] = { 0 };

    if (nullptr == cipher) {
        return;
    }
    try {
        cipher->object->SetKeyWithIV(zeros, cipher->raw_bytes, zeros, OPAL_AEAD_NONCE_BYTES);
    } catch (...) {
        abort();                        /* a child must not go on with a key */
    }
}

void opal_aead_cryptopp_cipher_free(opal_aead_cryptopp_cipher_t *cipher)
{
    delete cipher;
}

int opal_aead_cryptopp_cipher_run(opal_aead_cryptopp_cipher_t *cipher, const uint8_t *nonce,
                                  const void *aad, size_t aad_bytes,
                                  const uint8_t *in, size_t text_bytes, uint8_t *out, uint8_t *tag)
{
    try {
        AuthenticatedSymmetricCipher &object = *cipher->object;

        object.Resynchronize(nonce, OPAL_AEAD_NONCE_BYTES);
        object.Update(static_cast<const uint8_t *>(aad), aad_bytes);
        object.ProcessData(out, in, text_bytes);
        object.TruncatedFinal(tag, OPAL_AEAD_TAG_BYTES);
        return OPAL_AEAD_OK;
    } catch (...) {
        return OPAL_AEAD_ERROR;
    }
}

int opal_aead_cryptopp_version(void)
{
    return CryptoPP::LibraryVersion();
}
