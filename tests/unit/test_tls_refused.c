/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Handshakes that must not succeed: every byte changed, every length cut, strangers, and ends of
 * OpenSSL's that do what ours never would.  The listener's job is asked about well-formed
 * hellos only, and a stranger gets no answer.
 */
#include "tls_openssl.h"

#include "opal/mca/common/crypt/base/libssl.h"
#include "opal/mca/common/crypt/tls/handshake_object.h"

static opal_crypt_tls_t *tls;

typedef struct two {
    job_t job;
    opal_crypt_handshake_t *client, *server;
} two_t;

static two_t *two_make(void)
{
    two_t *two = calloc(1, sizeof(*two));

    UNIT_REQUIRE(NULL != two);
    two->job.psk = tls_psk(7);
    two->client = tls_connect(tls, &two->job.psk);
    two->server = tls_accept(tls, &two->job);
    return two;
}

static void two_free(two_t *two)
{
    opal_crypt_handshake_destroy(two->client);
    opal_crypt_handshake_destroy(two->server);
    free(two);
}

/* Run up to flight `which` (0 the client's hello, 1 the server's flight, 2 the client's end), and give it. */
static flight_t up_to(two_t *two, int which, opal_crypt_handshake_t **receiver)
{
    flight_t flight = tls_output(two->client);

    *receiver = two->server;
    if (which > 0) {
        UNIT_REQUIRE(0 == tls_input(two->server, &flight, 8192));
        flight = tls_output(two->server);
        *receiver = two->client;
    }
    if (which > 1) {
        UNIT_REQUIRE(0 == tls_input(two->client, &flight, 8192));
        flight = tls_output(two->client);
        *receiver = two->server;
    }
    return flight;
}

/* A byte changed anywhere: never done; refused at once, or waiting for bytes that a larger length promises. */
static void every_byte(int which)
{
    opal_crypt_handshake_t *receiver;
    size_t bytes = 1, waits = 0, asked = 0;

    UNIT_GROUP("every byte of flight %d changed", which);
    for (size_t at = 0; at < bytes; ++at) {
        for (unsigned mask = 1; mask < 0x100; mask = 1 == mask ? 0x80 : 0x100) {
            two_t *two = two_make();
            flight_t flight = up_to(two, which, &receiver);

            bytes = flight.bytes;
            flight.data[at] ^= (uint8_t) mask;
            (void) tls_input(receiver, &flight, 8192);
            if (TLS_STATE(receiver, RUNNING) && opal_crypt_handshake_wants(receiver) > 0 && 0 == tls_output(receiver).bytes) {
                ++waits;
            } else {
                UNIT_CHECK(tls_refused(receiver));
            }
            asked += two->job.asked;
            two_free(two);
        }
    }
    printf("  %zu bytes, %zu times it waits for more, asked for a name %zu times\n", bytes, waits, asked);
    UNIT_CHECK(bytes > 50 && waits < 8);
}

static void every_length(int which)
{
    opal_crypt_handshake_t *receiver;
    size_t bytes = 1;

    UNIT_GROUP("flight %d cut at every length", which);
    for (size_t cut = 0; cut < bytes; ++cut) {
        two_t *two = two_make();
        flight_t flight = up_to(two, which, &receiver);

        bytes = flight.bytes;
        flight.bytes = cut;
        UNIT_CHECK(0 == tls_input(receiver, &flight, 8192));
        UNIT_CHECK(TLS_STATE(receiver, RUNNING) && opal_crypt_handshake_wants(receiver) > 0);
        two_free(two);
    }
}

/* An end of OpenSSL's against our listener. */
static void odd_client(const char *what, odd_t odd, uint8_t psk, unsigned asked)
{
    job_t job = {.psk = tls_psk(7)};
    opal_crypt_handshake_t *server = tls_accept(tls, &job);
    peer_t *peer = peer_make(false, odd, psk);
    flight_t flight;

    UNIT_GROUP("a client with %s", what);
    if (odd.early_data) {
        size_t written;
        UNIT_CHECK(1 == SSL_write_early_data(peer->ssl, "early", 5, &written));
    } else {
        UNIT_CHECK(1 != SSL_do_handshake(peer->ssl));
    }
    flight = peer_output(peer);
    UNIT_CHECK(flight.bytes > 0);
    (void) tls_input(server, &flight, 8192);
    UNIT_CHECK(tls_refused(server) && job.asked == asked);
    printf("  %s\n", opal_crypt_handshake_reason(server));
    peer_free(peer);
    opal_crypt_handshake_destroy(server);
}

static void odd_clients(void)
{
    opal_crypt_tls_identity_t identity = tls_identity();
    uint8_t unknown[OPAL_CRYPT_TLS_IDENTITY_BYTES], other[OPAL_CRYPT_TLS_IDENTITY_BYTES], longer[OPAL_CRYPT_TLS_IDENTITY_BYTES + 1] = {0};

    identity.claimed = tls_name(99);
    opal_crypt_tls_identity_pack(&identity, unknown);
    identity = (opal_crypt_tls_identity_t) {.claimed = tls_name(1), .wanted = tls_name(2)};
    opal_crypt_tls_identity_pack(&identity, other);
    memcpy(longer, unknown, sizeof(unknown));

    odd_client("another key", (odd_t) {0}, 8, 1);
    odd_client("a name outside of the job", (odd_t) {.identity = unknown, .identity_bytes = sizeof(unknown)}, 7, 1);
    odd_client("another process in mind", (odd_t) {.identity = other, .identity_bytes = sizeof(other)}, 7, 0);
    odd_client("an identity that is too long", (odd_t) {.identity = longer, .identity_bytes = sizeof(longer)}, 7, 0);
    odd_client("an identity that is too short", (odd_t) {.identity = unknown, .identity_bytes = sizeof(unknown) - 1}, 7, 0);
    odd_client("an identity of another kind", (odd_t) {.identity = longer + 1, .identity_bytes = sizeof(unknown)}, 7, 0);
    odd_client("no PSK", (odd_t) {.no_psk = true}, 7, 0);
    odd_client("a certificate instead", (odd_t) {.no_psk = true, .certificate = true}, 7, 0);
    odd_client("tickets in mind", (odd_t) {.tickets = true}, 7, 0);
    odd_client("early data", (odd_t) {.early_data = true}, 7, 0);
    odd_client("middlebox mode", (odd_t) {.middlebox = true}, 7, 0);
    odd_client("TLS 1.2", (odd_t) {.tls12 = true, .no_psk = true}, 7, 0);
    odd_client("more suites", (odd_t) {.other_hash_first = true}, 7, 0);
    odd_client("another group than this pair's", (odd_t) {.groups = "P-256"}, 7, 1);
    odd_client("a group that nobody has", (odd_t) {.groups = "P-384"}, 7, 0);
    odd_client("more groups", (odd_t) {.groups = "X25519:P-256"}, 7, 0);
}

/* An end of OpenSSL's in the place of our listener. */
static void odd_server(const char *what, odd_t odd, uint8_t psk, bool passes)
{
    const opal_crypt_tls_psk_t member = tls_psk(7);
    opal_crypt_handshake_t *client = tls_connect(tls, &member);
    peer_t *peer = peer_make(true, odd, psk);
    flight_t flight = tls_output(client);

    UNIT_GROUP("a server with %s", what);
    peer_input(peer, &flight);
    (void) SSL_do_handshake(peer->ssl);
    flight = peer_output(peer);
    UNIT_CHECK(flight.bytes > 0);
    (void) tls_input(client, &flight, 8192);
    UNIT_CHECK(passes ? TLS_STATE(client, DONE) : tls_refused(client));
    printf("  %s\n", opal_crypt_handshake_reason(client));
    peer_free(peer);
    opal_crypt_handshake_destroy(client);
}

static void odd_servers(void)
{
    odd_server("nothing odd", (odd_t) {0}, 7, true);
    odd_server("another key", (odd_t) {0}, 8, false);
    odd_server("a certificate and no PSK", (odd_t) {.no_psk = true, .certificate = true}, 7, false);
    odd_server("a certificate beside another key", (odd_t) {.certificate = true}, 8, false);
    odd_server("another group: it asks again", (odd_t) {.groups = "P-256"}, 7, false);
    odd_server("TLS 1.2", (odd_t) {.tls12 = true, .no_psk = true, .certificate = true}, 7, false);
}

/* A HelloRetryRequest that changes nothing but asks for a cookie: it would be legal TLS. */
static void retry(void)
{
    static const uint8_t random[32] = {
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
        0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};
    const opal_crypt_tls_psk_t psk = tls_psk(7);
    opal_crypt_handshake_t *client = tls_connect(tls, &psk);
    flight_t flight = {.bytes = 0};
    const uint8_t head[] = {22, 3, 3, 0, 57, 2, 0, 0, 53, 3, 3}, tail[] = {0, 0x13, 1, 0, 0, 13, 0, 43, 0, 2, 3, 4, 0, 44, 0, 3, 0, 1, 'c'};

    UNIT_GROUP("a HelloRetryRequest with a cookie");
    memcpy(flight.data, head, sizeof(head));
    memcpy(flight.data + sizeof(head), random, sizeof(random));
    memcpy(flight.data + sizeof(head) + sizeof(random), tail, sizeof(tail));
    flight.bytes = sizeof(head) + sizeof(random) + sizeof(tail);
    UNIT_CHECK(5 + 57 == flight.bytes);
    (void) tls_output(client);
    (void) tls_input(client, &flight, 8192);
    UNIT_CHECK(tls_refused(client));
    printf("  %s\n", opal_crypt_handshake_reason(client));
    opal_crypt_handshake_destroy(client);
}

/* A hello in a form that TLS allows, made from a good one: change(flight) returns its new length. */
static void changed(const char *what, size_t (*change)(uint8_t *data, size_t bytes))
{
    two_t *two = two_make();
    flight_t flight = tls_output(two->client);

    UNIT_GROUP("a hello %s", what);
    flight.bytes = change(flight.data, flight.bytes);
    (void) tls_input(two->server, &flight, 8192);
    UNIT_CHECK(tls_refused(two->server) && 0 == two->job.asked);
    printf("  %s\n", opal_crypt_handshake_reason(two->server));
    two_free(two);
}

static size_t in_two_records(uint8_t *data, size_t bytes)
{
    memmove(data + 105, data + 100, bytes - 100);
    memcpy(data + 100, data, 3);
    opal_crypt_put16(data + 103, (uint16_t) (bytes - 100));
    opal_crypt_put16(data + 3, 95);
    return bytes + 5;
}

static size_t with_another_message(uint8_t *data, size_t bytes)
{
    memcpy(data + bytes, "\x18\0\0\1\0", 5);
    opal_crypt_put16(data + 3, (uint16_t) bytes);
    return bytes + 5;
}

static size_t with_a_long_record(uint8_t *data, size_t bytes)
{
    memset(data + bytes, 0, 4096);
    opal_crypt_put16(data + 3, OPAL_CRYPT_TLS_HELLO_MAX + 1);
    return bytes + 4096;
}

static size_t with_two_identities(uint8_t *data, size_t bytes)
{
    /* pre_shared_key is last: | 0 41 | length | identities | 0 92 ... | binders | */
    const size_t one = 2 + OPAL_CRYPT_TLS_IDENTITY_BYTES + 4, binders = 2 + 1 + 32, at = bytes - binders - one - 6;
    uint8_t *psk = data + at;

    UNIT_REQUIRE(41 == psk[1] && OPAL_CRYPT_TLS_IDENTITY_BYTES == psk[7]);
    memmove(psk + 6 + 2 * one, psk + 6 + one, binders);
    memcpy(psk + 6 + one, psk + 6, one);
    memcpy(psk + 6 + 2 * one + binders, psk + 6 + 2 * one + 2, 33);
    bytes += one + 33;
    opal_crypt_put16(psk + 2, (uint16_t) (2 + 2 * one + 2 + 66));
    opal_crypt_put16(psk + 4, (uint16_t) (2 * one));
    opal_crypt_put16(psk + 6 + 2 * one, 66);
    opal_crypt_put16(data + 3, (uint16_t) (bytes - 5));
    opal_crypt_put16(data + 7, (uint16_t) (bytes - 9));
    /* random 32, no session, 4 bytes of suites or 2, no compression */
    const size_t extensions = 11 + 32 + 1 + 2 + (size_t) data[45] + 2;
    opal_crypt_put16(data + extensions, (uint16_t) (bytes - extensions - 2));
    return bytes;
}

static size_t as_change_cipher_spec(uint8_t *data, size_t bytes)
{
    (void) bytes;
    memcpy(data, "\x14\3\3\0\1\1", 6);
    return 6;
}

static size_t as_http(uint8_t *data, size_t bytes)
{
    (void) bytes;
    memcpy(data, "GET / HTTP/1.1\r\n\r\n", 18);
    return 18;
}

/* What one end sent comes back to it, and what one connection sent goes into another. */
static void reflection(void)
{
    two_t *one = two_make(), *other = two_make();
    flight_t hello = tls_output(one->client), answer;

    UNIT_GROUP("reflected, and from another connection");
    (void) tls_input(one->client, &hello, 8192);
    UNIT_CHECK(tls_refused(one->client));
    UNIT_CHECK(0 == tls_input(one->server, &hello, 8192));
    answer = tls_output(one->server);
    (void) tls_input(one->server, &answer, 8192);
    UNIT_CHECK(tls_refused(one->server));
    (void) tls_output(other->client);
    (void) tls_input(other->client, &answer, 8192);
    UNIT_CHECK(tls_refused(other->client));
    two_free(one);
    two_free(other);
}

/* However many records arrive, no more than the limit is taken. */
static void bounded(void)
{
    two_t *two = two_make();
    flight_t flight = tls_output(two->client);
    size_t total = flight.bytes, taken;
    uint8_t record[5 + 1024] = {23, 3, 3, 4, 0};

    UNIT_GROUP("bytes are bounded");
    UNIT_CHECK(0 == tls_input(two->server, &flight, 8192));
    while (OPAL_CRYPT_OK == opal_crypt_handshake_feed(two->server, record, sizeof(record), &taken) && total < 100000) {
        total += taken;
    }
    UNIT_CHECK(tls_refused(two->server) && total <= OPAL_CRYPT_HANDSHAKE_INPUT_MAX);
    two_free(two);
}

/* ---- what is verified once more at the end, of an OpenSSL that would have agreed on something else ---- */

static int other_version(const SSL *ssl)
{
    (void) ssl;
    return TLS1_2_VERSION;
}

static int not_reused(const SSL *ssl)
{
    (void) ssl;
    return 0;
}

static uint16_t other_suite(const SSL_CIPHER *cipher)
{
    (void) cipher;
    return 0x1302;
}

static int holds_more(const SSL *ssl)
{
    (void) ssl;
    return 1;
}

static size_t no_random(const SSL *ssl, unsigned char *to, size_t bytes)
{
    (void) ssl;
    (void) to;
    (void) bytes;
    return 0;
}

static int reads_nothing(BIO *bio, void *to, int bytes)
{
    (void) bio;
    (void) to;
    (void) bytes;
    return -1;
}

static void strange(const char *reason, const opal_crypt_libssl_t *libssl)
{
    opal_crypt_tls_t changed_tls = *tls;

    changed_tls.ssl = libssl;
    for (int server = 0; server < 2; ++server) {
        two_t *two = two_make();
        opal_crypt_handshake_t *end = server ? two->server : two->client;

        UNIT_GROUP("the %s: %s", server ? "server" : "client", reason);
        end->tls = &changed_tls;
        UNIT_CHECK(!tls_shake(two->client, two->server, 8192) && tls_refused(end));
        UNIT_CHECK(0 == strcmp(reason, opal_crypt_handshake_reason(end)));
        two_free(two);
    }
}

static void strange_library(void)
{
    opal_crypt_libssl_t libssl = *tls->ssl;

    libssl.SSL_version = other_version;
    strange("another version than TLS 1.3", &libssl);
    libssl = *tls->ssl;
    libssl.SSL_session_reused = not_reused;
    strange("the PSK was not used", &libssl);
    libssl = *tls->ssl;
    libssl.SSL_CIPHER_get_protocol_id = other_suite;
    strange("another cipher suite", &libssl);
    libssl = *tls->ssl;
    libssl.SSL_has_pending = holds_more;
    strange("something follows the handshake in its record", &libssl);
    libssl = *tls->ssl;
    libssl.SSL_get_client_random = no_random;
    strange("OpenSSL gave no traffic secrets", &libssl);
    libssl = *tls->ssl;
    libssl.BIO_read = reads_nothing;
    strange("too much to send", &libssl);
}

int main(void)
{
    tls = tls_of(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_X25519);
    UNIT_REQUIRE(NULL != tls);
    for (int which = 0; which < 3; ++which) {
        every_length(which);
        every_byte(which);
    }
    odd_clients();
    odd_servers();
    retry();
    changed("in two records", in_two_records);
    changed("with another message behind it", with_another_message);
    changed("that is too long", with_a_long_record);
    changed("with two identities", with_two_identities);
    changed("that is a ChangeCipherSpec", as_change_cipher_spec);
    changed("of HTTP", as_http);
    reflection();
    bounded();
    strange_library();
    opal_crypt_tls_destroy(tls);
    return unit_done();
}
