/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The message in which keys travel: docs/key-exchange.rst, "The message".
 *
 *     write   text --seal(recipient)--> AuthEnvelopedData --sign(certificate)--> SignedData
 *     read    check (this tree's own reader)  ->  verify the signature  ->  open
 *
 * libcrypto's CMS reads a message only once `check` has found its form to be as documented.
 */
#ifndef MPICRYPT_KEY_ENVELOPE_H
#define MPICRYPT_KEY_ENVELOPE_H

#include "opal/mca/common/crypt/base/base.h"

#include <openssl/types.h>

#define MPICRYPT_ENVELOPE_MAX   ((size_t) 1 << 20)

enum {
    MPICRYPT_SCRYPT_SALT_BYTES = 16,
    MPICRYPT_SCRYPT_ID_BYTES = 30,      /* | 'ompi-crypt' 10 | 1 1 | n 1 | r 1 | p 1 | salt 16 | */
    MPICRYPT_SCRYPT_SALT_AT = 14,
    MPICRYPT_KEK_BYTES = 32
};

typedef struct mpicrypt_scrypt {
    unsigned n, r, p;                   /* N = 2^n */
    uint8_t salt[MPICRYPT_SCRYPT_SALT_BYTES];
} mpicrypt_scrypt_t;

typedef enum { MPICRYPT_TO_PASSPHRASE = 1, MPICRYPT_TO_RSA, MPICRYPT_TO_EC } mpicrypt_recipient_kind_t;

/* What `check` found; pointers lead into the message. */
typedef struct mpicrypt_envelope {
    mpicrypt_recipient_kind_t kind;
    const uint8_t *inner;               /* the ContentInfo of the AuthEnvelopedData */
    size_t inner_bytes, cipher_bytes;
    mpicrypt_scrypt_t scrypt;           /* TO_PASSPHRASE */
    const uint8_t *recipient;           /* TO_RSA, TO_EC: its issuerAndSerialNumber */
    size_t recipient_bytes;
    const uint8_t *certificate;         /* of the signer; NULL: not signed */
    size_t certificate_bytes;
} mpicrypt_envelope_t;

/* ERR_AUTH with `why`, topic "envelope-form", unless the message has exactly the documented form.  Nothing is decrypted. */
int mpicrypt_envelope_check(const uint8_t *message, size_t bytes, mpicrypt_envelope_t *envelope, opal_crypt_why_t *why);

/* Are these bounds of scrypt acceptable? */
bool mpicrypt_scrypt_sound(const mpicrypt_scrypt_t *scrypt);
void mpicrypt_scrypt_id(const mpicrypt_scrypt_t *scrypt, uint8_t id[MPICRYPT_SCRYPT_ID_BYTES]);

/* Whom a message is for: a certificate, or a key derived from a passphrase. */
typedef struct mpicrypt_recipient {
    X509 *certificate;
    const uint8_t *kek;                 /* MPICRYPT_KEK_BYTES, secret memory */
    mpicrypt_scrypt_t scrypt;           /* from which kek came */
} mpicrypt_recipient_t;

/* A certificate and its private key. */
typedef struct mpicrypt_identity {
    X509 *certificate;
    EVP_PKEY *key;
} mpicrypt_identity_t;

/* A message; free it with OPENSSL_free.  It is not secret. */
typedef struct mpicrypt_message {
    uint8_t *bytes;
    size_t count;
} mpicrypt_message_t;

int mpicrypt_envelope_seal(const char *text, size_t bytes, const mpicrypt_recipient_t *recipient, mpicrypt_message_t *message,
                           opal_crypt_why_t *why);
/* Replaces the message by the signed one. */
int mpicrypt_envelope_sign(const mpicrypt_identity_t *signer, mpicrypt_message_t *message, opal_crypt_why_t *why);

/* The signer of a signed message, whose signature is verified here; the caller decides whether to trust the certificate,
 * and frees it.  ERR_AUTH. */
int mpicrypt_envelope_verify(const uint8_t *message, size_t bytes, const mpicrypt_envelope_t *envelope, X509 **signer,
                             opal_crypt_why_t *why);

/* Is the message for this certificate? */
bool mpicrypt_envelope_is_for(const mpicrypt_envelope_t *envelope, X509 *certificate);

/* The text, in secret memory that the caller frees; with `kek`, or the identity that the message is for.  ERR_AUTH: the key or
 * passphrase is another one, or the message was changed. */
int mpicrypt_envelope_open(const mpicrypt_envelope_t *envelope, const uint8_t *kek, const mpicrypt_identity_t *identity,
                           char **text, size_t *text_bytes, opal_crypt_why_t *why);

#endif
