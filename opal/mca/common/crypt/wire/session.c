/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A session: creation from a key schedule, the only counter of our direction, and the acceptance of the peer's
 * messages.  See crypt/wire/session.h.
 *
 *     schedule --> secrets: per direction  parents (direct, chopping, pieces), local token
 *              --> epochs (crypt/base/epoch.c), on demand
 */
#include "session_object.h"
#include "chop.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

/* derive function of a direction: the epoch's AEAD key, IV and chopping key */
static int derive_epoch(const void *parent, opal_aead_cipher_t cipher, opal_crypt_epoch_t *epoch, uint8_t *raw)
{
    const opal_crypt_parents_t *parents = parent;
    const size_t key_bytes = opal_aead_raw_key_bytes(cipher);
    uint8_t context[8];
    int rc;

    opal_crypt_put64(context, epoch->number);
    if (OPAL_CRYPT_OK != (rc = opal_crypt_kdf_expand(parents->direct, OPAL_CRYPT_LABEL_EPOCH_KEY,
                                                     context, sizeof(context),
                                                     raw, key_bytes))
        || OPAL_CRYPT_OK != (rc = opal_crypt_kdf_expand(parents->direct, OPAL_CRYPT_LABEL_EPOCH_IV,
                                                        context, sizeof(context),
                                                        epoch->iv, sizeof(epoch->iv)))) {
        return rc;
    }
    return opal_crypt_kdf_expand(parents->chop, OPAL_CRYPT_LABEL_CHOP_KEY,
                                 context, sizeof(context), epoch->chop, key_bytes);
}

/* The same for pieces of collectives: no chopping key, they are not chopped. */
static int derive_pieces(const void *parent, opal_aead_cipher_t cipher, opal_crypt_epoch_t *epoch, uint8_t *raw)
{
    const opal_crypt_parents_t *parents = parent;
    uint8_t context[8];
    int rc;

    opal_crypt_put64(context, epoch->number);
    rc = opal_crypt_kdf_expand(parents->piece, OPAL_CRYPT_LABEL_PIECE_KEY, context, sizeof(context),
                               raw, opal_aead_raw_key_bytes(cipher));
    return OPAL_CRYPT_OK != rc ? rc
         : opal_crypt_kdf_expand(parents->piece, OPAL_CRYPT_LABEL_PIECE_IV, context, sizeof(context),
                                 epoch->iv, sizeof(epoch->iv));
}

int opal_crypt_session_from_secrets(opal_crypt_secrets_t *secrets,
                                    const opal_aead_module_t *aead, opal_aead_cipher_t cipher,
                                    unsigned shift, opal_crypt_session_t **made)
{
    int rc = OPAL_CRYPT_ERR_CONFIG;

    if (!opal_crypt_may_use(aead, cipher, shift)) {
        goto err_secrets;
    }
    opal_crypt_session_t *session = calloc(1, sizeof(*session));
    if (NULL == session) {
        rc = OPAL_CRYPT_ERR_MEMORY;
        goto err_secrets;
    }
    session->aead = aead;
    session->cipher = cipher;
    session->shift = shift;
    session->secrets = secrets;
    opal_crypt_epochs_init(&session->out, aead, cipher, derive_epoch, &secrets->out, false);
    opal_crypt_epochs_init(&session->in, aead, cipher, derive_epoch, &secrets->in, false);
    opal_crypt_epochs_init(&session->pieces_out, aead, cipher, derive_pieces, &secrets->out, true);
    opal_crypt_epochs_init(&session->pieces_in, aead, cipher, derive_pieces, &secrets->in, true);
    pthread_mutex_init(&session->arrivals, NULL);
    opal_crypt_replay_init(&session->replay, 0);
    opal_crypt_order_init(&session->order);
    *made = session;
    return OPAL_CRYPT_OK;

err_secrets:
    opal_crypt_secmem_free(secrets);
    return rc;
}

static int expand_direction(const opal_crypt_schedule_t *schedule,
                            opal_crypt_direction_t direction,
                            opal_crypt_secrets_t *secrets)
{
    const bool out = OPAL_CRYPT_OUT == direction;
    opal_crypt_parents_t *parents = out ? &secrets->out : &secrets->in;
    opal_crypt_token_t *token = out ? &secrets->token_out : &secrets->token_in;
    int rc;

    if (OPAL_CRYPT_OK != (rc = opal_crypt_schedule_expand(schedule, OPAL_CRYPT_LABEL_DIRECTION,
                                                          direction, parents->direct,
                                                          sizeof(parents->direct)))
        || OPAL_CRYPT_OK != (rc = opal_crypt_schedule_expand(schedule, OPAL_CRYPT_LABEL_CHOP,
                                                             direction, parents->chop,
                                                             sizeof(parents->chop)))
        || OPAL_CRYPT_OK != (rc = opal_crypt_schedule_expand(schedule, OPAL_CRYPT_LABEL_PIECE,
                                                             direction, parents->piece,
                                                             sizeof(parents->piece)))
        || OPAL_CRYPT_OK != (rc = opal_crypt_schedule_expand(schedule, OPAL_CRYPT_LABEL_LOCAL_TOKEN,
                                                             direction, secrets->expanded,
                                                             sizeof(secrets->expanded)))) {
        return rc;
    }
    memcpy(token->bytes, secrets->expanded, sizeof(token->bytes));
    token->base = opal_crypt_get32(secrets->expanded + sizeof(token->bytes));
    opal_crypt_wipe(secrets->expanded, sizeof(secrets->expanded));
    return OPAL_CRYPT_OK;
}

static int expand(const opal_crypt_schedule_t *schedule, const opal_crypt_options_t *options,
                  opal_crypt_session_t **session)
{
    opal_crypt_secrets_t *secrets = opal_crypt_secmem_alloc(sizeof(*secrets));
    int rc;

    if (NULL == secrets) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    if (OPAL_CRYPT_OK != (rc = expand_direction(schedule, OPAL_CRYPT_OUT, secrets))
        || OPAL_CRYPT_OK != (rc = expand_direction(schedule, OPAL_CRYPT_IN, secrets))) {
        opal_crypt_secmem_free(secrets);
        return rc;
    }
    return opal_crypt_session_from_secrets(secrets, options->aead, options->cipher, options->epoch_shift,
                                           session);
}

int opal_crypt_session_alone(const opal_crypt_local_t *local, opal_crypt_session_t **session)
{
    const opal_crypt_options_t *options = opal_crypt_local_options(local);
    opal_crypt_secrets_t *secrets = opal_crypt_secmem_alloc(sizeof(*secrets));
    int rc;

    *session = NULL;
    if (NULL == secrets) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    if (OPAL_CRYPT_OK != (rc = opal_crypt_draw(&secrets->out, sizeof(secrets->out)))
        || OPAL_CRYPT_OK != (rc = opal_crypt_draw(&secrets->token_out, sizeof(secrets->token_out)))) {
        opal_crypt_secmem_free(secrets);
        return rc;
    }
    /* We receive what we send.  No nonce repeats: opening takes none of its own. */
    secrets->in = secrets->out;
    secrets->token_in = secrets->token_out;
    return opal_crypt_session_from_secrets(secrets, options->aead, options->cipher, options->epoch_shift,
                                           session);
}

int opal_crypt_session_create(const opal_crypt_local_t *local, const opal_crypt_schedule_t *schedule,
                              opal_crypt_session_t **session, opal_crypt_why_t *why)
{
    const opal_crypt_peer_info_t *info = opal_crypt_schedule_peer(schedule);
    int rc;

    *session = NULL;
    rc = expand(schedule, opal_crypt_local_options(local), session);
    if (OPAL_CRYPT_OK != rc) {
        return opal_crypt_refuse(why, rc, OPAL_CRYPT_ERR_MEMORY == rc ? "no-secret-memory" : "library",
                                 "the keys of a session: %s", opal_crypt_strerror(rc));
    }
    (*session)->peer = (opal_crypt_session_peer_t) {
        .rank = info->rank, .instance = info->instance, .same_node = info->same_node, .report = info->report};
    memcpy((*session)->peer.key_hash, info->key_hash, sizeof(info->key_hash));
    return OPAL_CRYPT_OK;
}

void opal_crypt_session_destroy(opal_crypt_session_t *session)
{
    if (NULL != session) {
        opal_crypt_epochs_fini(&session->out);
        opal_crypt_epochs_fini(&session->in);
        opal_crypt_epochs_fini(&session->pieces_out);
        opal_crypt_epochs_fini(&session->pieces_in);
        opal_crypt_secmem_free(session->secrets);
        opal_crypt_replay_fini(&session->replay);
        opal_crypt_order_fini(&session->order);
        pthread_mutex_destroy(&session->arrivals);
        free(session);
    }
}

void opal_crypt_session_rest(opal_crypt_session_t *session)
{
    opal_crypt_epochs_rest(&session->out);
    opal_crypt_epochs_rest(&session->in);
    opal_crypt_epochs_rest(&session->pieces_out);
    opal_crypt_epochs_rest(&session->pieces_in);
}

const opal_crypt_session_peer_t *opal_crypt_session_peer(const opal_crypt_session_t *session)
{
    return &session->peer;
}

const opal_crypt_token_t *opal_crypt_token_out(const opal_crypt_session_t *session)
{
    return &session->secrets->token_out;
}

const opal_crypt_token_t *opal_crypt_token_in(const opal_crypt_session_t *session)
{
    return &session->secrets->token_in;
}

/* ---- sending ---- */

OPAL_CRYPT_OFTEN
int opal_crypt_counter_take(opal_crypt_session_t *session, uint64_t *counter)
{
    if (opal_crypt_forked()) {
        return OPAL_CRYPT_ERR_FORKED;
    }
    uint64_t taken = __atomic_fetch_add(&session->next, 1, __ATOMIC_RELAXED);
    if (taken >= OPAL_CRYPT_COUNTER_END) {
        /* Reset it to the end, so that repeated calls cannot reach 2^64. */
        __atomic_store_n(&session->next, OPAL_CRYPT_COUNTER_END, __ATOMIC_RELAXED);
        return OPAL_CRYPT_ERR_EXHAUSTED;
    }
    *counter = taken;
    return OPAL_CRYPT_OK;
}

static uint64_t counters_taken(const opal_crypt_session_t *session)
{
    uint64_t next = __atomic_load_n(&session->next, __ATOMIC_RELAXED);

    return next < OPAL_CRYPT_COUNTER_END ? next : OPAL_CRYPT_COUNTER_END;
}

void opal_crypt_session_unsent(opal_crypt_session_t *session)
{
    (void) __atomic_fetch_add(&session->unsent, 1, __ATOMIC_RELAXED);
}

/* Without the lock under which messages are sealed, as for the status page, the two may be inconsistent. */
uint64_t opal_crypt_sent_of(const opal_crypt_session_t *session, uint64_t taken)
{
    const uint64_t unsent = __atomic_load_n(&session->unsent, __ATOMIC_RELAXED);

    return taken > unsent ? taken - unsent : 0;
}

uint64_t opal_crypt_session_sent(const opal_crypt_session_t *session)
{
    return opal_crypt_sent_of(session, counters_taken(session));
}

/* ---- receiving ---- */

/* With both locks held. */
OPAL_CRYPT_OFTEN
static int accept(opal_crypt_session_t *session, opal_crypt_serials_t *serials,
                  uint64_t serial, const opal_crypt_envelope_t *envelope,
                  uint64_t counter, int flags)
{
    const bool in_order = 0 == (flags & OPAL_CRYPT_ALLOW_OVERTAKING);
    const bool any_tag = 0 != (flags & OPAL_CRYPT_ANY_TAG);
    int rc = OPAL_CRYPT_OK;

    /* 1. may it be delivered */
    if (opal_crypt_replay_has(&session->replay, counter)) {
        rc = OPAL_CRYPT_ERR_REPLAY;
    } else if (in_order) {
        rc = opal_crypt_order_check(&session->order, serials, serial, any_tag, envelope, counter);
    }
    /* 2. it is no longer outstanding, whatever the result */
    int given_back = opal_crypt_serials_release(serials, serial);
    if (OPAL_CRYPT_OK != rc || OPAL_CRYPT_OK != (rc = given_back)) {
        return rc;
    }
    /* 3. remember */
    rc = opal_crypt_replay_insert(&session->replay, counter);
    if (OPAL_CRYPT_OK == rc && in_order) {
        rc = opal_crypt_order_add(&session->order, &session->replay, serials, serial,
                                  any_tag, envelope, counter);
    }
    return rc;
}

OPAL_CRYPT_OFTEN
int opal_crypt_accept(opal_crypt_session_t *session,
                      opal_crypt_serials_t *serials, uint64_t serial,
                      const opal_crypt_envelope_t *envelope,
                      uint64_t counter, int flags)
{
    if (!opal_crypt_threaded()) {
        return accept(session, serials, serial, envelope, counter, flags);
    }
    pthread_mutex_lock(&session->arrivals);
    pthread_mutex_lock(&serials->lock);
    int rc = accept(session, serials, serial, envelope, counter, flags);
    pthread_mutex_unlock(&serials->lock);
    pthread_mutex_unlock(&session->arrivals);
    return rc;
}

void opal_crypt_session_gap(opal_crypt_session_t *session,
                            uint64_t *highest, uint64_t *accepted)
{
    pthread_mutex_lock(&session->arrivals);
    *highest = session->replay.top;
    *accepted = session->replay.accepted;
    pthread_mutex_unlock(&session->arrivals);
}

void opal_crypt_session_snapshot(opal_crypt_session_t *session, opal_crypt_session_state_t *state)
{
    state->sent = opal_crypt_session_sent(session);
    pthread_mutex_lock(&session->arrivals);
    state->highest = session->replay.top;
    state->accepted = session->replay.accepted;
    state->missing = session->replay.mark;
    state->window_bytes = opal_crypt_replay_memory(&session->replay);
    pthread_mutex_unlock(&session->arrivals);
    const uint64_t taken = counters_taken(session);
    state->epoch_out = (taken > 0 ? taken - 1 : 0) >> session->shift;
    state->epoch_in = (state->highest > 0 ? state->highest - 1 : 0) >> session->shift;
}

void opal_crypt_wire_finalize(void)
{
    if (!opal_crypt_forked()) {
        opal_crypt_chop_finalize();
    }
}

void opal_crypt_finalize(void)
{
    opal_crypt_wire_finalize();
    if (!opal_crypt_forked()) {
        opal_crypt_base_finalize();
    }
}
