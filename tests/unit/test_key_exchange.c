/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The messages of docs/key-exchange.rst: those of an independent script are read, others are refused for the right
 * reason; what is written here is read again, and every cut and every flipped bit of it is refused.  Then what an
 * import does to a keystore.
 */
#include "tests/unit/crypt_fixture.h"
#include "tests/unit/keystore_cases.h"
#include "tests/unit/vectors.h"

#include "ompi/tools/mpicrypt/key/der.c"
#include "ompi/tools/mpicrypt/key/envelope_check.c"
#include "ompi/tools/mpicrypt/key/envelope_seal.c"
#include "ompi/tools/mpicrypt/key/envelope_sign.c"
#include "ompi/tools/mpicrypt/key/scrypt.c"
#include "opal/mca/common/cryptfile/keystore/exchange.h"
#include "opal/mca/common/cryptfile/keystore/keystore_object.h"

enum { MOST = 65536 };

static mpicrypt_passphrase_t passphrase;
static uint8_t message[MOST], text[MOST];
static opal_cryptfile_keystore_options_t with = {.backend = OPAL_CRYPTFILE_KEYSTORE_FILE, .now = NOW, .secret_on_netfs = true};

static opal_cryptfile_keystore_t *keystore_at(const char *name)
{
    opal_cryptfile_keystore_t *keystore = NULL;

    with.directory = fixture_path(name);
    UNIT_REQUIRE(0 == mkdir(with.directory, 0700) || EEXIST == errno);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_open(&with, &keystore, NULL));
    return keystore;
}

/* ---- imports, and what they reported ---- */

typedef struct seen {
    char lines[16][120];
    unsigned count;
} seen_t;

static void see(const opal_cryptfile_keystore_record_t *record, opal_cryptfile_import_t done, const opal_crypt_why_t *why, void *arg)
{
    static const char *const names[] = {"new", "held", "revoked", "stays", "back", "refused"};
    seen_t *seen = arg;

    (void) why;
    UNIT_REQUIRE(seen->count < 16);
    snprintf(seen->lines[seen->count++], sizeof(seen->lines[0]), "%.80s %u %s", record->label, record->version, names[done]);
}

static int import(opal_cryptfile_keystore_t *keystore, const char *bytes, size_t count, bool dry_run, seen_t *seen, opal_crypt_why_t *why)
{
    opal_cryptfile_import_to_t to = {.dry_run = dry_run, .each = see, .arg = seen};

    seen->count = 0;
    *why = (opal_crypt_why_t){.topic = "none"};
    return opal_cryptfile_keystore_import(keystore, bytes, count, &to, why);
}

static unsigned keys_in(opal_cryptfile_keystore_t *keystore)
{
    unsigned count = 0;

    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_list(keystore, count_record, NULL, &count, NULL));
    return count;
}

/* ---- vectors ---- */

static int open_it(const uint8_t *bytes, size_t count, char **out, size_t *out_count)
{
    opal_crypt_why_t why = {.topic = "none"};
    mpicrypt_envelope_t envelope;
    uint8_t *kek;
    int rc = mpicrypt_envelope_check(bytes, count, &envelope, &why);

    if (OPAL_CRYPT_OK == rc && MPICRYPT_TO_PASSPHRASE == envelope.kind) {
        UNIT_REQUIRE(OPAL_CRYPT_OK == mpicrypt_passphrase_key(&passphrase, &envelope.scrypt, &kek, &why));
        rc = mpicrypt_envelope_open(&envelope, kek, NULL, out, out_count, &why);
        opal_crypt_secmem_free(kek);
    }
    return rc;
}

static void good_vector(const vector_block_t *vector)
{
    const size_t count = vector_bytes(vector, "message", message, MOST), expected = vector_bytes(vector, "contents", text, MOST);
    opal_cryptfile_keystore_t *keystore = keystore_at(vector_text(vector, "name"));
    opal_crypt_why_t why;
    char *out = NULL, *again;
    size_t bytes = 0, again_bytes;
    seen_t seen;

    UNIT_CHECK(OPAL_CRYPT_OK == open_it(message, count, &out, &bytes));
    UNIT_REQUIRE(NULL != out && bytes == expected);
    UNIT_CHECK(0 == memcmp(out, text, bytes));
    UNIT_CHECK(OPAL_CRYPT_OK == import(keystore, out, bytes, true, &seen, &why) && 0 == keys_in(keystore));
    UNIT_CHECK(OPAL_CRYPT_OK == import(keystore, out, bytes, false, &seen, &why) && seen.count == keys_in(keystore));
    /* The same keys come out again, at the time of this keystore, which is that of the vectors. */
    if (NULL == strstr(out, "owners 0 ")) {
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_export(keystore, NULL, &again, &again_bytes, &why));
        UNIT_CHECK(again_bytes == bytes && 0 == memcmp(out, again, bytes));
        opal_crypt_secmem_free(again);
    }
    opal_crypt_secmem_free(out);
    opal_cryptfile_keystore_close(keystore);
}

static void contents_vector(const vector_block_t *vector, opal_cryptfile_keystore_t *keystore)
{
    const size_t count = vector_bytes(vector, "contents", text, MOST);
    opal_crypt_why_t why;
    seen_t seen;

    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == import(keystore, (const char *) text, count, false, &seen, &why));
    UNIT_CHECK(fixture_said(&why, "keystore-bundle", "bytes") && 0 == seen.count && 0 == keys_in(keystore));
}

static void form_vector(const vector_block_t *vector)
{
    const size_t count = vector_bytes(vector, "message", message, MOST);
    uint8_t *exact = malloc(count + 1);         /* so that a sanitizer sees every byte too many */
    opal_crypt_why_t why = {.topic = "none"};
    mpicrypt_envelope_t envelope;

    memcpy(exact, message, count);
    bool refused = OPAL_CRYPT_ERR_AUTH == mpicrypt_envelope_check(exact, count, &envelope, &why);
    free(exact);
    if (!refused) {
        printf("accepted: %s\n", vector_text(vector, "name"));
    }
    UNIT_CHECK(refused && fixture_said(&why, "envelope-form", ""));
}

static void vectors(void)
{
    FILE *file = vector_file("key-exchange-v1.txt");
    vector_block_t vector = {.count = 0};
    opal_cryptfile_keystore_t *empty = keystore_at("empty");
    unsigned good = 0, contents = 0, form = 0;

    UNIT_GROUP("messages of the script");
    while (vector_next(file, &vector)) {
        const char *kind = vector_text(&vector, "kind");
        if (0 == strcmp("passphrase", kind)) {
            passphrase.bytes = vector_bytes(&vector, "passphrase", (uint8_t *) passphrase.text, MPICRYPT_PASSPHRASE_MAX);
        } else if (0 == strcmp("good", kind)) {
            good_vector(&vector);
            ++good;
        } else if (0 == strcmp("contents", kind)) {
            contents_vector(&vector, empty);
            ++contents;
        } else {
            form_vector(&vector);
            ++form;
        }
    }
    fclose(file);
    opal_cryptfile_keystore_close(empty);
    UNIT_CHECK(3 == good && contents >= 30 && form >= 40);
}

/* ---- a message of ours ---- */

static void refuses_changes(void)
{
    static const char plain[] = "not a list of keys";
    mpicrypt_recipient_t recipient = {.scrypt = {.n = 14, .r = 8, .p = 1}};
    mpicrypt_envelope_t envelope;
    mpicrypt_message_t made;
    opal_crypt_why_t why;
    uint8_t *kek, *other = opal_crypt_secmem_alloc(MPICRYPT_KEK_BYTES);
    unsigned opened = 0, by_form = 0, by_key = 0;
    char *out = NULL;
    size_t bytes;

    UNIT_GROUP("a message: another key, every cut, every flipped bit");
    UNIT_REQUIRE(OPAL_CRYPT_OK == mpicrypt_passphrase_key(&passphrase, &recipient.scrypt, &kek, &why));
    recipient.kek = kek;
    UNIT_REQUIRE(OPAL_CRYPT_OK == mpicrypt_envelope_seal(plain, sizeof(plain), &recipient, &made, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == open_it(made.bytes, made.count, &out, &bytes) && sizeof(plain) == bytes && 0 == memcmp(out, plain, bytes));
    opal_crypt_secmem_free(out);
    UNIT_CHECK(NULL == memmem(made.bytes, made.count, plain, sizeof(plain)));

    UNIT_REQUIRE(OPAL_CRYPT_OK == mpicrypt_envelope_check(made.bytes, made.count, &envelope, &why));
    memcpy(other, kek, MPICRYPT_KEK_BYTES);
    other[31] ^= 1;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == mpicrypt_envelope_open(&envelope, other, NULL, &out, &bytes, &why));
    UNIT_CHECK(fixture_said(&why, "envelope-closed", "the passphrase is another one"));

    for (size_t cut = 0; cut < made.count; ++cut) {
        opened += OPAL_CRYPT_ERR_AUTH != mpicrypt_envelope_check(made.bytes, cut, &envelope, &why);
    }
    UNIT_CHECK(0 == opened);
    /* With the key of the original: what changes the salt fails, and so does all else. */
    for (size_t bit = 0; bit < 8 * made.count; ++bit) {
        made.bytes[bit / 8] ^= (uint8_t) (1u << bit % 8);
        if (OPAL_CRYPT_OK != mpicrypt_envelope_check(made.bytes, made.count, &envelope, &why)) {
            ++by_form;
        } else {
            bool same = 0 == memcmp(&envelope.scrypt, &recipient.scrypt, sizeof(recipient.scrypt));
            memset(other, 0, MPICRYPT_KEK_BYTES);
            if (OPAL_CRYPT_OK == mpicrypt_envelope_open(&envelope, same ? kek : other, NULL, &out, &bytes, &why)) {
                printf("opened: bit %zu\n", bit);
                opal_crypt_secmem_free(out);
                ++opened;
            }
            ++by_key;
        }
        made.bytes[bit / 8] ^= (uint8_t) (1u << bit % 8);
    }
    UNIT_CHECK(0 == opened && by_form > 500 && by_key > 500);
    OPENSSL_free(made.bytes);
    opal_crypt_secmem_free(kek);
    opal_crypt_secmem_free(other);
}

/* A key of this type and a certificate that it signs itself. */
static mpicrypt_identity_t identity_of(EVP_PKEY *key, const char *name)
{
    X509 *certificate = X509_new();
    X509_NAME *subject;

    UNIT_REQUIRE(NULL != key && NULL != certificate);
    subject = X509_NAME_new();
    UNIT_REQUIRE(1 == X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *) name, -1, -1, 0));
    UNIT_REQUIRE(1 == ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), 0x8000000000000001) && 1 == X509_set_subject_name(certificate, subject)
                 && 1 == X509_set_issuer_name(certificate, subject) && NULL != X509_gmtime_adj(X509_getm_notBefore(certificate), 0)
                 && NULL != X509_gmtime_adj(X509_getm_notAfter(certificate), 3600) && 1 == X509_set_pubkey(certificate, key)
                 && 0 != X509_sign(certificate, key, EVP_sha256()));
    X509_NAME_free(subject);
    return (mpicrypt_identity_t){certificate, key};
}

static void to_certificates(void)
{
    static const char plain[] = "not a list of keys, either";
    mpicrypt_identity_t own[] = {identity_of(EVP_RSA_gen(2048), "rsa"), identity_of(EVP_EC_gen("P-256"), "p-256"), identity_of(EVP_EC_gen("P-384"), "p-384")};

    UNIT_GROUP("certificates: sealed, signed, verified, opened");
    for (unsigned to = 0; to < 3; ++to) {
        const mpicrypt_recipient_t recipient = {.certificate = own[to].certificate};
        const mpicrypt_identity_t *signer = &own[(to + 1) % 3], *other = &own[(to + 2) % 3];
        mpicrypt_envelope_t envelope;
        mpicrypt_message_t made;
        opal_crypt_why_t why = {.topic = "none"};
        X509 *found = NULL;
        char *out;
        size_t bytes;
        unsigned accepted = 0;

        UNIT_CHECK(OPAL_CRYPT_OK == mpicrypt_envelope_seal(plain, sizeof(plain), &recipient, &made, &why));
        UNIT_REQUIRE(OPAL_CRYPT_OK == mpicrypt_envelope_check(made.bytes, made.count, &envelope, &why) && NULL == envelope.certificate);
        UNIT_CHECK(mpicrypt_envelope_is_for(&envelope, own[to].certificate) && !mpicrypt_envelope_is_for(&envelope, other->certificate));
        UNIT_CHECK(OPAL_CRYPT_OK == mpicrypt_envelope_open(&envelope, NULL, &own[to], &out, &bytes, &why));
        UNIT_CHECK(sizeof(plain) == bytes && 0 == memcmp(out, plain, bytes));
        opal_crypt_secmem_free(out);
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == mpicrypt_envelope_open(&envelope, NULL, other, &out, &bytes, &why));

        UNIT_CHECK(OPAL_CRYPT_OK == mpicrypt_envelope_sign(signer, &made, &why));
        UNIT_REQUIRE(OPAL_CRYPT_OK == mpicrypt_envelope_check(made.bytes, made.count, &envelope, &why) && NULL != envelope.certificate);
        UNIT_CHECK(OPAL_CRYPT_OK == mpicrypt_envelope_verify(made.bytes, made.count, &envelope, &found, &why));
        UNIT_CHECK(NULL != found && 0 == X509_cmp(found, signer->certificate));
        X509_free(found);
        UNIT_CHECK(OPAL_CRYPT_OK == mpicrypt_envelope_open(&envelope, NULL, &own[to], &out, &bytes, &why));
        opal_crypt_secmem_free(out);
        /* What changes the certificate alone is another certificate, which --from and --ca refuse. */
        for (size_t at = 0; at < made.count; ++at) {
            made.bytes[at] ^= 1;
            if (OPAL_CRYPT_OK == mpicrypt_envelope_check(made.bytes, made.count, &envelope, &why)
                && OPAL_CRYPT_OK == mpicrypt_envelope_verify(made.bytes, made.count, &envelope, &found, &why)) {
                accepted += 0 == X509_cmp(found, signer->certificate);
                X509_free(found);
            }
            made.bytes[at] ^= 1;
        }
        UNIT_CHECK(0 == accepted);
        OPENSSL_free(made.bytes);
    }
    for (unsigned i = 0; i < 3; ++i) {
        X509_free(own[i].certificate);
        EVP_PKEY_free(own[i].key);
    }
}

/* ---- keystores ---- */

static void make_versions(opal_cryptfile_keystore_t *keystore, const char *label, unsigned versions)
{
    opal_cryptfile_keystore_record_t record = {.version = 0};

    strcpy(record.label, label);
    for (unsigned i = 0; i < versions; ++i) {
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, 0 == i ? OPAL_CRYPTFILE_KEYSTORE_NEW : OPAL_CRYPTFILE_KEYSTORE_ROTATE,
                                                                  &record, NULL));
    }
}

static void export_of(opal_cryptfile_keystore_t *keystore, const char *label, char **out, size_t *bytes)
{
    opal_crypt_why_t why = {.topic = "none"};

    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_export(keystore, label, out, bytes, &why));
    UNIT_REQUIRE(0 == strcmp("none", why.topic));
}

static void imports(void)
{
    opal_cryptfile_keystore_t *here = keystore_at("here"), *there = keystore_at("there"), *unrelated = keystore_at("stranger");
    opal_cryptfile_keystore_record_t record;
    opal_crypt_why_t why;
    char *old, *newer, *bytes;
    size_t old_bytes, newer_bytes, count;
    seen_t seen;

    UNIT_GROUP("an import adds versions, and never goes back");
    make_versions(here, "lab", 2);
    export_of(here, "lab", &old, &old_bytes);
    UNIT_CHECK(2 == log_lines(fixture_path("here"), " export ", "label=lab", "granted"));
    UNIT_CHECK(OPAL_CRYPT_OK == import(there, old, old_bytes, false, &seen, &why) && 2 == seen.count);
    UNIT_CHECK(0 == strcmp("lab 2 new", seen.lines[0]) && 0 == strcmp("lab 1 new", seen.lines[1]));
    UNIT_CHECK(2 == log_lines(fixture_path("there"), " import ", "label=lab", "granted"));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_revoke(here, "lab", 1, NULL));
    make_versions(here, "other", 1);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_find(here, "lab", 0, &record, NULL));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(here, OPAL_CRYPTFILE_KEYSTORE_ROTATE, &record, NULL));
    export_of(here, "lab", &newer, &newer_bytes);
    UNIT_CHECK(OPAL_CRYPT_OK == import(there, newer, newer_bytes, true, &seen, &why) && 3 == seen.count && 2 == keys_in(there));
    UNIT_CHECK(OPAL_CRYPT_OK == import(there, newer, newer_bytes, false, &seen, &why));
    UNIT_CHECK(0 == strcmp("lab 3 new", seen.lines[0]) && 0 == strcmp("lab 2 held", seen.lines[1]) && 0 == strcmp("lab 1 revoked", seen.lines[2]));
    UNIT_CHECK(OPAL_CRYPT_OK == import(there, old, old_bytes, false, &seen, &why) && 3 == keys_in(there));
    UNIT_CHECK(0 == strcmp("lab 2 held", seen.lines[0]) && 0 == strcmp("lab 1 stays", seen.lines[1]));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_find(there, "lab", 1, &record, NULL) && record.revoked);

    UNIT_GROUP("a label of another key stays, and does not keep others out");
    make_versions(unrelated, "lab", 1);
    make_versions(unrelated, "mine", 1);
    export_of(unrelated, NULL, &bytes, &count);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == import(there, bytes, count, false, &seen, &why) && fixture_said(&why, "keystore-other-key", "lab, version 1"));
    UNIT_CHECK(0 == strcmp("lab 1 refused", seen.lines[0]) && 0 == strcmp("mine 1 new", seen.lines[1]) && 4 == keys_in(there));
    UNIT_CHECK(1 == log_lines(fixture_path("there"), " import ", "label=lab", "refused: another key has this label"));
    opal_crypt_secmem_free(bytes);
    /* Versions of a stranger that we do not have: nothing shows that they belong to ours. */
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_find(unrelated, "lab", 0, &record, NULL));
    for (unsigned i = 0; i < 3; ++i) {
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(unrelated, OPAL_CRYPTFILE_KEYSTORE_ROTATE, &record, NULL));
    }
    for (unsigned i = 1; i < 4; ++i) {
        char name[64];
        snprintf(name, sizeof(name), "stranger/lab.%u", i);
        UNIT_CHECK(0 == unlink(fixture_path(name)));
    }
    export_of(unrelated, "lab", &bytes, &count);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == import(there, bytes, count, false, &seen, &why));
    UNIT_CHECK(fixture_said(&why, "keystore-other-key", "no version of it is in both") && 0 == strcmp("lab 4 refused", seen.lines[0]) && 4 == keys_in(there));
    opal_crypt_secmem_free(bytes);

    UNIT_GROUP("deleting");
    unsigned removed;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_delete(there, "nobody", &removed, &why) && fixture_said(&why, "keystore-no-label", "nobody"));
    fixture_file("there/lab.3.99.new", "left by a killed process", 0600);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_delete(there, "lab", &removed, &why) && 3 == removed && 1 == keys_in(there));
    UNIT_CHECK(3 == log_lines(fixture_path("there"), " delete ", "label=lab", "granted") && 0 != access(fixture_path("there/lab.3.99.new"), F_OK));
    UNIT_GROUP("an old message does not bring back what was revoked");
    UNIT_CHECK(OPAL_CRYPT_OK == import(there, old, old_bytes, true, &seen, &why) && 0 == strcmp("lab 1 back", seen.lines[1]) && 1 == keys_in(there));
    for (unsigned again = 0; again < 2; ++again) {
        UNIT_CHECK(OPAL_CRYPT_OK == import(there, old, old_bytes, false, &seen, &why) && 2 == seen.count && 3 == keys_in(there));
        UNIT_CHECK(0 == strcmp("lab 2 new", seen.lines[0]) && 0 == strcmp("lab 1 back", seen.lines[1]));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_find(there, "lab", 1, &record, NULL) && record.revoked);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_find(there, "lab", 2, &record, NULL) && !record.revoked);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_delete(there, "lab", &removed, &why) && 2 == removed);
    }
    UNIT_CHECK(OPAL_CRYPT_OK == import(there, newer, newer_bytes, false, &seen, &why) && 0 == strcmp("lab 1 new", seen.lines[2]));
    opal_crypt_secmem_free(old);
    opal_crypt_secmem_free(newer);
    opal_cryptfile_keystore_close(here);
    opal_cryptfile_keystore_close(there);
    opal_cryptfile_keystore_close(unrelated);
}

static void owners(void)
{
    opal_cryptfile_keystore_record_t record = {.label = "theirs", .owner_count = 1, .owners = {(uint32_t) geteuid() + 1}};
    opal_cryptfile_keystore_t *keystore = keystore_at("owners");
    opal_crypt_why_t why = {.topic = "none"};
    char *out;
    size_t bytes;

    UNIT_GROUP("what this user does not own does not leave");
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_NEW, &record, NULL));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_export(keystore, "theirs", &out, &bytes, &why));
    UNIT_CHECK(fixture_said(&why, "keystore-refused", "not an owner") && 1 == log_lines(fixture_path("owners"), " export ", "label=theirs", "refused"));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_export(keystore, "nobody", &out, &bytes, &why));
    UNIT_CHECK(fixture_said(&why, "keystore-no-label", "nobody"));
    /* What cannot be logged is refused. */
    opal_cryptfile_keystore_close(keystore);
    with.log_file = "/dev/full";
    keystore = keystore_at("here");
    with.log_file = NULL;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_export(keystore, "lab", &out, &bytes, &why) && fixture_said(&why, "keystore-log", ""));
    opal_cryptfile_keystore_close(keystore);
}

int main(void)
{
    fixture_begin();
    passphrase.text = opal_crypt_secmem_alloc(MPICRYPT_PASSPHRASE_MAX);
    UNIT_REQUIRE(NULL != passphrase.text);
    vectors();
    refuses_changes();
    to_certificates();
    imports();
    owners();
    opal_crypt_secmem_free(passphrase.text);
    return unit_done();
}
