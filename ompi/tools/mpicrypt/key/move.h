/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The verbs of `mpicrypt key` that move keys between keystores, or end them: their options, and what they share.
 */
#ifndef MPICRYPT_KEY_MOVE_H
#define MPICRYPT_KEY_MOVE_H

#include "envelope.h"
#include "keystore.h"
#include "passphrase.h"

typedef struct mpicrypt_key_move {
    const mpicrypt_keystore_t *where;   /* for the verbs: with the environment's settings */
    const char *to, *from, *ca, *certificate, *private_key, *out, *passphrase_file, *scan, *rsh;
    bool passphrase, without_signature, dry_run, pushed, yes, lose_files;
    mpicrypt_names_t hosts;
    size_t at_once;
} mpicrypt_key_move_t;

#define MPICRYPT_KEY_MOVE_OPTIONS(m) \
    {"to", MPICRYPT_TEXT, "CERT", NULL, &(m).to, \
     "For export and backup: encrypt to this certificate (PEM). Its fingerprint is printed, to be compared."}, \
    {"passphrase", MPICRYPT_FLAG, NULL, NULL, &(m).passphrase, \
     "For export and backup: encrypt under a passphrase, which is typed twice."}, \
    {"passphrase-file", MPICRYPT_TEXT, "FILE", NULL, &(m).passphrase_file, \
     "Read the passphrase from this file, mode 0600, instead of the terminal."}, \
    {"cert", MPICRYPT_TEXT, "CERT", NULL, &(m).certificate, \
     "Your certificate (PEM). export and backup sign with it; import and restore open what was encrypted to it."}, \
    {"key", MPICRYPT_TEXT, "FILE", NULL, &(m).private_key, "The private key of --cert (PEM), mode 0600."}, \
    {"from", MPICRYPT_TEXT, "CERT", NULL, &(m).from, "For import and restore: accept only what is signed with this certificate."}, \
    {"ca", MPICRYPT_TEXT, "FILE", NULL, &(m).ca, "Accept only certificates that this CA issued: that of --to, and the signer's."}, \
    {"unsigned", MPICRYPT_FLAG, NULL, NULL, &(m).without_signature, \
     "For import and restore: do not demand a signature. Anyone can encrypt to your certificate; compare fingerprints."}, \
    {"out", MPICRYPT_TEXT, "FILE", NULL, &(m).out, \
     "For export and backup: the file to make; - is standard output. Default: LABEL.cms, keystore.cms."}, \
    {"dry-run", MPICRYPT_FLAG, NULL, NULL, &(m).dry_run, "For import and restore: show what would change."}, \
    {"pushed", MPICRYPT_FLAG, NULL, NULL, &(m).pushed, "For import, as push starts it on a host."}, \
    {"hosts", MPICRYPT_HOSTS, "LIST", NULL, &(m).hosts, "For push: the hosts, node1,node2 or node[01-64,70]."}, \
    {"at-once", MPICRYPT_COUNT, "N", "16", &(m).at_once, "For push: how many hosts at a time, up to 256."}, \
    {"rsh", MPICRYPT_TEXT, "PROGRAM", "ssh", &(m).rsh, \
     "For push: the program that runs a command on a host, called as PROGRAM HOST COMMAND."}, \
    {"scan", MPICRYPT_TEXT, "DIR", NULL, &(m).scan, \
     "For delete: count the files below DIR that need the label, and refuse if there are any."}, \
    {"yes-lose-files", MPICRYPT_FLAG, NULL, NULL, &(m).lose_files, "For delete: even if --scan finds files."}

/* Is this one of its verbs, whatever follows? */
bool mpicrypt_key_moves(const char *verb);

/* Run the verb words[0] with its operands; an exit code. */
int mpicrypt_key_move(const mpicrypt_key_move_t *move, int count, char **words);

/* ---- the verbs; `label` NULL: all of the keystore ---- */
int mpicrypt_key_export(const mpicrypt_key_move_t *move, const char *label);
int mpicrypt_key_import(const mpicrypt_key_move_t *move, const char *path);
int mpicrypt_key_push(const mpicrypt_key_move_t *move, const char *label);
int mpicrypt_key_delete(const mpicrypt_key_move_t *move, const char *label);

/* ---- shared ---- */

/* A recipient for this passphrase, with a fresh salt; free recipient->kek. */
int mpicrypt_key_for_passphrase(const mpicrypt_passphrase_t *passphrase, unsigned n, mpicrypt_recipient_t *recipient);

/* The keys of a label, sealed; free message->bytes with OPENSSL_free. */
int mpicrypt_key_seal(const mpicrypt_key_move_t *move, const char *label, const mpicrypt_recipient_t *recipient,
                      mpicrypt_message_t *message);

/* What a scan found. */
typedef struct mpicrypt_key_scan {
    unsigned long long files, encrypted, found, skipped;    /* looked at; encrypted; under the label; not to be read */
    char example[256];                  /* one under the label, for a message */
} mpicrypt_key_scan_t;

/* Look at every file below `directory`, without a key and without following links.  False: errno. */
bool mpicrypt_key_scan(const char *directory, const char *label, mpicrypt_key_scan_t *scan);

#endif
