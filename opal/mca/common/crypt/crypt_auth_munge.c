/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Authentication by munge: the daemon of the node vouches for the user.
 *
 *     payload       = SHA-256('ompi-crypt v1 munge' || body)
 *     authenticator = a credential over the payload, for our uid alone
 *
 * A record is made once and decoded by every peer, perhaps hours later, so
 * that a credential may be expired or known to the peer's daemon.  What must
 * be fresh is the record: its credential is from within ten minutes of the
 * time at which the record came to be needed.
 */
#include "crypt_auth.h"
#include "crypt_kdf.h"
#include "crypt_munge.h"
#include "crypt_secmem.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if OPAL_CRYPT_HAVE_MUNGE

#define AGE_MAX 600     /* seconds */

typedef struct munge_state {
    const opal_common_crypt_munge_t *munge;
    const char *socket;         /* the options'; NULL: munge's own */
} munge_state_t;

/* A context for one call; NULL when out of memory. */
static munge_ctx_t context_new(const munge_state_t *state)
{
    munge_ctx_t context = state->munge->ctx_create();

    if (NULL != context && NULL != state->socket
        && EMUNGE_SUCCESS != state->munge->ctx_set(context, MUNGE_OPT_SOCKET, state->socket)) {
        state->munge->ctx_destroy(context);
        context = NULL;
    }
    return context;
}

static int refuse_encode(const munge_state_t *state, munge_ctx_t context, munge_err_t error,
                         opal_common_crypt_why_t *why)
{
    const char *text = NULL == context ? "out of memory" : state->munge->ctx_strerror(context);

    return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG,
                                    EMUNGE_SOCKET == error ? "munge-socket" : "munge-encode", "%s: %s",
                                    NULL == state->socket ? "munge's default socket" : state->socket,
                                    NULL == text ? state->munge->strerror(error) : text);
}

/* A credential for our own uid, the caller's to free. */
static int encode(const munge_state_t *state, const void *payload, int bytes, char **credential,
                  opal_common_crypt_why_t *why)
{
    munge_ctx_t context = context_new(state);
    munge_err_t error = NULL == context ? EMUNGE_NO_MEMORY : EMUNGE_SUCCESS;
    int rc = OPAL_CRYPT_OK;

    *credential = NULL;
    if (EMUNGE_SUCCESS == error) {
        error = state->munge->ctx_set(context, MUNGE_OPT_UID_RESTRICTION, geteuid());
    }
    if (EMUNGE_SUCCESS == error) {
        error = state->munge->encode(credential, context, payload, bytes);
    }
    if (EMUNGE_SUCCESS != error || NULL == *credential) {
        rc = refuse_encode(state, context, error, why);
    }
    if (NULL != context) {
        state->munge->ctx_destroy(context);
    }
    return rc;
}

static int digest(const uint8_t *body, size_t body_bytes, uint8_t hash[OPAL_CRYPT_HASH_BYTES])
{
    static const char title[] = "ompi-crypt v1 munge";
    opal_common_crypt_input_t pieces[] = {{title, sizeof(title) - 1}, {body, body_bytes}};

    return opal_common_crypt_sha256(pieces, 2, hash);
}

static bool munge_configured(const opal_common_crypt_options_t *options)
{
    munge_state_t state = {.socket = options->munge_socket};
    char *credential = NULL;
    bool answers = OPAL_CRYPT_OK == opal_common_crypt_munge_load(&state.munge, NULL)
                   && OPAL_CRYPT_OK == encode(&state, NULL, 0, &credential, NULL);

    free(credential);
    return answers;
}

static int munge_open(const opal_common_crypt_options_t *options, void **state,
                      opal_common_crypt_why_t *warning, opal_common_crypt_why_t *why)
{
    munge_state_t *made = calloc(1, sizeof(*made));
    int rc;

    (void) warning;
    *state = NULL;
    if (NULL == made) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "out of memory");
    }
    made->socket = options->munge_socket;
    rc = opal_common_crypt_munge_load(&made->munge, why);
    if (OPAL_CRYPT_OK != rc) {
        free(made);
        return rc;
    }
    *state = made;
    return OPAL_CRYPT_OK;
}

static void munge_close(void *state)
{
    free(state);
}

static int munge_sign(void *state, const uint8_t *body, size_t body_bytes,
                      uint8_t *out, size_t room, size_t *bytes, opal_common_crypt_why_t *why)
{
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    char *credential;
    int rc = digest(body, body_bytes, hash);

    if (OPAL_CRYPT_OK != rc) {
        return opal_common_crypt_refuse(why, rc, "library", "SHA-256");
    }
    rc = encode(state, hash, sizeof(hash), &credential, why);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    *bytes = strlen(credential);
    if (*bytes > room) {
        rc = opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "record-too-long",
                                      "munge's credential has %zu bytes", *bytes);
    } else {
        memcpy(out, credential, *bytes);
    }
    free(credential);
    return rc;
}

/* ---- verifying ---- */

typedef struct decoded {
    munge_err_t error;
    void *payload;              /* munge's malloc */
    int bytes;
    uid_t uid;
    time_t encoded;
    char text[200];             /* munge's words for an error */
} decoded_t;

static void decode(const munge_state_t *state, const opal_common_crypt_claim_t *claim, decoded_t *out)
{
    munge_ctx_t context = context_new(state);
    char *credential = malloc(claim->authenticator_bytes + 1);
    const char *text;
    gid_t gid;

    memset(out, 0, sizeof(*out));
    out->error = EMUNGE_NO_MEMORY;
    if (NULL != context && NULL != credential) {
        memcpy(credential, claim->authenticator, claim->authenticator_bytes);
        credential[claim->authenticator_bytes] = 0;
        out->error = state->munge->decode(credential, context, &out->payload, &out->bytes, &out->uid, &gid);
        state->munge->ctx_get(context, MUNGE_OPT_ENCODE_TIME, &out->encoded);
    }
    text = NULL == context ? NULL : state->munge->ctx_strerror(context);
    strncpy(out->text, NULL == text ? state->munge->strerror(out->error) : text, sizeof(out->text) - 1);
    free(credential);
    if (NULL != context) {
        state->munge->ctx_destroy(context);
    }
}

static int judge(const opal_common_crypt_claim_t *claim, const decoded_t *decoded, opal_common_crypt_why_t *why)
{
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    long long age = (long long) claim->needed - (long long) decoded->encoded;
    int rc;

    if (EMUNGE_CRED_UNAUTHORIZED == decoded->error) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "munge-other-uid",
                                        "its credential is not for user id %lu", (unsigned long) geteuid());
    }
    if (EMUNGE_SUCCESS != decoded->error && EMUNGE_CRED_EXPIRED != decoded->error
        && EMUNGE_CRED_REPLAYED != decoded->error) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_PEER,
                                        EMUNGE_SOCKET == decoded->error ? "munge-socket-later"
                                        : EMUNGE_CRED_REWOUND == decoded->error ? "munge-clock" : "munge-credential",
                                        "munge: %s", decoded->text);
    }
    if (decoded->uid != geteuid()) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "munge-other-uid",
                                        "its credential is of user id %lu, this process runs as %lu",
                                        (unsigned long) decoded->uid, (unsigned long) geteuid());
    }
    rc = digest(claim->body, claim->body_bytes, hash);
    if (OPAL_CRYPT_OK != rc) {
        return opal_common_crypt_refuse(why, rc, "library", "SHA-256");
    }
    if (sizeof(hash) != (size_t) decoded->bytes || NULL == decoded->payload
        || 0 != opal_common_crypt_differ(hash, decoded->payload, sizeof(hash))) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "record-authenticator",
                                        "its munge credential was made for another record");
    }
    if (age > AGE_MAX || age < -AGE_MAX) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "munge-too-old",
                                        "its credential was made %lld seconds %s it was needed",
                                        age > 0 ? age : -age, age > 0 ? "before" : "after");
    }
    return OPAL_CRYPT_OK;
}

static int munge_verify(const void *state, const opal_common_crypt_claim_t *claim, opal_common_crypt_why_t *why)
{
    decoded_t decoded;
    int rc;

    if (0 == claim->authenticator_bytes || NULL != memchr(claim->authenticator, 0, claim->authenticator_bytes)) {
        return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "munge-credential", "it is no credential of munge");
    }
    decode(state, claim, &decoded);
    rc = judge(claim, &decoded, why);
    free(decoded.payload);
    return rc;
}

static const uint8_t *munge_mix(const void *state)
{
    (void) state;
    return NULL;
}

const opal_common_crypt_auth_method_t opal_common_crypt_auth_munge = {
    .auth = OPAL_CRYPT_AUTH_MUNGE,
    .name = "munge",
    .configured = munge_configured,
    .open = munge_open,
    .close = munge_close,
    .sign = munge_sign,
    .verify = munge_verify,
    .mix = munge_mix,
};

#else

static bool munge_configured(const opal_common_crypt_options_t *options)
{
    (void) options;
    return false;
}

static int munge_open(const opal_common_crypt_options_t *options, void **state,
                      opal_common_crypt_why_t *warning, opal_common_crypt_why_t *why)
{
    (void) options;
    (void) warning;
    *state = NULL;
    return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "munge-left-out", "crypt_auth=munge");
}

/* Without open nothing else is ever called. */
const opal_common_crypt_auth_method_t opal_common_crypt_auth_munge = {
    .auth = OPAL_CRYPT_AUTH_MUNGE,
    .name = "munge",
    .configured = munge_configured,
    .open = munge_open,
};

#endif
