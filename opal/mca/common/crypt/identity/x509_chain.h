/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Certificates: reading them, verifying a chain with the site's CA and CRLs, and deciding whether its subject may take
 * part.  Files are read by base/trust_file and parsed in memory, so that what was checked is what is used; a file
 * damaged in any part is refused as a whole.
 *
 * Threads: a trust may be used by any number at once.
 */
#ifndef OPAL_CRYPT_IDENTITY_X509_CHAIN_H
#define OPAL_CRYPT_IDENTITY_X509_CHAIN_H

#include "opal/mca/common/crypt/base/base.h"
#include "local.h"

#include <openssl/x509v3.h>

#pragma GCC visibility push(default)

#define OPAL_CRYPT_CHAIN_MAX    8       /* certificates, the leaf included */

typedef struct opal_crypt_trust {
    X509_STORE *store;
    bool crls;                          /* every CA of a chain must have a CRL */
} opal_crypt_trust_t;

/* The CA file, which `what` names in messages, and, unless NULL, the CRL file; both PEM.  allow_network and `warning` as in crypt/base/trust_file.h; an
 * existing warning is kept. */
int opal_crypt_trust_open(const char *ca, const char *what, const char *crl, bool allow_network,
                          opal_crypt_trust_t *trust, opal_crypt_why_t *warning, opal_crypt_why_t *why);
void opal_crypt_trust_close(opal_crypt_trust_t *trust);

/* The certificates of a PEM file, the leaf first. */
int opal_crypt_chain_read(const char *path, const char *what, bool allow_network, STACK_OF(X509) **chain,
                          opal_crypt_why_t *warning, opal_crypt_why_t *why);

/* | count 1 | length 4 | DER | ... : returns the bytes written, 0 if it does not fit. */
size_t opal_crypt_chain_pack(STACK_OF(X509) *chain, uint8_t *out, size_t capacity);

/* The reverse; *used gets the bytes taken.  NULL unless every certificate fills its length exactly. */
STACK_OF(X509) *opal_crypt_chain_parse(const uint8_t *in, size_t bytes, size_t *used);

void opal_crypt_chain_free(STACK_OF(X509) *chain);

/* Is the leaf valid at time `when`, under `trust`, for one of the key usages (KU_...)?  *anchor gets the certificate of `trust` in which the chain ends,
 * the caller's to free.  `whose` begins the detail ("the certificate of the peer"), `rc` is returned if it is not. */
int opal_crypt_chain_verify(const opal_crypt_trust_t *trust, STACK_OF(X509) *chain, int64_t when,
                            uint32_t usage, const char *whose, int rc, X509 **anchor, opal_crypt_why_t *why);

/* Are they the same authority: same name and same public key? */
bool opal_crypt_same_authority(X509 *a, X509 *b);

/* The subject as `openssl x509 -subject -nameopt RFC2253` prints it. */
void opal_crypt_subject_text(X509 *leaf, char *text, size_t text_bytes);

/* Does the subject match a pattern "CN=*.example,O=Site"?  Parts are compared one by one, in the order of RFC 2253, so
 * a * never extends beyond its part; several patterns are separated by ';'. */
bool opal_crypt_subject_matches(X509 *leaf, const char *patterns);

#pragma GCC visibility pop

#endif
