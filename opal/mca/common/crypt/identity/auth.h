/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How records are authenticated: a struct of pointers per method, one file each (crypt/identity/auth_psk.c, _munge.c,
 * _x509.c, _none.c).
 *
 *     open --> sign our body ... verify a peer's body --> close
 *
 * A method signs bodies and verifies them; the caller has already checked that both processes use the same method and
 * parameters.
 *
 * Threads: open, sign and close by one thread, verify by any.
 */
#ifndef OPAL_CRYPT_IDENTITY_AUTH_H
#define OPAL_CRYPT_IDENTITY_AUTH_H

#include "opal/mca/common/crypt/base/base.h"
#include "local.h"

/* What a peer claims: a body, and an authenticator over it. */
typedef struct opal_crypt_claim {
    const uint8_t *body;
    size_t body_bytes;
    const uint8_t *authenticator;
    size_t authenticator_bytes;
    int64_t needed;                 /* when the record was first needed */
    size_t record_bytes;            /* body, length, authenticator, which are contiguous */
    const uint8_t *fresh;           /* a renewal, or NULL */
    size_t fresh_bytes;
} opal_crypt_claim_t;

typedef struct opal_crypt_auth_method {
    opal_crypt_auth_t auth;
    const char *name;

    /* For auto: has the site configured this method?  A broken configuration counts: open then refuses it, rather than
     * passing it over for a weaker method. */
    bool (*configured)(const opal_crypt_options_t *options);

    /* Read what the method needs into *state.  `warning` may be filled. */
    int (*open)(const opal_crypt_options_t *options, void **state,
                opal_crypt_why_t *warning, opal_crypt_why_t *why);
    void (*close)(void *state);         /* NULL if open leaves *state NULL */

    /* At most `capacity` bytes of authenticator over body. */
    int (*sign)(void *state, const uint8_t *body, size_t body_bytes,
                uint8_t *out, size_t capacity, size_t *bytes, opal_crypt_why_t *why);

    /* For methods whose authenticators age, else NULL: a renewal of the whole record, from which verify takes the age
     * of a record that is too old. */
    int (*renew)(void *state, const uint8_t *record, size_t record_bytes,
                 uint8_t *out, size_t capacity, size_t *bytes, opal_crypt_why_t *why);

    /* ERR_PEER with the reason in `why`; the caller adds the peer's identity.  ERR_OLD if the only reason is age: a
     * renewal, or a later one, may help. */
    int (*verify)(const void *state, const opal_crypt_claim_t *claim, opal_crypt_why_t *why);

    /* 32 secret bytes mixed into the pair secret; mix NULL: none. */
    const uint8_t *(*mix)(const void *state);
} opal_crypt_auth_method_t;

extern const opal_crypt_auth_method_t opal_crypt_auth_x509;
extern const opal_crypt_auth_method_t opal_crypt_auth_psk;
extern const opal_crypt_auth_method_t opal_crypt_auth_munge;
extern const opal_crypt_auth_method_t opal_crypt_auth_none;

/* For how many seconds a credential is fresh: by default, and at most. */
#define OPAL_CRYPT_AGE_DEFAULT 600
#define OPAL_CRYPT_AGE_MOST    86400

static inline int64_t opal_crypt_age_max(const opal_crypt_options_t *options)
{
    return 0 == options->munge_age ? OPAL_CRYPT_AGE_DEFAULT : (int64_t) options->munge_age;
}

/* The method for options->auth; AUTO takes the first of x509, psk, munge that is configured.  ERR_CONFIG, topic
 * "no-method", if none is. */
int opal_crypt_auth_select(const opal_crypt_options_t *options,
                           const opal_crypt_auth_method_t **method,
                           opal_crypt_why_t *why);

#endif
