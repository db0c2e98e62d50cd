/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Loading libssl, isolated from the program's own symbols:
 *
 *     RTLD_LOCAL      no other calls resolve to it,
 *     RTLD_DEEPBIND   its own calls resolve to itself, and to libcrypto, first,
 *     RTLD_NODELETE   libcrypto calls it when the program ends.
 */
#include "libssl.h"
#include "library.h"
#include "secmem.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIPE_TRIES      8

/* The run time of these sanitizers aborts programs that use RTLD_DEEPBIND. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define APART 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define APART 0
#endif
#endif
#ifndef APART
#define APART RTLD_DEEPBIND
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT, context_once = PTHREAD_ONCE_INIT;
static OSSL_LIB_CTX *own_context;
static opal_crypt_libssl_t table;
static char failure[256];               /* empty: loaded */

static bool look_up(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);

    memcpy(function, &symbol, sizeof(symbol));      /* POSIX guarantees this */
    if (NULL == symbol) {
        snprintf(failure, sizeof(failure), "%s", dlerror());
    }
    return NULL != symbol;
}

static void load_libssl(void)
{
    void *library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | APART);
    bool whole = NULL != library;

    if (!whole) {
        snprintf(failure, sizeof(failure), "%s", dlerror());
        return;
    }
#define FIND(name) whole = whole && look_up(library, #name, &table.name);
    OPAL_CRYPT_LIBSSL(FIND)
#undef FIND
    if (whole && table.OPENSSL_version_major() < 3) {
        snprintf(failure, sizeof(failure), "it is not OpenSSL 3.0 or newer");
    }
}

int opal_crypt_libssl_load(const opal_crypt_libssl_t **libssl, opal_crypt_why_t *why)
{
    pthread_once(&once, load_libssl);
    if (0 != failure[0]) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "tls-library", "%s", failure);
    }
    *libssl = &table;
    return OPAL_CRYPT_OK;
}

static void make_own_context(void)
{
    OSSL_LIB_CTX *made = table.OSSL_LIB_CTX_new();

    own_context = NULL != made && NULL != table.OSSL_PROVIDER_load(made, "default") ? made : NULL;
}

int opal_crypt_libssl_context(OSSL_LIB_CTX **context, const char **properties, opal_crypt_why_t *why)
{
    const opal_crypt_library_t *library = opal_crypt_library();

    if (NULL == library) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_LIBRARY, "library", "TLS: OpenSSL has cleaned up");
    }
    *properties = library->properties;
    *context = library->context;
    if (NULL == library->properties) {
        pthread_once(&context_once, make_own_context);
        *context = own_context;
        if (NULL == own_context) {
            return opal_crypt_refuse(why, OPAL_CRYPT_ERR_LIBRARY, "library", "TLS: no provider");
        }
    }
    return OPAL_CRYPT_OK;
}

/* 3.5 may write them there; it does not tell whether it was built to do so. */
int opal_crypt_libssl_keylog(opal_crypt_why_t *why)
{
    return NULL != getenv("SSLKEYLOGFILE") && OpenSSL_version_num() >= 0x30500000L
               ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "tls-keylog", "SSLKEYLOGFILE") : OPAL_CRYPT_OK;
}

/* ---- wiping ---- */

/* How far [at, at + bytes) is covered from its beginning, once `block` is covered too. */
static uintptr_t covered_to(uintptr_t covered, const void *block, size_t bytes)
{
    const uintptr_t from = (uintptr_t) block;

    return from <= covered && from + bytes > covered ? from + bytes : covered;
}

/* OpenSSL frees an SSL object with secrets in it.  Just freed, its memory is what malloc returns for requests of this
 * size: take it again and wipe it.  This is not guaranteed: another thread may be faster. */
static void wipe_freed(uintptr_t at, size_t bytes)
{
    void *taken[WIPE_TRIES];
    uintptr_t covered = at;
    int count = 0;

    while (covered < at + bytes && count < WIPE_TRIES && NULL != (taken[count] = malloc(bytes))) {
        opal_crypt_wipe(taken[count], bytes);
        covered = covered_to(covered, taken[count++], bytes);
    }
    while (count > 0) {
        free(taken[--count]);
    }
}

/* Does libcrypto take its memory from malloc?  aead/openssl does, outside of its own calls: a component, or part of the same
 * library as this.  A program's allocator is unknown. */
static bool from_malloc(const opal_crypt_libssl_t *libssl)
{
    static const char ours[] = "/mca_aead_openssl.so";
    CRYPTO_malloc_fn from = NULL;
    void *address = NULL;
    Dl_info info, mine;

    libssl->CRYPTO_get_mem_functions(&from, NULL, NULL);
    memcpy(&address, &from, sizeof(address));
    if (from == libssl->CRYPTO_malloc) {
        return true;
    }
    if (0 == dladdr(address, &info) || NULL == info.dli_fname) {
        return false;
    }
    const char *name = strrchr(info.dli_fname, '/');
    return (NULL != name && 0 == strcmp(ours, name)) || (0 != dladdr(failure, &mine) && info.dli_fbase == mine.dli_fbase);
}

void opal_crypt_libssl_free(const opal_crypt_libssl_t *libssl, SSL *ssl)
{
    const uintptr_t at = (uintptr_t) ssl;
    const size_t bytes = from_malloc(libssl) ? malloc_usable_size(ssl) : 0;

    libssl->SSL_free(ssl);
    if (bytes > 0) {
        wipe_freed(at, bytes);
    }
}
