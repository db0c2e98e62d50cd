/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The core in this process: secret memory and what a fork does to it, the provider, the limit of waiting.
 *
 * A forked child has zeros in place of the keys (crypt/base/fork.c).  When it opens a file, the core begins anew there;
 * files that its parent opened stay dead, which a generation shows.
 */
#include "lib/mpicrypt_file/reader.h"
#include "lib/mpicrypt_file/settings.h"

#include <pthread.h>
#include <stdatomic.h>

#include "opal/mca/aead/base/aead_base_choose.h"
#include "opal/mca/aead/openssl/aead_openssl.h"
#include "opal/mca/common/crypt/base/fork.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/thread.h"

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool started, start_watched, start_fips;
static atomic_uint start_generation;

/* ---- a fork waits for a start, so that the child finds all of it or nothing ---- */

static void start_before_fork(void) { pthread_mutex_lock(&start_lock); }

static void start_in_parent(void) { pthread_mutex_unlock(&start_lock); }

static void start_in_child(void) { start_lock = (pthread_mutex_t) PTHREAD_MUTEX_INITIALIZER; }

/* ---- starting ---- */

unsigned mpicrypt_start_generation(void) { return atomic_load(&start_generation); }

bool mpicrypt_start_foreign(const mpicrypt_file_t *file)
{
    return opal_crypt_forked() || file->born != atomic_load(&start_generation);
}

const opal_aead_module_t *mpicrypt_start_provider(void *arg, opal_aead_cipher_t cipher)
{
    static const opal_aead_candidate_t openssl = {&opal_aead_openssl_module, opal_aead_openssl_priority, opal_aead_openssl_is_fips};
    const opal_aead_module_t *module = NULL;
    opal_aead_why_t why = {.topic = NULL};

    (void) arg;
    return OPAL_AEAD_OK == opal_aead_base_choose(&openssl, 1, "openssl", cipher, start_fips, &module, &why) ? module : NULL;
}

static int start_failed(mpicrypt_file_error_t *error, const char *name, const char *reason)
{
    return mpicrypt_fail(error, MPICRYPT_FILE_ERR_SETUP, 0, MPICRYPT_FILE_NOWHERE, name, "%s", reason);
}

/* The provider becomes libcrypto's allocator, if nobody has used libcrypto yet; its ciphers depend on the library. */
static int start_locked(const char *name, mpicrypt_file_error_t *error)
{
    static const mpicrypt_settings_t nothing;

    if (!start_watched && 0 != pthread_atfork(start_before_fork, start_in_parent, start_in_child)) {
        return mpicrypt_fail(error, MPICRYPT_FILE_ERR_MEMORY, 0, MPICRYPT_FILE_NOWHERE, name, "out of memory");
    }
    start_watched = true;
    if (opal_crypt_forked()) {
        opal_crypt_fork_anew();
        opal_aead_openssl_anew();
        (void) atomic_fetch_add(&start_generation, 1);
    }
    if (started) {
        return MPICRYPT_FILE_OK;
    }
    opal_aead_openssl_take_over();
    start_fips = mpicrypt_settings(&nothing).fips;
    opal_crypt_why_t why = {.topic = NULL};
    int rc = opal_crypt_library_open(start_fips, &why);
    if (OPAL_CRYPT_OK != rc) {
        return mpicrypt_fail_refused(error, MPICRYPT_FILE_ERR_SETUP, rc, name, &why);
    }
    if (OPAL_AEAD_OK != opal_aead_openssl_init()) {
        return start_failed(error, name, "libcrypto has none of the ciphers of encrypted files");
    }
    void *first = opal_crypt_secmem_alloc(1);   /* from here on a fork is noticed */
    if (NULL == first) {
        return start_failed(error, name, "there is no memory for secret keys (ulimit -l)");
    }
    opal_crypt_secmem_free(first);
    opal_crypt_base_begin();                    /* it never ends: the process may open files at any time */
    ompi_common_cryptmpio_posix_on_wait(NULL, mpicrypt_settings_lock_timeout());
    started = true;
    return MPICRYPT_FILE_OK;
}

int mpicrypt_start(const char *name, mpicrypt_file_error_t *error)
{
    pthread_mutex_lock(&start_lock);
    int status = start_locked(name, error);
    pthread_mutex_unlock(&start_lock);
    return status;
}
