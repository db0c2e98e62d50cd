/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file: encrypted files without a job.
 */
#include <errno.h>
#include <string.h>

#include "opal/mca/aead/aead_util.h"
#include "ompi/tools/mpicrypt/mpicrypt.h"
#include "crew.h"
#include "many.h"
#include "ompi/tools/mpicrypt/speed/speed.h"

static mpicrypt_file_choices_t with;

static const mpicrypt_option_t options[] = {
    {"label", MPICRYPT_TEXT, "LABEL", NULL, &with.label, "For encrypt and cat: the label of the key. cat refuses a file that has a region under another one."},
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
     "For verify, decrypt and cat: as --sealed; in addition, the seal must have this root, which seal printed."},
    {"anew", MPICRYPT_FLAG, NULL, NULL, &with.anew,
     "For seal: accept the file as it is, though it does not match its earlier seal."},
    {"new-key", MPICRYPT_FLAG, NULL, NULL, &with.new_key,
     "For cp, which requires it: the copy gets a new UUID and new data keys."},
    {"recursive", MPICRYPT_FLAG, NULL, NULL, &with.recursive,
     "Work on all files below the directories that are named; symbolic links are not followed."},
    {"to", MPICRYPT_TEXT, "DIR", NULL, &with.to,
     "For encrypt and decrypt: make the new files below this directory, under the same names."},
    {"in-place", MPICRYPT_FLAG, NULL, NULL, &with.in_place,
     "For encrypt and decrypt: replace each file. The blocks of the old one on the disk are not wiped."},
    {"threads", MPICRYPT_COUNT, "N", NULL, &with.threads,
     "Threads, 1 to 64: for several files at a time, and for the parts of a large one. Default: the processors that "
     "mpicrypt may use, at most 8."},
    {"quiet", MPICRYPT_FLAG, NULL, NULL, &with.quiet,
     "No progress; of many files, print only about those that are not in order."},
    {"range", MPICRYPT_TEXT, "A-B", NULL, &with.range,
     "For cat: bytes A to B, counted from 0, with B; A- is up to the end, -N the last N bytes. Sizes as 64K are allowed."},
    {"json", MPICRYPT_FLAG, NULL, NULL, &with.json, "Print JSON: an object for each file, one a line."},
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

static const mpicrypt_file_command_t verbs[] = {
    {.name = "info", .done = "map verified", .of_one = mpicrypt_file_show, .prints = true, .details = true},
    {.name = "verify", .done = "whole", .of_one = mpicrypt_file_examine, .prints = true},
    {.name = "check", .done = "whole", .of_one = mpicrypt_file_examine},
    {.name = "cat", .of_one = mpicrypt_file_cat},
    {.name = "seal", .done = "sealed", .of_one = mpicrypt_file_seal, .writes = true, .alone = true},
    {.name = "rekey", .done = "rekeyed", .of_one = mpicrypt_file_rekey, .writes = true, .alone = true, .details = true},
    {.name = "reencrypt", .done = "reencrypted", .of_one = mpicrypt_file_reencrypt, .writes = true, .in_place = true},
    {.name = "encrypt", .done = "encrypted", .of_two = mpicrypt_file_encrypt, .writes = true},
    {.name = "decrypt", .done = "decrypted", .of_two = mpicrypt_file_decrypt, .writes = true},
    {.name = "cp", .done = "copied", .of_two = mpicrypt_file_cp, .writes = true},
};

static int with_providers(const mpicrypt_file_command_t *command, int count, char **operands)
{
    int code = mpicrypt_providers_open();

    if (MPICRYPT_OK != code) {
        return code;
    }
    ompi_common_cryptmpio_posix_on_wait(lock_waits, 0);
    code = mpicrypt_file_run(command, &with, count, operands);
    mpicrypt_providers_close();
    return code;
}

static bool is_verb(const mpicrypt_file_command_t *command, const char *name) { return 0 == strcmp(name, command->name); }

/* Do the options and the number of operands suit the verb? */
static int check_options(const mpicrypt_file_command_t *command, int count)
{
    if (NULL != with.to && with.in_place) {
        return mpicrypt_error(MPICRYPT_USAGE, "--to and --in-place exclude each other");
    }
    if (with.recursive && NULL != command->of_two && NULL == with.to && !with.in_place) {
        return mpicrypt_error(MPICRYPT_USAGE, "--recursive needs --to or --in-place here");
    }
    if (is_verb(command, "cat") && (1 != count || with.recursive || with.json)) {
        return mpicrypt_error(MPICRYPT_USAGE, "cat is for one file, and prints its bytes");
    }
    if (NULL != with.root && (with.recursive || (NULL != command->of_one && 1 != count))) {
        return mpicrypt_error(MPICRYPT_USAGE, "--root is for one file");
    }
    if (NULL != with.root && !opal_cryptfile_seal_parse(with.root, with.wanted)) {
        return mpicrypt_error(MPICRYPT_USAGE, "--root: 64 hexadecimal digits");
    }
    with.sealed = with.sealed || NULL != with.root;
    if (with.threads < 1 || with.threads > MPICRYPT_FILE_THREADS_MAX) {
        return mpicrypt_error(MPICRYPT_USAGE, "--threads: %zu is not between 1 and %d", with.threads, MPICRYPT_FILE_THREADS_MAX);
    }
    return NULL == with.label && is_verb(command, "encrypt") ? mpicrypt_error(MPICRYPT_USAGE, "encrypt needs --label") : MPICRYPT_OK;
}

/* One operand at least; two for a verb that makes another file, unless an option says where. */
static bool suits(const mpicrypt_file_command_t *command, int count)
{
    return NULL != command->of_two && NULL == with.to && !with.in_place && !with.recursive ? 2 == count : count > 0;
}

static int run(int operand_count, char **operands)
{
    const char *name = operand_count > 0 ? operands[0] : "";

    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); ++i) {
        if (is_verb(&verbs[i], name) && operand_count > 1) {
            if (!suits(&verbs[i], operand_count - 1)) {
                return mpicrypt_error(MPICRYPT_USAGE, "%s needs a file and the name of the new one, or --to DIR with any number of "
                                      "files; see 'mpicrypt file %s --help'", name, name);
            }
            with.verdict = is_verb(&verbs[i], "check");
            with.recursive = with.recursive || with.verdict;
            with.threads = 0 == with.threads ? mpicrypt_file_threads_default() : with.threads;
            int code = check_options(&verbs[i], operand_count - 1);
            if (!opal_aead_no_core_files()) {           /* copies leave plaintext in vector registers */
                return mpicrypt_error(MPICRYPT_FAILED, "core files cannot be turned off: %s", strerror(errno));
            }
            with.quiet = with.quiet || is_verb(&verbs[i], "cat");
            return MPICRYPT_OK == code ? with_providers(&verbs[i], operand_count - 1, operands + 1) : code;
        }
    }
    return 0 == strcmp(name, "mv") ? mpicrypt_error(MPICRYPT_USAGE, "use mv(1): an encrypted file is one file")
           : 0 == strcmp(name, "compact")
               ? mpicrypt_error(MPICRYPT_USAGE, "compact is not needed any more: overwrites lengthen no file")
           : mpicrypt_command_wrong(&mpicrypt_file_verb, operand_count, operands);
}

const mpicrypt_verb_t mpicrypt_file_verb = {
    .name = "file",
    .summary = "inspect, verify, seal, create, decrypt and rekey encrypted files",
    .synopsis = "info|verify|check|seal|rekey|reencrypt|cat NAME...\n"
                "       mpicrypt file encrypt|decrypt|cp NAME [NEW]",
    .description =
        "An encrypted file is one file: mv, cp and rm handle it.\n\n"
        "info prints the map: which bytes are encrypted, with which algorithm and key. verify opens every block, "
        "changes nothing, and lists the blocks that were never completed (torn) or are not what a holder of the key "
        "wrote (bad); it also checks the seal and the copies of the map. check does the same for all files below "
        "directories, and says what to do about those that are not in order. seal verifies, then makes a seal of the "
        "whole file and prints its root; with it, older versions of blocks, a truncated end and any other replaced "
        "part are detected, too.\n\n"
        "cat writes the plaintext to standard output. Nothing is written before its block has authenticated: where a "
        "block does not, the output ends, and the exit status is not 0. So it is with decrypt to -, and encrypt "
        "reads standard input if PLAIN is -.\n\n"
        "encrypt and decrypt make a new file. rekey wraps the data keys under the newest version of their labels; "
        "the data does not change. cp --new-key copies with new data keys, so that a block of one file does not open "
        "in the other. reencrypt replaces the data keys of FILE itself.\n\n"
        "seal, rekey and reencrypt refuse a FILE that a job or another mpicrypt has open, and nobody can open it "
        "while they run. Without --in-place, the other commands never overwrite an existing file.\n\n"
        "A command with several names, --recursive, --to or --in-place prints a line about each file and a summary. A "
        "file that fails does not stop the others; the exit status is the worst of all files. If a command was "
        "interrupted, run it again: it finishes what it has not done.",
    .options = options,
    .examples = "mpicrypt file encrypt results.plain results --label results\nmpicrypt file verify results\n"
                "mpicrypt file seal results; mpicrypt file verify results --root HEX\n"
                "mpicrypt key rotate results; mpicrypt file rekey results\n"
                "mpicrypt file encrypt --recursive --to encrypted data --label results\nmpicrypt file check encrypted\n"
                "tar -c data | mpicrypt file encrypt - data.tar --label results\n"
                "mpicrypt file cat data.tar | tar -t",
    .run = run,
    .takes_operands = true,
};
