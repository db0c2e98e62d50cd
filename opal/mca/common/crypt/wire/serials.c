/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Serials of posted receives: which ones are outstanding.  Serial 0 is never issued; it stands for "before everything"
 * (crypt/wire/order.c).
 */
#include "order.h"
#include "opal/mca/common/crypt/base/thread.h"

#include <stdlib.h>

int opal_crypt_serials_create(opal_crypt_serials_t **made)
{
    opal_crypt_serials_t *serials = calloc(1, sizeof(*serials));

    if (NULL == serials) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    pthread_mutex_init(&serials->lock, NULL);
    opal_crypt_replay_init(&serials->given_back, 1);
    serials->next = serials->oldest = 1;
    serials->references = 1;
    *made = serials;
    return OPAL_CRYPT_OK;
}

void opal_crypt_serials_unref(opal_crypt_serials_t *serials)
{
    if (1 == __atomic_fetch_sub(&serials->references, 1, __ATOMIC_ACQ_REL)) {
        opal_crypt_replay_fini(&serials->given_back);
        pthread_mutex_destroy(&serials->lock);
        free(serials);
    }
}

void opal_crypt_serials_destroy(opal_crypt_serials_t *serials)
{
    if (NULL != serials) {
        __atomic_store_n(&serials->dead, true, __ATOMIC_RELEASE);
        opal_crypt_serials_unref(serials);
    }
}

OPAL_CRYPT_OFTEN
uint64_t opal_crypt_serial_take(opal_crypt_serials_t *serials)
{
    if (!opal_crypt_threaded()) {
        return serials->next++;
    }
    /* Every serial later than a receive for any tag sees any_tag. */
    return __atomic_fetch_add(&serials->next, 1, __ATOMIC_ACQ_REL);
}

uint64_t opal_crypt_serial_take_any(opal_crypt_serials_t *serials)
{
    if (!__atomic_load_n(&serials->any_tag, __ATOMIC_RELAXED)) {
        __atomic_store_n(&serials->any_tag, true, __ATOMIC_RELAXED);
    }
    return opal_crypt_serial_take(serials);
}

int opal_crypt_serials_release(opal_crypt_serials_t *serials, uint64_t serial)
{
    int rc = opal_crypt_replay_insert(&serials->given_back, serial);

    __atomic_store_n(&serials->oldest, serials->given_back.mark, __ATOMIC_RELAXED);
    return rc;
}

void opal_crypt_serial_drop(opal_crypt_serials_t *serials, uint64_t serial)
{
    pthread_mutex_lock(&serials->lock);
    (void) opal_crypt_serials_release(serials, serial);
    pthread_mutex_unlock(&serials->lock);
}
