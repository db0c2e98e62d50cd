/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The two hellos: what our end sends is taken, and of everything in it only what must be free is free.  Each
 * extension may not be left out, repeated, or cut short.
 */
#include "tls_ends.h"

static opal_crypt_tls_t *tls;
static const opal_crypt_tls_suite_t *suite;
static const opal_crypt_tls_group_of_t *group;
static opal_crypt_tls_identity_t seen;

static const char *client(const flight_t *flight)
{
    const opal_crypt_tls_group_of_t *offers = NULL;
    const char *wrong = opal_crypt_client_hello(suite, flight->data, flight->bytes, &seen, &offers);

    return NULL != wrong ? wrong : group == offers ? NULL : "it offers another group";
}

static const char *server(const flight_t *flight)
{
    return opal_crypt_server_hello(suite, group, flight->data, flight->bytes);
}

static void names(void)
{
    const opal_crypt_tls_name_t a = tls_name(1);
    opal_crypt_tls_name_t b;

    UNIT_GROUP("names");
    for (int how = 0; how < 4; ++how) {
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_name_make(1 == how ? "4712" : "4711", 2 == how ? 2 : 1, 3 == how ? 1 : 0, &b));
        UNIT_CHECK((0 == how) == opal_crypt_tls_name_equal(&a, &b));
    }
}

/* Places in a hello whose content is free: random bytes, key share, names and link, binder, and what OpenSSL
 * lists for certificates, which are never sent. */
static bool is_free(const flight_t *flight, size_t at, bool is_client)
{
    const size_t share = is_client ? group->client_bytes : group->server_bytes;
    const uint8_t share_head[4] = {(uint8_t) (group->group >> 8), (uint8_t) group->group, (uint8_t) (share >> 8), (uint8_t) share};
    const uint8_t *found = memmem(flight->data, flight->bytes, share_head, 4);
    const size_t from = (size_t) (found - flight->data) + 4;
    const uint8_t *identity = memmem(flight->data, flight->bytes, "ompi", 4);

    if ((at >= 11 && at < 43) || (at >= from && at < from + share)) {
        return true;
    }
    if (!is_client) {
        return false;
    }
    return (at >= (size_t) (identity - flight->data) + 6 && at < (size_t) (identity - flight->data) + OPAL_CRYPT_TLS_IDENTITY_BYTES)
           || at >= flight->bytes - suite->hash_bytes;
}

/* OpenSSL's extensions, whose bodies are not checked. */
static bool is_openssl(const flight_t *flight, size_t at)
{
    size_t next = 11 + 32 + 1;

    next += 2 + (size_t) opal_crypt_get16(flight->data + next) + 2 + 2;
    while (next < at) {
        const unsigned type = opal_crypt_get16(flight->data + next), bytes = opal_crypt_get16(flight->data + next + 2);
        if (at < next + 4 + bytes) {
            return at >= next + 4 && (11 == type || 13 == type || 50 == type);
        }
        next += 4 + bytes;
    }
    return false;
}

static void every_bit(const flight_t *good, const char *(*check)(const flight_t *), bool is_client)
{
    unsigned long freely = 0, kinds = 0;

    UNIT_GROUP("every bit of a hello of the %s", is_client ? "client" : "server");
    UNIT_REQUIRE(NULL == check(good));
    for (size_t bit = 0; bit < 8 * good->bytes; ++bit) {
        const bool free_here = is_free(good, bit / 8, is_client) || (is_client && is_openssl(good, bit / 8));
        flight_t flight = *good;

        flight.data[bit / 8] ^= (uint8_t) (1 << bit % 8);
        if (NULL == check(&flight) && !free_here) {
            /* one kind of OpenSSL's extensions may turn into another */
            UNIT_CHECK(is_client && kinds++ < 8);
        }
        UNIT_CHECK(!free_here || NULL == check(&flight));
        freely += free_here;
    }
    printf("  %zu bytes, %lu bits of them free, %lu changes of a type\n", good->bytes, freely, kinds);
    for (size_t cut = 0; cut < good->bytes; ++cut) {
        flight_t flight = *good;
        flight.bytes = cut;
        UNIT_CHECK(NULL != check(&flight));
    }
}

/* Where the extensions begin (their length), and lengths put right again. */
static size_t extensions_at(const flight_t *flight, bool is_client)
{
    return is_client ? 44 + 2 + (size_t) opal_crypt_get16(flight->data + 44) + 2 : 44 + 3;
}

static void put_right(flight_t *flight, bool is_client)
{
    const size_t at = extensions_at(flight, is_client);

    opal_crypt_put16(flight->data + 3, (uint16_t) (flight->bytes - 5));
    opal_crypt_put16(flight->data + 7, (uint16_t) (flight->bytes - 9));
    opal_crypt_put16(flight->data + at, (uint16_t) (flight->bytes - at - 2));
}

static void every_extension(const flight_t *good, const char *(*check)(const flight_t *), bool is_client)
{
    size_t at = extensions_at(good, is_client) + 2;
    unsigned count = 0, optional = 0;

    UNIT_GROUP("every extension of the %s", is_client ? "client" : "server");
    while (at < good->bytes) {
        const size_t bytes = 4 + (size_t) opal_crypt_get16(good->data + at + 2);
        const unsigned type = opal_crypt_get16(good->data + at);
        const bool may_lack = 11 == type || 13 == type || 22 == type || 23 == type || 50 == type;
        flight_t flight = *good;

        ++count;
        optional += may_lack;
        /* left out */
        memmove(flight.data + at, flight.data + at + bytes, flight.bytes - at - bytes);
        flight.bytes -= bytes;
        put_right(&flight, is_client);
        UNIT_CHECK((NULL == check(&flight)) == may_lack);
        /* twice */
        flight = *good;
        memmove(flight.data + at + bytes, flight.data + at, flight.bytes - at);
        flight.bytes += bytes;
        put_right(&flight, is_client);
        UNIT_CHECK(NULL != check(&flight));
        /* of another type: early data, cookie, ALPN, tickets, certificate authorities, a server's name */
        static const uint16_t others[] = {42, 44, 16, 35, 47, 0, 49, 5, 28, 0xff01, 0xfe0d, 64, 105};
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
            flight = *good;
            opal_crypt_put16(flight.data + at, others[i]);
            UNIT_CHECK(NULL != check(&flight));
        }
        /* longer by a byte, and shorter */
        flight = *good;
        memmove(flight.data + at + bytes + 1, flight.data + at + bytes, flight.bytes - at - bytes);
        flight.bytes += 1;
        opal_crypt_put16(flight.data + at + 2, (uint16_t) (bytes - 3));
        put_right(&flight, is_client);
        UNIT_CHECK((NULL == check(&flight)) == (is_client && may_lack));
        at += bytes;
    }
    printf("  %u, of which it may lack %u\n", count, optional);
    UNIT_CHECK(count == (is_client ? 5 + optional : 3));
    flight_t flight = *good;
    flight.data[flight.bytes++] = 0;
    put_right(&flight, is_client);
    UNIT_CHECK(NULL != check(&flight));
}

static void both(opal_aead_cipher_t cipher, opal_crypt_tls_group_t of)
{
    job_t job = {.psk = tls_psk(7)};
    opal_crypt_handshake_t *a, *b;
    opal_crypt_tls_identity_t identity = tls_identity();
    flight_t flight;

    tls = tls_of(cipher, of);
    if (NULL == tls) {
        return;
    }
    suite = opal_crypt_tls_suite(cipher);
    group = opal_crypt_tls_group(of);
    UNIT_GROUP("%s, %s", suite->name, group->name);
    a = tls_connect(tls, &job.psk);
    b = tls_accept(tls, &job);
    flight = tls_output(a);
    UNIT_CHECK(flight.bytes <= 5 + OPAL_CRYPT_TLS_HELLO_MAX);
    every_bit(&flight, client, true);
    UNIT_CHECK(NULL == client(&flight) && opal_crypt_tls_name_equal(&seen.claimed, &identity.claimed)
               && opal_crypt_tls_name_equal(&seen.wanted, &identity.wanted) && seen.link == identity.link
               && seen.attempt == identity.attempt);
    every_extension(&flight, client, true);
    UNIT_CHECK(0 == tls_input(b, &flight, 8192));
    flight = tls_output(b);
    flight.bytes = 5 + (size_t) opal_crypt_get16(flight.data + 3);
    every_bit(&flight, server, false);
    every_extension(&flight, server, false);
    opal_crypt_handshake_destroy(a);
    opal_crypt_handshake_destroy(b);
    opal_crypt_tls_destroy(tls);
}

int main(void)
{
    names();
    both(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_X25519);
    both(OPAL_AEAD_AES_256_GCM, OPAL_CRYPT_TLS_P256);
    both(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_X25519MLKEM768);
    return unit_done();
}
