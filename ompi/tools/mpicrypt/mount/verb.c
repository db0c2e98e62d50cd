/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt mount: becomes mpicrypt-mount, a program of its own, so that nothing else needs libfuse3.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ompi/tools/mpicrypt/mpicrypt.h"

static bool with_plain;
static const char *label, *keystore;

static const mpicrypt_option_t options[] = {
    {"with-plain", MPICRYPT_FLAG, NULL, NULL, &with_plain,
     "Show plain files, too. Their bytes are not verified, and somebody who can write to DIR can put a plain file in the "
     "place of an encrypted one."},
    {"label", MPICRYPT_TEXT, "LABEL", NULL, &label, "Refuse files that are encrypted under another label."},
    {"keystore-dir", MPICRYPT_TEXT, "DIR", NULL, &keystore,
     "The directory of the keystore. Default: OMPI_MCA_crypt_keystore_dir, else ~/.ompi-crypt/keys. The other settings "
     "of the keystore are those that the environment has for jobs."},
    {NULL}
};

static int run(int count, char **words)
{
    static const char program[] = OMPI_CRYPT_LIBEXEC_DIR "/mpicrypt-mount";
    const char *start[10] = {program};
    int n = 1;

    if (2 != count) {
        return mpicrypt_error(MPICRYPT_USAGE, "DIR MOUNTPOINT; see --help");
    }
    if (with_plain) {
        start[n++] = "--with-plain";
    }
    if (NULL != label) {
        start[n++] = "--label";
        start[n++] = label;
    }
    if (NULL != keystore) {
        start[n++] = "--keystore-dir";
        start[n++] = keystore;
    }
    start[n++] = "--";
    start[n++] = words[0];
    start[n++] = words[1];
    execv(program, (char **) (uintptr_t) start);
    return ENOENT == errno
         ? mpicrypt_error(MPICRYPT_MISSING, "%s is not installed: ompi-crypt was built without libfuse3 (Debian: libfuse3-dev)", program)
         : mpicrypt_error(MPICRYPT_MISSING, "%s: %s", program, strerror(errno));
}

const mpicrypt_verb_t mpicrypt_mount_verb = {
    .name = "mount",
    .summary = "show the encrypted files of a directory as plain ones",
    .synopsis = "[OPTION]... DIR MOUNTPOINT",
    .description =
        "A read-only file system (FUSE): each encrypted file below DIR has its plaintext below MOUNTPOINT, for this user "
        "alone. Every byte is verified before a program gets it; what cannot be verified is an I/O error, and a line on "
        "standard error says why.\n\n"
        "It stays in the foreground, prints a line once it is mounted, and ends by 'fusermount3 -u MOUNTPOINT', ^C or "
        "SIGTERM. Then keys and plaintext in its memory are wiped.\n\n"
        "Links are followed if they stay beneath DIR, and refused otherwise. Other file systems below DIR are not shown.",
    .options = options,
    .examples =
        "    mkdir plain\n"
        "    mpicrypt mount results plain &\n"
        "    h5dump plain/run17.h5\n"
        "    fusermount3 -u plain",
    .run = run,
    .takes_operands = true
};
