/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Fetching OpenSSL's algorithms: a fetch costs more than hashing a record, so it happens once.
 *
 * A program may call us after libcrypto has cleaned up (MPI_Finalize in a function of atexit): then there is no
 * library any more, and its objects must not be touched.
 */
#include "library.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <openssl/conf.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/provider.h>
#include <openssl/rand.h>

#include "secmem.h"

#define SECURITY_BITS 256               /* the strength required for drawing keys */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static opal_crypt_library_t library;
static OSSL_PROVIDER *fips_provider, *base_provider;
static _Atomic(const opal_crypt_library_t *) opened;
static atomic_bool ended;               /* libcrypto has cleaned up, at exit */
static bool end_is_watched;

static void on_end(void)
{
    atomic_store(&ended, true);
}

bool opal_crypt_library_ended(void)
{
    return atomic_load(&ended);
}

static void release(void)
{
    if (atomic_load(&ended)) {
        goto forget;
    }
    EVP_KDF_free(library.hkdf);
    EVP_MAC_free(library.hmac);
    EVP_MD_free(library.sha256);
    OSSL_PROVIDER_unload(fips_provider);
    OSSL_PROVIDER_unload(base_provider);
    OSSL_LIB_CTX_free(library.context);
forget:
    library = (opal_crypt_library_t) {0};
    fips_provider = base_provider = NULL;
}

/* The FIPS provider needs the configuration written by fipsinstall (its own checksum); `base` supplies the encoders
 * that the FIPS provider lacks. */
static int fips_context(opal_crypt_why_t *why)
{
    char *configuration = CONF_get1_default_config_file();

    library.context = OSSL_LIB_CTX_new();
    if (NULL != library.context && NULL != configuration) {
        OSSL_LIB_CTX_load_config(library.context, configuration);
    }
    OPENSSL_free(configuration);
    if (NULL != library.context) {
        fips_provider = OSSL_PROVIDER_load(library.context, "fips");
        base_provider = OSSL_PROVIDER_load(library.context, "base");
    }
    if (NULL == fips_provider || NULL == base_provider) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "fips-no-provider",
                                 "%s", OpenSSL_version(OPENSSL_VERSION));
    }
    library.properties = "fips=yes";
    return OPAL_CRYPT_OK;
}

static int open_locked(bool fips, opal_crypt_why_t *why)
{
    const opal_crypt_library_t *now = atomic_load(&opened);
    int rc;

    if (NULL != now) {
        if (fips != (NULL != now->properties)) {
            return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "fips-too-late",
                                     "%s", OpenSSL_version(OPENSSL_VERSION));
        }
        return OPAL_CRYPT_OK;
    }
    end_is_watched = end_is_watched || (!atomic_load(&ended) && 1 == OPENSSL_atexit(on_end));
    if (!end_is_watched || atomic_load(&ended)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_LIBRARY, "library",
                                 "OpenSSL has cleaned up: the program ends");
    }
    rc = fips ? fips_context(why) : OPAL_CRYPT_OK;
    if (OPAL_CRYPT_OK == rc) {
        library.hkdf = EVP_KDF_fetch(library.context, "HKDF", library.properties);
        library.hmac = EVP_MAC_fetch(library.context, "HMAC", library.properties);
        library.sha256 = EVP_MD_fetch(library.context, "SHA256", library.properties);
        if (NULL == library.hkdf || NULL == library.hmac || NULL == library.sha256) {
            rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_LIBRARY, "library",
                                   "%s: HKDF, HMAC or SHA-256 cannot be fetched",
                                   OpenSSL_version(OPENSSL_VERSION));
        }
    }
    if (OPAL_CRYPT_OK != rc) {
        release();
        return rc;
    }
    atomic_store(&opened, &library);
    return OPAL_CRYPT_OK;
}

int opal_crypt_library_open(bool fips, opal_crypt_why_t *why)
{
    int rc;

    pthread_mutex_lock(&lock);
    rc = open_locked(fips, why);
    pthread_mutex_unlock(&lock);
    return rc;
}

const opal_crypt_library_t *opal_crypt_library(void)
{
    const opal_crypt_library_t *now = atomic_load(&opened);

    if (atomic_load_explicit(&ended, memory_order_relaxed)) {
        return NULL;
    }
    if (NULL == now) {
        opal_crypt_library_open(false, NULL);
        now = atomic_load(&opened);
    }
    return now;
}

int opal_crypt_draw(void *block, size_t bytes)
{
    const opal_crypt_library_t *now = opal_crypt_library();

    if (NULL == now) {
        return OPAL_CRYPT_ERR_LIBRARY;
    }
    if (NULL != now->properties) {
        return 1 == RAND_priv_bytes_ex(now->context, block, bytes, SECURITY_BITS) ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_LIBRARY;
    }
    opal_crypt_random(block, bytes);
    return OPAL_CRYPT_OK;
}

void opal_crypt_library_close(void)
{
    pthread_mutex_lock(&lock);
    atomic_store(&opened, NULL);
    release();
    pthread_mutex_unlock(&lock);
}
