/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * FRAMES, what the records of a connection carry: docs/transport-format.rst, "Frames".
 *
 *     | 1 | tag 1 | 0 2 | n 4 | fragment n                          for the BTL's callback for this tag
 *     | 2 | 0 7 | address 8 | n 8 | bytes n                         to this address of the receiver
 *     | 3 | version 1 = 1 | 1 = 1 | flags 1 | 0 4 |           hello: the first frame, and no other
 *     | 4 | 0 7 |                                                   last: close_notify follows, then a new connection
 *     | 5 | rail 1 | 0 6 | session 8 | count 8 |                    join: what follows comes after that rail's first `count`
 *
 * A frame begins on a record boundary, and a record has bytes of one frame only.
 */
#ifndef OPAL_BTL_CRYPT_FRAME_H
#define OPAL_BTL_CRYPT_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPAL_BTL_CRYPT_VERSION      1
#define OPAL_BTL_CRYPT_HEADER       8                           /* of a fragment, and of a hello */
#define OPAL_BTL_CRYPT_HEADER_MAX   24                          /* of a put, and of a join */
#define OPAL_BTL_CRYPT_RAILS        8                           /* connections of a pair: link numbers below this */
#define OPAL_BTL_CRYPT_FRAGMENT_USUAL ((size_t) 260 << 10)      /* for ours, unless a site has raised the limits */
#define OPAL_BTL_CRYPT_FRAGMENT_MAX ((size_t) 1 << 20)
#define OPAL_BTL_CRYPT_PUT_MAX      ((uint64_t) 1 << 40)

typedef enum {
    OPAL_BTL_CRYPT_FRAGMENT = 1,
    OPAL_BTL_CRYPT_PUT = 2,
    OPAL_BTL_CRYPT_HELLO = 3,
    OPAL_BTL_CRYPT_LAST = 4,
    OPAL_BTL_CRYPT_JOIN = 5
} opal_btl_crypt_type_t;

typedef struct opal_btl_crypt_frame {
    opal_btl_crypt_type_t type;
    uint8_t tag;                                /* of a fragment */
    uint64_t address;                           /* of a put */
    uint64_t bytes;                             /* after the header */
    bool kernel;                                /* in a hello: a kernel opens what its sender receives */
    uint8_t rail;                               /* of a join, as the next two */
    uint64_t session, count;
} opal_btl_crypt_frame_t;

/* Returns the header's length. */
size_t opal_btl_crypt_frame_pack(const opal_btl_crypt_frame_t *frame, uint8_t header[OPAL_BTL_CRYPT_HEADER_MAX]);

/* Length of the header at `bytes`, or 0 if it is not valid or not complete. */
size_t opal_btl_crypt_frame_unpack(const uint8_t *bytes, size_t count, opal_btl_crypt_frame_t *frame);

#endif
