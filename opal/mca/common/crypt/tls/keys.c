/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The keys of a connection's records (RFC 8446, 7.2 and 7.3):
 *
 *     key    = Expand-Label(secret, "key")
 *     IV     = Expand-Label(secret, "iv")
 *     secret = Expand-Label(secret, "traffic upd")       on renewal
 */
#include "records_object.h"
#include "opal/mca/common/crypt/base/fork.h"
#include "opal/mca/common/crypt/base/nonce_log.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <assert.h>

#define KEY_PLACE(bytes) (((bytes) + OPAL_AEAD_KEY_ALIGN - 1) / OPAL_AEAD_KEY_ALIGN * OPAL_AEAD_KEY_ALIGN)

static_assert(OPAL_CRYPT_TLS_RECORD_OVERHEAD == OPAL_CRYPT_TLS_RECORD_HEADER + 1 + OPAL_AEAD_TAG_BYTES, "record");
static_assert(OPAL_CRYPT_TLS_RECORDS_RENEW < OPAL_CRYPT_TLS_RECORDS_BEAR,
              "a sender renews before its receiver must end");

/* From the current secret; the key's memory holds no other key.  No fork may happen meanwhile. */
static int direction_start(const opal_crypt_tls_records_t *records, record_direction_t *direction)
{
    const opal_crypt_tls_suite_t *suite = records->suite;
    const size_t raw_bytes = opal_aead_raw_key_bytes(suite->cipher);
    uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES];
    int rc;

    opal_crypt_secret_begin();
    rc = opal_crypt_tls_expand(suite->sha384, direction->secret, "key", raw, raw_bytes);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_tls_expand(suite->sha384, direction->secret, "iv", direction->iv, sizeof(direction->iv));
    }
    if (OPAL_CRYPT_OK == rc && OPAL_AEAD_OK != records->aead->key_init(suite->cipher, raw, direction->key)) {
        rc = OPAL_CRYPT_ERR_LIBRARY;
    }
    if (OPAL_CRYPT_OK == rc) {
        opal_crypt_nonce_log_key(raw, raw_bytes, direction->id);
        direction->sequence = 0;
    }
    opal_crypt_wipe(raw, sizeof(raw));
    opal_crypt_secret_end();
    return rc;
}

int opal_crypt_tls_record_renew(const opal_crypt_tls_records_t *records, record_direction_t *direction)
{
    uint8_t next[OPAL_CRYPT_TLS_SECRET_MAX];
    int rc;

    opal_crypt_secret_begin();
    rc = opal_crypt_tls_expand(records->suite->sha384, direction->secret, "traffic upd", next, records->suite->hash_bytes);
    if (OPAL_CRYPT_OK == rc) {
        memcpy(direction->secret, next, records->suite->hash_bytes);
        records->aead->key_wipe(direction->key);
        direction->earlier += direction->sequence;
        rc = direction_start(records, direction);
    }
    opal_crypt_wipe(next, sizeof(next));
    opal_crypt_secret_end();
    return rc;
}

void opal_crypt_tls_records_counts(const opal_crypt_tls_records_t *records, uint64_t *sealed, uint64_t *opened)
{
    *sealed = records->out.earlier + records->out.sequence;
    *opened = records->in.earlier + records->in.sequence;
}

void opal_crypt_tls_records_share(opal_crypt_tls_records_t *records, opal_crypt_share_t *sealing,
                                  opal_crypt_share_t *opening)
{
    records->out.share = sealing;
    records->in.share = opening;
}

int opal_crypt_tls_record_end(const opal_crypt_tls_records_t *records, record_direction_t *direction, int rc)
{
    if (OPAL_CRYPT_OK == direction->ended) {
        records->aead->key_wipe(direction->key);
        opal_crypt_wipe(direction->secret, sizeof(direction->secret));
        opal_crypt_wipe(direction->iv, sizeof(direction->iv));
        direction->ended = rc;
    }
    return rc;
}

int opal_crypt_tls_record_break(opal_crypt_tls_records_t *records, record_direction_t *direction, int rc)
{
    if (OPAL_CRYPT_ERR_FORKED != rc) {                  /* a child's are zeros */
        (void) opal_crypt_tls_record_end(records, direction, rc);
        __atomic_store_n(&records->broken, rc, __ATOMIC_RELAXED);
    }
    return rc;
}

int opal_crypt_tls_records_create(const opal_aead_module_t *aead, opal_aead_cipher_t cipher, uint64_t renew,
                                  const uint8_t *secret_out, const uint8_t *secret_in,
                                  opal_crypt_tls_records_t **made)
{
    const opal_crypt_tls_suite_t *suite = opal_crypt_tls_suite(cipher);
    opal_crypt_tls_records_t *records;
    size_t key_bytes;
    int rc;

    *made = NULL;
    if (NULL == suite || 0 == (aead->ciphers & OPAL_AEAD_BIT(cipher)) || renew < 2
        || renew > OPAL_CRYPT_TLS_RECORDS_RENEW) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    key_bytes = KEY_PLACE(aead->key_bytes);
    records = opal_crypt_secmem_alloc(KEY_PLACE(sizeof(*records)) + 2 * key_bytes);
    if (NULL == records) {
        return opal_crypt_forked() ? OPAL_CRYPT_ERR_FORKED : OPAL_CRYPT_ERR_MEMORY;
    }
    records->aead = aead;
    records->suite = suite;
    records->renew = renew;
    records->out.key = (uint8_t *) records + KEY_PLACE(sizeof(*records));
    records->in.key = (uint8_t *) records->out.key + key_bytes;
    memcpy(records->out.secret, secret_out, suite->hash_bytes);
    memcpy(records->in.secret, secret_in, suite->hash_bytes);
    rc = direction_start(records, &records->out);
    if (OPAL_CRYPT_OK == rc) {
        rc = direction_start(records, &records->in);
        if (OPAL_CRYPT_OK != rc) {
            aead->key_wipe(records->out.key);
        }
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_secmem_free(records);
        return rc;
    }
    *made = records;
    return OPAL_CRYPT_OK;
}

void opal_crypt_tls_records_destroy(opal_crypt_tls_records_t *records)
{
    if (NULL == records) {
        return;
    }
    if (!opal_crypt_forked()) {
        (void) opal_crypt_tls_record_end(records, &records->out, OPAL_CRYPT_ERR_EXHAUSTED);
        (void) opal_crypt_tls_record_end(records, &records->in, OPAL_CRYPT_ERR_EXHAUSTED);
    }
    opal_crypt_secmem_free(records);
}
