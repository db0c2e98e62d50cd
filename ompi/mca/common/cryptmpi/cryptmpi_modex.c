/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Our record goes out, and those of others come in, through Open MPI's modex.
 * The key under which it is published is that of a component struct of our
 * own, because pml/crypt wears its host's name for a moment (see there).
 */
#include "cryptmpi.h"
#include "cryptmpi_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/show_help.h"
#include "ompi/constants.h"
#include "ompi/runtime/mpiruntime.h"

#define CORE_HELP "help-opal-common-crypt.txt"

static mca_base_component_t modex_key = {
    OMPI_MCA_BASE_VERSION_2_1_0("crypt", 1, 0, 0),
    .mca_component_name = "record",
    MCA_BASE_MAKE_VERSION(component, 1, 0, 0),
};

static mca_base_component_t renewal_key = {
    OMPI_MCA_BASE_VERSION_2_1_0("crypt", 1, 0, 0),
    .mca_component_name = "renewal",
    MCA_BASE_MAKE_VERSION(component, 1, 0, 0),
};

static opal_common_crypt_local_t *self;
static const mca_pml_base_module_t *host_module;
static const char *host_name;
#if OMPI_MAJOR_VERSION < 5
bool ompi_common_cryptmpi_threads = false;
#endif

/* How a process is named in records: the job's number, and the rank in it. */
static void name_of(const opal_process_name_t *name, char text[32])
{
    snprintf(text, 32, "%" PRIu32, (uint32_t) name->jobid);
}

static int choose_cipher(ompi_common_cryptmpi_params_t *p)
{
    switch (p->key_bits) {
    case 128:
        p->options.cipher = OPAL_AEAD_AES_128_GCM;
        return OMPI_SUCCESS;
    case 192:
        p->options.cipher = OPAL_AEAD_AES_192_GCM;
        return OMPI_SUCCESS;
    case 256:
        p->options.cipher = OPAL_AEAD_AES_256_GCM;
        return OMPI_SUCCESS;
    default:
        opal_show_help("help-ompi-common-cryptmpi.txt", "bad-key-bits", true, p->key_bits);
        return OMPI_ERR_BAD_PARAM;
    }
}

static int publish(void)
{
    size_t bytes;
    const uint8_t *record = opal_common_crypt_local_record(self, &bytes);
    int rc;

    OPAL_MODEX_SEND(rc, OMPI_COMMON_CRYPTMPI_MODEX_SCOPE, &modex_key, (void *) record, bytes);
    return rc;
}

int ompi_common_cryptmpi_start(const char *agreed)
{
    ompi_common_cryptmpi_params_t *p = &ompi_common_cryptmpi_params;
    opal_common_crypt_identity_t identity = {.rank = OPAL_PROC_MY_NAME.vpid};
    const opal_common_crypt_why_t *warning;
    opal_common_crypt_why_t why = {0};
    char nspace[32];
    int rc = choose_cipher(p);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    rc = ompi_common_cryptmpi_provider_start();
    rc = OMPI_SUCCESS == rc ? ompi_common_cryptmpi_report_start() : rc;
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    p->options.scope_all = OMPI_COMMON_CRYPTMPI_ALL == p->scope;
    p->options.agreed = agreed;
    name_of(&OPAL_PROC_MY_NAME, nspace);
    identity.nspace = nspace;
    identity.instance = opal_common_crypt_instance();
    rc = opal_common_crypt_node_identity(identity.boot_id, identity.node_nonce, &why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_common_crypt_local_create(&p->options, &identity, &self, &why);
    }
    if (OPAL_CRYPT_OK != rc) {
        ompi_common_cryptmpi_show(CORE_HELP, why.topic, why.detail);
        return OMPI_ERROR;
    }
    if (opal_common_crypt_no_crypto() && 0 == OPAL_PROC_MY_NAME.vpid) {
        opal_show_help("help-ompi-common-cryptmpi.txt", "no-crypto", true);
    }
    opal_common_crypt_threads(&opal_uses_threads);
    ompi_common_cryptmpi_peers_start();
    ompi_common_cryptmpi_device_start();
    warning = opal_common_crypt_local_warning(self);
    if (NULL != warning && 0 == OPAL_PROC_MY_NAME.vpid) {
        ompi_common_cryptmpi_show(CORE_HELP, warning->topic, warning->detail);
    }
    return publish();
}

void ompi_common_cryptmpi_stop(void)
{
    if (NULL != self) {
        ompi_common_cryptmpi_peers_stop();
        opal_common_crypt_local_destroy(self);
        self = NULL;
    }
    ompi_common_cryptmpi_comms_stop();
    ompi_common_cryptmpi_generations_stop();
    opal_common_crypt_finalize();
    ompi_common_cryptmpi_provider_stop();
}

opal_common_crypt_local_t *ompi_common_cryptmpi_local(void)
{
    return self;
}

void ompi_common_cryptmpi_set_host(const mca_pml_base_module_t *host, const char *name)
{
    host_module = host;
    host_name = name;
}

const char *ompi_common_cryptmpi_host_name(void)
{
    return host_name;
}

const mca_pml_base_module_t *ompi_common_cryptmpi_host(void)
{
    return host_module;
}

int ompi_common_cryptmpi_modex_renew(int64_t now)
{
    opal_common_crypt_why_t why = {0};
    const uint8_t *fresh;
    size_t bytes;
    int rc;

    if (OPAL_CRYPT_OK != opal_common_crypt_local_renew(self, now, &fresh, &bytes, &why)) {
        ompi_common_cryptmpi_show_here(CORE_HELP, why.topic, why.detail);
        return OMPI_ERROR;
    }
    if (0 == bytes) {
        return OMPI_SUCCESS;
    }
    OPAL_MODEX_SEND(rc, OMPI_COMMON_CRYPTMPI_MODEX_SCOPE, &renewal_key, (void *) fresh, bytes);
    return OMPI_SUCCESS == rc ? ompi_common_cryptmpi_commit() : rc;
}

/* The peer's renewal; where it published none we say so by 0 bytes, which are
 * refused. */
static uint8_t *fetch_renewal(ompi_proc_t *proc, opal_common_crypt_expect_t *expect)
{
    static const uint8_t none;
    char *key = mca_base_component_to_string(&renewal_key);
    uint8_t *fresh = ompi_common_cryptmpi_fetch(&proc->super.proc_name, key, &expect->fresh_bytes);

    free(key);
    expect->fresh = NULL != fresh ? fresh : &none;
    return fresh;
}

int ompi_common_cryptmpi_modex_session(ompi_proc_t *proc, int64_t met, opal_common_crypt_session_t **session)
{
    opal_common_crypt_expect_t expect = {.needed = met};
    opal_common_crypt_why_t why = {0};
    uint8_t *fresh = NULL;
    char nspace[32];
    void *record = NULL;
    size_t bytes = 0;
    int rc = ompi_common_cryptmpi_provider_needed();

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    OPAL_MODEX_RECV(rc, &modex_key, &proc->super.proc_name, &record, &bytes);
    if (OPAL_SUCCESS != rc || NULL == record) {
        bytes = 0;      /* refused below, as a process without a record */
    }
    name_of(&proc->super.proc_name, nspace);
    expect.nspace = nspace;
    expect.rank = proc->super.proc_name.vpid;
    rc = opal_common_crypt_session_create(self, record, bytes, &expect, session, &why);
    if (OPAL_CRYPT_ERR_OLD == rc && 0 != met) {
        fresh = fetch_renewal(proc, &expect);
        rc = opal_common_crypt_session_create(self, record, bytes, &expect, session, &why);
    }
    free(record);
    free(fresh);
    if (OPAL_CRYPT_OK == rc) {
        return OMPI_SUCCESS;
    }
    /* One of a pair: there is nobody else to say it. */
    ompi_common_cryptmpi_show_here(CORE_HELP, why.topic, why.detail);
    return OMPI_ERR_UNREACH;
}
