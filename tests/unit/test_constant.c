/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Our own code that handles secrets takes no branch and no address from them.  Under valgrind
 * (tests/shell/constant_time.sh) a secret counts as uninitialized, so memcheck reports both; without it, this checks
 * the results only.
 *
 *     test_constant [--only WORD]      the groups whose names contain it: "planted" ones leak, and run only then (77: this
 *                                      build cannot mark secrets)
 *
 * What is public of a secret is marked so, either in the product (crypt/base/constant.h) or here by expose().
 */
#include "crypt_fixture.h"
#include "keystore_cases.h"
#include "sessions.h"
#include "tls_ends.h"

#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/secret_file.h"
#include "opal/mca/common/crypt/identity/local_object.h"
#include "opal/mca/common/cryptfile/keystore/keystore_object.h"

#include <ctype.h>
#include <sys/syscall.h>

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
enum { HAVE_MEMCHECK = 1 };
#else
enum { HAVE_MEMCHECK = 0 };
#define VALGRIND_MAKE_MEM_UNDEFINED(memory, bytes) ((void) (memory), (void) (bytes))
#define VALGRIND_MAKE_MEM_DEFINED(memory, bytes) ((void) (memory), (void) (bytes))
#endif

static void hide(void *memory, size_t bytes)
{
    (void) VALGRIND_MAKE_MEM_UNDEFINED(memory, bytes);
}

static void expose(void *memory, size_t bytes)
{
    (void) VALGRIND_MAKE_MEM_DEFINED(memory, bytes);
}

/* Digits of a key are secrets from the moment they are read: those of a file that has nothing else, and those behind
 * "key plain ".  The rest of a key file is not secret.  The core calls this instead of the C library's. */
static bool reading_keys;

ssize_t read(int fd, void *memory, size_t bytes)
{
    static const char before[] = "key plain ";
    ssize_t got = syscall(SYS_read, fd, memory, bytes);
    char *at = !reading_keys || got < 64 ? NULL : got <= 65 ? memory : memmem(memory, (size_t) got, before, sizeof(before) - 1);

    if (NULL != at) {
        at += got <= 65 ? 0 : sizeof(before) - 1;
        UNIT_REQUIRE(at + 64 <= (char *) memory + got);
        hide(at, 64);
    }
    return got;
}

/* ---- planted ---- */

static volatile unsigned sink;

static void plant_branch(void)
{
    uint8_t key[32];

    opal_crypt_random(key, sizeof(key));
    hide(key, sizeof(key));
    if (7 == key[3]) {
        sink = 1;
    }
}

static void plant_table(void)
{
    static const uint8_t table[256] = {1, 2, 3};
    uint8_t key[32];

    opal_crypt_random(key, sizeof(key));
    hide(key, sizeof(key));
    sink = table[key[3]];
}

/* ---- comparing, digits ---- */

static void compare(void)
{
    uint8_t one[32], two[32];

    fill(one, sizeof(one), 1);
    fill(two, sizeof(two), 1);
    hide(one, sizeof(one));
    hide(two, sizeof(two));
    UNIT_CHECK(0 == opal_crypt_differ(one, two, sizeof(one)));
    two[31] ^= 1;
    UNIT_CHECK(0 != opal_crypt_differ(one, two, sizeof(one)));
}

static void digits(void)
{
    uint8_t key[256], back[256];
    char text[513], wanted[3];
    unsigned wrong = 0;

    for (unsigned i = 0; i < 256; ++i) {
        key[i] = (uint8_t) i;
    }
    hide(key, sizeof(key));
    opal_crypt_hex_write(key, sizeof(key), text);
    UNIT_CHECK(opal_crypt_hex_read(text, back, sizeof(back)));
    expose(text, sizeof(text));
    expose(back, sizeof(back));
    for (unsigned i = 0; i < 256; ++i) {
        snprintf(wanted, sizeof(wanted), "%02x", i);
        wrong += 0 != memcmp(wanted, text + 2 * i, 2) || i != back[i];
    }
    UNIT_CHECK(0 == wrong);
}

/* Every character, at both places. */
static void other_characters(void)
{
    char text[2];
    uint8_t byte;
    unsigned wrong = 0;

    for (unsigned c = 0; c < 256; ++c) {
        for (unsigned place = 0; place < 2; ++place) {
            text[place] = (char) c;
            text[!place] = '7';
            wrong += opal_crypt_hex_read(text, &byte, 1) != (isxdigit((int) c) && !isupper((int) c));
        }
        wrong += (OPAL_CRYPT_HEX_BAD != opal_crypt_hex_value((char) c)) != (0 != isxdigit((int) c));
        wrong += isxdigit((int) c) && strtoul((char[]) {(char) c, '\0'}, NULL, 16) != opal_crypt_hex_value((char) c);
    }
    UNIT_CHECK(0 == wrong);
}

/* ---- the psk, from its file to the keys of messages ---- */

static opal_crypt_local_t *process_with_psk(uint32_t rank)
{
    opal_crypt_options_t options = fixture_options(OPAL_CRYPT_AUTH_PSK);

    UNIT_REQUIRE(0 == opal_aead_openssl_init());
    options.psk_file = fixture_file("psk", FIXTURE_PSK "\n", 0600);
    options.aead = &opal_aead_openssl_module;
    opal_crypt_local_t *local = fixture_local(&options, rank);
    /* A key pair of OpenSSL's, which from here on is ours to keep. */
    hide(local->pair.private, 32);
    return local;
}

/* A record is published: its authenticator, too, is public. */
static const uint8_t *published(const opal_crypt_local_t *local, size_t *bytes)
{
    const uint8_t *record = opal_crypt_local_record(local, bytes);

    expose((void *) (uintptr_t) record, *bytes);
    return record;
}

static void messages(opal_crypt_session_t *from, opal_crypt_session_t *to)
{
    static const opal_crypt_envelope_t here = {1, 2, 1, 3};
    uint8_t plain[40], frame[64], back[40], first[70], segment[40], whole[100], whole_back[100];
    opal_crypt_shape_t shape;
    opal_crypt_chop_t *sealing = NULL, *opening = NULL;
    uint64_t counter;

    fill(plain, sizeof(plain), 3);
    hide(plain, sizeof(plain));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(from, &here, plain, sizeof(plain), frame));
    expose(frame, sizeof(frame));                       /* sent */
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_open(to, &here, frame, sizeof(frame), back, sizeof(back), &counter));
    frame[20] ^= 1;
    UNIT_CHECK(OPAL_CRYPT_OK != opal_crypt_direct_open(to, &here, frame, sizeof(frame), back, sizeof(back), &counter));

    fill(whole, sizeof(whole), 4);
    hide(whole, sizeof(whole));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_shape_make(100, 30, 24, &shape));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_first_seal(from, &here, &shape, whole, first, &counter, &sealing));
    expose(first, sizeof(first));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_first_open(to, &here, first, sizeof(first), whole_back, sizeof(whole_back), &shape,
                                                        &counter, &opening));
    for (uint32_t i = 1; i <= shape.count; ++i) {
        const uint64_t at = opal_crypt_segment_offset(&shape, i);
        const size_t bytes = opal_crypt_segment_bytes(&shape, i) + OPAL_CRYPT_SEGMENT_OVERHEAD;
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_segment_seal(sealing, i, whole + at, segment));
        expose(segment, bytes);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_segment_open(opening, i, segment, bytes, whole_back + at));
    }
    opal_crypt_chop_end(sealing);
    opal_crypt_chop_end(opening);
}

static void tokens(opal_crypt_session_t *from, opal_crypt_session_t *to)
{
    uint8_t frame[OPAL_CRYPT_LOCAL_HEADER];

    opal_crypt_local_header(&from->secrets->token_out, OPAL_CRYPT_FRAME_LOCAL, frame);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_local_check(&to->secrets->token_in, OPAL_CRYPT_FRAME_LOCAL, frame, sizeof(frame)));
    frame[OPAL_CRYPT_LOCAL_HEADER - 1] ^= 1;
    UNIT_CHECK(OPAL_CRYPT_OK != opal_crypt_local_check(&to->secrets->token_in, OPAL_CRYPT_FRAME_LOCAL, frame, sizeof(frame)));
}

static void sessions(void)
{
    opal_crypt_session_t *one = NULL, *two = NULL;
    opal_crypt_why_t why = {.topic = "none"};
    size_t bytes, other_bytes;

    reading_keys = true;
    opal_crypt_local_t *a = process_with_psk(0), *b = process_with_psk(1);
    reading_keys = false;
    const uint8_t *record = published(a, &bytes), *other = published(b, &other_bytes);
    UNIT_REQUIRE(OPAL_CRYPT_OK == fixture_session(a, other, other_bytes, NULL, &one, &why));
    UNIT_REQUIRE(OPAL_CRYPT_OK == fixture_session(b, record, bytes, NULL, &two, &why));
    messages(one, two);
    tokens(one, two);

    /* Without the key nobody can make a record. */
    ((uint8_t *) (uintptr_t) record)[bytes - 1] ^= 1;
    opal_crypt_session_t *none = NULL;
    UNIT_CHECK(OPAL_CRYPT_ERR_PEER == fixture_session(b, record, bytes, NULL, &none, &why));
    UNIT_CHECK(fixture_said(&why, "record-authenticator", "pre-shared key"));

    opal_crypt_session_destroy(one);
    opal_crypt_session_destroy(two);
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

/* Files that are no keys: the answer is public, and nothing else is. */
static void bad_files(void)
{
    static const struct {
        const char *text, *topic;
    } files[] = {
        {"g0112233445566778899aabbccddeeff0123456789abcdef0011223344556677", "secret-not-hex"},
        {"00112233445566778899aabbccddeeff0123456789abcdef00112233445566-7", "secret-not-hex"},
        {"0000000000000000000000000000000000000000000000000000000000000000", "secret-zero"},
        {"0112233445566778899aabbccddeeff0123456789abcdef0011223344556677\n", "secret-length"},
    };

    reading_keys = true;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); ++i) {
        opal_crypt_why_t why = {.topic = NULL};
        uint8_t *secret = NULL;

        UNIT_CHECK(OPAL_CRYPT_OK != opal_crypt_secret_file_hex(fixture_file("bad", files[i].text, 0600), "key", true, &secret, NULL, &why));
        UNIT_CHECK(fixture_said(&why, files[i].topic, "key"));
    }
    reading_keys = false;
}

/* ---- keystores ---- */

static void keystore_with(const char *name, const char *machine_key)
{
    opal_cryptfile_keystore_options_t options = {.backend = OPAL_CRYPTFILE_KEYSTORE_FILE, .directory = fixture_path(name),
                                                 .machine_key_file = machine_key, .now = NOW};
    opal_cryptfile_keystore_record_t record = {.label = "lab"};
    opal_cryptfile_wrapped_t wrapped;
    opal_cryptfile_grant_t grant;
    opal_crypt_why_t why = {.topic = NULL};
    uint8_t data_key[32], back[32];

    UNIT_REQUIRE(0 == mkdir(options.directory, 0700));
    reading_keys = true;
    opal_cryptfile_keystore_t *keystore = reopen(NULL, &options, NOW);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_NEW, &record, &why));
    memcpy(data_key, case_key, sizeof(data_key));
    hide(data_key, sizeof(data_key));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(keystore, "lab", case_uuid, data_key, &wrapped, &why));
    expose(&wrapped, sizeof(wrapped));                  /* it is stored in the file */
    UNIT_CHECK(OPAL_CRYPT_OK == unwrap(keystore, "lab", &wrapped, back, &grant, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_agrees(keystore, "lab", case_uuid, &wrapped, data_key));
    expose(back, sizeof(back));
    UNIT_EQUAL_BYTES(back, case_key, sizeof(back));
    wrapped.blob[40] ^= 1;                              /* within the RFC 3394 of the key, from byte 30 on */
    UNIT_CHECK(OPAL_CRYPT_OK != unwrap(keystore, "lab", &wrapped, back, &grant, &why));
    opal_cryptfile_keystore_close(keystore);
    reading_keys = false;
}

static void keystores(void)
{
    keystore_with("plain", NULL);
    keystore_with("machine", fixture_file("machine-key", FIXTURE_PSK "\n", 0600));
}

/* ---- connections ---- */

static void records(void)
{
    static uint8_t data[40000], wire[50000], back[20000];
    uint8_t secrets[2][48];
    opal_crypt_tls_records_t *one, *two;
    const struct iovec piece = {data, sizeof(data)};
    opal_crypt_tls_record_kind_t kind = OPAL_CRYPT_TLS_RECORD_DATA;
    size_t wire_bytes, bytes, plain_bytes, at = 0, got = 0, renewed = 0;

    UNIT_REQUIRE(0 == opal_aead_openssl_init());
    fill(secrets, sizeof(secrets), 5);
    fill(data, sizeof(data), 6);
    hide(secrets, sizeof(secrets));
    hide(data, sizeof(data));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_create(&opal_aead_openssl_module, OPAL_AEAD_AES_256_GCM, 2, secrets[0], secrets[1], &one));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_create(&opal_aead_openssl_module, OPAL_AEAD_AES_256_GCM, 2, secrets[1], secrets[0], &two));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_seal(one, &piece, 1, wire, sizeof(wire), &wire_bytes));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_close(one, wire + wire_bytes));
    wire_bytes += OPAL_CRYPT_TLS_RECORD_CLOSE;
    expose(wire, wire_bytes);                           /* sent */
    while (at < wire_bytes) {
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_next(two, wire + at, wire_bytes - at, &bytes) && bytes > 0);
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_open(two, wire + at, bytes, back, sizeof(back), &plain_bytes, &kind));
        at += bytes;
        got += plain_bytes;
        renewed += OPAL_CRYPT_TLS_RECORD_RENEWED == kind;
    }
    UNIT_CHECK(sizeof(data) == got && renewed > 0 && OPAL_CRYPT_TLS_RECORD_CLOSED == kind);
    opal_crypt_tls_records_destroy(one);
    opal_crypt_tls_records_destroy(two);
}

/* The binder of the hello, its check by the listener, and the traffic secrets, which OpenSSL hands over as digits. */
static void handshake(void)
{
    job_t job = {.psk = tls_psk(7)};
    opal_crypt_tls_psk_t psk = tls_psk(7), other = tls_psk(8);
    opal_crypt_tls_t *tls = tls_of(OPAL_AEAD_AES_256_GCM, OPAL_CRYPT_TLS_X25519);
    opal_crypt_handshake_t *client, *server;

    if (NULL == tls) {
        return;
    }
    hide(&job.psk, sizeof(job.psk));
    hide(&psk, sizeof(psk));
    hide(&other, sizeof(other));
    client = tls_connect(tls, &psk);
    server = tls_accept(tls, &job);
    UNIT_CHECK(tls_shake(client, server, 8192));
    opal_crypt_handshake_destroy(client);
    opal_crypt_handshake_destroy(server);
    client = tls_connect(tls, &other);
    server = tls_accept(tls, &job);
    UNIT_CHECK(!tls_shake(client, server, 8192));
    opal_crypt_handshake_destroy(client);
    opal_crypt_handshake_destroy(server);
    opal_crypt_tls_destroy(tls);
}

static const struct {
    const char *name;
    void (*run)(void);
    bool planted;
} cases[] = {
    {"planted branch", plant_branch, true},
    {"planted table", plant_table, true},
    {"comparison of tags", compare, false},
    {"hexadecimal digits", digits, false},
    {"other characters", other_characters, false},
    {"psk, sessions, messages and tokens", sessions, false},
    {"files that are no keys", bad_files, false},
    {"keystores", keystores, false},
    {"records of a connection", records, false},
    {"TLS handshake", handshake, false},
};

int main(int argc, char **argv)
{
    const char *only = argc == 3 && 0 == strcmp(argv[1], "--only") ? argv[2] : "";

    fixture_begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        if (NULL != strstr(cases[i].name, only) && (!cases[i].planted || '\0' != *only)) {
            UNIT_GROUP("%s", cases[i].name);
            cases[i].run();
        }
    }
    return 0 != strncmp(only, "planted", 7) ? unit_done() : HAVE_MEMCHECK ? 0 : 77;
}
