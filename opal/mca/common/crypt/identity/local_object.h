/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a local object holds, for crypt/identity/local.c and crypt/identity/schedule.c alone.
 */
#ifndef OPAL_CRYPT_IDENTITY_LOCAL_OBJECT_H
#define OPAL_CRYPT_IDENTITY_LOCAL_OBJECT_H

#include "auth.h"
#include "kex.h"
#include "local.h"
#include "record.h"

struct opal_crypt_local {
    opal_crypt_options_t options;
    const opal_crypt_auth_method_t *method;
    void *auth_state;
    opal_crypt_keypair_t pair;
    uint8_t key_hash[32];
    int64_t created;
    uint8_t *bytes;                         /* our record, ... */
    size_t byte_count;
    opal_crypt_record_t record;             /* ... and views into it */
    opal_crypt_why_t warning;               /* topic NULL: none */
    int64_t vouched;                        /* when the record, or its renewal, was made */
    uint8_t *fresh;                         /* the renewal */
};

/* What `record` says about its process, relative to `local`. */
void opal_crypt_record_info(const opal_crypt_local_t *local,
                            const opal_crypt_record_t *record,
                            opal_crypt_peer_info_t *info);

/* Parse; on failure refuse with `why` naming both processes. */
int opal_crypt_record_read(const opal_crypt_local_t *local, const uint8_t *bytes, size_t count,
                           const opal_crypt_expect_t *expect,
                           opal_crypt_record_t *record, opal_crypt_why_t *why);

/* Prepend our identity and the peer's to the reason in `why`. */
int opal_crypt_blame(const opal_crypt_local_t *local, const opal_crypt_record_t *peer,
                     const opal_crypt_expect_t *expect, int rc, opal_crypt_why_t *why);

#endif
