/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Keys that leave a keystore and enter one, for `mpicrypt key`: the text of docs/key-exchange.rst, "Contents", which
 * its callers encrypt.  Only the backend `file` gives keys out and takes them in.
 *
 * Threads: as keystore.h.
 */
#ifndef OPAL_CRYPTFILE_KEYSTORE_EXCHANGE_H
#define OPAL_CRYPTFILE_KEYSTORE_EXCHANGE_H

#include "keystore.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPTFILE_BUNDLE_MAX   (768 * 1024)        /* bytes of text */

/* Refused for a token, whose keys neither leave it nor enter it, nor are deleted here.  The functions below ask it, too. */
int opal_cryptfile_keystore_moves(const opal_cryptfile_keystore_t *keystore, const char *label, opal_crypt_why_t *why);

/* The keys of a label, or (NULL) of all, with their records; in secret memory that the caller frees.  Every version is
 * logged before it is returned.  Refused unless this user owns all of them. */
int opal_cryptfile_keystore_export(opal_cryptfile_keystore_t *keystore, const char *label, char **text, size_t *bytes,
                                   opal_crypt_why_t *why);

/* What an import does with a version. */
typedef enum {
    OPAL_CRYPTFILE_IMPORT_NEW,          /* it was not here */
    OPAL_CRYPTFILE_IMPORT_HELD,         /* it was: nothing changes */
    OPAL_CRYPTFILE_IMPORT_REVOKED,      /* it was here, and is revoked now, as it is there */
    OPAL_CRYPTFILE_IMPORT_STAYS,        /* it was, and stays revoked, though it is not there */
    OPAL_CRYPTFILE_IMPORT_BACK,         /* it was not here; it was once, revoked, and is so again, though it is not there */
    OPAL_CRYPTFILE_IMPORT_REFUSED       /* the label is another key here; nothing of it changes */
} opal_cryptfile_import_t;

typedef struct opal_cryptfile_import_to {
    bool dry_run;                       /* change nothing, log nothing */
    /* For every version, after what it reports is done.  `why`: of a refusal. */
    void (*each)(const opal_cryptfile_keystore_record_t *record, opal_cryptfile_import_t done, const opal_crypt_why_t *why,
                 void *arg);
    void *arg;
    int64_t exported;                   /* set: when the text was made */
} opal_cryptfile_import_to_t;

/* Add these keys.  A label that exists must have a version with the same key there and here, and none with different
 * keys; a held version keeps its owners, dates and recovery key, and one that is revoked stays so, even if it was deleted
 * meanwhile.  A label that is
 * refused does not keep the others out; its error is returned at the end.  ERR_AUTH, topic "keystore-bundle": the text
 * departs from the format, and nothing is changed.  For a dry run, the keystore may be NULL: an empty one. */
int opal_cryptfile_keystore_import(opal_cryptfile_keystore_t *keystore, const char *text, size_t bytes,
                                   opal_cryptfile_import_to_t *to, opal_crypt_why_t *why);

/* Remove all versions of a label; *count: how many.  Readable or not. */
int opal_cryptfile_keystore_delete(opal_cryptfile_keystore_t *keystore, const char *label, unsigned *count,
                                   opal_crypt_why_t *why);

#pragma GCC visibility pop

#endif
