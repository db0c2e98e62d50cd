/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Addresses: which of ours are published, in which form, and which of a peer's are tried first.
 *
 *     | version 1 = 1 | flags 1 = 0 | port 2 | n 1 |  n of  | family 1 = 4, 6 | prefix 1 | address 4, 16 |
 *     | m 1 |  m of  | group 2 |
 *
 * This is extension 16 of a record (docs/wire-format.rst).  The groups are those of TLS that we can and may use.
 */
#ifndef OPAL_BTL_CRYPT_ADDRESS_H
#define OPAL_BTL_CRYPT_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "opal/mca/common/crypt/tls/suite.h"

#define OPAL_BTL_CRYPT_ADDRESSES_MAX    8
#define OPAL_BTL_CRYPT_GROUPS_MAX       4
#define OPAL_BTL_CRYPT_ADDRESSES_BYTES  (5 + OPAL_BTL_CRYPT_ADDRESSES_MAX * 18 + 1 + OPAL_BTL_CRYPT_GROUPS_MAX * 2)

typedef struct opal_btl_crypt_address {
    unsigned interface, speed;                      /* ours only: its index; megabits a second, 0 unknown.  Not published */
    uint8_t family;                                 /* 4 or 6 */
    uint8_t prefix;                                 /* bits of the network */
    uint8_t bytes[16];
} opal_btl_crypt_address_t;

typedef struct opal_btl_crypt_addresses {
    uint16_t port;
    int count;
    opal_btl_crypt_address_t list[OPAL_BTL_CRYPT_ADDRESSES_MAX];
    opal_crypt_tls_groups_t groups;                 /* those that this version knows */
} opal_btl_crypt_addresses_t;

/* Find our own addresses: all those of interfaces that are up, limited by `include` or, without one, by `exclude`;
 * each is a list of interface names and networks (address/bits), and may be NULL or empty.  Link-local addresses are
 * left out, and loopback unless it is included.  The fastest interfaces come first.  Returns NULL, or the word that is
 * neither a name nor a network. */
const char *opal_btl_crypt_address_own(const char *include, const char *exclude, opal_btl_crypt_addresses_t *own,
                                       char word[64]);

/* Insert one more, after those that are as fast; when the list is full the slowest is dropped. */
void opal_btl_crypt_address_insert(opal_btl_crypt_addresses_t *own, const opal_btl_crypt_address_t *address);

size_t opal_btl_crypt_address_pack(const opal_btl_crypt_addresses_t *addresses,
                                   uint8_t bytes[OPAL_BTL_CRYPT_ADDRESSES_BYTES]);
bool opal_btl_crypt_address_unpack(const uint8_t *bytes, size_t count, opal_btl_crypt_addresses_t *addresses);

/* Move the addresses in one of our networks to the front. */
void opal_btl_crypt_address_order(const opal_btl_crypt_addresses_t *own, opal_btl_crypt_addresses_t *peer);

/* The networks that we share with a peer: its address in each, one for each of our interfaces, in an order that both ends
 * find.  Behind the fastest none of less than half its speed, nor of an unknown one.  Without addresses that are ours as
 * well (a bridge's).  Returns how many there are. */
int opal_btl_crypt_address_networks(const opal_btl_crypt_addresses_t *own, const opal_btl_crypt_addresses_t *peer,
                                    opal_btl_crypt_address_t networks[OPAL_BTL_CRYPT_ADDRESSES_MAX]);

/* The address at the other end of a connected socket is this one. */
bool opal_btl_crypt_address_is(const opal_btl_crypt_address_t *address, const struct sockaddr *socket);

socklen_t opal_btl_crypt_address_socket(const opal_btl_crypt_addresses_t *addresses, int index,
                                        struct sockaddr_storage *address);

/* Is it in the list?  The port is ignored. */
bool opal_btl_crypt_address_is_in(const opal_btl_crypt_addresses_t *addresses, const struct sockaddr *address);

#endif
