/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Authentication by munge: the node's daemon vouches for the user.
 *
 *     payload       = SHA-256('ompi-crypt v1 munge' || body)
 *     authenticator = a credential over the payload, for our uid alone
 *
 * A record is made once and decoded by every peer, perhaps hours later, so its credential may have expired, may be
 * known to the peer's daemon, or may lie in the future by its clock.  What must be fresh is the record: its credential
 * is from within crypt_munge_age of the time at which the record was first needed.  A process that meets others later
 * than that renews it:
 *
 *     renewal       = a credential over SHA-256('ompi-crypt v1 munge again' || record)
 */
#include "auth.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "munge.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if OPAL_CRYPT_HAVE_MUNGE

typedef struct munge_state {
    const opal_crypt_munge_t *munge;
    int64_t age_max;
    const char *socket;         /* from the options; NULL: munge's default */
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
                         opal_crypt_why_t *why)
{
    const char *text = NULL == context ? "out of memory" : state->munge->ctx_strerror(context);

    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG,
                             EMUNGE_SOCKET == error ? "munge-socket" : "munge-encode", "%s: %s",
                             NULL == state->socket ? "munge's default socket" : state->socket,
                             NULL == text ? state->munge->strerror(error) : text);
}

/* Make a credential for our own uid, the caller's to free. */
static int encode(const munge_state_t *state, const void *payload, int bytes, char **credential,
                  opal_crypt_why_t *why)
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

static const char title_body[] = "ompi-crypt v1 munge", title_again[] = "ompi-crypt v1 munge again";

static int digest(const char *title, const uint8_t *what, size_t bytes, uint8_t hash[OPAL_CRYPT_HASH_BYTES])
{
    opal_crypt_input_t pieces[] = {{title, strlen(title)}, {what, bytes}};

    return opal_crypt_sha256(pieces, 2, hash);
}

static bool munge_configured(const opal_crypt_options_t *options)
{
    munge_state_t state = {.socket = options->munge_socket};
    char *credential = NULL;
    bool answers = OPAL_CRYPT_OK == opal_crypt_munge_load(&state.munge, NULL)
                   && OPAL_CRYPT_OK == encode(&state, NULL, 0, &credential, NULL);

    free(credential);
    return answers;
}

static int munge_open(const opal_crypt_options_t *options, void **state,
                      opal_crypt_why_t *warning, opal_crypt_why_t *why)
{
    munge_state_t *made = calloc(1, sizeof(*made));
    int rc;

    (void) warning;
    *state = NULL;
    if (NULL == made) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "out of memory");
    }
    made->socket = options->munge_socket;
    made->age_max = opal_crypt_age_max(options);
    rc = opal_crypt_munge_load(&made->munge, why);
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

static int vouch(const munge_state_t *state, const char *title, const uint8_t *what, size_t what_bytes,
                 uint8_t *out, size_t capacity, size_t *bytes, opal_crypt_why_t *why)
{
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    char *credential;
    int rc = digest(title, what, what_bytes, hash);

    if (OPAL_CRYPT_OK != rc) {
        return opal_crypt_refuse(why, rc, "library", "SHA-256");
    }
    rc = encode(state, hash, sizeof(hash), &credential, why);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    *bytes = strlen(credential);
    if (*bytes > capacity) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "record-too-long",
                               "munge's credential has %zu bytes", *bytes);
    } else {
        memcpy(out, credential, *bytes);
    }
    free(credential);
    return rc;
}

static int munge_sign(void *state, const uint8_t *body, size_t body_bytes,
                      uint8_t *out, size_t capacity, size_t *bytes, opal_crypt_why_t *why)
{
    return vouch(state, title_body, body, body_bytes, out, capacity, bytes, why);
}

static int munge_renew(void *state, const uint8_t *record, size_t record_bytes,
                       uint8_t *out, size_t capacity, size_t *bytes, opal_crypt_why_t *why)
{
    return vouch(state, title_again, record, record_bytes, out, capacity, bytes, why);
}

/* ---- verifying ---- */

typedef struct decoded {
    munge_err_t error;
    void *payload;              /* from munge's malloc */
    int bytes;
    uid_t uid;
    time_t encoded;
    char text[200];             /* munge's text for an error */
} decoded_t;

static void decode(const munge_state_t *state, const uint8_t *text_bytes, size_t bytes, decoded_t *out)
{
    munge_ctx_t context = context_new(state);
    char *credential = malloc(bytes + 1);
    const char *text;
    gid_t gid;

    memset(out, 0, sizeof(*out));
    out->error = EMUNGE_NO_MEMORY;
    if (NULL != context && NULL != credential) {
        memcpy(credential, text_bytes, bytes);
        credential[bytes] = 0;
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

/* Is it a credential of our user over this hash? */
static int judge(const decoded_t *decoded, const uint8_t hash[OPAL_CRYPT_HASH_BYTES], opal_crypt_why_t *why)
{
    if (EMUNGE_CRED_UNAUTHORIZED == decoded->error) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "munge-other-uid",
                                 "its credential is not for user id %lu", (unsigned long) geteuid());
    }
    if (EMUNGE_SUCCESS != decoded->error && EMUNGE_CRED_EXPIRED != decoded->error
        && EMUNGE_CRED_REPLAYED != decoded->error && EMUNGE_CRED_REWOUND != decoded->error) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER,
                                 EMUNGE_SOCKET == decoded->error ? "munge-socket-later" : "munge-credential",
                                 "munge: %s", decoded->text);
    }
    if (decoded->uid != geteuid()) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "munge-other-uid",
                                 "its credential is of user id %lu, this process runs as %lu",
                                 (unsigned long) decoded->uid, (unsigned long) geteuid());
    }
    if (OPAL_CRYPT_HASH_BYTES != (size_t) decoded->bytes || NULL == decoded->payload
        || 0 != opal_crypt_differ(hash, decoded->payload, OPAL_CRYPT_HASH_BYTES)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "record-authenticator",
                                 "its munge credential was made for another record");
    }
    return OPAL_CRYPT_OK;
}

/* Check a credential over the hash of (title, what), and return when it was made. */
static int check(const munge_state_t *state, const uint8_t *text, size_t text_bytes, const char *title,
                 const uint8_t *what, size_t what_bytes, int64_t *encoded, opal_crypt_why_t *why)
{
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    decoded_t decoded;
    int rc = digest(title, what, what_bytes, hash);

    if (OPAL_CRYPT_OK != rc) {
        return opal_crypt_refuse(why, rc, "library", "SHA-256");
    }
    if (0 == text_bytes || NULL != memchr(text, 0, text_bytes)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "munge-credential", "it is no credential of munge");
    }
    decode(state, text, text_bytes, &decoded);
    rc = judge(&decoded, hash, why);
    *encoded = (int64_t) decoded.encoded;
    free(decoded.payload);
    return rc;
}

static int munge_verify(const void *opaque, const opal_crypt_claim_t *claim, opal_crypt_why_t *why)
{
    const munge_state_t *state = opaque;
    const int64_t now = (int64_t) time(NULL);
    int64_t encoded, age, latest = claim->needed;
    int rc = check(state, claim->authenticator, claim->authenticator_bytes, title_body,
                   claim->body, claim->body_bytes, &encoded, why);

    if (OPAL_CRYPT_OK == rc && claim->needed - encoded > state->age_max && NULL != claim->fresh) {
        rc = check(state, claim->fresh, claim->fresh_bytes, title_again,
                   claim->body, claim->record_bytes, &encoded, why);
        latest = now > latest ? now : latest;   /* the peer may have met others since */
    }
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    age = encoded > latest ? latest - encoded : encoded > claim->needed ? 0 : claim->needed - encoded;
    if (age > state->age_max || age < -state->age_max) {
        return opal_crypt_refuse(why, age > 0 ? OPAL_CRYPT_ERR_OLD : OPAL_CRYPT_ERR_PEER,
                                 age > 0 ? "munge-too-old" : "munge-clock",
                                 "its credential was made %lld seconds %s it was needed (crypt_munge_age: %lld)",
                                 (long long) (age > 0 ? age : -age), age > 0 ? "before" : "after",
                                 (long long) state->age_max);
    }
    return OPAL_CRYPT_OK;
}

const opal_crypt_auth_method_t opal_crypt_auth_munge = {
    .auth = OPAL_CRYPT_AUTH_MUNGE,
    .name = "munge",
    .configured = munge_configured,
    .open = munge_open,
    .close = munge_close,
    .sign = munge_sign,
    .renew = munge_renew,
    .verify = munge_verify,
};

#else

static bool munge_configured(const opal_crypt_options_t *options)
{
    (void) options;
    return false;
}

static int munge_open(const opal_crypt_options_t *options, void **state,
                      opal_crypt_why_t *warning, opal_crypt_why_t *why)
{
    (void) options;
    (void) warning;
    *state = NULL;
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "munge-left-out", "crypt_auth=munge");
}

/* If open fails, nothing else is called. */
const opal_crypt_auth_method_t opal_crypt_auth_munge = {
    .auth = OPAL_CRYPT_AUTH_MUNGE,
    .name = "munge",
    .configured = munge_configured,
    .open = munge_open,
};

#endif
