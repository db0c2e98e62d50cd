/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt keygen: make a pre-shared key, and install it on hosts.
 *
 * The key is never in an argument, the environment or a pipe's name: a
 * remote shell reads it from its standard input.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keygen.h"
#include "keygen_make.h"
#include "keystore.h"
#include "opal/mca/common/crypt/identity/local.h"
#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/secret_file.h"

#define PATH_BYTES 4096
#define ADVICE(force) \
    "Encrypted jobs abort that run on nodes with different keys, or with none. When the cause is gone:\n" \
    "  mpicrypt keygen --existing" force " --hosts LIST"
enum { AT_ONCE_MAX = 256 };

static const char *out, *rsh;
static bool force, existing, netfs;
static mpicrypt_names_t hosts;
static size_t at_once;

static const mpicrypt_option_t options[] = {
    {"out", MPICRYPT_TEXT, "FILE", NULL, &out,
     "The key's file. The default is where jobs look for it: OMPI_MCA_crypt_psk_file of the environment, or "
     "~/.ompi-crypt/psk."},
    {"hosts", MPICRYPT_HOSTS, "LIST", NULL, &hosts,
     "Install the key on these hosts, at the same place, through ssh: node1,node2 or node[01-64,70],login1."},
    {"at-once", MPICRYPT_COUNT, "N", "16", &at_once,
     "How many hosts at a time, up to 256. Say 1 if ssh asks for passwords."},
    {"force", MPICRYPT_FLAG, NULL, NULL, &force,
     "Replace a key that exists, here and on the hosts. Jobs that run keep the old one. Name all nodes with --hosts: "
     "encrypted jobs between nodes with different keys abort."},
    {"existing", MPICRYPT_FLAG, NULL, NULL, &existing,
     "Make no key, install the one that exists: for nodes that were added later. With --force it replaces another key "
     "on the hosts."},
    {"allow-netfs", MPICRYPT_FLAG, NULL, NULL, &netfs,
     "Accept a file on a network file system. Anyone who can read that traffic has the key; jobs need "
     "crypt_secret_on_netfs=1 to use it."},
    {"rsh", MPICRYPT_TEXT, "PROGRAM", "ssh", &rsh,
     "The program that runs a command on a host, called as PROGRAM HOST COMMAND."},
    {NULL}
};

/* What runs on a host; the key is its standard input.  $f is set before it, and
 * $local: kinds of file systems.  Exit 4 and more: see keygen.h.  Existing files are
 * judged as jobs judge them (crypt/base/secret_file.c). */
static const char remote[] =
    "umask 077; d=${f%/*}; [ -d \"$d\" ] || mkdir \"$d\" || [ -d \"$d\" ] || exit 3; [ ! -d \"$f\" ] || exit 6; "
    "case $local in any | *\" $(stat -f -c %t \"$d\") \"*) ;; *) exit 5 ;; esac; "
    "case $(stat -L -c %u \"$d\") in 0 | \"$(id -u)\") ;; *) exit 8 ;; esac; "
    "case $(stat -L -c %a \"$d\") in [1357]??\?) ;; *[2367]? | *[2367]) exit 8 ;; esac; "
    "t=$(mktemp \"$f.new.XXXXXX\") || exit 3; trap 'rm -f \"$t\"' EXIT; cat >\"$t\" || exit 3; "
    "[ \"$(wc -c <\"$t\")\" -eq 65 ] || exit 3; "
    "if [ -n \"$force\" ]; then mv -fT \"$t\" \"$f\" || exit 3; exit 0; fi; "
    "ln -T \"$t\" \"$f\" 2>/dev/null && exit 0; cmp -s \"$t\" \"$f\" || exit 4; "
    "[ ! -L \"$f\" ] && [ -O \"$f\" ] && case $(stat -c %a \"$f\") in 400 | 600) exit 0 ;; esac; exit 7";

int mpicrypt_keygen_quote(const char *text, char *quoted, size_t capacity)
{
    size_t at = 0;

    for (quoted[at++] = '\''; 0 != *text; ++text) {
        const char *one = '\'' == *text ? "'\\''" : (char[2]) {*text, 0};

        if (at + strlen(one) + 2 > capacity) {
            return -1;
        }
        at += (size_t) sprintf(quoted + at, "%s", one);
    }
    quoted[at++] = '\'';
    quoted[at] = 0;
    return (int) at;
}

/* The command for a host, whatever its user's login shell is. */
static int command(const char *path, char *text, size_t text_bytes)
{
    char name[2 * PATH_BYTES] = "$HOME/.ompi-crypt/psk", script[3 * PATH_BYTES], quoted[4 * PATH_BYTES];
    char local[OPAL_CRYPT_FS_LOCAL_BYTES] = "any";
    int bytes;

    if (!netfs) {
        opal_crypt_fs_local(local);
    }

    if (NULL != out && mpicrypt_keygen_quote(path, name, sizeof(name)) < 0) {
        return -1;
    }
    bytes = snprintf(script, sizeof(script), "f=%s; force=%s; local='%s'; %s", name, force ? "1" : "", local, remote);
    if (bytes < 0 || (size_t) bytes >= sizeof(script) || mpicrypt_keygen_quote(script, quoted, sizeof(quoted)) < 0) {
        return -1;
    }
    bytes = snprintf(text, text_bytes, "exec sh -c %s", quoted);
    return bytes < 0 || (size_t) bytes >= text_bytes ? -1 : 0;
}

/* The key as jobs read it, as a line of 64 digits; secret memory. */
static int read_key(const char *path, char **line, opal_crypt_why_t *why)
{
    uint8_t *key;
    int rc = opal_crypt_secret_file_hex(path, "pre-shared key", netfs, &key, NULL, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    *line = opal_crypt_secmem_alloc(MPICRYPT_KEYGEN_KEY_BYTES + 1);
    if (NULL == *line) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "no-secret-memory", "%s", path);
    } else {
        opal_crypt_hex_write(key, MPICRYPT_KEYGEN_KEY_BYTES / 2, *line);
        (*line)[MPICRYPT_KEYGEN_KEY_BYTES - 1] = '\n';
    }
    opal_crypt_secmem_free(key);
    return rc;
}

static const char *refusal(int status)
{
    static const char *const sentences[] = {
        [MPICRYPT_KEYGEN_OTHER_KEY] = "another key is there already, and stays; --existing --force replaces it with this one",
        [MPICRYPT_KEYGEN_ON_NETFS] = "the key was not sent: its place there is on a network file system, or on one of an unknown kind "
                                  "(--allow-netfs)",
        [MPICRYPT_KEYGEN_DIRECTORY] = "the key was not installed: its place there is a directory",
        [MPICRYPT_KEYGEN_UNFIT] = "this key is there already, but jobs will refuse it: its file is a symbolic link, has another owner, or "
                                  "a mode other than 400 and 600; --existing --force replaces it",
        [MPICRYPT_KEYGEN_UNSAFE] = "the key was not installed: jobs would refuse it, because its directory there is neither yours nor "
                                   "root's, or others may write to it (chmod go-w)",
    };

    return status < 0 || status > MPICRYPT_KEYGEN_UNSAFE ? NULL : sentences[status];
}

static int install(const char *path)
{
    opal_crypt_why_t why = {.topic = NULL};
    char text[5 * PATH_BYTES], *key;

    if (0 != command(path, text, sizeof(text))) {
        return mpicrypt_error(MPICRYPT_USAGE, "the file's name is too long: %s", path);
    }
    int rc = read_key(path, &key, &why);
    if (OPAL_CRYPT_OK != rc) {
        return mpicrypt_refused("there is no key to install", rc, &why);
    }
    const mpicrypt_keygen_job_t job = {.hosts = &hosts, .at_once = at_once, .rsh = rsh, .command = text,
                                       .input = (const unsigned char *) key, .input_bytes = MPICRYPT_KEYGEN_KEY_BYTES,
                                       .verb = "keygen", .refusal = refusal,
                                       .advice = force ? ADVICE(" --force") : ADVICE("")};
    rc = mpicrypt_keygen_install(&job);
    opal_crypt_secmem_free(key);
    return rc;
}

static int check_names(const char *path)
{
    struct stat status;

    if (0 == stat(path, &status) && S_ISDIR(status.st_mode)) {
        return mpicrypt_error(MPICRYPT_USAGE, "%s is a directory; name a file in it, for example %s/psk", path, path);
    }
    if (NULL != out && hosts.count > 0 && '/' != path[0]) {
        return mpicrypt_error(MPICRYPT_USAGE, "--hosts needs the key's file to begin with '/': the place is that on every host");
    }
    if (existing && 0 == hosts.count) {
        return mpicrypt_error(MPICRYPT_USAGE, "--existing goes with --hosts");
    }
    if (at_once < 1 || at_once > AT_ONCE_MAX) {
        return mpicrypt_error(MPICRYPT_USAGE, "--at-once is from 1 to %d", AT_ONCE_MAX);
    }
    return MPICRYPT_OK;
}

static void warn_of_others(void)
{
    if (0 == hosts.count) {
        fprintf(stderr, "mpicrypt keygen: WARNING: nodes that have the old key now differ from this one, and encrypted jobs with "
                "them abort; 'mpicrypt keygen --existing --force --hosts LIST' gives them the new one\n");
    } else {
        fprintf(stderr, "mpicrypt keygen: WARNING: nodes that have the old key and are not among these hosts now differ, and "
                "encrypted jobs with them abort\n");
    }
}

static int run(int operand_count, char **operands)
{
    opal_crypt_why_t why;
    char path[PATH_BYTES];
    int rc;

    (void) operand_count;
    (void) operands;
    if (NULL == out && NULL != getenv("OMPI_MCA_crypt_psk_file") && '\0' != *getenv("OMPI_MCA_crypt_psk_file")) {
        out = getenv("OMPI_MCA_crypt_psk_file");
    }
    if (NULL == out) {
        if (OPAL_CRYPT_OK != opal_crypt_home_path("psk", path, sizeof(path), &why)) {
            return mpicrypt_error(MPICRYPT_FAILED, "there is no home directory; use --out");
        }
    } else if (strlen(out) >= sizeof(path)) {
        return mpicrypt_error(MPICRYPT_USAGE, "the file's name is too long");
    } else {
        memcpy(path, out, strlen(out) + 1);
    }
    rc = check_names(path);
    if (MPICRYPT_OK == rc && !existing) {
        int flags = (force ? MPICRYPT_KEYGEN_FORCE : 0) | (netfs ? MPICRYPT_KEYGEN_NETFS : 0);

        bool replaced = force && 0 == access(path, F_OK);
        if (OPAL_CRYPT_OK == mpicrypt_psk_make(path, flags, &why)) {
            printf("%s: a new key of 32 random bytes\n", path);
            fflush(stdout);
            if (replaced) {
                warn_of_others();
            }
        } else if (0 == strcmp(why.topic, "keygen-exists")) {
            rc = mpicrypt_error(MPICRYPT_FAILED, "%s: there is a key already. --existing --hosts LIST installs it, "
                                "--force replaces it.", path);
        } else if (0 == strcmp(why.topic, "secret-netfs")) {
            rc = mpicrypt_error(MPICRYPT_FAILED, "%s. That is no disk of this node: the key would cross the network "
                                "that it is to protect. Choose a local place with --out; docs/keys.rst has the commands for a home "
                                "directory on NFS.",
                                why.detail);
        } else if (0 == strcmp(why.topic, "secret-directory")) {
            rc = mpicrypt_error(MPICRYPT_FAILED, "%s. Jobs would refuse the key: the directory has to be yours or root's, and "
                                "only its owner may write to it (chmod go-w), unless it has the sticky bit.", why.detail);
        } else {
            rc = mpicrypt_error(MPICRYPT_FAILED, "%s", why.detail);
        }
    }
    if (MPICRYPT_OK == rc && hosts.count > 0) {
        rc = install(path);
    }
    opal_crypt_secmem_finalize();
    return rc;
}

const mpicrypt_verb_t mpicrypt_keygen_verb = {
    .name = "keygen",
    .summary = "make a pre-shared key, and install it on hosts",
    .synopsis = "[--out FILE] [--force] [--hosts LIST]",
    .description =
        "Makes the key by which the processes of a job know each other with crypt_auth=psk: 32 random "
        "bytes, as hexadecimal digits, in a file of mode 0600. A key that exists is never overwritten "
        "without --force.\n\n"
        "Every node needs the same key. With --hosts it is installed on each of them, at the same place, "
        "through ssh; the key goes through ssh's standard input and is never an argument. A host that "
        "has this very key already is left as it is; one that has another key, or this one in a file that "
        "jobs refuse, is refused without --force. A directory in which jobs refuse keys is refused here and there. If a host fails, the others are still tried, the summary "
        "names it, and the exit status is 1.\n\n"
        "Where the home directory is on a network file system, an administrator first makes a directory for the "
        "user on every node, for example by install -d -m 700 -o alice /var/lib/alice. docs/keys.rst has the commands.",
    .options = options,
    .examples =
        "  mpicrypt keygen --hosts node1,node2\n"
        "  mpicrypt keygen --hosts 'node[01-64,70],login1'\n"
        "  mpicrypt keygen --out /var/lib/alice/psk --hosts node1,node2\n"
        "  mpicrypt keygen --existing --hosts node3\n",
    .run = run,
};
