/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The keystore: keys under labels, which wrap and unwrap the data keys of
 * files.  No function here returns a label's key (exchange.h does, for an
 * export); a backend may keep it in hardware,
 * or on a server.
 *
 *     data key 32 --wrap(label)--> blob, kept in the map --unwrap(label)--> data key 32
 *
 * Every grant and every refusal is logged before anything is returned; if the
 * log cannot be written, the request is refused.
 *
 * Threads: a keystore may be used by any thread, one call at a time inside.
 */
#ifndef OPAL_CRYPTFILE_KEYSTORE_KEYSTORE_H
#define OPAL_CRYPTFILE_KEYSTORE_KEYSTORE_H

#include "opal/mca/common/crypt/base/base.h"

#include <sys/types.h>
#include <time.h>

#pragma GCC visibility push(default)

#define OPAL_CRYPTFILE_UUID_BYTES       16
#define OPAL_CRYPTFILE_KEY_LABEL_MAX    64
#define OPAL_CRYPTFILE_DATA_KEY_BYTES   32
#define OPAL_CRYPTFILE_FINGERPRINT_BYTES 16
#define OPAL_CRYPTFILE_WRAPPED_MAX      1024
#define OPAL_CRYPTFILE_KEYSTORE_OWNERS  16
#define OPAL_CRYPTFILE_SPKI_MAX         800     /* an RSA-4096 public key has 550 bytes */
#define OPAL_CRYPTFILE_ESCROW_MAX       (1 + 8 + 512)

typedef enum {
    OPAL_CRYPTFILE_KEYSTORE_FILE = 1,           /* as in the blob */
    OPAL_CRYPTFILE_KEYSTORE_PKCS11 = 2,
    OPAL_CRYPTFILE_KEYSTORE_VAULT = 3
} opal_cryptfile_keystore_backend_t;

/* Letters, digits, '.', '_' and '-', not beginning with a dot; at most KEY_LABEL_MAX. */
bool opal_cryptfile_key_label_valid(const char *label);

/* The data key of a region, wrapped under a label. */
typedef struct opal_cryptfile_wrapped {
    uint16_t bytes;                     /* 0: not wrapped yet */
    uint8_t blob[OPAL_CRYPTFILE_WRAPPED_MAX];
} opal_cryptfile_wrapped_t;

/* Strings belong to the caller and are copied where needed.  NULL: default. */
typedef struct opal_cryptfile_keystore_options {
    opal_cryptfile_keystore_backend_t backend;
    const char *directory;          /* ~/.ompi-crypt/keys; holds the log for all backends, and vault.conf */
    const char *log_file;           /* DIRECTORY/log */
    const char *machine_key_file;   /* 64 hexadecimal digits on local storage; new keys are wrapped under it */
    const char *group;              /* "[OWNER:]GROUP": its members may read the keystore of OWNER (this user); `file` only */
    bool secret_on_netfs;
    const char *pkcs11_module;      /* path of the library */
    const char *pkcs11_token;       /* label of the token */
    const char *pkcs11_pin_file;
    time_t now;                     /* 0: the clock; tests set it */
} opal_cryptfile_keystore_options_t;

typedef struct opal_cryptfile_keystore opal_cryptfile_keystore_t;

int opal_cryptfile_keystore_open(const opal_cryptfile_keystore_options_t *options,
                                 opal_cryptfile_keystore_t **keystore,
                                 opal_crypt_why_t *why);
void opal_cryptfile_keystore_close(opal_cryptfile_keystore_t *keystore);           /* NULL allowed */

/* ---- for encrypted files ---- */

/* What this process may do under a label now. */
typedef enum {
    OPAL_CRYPTFILE_GRANT_NONE,
    OPAL_CRYPTFILE_GRANT_OPEN,      /* expired: decrypt only */
    OPAL_CRYPTFILE_GRANT_SEAL       /* both */
} opal_cryptfile_grant_t;

/* Check the rights without using a key, and without a line in the log. */
opal_cryptfile_grant_t opal_cryptfile_keystore_grant(opal_cryptfile_keystore_t *keystore,
                                                     const char *label);

/* A blob, and the destination of its data key (32 bytes). */
typedef struct opal_cryptfile_unwrap {
    const opal_cryptfile_wrapped_t *wrapped;
    uint8_t *data_key;
} opal_cryptfile_unwrap_t;

/* `uuid` (16 bytes) names the file in the log.  ERR_CONFIG with `why` when
 * refused; ERR_AUTH when a blob was not made under this label: *which.  Blobs
 * unwrapped together must be wrapped under one version of the label: one check
 * of the key and one line in the log serve for all, and one failure fails all. */
int opal_cryptfile_keystore_wrap(opal_cryptfile_keystore_t *keystore, const char *label,
                                 const uint8_t *uuid, const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES],
                                 opal_cryptfile_wrapped_t *wrapped, opal_crypt_why_t *why);
int opal_cryptfile_keystore_unwrap_all(opal_cryptfile_keystore_t *keystore, const char *label,
                                       const uint8_t *uuid, const opal_cryptfile_unwrap_t *blobs, size_t count,
                                       size_t *which, opal_cryptfile_grant_t *grant, opal_crypt_why_t *why);
/* Were two blobs wrapped under one version, by one backend, as far as they say? */
bool opal_cryptfile_wrapped_alike(const opal_cryptfile_wrapped_t *a, const opal_cryptfile_wrapped_t *b);

/* ---- for `mpicrypt key` ---- */

typedef struct opal_cryptfile_keystore_record {
    char label[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1];
    uint16_t version;               /* 1, then 2 ... with every rotation */
    unsigned bits;                  /* of an AES key: the only type there is */
    uint8_t fingerprint[OPAL_CRYPTFILE_FINGERPRINT_BYTES];
    int64_t created, not_after;     /* seconds since 1970; 0: no end */
    bool revoked;
    uint32_t changes;               /* the number of changes since its creation */
    unsigned owner_count;           /* 0: every user who can open the keystore */
    uint32_t owners[OPAL_CRYPTFILE_KEYSTORE_OWNERS];    /* user ids */
    uint16_t escrow_bytes;          /* 0: none */
    uint8_t escrow[OPAL_CRYPTFILE_SPKI_MAX];            /* recovery key, SubjectPublicKeyInfo */
} opal_cryptfile_keystore_record_t;

/* Why the newest version of a label, which is stored in *record, is not granted for sealing; NULL if it is, or if the
 * label does not exist. */
const char *opal_cryptfile_keystore_refusal(opal_cryptfile_keystore_t *keystore, const char *label,
                                            opal_cryptfile_keystore_record_t *record);

/* Keys as messages name them: "key 3f2a91c04d1e5b77 of 2026-03-01", and "lab, version 1 (key ... of ...)". */
enum { OPAL_CRYPTFILE_KEY_TEXT_BYTES = 48, OPAL_CRYPTFILE_RECORD_TEXT_BYTES = 160 };

const char *opal_cryptfile_key_text(const uint8_t fingerprint[OPAL_CRYPTFILE_FINGERPRINT_BYTES], int64_t created,
                                    char text[OPAL_CRYPTFILE_KEY_TEXT_BYTES]);
const char *opal_cryptfile_record_text(const opal_cryptfile_keystore_record_t *record, char text[OPAL_CRYPTFILE_RECORD_TEXT_BYTES]);

/* A recovery key for a record: read a PEM public key (RSA >= 2048, or P-256), check that
 * it is usable, and return its SPKI.  It is read as a trust file (crypt/base/trust_file.h):
 * a user who could change it could read the encrypted files. */
int opal_cryptfile_escrow_key(const opal_cryptfile_keystore_t *keystore, const char *public_pem, uint8_t spki[OPAL_CRYPTFILE_SPKI_MAX], uint16_t *bytes,
                              opal_crypt_why_t *why);

/* What to create, and what a rotation keeps from the previous version.  It always keeps
 * the recovery key, unless another is given. */
enum {
    OPAL_CRYPTFILE_KEYSTORE_NEW = 0,
    OPAL_CRYPTFILE_KEYSTORE_ROTATE = 1,
    OPAL_CRYPTFILE_KEYSTORE_KEEP_OWNERS = 2,
    OPAL_CRYPTFILE_KEYSTORE_KEEP_NOT_AFTER = 4
};

/* Create version 1 of record->label or, with ROTATE, the next version: not_after,
 * owners and escrow are as given or kept; the rest is filled in. */
int opal_cryptfile_keystore_new(opal_cryptfile_keystore_t *keystore, unsigned how,
                                opal_cryptfile_keystore_record_t *record,
                                opal_crypt_why_t *why);

/* Wrap those key files of a label that hold their key in the clear (backend `file`) under the
 * machine key; while one is set, they are refused until then.  *count: how many. */
int opal_cryptfile_keystore_protect(opal_cryptfile_keystore_t *keystore, const char *label,
                                    unsigned *count, opal_crypt_why_t *why);

/* Every version of every label, in no particular order.  `each` returns 0 to go on.  `bad` is
 * called for a record that cannot be read, with the reason; NULL: the list ends there. */
int opal_cryptfile_keystore_list(opal_cryptfile_keystore_t *keystore,
                                 int (*each)(const opal_cryptfile_keystore_record_t *record, void *arg),
                                 void (*bad)(const opal_crypt_why_t *why, void *arg), void *arg,
                                 opal_crypt_why_t *why);

/* The newest version that is not revoked (version 0), or a given one. */
int opal_cryptfile_keystore_find(opal_cryptfile_keystore_t *keystore, const char *label,
                                 uint16_t version, opal_cryptfile_keystore_record_t *record,
                                 opal_crypt_why_t *why);

/* Revoke this version (0: all versions), for encryption and decryption. */
int opal_cryptfile_keystore_revoke(opal_cryptfile_keystore_t *keystore, const char *label,
                                   uint16_t version, opal_crypt_why_t *why);

/* From now on, every data key wrapped under the label is also wrapped under this
 * recovery key (a PEM file with a public key: RSA >= 2048, or P-256). */
int opal_cryptfile_keystore_escrow(opal_cryptfile_keystore_t *keystore, const char *label,
                                   const char *public_pem, opal_crypt_why_t *why);

/* What a blob says of the key that it was wrapped under.  Nothing is decided by fingerprint and created. */
typedef struct opal_cryptfile_wrapped_by {
    opal_cryptfile_keystore_backend_t backend;
    uint16_t version;
    uint8_t fingerprint[OPAL_CRYPTFILE_FINGERPRINT_BYTES];
    int64_t created;                /* seconds since 1970 */
} opal_cryptfile_wrapped_by_t;

int opal_cryptfile_wrapped_parse(const opal_cryptfile_wrapped_t *wrapped, opal_cryptfile_wrapped_by_t *by);

/* Is this the data key in the blob, under the version of the label that it names?  The key is only compared, so that
 * version may be expired or revoked.  OK; ERR_AUTH: it is another; ERR_CONFIG: this keystore cannot tell. */
int opal_cryptfile_keystore_agrees(opal_cryptfile_keystore_t *keystore, const char *label, const uint8_t *uuid,
                                   const opal_cryptfile_wrapped_t *wrapped,
                                   const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES]);

/* Unwrap the data key from the escrow part of a blob with the recovery key (a PEM file
 * that is kept like a secret).  Needs no keystore, and proves nothing: anyone with the public
 * recovery key can have wrapped it. */
int opal_cryptfile_wrapped_recover(const opal_cryptfile_wrapped_t *wrapped, const char *private_pem,
                                   bool secret_on_netfs, uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES],
                                   opal_crypt_why_t *why);

#pragma GCC visibility pop

#endif
