/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Loading libmunge.
 */
#include "munge.h"

#if OPAL_CRYPT_HAVE_MUNGE

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static opal_crypt_munge_t loaded;
static char failure[256];               /* empty: loaded */

/* POSIX guarantees that a symbol's address fits a pointer to function. */
static bool find_symbol(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);

    memcpy(function, &symbol, sizeof(symbol));
    if (NULL == symbol) {
        strncpy(failure, dlerror(), sizeof(failure) - 1);
    }
    return NULL != symbol;
}

static void load_munge(void)
{
    void *library = dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL);

    if (NULL == library) {
        strncpy(failure, dlerror(), sizeof(failure) - 1);
        return;
    }
    if (!find_symbol(library, "munge_ctx_create", &loaded.ctx_create)
        || !find_symbol(library, "munge_ctx_destroy", &loaded.ctx_destroy)
        || !find_symbol(library, "munge_ctx_set", &loaded.ctx_set)
        || !find_symbol(library, "munge_ctx_get", &loaded.ctx_get)
        || !find_symbol(library, "munge_ctx_strerror", &loaded.ctx_strerror)
        || !find_symbol(library, "munge_encode", &loaded.encode)
        || !find_symbol(library, "munge_decode", &loaded.decode)
        || !find_symbol(library, "munge_strerror", &loaded.strerror)) {
        dlclose(library);
    }
}

int opal_crypt_munge_load(const opal_crypt_munge_t **munge, opal_crypt_why_t *why)
{
    pthread_once(&once, load_munge);
    if (0 != failure[0]) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "munge-library", "%s", failure);
    }
    *munge = &loaded;
    return OPAL_CRYPT_OK;
}

#else

/* ISO C requires a declaration in every file. */
typedef int opal_crypt_munge_is_left_out_t;

#endif
