/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Group keys, and the pieces of collectives: for all members under a group key, for a single one under keys of the
 * session with it, and never one in place of the other.
 *
 *     group key --sender, epoch--> AEAD key, IV        (crypt/base/epoch.c)
 *     session   --epoch----------> AEAD key, IV        (crypt/wire/session.c)
 *     | counter 8 | ciphertext n | tag 16 |
 *
 * A piece may be longer than a direct message, so it takes one counter per 4 MiB, all of them in one epoch: like the
 * key of a direct epoch, a sender's epoch key seals at most 2^42 bytes.
 */
#include "session_object.h"
#include "opal/mca/common/crypt/base/box.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HEADER 8
#define TAG    OPAL_CRYPT_FRAME_TAG
#define AAD    (HEADER + OPAL_CRYPT_GROUP_ID_BYTES + 8 + 1 + 1 + 4 + 4 + 4 + 4 + 8)
#define CONTEXT 16
#define HASH   32

static_assert(OPAL_CRYPT_PIECE_OVERHEAD == HEADER + TAG, "piece");
static_assert(OPAL_CRYPT_PIECE_MAX / OPAL_CRYPT_DIRECT_MAX <= UINT64_C(1) << OPAL_CRYPT_EPOCH_SHIFT,
              "the longest piece fits an epoch");

/* One per rank. */
typedef struct member {
    const struct opal_crypt_group *group;
    uint8_t hash[HASH];                     /* of its public key */
    opal_crypt_epochs_t epochs;             /* for what it seals */
    uint64_t sequence;                      /* of the latest collective in which a piece of it was opened, */
    uint64_t floor;                         /* the lowest counter allowed in that, */
    uint64_t top;                           /* and one more than the highest opened */
} member_t;

struct opal_crypt_group {
    opal_crypt_group_secret_t *secret;          /* in crypt_secmem */
    uint64_t context_high, context_low;
    const opal_aead_module_t *aead;
    unsigned shift;
    uint32_t self, count;
    pthread_mutex_t arrivals;                   /* protects sequence, floor and top of all members */
    member_t members[];
};

/* ---- making ---- */

/* derive function of a member: no chopping key, pieces are not chopped */
static int derive_group_epoch(const void *parent, opal_aead_cipher_t cipher, opal_crypt_epoch_t *epoch, uint8_t *raw)
{
    const member_t *member = parent;
    const opal_crypt_group_secret_t *secret = member->group->secret;
    uint8_t scope[OPAL_CRYPT_GROUP_ID_BYTES + 16 + HASH + 8];

    memcpy(scope, secret->id, OPAL_CRYPT_GROUP_ID_BYTES);
    opal_crypt_put64(scope + 16, member->group->context_high);
    opal_crypt_put64(scope + 24, member->group->context_low);
    memcpy(scope + 32, member->hash, HASH);
    opal_crypt_put64(scope + 64, epoch->number);

    int rc = opal_crypt_kdf_expand(secret->key, OPAL_CRYPT_LABEL_GROUP_KEY, scope, sizeof(scope),
                                   raw, opal_aead_raw_key_bytes(cipher));
    return OPAL_CRYPT_OK != rc ? rc
         : opal_crypt_kdf_expand(secret->key, OPAL_CRYPT_LABEL_GROUP_IV, scope, sizeof(scope),
                                 epoch->iv, sizeof(epoch->iv));
}

int opal_crypt_group_from_secret(const opal_crypt_group_secret_t *secret,
                                 const opal_aead_module_t *aead, opal_aead_cipher_t cipher,
                                 unsigned shift, uint64_t context_high, uint64_t context_low,
                                 const uint8_t (*members)[HASH], uint32_t count, uint32_t self,
                                 opal_crypt_group_t **made)
{
    *made = NULL;
    if (self >= count || !opal_crypt_may_use(aead, cipher, shift)) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    opal_crypt_group_t *group = calloc(1, sizeof(*group) + count * sizeof(member_t));
    if (NULL == group) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    group->secret = opal_crypt_secmem_alloc(sizeof(*group->secret));
    if (NULL == group->secret) {
        free(group);
        return OPAL_CRYPT_ERR_MEMORY;
    }
    *group->secret = *secret;
    group->context_high = context_high;
    group->context_low = context_low;
    group->aead = aead;
    group->shift = shift;
    group->self = self;
    group->count = count;
    pthread_mutex_init(&group->arrivals, NULL);
    for (uint32_t i = 0; i < count; ++i) {
        member_t *member = &group->members[i];
        member->group = group;
        memcpy(member->hash, members[i], HASH);
        opal_crypt_epochs_init(&member->epochs, aead, cipher, derive_group_epoch, member, true);
    }
    *made = group;
    return OPAL_CRYPT_OK;
}

int opal_crypt_group_create(const opal_crypt_local_t *local,
                            const opal_crypt_group_secret_t *secret,
                            uint64_t context_high, uint64_t context_low,
                            const uint8_t (*members)[HASH], uint32_t count, uint32_t self,
                            opal_crypt_group_t **group)
{
    const opal_crypt_options_t *options = opal_crypt_local_options(local);
    const uint8_t *ours = opal_crypt_local_key_hash(local);

    *group = NULL;
    for (uint32_t i = 0; i < count; ++i) {
        bool equal = 0 == memcmp(members[i], ours, HASH);
        if (equal != (i == self)) {
            return equal ? OPAL_CRYPT_ERR_PEER : OPAL_CRYPT_ERR_CONFIG;
        }
    }
    return opal_crypt_group_from_secret(secret, options->aead, options->cipher, options->epoch_shift,
                                        context_high, context_low, members, count, self, group);
}

void opal_crypt_group_destroy(opal_crypt_group_t *group)
{
    if (NULL != group) {
        for (uint32_t i = 0; i < group->count; ++i) {
            opal_crypt_epochs_fini(&group->members[i].epochs);
        }
        opal_crypt_secmem_free(group->secret);
        pthread_mutex_destroy(&group->arrivals);
        free(group);
    }
}

/* ---- the counter ---- */

/* Never set back, not even by finalize. */
uint64_t opal_crypt_group_next;

/* Takes one counter per 4 MiB of the piece, all in one epoch; the piece is sealed with the first. */
static int counters_take(unsigned shift, uint64_t plain_bytes, uint64_t *counter)
{
    const uint64_t epoch = UINT64_C(1) << shift;
    uint64_t units = (plain_bytes + OPAL_CRYPT_DIRECT_MAX - 1) / OPAL_CRYPT_DIRECT_MAX;
    uint64_t next = __atomic_load_n(&opal_crypt_group_next, __ATOMIC_RELAXED), first;

    units = 0 == units ? 1 : units < epoch ? units : epoch;     /* a test's epochs may be shorter */
    do {
        first = (next & (epoch - 1)) + units > epoch ? (next | (epoch - 1)) + 1 : next;
        if (first + units > OPAL_CRYPT_COUNTER_END) {
            return OPAL_CRYPT_ERR_EXHAUSTED;
        }
    } while (!__atomic_compare_exchange_n(&opal_crypt_group_next, &next, first + units, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    *counter = first;
    return OPAL_CRYPT_OK;
}

/* ---- pieces ---- */

/* For one member, the context id is appended; a group's keys are bound to it anyway. */
static size_t aad_put(uint8_t aad[AAD + CONTEXT], const opal_crypt_group_t *group, uint64_t counter,
                      const opal_crypt_piece_t *piece)
{
    uint8_t *p = aad + HEADER + OPAL_CRYPT_GROUP_ID_BYTES;

    opal_crypt_put64(aad, counter);
    memcpy(aad + HEADER, group->secret->id, OPAL_CRYPT_GROUP_ID_BYTES);
    opal_crypt_put64(p, piece->sequence);
    p[8] = piece->operation;
    p[9] = piece->algorithm;
    opal_crypt_put32(p + 10, piece->origin);
    opal_crypt_put32(p + 14, piece->destination);
    opal_crypt_put32(p + 18, piece->index);
    opal_crypt_put32(p + 22, piece->count);
    opal_crypt_put64(p + 26, piece->plain_bytes);
    opal_crypt_put64(aad + AAD, group->context_high);
    opal_crypt_put64(aad + AAD + 8, group->context_low);
    return OPAL_CRYPT_TO_ALL == piece->destination ? AAD : AAD + CONTEXT;
}

static bool piece_good(const opal_crypt_group_t *group, const opal_crypt_piece_t *piece)
{
    return piece->origin < group->count && piece->plain_bytes <= OPAL_CRYPT_PIECE_MAX;
}

/* Is this the session with that member? */
static bool session_with(const opal_crypt_group_t *group, uint32_t rank, const opal_crypt_session_t *session)
{
    return rank < group->count && rank != group->self && session->aead == group->aead && session->shift == group->shift
           && 0 == memcmp(session->peer.key_hash, group->members[rank].hash, HASH);
}

/* The keys must be those for the destination. */
static int seal_under(opal_crypt_group_t *group, opal_crypt_epochs_t *epochs,
                      const opal_crypt_piece_t *piece, const void *plain, uint8_t *sealed)
{
    uint8_t aad[AAD + CONTEXT];
    opal_crypt_box_t box = {.aead = group->aead, .bound = aad};
    uint64_t counter;
    int rc;

    if (!piece_good(group, piece) || group->self != piece->origin) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    rc = opal_crypt_forked() ? OPAL_CRYPT_ERR_FORKED : counters_take(group->shift, piece->plain_bytes, &counter);
    if (OPAL_CRYPT_OK == rc) {
        box.bound_bytes = aad_put(aad, group, counter, piece);
        memcpy(sealed, aad, HEADER);
        rc = opal_crypt_box_seal_at(&box, epochs, group->shift, counter, plain, piece->plain_bytes,
                                    sealed + HEADER, sealed + HEADER + piece->plain_bytes);
    }
    return rc;
}

int opal_crypt_piece_seal(opal_crypt_group_t *group, const opal_crypt_piece_t *piece,
                          const void *plain, uint8_t *sealed)
{
    return opal_crypt_forked() ? OPAL_CRYPT_ERR_FORKED
         : OPAL_CRYPT_TO_ALL == piece->destination
               ? seal_under(group, &group->members[group->self].epochs, piece, plain, sealed)
               : OPAL_CRYPT_ERR_CONFIG;
}

int opal_crypt_piece_seal_to(opal_crypt_group_t *group, opal_crypt_session_t *session,
                             const opal_crypt_piece_t *piece, const void *plain, uint8_t *sealed)
{
    return opal_crypt_forked() ? OPAL_CRYPT_ERR_FORKED
         : session_with(group, piece->destination, session)
               ? seal_under(group, &session->pieces_out, piece, plain, sealed)
               : OPAL_CRYPT_ERR_CONFIG;
}

/* The piece is authentic: is it in order? */
static int arrived(opal_crypt_group_t *group, member_t *member, uint64_t sequence, uint64_t counter)
{
    int rc = OPAL_CRYPT_OK;

    pthread_mutex_lock(&group->arrivals);
    if (sequence < member->sequence) {
        rc = OPAL_CRYPT_ERR_REPLAY;
        goto unlock;
    }
    const uint64_t floor = sequence > member->sequence ? member->top : member->floor;
    if (counter < floor) {
        rc = OPAL_CRYPT_ERR_REPLAY;
        goto unlock;
    }
    member->sequence = sequence;
    member->floor = floor;
    member->top = counter >= member->top ? counter + 1 : member->top;
unlock:
    pthread_mutex_unlock(&group->arrivals);
    return rc;
}

static int open_under(opal_crypt_group_t *group, opal_crypt_epochs_t *epochs,
                      const opal_crypt_piece_t *piece, const uint8_t *sealed, void *plain)
{
    uint8_t aad[AAD + CONTEXT];
    opal_crypt_box_t box = {.aead = group->aead, .bound = aad};
    const uint64_t counter = opal_crypt_get64(sealed);
    int rc;

    if (counter >= OPAL_CRYPT_COUNTER_END) {
        rc = opal_crypt_count_failed();
        goto zero;
    }
    box.bound_bytes = aad_put(aad, group, counter, piece);
    rc = opal_crypt_box_open_at(&box, epochs, group->shift, counter, sealed + HEADER, piece->plain_bytes,
                                sealed + HEADER + piece->plain_bytes, plain);
    if (OPAL_CRYPT_OK == rc) {
        rc = arrived(group, &group->members[piece->origin], piece->sequence, counter);
    }
    if (OPAL_CRYPT_OK == rc) {
        return OPAL_CRYPT_OK;
    }
zero:
    memset(plain, 0, piece->plain_bytes);
    return rc;
}

int opal_crypt_piece_open(opal_crypt_group_t *group, const opal_crypt_piece_t *piece,
                          const uint8_t *sealed, void *plain)
{
    return opal_crypt_forked() ? OPAL_CRYPT_ERR_FORKED              /* in a child the group is zeros */
         : piece_good(group, piece) && OPAL_CRYPT_TO_ALL == piece->destination
               ? open_under(group, &group->members[piece->origin].epochs, piece, sealed, plain)
               : OPAL_CRYPT_ERR_CONFIG;
}

int opal_crypt_piece_open_from(opal_crypt_group_t *group, opal_crypt_session_t *session,
                               const opal_crypt_piece_t *piece, const uint8_t *sealed, void *plain)
{
    return opal_crypt_forked() ? OPAL_CRYPT_ERR_FORKED
         : piece_good(group, piece) && group->self == piece->destination && session_with(group, piece->origin, session)
               ? open_under(group, &session->pieces_in, piece, sealed, plain)
               : OPAL_CRYPT_ERR_CONFIG;
}
