/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Addresses: our own, and those in records.
 */
#include "btl_crypt_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/base/base.h"
#include "opal/mca/common/crypt/identity/local.h"

#include <assert.h>

static_assert(OPAL_BTL_CRYPT_ADDRESSES_BYTES <= OPAL_CRYPT_TRANSPORT_MAX, "they fit into a record");

enum { FORM = 1, HEAD = 5 };

static size_t bytes_of(unsigned family)
{
    return 4 == family ? 4 : 16;
}

/* ---- one address ---- */

/* False: neither IPv4 nor IPv6.  An IPv4-mapped IPv6 address counts as IPv4. */
static bool from_socket(const struct sockaddr *socket, opal_btl_crypt_address_t *address)
{
    memset(address, 0, sizeof(*address));
    if (NULL != socket && AF_INET == socket->sa_family) {
        address->family = 4;
        memcpy(address->bytes, &((const struct sockaddr_in *) (const void *) socket)->sin_addr, 4);
    } else if (NULL != socket && AF_INET6 == socket->sa_family) {
        const struct in6_addr *six = &((const struct sockaddr_in6 *) (const void *) socket)->sin6_addr;
        const bool mapped = IN6_IS_ADDR_V4MAPPED(six);

        address->family = mapped ? 4 : 6;
        memcpy(address->bytes, six->s6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
    } else {
        return false;
    }
    return true;
}

static uint8_t bits_of(const struct sockaddr *mask)
{
    opal_btl_crypt_address_t address;
    uint8_t bits = 0;

    if (from_socket(mask, &address)) {
        for (size_t i = 0; i < bytes_of(address.family); i++) {
            bits = (uint8_t) (bits + __builtin_popcount(address.bytes[i]));
        }
    }
    return bits;
}

static bool same_network(const opal_btl_crypt_address_t *a, const opal_btl_crypt_address_t *b, unsigned bits)
{
    const size_t whole = bits / 8;
    const uint8_t mask = (uint8_t) (0xff00u >> (bits % 8));

    return a->family == b->family && bits <= 8 * bytes_of(a->family) && 0 == memcmp(a->bytes, b->bytes, whole)
           && (0 == bits % 8 || 0 == ((a->bytes[whole] ^ b->bytes[whole]) & mask));
}

/* ---- lists of interfaces and networks ---- */

/* Returns 1 for a network ("10.0.0.0/8", "fd00::/64"), 0 for the name of an interface, -1 for neither. */
static int parse_word(const char *word, opal_btl_crypt_address_t *network)
{
    const char *slash = strchr(word, '/');
    char text[64], *end;
    unsigned long bits;

    if (NULL == slash) {
        return strlen(word) < IF_NAMESIZE ? 0 : -1;
    }
    memset(network, 0, sizeof(*network));
    memcpy(text, word, (size_t) (slash - word));
    text[slash - word] = '\0';
    network->family = NULL == strchr(text, ':') ? 4 : 6;
    bits = strtoul(slash + 1, &end, 10);
    if (1 != inet_pton(4 == network->family ? AF_INET : AF_INET6, text, network->bytes) || '\0' == slash[1] || '\0' != *end
        || bits > 8 * bytes_of(network->family)) {
        return -1;
    }
    network->prefix = (uint8_t) bits;
    return 1;
}

/* The next word of a list; false at its end.  A word that is too long is truncated, and is then valid as neither. */
static bool next_word(const char **list, char word[64])
{
    size_t bytes;

    *list += strspn(*list, ", ");
    bytes = strcspn(*list, ", ");
    memcpy(word, *list, bytes < 63 ? bytes : 63);
    word[bytes < 63 ? bytes : 63] = '\0';
    *list += bytes;
    return bytes > 0;
}

/* `begins`: a word matches every name that begins with it. */
static bool is_listed(const char *list, const char *interface, const opal_btl_crypt_address_t *address, bool begins)
{
    opal_btl_crypt_address_t network;
    char word[64];

    while (next_word(&list, word)) {
        const int kind = parse_word(word, &network);

        if ((0 == kind && 0 == (begins ? strncmp(word, interface, strlen(word)) : strcmp(word, interface)))
            || (1 == kind && same_network(address, &network, network.prefix))) {
            return true;
        }
    }
    return false;
}

/* As in btl/tcp: a name excludes all interfaces that begin with it, a network those with an address in it. */
static bool is_left_out(const char *list, const char *interface, const struct ifaddrs *all)
{
    opal_btl_crypt_address_t address;

    for (const struct ifaddrs *at = all; NULL != at; at = at->ifa_next) {
        if (0 == strcmp(interface, at->ifa_name) && from_socket(at->ifa_addr, &address)
            && is_listed(list, interface, &address, true)) {
            return true;
        }
    }
    return false;
}

static const char *bad_word(const char *list, char word[64])
{
    opal_btl_crypt_address_t network;

    while (next_word(&list, word)) {
        if (parse_word(word, &network) < 0) {
            return word;
        }
    }
    return NULL;
}

/* ---- ours ---- */

static bool is_usable(const struct ifaddrs *at, const opal_btl_crypt_address_t *address)
{
    const bool link_local = 6 == address->family ? 0xfe == address->bytes[0] && 0x80 == (address->bytes[1] & 0xc0)
                                                 : 169 == address->bytes[0] && 254 == address->bytes[1];

    return 0 != (at->ifa_flags & IFF_UP) && !link_local;
}

/* Megabits a second as the kernel reports it, or 0 if unknown.  "eth0:1" is an alias of eth0. */
static unsigned speed_of(const char *interface)
{
    char path[64 + IF_NAMESIZE];
    int speed = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/sys/class/net/%.*s/speed", (int) strcspn(interface, ":"), interface);
    file = fopen(path, "re");
    if (NULL == file) {
        return 0;
    }
    if (1 != fscanf(file, "%d", &speed) || speed < 0) {
        speed = 0;
    }
    fclose(file);
    return (unsigned) speed;
}

void opal_btl_crypt_address_insert(opal_btl_crypt_addresses_t *own, const opal_btl_crypt_address_t *address)
{
    int at = own->count;

    while (at > 0 && own->list[at - 1].speed < address->speed) {
        --at;
    }
    if (at == OPAL_BTL_CRYPT_ADDRESSES_MAX) {
        return;
    }
    own->count += own->count < OPAL_BTL_CRYPT_ADDRESSES_MAX;
    for (int i = own->count - 1; i > at; i--) {
        own->list[i] = own->list[i - 1];
    }
    own->list[at] = *address;
}

const char *opal_btl_crypt_address_own(const char *include, const char *exclude, opal_btl_crypt_addresses_t *own, char word[64])
{
    const char *in = NULL == include ? "" : include, *out = NULL == exclude ? "" : exclude;
    const char *bad = bad_word(in, word);
    opal_btl_crypt_address_t address;
    struct ifaddrs *all = NULL;

    bad = NULL == bad ? bad_word(out, word) : bad;
    if (NULL != bad || 0 != getifaddrs(&all)) {
        return bad;
    }
    for (const struct ifaddrs *at = all; NULL != at; at = at->ifa_next) {
        if (from_socket(at->ifa_addr, &address) && is_usable(at, &address)
            && ('\0' != *in ? is_listed(in, at->ifa_name, &address, false)
                            : 0 == (at->ifa_flags & IFF_LOOPBACK) && !is_left_out(out, at->ifa_name, all))) {
            address.prefix = bits_of(at->ifa_netmask);
            address.interface = if_nametoindex(at->ifa_name);
            address.speed = speed_of(at->ifa_name);
            opal_btl_crypt_address_insert(own, &address);
        }
    }
    freeifaddrs(all);
    return NULL;
}

/* ---- bytes ---- */

static uint8_t *pack_groups(opal_crypt_tls_groups_t groups, uint8_t *p)
{
    const opal_crypt_tls_group_of_t *group;
    uint8_t *count = p++;

    for (*count = 0; NULL != (group = opal_crypt_tls_group_take(&groups)); p += 2) {
        opal_crypt_put16(p, (uint16_t) group->group);
        ++*count;
    }
    return p;
}

/* Unknown groups are ignored: a later version may use them. */
static bool unpack_groups(const uint8_t *p, size_t left, opal_crypt_tls_groups_t *groups)
{
    if (0 == left || 0 == p[0] || p[0] > OPAL_BTL_CRYPT_GROUPS_MAX || left != 1 + 2 * (size_t) p[0]) {
        return false;
    }
    for (size_t at = 1; at < left; at += 2) {
        *groups |= opal_crypt_tls_group_bit(opal_crypt_get16(p + at));
    }
    return true;
}

size_t opal_btl_crypt_address_pack(const opal_btl_crypt_addresses_t *addresses, uint8_t bytes[OPAL_BTL_CRYPT_ADDRESSES_BYTES])
{
    uint8_t *p = bytes + HEAD;

    bytes[0] = FORM;
    bytes[1] = 0;
    opal_crypt_put16(bytes + 2, addresses->port);
    bytes[4] = (uint8_t) addresses->count;
    for (int i = 0; i < addresses->count; i++) {
        const opal_btl_crypt_address_t *address = &addresses->list[i];

        p[0] = address->family;
        p[1] = address->prefix;
        memcpy(p + 2, address->bytes, bytes_of(address->family));
        p += 2 + bytes_of(address->family);
    }
    return (size_t) (pack_groups(addresses->groups, p) - bytes);
}

bool opal_btl_crypt_address_unpack(const uint8_t *bytes, size_t count, opal_btl_crypt_addresses_t *addresses)
{
    size_t at = HEAD;

    memset(addresses, 0, sizeof(*addresses));
    if (count < HEAD || FORM != bytes[0] || 0 != bytes[1] || bytes[4] > OPAL_BTL_CRYPT_ADDRESSES_MAX) {
        return false;
    }
    addresses->port = opal_crypt_get16(bytes + 2);
    for (addresses->count = 0; addresses->count < bytes[4]; addresses->count++) {
        opal_btl_crypt_address_t *address = &addresses->list[addresses->count];

        if (count - at < 2 || (4 != bytes[at] && 6 != bytes[at]) || count - at - 2 < bytes_of(bytes[at])) {
            return false;
        }
        address->family = bytes[at];
        address->prefix = bytes[at + 1];
        memcpy(address->bytes, bytes + at + 2, bytes_of(address->family));
        at += 2 + bytes_of(address->family);
    }
    return unpack_groups(bytes + at, count - at, &addresses->groups) && 0 != addresses->port;
}

/* ---- a peer's ---- */

static bool is_near(const opal_btl_crypt_addresses_t *own, const opal_btl_crypt_address_t *address)
{
    for (int i = 0; i < own->count; i++) {
        if (same_network(&own->list[i], address, own->list[i].prefix)) {
            return true;
        }
    }
    return false;
}

void opal_btl_crypt_address_order(const opal_btl_crypt_addresses_t *own, opal_btl_crypt_addresses_t *peer)
{
    const opal_btl_crypt_addresses_t as_it_was = *peer;
    int to = 0;

    for (int near = 1; near >= 0; near--) {
        for (int i = 0; i < as_it_was.count; i++) {
            if (near == (int) is_near(own, &as_it_was.list[i])) {
                peer->list[to++] = as_it_was.list[i];
            }
        }
    }
}

socklen_t opal_btl_crypt_address_socket(const opal_btl_crypt_addresses_t *addresses, int index, struct sockaddr_storage *address)
{
    const opal_btl_crypt_address_t *from = &addresses->list[index];
    struct sockaddr_in *four = (struct sockaddr_in *) address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *) address;

    memset(address, 0, sizeof(*address));
    if (4 == from->family) {
        four->sin_family = AF_INET;
        four->sin_port = htons(addresses->port);
        memcpy(&four->sin_addr, from->bytes, 4);
        return sizeof(*four);
    }
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(addresses->port);
    memcpy(&six->sin6_addr, from->bytes, 16);
    return sizeof(*six);
}

bool opal_btl_crypt_address_is(const opal_btl_crypt_address_t *address, const struct sockaddr *socket)
{
    opal_btl_crypt_address_t wanted;

    return from_socket(socket, &wanted) && same_network(address, &wanted, 8 * (unsigned) bytes_of(address->family));
}

bool opal_btl_crypt_address_is_in(const opal_btl_crypt_addresses_t *addresses, const struct sockaddr *address)
{
    for (int i = 0; i < addresses->count; i++) {
        if (opal_btl_crypt_address_is(&addresses->list[i], address)) {
            return true;
        }
    }
    return false;
}

/* ---- networks ---- */

static bool is_ours(const opal_btl_crypt_addresses_t *own, const opal_btl_crypt_address_t *address)
{
    for (int i = 0; i < own->count; i++) {
        if (same_network(&own->list[i], address, 8 * (unsigned) bytes_of(address->family))) {
            return true;
        }
    }
    return false;
}

/* The peer's address in the network of this one of ours. */
static const opal_btl_crypt_address_t *there(const opal_btl_crypt_addresses_t *own, int at, const opal_btl_crypt_addresses_t *peer)
{
    for (int i = 0; i < peer->count; i++) {
        if (same_network(&own->list[at], &peer->list[i], own->list[at].prefix) && !is_ours(own, &peer->list[i])) {
            return &peer->list[i];
        }
    }
    return NULL;
}

/* In networks that do not overlap both ends find the same order. */
static bool is_before(const opal_btl_crypt_address_t *a, const opal_btl_crypt_address_t *b)
{
    return a->family != b->family ? a->family < b->family : memcmp(a->bytes, b->bytes, sizeof(a->bytes)) < 0;
}

int opal_btl_crypt_address_networks(const opal_btl_crypt_addresses_t *own, const opal_btl_crypt_addresses_t *peer,
                                    opal_btl_crypt_address_t networks[OPAL_BTL_CRYPT_ADDRESSES_MAX])
{
    unsigned fastest = 0;
    int count = 0;

    for (int i = 0; i < own->count; i++) {              /* the fastest first */
        const opal_btl_crypt_address_t *found = there(own, i, peer);
        bool again = NULL == found;
        int at = count;

        for (int k = 0; k < count && !again; k++) {
            again = networks[k].interface == own->list[i].interface;
        }
        if (again || (count > 0 && (0 == own->list[i].speed || 2 * (uint64_t) own->list[i].speed < fastest))) {
            continue;
        }
        fastest = 0 == count ? own->list[i].speed : fastest;
        for (; at > 0 && is_before(found, &networks[at - 1]); at--) {
            networks[at] = networks[at - 1];
        }
        networks[at] = *found;
        networks[at].interface = own->list[i].interface;
        count++;
    }
    return count;
}
