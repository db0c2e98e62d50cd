/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file: encrypted files without a job.
 */
#include <string.h>

#include "mpicrypt.h"
#include "mpicrypt_file.h"
#include "mpicrypt_speed.h"

static mpicrypt_file_options_t with;

static const mpicrypt_option_t options[] = {
    {"label", MPICRYPT_TEXT, "LABEL", NULL, &with.label, "encrypt: the label of the key."},
    {"algorithm", MPICRYPT_TEXT, "NAME", "aes-128-gcm", &with.algorithm,
     "encrypt: aes-128-gcm, aes-192-gcm, aes-256-gcm or chacha20-poly1305."},
    {"block-size", MPICRYPT_SIZES, "SIZE", "64K", &with.block_size,
     "encrypt: bytes that are sealed together, a power of two from 512 to 16M."},
    {"recovery", MPICRYPT_TEXT, "PEM", NULL, &with.recovery,
     "A private recovery key, for regions whose key the keystore does not have or has revoked (mpicrypt key escrow)."},
    {"sparse", MPICRYPT_FLAG, NULL, NULL, &with.sparse,
     "encrypt: leave holes where the input is zero, for whoever stores the file to see."},
    {"sealed", MPICRYPT_FLAG, NULL, NULL, &with.sealed, "verify, decrypt: refuse a file that is not as it was sealed."},
    {"root", MPICRYPT_TEXT, "HEX", NULL, &with.root, "verify, decrypt: the same, and this is the root that seal printed."},
    {"anew", MPICRYPT_FLAG, NULL, NULL, &with.anew, "seal: also if the file is not as it was sealed before."},
    {"new-key", MPICRYPT_FLAG, NULL, NULL, &with.new_key, "cp: the copy gets a UUID and data keys of its own."},
    {"json", MPICRYPT_FLAG, NULL, NULL, &with.json, "info, verify: print JSON."},
    MPICRYPT_KEYSTORE_OPTIONS(with.keystore),
    {NULL}
};

static int with_providers(const char *verb, char **operands)
{
    int code = mpicrypt_providers_open();

    if (MPICRYPT_OK != code) {
        return code;
    }
    code = 0 == strcmp(verb, "info") ? mpicrypt_file_info(&with, operands[0])
           : 0 == strcmp(verb, "verify") ? mpicrypt_file_verify(&with, operands[0])
           : 0 == strcmp(verb, "seal") ? mpicrypt_file_seal(&with, operands[0])
           : 0 == strcmp(verb, "cp") ? mpicrypt_file_cp(&with, operands[0], operands[1])
           : 0 == strcmp(verb, "reencrypt") ? mpicrypt_file_reencrypt(&with, operands[0])
           : 0 == strcmp(verb, "compact") ? mpicrypt_file_compact(&with, operands[0])
           : 0 == strcmp(verb, "rekey") ? mpicrypt_file_rekey(&with, operands[0])
           : 0 == strcmp(verb, "encrypt") ? mpicrypt_file_encrypt(&with, operands[0], operands[1])
                                          : mpicrypt_file_decrypt(&with, operands[0], operands[1]);
    mpicrypt_providers_close();
    return code;
}

static int run(int operand_count, char **operands)
{
    static const struct {
        const char *verb;
        int files;
    } verbs[] = {{"info", 1}, {"verify", 1}, {"seal", 1}, {"rekey", 1}, {"reencrypt", 1}, {"compact", 1},
                 {"encrypt", 2}, {"decrypt", 2}, {"cp", 2}, {"mv", 2}};

    for (size_t i = 0; operand_count > 0 && i < sizeof(verbs) / sizeof(verbs[0]); ++i) {
        if (0 == strcmp(operands[0], verbs[i].verb) && operand_count == 1 + verbs[i].files) {
            return 0 == strcmp(operands[0], "mv") ? mpicrypt_file_mv(operands[1], operands[2])
                                                  : with_providers(operands[0], operands + 1);
        }
    }
    return mpicrypt_error(MPICRYPT_USAGE, "info FILE, verify FILE, seal FILE, rekey FILE, reencrypt FILE, compact FILE, encrypt PLAIN FILE, "
                                          "decrypt FILE PLAIN, cp --new-key FILE TARGET or mv FILE TARGET; see --help");
}

const mpicrypt_verb_t mpicrypt_file_verb = {
    .name = "file",
    .summary = "look at, check, seal, make, decrypt, rekey and move encrypted files",
    .synopsis = "info|verify|seal|rekey|reencrypt|compact FILE | encrypt|decrypt|cp|mv FROM TO",
    .description = "An encrypted file is FILE and FILE.mpicrypt, which belong together.\n\n"
                   "info prints the map: which bytes are encrypted how. verify opens every block and lists those that were "
                   "never finished (torn) or are not what a holder of the key wrote (bad), and how many lie beyond the end; of a sealed "
                   "file it checks the seal, and of any file the copies of the map. It changes nothing. seal does the same, then "
                   "makes the file's seal and prints its root: with it, an older version of a block, a cut off end and any other "
                   "part that was replaced are noticed, too. encrypt and "
                   "decrypt make a new file; what exists is never overwritten. rekey wraps the data keys of FILE under the "
                   "newest version of their labels; the data is not touched. cp --new-key makes a copy whose "
                   "blocks cannot stand for those of FILE: it has data keys of its own. reencrypt gives FILE itself new data keys; "
                   "compact gives back the room that overwrites took in the sidecar: both refuse a FILE that a job or another "
                   "mpicrypt has open, and nobody can open it meanwhile. mv renames both parts.",
    .options = options,
    .examples = "mpicrypt file encrypt results.plain results --label results\nmpicrypt file verify results\n"
                "mpicrypt file seal results; mpicrypt file verify results --root HEX\n"
                "mpicrypt key rotate results; mpicrypt file rekey results",
    .run = run,
    .takes_operands = true,
};
