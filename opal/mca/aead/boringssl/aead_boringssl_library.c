/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * BoringSSL's libcrypto has hundreds of symbols named like OpenSSL's, none of them versioned.  Linked, or loaded
 * plainly, its calls to itself would end in an OpenSSL that the process already has.  So it is loaded here, by its
 * path, with
 *
 *     RTLD_LOCAL      no other calls resolve to it,
 *     RTLD_DEEPBIND   its own calls resolve to itself first,
 *     RTLD_NODELETE   its thread-local data has a destructor: it must stay.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdbool.h>

#include "aead_boringssl_library.h"

/* The run time of these sanitizers aborts programs that use RTLD_DEEPBIND. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CANNOT_BE_APART 1
#else
#define CANNOT_BE_APART 0
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static opal_aead_boringssl_library_t library;
static bool loaded;

static bool find(void *handle, const char *symbol, void *function)
{
    void *const address = dlsym(handle, symbol);

    *(void **) function = address;      /* as POSIX prescribes */
    return NULL != address;
}

static void load(void)
{
    void *handle;

    if (CANNOT_BE_APART) {
        return;
    }
    handle = dlopen(OPAL_AEAD_BORINGSSL_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND | RTLD_NODELETE);
    if (NULL == handle) {
        return;
    }
    loaded = find(handle, "EVP_aead_aes_128_gcm", &library.aes_128_gcm)
          && find(handle, "EVP_aead_aes_192_gcm", &library.aes_192_gcm)
          && find(handle, "EVP_aead_aes_256_gcm", &library.aes_256_gcm)
          && find(handle, "EVP_aead_chacha20_poly1305", &library.chacha20_poly1305)
          && find(handle, "EVP_AEAD_CTX_init", &library.init)
          && find(handle, "EVP_AEAD_CTX_cleanup", &library.cleanup)
          && find(handle, "EVP_AEAD_CTX_seal_scatter", &library.seal)
          && find(handle, "EVP_AEAD_CTX_open_gather", &library.open)
          && find(handle, "ERR_clear_error", &library.clear_error);
}

const opal_aead_boringssl_library_t *opal_aead_boringssl_library(void)
{
    pthread_once(&once, load);
    return loaded ? &library : NULL;
}
