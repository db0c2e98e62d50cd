/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A ring of sealed bytes.  What is added is contiguous: if it does not fit after the rest, it starts again at the
 * front.
 *
 *     | ... | head  written next ... tail | free |                  not wrapped
 *     | ... tail | free | head ... wrap | lost |                    wrapped
 */
#ifndef OPAL_BTL_CRYPT_RING_H
#define OPAL_BTL_CRYPT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

typedef struct opal_btl_crypt_ring {
    uint8_t *bytes;                     /* NULL: none allocated */
    size_t capacity, head, tail, wrap;
    bool wrapped;
} opal_btl_crypt_ring_t;

static inline size_t opal_btl_crypt_ring_used(const opal_btl_crypt_ring_t *ring)
{
    return ring->wrapped ? ring->wrap - ring->head + ring->tail : ring->tail - ring->head;
}

/* A place for at least `needed` bytes, and its size; NULL: none is free. */
static inline uint8_t *opal_btl_crypt_ring_place(opal_btl_crypt_ring_t *ring, size_t needed, size_t *free)
{
    if (!ring->wrapped && ring->capacity - ring->tail < needed && ring->head >= needed) {
        ring->wrapped = true;
        ring->wrap = ring->tail;
        ring->tail = 0;
    }
    *free = (ring->wrapped ? ring->head : ring->capacity) - ring->tail;
    return *free < needed ? NULL : ring->bytes + ring->tail;
}

/* The contents, in order. */
static inline int opal_btl_crypt_ring_pieces(const opal_btl_crypt_ring_t *ring, struct iovec pieces[2])
{
    pieces[0].iov_base = ring->bytes + ring->head;
    pieces[0].iov_len = (ring->wrapped ? ring->wrap : ring->tail) - ring->head;
    pieces[1].iov_base = ring->bytes;
    pieces[1].iov_len = ring->tail;
    return ring->wrapped && ring->tail > 0 ? 2 : 1;
}

static inline void opal_btl_crypt_ring_took(opal_btl_crypt_ring_t *ring, size_t bytes)
{
    const size_t first = (ring->wrapped ? ring->wrap : ring->tail) - ring->head;

    if (bytes < first || (bytes == first && !ring->wrapped)) {
        ring->head += bytes;
    } else {
        ring->head = bytes - first;
        ring->wrapped = false;
    }
    if (!ring->wrapped && ring->head == ring->tail) {
        ring->head = ring->tail = 0;
    }
}

#endif
