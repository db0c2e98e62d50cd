/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the status page shows with crypt_transport=btl: calls that block, the connections of btl/crypt and what they wait for,
 * and ob1's requests.
 */
#include "pml_crypt_waits.h"

#include <string.h>

#include "opal/runtime/opal_progress.h"

enum { CONNECTIONS = 4 };               /* at most, that wait for something and are named */

typedef struct btl_look {
    opal_crypt_status_snapshot_t *snapshot;
    uint64_t moved;
    opal_crypt_status_wait_t waits[CONNECTIONS];
    unsigned wait_count;
} btl_look_t;

/* A peer that something waits for replaces one that is only connected. */
static opal_crypt_status_peer_t *room_for(opal_crypt_status_snapshot_t *snapshot, bool waits)
{
    if (snapshot->peer_count < OPAL_CRYPT_STATUS_PEERS) {
        return &snapshot->peers[snapshot->peer_count++];
    }
    snapshot->peers_left_out++;
    for (int i = 0; waits && i < OPAL_CRYPT_STATUS_PEERS; i++) {
        if (OPAL_CRYPT_STATUS_SEALED == snapshot->peers[i].state && 0 == snapshot->peers[i].ahead_bytes) {
            return &snapshot->peers[i];
        }
    }
    return NULL;
}

static void look_at_peer(const opal_crypt_status_peer_t *peer, const opal_crypt_status_wait_t *wait, void *context)
{
    btl_look_t *look = context;
    opal_crypt_status_snapshot_t *snapshot = look->snapshot;
    opal_crypt_status_peer_t *place;

    look->moved += peer->sent + peer->accepted;
    snapshot->sealed += OPAL_CRYPT_STATUS_SEALED == peer->state;
    if (NULL != wait && look->wait_count < CONNECTIONS) {
        look->waits[look->wait_count++] = *wait;
    }
    if (OPAL_CRYPT_STATUS_UNKNOWN != peer->state && NULL != (place = room_for(snapshot, NULL != wait))) {
        *place = *peer;
    }
}

bool ompi_pml_crypt_look_btl(opal_crypt_status_snapshot_t *snapshot, int64_t now, bool lists, uint64_t *moved)
{
    static ompi_pml_crypt_waits_t waits;    /* one caller at a time */
    btl_look_t look = {.snapshot = snapshot};
    const opal_aead_module_t *aead = opal_cryptproc_params.options.aead;

    ompi_pml_crypt_waits_begin(&waits, snapshot, now);
    if (NULL != opal_cryptproc_transport_look && !opal_cryptproc_transport_look(now, look_at_peer, &look)) {
        return false;
    }
    if (lists && !ompi_pml_crypt_look_ob1(&waits, &look.moved)) {
        return false;
    }
    ompi_pml_crypt_waits_tell_inside(&waits);
    for (unsigned i = 0; i < look.wait_count; i++) {
        snapshot->waits[snapshot->wait_count++] = look.waits[i];
    }
    ompi_pml_crypt_waits_tell_requests(&waits);
    *moved = look.moved;
    if (NULL != aead) {
        opal_cryptproc_cut(snapshot->aead, sizeof(snapshot->aead), aead->name);
    }
    return true;
}

static int tick(void)
{
    ompi_pml_crypt_status_tick();
    return 0;
}

/* ob1's progress function does not call us. */
void ompi_pml_crypt_look_btl_start(void)
{
    (void) opal_progress_register_lp(tick);
}

void ompi_pml_crypt_look_btl_stop(void)
{
    (void) opal_progress_unregister(tick);
}
