/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A keystore that a group shares, as its owner, a member and a stranger see it.  Each is a child of its own, as this
 * process never uses a key.
 */
#include "keystore_cases.h"

#include "opal/mca/common/cryptfile/keystore/keystore_object.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/wait.h>
#include <sys/xattr.h>

enum { OWNER = 4712, MEMBER = 4713, OUTSIDER = 4714, GROUP = 4715 };

static char directory[256], home[256], key_path[300], blob_path[300];
static opal_cryptfile_keystore_options_t options = {.backend = OPAL_CRYPTFILE_KEYSTORE_FILE, .secret_on_netfs = true, .now = NOW};
static opal_crypt_why_t why;

static void as(uid_t user, bool member, void (*act)(void))
{
    static const gid_t groups[] = {GROUP};
    int status = 1;

    (void) fflush(NULL);
    pid_t pid = fork();
    UNIT_REQUIRE(pid >= 0);
    if (0 == pid) {
        unit_failures = 0;
        UNIT_REQUIRE(0 == setgroups(member ? 1 : 0, groups) && 0 == setresgid(user, user, user) && 0 == setresuid(user, user, user));
        act();
        (void) fflush(NULL);
        _exit(0 != unit_failures);
    }
    UNIT_CHECK(pid == waitpid(pid, &status, 0) && WIFEXITED(status) && 0 == WEXITSTATUS(status));
}

/* What opening the keystore and using its key ends with: NULL, or the topic. */
static const char *attempt(void)
{
    opal_cryptfile_keystore_t *keystore = NULL;
    opal_cryptfile_wrapped_t wrapped;

    why = (opal_crypt_why_t) {.topic = NULL};
    int rc = opal_cryptfile_keystore_open(&options, &keystore, &why);
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_keystore_wrap(keystore, "lab", case_uuid, case_key, &wrapped, &why) : rc;
    opal_cryptfile_keystore_close(keystore);
    return OPAL_CRYPT_OK == rc ? NULL : why.topic;
}

static const char *expected_topic, *expected_detail;

static void refused(void)
{
    const char *topic = attempt();

    UNIT_CHECK(NULL != topic && 0 == strcmp(expected_topic, topic) && NULL != strstr(why.detail, expected_detail));
    if (NULL == topic || 0 != strcmp(expected_topic, topic) || NULL == strstr(why.detail, expected_detail)) {
        printf("%s: %s\n", NULL == topic ? "granted" : topic, why.detail);
    }
}

static void granted(void)
{
    UNIT_CHECK(NULL == attempt());
}

static void refuse_member(const char *topic, const char *detail)
{
    expected_topic = topic;
    expected_detail = detail;
    as(MEMBER, true, refused);
}

/* ---- what each does ---- */

static void owner_makes(void)
{
    opal_cryptfile_keystore_record_t record = {.label = "lab"};
    opal_cryptfile_keystore_t *keystore = reopen(NULL, &options, NOW);
    opal_cryptfile_wrapped_t wrapped;
    struct stat status;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_NEW, &record, &why));
    UNIT_CHECK(0 == stat(key_path, &status) && 0100640 == status.st_mode && OWNER == status.st_uid && GROUP == status.st_gid);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(keystore, "lab", case_uuid, case_key, &wrapped, &why));
    opal_cryptfile_keystore_close(keystore);
    UNIT_CHECK(1 == log_lines(directory, " wrap ", "label=lab version=1", "granted"));
    FILE *file = fopen(blob_path, "wb");
    UNIT_REQUIRE(NULL != file && 1 == fwrite(&wrapped, sizeof(wrapped), 1, file) && 0 == fclose(file) && 0 == chmod(blob_path, 0644));
}

static unsigned member_log(const char *verb, const char *end)
{
    char path[300], line[1400], where[300];
    unsigned found = 0;

    snprintf(path, sizeof(path), "%s/.ompi-crypt/keystore.log", home);
    snprintf(where, sizeof(where), " keystore=%s %s\n", directory, end);
    FILE *file = fopen(path, "r");
    UNIT_REQUIRE(NULL != file);
    while (NULL != fgets(line, sizeof(line), file)) {
        found += NULL != strstr(line, verb) && NULL != strstr(line, where);
    }
    fclose(file);
    return found;
}

static void member_uses(void)
{
    opal_cryptfile_keystore_record_t record = {.label = "other"};
    opal_cryptfile_keystore_t *keystore = reopen(NULL, &options, NOW);
    opal_cryptfile_wrapped_t wrapped;
    opal_cryptfile_grant_t grant;
    uint8_t out[32];
    unsigned count = 0;

    FILE *file = fopen(blob_path, "rb");
    UNIT_REQUIRE(NULL != file && 1 == fread(&wrapped, sizeof(wrapped), 1, file));
    fclose(file);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_list(keystore, count_record, NULL, &count, &why) && 1 == count);
    UNIT_CHECK(OPAL_CRYPT_OK == unwrap(keystore, "lab", &wrapped, out, &grant, &why) && OPAL_CRYPTFILE_GRANT_SEAL == grant);
    UNIT_EQUAL_BYTES(out, case_key, 32);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(keystore, "lab", case_uuid, case_key, &wrapped, &why));
    UNIT_CHECK(1 == member_log(" unwrap label=lab version=1 file=612066", "granted") && 1 == member_log(" wrap ", "granted"));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_new(keystore, OPAL_CRYPTFILE_KEYSTORE_NEW, &record, &why));
    UNIT_CHECK(0 == strcmp("keystore-directory", why.topic) && NULL != strstr(why.detail, "only its owner changes a group's keystore"));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_revoke(keystore, "lab", 1, &why));
    UNIT_CHECK(0 == strcmp("keystore-directory", why.topic));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_wrap(keystore, "absent", case_uuid, case_key, &wrapped, &why));
    UNIT_CHECK(1 == member_log(" wrap label=absent ", "refused: no such key"));
    opal_cryptfile_keystore_close(keystore);
}

/* ---- cases ---- */

static void case_members(void)
{
    UNIT_GROUP("the owner makes a key, and a member uses it");
    as(OWNER, true, owner_makes);
    as(MEMBER, true, member_uses);
    UNIT_GROUP("what a member cannot log is refused");
    options.log_file = "/dev/full";
    refuse_member("keystore-log", "");
    options.log_file = NULL;
    setenv("HOME", "/proc", 1);
    refuse_member("keystore-log", "/proc/.ompi-crypt: ");
    setenv("HOME", home, 1);
    UNIT_GROUP("a user who is not a member, and members without the parameter");
    expected_topic = "keystore-directory";
    expected_detail = ": Permission denied";
    as(OUTSIDER, false, refused);
    const char *group = options.group;
    options.group = NULL;
    expected_detail = ": it belongs to user id 4712, this process runs as 4713";
    as(MEMBER, true, refused);
    expected_topic = "secret-mode";
    expected_detail = "its mode is 0640";
    as(OWNER, true, refused);
    options.group = "4715";
    refuse_member("secret-group", ": it belongs to user id 4712; 4713 is expected (\"OWNER:GROUP\" names another)");
    as(OWNER, true, granted);
    UNIT_GROUP("names that are not known; a token");
    static const char *const unknown[][2] = {{"no-such-group", "the group"}, {"4712:no-such-group", "the group"}, {"no-such-user:4715", "the owner"},
                                             {":4715", "the owner"}, {"4712:", "the group"}, {"4712:4294967295", "the group"}, {"-1:4715", "the owner"}};
    for (unsigned i = 0; i < sizeof(unknown) / sizeof(*unknown); ++i) {
        options.group = unknown[i][0];
        refuse_member("secret-group", unknown[i][1]);
    }
    options.group = group;
    options.backend = OPAL_CRYPTFILE_KEYSTORE_PKCS11;
    refuse_member("secret-group", "only a keystore of files");
    options.backend = OPAL_CRYPTFILE_KEYSTORE_FILE;
    as(MEMBER, true, granted);
}

static void case_modes(void)
{
    static const unsigned bad_directories[] = {0770, 01770, 0752, 0757}, bad_files[] = {0660, 0644, 0642, 0740, 0650, 02640};

    UNIT_GROUP("owner, group and mode of the directory and of a key");
    for (unsigned i = 0; i < sizeof(bad_directories) / sizeof(*bad_directories); ++i) {
        UNIT_CHECK(0 == chmod(directory, bad_directories[i]));
        refuse_member("secret-group", "group id 4715 and 0750 are expected");
    }
    UNIT_CHECK(0 == chmod(directory, 0755) && 0 == chown(directory, OWNER, OUTSIDER));
    refuse_member("secret-group", "it belongs to group id 4714 and has the mode 0755");
    UNIT_CHECK(0 == chown(directory, OUTSIDER, GROUP));
    refuse_member("secret-group", "it belongs to user id 4714; 4712 is expected");
    UNIT_CHECK(0 == chown(directory, 0, GROUP) && 0 == chmod(directory, 02750));
    as(MEMBER, true, granted);
    UNIT_CHECK(0 == chown(directory, OWNER, GROUP));
    for (unsigned i = 0; i < sizeof(bad_files) / sizeof(*bad_files); ++i) {
        UNIT_CHECK(0 == chmod(key_path, bad_files[i]));
        refuse_member("secret-mode", "group id 4715 and 0640 are expected");
    }
    UNIT_CHECK(0 == chown(key_path, OWNER, MEMBER) && 0 == chmod(key_path, 0640));
    refuse_member("secret-mode", "it belongs to group id 4713 and its mode is 0640");
    UNIT_CHECK(0 == chown(key_path, OUTSIDER, GROUP));
    refuse_member("secret-owner", "it belongs to user id 4714; 4712 is expected");
    UNIT_CHECK(0 == chown(key_path, OWNER, GROUP));
    as(MEMBER, true, granted);
}

/* user::rw-, user:4714:r--, group::r--, mask::r--, other::---; the mode shows nothing of it. */
static void case_lists(void)
{
    static const struct {
        uint32_t version;
        struct {
            uint16_t tag, rights;
            uint32_t id;
        } entries[5];
    } list = {2, {{1, 6, UINT32_MAX}, {2, 4, OUTSIDER}, {4, 4, UINT32_MAX}, {0x10, 4, UINT32_MAX}, {0x20, 0, UINT32_MAX}}};
    static const char access_list[] = "system.posix_acl_access", default_list[] = "system.posix_acl_default";

    if (0 != setxattr(key_path, access_list, &list, sizeof(list), 0)) {
        printf("not tried: access lists: %s\n", strerror(errno));
        return;
    }
    UNIT_GROUP("access lists, of which the mode says nothing");
    struct stat status;
    UNIT_CHECK(0 == stat(key_path, &status) && 0100640 == status.st_mode);
    refuse_member("secret-group", "lab.1: it has an access list");
    UNIT_CHECK(0 == removexattr(key_path, access_list));
    as(MEMBER, true, granted);
    UNIT_CHECK(0 == setxattr(directory, default_list, &list, sizeof(list), 0));
    refuse_member("secret-group", "/keys: it has an access list");
    UNIT_CHECK(0 == removexattr(directory, default_list));
    as(MEMBER, true, granted);
    UNIT_CHECK(0 == setxattr(directory, access_list, &list, sizeof(list), 0) && 0 == chmod(directory, 0750));
    refuse_member("secret-group", "/keys: it has an access list");
    UNIT_CHECK(0 == removexattr(directory, access_list) && 0 == chmod(directory, 0750));
    as(MEMBER, true, granted);
}

static void owner_protects(void)
{
    opal_cryptfile_keystore_t *keystore = reopen(NULL, &options, NOW);
    struct stat status;
    unsigned count;

    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_protect(keystore, "lab", &count, &why) && 1 == count);
    UNIT_CHECK(0 == stat(key_path, &status) && 0100640 == status.st_mode && GROUP == status.st_gid);
    opal_cryptfile_keystore_close(keystore);
}

static void case_machine(const char *scratch_directory)
{
    char path[300];

    UNIT_GROUP("a machine key of the group's");
    snprintf(path, sizeof(path), "%s/machine", scratch_directory);
    UNIT_CHECK(0 == shell("printf '%%064d' 7 > %s", path) && 0 == chown(path, 0, GROUP) && 0 == chmod(path, 0640));
    options.machine_key_file = path;
    as(OWNER, true, owner_protects);
    as(MEMBER, true, granted);
    UNIT_CHECK(0 == chmod(path, 0644));
    refuse_member("secret-mode", "machine");
    UNIT_CHECK(0 == chown(path, MEMBER, MEMBER) && 0 == chmod(path, 0600));         /* a copy of the member's own */
    as(MEMBER, true, granted);
    options.machine_key_file = NULL;
    refuse_member("keystore-machine-key", "lab.1");
}

int main(void)
{
    if (0 != geteuid()) {
        return unit_skip("only root can be several users");
    }
    char *top = scratch();
    snprintf(directory, sizeof(directory), "%s/keys", top);
    snprintf(home, sizeof(home), "%s/home", top);
    snprintf(key_path, sizeof(key_path), "%s/lab.1", directory);
    snprintf(blob_path, sizeof(blob_path), "%s/blob", home);
    options.directory = directory;
    options.group = "4712:4715";
    setenv("HOME", home, 1);
    UNIT_REQUIRE(0 == chmod(top, 0755) && 0 == mkdir(directory, 0750) && 0 == chown(directory, OWNER, GROUP) && 0 == mkdir(home, 0777)
                 && 0 == chmod(home, 01777));
    case_members();
    case_modes();
    case_lists();
    case_machine(top);
    shell("rm -rf %s", top);
    return unit_done();
}
