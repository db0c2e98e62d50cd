/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Any bytes as a message with keys, and as its contents.  What is accepted as a message lies within it, and libcrypto reads
 * it, too; what is accepted as contents comes out again as the same bytes.
 */
#include "fuzz.h"

#include "ompi/tools/mpicrypt/key/der.c"
#include "ompi/tools/mpicrypt/key/envelope_check.c"
#include "ompi/tools/mpicrypt/key/envelope_seal.c"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/cryptfile/keystore/bundle.h"

static void fuzz_within(const uint8_t *data, size_t size, const uint8_t *at, size_t bytes)
{
    FUZZ_CHECK(at >= data && bytes <= size && (size_t) (at - data) <= size - bytes);
}

static void fuzz_message(const uint8_t *data, size_t size)
{
    mpicrypt_envelope_t envelope;
    uint8_t kek[MPICRYPT_KEK_BYTES] = {0};
    char *text;
    size_t bytes;

    if (OPAL_CRYPT_OK != mpicrypt_envelope_check(data, size, &envelope, NULL)) {
        return;
    }
    fuzz_within(data, size, envelope.inner, envelope.inner_bytes);
    FUZZ_CHECK(envelope.cipher_bytes > 0 && envelope.cipher_bytes < size);
    if (NULL != envelope.certificate) {
        fuzz_within(data, size, envelope.certificate, envelope.certificate_bytes);
    }
    if (MPICRYPT_TO_PASSPHRASE != envelope.kind) {
        fuzz_within(data, size, envelope.recipient, envelope.recipient_bytes);
    } else {
        FUZZ_CHECK(OPAL_CRYPT_ERR_AUTH == mpicrypt_envelope_open(&envelope, kek, NULL, &text, &bytes, NULL));
    }
}

static void fuzz_contents(const uint8_t *data, size_t size)
{
    opal_cryptfile_key_file_t *key = opal_crypt_secmem_alloc(sizeof(*key));
    opal_cryptfile_bundle_reader_t reader;
    opal_cryptfile_bundle_t again = {.text = NULL};

    FUZZ_CHECK(NULL != key);
    if (OPAL_CRYPT_OK == opal_cryptfile_bundle_check((const char *) data, size, key, &reader)) {
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_cryptfile_bundle_begin(&again, reader.exported, reader.count));
        for (unsigned i = 0; i < reader.count; ++i) {
            FUZZ_CHECK(OPAL_CRYPT_OK == opal_cryptfile_bundle_next(&reader, key) && OPAL_CRYPT_OK == opal_cryptfile_bundle_add(&again, key));
        }
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_cryptfile_bundle_end(&again));
        FUZZ_CHECK(size == again.used && 0 == memcmp(data, again.text, size));
    }
    opal_crypt_secmem_free(again.text);
    opal_crypt_secmem_free(key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_message(data, size);
    fuzz_contents(data, size);
    return 0;
}
