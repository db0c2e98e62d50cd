/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The files that say whom crypt_auth=x509 trusts: a user who may change one of them, or
 * what its name leads to, chooses the peers.
 */
#include "tests/unit/crypt_fixture.h"

#include <openssl/err.h>

#include "opal/mca/common/crypt/base/trust_file.h"

static const char *const files[] = { "ca.pem", "named.pem", "ca.crl" };
static const char *const parameters[] = { "crypt_x509_ca", "crypt_x509_cert", "crypt_x509_crl" };
static const char *const unreadable[] = { "x509-ca", "x509-cert", "x509-crl" };
enum { FILES = 3 };

/* Options that are good, but that file `which` is `path`. */
static opal_crypt_options_t with(int which, const char *path)
{
    opal_crypt_options_t options = fixture_options(OPAL_CRYPT_AUTH_X509);

    options.x509_key = fixture_path("named.key");
    options.x509_ca = 0 == which ? path : fixture_path(files[0]);
    options.x509_cert = 1 == which ? path : fixture_path(files[1]);
    options.x509_crl = 2 == which ? path : fixture_path(files[2]);
    return options;
}

static void taken(int which, const char *path)
{
    opal_crypt_options_t options = with(which, path);

    opal_crypt_local_destroy(fixture_local(&options, 0));
}

static void refused(int which, const char *path, const char *topic, const char *part)
{
    opal_crypt_options_t options = with(which, path);

    UNIT_CHECK(fixture_local_refused(&options, topic, part));
    UNIT_CHECK(fixture_local_refused(&options, topic, parameters[which]));
}

/* A copy of file `which`. */
static const char *copy(int which, const char *name, mode_t mode)
{
    char text[65536];
    int fd = open(fixture_path(files[which]), O_RDONLY);
    ssize_t bytes = read(fd, text, sizeof(text));

    UNIT_REQUIRE(bytes > 0 && bytes < (ssize_t) sizeof(text));
    close(fd);
    return fixture_file_bytes(name, text, (size_t) bytes, mode);
}

static void test_files(int which)
{
    static const mode_t good[] = { 0644, 0444, 0400, 0600, 0755 }, bad[] = { 0664, 0646, 0666, 0620 };
    const char *fifo = fixture_path("fifo");
    char text[16];

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); ++i) {
        UNIT_GROUP("%s of mode 0%o", parameters[which], (unsigned) good[i]);
        taken(which, copy(which, "mode", good[i]));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        UNIT_GROUP("%s of mode 0%o", parameters[which], (unsigned) bad[i]);
        snprintf(text, sizeof(text), "0%o", (unsigned) bad[i]);
        refused(which, copy(which, "mode", bad[i]), "trust-mode", text);
    }
    UNIT_GROUP("%s: no file, no regular file, nothing in it, too much in it", parameters[which]);
    refused(which, fixture_path("missing"), unreadable[which], "No such file");
    refused(which, fixture_path("ca.pem/ca.pem"), unreadable[which], "Not a directory");
    unlink(fifo);
    UNIT_REQUIRE(0 == mkfifo(fifo, 0600));
    refused(which, fifo, "trust-not-regular", "fifo");
    refused(which, fixture_directory, "trust-not-regular", "");
    refused(which, "/", "trust-not-regular", "");
    refused(which, fixture_file("empty", "", 0644), unreadable[which], "");
    UNIT_REQUIRE(0 == truncate(copy(which, "long", 0644), 64 * 1024 * 1024 + 1));
    refused(which, fixture_path("long"), "trust-length", "67108865");
    if (0 == geteuid()) {
        UNIT_GROUP("%s of another user", parameters[which]);
        UNIT_REQUIRE(0 == chown(copy(which, "theirs", 0644), 54321, (gid_t) -1));
        refused(which, fixture_path("theirs"), "trust-owner", "54321");
    }
}

/* Half of a list is not the list. */
static void test_damaged(int which)
{
    char text[4096] = "";
    int fd = open(fixture_path(files[which]), O_RDONLY);
    ssize_t bytes = read(fd, text, sizeof(text) / 2);
    char *begin = strstr(text, "-----BEGIN"), *end = strstr(text, "-----END");

    UNIT_GROUP("%s: the second of its parts is damaged", parameters[which]);
    UNIT_REQUIRE(bytes > 0 && bytes < (ssize_t) sizeof(text) / 2 && NULL != begin && NULL != end);
    close(fd);
    memcpy(text + bytes, begin, (size_t) (end - begin) / 2);
    refused(which, fixture_file("damaged", text, 0644), unreadable[which], "");
}

static void test_combined(void)
{
    opal_crypt_options_t options = with(1, fixture_path("both.pem"));

    UNIT_GROUP("a private key in front of its certificate, in the same file");
    options.x509_key = options.x509_cert;
    opal_crypt_local_destroy(fixture_local(&options, 0));
}

/* ---- the way to them ---- */

static void test_links(int which)
{
    const char *link = fixture_path("link"), *deep = fixture_path("deep");
    char target[600];

    UNIT_GROUP("%s: a link of ours, to a file and to a directory, and a relative name", parameters[which]);
    unlink(link);
    unlink(deep);
    UNIT_REQUIRE(0 == symlink(copy(which, "good", 0644), link));
    taken(which, link);
    UNIT_REQUIRE(0 == symlink(".//./", deep));
    taken(which, fixture_path("deep/link"));
    UNIT_REQUIRE(0 == chdir(fixture_directory));
    taken(which, "./deep/good");
    unlink(link);
    UNIT_REQUIRE(0 == symlink(copy(which, "open", 0666), link));
    refused(which, link, "trust-mode", "link");
    unlink(link);
    UNIT_REQUIRE(0 == symlink("link", link));
    refused(which, link, unreadable[which], "Too many levels of symbolic links");
    unlink(link);
    memset(target, 'x', sizeof(target) - 1);
    target[sizeof(target) - 1] = '\0';
    UNIT_REQUIRE(0 == symlink(target, link));
    refused(which, link, unreadable[which], "File name too long");
}

/* A directory of the mode, with a file and a link in it, and a directory of ours. */
static void test_directories(int which)
{
    static const struct { mode_t mode; const char *name, *topic; } cases[] = {
        { 0755, "dir/good", NULL },   { 0755, "dir/link", NULL },   { 0755, "dir/inner/../good", NULL },
        { 0775, "dir/good", "0775" }, { 0757, "dir/good", "0757" }, { 0775, "dir/inner/good", "0775" },
        { 0777, "dir/link", "0777" }, { 01777, "dir/good", "01777" }, { 01777, "dir/link", "01777" },
        { 01777, "dir/inner/good", NULL }, { 0777, "outer/good", "0777" },
    };
    const char *directory = fixture_path("dir"), *outer = fixture_path("outer");

    (void) copy(which, "good", 0644);
    if (0 != mkdir(directory, 0755)) {
        UNIT_REQUIRE(EEXIST == errno && 0 == chmod(directory, 0755));
    } else {
        UNIT_REQUIRE(0 == mkdir(fixture_path("dir/inner"), 0755) && 0 == symlink("../good", fixture_path("dir/link"))
                     && 0 == symlink("dir", outer));
    }
    (void) copy(which, "dir/good", 0644);
    (void) copy(which, "dir/inner/good", 0644);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        UNIT_GROUP("%s: %s, where dir has the mode 0%o", parameters[which], cases[i].name, (unsigned) cases[i].mode);
        UNIT_REQUIRE(0 == chmod(directory, cases[i].mode));
        if (NULL == cases[i].topic) {
            taken(which, fixture_path(cases[i].name));
        } else {
            refused(which, fixture_path(cases[i].name), "trust-directory", cases[i].topic);
        }
    }
    UNIT_REQUIRE(0 == chmod(directory, 0755));
    if (0 == geteuid()) {
        UNIT_GROUP("%s: a directory and a link of another user", parameters[which]);
        UNIT_REQUIRE(0 == chown(directory, 54321, (gid_t) -1));
        refused(which, fixture_path("dir/good"), "trust-directory", "54321");
        refused(which, fixture_path("dir/inner/good"), "trust-directory", "54321");
        UNIT_REQUIRE(0 == chown(directory, 0, (gid_t) -1) && 0 == lchown(fixture_path("dir/link"), 54321, (gid_t) -1));
        refused(which, fixture_path("dir/link"), "trust-directory", "54321");
        UNIT_REQUIRE(0 == lchown(fixture_path("dir/link"), 0, (gid_t) -1));
    } else {
        printf("  skipped: only root can make somebody else's directory\n");
    }
}

/* A regular file of root's that is on no local disk, and has more bytes than it says. */
static void test_trusted_paths(int which)
{
    static const char path[] = "/proc/version";
    opal_crypt_options_t options = with(which, path);
    opal_crypt_trust_file_t file;
    opal_crypt_why_t why;

    UNIT_GROUP("%s on no local file system", parameters[which]);
    refused(which, path, "trust-netfs", "0x9fa0");
    options.secret_on_netfs = true;
    UNIT_CHECK(fixture_local_refused(&options, "trust-length", "changed while it was read"));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_trust_file_read(path, "it", "topic", true, &file, &why)
               && NULL == file.bytes && fixture_said(&file.warning, "trust-netfs-allowed", path));
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
    for (int which = 0; which < FILES; ++which) {
        test_files(which);
        test_links(which);
        test_directories(which);
        test_trusted_paths(which);
        test_damaged(which);
    }
    test_combined();
    UNIT_CHECK(0 == ERR_peek_error());
    opal_crypt_secmem_finalize();
    return unit_done();
}
