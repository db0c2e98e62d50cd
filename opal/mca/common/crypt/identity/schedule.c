/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * From a peer's record to the key schedule of the pair:
 *
 *     1. parse            not a record, another version: refused
 *     2. identify         not the process that was asked for: refused
 *     3. compare          an unknown critical extension: refused; method and
 *                         parameters must be equal, never negotiated
 *     4. authenticate
 *     5. agree            our own key, or a secret of zeros: refused
 *     6. bind             th, a hash of both records
 *
 * Before step 4 nothing in a record is used, except to report a difference.
 */
#include "schedule.h"
#include "local_object.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <string.h>

/* In crypt_secmem. */
struct opal_crypt_schedule {
    uint8_t prk[OPAL_CRYPT_SECRET_BYTES];
    uint8_t th[OPAL_CRYPT_HASH_BYTES];
    size_t public_bytes;
    uint8_t public_out[OPAL_CRYPT_KEX_PUBLIC_MAX];      /* ours */
    uint8_t public_in[OPAL_CRYPT_KEX_PUBLIC_MAX];       /* the peer's */
    opal_crypt_peer_info_t peer;
};

/* Steps 2 and 3. */
static int compare_records(const opal_crypt_local_t *local, const opal_crypt_record_t *record,
                           const opal_crypt_expect_t *expect, opal_crypt_why_t *why)
{
    char text[300];
    const char *topic;
    unsigned unknown;

    if (NULL != expect && NULL != expect->nspace
        && (strlen(expect->nspace) != record->name_bytes
            || 0 != memcmp(expect->nspace, record->name, record->name_bytes) || expect->rank != record->rank)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "record-other-process",
                                 "asked for: %.255s rank %lu", expect->nspace, (unsigned long) expect->rank);
    }
    if (NULL != expect && NULL != expect->nspace && expect->instance != record->instance) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "record-life",
                                 "lives of MPI before this one: %lu here, %lu there",
                                 (unsigned long) expect->instance, (unsigned long) record->instance);
    }
    topic = opal_crypt_record_difference(&local->record, record, text, sizeof(text));
    if (NULL != topic) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, topic, "%s", text);
    }
    unknown = opal_crypt_record_unknown(record);
    return 0 == unknown ? OPAL_CRYPT_OK
         : opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "record-extension",
                             "an extension that it calls critical is unknown here: type %u", unknown);
}

/* Step 4. */
static int authenticate(const opal_crypt_local_t *local, const opal_crypt_record_t *record,
                        const opal_crypt_expect_t *expect, opal_crypt_why_t *why)
{
    opal_crypt_claim_t claim = {
        .body = record->body,
        .body_bytes = record->body_bytes,
        .authenticator = record->authenticator,
        .authenticator_bytes = record->authenticator_bytes,
        .needed = NULL != expect && 0 != expect->needed ? expect->needed : local->created,
        .record_bytes = record->body_bytes + 4 + record->authenticator_bytes,
        .fresh = NULL == expect ? NULL : expect->fresh,
        .fresh_bytes = NULL == expect ? 0 : expect->fresh_bytes,
    };

    return local->method->verify(local->auth_state, &claim, why);
}

/* Step 5: the PRK. */
static int agree(const opal_crypt_local_t *local, const opal_crypt_record_t *record,
                 uint8_t prk[OPAL_CRYPT_SECRET_BYTES], opal_crypt_why_t *why)
{
    static const uint8_t zeros[OPAL_CRYPT_SECRET_BYTES];
    const uint8_t *mix = NULL == local->method->mix ? NULL : local->method->mix(local->auth_state);
    uint8_t *secret;
    int rc;

    if (0 == memcmp(record->public_key, local->pair.public, record->public_bytes)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "record-reflected",
                                 "its public key is that of this process");
    }
    secret = opal_crypt_secmem_alloc(OPAL_CRYPT_KEX_SECRET);
    if (NULL == secret) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "no-secret-memory", "key agreement");
    }
    rc = opal_crypt_kex_derive(&local->pair, record->public_key, secret);
    if (OPAL_CRYPT_ERR_AUTH == rc) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "record-weak-key",
                               "key agreement: %s", opal_crypt_kex_name(record->kex));
    } else if (OPAL_CRYPT_OK != rc) {
        opal_crypt_refuse(why, rc, "library", "key agreement");
    } else {
        rc = opal_crypt_hkdf_extract(NULL == mix ? zeros : mix, sizeof(zeros),
                                     secret, OPAL_CRYPT_KEX_SECRET, prk);
        if (OPAL_CRYPT_OK != rc) {
            opal_crypt_refuse(why, rc, "library", "HKDF");
        }
    }
    opal_crypt_secmem_free(secret);
    return rc;
}

/* Step 6: 'ompi-crypt v1' || length || R_low || length || R_high, by public key. */
static int transcript(const opal_crypt_local_t *local, const opal_crypt_record_t *record,
                      size_t record_bytes, uint8_t th[OPAL_CRYPT_HASH_BYTES])
{
    static const char title[] = "ompi-crypt v1";
    bool ours_low = memcmp(local->pair.public, record->public_key, record->public_bytes) < 0;
    uint8_t length_low[4], length_high[4];
    size_t low_bytes = ours_low ? local->byte_count : record_bytes;
    size_t high_bytes = ours_low ? record_bytes : local->byte_count;
    opal_crypt_input_t pieces[] = {
        {title, sizeof(title) - 1},
        {length_low, 4},
        {ours_low ? local->bytes : record->body, low_bytes},
        {length_high, 4},
        {ours_low ? record->body : local->bytes, high_bytes},
    };

    opal_crypt_put32(length_low, (uint32_t) low_bytes);
    opal_crypt_put32(length_high, (uint32_t) high_bytes);
    return opal_crypt_sha256(pieces, 5, th);
}

int opal_crypt_schedule_create(const opal_crypt_local_t *local,
                               const uint8_t *record, size_t bytes,
                               const opal_crypt_expect_t *expect,
                               opal_crypt_schedule_t **schedule,
                               opal_crypt_why_t *why)
{
    opal_crypt_schedule_t *made;
    opal_crypt_record_t views;
    int rc;

    *schedule = NULL;
    rc = opal_crypt_record_read(local, record, bytes, expect, &views, why);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    made = opal_crypt_secmem_alloc(sizeof(*made));
    if (NULL == made) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "no-secret-memory", "a session");
    }
    rc = compare_records(local, &views, expect, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = authenticate(local, &views, expect, why);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = agree(local, &views, made->prk, why);
    }
    if (OPAL_CRYPT_OK == rc && OPAL_CRYPT_OK != (rc = transcript(local, &views, bytes, made->th))) {
        opal_crypt_refuse(why, rc, "library", "SHA-256");
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_secmem_free(made);
        return opal_crypt_blame(local, &views, expect, rc, why);
    }
    made->public_bytes = views.public_bytes;
    memcpy(made->public_out, local->pair.public, views.public_bytes);
    memcpy(made->public_in, views.public_key, views.public_bytes);
    opal_crypt_record_info(local, &views, &made->peer);
    *schedule = made;
    return OPAL_CRYPT_OK;
}

void opal_crypt_schedule_destroy(opal_crypt_schedule_t *schedule)
{
    opal_crypt_secmem_free(schedule);
}

int opal_crypt_schedule_expand(const opal_crypt_schedule_t *schedule,
                               opal_crypt_label_t label,
                               opal_crypt_direction_t direction,
                               void *out, size_t bytes)
{
    uint8_t context[2 * OPAL_CRYPT_KEX_PUBLIC_MAX + OPAL_CRYPT_HASH_BYTES];
    size_t n = schedule->public_bytes;

    memcpy(context, OPAL_CRYPT_OUT == direction ? schedule->public_out : schedule->public_in, n);
    memcpy(context + n, OPAL_CRYPT_OUT == direction ? schedule->public_in : schedule->public_out, n);
    memcpy(context + 2 * n, schedule->th, OPAL_CRYPT_HASH_BYTES);
    return opal_crypt_kdf_expand(schedule->prk, label, context, 2 * n + OPAL_CRYPT_HASH_BYTES, out, bytes);
}

const opal_crypt_peer_info_t *
opal_crypt_schedule_peer(const opal_crypt_schedule_t *schedule)
{
    return &schedule->peer;
}
