/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The keystore and the providers of this process.
 */
#include "cryptmpio_internal.h"

#include <pthread.h>

#include "opal/mca/aead/base/base.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/thread.h"
#include "ompi/mca/common/cryptmpi/cryptmpi.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static opal_cryptfile_keystore_t *keystore;
static bool keystore_tried, framework_open;
static opal_crypt_why_t no_fips;                /* why the requested FIPS 140 mode is not available */
static int users;

int ompi_common_cryptmpio_start(void)
{
    int rc = OMPI_SUCCESS;

    pthread_mutex_lock(&lock);
    /* Before anything else fetches OpenSSL's own algorithms.  On failure, files that need a key
     * are refused; if this component were missing instead, they might be written plain. */
    if (opal_cryptproc_params.options.fips) {
        no_fips = (opal_crypt_why_t) {0};
        opal_crypt_library_open(true, &no_fips);
    }
    if (!framework_open) {
        rc = mca_base_framework_open(&opal_aead_base_framework, 0);
        framework_open = OPAL_SUCCESS == rc;
    }
    if (OMPI_SUCCESS == rc && 0 == users++) {
        opal_crypt_base_begin();
        ompi_common_cryptmpio_posix_on_wait(ompi_common_cryptmpio_lock_waits, ompi_common_cryptmpio_params.lock_timeout);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

void ompi_common_cryptmpio_stop(void)
{
    pthread_mutex_lock(&lock);
    if (0 == --users) {
        opal_cryptfile_keystore_close(keystore);
        keystore = NULL;
        keystore_tried = false;
        if (!opal_crypt_forked()) {
            opal_crypt_base_finalize();
        }
        if (framework_open) {
            mca_base_framework_close(&opal_aead_base_framework);
            framework_open = false;
        }
    }
    pthread_mutex_unlock(&lock);
}

static const char *or_null(const char *text)
{
    return NULL == text || '\0' == *text ? NULL : text;
}

opal_cryptfile_keystore_t *ompi_common_cryptmpio_keystore(void)
{
    const ompi_common_cryptmpio_params_t *p = &ompi_common_cryptmpio_params;
    opal_crypt_why_t why = {0};

    pthread_mutex_lock(&lock);
    if (!keystore_tried) {
        const opal_cryptfile_keystore_options_t options = {
            .backend = (opal_cryptfile_keystore_backend_t) p->keystore,
            .directory = or_null(p->keystore_dir),
            .group = or_null(p->keystore_group),
            .log_file = or_null(p->keystore_log),
            .machine_key_file = or_null(p->machine_key),
            .secret_on_netfs = opal_cryptproc_params.options.secret_on_netfs,
            .pkcs11_module = or_null(p->pkcs11_module),
            .pkcs11_token = or_null(p->pkcs11_token),
            .pkcs11_pin_file = or_null(p->pkcs11_pin_file),
        };
        keystore_tried = true;
        if (NULL != no_fips.topic) {
            ompi_common_cryptmpio_show(NULL, &no_fips);
        } else if (OPAL_CRYPT_OK != opal_cryptfile_keystore_open(&options, &keystore, &why)) {
            keystore = NULL;
            ompi_common_cryptmpio_show(NULL, &why);
        }
    }
    pthread_mutex_unlock(&lock);
    return keystore;
}

/* Messages and files share a provider if it has the cipher and encrypts. */
const opal_aead_module_t *ompi_common_cryptmpio_provider(void *arg, opal_aead_cipher_t cipher)
{
    const opal_crypt_options_t *options = &opal_cryptproc_params.options;
    const opal_aead_module_t *module = NULL;
    opal_aead_why_t why = {0};

    (void) arg;
    if (NULL != no_fips.topic) {
        return NULL;                /* already reported by the keystore */
    }
    if ((ompi_common_cryptmpi_active() || opal_cryptproc_has_transport()) && opal_cryptproc_encrypts() && NULL != options->aead
        && 0 != (options->aead->ciphers & OPAL_AEAD_BIT(cipher))) {
        return options->aead;
    }
    if (OPAL_SUCCESS != opal_aead_base_select(NULL, cipher, options->fips, &module, &why)) {
        opal_aead_base_show(&why);
        return NULL;
    }
    return module;
}
