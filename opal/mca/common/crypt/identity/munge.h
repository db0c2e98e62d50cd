/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * libmunge, loaded on demand rather than linked: one build serves sites with and without munge, and a process that
 * uses another method never loads the library.  Building needs its header; without it, the method is left out, and
 * refused by name.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPT_IDENTITY_MUNGE_H
#define OPAL_CRYPT_IDENTITY_MUNGE_H

#include "opal/mca/common/crypt/base/base.h"

#if __has_include(<munge.h>)
#define OPAL_CRYPT_HAVE_MUNGE 1
#include <munge.h>

typedef struct opal_crypt_munge {
    munge_ctx_t (*ctx_create)(void);
    void (*ctx_destroy)(munge_ctx_t context);
    munge_err_t (*ctx_set)(munge_ctx_t context, int option, ...);
    munge_err_t (*ctx_get)(munge_ctx_t context, int option, ...);
    const char *(*ctx_strerror)(munge_ctx_t context);
    munge_err_t (*encode)(char **credential, munge_ctx_t context, const void *payload, int bytes);
    munge_err_t (*decode)(const char *credential, munge_ctx_t context, void **payload, int *bytes,
                          uid_t *uid, gid_t *gid);
    const char *(*strerror)(munge_err_t error);
} opal_crypt_munge_t;

/* ERR_CONFIG, topic "munge-library", if it cannot be loaded. */
int opal_crypt_munge_load(const opal_crypt_munge_t **munge, opal_crypt_why_t *why);

#else
#define OPAL_CRYPT_HAVE_MUNGE 0
#endif

#endif
