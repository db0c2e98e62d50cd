/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * crypt_auth=x509 with the certificates that x509_ca.sh makes.
 */
#include "tests/unit/crypt_fixture.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "opal/mca/common/crypt/identity/local_object.h"
#include "opal/mca/common/crypt/identity/x509_chain.h"

/* 2025-06-01 and 2098-06-01: before and after the certificate `short`. */
#define BEFORE_SHORT    INT64_C(1748736000)
#define AFTER_SHORT     INT64_C(4052419200)

static const char *file(const char *name, const char *suffix)
{
    char text[64];

    snprintf(text, sizeof(text), "%s.%s", name, suffix);
    return fixture_path(text);
}

static opal_crypt_options_t with(const char *name)
{
    opal_crypt_options_t options = fixture_options(OPAL_CRYPT_AUTH_X509);

    options.x509_cert = file(name, "pem");
    options.x509_key = file(name, "key");
    options.x509_ca = file("ca", "pem");
    return options;
}

static opal_crypt_local_t *local_of(const char *name, uint32_t rank)
{
    opal_crypt_options_t options = with(name);

    return fixture_local(&options, rank);
}

/* ---- kinds of keys ---- */

static void test_keys(void)
{
    static const char *const names[] = { "ed25519", "p256", "p384", "rsa", "rsapss", "sec1", "sec1p", "pkcs1", "chain" };
    opal_crypt_local_t *a = local_of("ed25519", 0);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        opal_crypt_local_t *b = local_of(names[i], 1);
        opal_crypt_schedule_t *at_a = fixture_schedule(a, b), *at_b = fixture_schedule(b, a);
        uint8_t out[32], in[32];

        UNIT_GROUP("a key of kind %s", names[i]);
        UNIT_REQUIRE(NULL != at_a && NULL != at_b);
        UNIT_CHECK(0 == opal_crypt_schedule_expand(at_a, OPAL_CRYPT_LABEL_DIRECTION, OPAL_CRYPT_OUT, out, 32));
        UNIT_CHECK(0 == opal_crypt_schedule_expand(at_b, OPAL_CRYPT_LABEL_DIRECTION, OPAL_CRYPT_IN, in, 32));
        UNIT_EQUAL_BYTES(out, in, 32);
        opal_crypt_schedule_destroy(at_a);
        opal_crypt_schedule_destroy(at_b);
        opal_crypt_local_destroy(b);
    }
    opal_crypt_local_destroy(a);
    UNIT_CHECK(0 == ERR_peek_error());
}

/* ---- what is refused at the start ---- */

static void own(const char *name, const char *topic, const char *part)
{
    opal_crypt_options_t options = with(name);

    UNIT_GROUP("our own: %s", name);
    UNIT_CHECK(fixture_local_refused(&options, topic, part));
}

static void test_own(void)
{
    opal_crypt_options_t options;

    own("expired", "x509-expired", "CN=alice,OU=hpc,O=Site");
    own("future", "x509-not-yet-valid", "CN=alice");
    own("stranger", "x509-foreign-ca", "CN=alice");
    own("cipher", "x509-key-usage", "CN=alice");
    own("unknown", "x509-invalid", "unhandled critical extension");
    own("rsa1024", "x509-weak-key", "");
    own("p521", "x509-key-type", "secp521r1");
    own("locked", "x509-key-encrypted", "locked.key");
    own("missing", "x509-cert", "missing.pem");

    UNIT_GROUP("our own: revoked");
    options = with("revoked");
    options.x509_crl = file("ca", "crl");
    UNIT_CHECK(fixture_local_refused(&options, "x509-revoked", "CN=alice"));

    UNIT_GROUP("our own: a CA of the chain without revocation list, a file without any");
    options = with("chain");
    options.x509_crl = file("ca", "crl");
    UNIT_CHECK(fixture_local_refused(&options, "x509-crl", "unable to get certificate CRL"));
    options.x509_crl = file("ca", "pem");
    UNIT_CHECK(fixture_local_refused(&options, "x509-crl", "ca.pem"));

    UNIT_GROUP("our own: an issuing CA is the authority, and its list alone counts");
    options = with("below");
    options.x509_ca = file("sub", "pem");
    options.x509_crl = file("sub", "crl");
    opal_crypt_local_destroy(fixture_local(&options, 0));
    options.x509_crl = file("ca", "crl");
    UNIT_CHECK(fixture_local_refused(&options, "x509-crl", "unable to get certificate CRL"));
    options.x509_ca = file("levels", "pem");
    options.x509_crl = file("lists", "crl");
    opal_crypt_local_destroy(fixture_local(&options, 0));
    options.x509_crl = file("no_lists", "crl");
    UNIT_CHECK(fixture_local_refused(&options, "x509-revoked", "of its CA"));
    options = with("gone");
    options.x509_ca = file("sub", "pem");
    options.x509_crl = file("sub", "crl");
    UNIT_CHECK(fixture_local_refused(&options, "x509-revoked", "CN=alice"));

    UNIT_GROUP("our own: keys of other certificates");
    options = with("ed25519");
    options.x509_key = file("bob", "key");
    UNIT_CHECK(fixture_local_refused(&options, "x509-key-mismatch", "bob.key"));
    options.x509_key = file("p256", "key");
    UNIT_CHECK(fixture_local_refused(&options, "x509-key-mismatch", "p256.key"));
    options = with("p256");
    options.x509_key = file("p384", "key");
    UNIT_CHECK(fixture_local_refused(&options, "x509-key-mismatch", "p384.key"));
    options = with("rsa");
    options.x509_key = file("rsapss", "key");
    UNIT_CHECK(fixture_local_refused(&options, "x509-key-mismatch", "rsapss.key"));

    UNIT_GROUP("our own: files that are missing, badly kept or something else");
    options = with("ed25519");
    options.x509_key = file("missing", "key");
    UNIT_CHECK(fixture_local_refused(&options, "secret-missing", "missing.key"));
    options.x509_key = fixture_file("open.key", "x", 0644);
    UNIT_CHECK(fixture_local_refused(&options, "secret-mode", "open.key"));
    options.x509_key = fixture_file("text.key", "no key", 0600);
    UNIT_CHECK(fixture_local_refused(&options, "x509-key-unreadable", "text.key"));
    options.x509_key = fixture_file("cut.key", "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQ==\n-----END PRIVATE KEY-----\n",
                                    0600);
    UNIT_CHECK(fixture_local_refused(&options, "x509-key-mismatch", "cut.key"));
    options.x509_key = fixture_file("base64.key", "-----BEGIN PRIVATE KEY-----\nMC4CAQAw*Q==\n-----END PRIVATE KEY-----\n", 0600);
    UNIT_CHECK(fixture_local_refused(&options, "x509-key-unreadable", "base64.key"));
    options = with("nobody");
    UNIT_CHECK(fixture_local_refused(&options, "x509-cert", "its subject is empty"));
    options = with("ed25519");
    options.x509_ca = file("missing", "pem");
    UNIT_CHECK(fixture_local_refused(&options, "x509-ca", "missing.pem"));
    options.x509_ca = NULL;
    UNIT_CHECK(fixture_local_refused(&options, "x509-not-set", "crypt_x509_ca"));
    options.auth = OPAL_CRYPT_AUTH_AUTO;
    options.psk_file = fixture_file("psk", FIXTURE_PSK, 0600);
    UNIT_CHECK(fixture_local_refused(&options, "x509-not-set", "crypt_x509_ca"));
    UNIT_CHECK(0 == ERR_peek_error());
}

/* A bit of each of the first 48 bytes: tags, lengths, algorithms, numbers.  What is not refused is the same key, with another version. */
static void test_damaged_keys(void)
{
    static const char *const names[] = { "ed25519", "p256", "rsa", "rsapss", "sec1", "pkcs1" };
    enum { LINE = 64, BYTES = LINE / 4 * 3 };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        opal_crypt_options_t options = with(names[i]);
        unsigned char bytes[BYTES], line[LINE + 1];
        char text[8192] = "";
        int fd = open(options.x509_key, O_RDONLY), refused = 0;
        char *at;

        UNIT_GROUP("a damaged key of kind %s", names[i]);
        UNIT_REQUIRE(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && 0 == close(fd));
        at = strstr(text, "KEY-----\n");
        UNIT_REQUIRE(NULL != at && BYTES == EVP_DecodeBlock(bytes, (unsigned char *) at + 9, LINE));
        for (int j = 0; j < BYTES; ++j) {
            bytes[j] ^= 0x10;
            EVP_EncodeBlock(line, bytes, BYTES);
            memcpy(at + 9, line, LINE);
            options.x509_key = fixture_file("damaged.key", text, 0600);
            if (fixture_local_refused(&options, "x509-key-mismatch", "damaged.key")) {
                ++refused;
            } else {
                opal_crypt_local_destroy(fixture_local(&options, 0));
            }
            bytes[j] ^= 0x10;
        }
        printf("  %d of %d are refused\n", refused, BYTES);
        UNIT_CHECK(refused > BYTES / 2);
    }
    UNIT_CHECK(0 == ERR_peek_error());
}

/* ---- records of others ---- */

/* Give `local` the certificate `name` and a signature by its key, whatever
 * they are worth: libcrypto's own readers, and the format by hand. */
static void forge(opal_crypt_local_t *local, const char *name, unsigned scheme)
{
    FILE *in = fopen(file(name, "pem"), "r");
    X509 *certificate = PEM_read_X509(in, NULL, NULL, NULL);
    uint8_t text[4096] = "ompi-crypt v1 x509", *p = local->bytes + local->record.body_bytes + 4, *at = p;
    const char *digest = 0x0807 == scheme ? NULL : 0x0603 == scheme ? "SHA512" : "SHA256";
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *inner;
    EVP_PKEY *key;
    size_t bytes = 1024;
    int der;

    fclose(in);
    in = fopen(file(name, "key"), "r");
    key = PEM_read_PrivateKey(in, NULL, NULL, NULL);
    fclose(in);
    UNIT_REQUIRE(NULL != certificate && NULL != key);

    *at++ = 1;
    der = i2d_X509(certificate, NULL);
    opal_crypt_put32(at, (uint32_t) der);
    at += 4;
    i2d_X509(certificate, &at);
    opal_crypt_put16(at, (uint16_t) scheme);
    memcpy(text + 18, local->bytes, local->record.body_bytes);
    UNIT_REQUIRE(1 == EVP_DigestSignInit_ex(context, &inner, digest, NULL, NULL, key, NULL));
    if (0x0804 == scheme) {
        EVP_PKEY_CTX_set_rsa_padding(inner, RSA_PKCS1_PSS_PADDING);
        EVP_PKEY_CTX_set_rsa_pss_saltlen(inner, 32);
    }
    UNIT_REQUIRE(1 == EVP_DigestSign(context, at + 4, &bytes, text, 18 + local->record.body_bytes));
    opal_crypt_put16(at + 2, (uint16_t) bytes);
    at += 4 + bytes;
    opal_crypt_put32(p - 4, (uint32_t) (at - p));
    local->byte_count = (size_t) (at - local->bytes);
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    X509_free(certificate);
}

static void test_peers(void)
{
    static const struct {
        const char *name;
        unsigned scheme;
        const char *topic;      /* NULL: taken */
    } cases[] = {
        { "ed25519", 0x0807, NULL },
        { "bare", 0x0807, NULL },
        { "rsa", 0x0804, NULL },
        { "p256", 0x0403, NULL },
        { "expired", 0x0807, "x509-expired" },
        { "future", 0x0807, "x509-not-yet-valid" },
        { "stranger", 0x0807, "x509-foreign-ca" },
        { "below", 0x0807, "x509-foreign-ca" },
        { "cipher", 0x0807, "x509-key-usage" },
        { "unknown", 0x0807, "x509-invalid" },
        { "rsa1024", 0x0804, "x509-weak-key" },
        { "p521", 0x0603, "x509-key-type" },
        { "bob", 0x0807, "x509-other-subject" },
        { "rsa", 0x0809, "record-authenticator" },
    };
    opal_crypt_local_t *a = local_of("ed25519", 0), *b = local_of("ed25519", 1);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        UNIT_GROUP("a peer's: %s, scheme %04x", cases[i].name, cases[i].scheme);
        forge(b, cases[i].name, cases[i].scheme);
        if (NULL == cases[i].topic) {
            opal_crypt_schedule_destroy(fixture_schedule(a, b));
        } else {
            UNIT_CHECK(fixture_peer_refused(a, b, cases[i].topic, ""));
        }
    }
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
    UNIT_CHECK(0 == ERR_peek_error());
}

static void test_revoked(void)
{
    opal_crypt_options_t options = with("ed25519");
    opal_crypt_local_t *a, *b = local_of("revoked", 1), *c = local_of("p256", 1), *before;

    UNIT_GROUP("a peer's: revoked; by a list that does not name it, or without one, it is good");
    options.x509_crl = file("empty", "crl");
    before = fixture_local(&options, 0);
    options.x509_crl = file("ca", "crl");
    a = fixture_local(&options, 0);
    UNIT_CHECK(fixture_peer_refused(a, b, "x509-revoked", "CN=alice"));
    opal_crypt_schedule_destroy(fixture_schedule(a, c));
    opal_crypt_schedule_destroy(fixture_schedule(before, b));
    opal_crypt_schedule_destroy(fixture_schedule(c, b));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
    opal_crypt_local_destroy(c);
    opal_crypt_local_destroy(before);
}

static void test_time(void)
{
    opal_crypt_local_t *a = local_of("ed25519", 0), *b = local_of("short", 1);
    opal_crypt_expect_t expect = { .needed = BEFORE_SHORT };

    UNIT_GROUP("a certificate must be good when the record is needed");
    UNIT_CHECK(fixture_record_refused(a, b->bytes, b->byte_count, &expect, "x509-not-yet-valid", ""));
    expect.needed = AFTER_SHORT;
    UNIT_CHECK(fixture_record_refused(a, b->bytes, b->byte_count, &expect, "x509-expired", ""));
    opal_crypt_schedule_destroy(fixture_schedule(a, b));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

static void subject(const char *name, const char *patterns, int wanted)
{
    FILE *in = fopen(file(name, "pem"), "r");
    X509 *certificate = NULL == in ? NULL : PEM_read_X509(in, NULL, NULL, NULL);

    UNIT_REQUIRE(NULL != certificate);
    fclose(in);
    if (wanted != opal_crypt_subject_matches(certificate, patterns)) {
        fprintf(stderr, "%s against '%s'\n", name, patterns);
        UNIT_CHECK(!"a pattern");
    }
    UNIT_CHECK(1);
    X509_free(certificate);
}

static void test_subjects(void)
{
    opal_crypt_options_t options = with("ed25519");
    opal_crypt_local_t *a, *b = local_of("bob", 1);

    UNIT_GROUP("another user of the same CA is refused, unless crypt_x509_peer names him");
    a = fixture_local(&options, 0);
    UNIT_CHECK(fixture_peer_refused(a, b, "x509-other-subject", "CN=alice,OU=hpc,O=Site here, CN=bob,OU=hpc,O=Site"));
    opal_crypt_local_destroy(a);
    options.x509_peer = "CN=bob,OU=hpc,O=Site";
    a = fixture_local(&options, 0);
    opal_crypt_schedule_destroy(fixture_schedule(a, b));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);

    UNIT_GROUP("patterns of subjects");
    subject("bob", "CN=*,OU=hpc,O=Site", 1);
    subject("bob", "CN=b?b,OU=[gh]pc,O=Site", 1);
    subject("bob", "CN=alice,OU=hpc,O=Site;CN=bob,OU=hpc,O=Site", 1);
    subject("bob", "", 0);
    subject("bob", ";", 0);
    subject("bob", "*", 0);
    subject("bob", "CN=*", 0);
    subject("bob", "CN=*,O=Site", 0);
    subject("bob", "*,*,*", 1);
    subject("bob", "*,*,*,*", 0);
    subject("bob", "CN=bob,OU=hpc,O=Site,", 0);
    subject("bob", "CN=Bob,OU=hpc,O=Site", 0);
    subject("bob", "O=Site,OU=hpc,CN=bob", 0);
    subject("comma", "CN=*,OU=hpc,OU=hpc,O=Site", 0);
    subject("comma", "CN=bob,OU=hpc,O=Site", 0);
    subject("comma", "CN=*,OU=hpc,O=Site", 1);
}

/* `name` and `other`, both with our subject, and one file of CAs: does each accept the other?
 * Topic NULL: yes. */
static void under(const char *cas, const char *name, const char *other, const char *topic, const char *part)
{
    opal_crypt_options_t options = with(name);
    opal_crypt_local_t *a, *b;

    UNIT_GROUP("%s and %s under %s.pem", name, other, cas);
    options.x509_ca = file(cas, "pem");
    options.x509_peer = "CN=alice,OU=hpc,O=Site";
    a = fixture_local(&options, 0);
    options = with(other);
    options.x509_ca = file(cas, "pem");
    b = fixture_local(&options, 1);
    if (NULL == topic) {
        opal_crypt_schedule_destroy(fixture_schedule(a, b));
        opal_crypt_schedule_destroy(fixture_schedule(b, a));
    } else {
        UNIT_CHECK(fixture_peer_refused(a, b, topic, part));
        UNIT_CHECK(fixture_peer_refused(b, a, topic, ""));
    }
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

/* The owner of any CA in the file can issue a certificate with our subject. */
static void test_anchors(void)
{
    under("three", "named", "named", NULL, NULL);
    under("three", "named", "guest", "x509-other-ca", "CN=CA,O=Site here, CN=CA,O=Other there");
    under("three", "named", "twin", "x509-other-ca", "CN=CA,O=Site here, CN=CA,O=Site there");
    under("ca", "named", "chain", NULL, NULL);      /* the CA decides who signs below it */
    under("levels", "below", "chain", NULL, NULL);
    under("levels", "named", "below", "x509-other-ca", "CN=CA,O=Site here, CN=Sub CA,O=Site there");
    UNIT_CHECK(0 == ERR_peek_error());
}

static void test_flips(void)
{
    opal_crypt_local_t *a = local_of("ed25519", 0), *b = local_of("ed25519", 1);

    UNIT_GROUP("every byte flipped and every length cut is refused");
    for (size_t at = 0; at < b->byte_count; ++at) {
        opal_crypt_schedule_t *schedule = NULL;

        b->bytes[at] ^= 0x01;
        UNIT_CHECK(OPAL_CRYPT_ERR_PEER
                   == opal_crypt_schedule_create(a, b->bytes, b->byte_count, NULL, &schedule, NULL));
        b->bytes[at] ^= 0x01;
        if (at > b->record.body_bytes + 4) {        /* a shorter authenticator, in a record of its length */
            opal_crypt_put32(b->bytes + b->record.body_bytes, (uint32_t) (at - b->record.body_bytes - 4));
            UNIT_CHECK(OPAL_CRYPT_ERR_PEER
                       == opal_crypt_schedule_create(a, b->bytes, at, NULL, &schedule, NULL));
            opal_crypt_put32(b->bytes + b->record.body_bytes,
                             (uint32_t) (b->byte_count - b->record.body_bytes - 4));
        }
    }
    opal_crypt_schedule_destroy(fixture_schedule(a, b));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
    UNIT_CHECK(0 == ERR_peek_error());
}

static void test_auto(void)
{
    opal_crypt_options_t options = with("ed25519");
    opal_crypt_local_t *local;

    UNIT_GROUP("auto takes x509 before psk");
    options.auth = OPAL_CRYPT_AUTH_AUTO;
    options.psk_file = fixture_file("psk", FIXTURE_PSK, 0600);
    local = fixture_local(&options, 0);
    UNIT_CHECK(OPAL_CRYPT_AUTH_X509 == opal_crypt_local_auth(local));
    opal_crypt_local_destroy(local);
}

int main(void)
{
    const char *source = getenv("srcdir");
    char command[1024];
    int status;

    fixture_begin();
    snprintf(command, sizeof(command), "sh '%s/x509_ca.sh' '%s'", NULL == source ? "." : source, fixture_directory);
    status = system(command);
    if (WIFEXITED(status) && 77 == WEXITSTATUS(status)) {
        return unit_skip("there is no openssl program (Debian: openssl)");
    }
    UNIT_REQUIRE(0 == status);
    test_keys();
    test_own();
    test_damaged_keys();
    test_peers();
    test_revoked();
    test_time();
    test_subjects();
    test_anchors();
    test_flips();
    test_auto();
    opal_crypt_secmem_finalize();
    return unit_done();
}
