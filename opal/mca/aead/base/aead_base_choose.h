/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The rules for choosing a provider, without Open MPI.  aead_base_select.c applies them to the components that the
 * framework opened.
 */
#ifndef OPAL_AEAD_BASE_CHOOSE_H
#define OPAL_AEAD_BASE_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>

#include "opal/mca/aead/aead_module.h"

/* Why there is no provider.  `topic` names an entry of help-opal-aead-base.txt, `detail` fills its %s.  After a
 * success `topic` is NULL, or "passed over" if a better provider failed its self-test. */
typedef struct opal_aead_why {
    const char *topic;
    char detail[768];
} opal_aead_why_t;

typedef struct opal_aead_candidate {
    const opal_aead_module_t *module;
    int (*priority)(opal_aead_cipher_t cipher);     /* < 0: not usable */
    int (*is_fips)(void);                           /* NULL: never */
} opal_aead_candidate_t;

/* `wanted`: a provider's name, or NULL, "" or "auto": the one of highest priority (of equals the first) that passes
 * its self-test.  One that fails is never chosen, not even by name.  With `fips`, only one that runs a FIPS 140
 * validated module.  OPAL_AEAD_OK or OPAL_AEAD_ERROR, `why` is always filled. */
int opal_aead_base_choose(const opal_aead_candidate_t *candidates, size_t count,
                          const char *wanted, opal_aead_cipher_t cipher, bool fips,
                          const opal_aead_module_t **module, opal_aead_why_t *why);

/* Known answers for one cipher: seals as expected, opens again, refuses a forgery and wipes.  OPAL_AEAD_OK or
 * OPAL_AEAD_ERROR. */
int opal_aead_base_selftest(const opal_aead_module_t *module, opal_aead_cipher_t cipher);

bool opal_aead_base_is_auto(const char *wanted);

#endif
