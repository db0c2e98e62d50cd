/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The keys of one direction.  See crypt/base/epoch.h.
 *
 * Why a holder's key never changes during use.  A direction has a few seats; each is a pointer to an epoch and one
 * word:
 *
 *     | epoch + 1, 49 bits | holders, 15 bits |      0: empty, all ones above: changing
 *
 *   hold     compare-and-swap of (e, n) to (e, n + 1).  When it succeeds, the
 *            seat held epoch e at that instant, and the pointer is e's: it is
 *            written only while the word says "changing", before the release
 *            store of (e, 0) that the swap's acquire reads from.
 *   replace  compare-and-swap of (e, 0) to "changing".  It fails while any thread
 *            holds the seat; once it has succeeded no hold can, until the new
 *            word is stored.  So the old epoch is unreachable when it is wiped.
 *   rest     the same, but the seat is empty afterwards.
 *   release  (e, n) to (e, n - 1).  Its release order makes the holder's last
 *            read of the key come before the replacer's wipe.
 *
 * A word names its epoch, so if a seat goes from e to f and back to e during a hold's swap, that hold is still right:
 * it holds what the word says.  A thread that finds no seat (a new epoch, or all seats held) derives an epoch of its
 * own and loses only time.  Seats change hands under a mutex, which hold and release of a seated epoch never take.
 */
#include "epoch.h"

#include <pthread.h>
#include <string.h>

#include "secmem.h"
#include "thread.h"

#define HOLDERS_BITS 15
#define HOLDERS_MASK ((UINT64_C(1) << HOLDERS_BITS) - 1)
#define EMPTY        UINT64_C(0)
#define CHANGING     (~HOLDERS_MASK)

static pthread_mutex_t replacing = PTHREAD_MUTEX_INITIALIZER;   /* held while a seat changes hands; one for all */

static inline uint64_t word_of(uint64_t number)
{
    return (number + 1) << HOLDERS_BITS;
}

static inline uint64_t load_seat(const opal_crypt_seat_t *seat)
{
    return __atomic_load_n(&seat->word, __ATOMIC_RELAXED);
}

static inline bool shared(const opal_crypt_epochs_t *epochs)
{
    return epochs->always_shared || opal_crypt_threaded();
}

OPAL_CRYPT_RARE
static void epoch_free(const opal_aead_module_t *aead, opal_crypt_epoch_t *epoch)
{
    if (NULL != epoch) {
        aead->key_wipe(epoch->key);
        opal_crypt_secmem_free(epoch);
    }
}

OPAL_CRYPT_RARE
static int epoch_make(const opal_crypt_epochs_t *epochs, uint64_t number,
                      opal_crypt_epoch_t **made)
{
    const opal_aead_module_t *aead = epochs->aead;
    opal_crypt_epoch_t *epoch =
        opal_crypt_secmem_alloc(sizeof(*epoch) + aead->key_bytes);
    uint8_t *raw = opal_crypt_secmem_alloc(OPAL_AEAD_KEY_MAX_BYTES);
    int rc = OPAL_CRYPT_ERR_MEMORY;

    if (NULL == epoch || NULL == raw) {
        goto out;
    }
    epoch->number = number;
    rc = epochs->derive(epochs->parent, epochs->cipher, epoch, raw);
    if (OPAL_CRYPT_OK != rc) {
        goto out;
    }
    opal_crypt_nonce_log_key(raw, opal_aead_raw_key_bytes(epochs->cipher), epoch->id);
    if (OPAL_AEAD_OK != aead->key_init(epochs->cipher, raw, epoch->key)) {
        rc = OPAL_CRYPT_ERR_LIBRARY;
        goto out;
    }
    opal_crypt_count_epoch();
    *made = epoch;
    epoch = NULL;
out:
    opal_crypt_secmem_free(raw);
    opal_crypt_secmem_free(epoch);
    return rc;
}

void opal_crypt_epochs_init(opal_crypt_epochs_t *epochs,
                            const opal_aead_module_t *aead, opal_aead_cipher_t cipher,
                            opal_crypt_derive_fn_t derive, const void *parent,
                            bool always_shared)
{
    memset(epochs, 0, sizeof(*epochs));
    epochs->aead = aead;
    epochs->cipher = cipher;
    epochs->derive = derive;
    epochs->parent = parent;
    epochs->always_shared = always_shared;
}

void opal_crypt_epochs_fini(opal_crypt_epochs_t *epochs)
{
    for (int i = 0; i < OPAL_CRYPT_EPOCH_SEATS; ++i) {
        epoch_free(epochs->aead, epochs->seats[i].epoch);
    }
    memset(epochs->seats, 0, sizeof(epochs->seats));
}

OPAL_CRYPT_OFTEN
int opal_crypt_epoch_hold(opal_crypt_epochs_t *epochs, uint64_t number,
                          opal_crypt_hold_t *hold)
{
    const uint64_t wanted = word_of(number);

    for (int i = 0; i < OPAL_CRYPT_EPOCH_SEATS; ++i) {
        opal_crypt_seat_t *seat = &epochs->seats[i];
        uint64_t word = load_seat(seat);

        while ((word & ~HOLDERS_MASK) == wanted && (word & HOLDERS_MASK) != HOLDERS_MASK) {
            if (!shared(epochs)) {
                __atomic_store_n(&seat->word, word + 1, __ATOMIC_RELAXED);
                hold->seat = seat;
                hold->epoch = seat->epoch;
                return OPAL_CRYPT_OK;
            }
            if (__atomic_compare_exchange_n(&seat->word, &word, word + 1, true,
                                            __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
                hold->seat = seat;
                hold->epoch = seat->epoch;
                return OPAL_CRYPT_OK;
            }
        }
    }

    opal_crypt_epoch_t *own;
    int rc = epoch_make(epochs, number, &own);
    hold->seat = NULL;
    hold->epoch = OPAL_CRYPT_OK == rc ? own : NULL;
    return rc;
}

/* The seat to reuse: an empty one, else the free one with the lowest epoch, but never the one with the highest: a late
 * or repeated message of an old epoch must not evict the current epoch. */
static opal_crypt_seat_t *seat_to_replace(opal_crypt_epochs_t *epochs, uint64_t *word)
{
    opal_crypt_seat_t *lowest = NULL;
    uint64_t highest = 0;

    for (int i = 0; i < OPAL_CRYPT_EPOCH_SEATS; ++i) {
        uint64_t seen = load_seat(&epochs->seats[i]) & ~HOLDERS_MASK;
        highest = seen > highest ? seen : highest;
    }
    for (int i = 0; i < OPAL_CRYPT_EPOCH_SEATS; ++i) {
        uint64_t seen = load_seat(&epochs->seats[i]);
        if (EMPTY == seen) {
            *word = EMPTY;
            return &epochs->seats[i];
        }
        if (0 == (seen & HOLDERS_MASK) && seen != highest && (NULL == lowest || seen < *word)) {
            lowest = &epochs->seats[i];
            *word = seen;
        }
    }
    return lowest;
}

/* Seat `epoch`; false if it is seated already or no seat is free. */
OPAL_CRYPT_RARE
static bool epoch_seat(opal_crypt_epochs_t *epochs, opal_crypt_epoch_t *epoch)
{
    opal_crypt_epoch_t *old = NULL;
    opal_crypt_seat_t *seat = NULL;
    bool seated = false;
    uint64_t word = EMPTY;

    pthread_mutex_lock(&replacing);
    for (int i = 0; i < OPAL_CRYPT_EPOCH_SEATS; ++i) {
        if ((load_seat(&epochs->seats[i]) & ~HOLDERS_MASK) == word_of(epoch->number)) {
            goto unlock;
        }
    }
    seat = seat_to_replace(epochs, &word);
    if (NULL != seat && __atomic_compare_exchange_n(&seat->word, &word, CHANGING, false,
                                                    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        old = seat->epoch;
        seat->epoch = epoch;
        __atomic_store_n(&seat->word, word_of(epoch->number), __ATOMIC_RELEASE);
        seated = true;
    }
unlock:
    pthread_mutex_unlock(&replacing);
    epoch_free(epochs->aead, old);
    return seated;
}

void opal_crypt_epochs_rest(opal_crypt_epochs_t *epochs)
{
    pthread_mutex_lock(&replacing);
    for (int i = 0; i < OPAL_CRYPT_EPOCH_SEATS; ++i) {
        opal_crypt_seat_t *seat = &epochs->seats[i];
        uint64_t word = load_seat(seat);

        if (EMPTY != word && 0 == (word & HOLDERS_MASK)
            && __atomic_compare_exchange_n(&seat->word, &word, CHANGING, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            epoch_free(epochs->aead, seat->epoch);
            seat->epoch = NULL;
            __atomic_store_n(&seat->word, EMPTY, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&replacing);
}

OPAL_CRYPT_OFTEN
void opal_crypt_epoch_release(opal_crypt_epochs_t *epochs,
                              opal_crypt_hold_t *hold, bool keep)
{
    opal_crypt_epoch_t *own = (opal_crypt_epoch_t *) hold->epoch;

    if (NULL != hold->seat && !shared(epochs)) {
        __atomic_store_n(&hold->seat->word, load_seat(hold->seat) - 1, __ATOMIC_RELAXED);
    } else if (NULL != hold->seat) {
        __atomic_fetch_sub(&hold->seat->word, 1, __ATOMIC_RELEASE);
    } else if (!keep || !epoch_seat(epochs, own)) {
        epoch_free(epochs->aead, own);
    }
    hold->epoch = NULL;
}
