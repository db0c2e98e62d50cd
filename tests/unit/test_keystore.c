/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The keystore with its backend `file`.
 */
#include "keystore_cases.h"

#include "opal/mca/common/cryptfile/keystore/keystore_object.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

static void make_labels(opal_cryptfile_keystore_t *keystore)
{
    opal_cryptfile_keystore_record_t record = {.label = "lab"}, other = {.label = "other"};
    opal_crypt_why_t why;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, false, &record, &why));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, false, &other, &why));
}

/* Every byte of a key file flipped: the key is refused, or the byte was in the
 * case of a hexadecimal digit (there is none: they are lower case only). */
static void case_flips(opal_cryptfile_keystore_t *keystore, const char *directory)
{
    char path[512], text[4096];
    opal_cryptfile_keystore_record_t record;
    opal_crypt_why_t why;
    unsigned accepted = 0;

    UNIT_GROUP("every byte of a key file flipped, and its mode and kind");
    snprintf(path, sizeof(path), "%s/lab.1", directory);
    int fd = open(path, O_RDWR);
    UNIT_REQUIRE(fd >= 0);
    ssize_t bytes = read(fd, text, sizeof(text));
    UNIT_REQUIRE(bytes > 100);
    for (ssize_t at = 0; at < bytes; ++at) {
        char flipped = text[at] ^ 1;
        UNIT_REQUIRE(1 == pwrite(fd, &flipped, 1, at));
        accepted += OPAL_CRYPT_OK == opal_cryptfile_keystore_find(keystore, "lab", 1, &record, &why);
        UNIT_REQUIRE(1 == pwrite(fd, &text[at], 1, at));
    }
    UNIT_CHECK(0 == accepted);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_find(keystore, "lab", 1, &record, &why));
    UNIT_CHECK(0 == fchmod(fd, 0640));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_find(keystore, "lab", 1, &record, &why));
    UNIT_CHECK(0 == strcmp("secret-mode", why.topic));
    UNIT_CHECK(0 == fchmod(fd, 0600));
    close(fd);
    UNIT_CHECK(0 == shell("cd %s && cp -p lab.1 lab.2 && mv lab.1 moved && ln -s moved lab.1", directory));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_find(keystore, "lab", 1, &record, &why));
    UNIT_CHECK(0 == strcmp("secret-symlink", why.topic));
    UNIT_CHECK(0 == shell("cd %s && rm lab.1 && mv moved lab.1", directory));
    /* version 1's file under the name of version 2: never taken for the newest */
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_find(keystore, "lab", 0, &record, &why));
    UNIT_CHECK(0 == shell("rm %s/lab.2", directory));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_find(keystore, "lab", 0, &record, &why) && 1 == record.version);
}

/* An attacker who serves the storage puts his own key there, or the user protects old ones.  Ends
 * with the keystore closed. */
static void case_plain(opal_cryptfile_keystore_t *keystore, opal_cryptfile_keystore_options_t *options,
                       const char *key_file)
{
    opal_cryptfile_keystore_record_t record = {.label = "clear"};
    opal_cryptfile_wrapped_t wrapped, before;
    opal_cryptfile_grant_t grant;
    opal_crypt_why_t why;
    uint8_t out[32];
    unsigned count = 7;

    UNIT_GROUP("with a machine key, a key in the clear is refused until it is protected");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_NEW, &record, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_ROTATE, &record, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(keystore, "clear", case_uuid, case_key, &before, &why));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_protect(keystore, "clear", &count, &why) && 0 == count);
    options->machine_key_file = key_file;
    keystore = reopen(keystore, options, NOW);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_wrap(keystore, "clear", case_uuid, case_key, &wrapped, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-plain"));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == unwrap(keystore, "clear", &before, out, &grant, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-plain"));
    /* Left by a process that was killed while writing it. */
    UNIT_CHECK(0 == shell("cp %s/clear.1 %s/clear.1.4711.new", options->directory, options->directory));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_protect(keystore, "clear", &count, &why) && 2 == count);
    UNIT_CHECK(0 == shell("! grep -q '^key plain' %s/clear.*", options->directory));
    UNIT_CHECK(OPAL_CRYPT_OK == unwrap(keystore, "clear", &before, out, &grant, &why));
    UNIT_EQUAL_BYTES(out, case_key, 32);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_protect(keystore, "clear", &count, &why) && 0 == count);
    opal_cryptfile_keystore_close(keystore);
    options->machine_key_file = NULL;
}

static void case_directory(opal_cryptfile_keystore_options_t options)
{
    static const struct {
        unsigned mode;
        bool good;
    } modes[] = {{0700, true}, {0755, true}, {01777, true}, {0777, false}, {0770, false}, {0702, false}};
    char directory[128];
    opal_cryptfile_keystore_t *keystore = NULL;
    opal_crypt_why_t why;

    UNIT_GROUP("a directory that others can write to");
    snprintf(directory, sizeof(directory), "%s/open", options.directory);
    UNIT_CHECK(0 == mkdir(directory, 0700));
    options.directory = directory;
    for (unsigned i = 0; i < sizeof(modes) / sizeof(*modes); ++i) {
        UNIT_CHECK(0 == chmod(directory, modes[i].mode));
        int rc = opal_cryptfile_keystore_open(&options, &keystore, &why);
        UNIT_CHECK(modes[i].good ? OPAL_CRYPT_OK == rc : OPAL_CRYPT_ERR_CONFIG == rc && 0 == strcmp(why.topic, "keystore-directory"));
        if (OPAL_CRYPT_OK == rc) {
            opal_cryptfile_keystore_close(keystore);
        }
    }
    UNIT_GROUP("~/.ompi-crypt, too, where the default is used");
    UNIT_CHECK(0 == shell("mkdir -m 755 %s/home && mkdir -m 777 %s/home/.ompi-crypt && mkdir -m 700 %s/home/.ompi-crypt/keys",
                          directory, directory, directory));
    snprintf(directory + strlen(directory), 16, "/home");
    setenv("HOME", directory, 1);
    options.directory = NULL;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_open(&options, &keystore, &why) && 0 == strcmp(why.topic, "keystore-directory"));
    UNIT_CHECK(0 == shell("chmod 700 %s/.ompi-crypt", directory));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_open(&options, &keystore, &why));
    opal_cryptfile_keystore_close(keystore);
}

static opal_cryptfile_keystore_t *case_rotate(opal_cryptfile_keystore_t *keystore, opal_cryptfile_keystore_options_t *options)
{
    const unsigned keep = OPAL_CRYPTFILE_KEYSTORE_ROTATE | OPAL_CRYPTFILE_KEYSTORE_KEEP_OWNERS | OPAL_CRYPTFILE_KEYSTORE_KEEP_NOT_AFTER;
    opal_cryptfile_keystore_record_t record = {.label = "keeps", .not_after = NOW + 5, .owner_count = 2,
                                                  .owners = {geteuid(), geteuid() + 1}};
    opal_crypt_why_t why;

    UNIT_GROUP("a rotation keeps owners and the last day, unless others are given");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_NEW, &record, &why));
    record = (opal_cryptfile_keystore_record_t) {.label = "keeps"};
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, keep, &record, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_find(keystore, "keeps", 2, &record, &why));
    UNIT_CHECK(NOW + 5 == record.not_after && 2 == record.owner_count && geteuid() + 1 == record.owners[1]);
    record = (opal_cryptfile_keystore_record_t) {.label = "keeps", .not_after = NOW};
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_ROTATE, &record, &why));
    UNIT_CHECK(0 == record.owner_count && NOW == record.not_after);
    keystore = reopen(keystore, options, NOW + 1);
    record = (opal_cryptfile_keystore_record_t) {.label = "keeps"};
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_new(keystore, keep, &record, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-expired") && NULL != strstr(why.detail, "keeps, version 3 (key "));

    UNIT_GROUP("a last day that has passed is no last day of a new key");
    record = (opal_cryptfile_keystore_record_t) {.label = "past", .not_after = NOW};
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_NEW, &record, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-not-after") && OPAL_CRYPT_OK != opal_cryptfile_keystore_find(keystore, "past", 0, &record, NULL));
    record = (opal_cryptfile_keystore_record_t) {.label = "keeps", .not_after = NOW};
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_ROTATE, &record, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-not-after"));
    return reopen(keystore, options, NOW);
}

/* A label that was removed and made anew: version 1 again, and another key. */
static void case_anew(opal_cryptfile_keystore_t *keystore, const char *directory)
{
    opal_cryptfile_keystore_record_t record = {.label = "again"}, second = {.label = "again"};
    char first_key[OPAL_CRYPTFILE_KEY_TEXT_BYTES], second_key[OPAL_CRYPTFILE_KEY_TEXT_BYTES], expected[256];
    opal_cryptfile_wrapped_t wrapped, damaged;
    opal_cryptfile_grant_t grant;
    opal_crypt_why_t why;
    uint8_t out[32];

    UNIT_GROUP("messages name the key of the file and that of the keystore");
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_NEW, &record, &why));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(keystore, "again", case_uuid, case_key, &wrapped, &why));
    opal_cryptfile_key_text(record.fingerprint, record.created, first_key);
    UNIT_CHECK(4 + 16 + 14 == strlen(first_key) && 0 == strcmp(first_key + 20, " of 2027-01-15"));
    damaged = wrapped;
    damaged.blob[OPAL_CRYPTFILE_BLOB_WRAPPED_AT] ^= 1;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == unwrap(keystore, "again", &damaged, out, &grant, &why));
    snprintf(expected, sizeof(expected), "again, version 1 (%s)", first_key);
    UNIT_CHECK(0 == strcmp("keystore-unwrap", why.topic) && 0 == strcmp(expected, why.detail));
    UNIT_CHECK(0 == shell("mv %s/again.1 %s/kept", directory, directory));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == unwrap(keystore, "again", &wrapped, out, &grant, &why));
    snprintf(expected, sizeof(expected), "again, version 1 (%s), keystore file %s", first_key, directory);
    UNIT_CHECK(0 == strcmp("keystore-no-label", why.topic) && 0 == strcmp(expected, why.detail));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_NEW, &second, &why));
    opal_cryptfile_key_text(second.fingerprint, second.created, second_key);
    UNIT_CHECK(0 != strcmp(first_key, second_key));
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == unwrap(keystore, "again", &wrapped, out, &grant, &why));
    snprintf(expected, sizeof(expected), "again, version 1 (the file has %s, the keystore %s)", first_key, second_key);
    UNIT_CHECK(0 == strcmp("keystore-unwrap", why.topic) && 0 == strcmp(expected, why.detail));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_revoke(keystore, "again", 1, &why));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == unwrap(keystore, "again", &wrapped, out, &grant, &why));
    snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), ": the key is revoked");
    UNIT_CHECK(0 == strcmp("keystore-refused", why.topic) && 0 == strcmp(expected, why.detail));
    UNIT_CHECK(0 == shell("mv %s/kept %s/again.1", directory, directory));
    UNIT_CHECK(OPAL_CRYPT_OK == unwrap(keystore, "again", &wrapped, out, &grant, &why));
    UNIT_EQUAL_BYTES(out, case_key, 32);
    opal_cryptfile_key_text(record.fingerprint, INT64_MAX, first_key);
    UNIT_CHECK(0 == strcmp(first_key + 20, " of ?"));
}

static void case_machine_key(opal_cryptfile_keystore_options_t options)
{
    char directory[128], key_file[160];
    opal_cryptfile_keystore_t *keystore = NULL;
    opal_cryptfile_keystore_record_t record;
    opal_crypt_why_t why;

    UNIT_GROUP("keys wrapped under a machine key");
    snprintf(directory, sizeof(directory), "%s/shared", options.directory);
    snprintf(key_file, sizeof(key_file), "%s/machine", options.directory);
    UNIT_CHECK(0 == mkdir(directory, 0700));
    UNIT_CHECK(0 == shell("umask 077; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > %s; echo >> %s", key_file, key_file));
    options.directory = directory;
    options.machine_key_file = key_file;
    keystore = reopen(NULL, &options, NOW);
    make_labels(keystore);
    UNIT_CHECK(0 == shell("grep -q '^key wrapped [0-9a-f]\\{80\\}$' %s/lab.1", directory));
    case_wrap(keystore, directory, 1);
    options.machine_key_file = NULL;
    keystore = reopen(keystore, &options, NOW);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_find(keystore, "lab", 1, &record, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-machine-key"));
    case_plain(keystore, &options, key_file);
    keystore = NULL;
    UNIT_CHECK(0 == shell("umask 077; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > %s", key_file));
    options.machine_key_file = key_file;
    keystore = reopen(keystore, &options, NOW);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_find(keystore, "lab", 1, &record, &why));
    opal_cryptfile_keystore_close(keystore);
}

#define NOT_LOGGED(call) UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == (call) && 0 == strcmp(why.topic, "keystore-log"))

/* The log is /dev/full.  Ends with the keystore closed. */
static void case_unlogged(opal_cryptfile_keystore_t *keystore, opal_cryptfile_keystore_options_t *options)
{
    opal_cryptfile_keystore_record_t record = {.label = "late"}, lab = {.label = "lab"};
    opal_crypt_why_t why = {.topic = ""};
    char public_pem[160], machine[160];
    unsigned count;

    UNIT_GROUP("a change of a key that cannot be logged is not made");
    snprintf(public_pem, sizeof(public_pem), "%s/ec.pub", options->directory);
    snprintf(machine, sizeof(machine), "%s/machine", options->directory);
    UNIT_CHECK(0 == shell("cd %s && cksum *.[0-9]* > before", options->directory));
    NOT_LOGGED(opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_NEW, &record, &why));
    NOT_LOGGED(opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_ROTATE, &lab, &why));
    NOT_LOGGED(opal_cryptfile_keystore_revoke(keystore, "lab", 1, &why));
    NOT_LOGGED(opal_cryptfile_keystore_revoke(keystore, "lab", 0, &why));
    NOT_LOGGED(opal_cryptfile_keystore_escrow(keystore, "lab", public_pem, &why));
    options->machine_key_file = machine;
    keystore = reopen(keystore, options, NOW);
    NOT_LOGGED(opal_cryptfile_keystore_protect(keystore, "lab", &count, &why));
    options->machine_key_file = NULL;
    opal_cryptfile_keystore_close(keystore);
    UNIT_CHECK(0 == shell("cd %s && cksum *.[0-9]* | cmp - before", options->directory));
}

/* What was logged, and then could not be done. */
static void case_unfinished(opal_cryptfile_keystore_options_t options)
{
    opal_cryptfile_keystore_record_t record = {.label = "late"};
    struct rlimit limit, small;
    opal_crypt_why_t why = {.topic = ""};

    UNIT_GROUP("a change that fails after it was logged has a line that says so");
    options.log_file = NULL;
    opal_cryptfile_keystore_t *keystore = reopen(NULL, &options, NOW);
    UNIT_CHECK(0 == shell("mkdir %s/lab.1.%ld.new %s/late.1.%ld.new", options.directory, (long) getpid(), options.directory, (long) getpid()));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_revoke(keystore, "lab", 1, &why) && 0 == strcmp(why.topic, "keystore-file"));
    UNIT_CHECK(1 == log_lines(options.directory, " revoke ", "label=lab version=1 ", "refused: the keystore could not be changed"));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_NEW, &record, &why));
    UNIT_CHECK(1 == log_lines(options.directory, " new ", "label=late version=1 ", "refused: the keystore could not be changed"));
    UNIT_CHECK(0 == shell("rmdir %s/*.new", options.directory));

    UNIT_GROUP("what a short write means is said");
    options.log_file = "/dev/null";
    keystore = reopen(keystore, &options, NOW);
    UNIT_REQUIRE(0 == getrlimit(RLIMIT_FSIZE, &limit));
    small = limit;
    small.rlim_cur = 100;
    UNIT_REQUIRE(0 == setrlimit(RLIMIT_FSIZE, &small));
    int rc = opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_NEW, &record, &why);
    UNIT_REQUIRE(0 == setrlimit(RLIMIT_FSIZE, &limit));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == rc && NULL != strstr(why.detail, strerror(ENOSPC)));
    opal_cryptfile_keystore_close(keystore);
}

static void case_log(opal_cryptfile_keystore_options_t options)
{
    opal_cryptfile_keystore_t *keystore = NULL;
    opal_cryptfile_wrapped_t wrapped;
    opal_crypt_why_t why;

    UNIT_GROUP("what cannot be logged is refused");
    options.log_file = "/dev/full";
    keystore = reopen(NULL, &options, NOW);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_wrap(keystore, "lab", case_uuid, case_key, &wrapped, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-log") && 0 == wrapped.bytes);
    case_unlogged(keystore, &options);
    case_unfinished(options);
    options.log_file = "/";
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_open(&options, &keystore, &why));
    options.log_file = NULL;
    options.directory = "/tmp/ompi-crypt-test-no-such-directory";
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_open(&options, &keystore, &why));
    UNIT_CHECK(0 == strcmp(why.topic, "keystore-missing"));
}

static void case_record(void)
{
    static opal_cryptfile_keystore_record_t record = {.label = "x", .version = 65535, .bits = 256, .created = 1, .not_after = INT64_MAX, .changes = UINT32_MAX,
                                                  .revoked = true, .owner_count = 16, .escrow_bytes = OPAL_CRYPTFILE_SPKI_MAX}, read;
    char text[OPAL_CRYPTFILE_RECORD_TEXT_MAX];
    size_t used;
    unsigned accepted = 0;

    UNIT_GROUP("records as text: the largest one, and every length");
    for (unsigned i = 0; i < 16; ++i) {
        record.owners[i] = UINT32_MAX - i;
    }
    memset(record.escrow, 0xab, sizeof(record.escrow));
    int bytes = opal_cryptfile_keystore_record_write(&record, text, sizeof(text));
    UNIT_REQUIRE(bytes > 0);
    memset(&read, 0, sizeof(read));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_record_parse(text, (size_t) bytes, &used, &read) && used == (size_t) bytes);
    UNIT_CHECK(0 == memcmp(&record, &read, sizeof(read)));
    const opal_cryptfile_keystore_record_t good = {.label = "x", .version = 1, .bits = 256, .created = 1};
    opal_cryptfile_keystore_record_t bad[7];
    for (int i = 0; i < 7; ++i) {
        bad[i] = good;
    }
    bad[0].not_after = -1;
    bad[1].created = -1;
    bad[2].version = 0;
    bad[3].bits = 255;
    strcpy(bad[4].label, "a\nb");
    bad[5].owner_count = OPAL_CRYPTFILE_KEYSTORE_OWNERS + 1;
    bad[6].escrow_bytes = OPAL_CRYPTFILE_SPKI_MAX + 1;
    char written[OPAL_CRYPTFILE_RECORD_TEXT_MAX];
    UNIT_CHECK(opal_cryptfile_keystore_record_write(&good, written, sizeof(written)) > 0);
    for (int i = 0; i < 7; ++i) {
        UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_record_write(&bad[i], written, sizeof(written)));
    }
    for (int count = 0; count < bytes; ++count) {
        char *exact = malloc((size_t) count + 1);
        memcpy(exact, text, (size_t) count);
        accepted += OPAL_CRYPT_OK == opal_cryptfile_keystore_record_parse(exact, (size_t) count, &used, &read);
        free(exact);
    }
    UNIT_CHECK(0 == accepted);
    char *label = strstr(text, "label x");
    UNIT_REQUIRE(NULL != label);
    memmove(label + 8, label + 7, (size_t) bytes - (size_t) (label + 7 - text));
    label[7] = '\0';           /* "x" and a zero byte */
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_keystore_record_parse(text, (size_t) bytes + 1, &used, &read));
}

static void case_revoke(opal_cryptfile_keystore_t *keystore, const char *directory)
{
    opal_cryptfile_keystore_record_t record;
    opal_crypt_why_t why;

    UNIT_GROUP("all versions are revoked, also where the first is gone");
    for (int i = 0; i < 3; ++i) {
        record = (opal_cryptfile_keystore_record_t) {.label = "gone"};
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, i > 0, &record, &why));
    }
    UNIT_CHECK(0 == shell("rm %s/gone.1", directory));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_revoke(keystore, "gone", 0, &why));
    for (uint16_t version = 2; version <= 3; ++version) {
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_find(keystore, "gone", version, &record, &why) && record.revoked);
    }
    UNIT_CHECK(OPAL_CRYPT_OK != opal_cryptfile_keystore_revoke(keystore, "gone", 1, &why));

    UNIT_GROUP("all that can be read are revoked, whichever cannot, and that is said");
    for (int bad = 1; bad <= 3; ++bad) {
        char name[2][8];

        snprintf(name[0], sizeof(name[0]), "bad%d", bad);
        snprintf(name[1], sizeof(name[1]), "bad%d.%d", bad, bad);
        for (int i = 0; i < 3; ++i) {
            record = (opal_cryptfile_keystore_record_t) {.owner_count = 0};
            strcpy(record.label, name[0]);
            UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, i > 0, &record, &why));
        }
        UNIT_CHECK(0 == shell("echo 'key plain 00' > %s/%s", directory, name[1]));
        UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_revoke(keystore, name[0], 0, &why));
        UNIT_CHECK(NULL != strstr(why.detail, name[1]));
        for (uint16_t version = 1; version <= 3; ++version) {
            UNIT_CHECK(version == bad || (OPAL_CRYPT_OK == opal_cryptfile_keystore_find(keystore, name[0], version, &record, &why)
                                          && record.revoked));
        }
    }
}

/* A user who can change the file of a recovery key, or what its name leads to, could read the files. */
static void case_recovery_file(opal_cryptfile_keystore_t *keystore, const char *directory)
{
    static const struct {
        const char *what, *make, *topic;
        bool root;
    } cases[] = {
        {"a copy of mode 0644", "cp ec.pub it", NULL, false},
        {"a link of ours", "ln -s ec.pub it", NULL, false},
        {"that others can write to", "cp ec.pub it; chmod 0666 it", "trust-mode", false},
        {"a link to one that others can write to", "cp ec.pub open; chmod 0662 open; ln -s open it", "trust-mode", false},
        {"a FIFO", "mkfifo it", "trust-not-regular", false},
        {"a directory", "mkdir it", "trust-not-regular", false},
        {"in a directory that others can write to", "mkdir -m 0777 shared; cp ec.pub shared/it; ln -s shared/it it", "trust-directory", false},
        {"of another user", "cp ec.pub it; chown 4711 it", "trust-owner", true},
        {"a link of another user", "ln -s ec.pub it; chown -h 4711 it", "trust-directory", true},
        {"too long", "truncate -s 65M it", "trust-length", false},
        {"no key", "echo no key > it", "keystore-recovery-key", false},
        {"missing", "true", "keystore-recovery-key", false},
    };
    opal_cryptfile_keystore_record_t record;
    opal_crypt_why_t why;
    char path[512];

    snprintf(path, sizeof(path), "%s/it", directory);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        UNIT_GROUP("a recovery key whose file is %s", cases[i].what);
        if (cases[i].root && 0 != geteuid()) {
            printf("  skipped: only root can make somebody else's file\n");
            continue;
        }
        UNIT_REQUIRE(0 == shell("cd %s && umask 022 && %s", directory, cases[i].make));
        int rc = opal_cryptfile_escrow_key(keystore, path, record.escrow, &record.escrow_bytes, &why);
        UNIT_CHECK(NULL == cases[i].topic ? OPAL_CRYPT_OK == rc : OPAL_CRYPT_ERR_CONFIG == rc && 0 == strcmp(why.topic, cases[i].topic));
        UNIT_CHECK(NULL == cases[i].topic || NULL != strstr(why.detail, path));
        UNIT_REQUIRE(0 == shell("cd %s && rm -rf it open shared", directory));
    }
}

static char bad_detail[sizeof(((opal_crypt_why_t *) NULL)->detail)];

static void keep_bad(const opal_crypt_why_t *why, void *arg)
{
    (void) arg;
    snprintf(bad_detail, sizeof(bad_detail), "%s", why->detail);
}

int main(void)
{
    char *directory = scratch();
    opal_cryptfile_keystore_options_t options = {.backend = OPAL_CRYPTFILE_KEYSTORE_FILE, .directory = directory, .secret_on_netfs = true, .now = NOW};
    opal_cryptfile_keystore_t *keystore = reopen(NULL, &options, NOW);
    opal_crypt_why_t why;
    unsigned count = 0;

    make_recovery_keys(directory);
    case_record();
    make_labels(keystore);
    case_wrap(keystore, directory, 1);
    keystore = case_policy(keystore, directory, &options);
    case_escrow(keystore, directory);
    case_recovery_file(keystore, directory);
    case_flips(keystore, directory);
    UNIT_GROUP("the list of keys; nothing in the directory is readable to others");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_list(keystore, count_record, NULL, &count, &why) && 9 == count);
    unsigned good_ones = 0;
    UNIT_CHECK(0 == shell("cp -p %s/lab.1 %s/lab.7", directory, directory));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_list(keystore, count_record, NULL, &good_ones, &why));
    good_ones = 0;
    bad_detail[0] = '\0';
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_list(keystore, count_record, keep_bad, &good_ones, &why) && 9 == good_ones);
    UNIT_CHECK(NULL != strstr(bad_detail, "/lab.7:"));
    UNIT_CHECK(0 == shell("rm %s/lab.7", directory));
    UNIT_CHECK(0 == shell("test -z \"$(find %s -type f -perm /077 ! -name '*.p*')\"", directory));
    UNIT_CHECK(0 == shell("test -z \"$(find %s -name '*.new')\"", directory));
    case_revoke(keystore, directory);
    keystore = case_rotate(keystore, &options);
    case_anew(keystore, directory);
    opal_cryptfile_keystore_close(keystore);
    case_machine_key(options);
    case_directory(options);
    case_log(options);
    shell("rm -rf %s", directory);
    opal_crypt_secmem_finalize();
    return unit_done();
}
