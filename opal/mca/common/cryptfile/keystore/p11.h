/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A login session with a PKCS#11 token: its library loaded, the token found by
 * its label, the user logged in.  The PIN is read from a file and is passed
 * only to C_Login.
 */
#ifndef OPAL_CRYPTFILE_KEYSTORE_P11_H
#define OPAL_CRYPTFILE_KEYSTORE_P11_H

#include "keystore_object.h"

#ifdef OMPI_CRYPT_HAVE_PKCS11

#include <p11-kit-1/p11-kit/pkcs11.h>

typedef struct opal_cryptfile_p11 {
    CK_FUNCTION_LIST *call;
    CK_SESSION_HANDLE session;
    bool in_session;
} opal_cryptfile_p11_t;

int opal_cryptfile_p11_open(const opal_cryptfile_keystore_options_t *options,
                            opal_cryptfile_p11_t **token, opal_crypt_why_t *why);
/* NULL is allowed. */
void opal_cryptfile_p11_close(opal_cryptfile_p11_t *token);

/* The objects that have these attributes, `max` at most. */
int opal_cryptfile_p11_find(opal_cryptfile_p11_t *token, CK_ATTRIBUTE *attributes, CK_ULONG count,
                            CK_OBJECT_HANDLE *handles, CK_ULONG max, CK_ULONG *found,
                            opal_crypt_why_t *why);

/* Refuse because the token's library returned rv; returns OPAL_CRYPT_ERR_CONFIG. */
int opal_cryptfile_p11_refuse(opal_crypt_why_t *why, const char *what, CK_RV rv);

#endif

#endif
