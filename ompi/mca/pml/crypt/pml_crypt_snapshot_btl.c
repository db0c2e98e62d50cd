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

typedef struct btl_scan {
    opal_crypt_status_snapshot_t *snapshot;
    uint64_t moved;
    opal_crypt_status_wait_t waits[CONNECTIONS];
    unsigned wait_count;
} btl_scan_t;

/* A peer that something waits for replaces one that is only connected. */
static opal_crypt_status_peer_t *peer_slot(opal_crypt_status_snapshot_t *snapshot, bool waits)
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

static void scan_btl_peer(const opal_crypt_status_peer_t *peer, const opal_crypt_status_wait_t *wait, void *context)
{
    btl_scan_t *scan = context;
    opal_crypt_status_snapshot_t *snapshot = scan->snapshot;
    opal_crypt_status_peer_t *place;

    scan->moved += peer->sent + peer->accepted;
    snapshot->sealed += OPAL_CRYPT_STATUS_SEALED == peer->state;
    if (NULL != wait && scan->wait_count < CONNECTIONS) {
        scan->waits[scan->wait_count++] = *wait;
    }
    if (OPAL_CRYPT_STATUS_UNKNOWN != peer->state && NULL != (place = peer_slot(snapshot, NULL != wait))) {
        *place = *peer;
    }
}

bool ompi_pml_crypt_snapshot_btl(opal_crypt_status_snapshot_t *snapshot, int64_t now, bool lists, uint64_t *moved)
{
    static ompi_pml_crypt_waits_t waits;    /* one caller at a time */
    btl_scan_t scan = {.snapshot = snapshot};
    const opal_aead_module_t *aead = opal_cryptproc_params.options.aead;

    ompi_pml_crypt_waits_begin(&waits, snapshot, now);
    if (NULL != opal_cryptproc_transport_snapshot && !opal_cryptproc_transport_snapshot(now, scan_btl_peer, &scan)) {
        return false;
    }
    if (lists && !ompi_pml_crypt_snapshot_ob1(&waits, &scan.moved)) {
        return false;
    }
    ompi_pml_crypt_waits_add_inside(&waits);
    for (unsigned i = 0; i < scan.wait_count; i++) {
        snapshot->waits[snapshot->wait_count++] = scan.waits[i];
    }
    ompi_pml_crypt_waits_add_requests(&waits);
    *moved = scan.moved;
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
void ompi_pml_crypt_snapshot_btl_start(void)
{
    (void) opal_progress_register_lp(tick);
}

void ompi_pml_crypt_snapshot_btl_stop(void)
{
    (void) opal_progress_unregister(tick);
}
