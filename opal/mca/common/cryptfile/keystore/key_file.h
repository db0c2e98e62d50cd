/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A key file of the backend `file`, which holds a label's record and its key.
 */
#ifndef OPAL_CRYPTFILE_KEYSTORE_KEY_FILE_H
#define OPAL_CRYPTFILE_KEYSTORE_KEY_FILE_H

#include "keystore_object.h"

enum { OPAL_CRYPTFILE_LABEL_KEY_BYTES = 32 };

/* The content of a key file; in secret memory. */
typedef struct opal_cryptfile_key_file {
    opal_cryptfile_keystore_record_t record;
    uint8_t key[OPAL_CRYPTFILE_LABEL_KEY_BYTES];
} opal_cryptfile_key_file_t;

/* The content of LABEL.VERSION, in secret memory that the caller frees.  With a machine key, a plain one is refused. */
int opal_cryptfile_key_file_load(const opal_cryptfile_keystore_t *keystore, const char *label, unsigned version,
                                 opal_cryptfile_key_file_t **content, opal_crypt_why_t *why);
/* The same without that refusal; *plain: its key is stored in the clear. */
int opal_cryptfile_key_file_load_any(const opal_cryptfile_keystore_t *keystore, const char *label, unsigned version,
                                     opal_cryptfile_key_file_t **content, bool *plain, opal_crypt_why_t *why);
/* Refuse a directory where a key must not lie in the clear: storage that is not local, without a machine key. */
int opal_cryptfile_key_file_place(const opal_cryptfile_keystore_t *keystore, opal_crypt_why_t *why);
/* `create`: fail if one exists. */
int opal_cryptfile_key_file_store(const opal_cryptfile_keystore_t *keystore, const opal_cryptfile_key_file_t *content,
                                  bool create, opal_crypt_why_t *why);

/* Remove what changes of a label that were killed have left; the directory is then read from its start. */
int opal_cryptfile_key_file_remove_unfinished(const opal_cryptfile_keystore_t *keystore, DIR *directory, const char *label,
                                              opal_crypt_why_t *why);
/* Was the key with this fingerprint revoked here before it was deleted?  Its version comes back revoked. */
bool opal_cryptfile_key_file_was_revoked(const opal_cryptfile_keystore_t *keystore, const uint8_t fingerprint[OPAL_CRYPTFILE_FINGERPRINT_BYTES]);
/* Remove every version, each with a line in the log; *count: how many. */
int opal_cryptfile_key_file_remove_all(opal_cryptfile_keystore_t *keystore, const char *label, unsigned *count,
                                       opal_crypt_why_t *why);

#endif
