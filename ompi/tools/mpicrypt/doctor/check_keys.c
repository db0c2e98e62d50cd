/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Cipher, provider, keys, certificates: the same calls as a job makes, with
 * the parameters that a job here would have.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/pem.h>
#include <openssl/x509.h>

#include "check.h"

#include "opal/mca/aead/base/base.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/secret_file.h"

enum { SOON_DAYS = 14 };

/* ---- the provider ---- */

static bool check_provider(mpicrypt_report_t *report)
{
    opal_cryptproc_params_t *p = &opal_cryptproc_params;
    int cipher = opal_aead_aes_gcm(p->key_bits);
    opal_aead_why_t why = {0};
    int rc;

    if (cipher < 0) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "cipher", "Set crypt_key_bits to 128, 192 or 256.",
                            "crypt_key_bits is %u", p->key_bits);
        return false;
    }
    p->options.cipher = (opal_aead_cipher_t) cipher;
    rc = opal_aead_base_open_and_select(p->options.cipher, p->options.fips, &p->options.aead, &why);
    if (!mca_base_framework_is_open(&opal_aead_base_framework)) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "cipher", "Install ompi-crypt again on this node.",
                            "the aead framework cannot be opened");
        return false;
    }
    if (OPAL_SUCCESS != rc) {
        mpicrypt_report_why(report, MPICRYPT_FOUND_FAIL, "cipher", "help-opal-aead-base.txt", why.topic, why.detail);
        return false;
    }
    if (NULL != why.topic) {
        mpicrypt_report_why(report, MPICRYPT_FOUND_WARN, "cipher", "help-opal-aead-base.txt", why.topic, why.detail);
    }
    if (!opal_cryptproc_encrypts()) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "cipher", "Build ompi-crypt without --enable-no-crypto.",
                            "this build encrypts no messages");
        return false;
    }
    mpicrypt_report_add(report, MPICRYPT_FOUND_OK, "cipher", "", "AES-%u-GCM by %s (%s), self-test passed",
                        p->key_bits, p->options.aead->name, p->options.aead->version());
    return true;
}

/* ---- what the method uses, for display ---- */

static void describe_certificate(mpicrypt_report_t *report, const char *path)
{
    FILE *in = fopen(path, "r");
    X509 *leaf = NULL == in ? NULL : PEM_read_X509(in, NULL, NULL, NULL);
    char until[64] = "";
    int days = 0, seconds = 0;

    if (NULL != in) {
        fclose(in);
    }
    if (NULL != leaf && 1 == ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(leaf))) {
        struct tm end;
        if (1 == ASN1_TIME_to_tm(X509_get0_notAfter(leaf), &end)) {
            strftime(until, sizeof(until), ", valid until %Y-%m-%d %H:%M UTC", &end);
        }
        bool soon = days < SOON_DAYS;
        mpicrypt_report_add(report, soon ? MPICRYPT_FOUND_WARN : MPICRYPT_FOUND_OK, "key",
                            soon ? "Ask the CA for a new certificate before this one expires." : "", "x509, %s%s", path,
                            until);
    }
    X509_free(leaf);
}

static void describe(mpicrypt_report_t *report, const opal_crypt_local_t *local)
{
    const opal_crypt_options_t *options = &opal_cryptproc_params.options;
    opal_crypt_auth_t auth = opal_crypt_local_auth(local);
    char path[4096] = "";

    if (OPAL_CRYPT_AUTH_X509 == auth) {
        describe_certificate(report, options->x509_cert);
        return;
    }
    if (OPAL_CRYPT_AUTH_PSK == auth) {
        if (NULL != options->psk_file) {
            snprintf(path, sizeof(path), ", %s", options->psk_file);
        } else if (OPAL_CRYPT_OK == opal_crypt_home_path("psk", path + 2, sizeof(path) - 2, NULL)) {
            memcpy(path, ", ", 2);
        }
    }
    mpicrypt_report_add(report, MPICRYPT_FOUND_OK, "key", "", "%s%s", opal_crypt_auth_name(auth), path);
}

/* ---- as a job does it ---- */

opal_crypt_local_t *mpicrypt_check_keys(mpicrypt_report_t *report, uint32_t rank)
{
    opal_cryptproc_params_t *p = &opal_cryptproc_params;
    opal_crypt_identity_t identity = {.nspace = MPICRYPT_CHECK_NAMESPACE, .rank = rank};
    opal_crypt_local_t *local = NULL;
    opal_crypt_why_t why = {0};

    if (!check_provider(report)) {
        return NULL;
    }
    if (OPAL_CRYPT_OK != opal_crypt_node_identity(identity.boot_id, identity.node_nonce, &why)) {
        const bool hijacked = 0 == strcmp(why.topic, "node-hijacked");  /* a job seals everything then */

        mpicrypt_report_why(report, hijacked ? MPICRYPT_FOUND_WARN : MPICRYPT_FOUND_FAIL, "node", MPICRYPT_CORE_HELP, why.topic,
                            why.detail);
        if (!hijacked) {
            return NULL;
        }
        opal_crypt_random(identity.node_nonce, sizeof(identity.node_nonce));
    }
    p->options.scope_all = OPAL_CRYPTPROC_ALL == p->scope;
    p->options.agreed = "";
    if (OPAL_CRYPT_OK != opal_crypt_local_create(&p->options, &identity, &local, &why)) {
        mpicrypt_report_why(report, MPICRYPT_FOUND_FAIL, "key", MPICRYPT_CORE_HELP, why.topic, why.detail);
        return NULL;
    }
    const opal_crypt_why_t *warning = opal_crypt_local_warning(local);
    if (NULL != warning) {
        mpicrypt_report_why(report, MPICRYPT_FOUND_WARN, "key", MPICRYPT_CORE_HELP, warning->topic, warning->detail);
    } else {
        describe(report, local);
    }
    return local;
}
