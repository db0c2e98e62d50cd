/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file: encrypted files without a job.
 */
#include <string.h>

#include "ompi/tools/mpicrypt/mpicrypt.h"
#include "file.h"
#include "ompi/tools/mpicrypt/speed/speed.h"

static mpicrypt_file_options_t with;

static const mpicrypt_option_t options[] = {
    {"label", MPICRYPT_TEXT, "LABEL", NULL, &with.label, "For encrypt: the label of the key. For cat: every encrypted region must be under this label."},
    {"algorithm", MPICRYPT_TEXT, "NAME", "aes-128-gcm", &with.algorithm,
     "For encrypt: aes-128-gcm, aes-192-gcm, aes-256-gcm or chacha20-poly1305."},
    {"block-size", MPICRYPT_SIZES, "SIZE", "64K", &with.block_size,
     "For encrypt: bytes that are encrypted as one block, a power of two from 512 to 16M."},
    {"recovery", MPICRYPT_TEXT, "PEM", NULL, &with.recovery,
     "A private recovery key (mpicrypt key escrow), for regions whose key is revoked or not in the keystore."},
    {"sparse", MPICRYPT_FLAG, NULL, NULL, &with.sparse,
     "For encrypt: leave holes where the input is zero. The storage server can see where they are."},
    {"sealed", MPICRYPT_FLAG, NULL, NULL, &with.sealed,
     "For verify, decrypt and cat: refuse a file that has no seal or does not match it."},
    {"root", MPICRYPT_TEXT, "HEX", NULL, &with.root,
     "As --sealed; in addition, the seal must have this root, which seal printed."},
    {"anew", MPICRYPT_FLAG, NULL, NULL, &with.anew,
     "For seal: accept the file as it is, though it does not match its earlier seal."},
    {"new-key", MPICRYPT_FLAG, NULL, NULL, &with.new_key,
     "For cp, which requires it: the copy gets a new UUID and new data keys."},
    {"range", MPICRYPT_TEXT, "A-B", NULL, &with.range,
     "For cat: bytes A to B, counted from 0, with B; A- is up to the end, -N the last N bytes. Sizes as 64K are allowed."},
    {"json", MPICRYPT_FLAG, NULL, NULL, &with.json, "For info and verify: print JSON."},
    MPICRYPT_KEYSTORE_OPTIONS(with.keystore),
    {NULL}
};

static void lock_waits(const char *file, pid_t holder, unsigned seconds, bool last)
{
    char who[32] = "another process";

    (void) last;
    if (holder > 0) {
        snprintf(who, sizeof(who), "process %ld", (long) holder);
    }
    (void) mpicrypt_error(MPICRYPT_OK, "%s: waiting for %u seconds already, since %s has a lock", file, seconds, who);
}

static const struct {
    const char *name;
    int (*of_one)(const mpicrypt_file_options_t *options, const char *path);
    int (*of_two)(const mpicrypt_file_options_t *options, const char *from, const char *to);
} verbs[] = {
    {"info", mpicrypt_file_show, NULL},
    {"verify", mpicrypt_file_examine, NULL},
    {"seal", mpicrypt_file_seal, NULL},
    {"cat", mpicrypt_file_cat, NULL},
    {"rekey", mpicrypt_file_rekey, NULL},
    {"reencrypt", mpicrypt_file_reencrypt, NULL},
    {"encrypt", NULL, mpicrypt_file_encrypt},
    {"decrypt", NULL, mpicrypt_file_decrypt},
    {"cp", NULL, mpicrypt_file_cp},
};

static int with_providers(size_t verb, char **operands)
{
    int code = mpicrypt_providers_open();

    if (MPICRYPT_OK != code) {
        return code;
    }
    ompi_common_cryptmpio_posix_on_wait(lock_waits, 0);
    code = NULL != verbs[verb].of_one ? verbs[verb].of_one(&with, operands[0])
                                      : verbs[verb].of_two(&with, operands[0], operands[1]);
    mpicrypt_providers_close();
    return code;
}

static int run(int operand_count, char **operands)
{
    const char *name = operand_count > 0 ? operands[0] : "";

    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); ++i) {
        if (0 == strcmp(name, verbs[i].name) && operand_count == (NULL != verbs[i].of_one ? 2 : 3)) {
            if (with.json && 0 != strcmp(name, "info") && 0 != strcmp(name, "verify")) {
                return mpicrypt_error(MPICRYPT_USAGE, "--json is for info and verify");
            }
            if (NULL != with.range && 0 != strcmp(name, "cat")) {
                return mpicrypt_error(MPICRYPT_USAGE, "--range is for cat");
            }
            return mpicrypt_file_cat == verbs[i].of_one ? mpicrypt_file_cat(&with, operands[1]) : with_providers(i, operands + 1);
        }
    }
    return 0 == strcmp(name, "mv") ? mpicrypt_error(MPICRYPT_USAGE, "use mv(1): an encrypted file is one file")
           : 0 == strcmp(name, "compact")
               ? mpicrypt_error(MPICRYPT_USAGE, "compact is not needed any more: overwrites lengthen no file")
           : mpicrypt_error(MPICRYPT_USAGE, "info FILE, verify FILE, cat FILE, seal FILE, rekey FILE, reencrypt FILE, encrypt PLAIN FILE, "
                                            "decrypt FILE PLAIN or cp --new-key FILE TARGET; see --help");
}

const mpicrypt_verb_t mpicrypt_file_verb = {
    .name = "file",
    .summary = "inspect, verify, seal, create, decrypt and rekey encrypted files",
    .synopsis = "info|verify|cat|seal|rekey|reencrypt FILE | encrypt|decrypt|cp FROM TO",
    .description =
        "An encrypted file is one file: mv, cp and rm handle it.\n\n"
        "info prints the map: which bytes are encrypted, with which algorithm and key. verify opens every block, "
        "changes nothing, and lists the blocks that were never completed (torn) or are not what a holder of the key "
        "wrote (bad); it also checks the seal and the copies of the map. seal verifies, then makes a seal of the "
        "whole file and prints its root; with it, older versions of blocks, a truncated end and any other replaced "
        "part are detected, too.\n\n"
        "cat writes the plaintext to standard output. Nothing is written before its block has authenticated: where a "
        "block does not, the output ends, and the exit status is not 0. So it is with decrypt to -, and encrypt "
        "reads standard input if PLAIN is -.\n\n"
        "encrypt and decrypt make a new file. rekey wraps the data keys under the newest version of their labels; "
        "the data does not change. cp --new-key copies with new data keys, so that a block of one file does not open "
        "in the other. reencrypt replaces the data keys of FILE itself.\n\n"
        "seal, rekey and reencrypt refuse a FILE that a job or another mpicrypt has open, and nobody can open it "
        "while they run. The other commands never overwrite an existing file.",
    .options = options,
    .examples = "mpicrypt file encrypt results.plain results --label results\nmpicrypt file verify results\n"
                "mpicrypt file seal results; mpicrypt file verify results --root HEX\n"
                "mpicrypt key rotate results; mpicrypt file rekey results\n"
                "tar -c data | mpicrypt file encrypt - data.tar --label results\n"
                "mpicrypt file cat data.tar | tar -t",
    .run = run,
    .takes_operands = true,
};
