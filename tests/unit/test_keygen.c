/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Making a pre-shared key: the file's form and mode, and what it never overwrites.
 */
#include "tests/unit/crypt_fixture.h"

#include "ompi/tools/mpicrypt/key/keygen_make.c"
#include "opal/mca/common/crypt/base/secret_file.h"

static int refused(const char *path, int flags, const char *topic, const char *part)
{
    opal_crypt_why_t why = { .topic = NULL };

    return OPAL_CRYPT_ERR_CONFIG == mpicrypt_psk_make(path, flags, &why) && fixture_said(&why, topic, part);
}

static void read_key(const char *path, uint8_t key[32])
{
    opal_crypt_why_t why = { .topic = "none" };
    uint8_t *secret = NULL;

    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_secret_file_hex(path, "key", false, &secret, NULL, &why));
    UNIT_REQUIRE(NULL != secret);
    memcpy(key, secret, 32);
    opal_crypt_secmem_free(secret);
}

static int files_in_directory(const char *name)
{
    char command[600], text[16] = "";
    FILE *out;

    snprintf(command, sizeof(command), "ls -A '%s' | wc -l", fixture_path(name));
    UNIT_REQUIRE(NULL != (out = popen(command, "r")) && NULL != fgets(text, sizeof(text), out));
    pclose(out);
    return atoi(text);
}

int main(void)
{
    uint8_t first[32], second[32];
    struct stat status;
    const char *path, *link;

    fixture_begin();
    path = fixture_path("made/psk");
    UNIT_GROUP("a new key: 0600 in a directory of mode 0700, whatever the umask");
    umask(0777 & ~0700);
    UNIT_CHECK(OPAL_CRYPT_OK == mpicrypt_psk_make(path, 0, NULL));
    UNIT_CHECK(0 == stat(path, &status) && 0100600 == status.st_mode && 65 == status.st_size && 1 == status.st_nlink);
    UNIT_CHECK(0 == stat(fixture_path("made"), &status) && 040700 == status.st_mode);
    umask(0);
    UNIT_CHECK(OPAL_CRYPT_OK == mpicrypt_psk_make(fixture_path("open/psk"), 0, NULL));
    UNIT_CHECK(0 == stat(fixture_path("open/psk"), &status) && 0100600 == status.st_mode);
    UNIT_CHECK(0 == stat(fixture_path("open"), &status) && 040700 == status.st_mode);
    umask(022);
    read_key(path, first);
    read_key(fixture_path("open/psk"), second);
    UNIT_CHECK(0 != memcmp(first, second, 32));

    UNIT_GROUP("a key that exists stays, without force");
    UNIT_CHECK(refused(path, 0, "keygen-exists", "made/psk"));
    read_key(path, second);
    UNIT_EQUAL_BYTES(first, second, 32);
    UNIT_CHECK(OPAL_CRYPT_OK == mpicrypt_psk_make(path, MPICRYPT_KEYGEN_FORCE, NULL));
    read_key(path, second);
    UNIT_CHECK(0 != memcmp(first, second, 32));
    UNIT_CHECK(1 == files_in_directory("made"));

    UNIT_GROUP("links are not followed, in either way");
    link = fixture_path("made/link");
    UNIT_REQUIRE(0 == symlink(fixture_path("made/nowhere"), link));
    UNIT_CHECK(refused(link, 0, "keygen-exists", "made/link"));
    UNIT_CHECK(0 != lstat(fixture_path("made/nowhere"), &status));
    UNIT_CHECK(OPAL_CRYPT_OK == mpicrypt_psk_make(link, MPICRYPT_KEYGEN_FORCE, NULL));
    UNIT_CHECK(0 == lstat(link, &status) && S_ISREG(status.st_mode) && 0600 == (status.st_mode & 07777));
    UNIT_CHECK(0 != lstat(fixture_path("made/nowhere"), &status));

    UNIT_GROUP("directories that cannot be made, names that are none");
    UNIT_CHECK(refused(fixture_path("a/b/psk"), 0, "keygen-directory", "a/b"));
    UNIT_CHECK(refused(fixture_path("made/psk/psk"), 0, "keygen-write", ""));
    UNIT_CHECK(refused("", 0, "keygen-write", ""));
    UNIT_CHECK(refused("/proc/psk", 0, "keygen-write", "/proc"));
    UNIT_CHECK(refused(fixture_path("made"), MPICRYPT_KEYGEN_FORCE, "keygen-write", ""));
    UNIT_CHECK(2 == files_in_directory("made"));
    opal_crypt_secmem_finalize();
    return unit_done();
}
