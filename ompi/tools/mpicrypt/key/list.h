/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt key list, key info.
 */
#ifndef MPICRYPT_KEY_LIST_H
#define MPICRYPT_KEY_LIST_H

#include "keystore.h"

enum { MPICRYPT_KEY_SHOWN_BYTES = 8 };          /* of a fingerprint, where there is little space */

/* YYYY-MM-DD, UTC; "-" for 0. */
const char *mpicrypt_key_day(int64_t seconds, char text[32]);

/* A table of all keys; with a label, every version of it in detail.  Keys that cannot be read are named on stderr. */
int mpicrypt_key_list(opal_cryptfile_keystore_t *keystore, const char *label, bool json);

#endif
