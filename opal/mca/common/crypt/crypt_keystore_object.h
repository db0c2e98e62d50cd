/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Inside the keystore: what a backend is.  A backend stores records and wraps;
 * who may do what when (crypt_keystore.c), the log and the blob (crypt_keystore_blob.c)
 * are the same for all.
 */
#ifndef OPAL_COMMON_CRYPT_KEYSTORE_OBJECT_H
#define OPAL_COMMON_CRYPT_KEYSTORE_OBJECT_H

#include "crypt_keystore.h"
#include "crypt_secret_file.h"

#include <dirent.h>
#include <pthread.h>

#define OPAL_CRYPT_RFC3394_BYTES    (OPAL_CRYPT_DATA_KEY_BYTES + 8)
#define OPAL_CRYPT_RECORD_TEXT_MAX  4096
#define OPAL_CRYPT_BLOB_WRAPPED_AT  6           /* in a blob: the key as RFC 3394 has it */

typedef struct opal_common_crypt_keystore_ops {
    const char *name;
    int (*open)(opal_common_crypt_keystore_t *keystore, const opal_common_crypt_keystore_options_t *options,
                opal_common_crypt_why_t *why);
    void (*close)(opal_common_crypt_keystore_t *keystore);

    /* Call `each` for every record of `label` (NULL: of all).  A nonzero return
     * stops and is returned; so does a record that cannot be read, or an older
     * version could be passed off as the newest by spoiling the newest.  With
     * `bad`, which is for lists, that is called for such a record instead. */
    int (*walk)(opal_common_crypt_keystore_t *keystore, const char *label,
                int (*each)(const opal_common_crypt_keystore_record_t *record, void *arg),
                void (*bad)(const opal_common_crypt_why_t *why, void *arg), void *arg, opal_common_crypt_why_t *why);
    /* One record, checked to be what it was made as. */
    int (*read)(opal_common_crypt_keystore_t *keystore, const char *label, uint16_t version,
                opal_common_crypt_keystore_record_t *record, opal_common_crypt_why_t *why);
    /* Make a key and its record; never over one that exists. */
    int (*create)(opal_common_crypt_keystore_t *keystore, const opal_common_crypt_keystore_record_t *record,
                  opal_common_crypt_why_t *why);
    /* Change the record; the key stays. */
    int (*update)(opal_common_crypt_keystore_t *keystore, const opal_common_crypt_keystore_record_t *record,
                  opal_common_crypt_why_t *why);

    /* RFC 3394 under the record's key.  unwrap: ERR_AUTH if blob *which does not fit. */
    int (*wrap)(opal_common_crypt_keystore_t *keystore, const opal_common_crypt_keystore_record_t *record,
                const uint8_t data_key[OPAL_CRYPT_DATA_KEY_BYTES], uint8_t wrapped[OPAL_CRYPT_RFC3394_BYTES],
                opal_common_crypt_why_t *why);
    int (*unwrap)(opal_common_crypt_keystore_t *keystore, const opal_common_crypt_keystore_record_t *record,
                  const opal_common_crypt_unwrap_t *blobs, size_t count, size_t *which, opal_common_crypt_why_t *why);
    /* crypt_keystore.h; NULL: this backend has no files. */
    int (*protect)(opal_common_crypt_keystore_t *keystore, const char *label, unsigned *count,
                   opal_common_crypt_why_t *why);
} opal_common_crypt_keystore_ops_t;

struct opal_common_crypt_keystore {
    const opal_common_crypt_keystore_ops_t *ops;
    opal_common_crypt_keystore_backend_t backend;
    pthread_mutex_t lock;
    char *directory;
    bool secret_on_netfs;
    time_t now;                     /* 0: the clock */
    int log_fd;
    uint8_t *machine_key;           /* secret memory, or NULL */
    void *token;                    /* pkcs11: its state */
};

extern const opal_common_crypt_keystore_ops_t opal_common_crypt_keystore_file_ops;
extern const opal_common_crypt_keystore_ops_t opal_common_crypt_keystore_pkcs11_ops;

/* ---- for who holds the lock ---- */
/* The record of a version, or (0) the newest that may be used. */
int opal_common_crypt_keystore_look_up(opal_common_crypt_keystore_t *keystore, const char *label, uint16_t version,
                                       bool revoked_too, opal_common_crypt_keystore_record_t *record,
                                       opal_common_crypt_why_t *why);
/* *refusal: why it is not GRANT_SEAL. */
opal_common_crypt_grant_t opal_common_crypt_keystore_grant_of(const opal_common_crypt_keystore_t *keystore,
                                                              const opal_common_crypt_keystore_record_t *record,
                                                              const char **refusal);

/* ---- log: one line ---- */
int opal_common_crypt_keystore_log_open(opal_common_crypt_keystore_t *keystore, const char *path,
                                        opal_common_crypt_why_t *why);
/* `refusal` NULL: granted. */
int opal_common_crypt_keystore_log(opal_common_crypt_keystore_t *keystore, const char *verb, const char *label,
                                   unsigned version, const uint8_t *uuid, const char *refusal,
                                   opal_common_crypt_why_t *why);

/* ---- one at a time changes a keystore (crypt_keystore_lock.c) ---- */
/* *fd is for the unlock; -1: there are no locks here. */
int opal_common_crypt_keystore_lock(const opal_common_crypt_keystore_t *keystore, int *fd, opal_common_crypt_why_t *why);
void opal_common_crypt_keystore_unlock(int fd);

/* ---- the directory of the backend `file` ---- */
int opal_common_crypt_keystore_directory(const opal_common_crypt_keystore_t *keystore, DIR **directory,
                                         opal_common_crypt_why_t *why);
/* The next key file of `label` (NULL: of any); false at the end. */
bool opal_common_crypt_keystore_next(DIR *directory, const char *label, char name[OPAL_CRYPT_KEY_LABEL_MAX + 1],
                                     uint16_t *version);

/* ---- records as text ---- */
/* Returns the length, < max; the text ends with a newline.  ERR_CONFIG for what
 * record_parse would refuse. */
int opal_common_crypt_keystore_record_write(const opal_common_crypt_keystore_record_t *record,
                                            char *text, size_t max);
/* Reads what record_write wrote, from the start of `text`; *used: how far. */
int opal_common_crypt_keystore_record_parse(const char *text, size_t bytes, size_t *used,
                                            opal_common_crypt_keystore_record_t *record);
void opal_common_crypt_hex_write(const uint8_t *bytes, size_t count, char *text);      /* ends with 0 */
bool opal_common_crypt_hex_read(const char *text, uint8_t *bytes, size_t count);        /* 2 x count digits */

/* ---- RFC 3394 by libcrypto, 256-bit keys ---- */
int opal_common_crypt_rfc3394_wrap(const uint8_t key[32], const uint8_t plain[32], uint8_t wrapped[40]);
int opal_common_crypt_rfc3394_unwrap(const uint8_t key[32], const uint8_t wrapped[40], uint8_t plain[32]);

/* ---- escrow ---- */
int opal_common_crypt_escrow_wrap(const uint8_t *spki, size_t spki_bytes,
                                  const uint8_t data_key[OPAL_CRYPT_DATA_KEY_BYTES],
                                  uint8_t escrow[OPAL_CRYPT_ESCROW_MAX], uint16_t *bytes);
int opal_common_crypt_escrow_unwrap(const char *private_pem, bool secret_on_netfs, const uint8_t *escrow,
                                    size_t bytes, uint8_t data_key[OPAL_CRYPT_DATA_KEY_BYTES],
                                    opal_common_crypt_why_t *why);

#endif
