/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Our record is published through Open MPI's modex; cryptproc_peer.c fetches those of others.  The key is made from a
 * component struct of our own: whichever component starts, the record is the process's.
 *
 * Each MPI session in a process (since 5.0 there can be several) draws a new key pair.  What was published once stays
 * in caches, so each session has its own key: "record", then "record1", "record2".  Processes of one job begin a
 * session together, in Open MPI's fence, so the others' latest has our number; a process of another job is asked for
 * its number, under "life", bypassing all caches.
 */
#include "cryptproc.h"
#include "cryptproc_internal.h"

#include <inttypes.h>
#include <string.h>

#include "opal/mca/aead/base/base.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/thread.h"

#define HELP "help-opal-common-cryptproc.txt"
#define CORE_HELP "help-opal-common-crypt.txt"

static const mca_base_component_t modex_key = {
    OPAL_MCA_BASE_VERSION_2_1_0("crypt", 1, 0, 0),        /* its name is set for each key */
    MCA_BASE_MAKE_VERSION(component, 1, 0, 0),
};

static opal_crypt_local_t *self;
static uint32_t own_instance;           /* the number of our MPI session, from 0 */
static uint32_t renewals;               /* published in this session */
static char job[OPAL_CRYPTPROC_NSPACE_BYTES];    /* the name of our job */
static unsigned users;                  /* starts without a stop yet */
static bool has_transport;

bool (*opal_cryptproc_transport_go)(const char *);
const char *opal_cryptproc_transport_is, *opal_cryptproc_transport_keys = "";
uint64_t opal_cryptproc_transport_peers, opal_cryptproc_transport_pq_peers, opal_cryptproc_transport_kernel_peers;
bool (*opal_cryptproc_transport_snapshot)(int64_t, opal_cryptproc_peer_visit_t, void *);

/* The name of a job in records: its PMIx namespace, since Open MPI's own number has only 16 bits if the launcher is
 * not mpirun. */
void opal_cryptproc_job_name(const opal_process_name_t *name, char text[OPAL_CRYPTPROC_NSPACE_BYTES])
{
    opal_cryptproc_nspace(name->jobid, text);
    if ('\0' == text[0]) {
        snprintf(text, OPAL_CRYPTPROC_NSPACE_BYTES, "%" PRIu32, (uint32_t) name->jobid);
    }
}

static void name_key(const char *name, uint32_t instance, mca_base_component_t *key)
{
    *key = modex_key;
    if (instance > 0) {
        snprintf(key->mca_component_name, sizeof(key->mca_component_name), "%.16s%" PRIu32, name, instance);
    } else {
        strcpy(key->mca_component_name, name);
    }
}

void opal_cryptproc_key_of_record(uint32_t instance, mca_base_component_t *key)
{
    name_key("record", instance, key);
}

void opal_cryptproc_key_of_instance(mca_base_component_t *key)
{
    name_key("life", 0, key);
}

/* Each renewal has its own key too: "renewal", then "renewal-1", "renewal-2". */
void opal_cryptproc_key_of_renewal(uint32_t instance, uint32_t number, mca_base_component_t *key)
{
    name_key("renewal", instance, key);
    if (number > 0) {
        size_t length = strlen(key->mca_component_name);

        snprintf(key->mca_component_name + length, sizeof(key->mca_component_name) - length, "-%" PRIu32, number);
    }
}

int opal_cryptproc_choose_cipher(void)
{
    opal_cryptproc_params_t *p = &opal_cryptproc_params;
    int cipher = opal_aead_aes_gcm(p->key_bits);

    if (cipher < 0) {
        OPAL_CRYPTPROC_SHOW(HELP, "bad-key-bits", p->key_bits);
        return OPAL_ERR_BAD_PARAM;
    }
    p->options.cipher = (opal_aead_cipher_t) cipher;
    return OPAL_SUCCESS;
}

static int publish(void)
{
    size_t bytes;
    const uint8_t *record = opal_crypt_local_record(self, &bytes);
    mca_base_component_t key;
    uint8_t number[4];
    int rc;

    opal_cryptproc_key_of_record(own_instance, &key);
    OPAL_MODEX_SEND(rc, OPAL_CRYPTPROC_MODEX_SCOPE, &key, (void *) record, bytes);
    if (OPAL_SUCCESS == rc && OPAL_CRYPTPROC_INSTANCES) {
        opal_crypt_put32(number, own_instance);
        opal_cryptproc_key_of_instance(&key);
        OPAL_MODEX_SEND(rc, OPAL_CRYPTPROC_MODEX_SCOPE, &key, number, sizeof(number));
    }
    return rc;
}

enum { AGREED_BYTES = 1026 };           /* the core refuses longer texts */

/* Our version; what encrypts; the caller's text; this library's parameters on which all processes must agree and that
 * have no field in the record; and the provider of a build that encrypts nothing. */
static const char *all_agreed(const char *agreed, char all[AGREED_BYTES])
{
    const opal_cryptproc_params_t *p = &opal_cryptproc_params;
    const opal_aead_module_t *plaintext = opal_cryptproc_plaintext();   /* that of this build, chosen yet or not */

    snprintf(all, AGREED_BYTES, OPAL_CRYPT_RECORD_VERSION_ITEM OPAL_CRYPT_VERSION ";crypt_transport=%s;%s%scrypt_on_auth_failure=%s;crypt_audit=%s%s%s",
             has_transport ? "btl" : "pml", NULL == agreed ? "" : agreed,
             NULL == agreed ? "" : ";", OPAL_CRYPTPROC_ABORT == p->on_failure ? "abort" : "error",
             OPAL_CRYPTPROC_AUDIT_ABORT == p->audit ? "abort" : "warn",
             NULL == plaintext ? "" : ";aead=", NULL == plaintext ? "" : plaintext->name);
    return all;
}

/* If another user has made the object by which processes of a node recognize each other, this process assumes that it
 * shares its node with nobody, and seals to everybody. */
static int identify_node(opal_crypt_identity_t *identity, opal_crypt_why_t *why)
{
    int rc = opal_crypt_node_identity(identity->boot_id, identity->node_nonce, why);

    if (OPAL_CRYPT_ERR_CONFIG == rc && 0 == strcmp(why->topic, "node-hijacked")) {
        opal_crypt_random(identity->node_nonce, sizeof(identity->node_nonce));
        OPAL_CRYPTPROC_SHOW(HELP, "node-hijacked", opal_process_info.nodename, why->detail);
        rc = OPAL_CRYPT_OK;
    }
    return rc;
}

static int make(const char *agreed)
{
    static char all[AGREED_BYTES];      /* referenced by the core */
    opal_cryptproc_params_t *p = &opal_cryptproc_params;
    opal_crypt_identity_t identity = {.rank = OPAL_PROC_MY_NAME.vpid};
    const opal_crypt_why_t *warning;
    opal_crypt_why_t why = {0};
    char text[OPAL_CRYPTPROC_ON_NODE_BYTES];
    int rc = opal_cryptproc_choose_cipher();

    opal_crypt_base_begin();            /* destroy() ends it, in any case */
    rc = OPAL_SUCCESS == rc ? opal_cryptproc_provider_start() : rc;
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    p->options.scope_all = OPAL_CRYPTPROC_ALL == p->scope;
    p->options.agreed = all_agreed(agreed, all);
    p->options.report = opal_cryptproc_report_wanted();
    opal_cryptproc_job_name(&OPAL_PROC_MY_NAME, job);
    identity.nspace = job;
    identity.instance = own_instance = opal_crypt_instance();
    renewals = 0;
    rc = identify_node(&identity, &why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_local_create(&p->options, &identity, &self, &why);
    }
    if (OPAL_CRYPT_OK != rc) {
        OPAL_CRYPTPROC_SHOW(CORE_HELP, why.topic, opal_cryptproc_on_node(why.detail, text));
        return OPAL_ERROR;
    }
    opal_crypt_threads(&opal_uses_threads);
    warning = opal_crypt_local_warning(self);
    /* The method is the same everywhere; the location of a secret is each node's own. */
    if (NULL != warning && (0 == OPAL_PROC_MY_NAME.vpid || 0 != strcmp("auth-none", warning->topic))) {
        OPAL_CRYPTPROC_SHOW(CORE_HELP, warning->topic, warning->detail);
    }
    return publish();
}

static void destroy(void)
{
    opal_crypt_local_destroy(self);
    self = NULL;
    if (!opal_crypt_forked()) {
        opal_crypt_base_finalize();
    }
    opal_cryptproc_provider_stop();
}

/* The record is published, and cannot be extended. */
static int join(const char *agreed)
{
    char all[AGREED_BYTES];

    return NULL == agreed || 0 == strcmp(all_agreed(agreed, all), opal_cryptproc_params.options.agreed) ? OPAL_SUCCESS
                                                                                                       : OPAL_ERR_BAD_PARAM;
}

int opal_cryptproc_start(const char *agreed)
{
    int rc = users > 0 ? join(agreed) : make(agreed);

    if (OPAL_SUCCESS == rc) {
        users++;
    } else if (0 == users) {
        destroy();
    }
    return rc;
}

int opal_cryptproc_start_transport(const char *agreed, bool seals_all, const uint8_t *transport, size_t bytes)
{
    opal_crypt_options_t *o = &opal_cryptproc_params.options;
    int rc;

    if (users > 0) {
        return OPAL_ERR_BAD_PARAM;
    }
    o->transport = transport;
    o->transport_bytes = bytes;
    has_transport = seals_all;
    rc = opal_cryptproc_start(agreed);
    o->transport = NULL;
    has_transport = seals_all && OPAL_SUCCESS == rc;
    return rc;
}

bool opal_cryptproc_has_transport(void)
{
    return has_transport;
}

void opal_cryptproc_own(opal_crypt_identity_t *identity)
{
    *identity = (opal_crypt_identity_t) {.nspace = job, .rank = OPAL_PROC_MY_NAME.vpid, .instance = own_instance};
}

void opal_cryptproc_stop(void)
{
    if (users > 0 && 0 == --users) {
        has_transport = false;
        destroy();
    }
}

opal_crypt_local_t *opal_cryptproc_local(void)
{
    return self;
}

static int renew(int64_t now)
{
    mca_base_component_t key;
    opal_crypt_why_t why = {0};
    const uint8_t *fresh;
    size_t bytes;
    int rc;

    if (OPAL_CRYPT_OK != opal_crypt_local_renew(self, now, &fresh, &bytes, &why)) {
        opal_cryptproc_show_here(CORE_HELP, why.topic, why.detail);
        return OPAL_ERROR;
    }
    if (0 == bytes) {
        return OPAL_SUCCESS;
    }
    opal_cryptproc_key_of_renewal(own_instance, renewals, &key);
    OPAL_MODEX_SEND(rc, OPAL_CRYPTPROC_MODEX_SCOPE, &key, (void *) fresh, bytes);
    rc = OPAL_SUCCESS == rc ? opal_cryptproc_commit() : rc;
    if (OPAL_SUCCESS == rc) {
        renewals++;
        opal_crypt_local_renewed(self, now);
    }
    return rc;
}

/* Two threads may meet other jobs at the same time. */
int opal_cryptproc_renew(int64_t now)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    int rc = renew(now);
    pthread_mutex_unlock(&lock);
    return rc;
}
