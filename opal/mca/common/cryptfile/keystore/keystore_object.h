/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The inside of the keystore: the interface of a backend.  A backend stores records and
 * wraps; access rights (cryptfile/keystore/keystore.c), the log and the blob
 * (cryptfile/keystore/blob.c) are the same for all.
 */
#ifndef OPAL_CRYPTFILE_KEYSTORE_KEYSTORE_OBJECT_H
#define OPAL_CRYPTFILE_KEYSTORE_KEYSTORE_OBJECT_H

#include "keystore.h"
#include "opal/mca/common/crypt/base/secret_file.h"

#include <dirent.h>
#include <pthread.h>

#define OPAL_CRYPTFILE_RFC3394_BYTES    (OPAL_CRYPTFILE_DATA_KEY_BYTES + 8)
#define OPAL_CRYPTFILE_TRANSIT_BYTES    (12 + OPAL_CRYPTFILE_DATA_KEY_BYTES + 16)       /* AES-GCM, of a key server */
#define OPAL_CRYPTFILE_RECORD_TEXT_MAX  4096
#define OPAL_CRYPTFILE_BLOB_WRAPPED_AT  30      /* in a blob: the wrapped key, as the backend makes it */
#define OPAL_CRYPTFILE_KNOWN            "ompi-crypt fingerprint 1"      /* wrapped to make a fingerprint */
#define OPAL_CRYPTFILE_KNOWN_BYTES      24      /* no data key has this length */

typedef struct opal_cryptfile_keystore_ops {
    const char *name;
    bool server;                    /* a server decides at each unwrap whether it is granted: no record is asked for before */
    int (*open)(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_options_t *options,
                opal_crypt_why_t *why);
    void (*close)(opal_cryptfile_keystore_t *keystore);

    /* Call `each` for every record of `label` (NULL: of all).  A nonzero return
     * stops and is returned; so does a record that cannot be read, or an attacker
     * could make an older version the newest by damaging the newest.  With `bad`,
     * which is for lists, that is called for such a record instead. */
    int (*walk)(opal_cryptfile_keystore_t *keystore, const char *label,
                int (*each)(const opal_cryptfile_keystore_record_t *record, void *arg),
                void (*bad)(const opal_crypt_why_t *why, void *arg), void *arg, opal_crypt_why_t *why);
    /* One record, checked to be that of this label and version. */
    int (*read)(opal_cryptfile_keystore_t *keystore, const char *label, uint16_t version,
                opal_cryptfile_keystore_record_t *record, opal_crypt_why_t *why);
    /* Create a key and its record, whose fingerprint is filled in; fails if one exists. */
    int (*create)(opal_cryptfile_keystore_t *keystore, opal_cryptfile_keystore_record_t *record,
                  opal_crypt_why_t *why);
    /* Change the record; the key stays.  NULL: not here. */
    int (*update)(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                  opal_crypt_why_t *why);

    /* Under the record's key: RFC 3394, or (vault) TRANSIT_BYTES.  unwrap: ERR_AUTH if blob *which does not fit. */
    int (*wrap)(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES], uint8_t *wrapped, opal_crypt_why_t *why);
    int (*unwrap)(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                  const opal_cryptfile_unwrap_t *blobs, size_t count, size_t *which, opal_crypt_why_t *why);
    /* cryptfile/keystore/keystore.h; NULL: this backend has no files. */
    int (*protect)(opal_cryptfile_keystore_t *keystore, const char *label, unsigned *count,
                   opal_crypt_why_t *why);
    /* Remove every version, the oldest first, and what an interrupted change left.  NULL: the backend has no files. */
    int (*remove)(opal_cryptfile_keystore_t *keystore, const char *label, unsigned *count, opal_crypt_why_t *why);
} opal_cryptfile_keystore_ops_t;

struct opal_cryptfile_keystore {
    const opal_cryptfile_keystore_ops_t *ops;
    opal_cryptfile_keystore_backend_t backend;
    pthread_mutex_t lock;
    char *directory;
    const opal_crypt_secret_group_t *group;     /* NULL: it is ours alone */
    opal_crypt_secret_group_t group_space;
    bool of_another;                /* a group's, or (vault) a site's, and this user does not own it */
    bool secret_on_netfs;
    time_t now;                     /* 0: the clock */
    int log_fd;
    int change_fd;                  /* the file that is locked for a change; -1: without locks */
    uint8_t *machine_key;           /* secret memory, or NULL */
    bool keeps;                     /* in a call that wraps or unwraps: what `file` reads is kept in `kept` until it ends */
    struct opal_cryptfile_key_file *kept;
    void *token;                    /* pkcs11, vault: its state */
};

extern const opal_cryptfile_keystore_ops_t opal_cryptfile_keystore_file_ops;
extern const opal_cryptfile_keystore_ops_t opal_cryptfile_keystore_pkcs11_ops;
extern const opal_cryptfile_keystore_ops_t opal_cryptfile_keystore_vault_ops;

/* ---- with the lock held ---- */
/* The record of a version, or (0) the newest that may be used. */
int opal_cryptfile_keystore_look_up(opal_cryptfile_keystore_t *keystore, const char *label, uint16_t version,
                                    bool revoked_too, opal_cryptfile_keystore_record_t *record,
                                    opal_crypt_why_t *why);
/* *refusal: why it is not GRANT_SEAL. */
opal_cryptfile_grant_t opal_cryptfile_keystore_grant_of(const opal_cryptfile_keystore_t *keystore,
                                                        const opal_cryptfile_keystore_record_t *record,
                                                        const char **refusal);

/* Is this user an owner of the key? */
bool opal_cryptfile_keystore_owns(const opal_cryptfile_keystore_record_t *record);

/* ---- log: one line ---- */
int opal_cryptfile_keystore_log_open(opal_cryptfile_keystore_t *keystore, const char *path,
                                     opal_crypt_why_t *why);
/* `refusal` NULL: granted. */
int opal_cryptfile_keystore_log(opal_cryptfile_keystore_t *keystore, const char *verb, const char *label,
                                unsigned version, const uint8_t *uuid, const char *refusal,
                                opal_crypt_why_t *why);
/* A change is logged as granted before it is made, so that none is missing from the log.  One that then fails gets a
 * second line; returns `rc`. */
int opal_cryptfile_keystore_log_end(opal_cryptfile_keystore_t *keystore, const char *verb, const char *label,
                                    unsigned version, int rc);

/* ---- one process at a time changes a keystore (cryptfile/keystore/lock.c) ---- */
/* Keep other processes, and this one's other threads, from it until `changed`; refuses an invalid label (NULL: of any). */
int opal_cryptfile_keystore_change(opal_cryptfile_keystore_t *keystore, const char *label, opal_crypt_why_t *why);
void opal_cryptfile_keystore_changed(opal_cryptfile_keystore_t *keystore);

/* ---- the keystore's directory (cryptfile/keystore/directory.c) ---- */
/* Whose it is, and that nobody else can write to it; with a group, `fd` is not O_PATH. */
int opal_cryptfile_keystore_directory_check(const opal_crypt_secret_group_t *group, int fd, const char *path, opal_crypt_why_t *why);

/* ---- the directory of the backend `file` ---- */
int opal_cryptfile_keystore_directory(const opal_cryptfile_keystore_t *keystore, DIR **directory,
                                      opal_crypt_why_t *why);
/* The next key file of `label` (NULL: of any); false at the end. */
bool opal_cryptfile_keystore_next(DIR *directory, const char *label, char name[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1],
                                  uint16_t *version);

/* ---- records as text ---- */
/* Returns the length, < max; the text ends with a newline.  ERR_CONFIG for a record
 * that record_parse would refuse. */
int opal_cryptfile_keystore_record_write(const opal_cryptfile_keystore_record_t *record,
                                         char *text, size_t max);
/* Reads what record_write wrote, from the start of `text`; *used: bytes read. */
int opal_cryptfile_keystore_record_parse(const char *text, size_t bytes, size_t *used,
                                         opal_cryptfile_keystore_record_t *record);

/* ---- fingerprints (cryptfile/keystore/fingerprint.c) ---- */
/* From RFC 3394 of OPAL_CRYPTFILE_KNOWN under a label's key, which a token makes; or from the key itself. */
int opal_cryptfile_fingerprint_make(const uint8_t known[OPAL_CRYPTFILE_KNOWN_BYTES + 8], uint8_t fingerprint[OPAL_CRYPTFILE_FINGERPRINT_BYTES]);
int opal_cryptfile_fingerprint_of_key(const uint8_t key[32], uint8_t fingerprint[OPAL_CRYPTFILE_FINGERPRINT_BYTES]);

/* ---- RFC 3394 by libcrypto, 256-bit keys ---- */
int opal_cryptfile_rfc3394_known(const uint8_t key[32], uint8_t wrapped[OPAL_CRYPTFILE_KNOWN_BYTES + 8]);
int opal_cryptfile_rfc3394_wrap(const uint8_t key[32], const uint8_t plain[32], uint8_t wrapped[40]);
int opal_cryptfile_rfc3394_unwrap(const uint8_t key[32], const uint8_t wrapped[40], uint8_t plain[32]);

/* ---- escrow ---- */
int opal_cryptfile_escrow_wrap(const uint8_t *spki, size_t spki_bytes,
                               const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES],
                               uint8_t escrow[OPAL_CRYPTFILE_ESCROW_MAX], uint16_t *bytes);
int opal_cryptfile_escrow_unwrap(const char *private_pem, bool secret_on_netfs, const uint8_t *escrow,
                                 size_t bytes, uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES],
                                 opal_crypt_why_t *why);

#endif
