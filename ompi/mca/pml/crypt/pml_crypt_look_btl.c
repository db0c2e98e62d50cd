/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the status page shows with crypt_transport=btl: the connections of btl/crypt, and what it waits for.  Messages are
 * ob1's, so what a call waits for is not known here; whether anything goes between nodes is.
 */
#include "pml_crypt.h"

#include <string.h>

#include "opal/runtime/opal_progress.h"

typedef struct btl_look {
    opal_crypt_status_moment_t *moment;
    uint64_t moved;
} btl_look_t;

static void add_wait(opal_crypt_status_moment_t *moment, const opal_crypt_status_wait_t *wait)
{
    if (moment->wait_count < OPAL_CRYPT_STATUS_WAITS) {
        moment->waits[moment->wait_count++] = *wait;
    }
}

/* One that something waits for takes the place of one that is only connected. */
static opal_crypt_status_peer_t *room_for(opal_crypt_status_moment_t *moment, bool waits)
{
    if (moment->peer_count < OPAL_CRYPT_STATUS_PEERS) {
        return &moment->peers[moment->peer_count++];
    }
    moment->peers_left_out++;
    for (int i = 0; waits && i < OPAL_CRYPT_STATUS_PEERS; i++) {
        if (OPAL_CRYPT_STATUS_SEALED == moment->peers[i].state && 0 == moment->peers[i].ahead_bytes) {
            return &moment->peers[i];
        }
    }
    return NULL;
}

static void look_at_peer(const opal_crypt_status_peer_t *peer, const opal_crypt_status_wait_t *wait, void *context)
{
    btl_look_t *look = context;
    opal_crypt_status_moment_t *moment = look->moment;
    opal_crypt_status_peer_t *place;

    look->moved += peer->sent + peer->accepted;
    moment->sealed += OPAL_CRYPT_STATUS_SEALED == peer->state;
    if (NULL != wait) {
        add_wait(moment, wait);
    }
    if (OPAL_CRYPT_STATUS_UNKNOWN != peer->state && NULL != (place = room_for(moment, NULL != wait))) {
        *place = *peer;
    }
}

/* A question to the runtime, which has no answer yet. */
static void look_inside(ompi_common_cryptmpi_inside_t *inside, void *context)
{
    opal_crypt_status_moment_t *moment = context;
    opal_crypt_status_wait_t wait = {.kind = inside->kind, .peer = OPAL_CRYPT_STATUS_ANY, .process = inside->peer, .blocking = 1};

    if (0 == inside->since) {
        inside->since = moment->updated;
    }
    wait.since = inside->since;
    opal_cryptproc_cut(wait.text, sizeof(wait.text), NULL == inside->text ? "" : inside->text);
    add_wait(moment, &wait);
}

bool ompi_pml_crypt_look_btl(opal_crypt_status_moment_t *moment, int64_t now, uint64_t *moved)
{
    btl_look_t look = {.moment = moment};
    const opal_aead_module_t *aead = opal_cryptproc_params.options.aead;

    ompi_common_cryptmpi_insides_look(look_inside, moment);
    if (NULL != opal_cryptproc_transport_look && !opal_cryptproc_transport_look(now, look_at_peer, &look)) {
        return false;
    }
    *moved = look.moved;
    if (NULL != aead) {
        opal_cryptproc_cut(moment->aead, sizeof(moment->aead), aead->name);
    }
    return true;
}

static int tick(void)
{
    ompi_pml_crypt_status_tick();
    return 0;
}

/* ob1's progress is its own. */
void ompi_pml_crypt_look_btl_start(void)
{
    (void) opal_progress_register_lp(tick);
}

void ompi_pml_crypt_look_btl_stop(void)
{
    (void) opal_progress_unregister(tick);
}
