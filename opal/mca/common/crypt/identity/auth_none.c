/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * No authentication: a passive attacker learns nothing, but an active one can put itself between two processes.  Only
 * on request, with a warning each time.
 */
#include "auth.h"

/* Never chosen by `auto`. */
static bool none_configured(const opal_crypt_options_t *options)
{
    (void) options;
    return false;
}

static int none_open(const opal_crypt_options_t *options, void **state,
                     opal_crypt_why_t *warning, opal_crypt_why_t *why)
{
    (void) options;
    (void) why;
    *state = NULL;
    opal_crypt_refuse(warning, OPAL_CRYPT_OK, "auth-none", "crypt_auth=none");
    return OPAL_CRYPT_OK;
}

static int none_sign(void *state, const uint8_t *body, size_t body_bytes,
                     uint8_t *out, size_t capacity, size_t *bytes, opal_crypt_why_t *why)
{
    (void) state;
    (void) body;
    (void) body_bytes;
    (void) out;
    (void) capacity;
    (void) why;
    *bytes = 0;
    return OPAL_CRYPT_OK;
}

static int none_verify(const void *state, const opal_crypt_claim_t *claim, opal_crypt_why_t *why)
{
    (void) state;
    if (0 != claim->authenticator_bytes) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "record-authenticator",
                                 "there is an authenticator of %zu bytes, where none should be",
                                 claim->authenticator_bytes);
    }
    return OPAL_CRYPT_OK;
}

const opal_crypt_auth_method_t opal_crypt_auth_none = {
    .auth = OPAL_CRYPT_AUTH_NONE,
    .name = "none",
    .configured = none_configured,
    .open = none_open,
    .sign = none_sign,
    .verify = none_verify,
};
