/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The group key of a communicator: drawn by rank 0, sent to the others.
 *
 *     1. gather    hashes of public keys, up a binomial tree
 *     2. draw      rank 0: secret and id
 *     3. tell      secret and the whole list, down the tree
 *
 *            0                rank r has the ranks r ... r + 2^k - 1 below it,
 *          / | \              2^k its lowest bit that is set
 *         4  2  1
 *        /|  |
 *       6 5  3                All of it goes through the selected PML, which seals
 *       |                     it for other nodes; for processes of this node we
 *       7                     seal the secret ourselves.
 *
 * Whose key a hash is: a rank accepts a child's hash of its own key only if their
 * session says the same, and the child has checked its children in this way.  On
 * the way down every rank compares the list with all sessions it has.  So only a
 * member can introduce a wrong key; and a member could impersonate another anyway,
 * as it knows the group key.
 */
#include "cryptmpi.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/base/library.h"
#include "ompi/mca/pml/pml.h"

enum { HASH = 32 };

typedef struct {
    ompi_communicator_t *comm;
    ompi_common_cryptmpi_comm_t *entry;
    int ranks, rank;
    int below;                      /* the ranks rank ... rank + below - 1 are below us */
    uint8_t (*hashes)[HASH];        /* [ranks] */
    opal_crypt_group_secret_t *secret;          /* in crypt_secmem */
} talk_t;

static int send_to(const talk_t *talk, const void *from, size_t bytes, int rank)
{
    return MCA_PML_CALL(send(from, bytes, MPI_BYTE, rank, OMPI_COMMON_CRYPTMPI_TAG_GROUP,
                             MCA_PML_BASE_SEND_STANDARD, talk->comm));
}

static int receive_from(const talk_t *talk, void *to, size_t bytes, int rank)
{
    ompi_status_public_t status = {.MPI_ERROR = MPI_SUCCESS};
    int rc = MCA_PML_CALL(recv(to, bytes, MPI_BYTE, rank, OMPI_COMMON_CRYPTMPI_TAG_GROUP, talk->comm, &status));

    if (OMPI_SUCCESS != rc || MPI_SUCCESS != status.MPI_ERROR) {
        return OMPI_SUCCESS != rc ? rc : status.MPI_ERROR;
    }
    return bytes == status._ucount ? OMPI_SUCCESS : MPI_ERR_TRUNCATE;
}

/* ---- the secret, sealed for every rank ---- */

enum { FRAME = sizeof(opal_crypt_group_secret_t) + OPAL_CRYPT_DIRECT_OVERHEAD };

/* The session under which we seal what goes to `rank`, or open what it sends; NULL where
 * the PML does so.  The PML leaves plain what stays on the node, and its stages and shared
 * memory end up in core files. */
static int our_session(const talk_t *talk, int rank, opal_crypt_session_t **session)
{
    ompi_proc_t *proc = ompi_comm_peer_lookup(talk->comm, rank);
    int rc = ompi_common_cryptmpi_session(proc, session);

    if (OMPI_SUCCESS == rc && !ompi_common_cryptmpi_is_local(proc)) {
        *session = NULL;
    }
    return rc;
}

static opal_crypt_envelope_t envelope_of(const talk_t *talk, int rank)
{
    (void) ompi_common_cryptmpi_comm_peer(talk->entry, rank);
    return ompi_common_cryptmpi_envelope(talk->entry, rank, OMPI_COMMON_CRYPTMPI_TAG_GROUP);
}

static int send_secret(const talk_t *talk, int rank)
{
    const opal_crypt_envelope_t envelope = envelope_of(talk, rank);
    opal_crypt_session_t *session;
    uint8_t frame[FRAME];
    int rc = our_session(talk, rank, &session);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == session) {
        return send_to(talk, talk->secret, sizeof(*talk->secret), rank);
    }
    rc = opal_crypt_direct_seal(session, &envelope, talk->secret, sizeof(*talk->secret), frame);
    return OPAL_CRYPT_OK == rc
               ? send_to(talk, frame, sizeof(frame), rank)
               : ompi_common_cryptmpi_auth_failure(talk->comm, talk->rank, OMPI_COMMON_CRYPTMPI_TAG_GROUP, rc);
}

/* A replay of an older one is refused; there is no order to check. */
static int open_secret(const talk_t *talk, int rank, opal_crypt_session_t *session, const uint8_t frame[FRAME])
{
    const opal_crypt_envelope_t envelope = envelope_of(talk, rank);
    opal_crypt_serials_t *serials = talk->entry->serials;
    uint64_t counter;
    int rc = opal_crypt_direct_open(session, &envelope, frame, FRAME, talk->secret,
                                    sizeof(*talk->secret), &counter);

    return OPAL_CRYPT_OK != rc ? rc : opal_crypt_accept(session, serials, opal_crypt_serial_take(serials),
                                                        &envelope, counter, OPAL_CRYPT_ALLOW_OVERTAKING);
}

static int receive_secret(const talk_t *talk, int rank)
{
    opal_crypt_session_t *session;
    uint8_t frame[FRAME];
    int rc = our_session(talk, rank, &session);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == session) {
        return receive_from(talk, talk->secret, sizeof(*talk->secret), rank);
    }
    rc = receive_from(talk, frame, sizeof(frame), rank);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    rc = open_secret(talk, rank, session, frame);
    return OPAL_CRYPT_OK == rc
               ? OMPI_SUCCESS
               : ompi_common_cryptmpi_auth_failure(talk->comm, rank, OMPI_COMMON_CRYPTMPI_TAG_GROUP, rc);
}

/* ---- the three steps ---- */

/* The list must agree with what a session has authenticated. */
static int believe(const talk_t *talk, int rank)
{
    const ompi_common_cryptmpi_peer_t *peer = ompi_common_cryptmpi_comm_peer(talk->entry, rank);

    if (rank == talk->rank) {
        const uint8_t *ours = opal_crypt_local_key_hash(opal_cryptproc_local());
        if (0 == memcmp(talk->hashes[rank], ours, HASH)) {
            return OMPI_SUCCESS;
        }
    } else if (OMPI_COMMON_CRYPTMPI_UNKNOWN == ompi_common_cryptmpi_kind(peer)
               || 0 == memcmp(talk->hashes[rank], opal_crypt_session_peer(peer->session)->key_hash, HASH)) {
        return OMPI_SUCCESS;
    }
    OPAL_CRYPTPROC_SHOW("help-ompi-common-cryptmpi.txt", "group-refused", talk->rank, rank,
                              talk->comm->c_name);
    return OMPI_ERR_UNREACH;
}

/* How many of the ranks below `child` (our rank + distance) there are. */
static int below_child(const talk_t *talk, int distance)
{
    const int rest = talk->ranks - talk->rank - distance;

    return rest < distance ? rest : distance;
}

static int gather_hashes(const talk_t *talk)
{
    int distance, rc;

    for (distance = 1; distance < talk->ranks && 0 == (talk->rank & distance); distance *= 2) {
        const int child = talk->rank + distance;

        if (child >= talk->ranks) {
            continue;
        }
        rc = receive_from(talk, talk->hashes[child], (size_t) below_child(talk, distance) * HASH, child);
        if (OMPI_SUCCESS != rc || OMPI_SUCCESS != (rc = believe(talk, child))) {
            return rc;
        }
    }
    if (0 == talk->rank) {
        return OMPI_SUCCESS;
    }
    return send_to(talk, talk->hashes[talk->rank], (size_t) talk->below * HASH, talk->rank - distance);
}

static int send_group(const talk_t *talk)
{
    const size_t list_bytes = (size_t) talk->ranks * HASH;
    int distance = 1, rc;

    while (distance < talk->ranks && 0 == (talk->rank & distance)) {
        distance *= 2;
    }
    if (0 != talk->rank) {
        rc = receive_from(talk, talk->hashes, list_bytes, talk->rank - distance);
        if (OMPI_SUCCESS != rc
            || OMPI_SUCCESS != (rc = receive_secret(talk, talk->rank - distance))) {
            return rc;
        }
    }
    for (int i = 0; i < talk->ranks; i++) {
        if (OMPI_SUCCESS != (rc = believe(talk, i))) {
            return rc;
        }
    }
    for (distance /= 2; distance > 0; distance /= 2) {
        const int child = talk->rank + distance;

        if (child < talk->ranks
            && (OMPI_SUCCESS != (rc = send_to(talk, talk->hashes, list_bytes, child))
                || OMPI_SUCCESS != (rc = send_secret(talk, child)))) {
            return rc;
        }
    }
    return OMPI_SUCCESS;
}

static int failed(const ompi_communicator_t *comm, int reason, int rc)
{
    OPAL_CRYPTPROC_SHOW("help-ompi-common-cryptmpi.txt", "group-failed", comm->c_name,
                              opal_crypt_strerror(reason));
    return rc;
}

static int agree(talk_t *talk)
{
    int lowest = talk->rank & -talk->rank, rc;

    talk->below = 0 == talk->rank || lowest > talk->ranks - talk->rank ? talk->ranks - talk->rank : lowest;
    memcpy(talk->hashes[talk->rank], opal_crypt_local_key_hash(opal_cryptproc_local()), HASH);

    /* 1. gather */
    rc = gather_hashes(talk);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }

    /* 2. draw */
    if (0 == talk->rank) {
        rc = opal_crypt_draw(talk->secret->key, sizeof(talk->secret->key));
        if (OPAL_CRYPT_OK != rc) {
            return failed(talk->comm, rc, OMPI_ERROR);
        }
        opal_crypt_random(talk->secret->id, sizeof(talk->secret->id));
    }

    /* 3. tell */
    rc = send_group(talk);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    rc = opal_cryptproc_provider_needed();
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    rc = opal_crypt_group_create(opal_cryptproc_local(), talk->secret, talk->entry->context_high,
                                 talk->entry->context_low, (const uint8_t (*)[HASH]) talk->hashes,
                                 (uint32_t) talk->ranks, (uint32_t) talk->rank, &talk->entry->group);
    return OPAL_CRYPT_OK == rc ? OMPI_SUCCESS : failed(talk->comm, rc, OMPI_ERROR);
}

int ompi_common_cryptmpi_group(ompi_communicator_t *comm, opal_crypt_group_t **group)
{
    talk_t talk = {.comm = comm, .entry = ompi_common_cryptmpi_comm(comm)};
    int rc = OMPI_SUCCESS;

    *group = NULL;
    if (NULL == talk.entry || OMPI_COMM_IS_INTER(comm)) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    if (NULL == talk.entry->group) {
        talk.ranks = ompi_comm_size(comm);
        talk.rank = ompi_comm_rank(comm);
        talk.hashes = calloc((size_t) talk.ranks, HASH);
        talk.secret = opal_crypt_secmem_alloc(sizeof(*talk.secret));
        rc = NULL != talk.hashes && NULL != talk.secret ? agree(&talk)
                                                        : failed(comm, OPAL_CRYPT_ERR_MEMORY, OMPI_ERR_OUT_OF_RESOURCE);
        opal_crypt_secmem_free(talk.secret);
        free(talk.hashes);
    }
    *group = talk.entry->group;
    return rc;
}
