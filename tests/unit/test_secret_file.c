/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Files that hold secrets: requirements for the psk's file, each fault with its topic.
 */
#include "tests/unit/crypt_fixture.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "opal/mca/common/crypt/base/secret_file.h"

#define DIGITS_63 "0011223344556677889 aabbccddeeff0123456789abcdef00112233445566"

static opal_crypt_options_t with_psk(const char *path)
{
    opal_crypt_options_t options = fixture_options(OPAL_CRYPT_AUTH_PSK);

    options.psk_file = path;
    return options;
}

static void refused(const char *title, const char *path, const char *topic, const char *part)
{
    opal_crypt_options_t options = with_psk(path);

    UNIT_GROUP("psk file: %s", title);
    UNIT_CHECK(fixture_local_refused(&options, topic, part));
    UNIT_CHECK(fixture_local_refused(&options, topic, path));
}

static void taken(const char *title, const char *path)
{
    opal_crypt_options_t options = with_psk(path);

    UNIT_GROUP("psk file: %s", title);
    opal_crypt_local_destroy(fixture_local(&options, 0));
}

static void test_contents(void)
{
    uint8_t binary[64];

    taken("64 digits", fixture_file("good", FIXTURE_PSK, 0600));
    taken("64 digits and a line's end", fixture_file("good", FIXTURE_PSK "\n", 0600));
    taken("capital letters", fixture_file("good", "00112233445566778899AABBCCDDEEFF0123456789ABCDEF0011223344556677",
                                          0600));
    taken("read-only", fixture_file("good", FIXTURE_PSK, 0400));
    refused("empty", fixture_file("bad", "", 0600), "secret-length", "0 bytes");
    refused("one digit short", fixture_file("bad", &FIXTURE_PSK[1], 0600), "secret-length", "63 bytes");
    refused("two too long", fixture_file("bad", FIXTURE_PSK "00", 0600), "secret-length", "66 bytes");
    refused("zeros only", fixture_file("bad", "0000000000000000000000000000000000000000000000000000000000000000\n", 0600),
            "secret-zero", "");
    refused("a 65th digit", fixture_file("bad", FIXTURE_PSK "0", 0600), "secret-not-hex", "");
    refused("a letter that is no digit", fixture_file("bad", "g" FIXTURE_PSK, 0600), "secret-not-hex", "");
    for (int c = 0; c < 256; ++c) {
        opal_crypt_options_t options;
        int digit = NULL != memchr("0123456789abcdefABCDEF", c, 22);

        memcpy(binary, FIXTURE_PSK, 64);
        binary[63] = (uint8_t) c;
        options = with_psk(fixture_file_bytes("each", binary, 64, 0600));
        if (digit) {
            opal_crypt_local_destroy(fixture_local(&options, 0));
        } else {
            /* 63 digits and a line's end are too few, not wrong. */
            UNIT_CHECK(fixture_local_refused(&options, '\n' == c ? "secret-length" : "secret-not-hex", ""));
        }
    }
}

static void test_hex(void)
{
    uint8_t *secret = NULL;
    opal_crypt_why_t warning, why;

    UNIT_GROUP("digits become bytes");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_secret_file_hex(fixture_file("hex", FIXTURE_PSK, 0600), "key",
                                                           false, &secret, &warning, &why));
    UNIT_REQUIRE(NULL != secret);
    UNIT_EQUAL_BYTES(secret, "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff"
                             "\x01\x23\x45\x67\x89\xab\xcd\xef\x00\x11\x22\x33\x44\x55\x66\x77", 32);
    UNIT_CHECK(NULL == warning.topic);
    opal_crypt_secmem_free(secret);
}

static void test_kinds(void)
{
    const char *good = fixture_file("psk", FIXTURE_PSK, 0600), *link = fixture_path("link");
    const char *fifo = fixture_path("fifo"), *missing = fixture_path("missing");
    char beneath[600], longer[5000];
    opal_crypt_options_t options;

    for (unsigned mode = 0; mode < 8; ++mode) {
        static const mode_t bits[] = { 0640, 0620, 0610, 0604, 0602, 0601, 0700, 02600 };
        char text[16];

        snprintf(text, sizeof(text), "0%o", (unsigned) bits[mode]);
        refused(text, fixture_file("mode", FIXTURE_PSK, bits[mode]), "secret-mode", text);
    }
    UNIT_REQUIRE(0 == symlink(good, link));
    refused("a symbolic link", link, "secret-symlink", "");
    UNIT_REQUIRE(0 == mkfifo(fifo, 0600));
    refused("a pipe", fifo, "secret-not-regular", "");
    refused("a directory", fixture_directory, "secret-not-regular", "");
    refused("missing", missing, "psk-missing", "");
    snprintf(beneath, sizeof(beneath), "%s/psk", good);
    refused("beneath a file", beneath, "psk-missing", "");
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    options = with_psk(longer);
    UNIT_GROUP("psk file: too long a name");
    UNIT_CHECK(fixture_local_refused(&options, "secret-open", "too long"));
    if (0 == geteuid()) {
        const char *theirs = fixture_file("theirs", FIXTURE_PSK, 0600);

        UNIT_REQUIRE(0 == chown(theirs, 54321, (gid_t) -1));
        refused("somebody else's", theirs, "secret-owner", "54321");
    } else {
        printf("  skipped: only root can make somebody else's file\n");
    }
}

/* A user who may rename the file can put another of ours in its place, such as an older one. */
static void test_directories(void)
{
    static const mode_t open_to[] = {0777, 0770, 0720, 0702}, closed[] = {0700, 0755, 01777, 01770};
    const char *place = strdup(fixture_path("place")), *through = strdup(fixture_path("through")), *psk;
    char text[16];

    UNIT_REQUIRE(NULL != place && NULL != through && 0 == mkdir(place, 0700) && 0 == symlink(place, through));
    psk = fixture_file("place/psk", FIXTURE_PSK, 0600);
    for (size_t i = 0; i < sizeof(open_to) / sizeof(open_to[0]); ++i) {
        UNIT_REQUIRE(0 == chmod(place, open_to[i]));
        snprintf(text, sizeof(text), "0%o", (unsigned) open_to[i]);
        refused("in a directory that others may write to", psk, "secret-directory", text);
        refused("the same, through a link", fixture_path("through/psk"), "secret-directory", text);
    }
    for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); ++i) {
        UNIT_REQUIRE(0 == chmod(place, closed[i]));
        taken("in one where others cannot rename it", psk);
    }
    if (0 == geteuid()) {
        UNIT_REQUIRE(0 == chown(place, 54321, (gid_t) -1) && 0 == chmod(place, 01755));
        refused("in somebody else's directory", psk, "secret-directory", "54321");
        UNIT_REQUIRE(0 == chown(place, 0, (gid_t) -1));
    } else {
        printf("  skipped: only root can make somebody else's directory\n");
    }
}

/* A file of the kernel's own: ours, mode 0400, regular, on no local disk. */
static void test_paths(void)
{
    static const char path[] = "/proc/self/environ";
    opal_crypt_options_t options = with_psk(path);
    opal_crypt_secret_file_t file;
    opal_crypt_why_t why;
    const char *name;

    refused("on an unknown file system", path, "secret-netfs", "0x9fa0");
    UNIT_GROUP("crypt_secret_on_netfs goes on, with a warning");
    options.secret_on_netfs = true;
    UNIT_CHECK(fixture_local_refused(&options, "secret-length", path));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG
               == opal_crypt_secret_file_read(path, "key", 0, 0, true, &file, &why));
    UNIT_CHECK(fixture_said(&file.warning, "secret-netfs-allowed", path));

    UNIT_GROUP("a file with more bytes than it said is refused");
    UNIT_CHECK(fixture_said(&why, "secret-length", "changed while it was read") && NULL == file.bytes);

    UNIT_GROUP("kinds of file systems");
    UNIT_CHECK(OPAL_CRYPT_FS_LOCAL == opal_crypt_fs_kind(0xef53, &name) && 0 == strcmp("ext4", name));
    UNIT_CHECK(OPAL_CRYPT_FS_LOCAL == opal_crypt_fs_kind(0x01021994, &name));
    UNIT_CHECK(OPAL_CRYPT_FS_NETWORK == opal_crypt_fs_kind(0x6969, &name) && 0 == strcmp("nfs", name));
    UNIT_CHECK(OPAL_CRYPT_FS_NETWORK == opal_crypt_fs_kind(0xffffffffff534d42, &name));
    UNIT_CHECK(OPAL_CRYPT_FS_UNKNOWN == opal_crypt_fs_kind(0x65735546, &name));
    UNIT_CHECK(OPAL_CRYPT_FS_UNKNOWN == opal_crypt_fs_kind(0x12345678, &name));
}

static void test_default(void)
{
    opal_crypt_options_t options = with_psk(NULL);

    UNIT_GROUP("the default file is ~/.ompi-crypt/psk; auto takes it, and says how to make it");
    UNIT_CHECK(fixture_local_refused(&options, "psk-missing", "/.ompi-crypt/psk"));
    UNIT_REQUIRE(0 == mkdir(fixture_path(".ompi-crypt"), 0700));
    options.auth = OPAL_CRYPT_AUTH_AUTO;
    options.munge_socket = fixture_path("no-socket");
    UNIT_CHECK(fixture_local_refused(&options, "no-method", fixture_path(".ompi-crypt/psk")));
    fixture_file(".ompi-crypt/psk", FIXTURE_PSK, 0600);
    opal_crypt_local_destroy(fixture_local(&options, 0));
    chmod(fixture_path(".ompi-crypt/psk"), 0644);
    UNIT_CHECK(fixture_local_refused(&options, "secret-mode", "0644"));

    UNIT_GROUP("no home, or one with a long name");
    unsetenv("HOME");
    setenv("HOME", "relative", 1);
    {
        char path[8];
        opal_crypt_why_t why;

        UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_home_path("psk", path, sizeof(path), &why));
        UNIT_CHECK(fixture_said(&why, "no-home", ""));
    }
}

/* A kernel without MADV_DONTDUMP: the core's calls come here. */
static int without_dontdump;

int madvise(void *block, size_t bytes, int advice)
{
    if (without_dontdump && MADV_DONTDUMP == advice) {
        errno = EINVAL;
        return -1;
    }
    return (int) syscall(SYS_madvise, block, bytes, advice);
}

static void test_memory(void)
{
    const char *path = fixture_file("psk", FIXTURE_PSK, 0600);
    void *block, *taken_blocks = NULL;

    UNIT_GROUP("no memory that is left out of core files: refused, although there is other memory");
    without_dontdump = 1;
    /* Memory that was mapped before must not suffice. */
    for (size_t bytes = 64; bytes <= 128; bytes *= 2) {
        while (NULL != (block = opal_crypt_secmem_alloc(bytes))) {
            memcpy(block, &taken_blocks, sizeof(taken_blocks));
            taken_blocks = block;
        }
    }
    {
        opal_crypt_secret_file_t file;
        opal_crypt_why_t why;

        UNIT_CHECK(OPAL_CRYPT_ERR_MEMORY == opal_crypt_secret_file_read(path, "key", 64, 65, false, &file, &why));
        UNIT_CHECK(fixture_said(&why, "no-secret-memory", path));
    }
    without_dontdump = 0;
    while (NULL != taken_blocks) {
        block = taken_blocks;
        memcpy(&taken_blocks, block, sizeof(taken_blocks));
        opal_crypt_secmem_free(block);
    }
    taken("there is memory again", path);
}

int main(void)
{
    fixture_begin();
    test_memory();
    test_hex();
    test_contents();
    test_kinds();
    test_directories();
    test_paths();
    test_default();
    opal_crypt_secmem_finalize();
    return unit_done();
}
