/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The fingerprint of a label's key: a backend wraps a known text under the key, and the hash of that tells keys of
 * one name apart without saying anything about them.  docs/design/017-fingerprints.rst has the argument.
 */
#include "keystore_object.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(OPAL_CRYPTFILE_KNOWN) == OPAL_CRYPTFILE_KNOWN_BYTES + 1, "docs/file-format.rst");
static_assert(OPAL_CRYPTFILE_KNOWN_BYTES != OPAL_CRYPTFILE_DATA_KEY_BYTES, "cannot be a data key");

int opal_cryptfile_fingerprint_make(const uint8_t known[OPAL_CRYPTFILE_KNOWN_BYTES + 8], uint8_t fingerprint[OPAL_CRYPTFILE_FINGERPRINT_BYTES])
{
    static const char domain[] = "ompi-crypt v1 key fingerprint";
    const opal_crypt_input_t pieces[] = {{domain, sizeof(domain) - 1}, {known, OPAL_CRYPTFILE_KNOWN_BYTES + 8}};
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    int rc = opal_crypt_sha256(pieces, 2, hash);

    if (OPAL_CRYPT_OK == rc) {
        memcpy(fingerprint, hash, OPAL_CRYPTFILE_FINGERPRINT_BYTES);
    }
    return rc;
}

int opal_cryptfile_fingerprint_of_key(const uint8_t key[32], uint8_t fingerprint[OPAL_CRYPTFILE_FINGERPRINT_BYTES])
{
    uint8_t known[OPAL_CRYPTFILE_KNOWN_BYTES + 8];
    int rc = opal_cryptfile_rfc3394_known(key, known);

    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_fingerprint_make(known, fingerprint) : rc;
    opal_crypt_wipe(known, sizeof(known));
    return rc;
}
