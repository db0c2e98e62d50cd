/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Our record goes out, and those of others come in, through Open MPI's modex.
 * The key under which it is published is that of a component struct of our
 * own, because pml/crypt wears its host's name for a moment (see there).
 *
 * Each life of MPI in a process (5.0 has sessions) draws a new key pair.  What was
 * published once stays in caches on the way, so each life has a key of its own:
 * "record", then "record1", "record2".  Processes of one job begin a life together,
 * in Open MPI's fence, so that the others' newest has our own number; a process of
 * another job is asked for its number, under "life", past all caches.
 */
#include "cryptmpi.h"
#include "cryptmpi_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"
#include "ompi/runtime/mpiruntime.h"

#include "opal/mca/common/crypt/base/thread.h"

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

static mca_base_component_t life_key = {
    OMPI_MCA_BASE_VERSION_2_1_0("crypt", 1, 0, 0),
    .mca_component_name = "life",
    MCA_BASE_MAKE_VERSION(component, 1, 0, 0),
};

static opal_crypt_local_t *self;
static uint32_t life;                   /* ours, from 0 */
static char job[OMPI_COMMON_CRYPTMPI_NSPACE_BYTES];    /* the name of ours */
static const mca_pml_base_module_t *host_module;
static const char *host_name;
#if OMPI_MAJOR_VERSION < 5
bool ompi_common_cryptmpi_threads = false;
#endif

/* How a job is named in records: by its PMIx namespace, of which Open MPI's own number
 * has but 16 bits where the launcher is not mpirun. */
void ompi_common_cryptmpi_job_name(const opal_process_name_t *name, char text[OMPI_COMMON_CRYPTMPI_NSPACE_BYTES])
{
    ompi_common_cryptmpi_nspace(name->jobid, text);
    if ('\0' == text[0]) {
        snprintf(text, OMPI_COMMON_CRYPTMPI_NSPACE_BYTES, "%" PRIu32, (uint32_t) name->jobid);
    }
}

static const mca_base_component_t *record_key(uint32_t of_life, mca_base_component_t *key)
{
    *key = modex_key;
    if (of_life > 0) {
        snprintf(key->mca_component_name, sizeof(key->mca_component_name), "record%" PRIu32, of_life);
    }
    return key;
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
        OMPI_COMMON_CRYPTMPI_SHOW("help-ompi-common-cryptmpi.txt", "bad-key-bits", p->key_bits);
        return OMPI_ERR_BAD_PARAM;
    }
}

static int publish(void)
{
    size_t bytes;
    const uint8_t *record = opal_crypt_local_record(self, &bytes);
    mca_base_component_t key;
    uint8_t number[4];
    int rc;

    record_key(life, &key);
    OPAL_MODEX_SEND(rc, OMPI_COMMON_CRYPTMPI_MODEX_SCOPE, &key, (void *) record, bytes);
    if (OMPI_SUCCESS == rc && OMPI_COMMON_CRYPTMPI_LIVES) {
        opal_crypt_put32(number, life);
        OPAL_MODEX_SEND(rc, OMPI_COMMON_CRYPTMPI_MODEX_SCOPE, &life_key, number, sizeof(number));
    }
    return rc;
}

/* The parameters of this library on which all processes must agree and that have no
 * field of their own in the record, behind those of the caller. */
static const char *all_agreed(const char *agreed)
{
    static char all[1026];              /* the core keeps it, and refuses one that is too long */
    const ompi_common_cryptmpi_params_t *p = &ompi_common_cryptmpi_params;

    snprintf(all, sizeof(all), "%s;crypt_on_auth_failure=%s;crypt_audit=%s", agreed,
             OMPI_COMMON_CRYPTMPI_ABORT == p->on_failure ? "abort" : "error",
             OMPI_COMMON_CRYPTMPI_AUDIT_ABORT == p->audit ? "abort" : "warn");
    return all;
}

/* Where another user has made the object by which processes of a node know each other, this
 * one believes to share its node with nobody, and seals for everybody. */
static int identify_node(opal_crypt_identity_t *identity, opal_crypt_why_t *why)
{
    int rc = opal_crypt_node_identity(identity->boot_id, identity->node_nonce, why);

    if (OPAL_CRYPT_ERR_CONFIG == rc && 0 == strcmp(why->topic, "node-hijacked")) {
        opal_crypt_random(identity->node_nonce, sizeof(identity->node_nonce));
        OMPI_COMMON_CRYPTMPI_SHOW("help-ompi-common-cryptmpi.txt", "node-hijacked", opal_process_info.nodename, why->detail);
        rc = OPAL_CRYPT_OK;
    }
    return rc;
}

int ompi_common_cryptmpi_start(const char *agreed)
{
    ompi_common_cryptmpi_params_t *p = &ompi_common_cryptmpi_params;
    opal_crypt_identity_t identity = {.rank = OPAL_PROC_MY_NAME.vpid};
    const opal_crypt_why_t *warning;
    opal_crypt_why_t why = {0};
    char text[OMPI_COMMON_CRYPTMPI_ON_NODE_BYTES];
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
    p->options.agreed = all_agreed(agreed);
    p->options.report = ompi_common_cryptmpi_report_wanted();
    ompi_common_cryptmpi_job_name(&OPAL_PROC_MY_NAME, job);
    identity.nspace = job;
    identity.instance = life = opal_crypt_instance();
    rc = identify_node(&identity, &why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_local_create(&p->options, &identity, &self, &why);
    }
    if (OPAL_CRYPT_OK != rc) {
        OMPI_COMMON_CRYPTMPI_SHOW(CORE_HELP, why.topic, ompi_common_cryptmpi_on_node(why.detail, text));
        return OMPI_ERROR;
    }
    if (opal_crypt_no_crypto() && 0 == OPAL_PROC_MY_NAME.vpid) {
        OMPI_COMMON_CRYPTMPI_SHOW("help-ompi-common-cryptmpi.txt", "no-crypto");
    }
    opal_crypt_threads(&opal_uses_threads);
    ompi_common_cryptmpi_peers_start();
    ompi_common_cryptmpi_device_start();
    warning = opal_crypt_local_warning(self);
    if (NULL != warning && 0 == OPAL_PROC_MY_NAME.vpid) {
        OMPI_COMMON_CRYPTMPI_SHOW(CORE_HELP, warning->topic, warning->detail);
    }
    ompi_common_cryptmpi_waits_start();
    return publish();
}

void ompi_common_cryptmpi_stop(void)
{
    ompi_common_cryptmpi_waits_stop();
    if (NULL != self) {
        ompi_common_cryptmpi_peers_stop();
        opal_crypt_local_destroy(self);
        self = NULL;
    }
    ompi_common_cryptmpi_comms_stop();
    ompi_common_cryptmpi_generations_stop();
    opal_crypt_finalize();
    ompi_common_cryptmpi_provider_stop();
}

opal_crypt_local_t *ompi_common_cryptmpi_local(void)
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

void ompi_common_cryptmpi_describe(opal_crypt_status_who_t *who)
{
    memset(who, 0, sizeof(*who));
    who->rank = OPAL_PROC_MY_NAME.vpid;
    ompi_common_cryptmpi_cut(who->job, sizeof(who->job), job);
    ompi_common_cryptmpi_cut(who->host, sizeof(who->host), opal_process_info.nodename);
    ompi_common_cryptmpi_cut(who->method, sizeof(who->method),
                             opal_crypt_auth_name(opal_crypt_local_auth(self)));
    ompi_common_cryptmpi_cut(who->pml, sizeof(who->pml), host_name);
}

int ompi_common_cryptmpi_modex_renew(int64_t now)
{
    opal_crypt_why_t why = {0};
    const uint8_t *fresh;
    size_t bytes;
    int rc;

    if (OPAL_CRYPT_OK != opal_crypt_local_renew(self, now, &fresh, &bytes, &why)) {
        ompi_common_cryptmpi_show_here(CORE_HELP, why.topic, why.detail);
        return OMPI_ERROR;
    }
    if (0 == bytes) {
        return OMPI_SUCCESS;
    }
    OPAL_MODEX_SEND(rc, OMPI_COMMON_CRYPTMPI_MODEX_SCOPE, &renewal_key, (void *) fresh, bytes);
    return OMPI_SUCCESS == rc ? ompi_common_cryptmpi_commit() : rc;
}

/* What the peer published under this key; NULL if nothing. */
static uint8_t *fetch(ompi_proc_t *proc, const mca_base_component_t *component, ompi_common_cryptmpi_how_t how, const char *what, size_t *bytes)
{
    char *key = mca_base_component_to_string(component);
    uint8_t *found = ompi_common_cryptmpi_get(&proc->super.proc_name, key, how, what, bytes, NULL);

    free(key);
    return found;
}

/* The peer's renewal; where it published none we say so by 0 bytes, which are
 * refused. */
static uint8_t *fetch_renewal(ompi_proc_t *proc, opal_crypt_expect_t *expect)
{
    static const uint8_t none;
    uint8_t *fresh = fetch(proc, &renewal_key, OMPI_COMMON_CRYPTMPI_ANEW, "its credential, made anew", &expect->fresh_bytes);

    expect->fresh = NULL != fresh ? fresh : &none;
    return fresh;
}

/* In which life of MPI the peer is, as it says itself; `otherwise` where it says nothing. */
static uint32_t life_of(ompi_proc_t *proc, uint32_t otherwise)
{
    size_t bytes = 0;
    uint8_t *number = OMPI_COMMON_CRYPTMPI_LIVES ? fetch(proc, &life_key, OMPI_COMMON_CRYPTMPI_ANEW,
                                                          "the number of its lives of MPI", &bytes) : NULL;
    uint32_t its = NULL != number && sizeof(its) == bytes ? opal_crypt_get32(number) : otherwise;

    free(number);
    return its;
}

static void *receive_record(ompi_proc_t *proc, uint32_t of_life, size_t *bytes)
{
    mca_base_component_t key;

    /* No bytes are refused by the core, as a process without a record. */
    return fetch(proc, record_key(of_life, &key), OMPI_COMMON_CRYPTMPI_CACHED, "its record of keys", bytes);
}

/* The record that the peer has now; *of_life is the one that it should be of.  Where it
 * has none of that, another of its own, so that the core says what differs. */
static void *current_record(ompi_proc_t *proc, uint32_t *of_life, size_t *bytes)
{
    const bool ours = proc->super.proc_name.jobid == OPAL_PROC_MY_NAME.jobid;
    void *record;

    *of_life = ours ? life : life_of(proc, 0);
    record = receive_record(proc, *of_life, bytes);
    if (0 == *bytes && ours && life > 0) {
        free(record);
        record = receive_record(proc, life_of(proc, 0), bytes);
    }
    return record;
}

static void warn_of_clocks(const opal_crypt_session_t *session, int64_t met)
{
    static bool said = false;           /* sessions are made one at a time */
    opal_crypt_why_t why;

    if (!said && opal_crypt_clocks_differ(self, opal_crypt_session_peer(session), met, &why)) {
        said = true;
        OMPI_COMMON_CRYPTMPI_COUNT(CORE_HELP, why.topic, why.detail);  /* of a whole job mpirun shows one */
    }
}

int ompi_common_cryptmpi_modex_session(ompi_proc_t *proc, int64_t met, opal_crypt_session_t **session)
{
    opal_crypt_expect_t expect = {.needed = met};
    opal_crypt_why_t why = {0};
    uint8_t *fresh = NULL;
    char nspace[OMPI_COMMON_CRYPTMPI_NSPACE_BYTES];
    void *record;
    size_t bytes = 0;
    int rc = ompi_common_cryptmpi_provider_needed();

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    record = current_record(proc, &expect.instance, &bytes);
    /* While MPI ends, 5.0 forgets the names of jobs before the last messages have come. */
    if (proc->super.proc_name.jobid == OPAL_PROC_MY_NAME.jobid) {
        expect.nspace = job;
    } else {
        ompi_common_cryptmpi_job_name(&proc->super.proc_name, nspace);
        expect.nspace = nspace;
    }
    expect.rank = proc->super.proc_name.vpid;
    rc = opal_crypt_session_create(self, record, bytes, &expect, session, &why);
    if (OPAL_CRYPT_ERR_OLD == rc && 0 != met) {
        fresh = fetch_renewal(proc, &expect);
        rc = opal_crypt_session_create(self, record, bytes, &expect, session, &why);
    }
    free(record);
    free(fresh);
    if (OPAL_CRYPT_OK == rc) {
        warn_of_clocks(*session, met);
        return OMPI_SUCCESS;
    }
    /* One of a pair: there is nobody else to say it. */
    return ompi_common_cryptmpi_peer_refused(CORE_HELP, why.topic, why.detail);
}
