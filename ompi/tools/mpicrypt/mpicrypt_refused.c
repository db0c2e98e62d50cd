/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One line for a refusal of the core; libmpicrypt_file has the sentences.
 */
#include "lib/mpicrypt_file/sentences.h"
#include "ompi/tools/mpicrypt/key/keystore.h"

int mpicrypt_refused(const char *what, int rc, const opal_crypt_why_t *why)
{
    const char *sentence = mpicrypt_sentence(why->topic);

    if (NULL != sentence) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s: %s", what, sentence, why->detail);
    }
    return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", what, NULL == why->topic ? opal_crypt_strerror(rc) : why->detail);
}
