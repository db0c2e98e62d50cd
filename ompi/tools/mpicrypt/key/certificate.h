/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The certificates of an exchange: the recipient's, the sender's, and our own with its private key.
 */
#ifndef MPICRYPT_KEY_CERTIFICATE_H
#define MPICRYPT_KEY_CERTIFICATE_H

#include <stdio.h>

#include "envelope.h"

typedef enum { MPICRYPT_CERTIFICATE_ENCRYPTS, MPICRYPT_CERTIFICATE_SIGNS } mpicrypt_certificate_use_t;

/* The first certificate of a PEM file that only we or root can change; the caller frees it. */
int mpicrypt_certificate_read(const char *path, bool netfs, X509 **certificate, opal_crypt_why_t *why);

/* Is it valid now, of a type and strength that we use, and permitted to do this?  With `ca` (a file; NULL: none), issued by
 * that CA, too. */
int mpicrypt_certificate_check(X509 *certificate, mpicrypt_certificate_use_t use, const char *ca, bool netfs, opal_crypt_why_t *why);

/* A certificate and its private key, in a PEM file that is kept like a secret; the caller frees both. */
int mpicrypt_identity_read(const char *certificate, const char *key, bool netfs, mpicrypt_identity_t *identity, opal_crypt_why_t *why);
void mpicrypt_identity_free(mpicrypt_identity_t *identity);

/* "WHAT SUBJECT\n SHA-256 AB:CD..." for people to compare. */
void mpicrypt_certificate_print(FILE *out, const char *what, X509 *certificate);

#endif
