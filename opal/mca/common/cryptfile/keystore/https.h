/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One request and its answer, in HTTP/1.0, inside TLS with one server whose certificate a named CA has issued; or through
 * the Unix socket of a process of root or of this user.  The bytes are in secret memory, and copied nowhere but to libssl,
 * which wipes what it has delivered.  No proxy, no redirect, no cookie; one connection for each request.
 *
 * Threads: one at a time.
 */
#ifndef OPAL_CRYPTFILE_KEYSTORE_HTTPS_H
#define OPAL_CRYPTFILE_KEYSTORE_HTTPS_H

#include "opal/mca/common/crypt/base/base.h"
#include "opal/mca/common/crypt/base/patience.h"

/* NULL where not given. */
typedef struct opal_cryptfile_https_to {
    const char *host, *port;            /* a name or an address, without brackets */
    const char *socket;                 /* or the path of a Unix socket */
    const char *ca;                     /* PEM, read as a trust file */
    const char *certificate, *key;      /* of the client; PEM.  The key is read as a secret file */
    bool allow_network;                 /* accept these files on network file systems */
} opal_cryptfile_https_to_t;

typedef struct opal_cryptfile_https opal_cryptfile_https_t;

/* Load libssl and the certificates; nothing is sent.  `to` must stay. */
int opal_cryptfile_https_open(const opal_cryptfile_https_to_t *to, opal_cryptfile_https_t **https, opal_crypt_why_t *why);
void opal_cryptfile_https_close(opal_cryptfile_https_t *https);         /* NULL allowed */

typedef struct opal_cryptfile_https_answer {
    char *bytes;                        /* the caller's, secret memory */
    size_t max;
    unsigned status;                    /* set from here on */
    bool sent;                          /* something of the request was: the server may have carried it out */
    char *body;                         /* in `bytes` */
    size_t body_bytes;
} opal_cryptfile_https_answer_t;

/* ERR_PEER: there was no answer, or not all of it, and there may be one to another try.  ERR_CONFIG: not to be tried again.
 * The detail of `why`, topic "keystore-vault", does not name the server. */
int opal_cryptfile_https_exchange(opal_cryptfile_https_t *https, const char *request, size_t bytes,
                                  opal_cryptfile_https_answer_t *answer, opal_crypt_patience_t *patience, opal_crypt_why_t *why);

/* Split what has arrived into status and body.  False: it is no answer of HTTP, or (unless `ended`) not all of it yet. */
bool opal_cryptfile_https_split(opal_cryptfile_https_answer_t *answer, size_t got, bool ended);

#endif
