/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The fingerprint of a label's key, and how messages name the key by it.  A backend wraps a known text under the key, and the hash of that tells keys of
 * one name apart without saying anything about them.  docs/design/017-fingerprints.rst has the argument.
 */
#include "keystore_object.h"
#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <assert.h>
#include <stdio.h>
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

/* ---- for messages ---- */

enum { SHOWN_BYTES = 8 };

const char *opal_cryptfile_key_text(const uint8_t fingerprint[OPAL_CRYPTFILE_FINGERPRINT_BYTES], int64_t created,
                                    char text[OPAL_CRYPTFILE_KEY_TEXT_BYTES])
{
    char hex[2 * SHOWN_BYTES + 1], day[16];
    const time_t at = (time_t) created;
    struct tm parts;

    opal_crypt_hex_write(fingerprint, SHOWN_BYTES, hex);
    if (NULL == gmtime_r(&at, &parts) || 0 == strftime(day, sizeof(day), "%Y-%m-%d", &parts)) {
        strcpy(day, "?");               /* a file can contain any number */
    }
    snprintf(text, OPAL_CRYPTFILE_KEY_TEXT_BYTES, "key %s of %s", hex, day);
    return text;
}

const char *opal_cryptfile_record_text(const opal_cryptfile_keystore_record_t *record, char text[OPAL_CRYPTFILE_RECORD_TEXT_BYTES])
{
    char key[OPAL_CRYPTFILE_KEY_TEXT_BYTES];

    snprintf(text, OPAL_CRYPTFILE_RECORD_TEXT_BYTES, "%s, version %u (%s)", record->label, record->version,
             opal_cryptfile_key_text(record->fingerprint, record->created, key));
    return text;
}
