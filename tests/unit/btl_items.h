/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Fragments and puts to be sent between two ends (btl_ends.h), and why a connection failed.
 */
#ifndef TESTS_UNIT_BTL_ITEMS_H
#define TESTS_UNIT_BTL_ITEMS_H

#include "btl_ends.h"

#define BIG (3u << 20)

static uint8_t data[BIG], memory[BIG + 64];

static inline void data_fill(void)
{
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t) (i * 7 + i / 251);
    }
}

static inline void fragment_make(opal_btl_crypt_item_t *item, uint8_t tag, size_t first, size_t bytes)
{
    const opal_btl_crypt_frame_t frame = {.type = OPAL_BTL_CRYPT_FRAGMENT, .tag = tag, .bytes = bytes};
    const struct iovec pieces[2] = {{data, first}, {data + first, bytes - first}};

    opal_btl_crypt_item_make(item, &frame, pieces, 2);
}

static inline void put_make(opal_btl_crypt_item_t *item, void *to, size_t bytes)
{
    const opal_btl_crypt_frame_t frame = {.type = OPAL_BTL_CRYPT_PUT, .address = (uintptr_t) to, .bytes = bytes};
    const struct iovec piece = {data, bytes};

    opal_btl_crypt_item_make(item, &frame, &piece, 1);
}

static inline bool failed(const opal_btl_crypt_link_t *link, const char *reason)
{
    if (OPAL_BTL_CRYPT_FAILED == link->state && 0 == strcmp(reason, link->reason)) {
        return true;
    }
    printf("  state %d: %s\n", (int) link->state, NULL == link->reason ? "" : link->reason);
    return false;
}

#endif
