/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The inside of a connection's records, for keys.c, seal.c and open.c.
 */
#ifndef OPAL_CRYPT_TLS_RECORDS_OBJECT_H
#define OPAL_CRYPT_TLS_RECORDS_OBJECT_H

#include "records.h"
#include "suite.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/crypt/base/nonce_log.h"
#include "opal/mca/common/crypt/base/share.h"

/* Record types: all look like data outside, with the real type inside. */
enum { RECORD_ALERT = 21, RECORD_HANDSHAKE = 22, RECORD_DATA = 23 };

/* A KeyUpdate that requests none in return; a close_notify. */
#define RECORD_KEY_UPDATE_BYTES 5
#define RECORD_CLOSE_BYTES      2
extern const uint8_t opal_crypt_tls_record_key_update[RECORD_KEY_UPDATE_BYTES];
extern const uint8_t opal_crypt_tls_record_close_notify[RECORD_CLOSE_BYTES];

typedef struct record_direction {
    uint8_t secret[OPAL_CRYPT_TLS_SECRET_MAX];
    uint8_t iv[OPAL_AEAD_NONCE_BYTES];
    uint8_t id[OPAL_CRYPT_RECORD_ID_BYTES]; /* test builds: names the key in the nonce log */
    uint64_t sequence;                      /* of the next record */
    uint64_t earlier;                       /* records under earlier secrets */
    void *key;                              /* the provider's, after the object */
    int ended;                              /* the answer to further records, or OK */
    opal_crypt_share_t *share;              /* threads that help with many records; NULL: none */
} record_direction_t;

/* One block of crypt_secmem, both keys included. */
struct opal_crypt_tls_records {
    const opal_aead_module_t *aead;
    const opal_crypt_tls_suite_t *suite;
    uint64_t renew;
    bool closed;                            /* the peer's close_notify has come */
    int broken;                             /* the error that ended both directions, or OK; atomic */
    record_direction_t out, in;
};

/* keys.c: derive the next secret of a direction, and its key, IV and sequence.  The old ones are wiped. */
int opal_crypt_tls_record_renew(const opal_crypt_tls_records_t *records, record_direction_t *direction);

/* keys.c: end a direction, wipe its secret and key, and return this error now and from then on. break: ends the other
 * direction too, which is wiped by the thread that uses it. */
int opal_crypt_tls_record_end(const opal_crypt_tls_records_t *records, record_direction_t *direction, int rc);
int opal_crypt_tls_record_break(opal_crypt_tls_records_t *records, record_direction_t *direction, int rc);

/* May this direction go on? */
static inline int opal_crypt_tls_record_ready(const opal_crypt_tls_records_t *records,
                                              const record_direction_t *direction)
{
    const int broken = __atomic_load_n(&records->broken, __ATOMIC_RELAXED);

    return OPAL_CRYPT_OK != direction->ended ? direction->ended : broken;
}

#endif
