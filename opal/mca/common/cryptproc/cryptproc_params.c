/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The parameters that every component of the suite obeys: crypt_*.  They name
 * files, methods and limits; none of them ever holds a secret.  With them what MPI_T
 * shows of a process.
 */
#include "cryptproc_internal.h"

#include <stddef.h>

#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_var_enum.h"
#include "opal/mca/base/mca_base_var_group.h"
#include "opal/mca/common/crypt/base/stats.h"

opal_cryptproc_params_t opal_cryptproc_params = {
    .options = {.auth = OPAL_CRYPT_AUTH_AUTO, .epoch_shift = 20, .munge_age = 600},
    .key_bits = 128,
    .threads = 0,
    .scope = OPAL_CRYPTPROC_INTERNODE,
    .on_failure = OPAL_CRYPTPROC_ABORT,
    .audit = OPAL_CRYPTPROC_AUDIT_ABORT,
    .on_missing = OPAL_CRYPTPROC_MISSING_WARN,
};

static const mca_base_var_enum_value_t auth_values[] = {
    {OPAL_CRYPT_AUTH_AUTO, "auto"}, {OPAL_CRYPT_AUTH_PSK, "psk"},   {OPAL_CRYPT_AUTH_MUNGE, "munge"},
    {OPAL_CRYPT_AUTH_X509, "x509"}, {OPAL_CRYPT_AUTH_NONE, "none"}, {0, NULL}};
static const mca_base_var_enum_value_t scope_values[] = {
    {OPAL_CRYPTPROC_INTERNODE, "internode"}, {OPAL_CRYPTPROC_ALL, "all"}, {0, NULL}};
static const mca_base_var_enum_value_t failure_values[] = {
    {OPAL_CRYPTPROC_ABORT, "abort"}, {OPAL_CRYPTPROC_ERROR, "error"}, {0, NULL}};
static const mca_base_var_enum_value_t audit_values[] = {
    {OPAL_CRYPTPROC_AUDIT_ABORT, "abort"}, {OPAL_CRYPTPROC_AUDIT_WARN, "warn"}, {0, NULL}};
static const mca_base_var_enum_value_t missing_values[] = {
    {OPAL_CRYPTPROC_MISSING_WARN, "warn"}, {OPAL_CRYPTPROC_MISSING_ABORT, "abort"}, {0, NULL}};

static const mca_base_var_enum_value_t transport_values[] = {
    {OPAL_CRYPTPROC_TRANSPORT_AUTO, "auto"}, {OPAL_CRYPTPROC_TRANSPORT_PML, "pml"}, {OPAL_CRYPTPROC_TRANSPORT_BTL, "btl"},
    {0, NULL}};

static int add(const char *name, const char *help, mca_base_var_type_t type, mca_base_var_enum_t *values,
               mca_base_var_info_lvl_t level, void *storage)
{
    int rc = mca_base_var_register("ompi", "crypt", NULL, name, help, type, values, 0, MCA_BASE_VAR_FLAG_DWG, level,
                                   MCA_BASE_VAR_SCOPE_READONLY, storage);
    return rc < 0 ? rc : OPAL_SUCCESS;
}

static int add_text(const char *name, const char *help, mca_base_var_info_lvl_t level, const char **storage)
{
    return add(name, help, MCA_BASE_VAR_TYPE_STRING, NULL, level, storage);
}

static int add_choice(const char *name, const char *help, const mca_base_var_enum_value_t *values,
                      mca_base_var_info_lvl_t level, void *storage)
{
    mca_base_var_enum_t *choices = NULL;
    int rc = mca_base_var_enum_create(name, values, &choices);

    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    rc = add(name, help, MCA_BASE_VAR_TYPE_INT, choices, level, storage);
    OBJ_RELEASE(choices);
    return rc;
}

static int add_auth(opal_crypt_options_t *o)
{
    int rc = add_choice("auth",
                        "How processes authenticate each other: psk (a key file), munge, x509 (certificates), "
                        "none (no protection against an active attacker; every job warns), or auto: x509 if "
                        "configured, else psk if its file exists, else munge if its daemon answers, else abort",
                        auth_values, OPAL_INFO_LVL_4, &o->auth);
    rc = rc ? rc : add_text("psk_file", "File with the pre-shared key (made by mpicrypt keygen; mode 0600). "
                                        "Default: ~/.ompi-crypt/psk", OPAL_INFO_LVL_1, &o->psk_file);
    rc = rc ? rc : add_text("munge_socket", "Socket of the MUNGE daemon. Default: that of the MUNGE library",
                            OPAL_INFO_LVL_5, &o->munge_socket);
    rc = rc ? rc : add("munge_age", "Maximum age or clock skew of a peer's MUNGE credential, in seconds (1 to "
                                    "86400), measured against this process's MPI_Init, or the spawn or connect "
                                    "that brought the peer. Raise it if ranks start at very different times or "
                                    "clocks differ (default: 600)",
                       MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_6, &o->munge_age);
    rc = rc ? rc : add_text("x509_cert", "File with our certificate chain (PEM)", OPAL_INFO_LVL_4, &o->x509_cert);
    rc = rc ? rc : add_text("x509_key", "File with the private key of our certificate (PEM; mode 0600)",
                            OPAL_INFO_LVL_4, &o->x509_key);
    rc = rc ? rc : add_text("x509_ca", "File with the certificates of the trusted CAs (PEM; only its owner may "
                                       "write to it)", OPAL_INFO_LVL_4, &o->x509_ca);
    rc = rc ? rc : add_text("x509_crl", "File with certificate revocation lists (PEM); without it revocation is "
                                        "not checked",
                            OPAL_INFO_LVL_5, &o->x509_crl);
    rc = rc ? rc : add_text("x509_peer", "Subject that a peer's certificate must have. Default: our own",
                            OPAL_INFO_LVL_5, &o->x509_peer);
    rc = rc ? rc : add("secret_on_netfs", "Accept key and certificate files on network file systems, or on those "
                                          "of unknown type, although they cross the network (default: refuse)", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_5,
                       &o->secret_on_netfs);
    return rc ? rc : add("fips", "Use only algorithms of OpenSSL's FIPS 140 provider: P-256 instead of X25519, "
                                 "and aead openssl (default: off)", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_4,
                         &o->fips);
}

/* For those who look: hook/crypt goes by what it reads itself (cryptmpi_spelling.c). */
static int add_required(bool *required)
{
    return add("required", "A job whose messages would leave the node unencrypted is aborted, in MPI_Init or where it "
                           "meets processes of another node (MPI_Comm_spawn, MPI_Comm_connect). For a site's "
                           "openmpi-mca-params-override.conf, which users cannot override (default: off)",
               MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_4, required);
}

#ifdef OPAL_CRYPT_TEST_RECORD
static int add_test(opal_crypt_options_t *o)
{
    return add("epoch_shift", "Test builds only: an epoch is 2^epoch_shift messages, at most 2^20 (default: 20)",
               MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_9, &o->epoch_shift);
}
#else
static int add_test(opal_crypt_options_t *o)
{
    (void) o;
    return OPAL_SUCCESS;
}
#endif

/* ---- performance variables ---- */

#define STAT(member) ((void *) offsetof(opal_crypt_stats_t, member))

static const struct {
    const char *name, *help;
    void *offset;
} metrics[] = {
    {"sealed_messages", "Messages, segments, pieces and blocks sealed", STAT(sealed_calls)},
    {"sealed_bytes", "Bytes of plaintext sealed", STAT(sealed_bytes)},
    {"opened_messages", "Messages, segments, pieces and blocks opened", STAT(opened_calls)},
    {"opened_bytes", "Bytes of plaintext opened", STAT(opened_bytes)},
    {"chopped_sent", "Messages sent in segments", STAT(chopped_sealed)},
    {"chopped_received", "Messages received in segments", STAT(chopped_opened)},
    {"epochs", "Epoch keys derived", STAT(epochs)},
    {"authentication_failures", "Frames and blocks that did not authenticate", STAT(failed_opens)},
    {"provider_nanoseconds", "Time in the AES-GCM provider, all threads; 0 without crypt_report", STAT(aead_ns)},
};

static int metric(const struct mca_base_pvar_t *pvar, void *value, void *object)
{
    opal_crypt_stats_t stats;

    (void) object;
    opal_crypt_stats(&stats);
    *(unsigned long long *) value = *(uint64_t *) ((char *) &stats + (size_t) pvar->ctx);
    return OPAL_SUCCESS;
}

/* What this process sealed and opened, as performance variables of MPI_T: crypt_NAME, category
 * crypt.  They are always there; crypt_report adds them up over the processes of a job.
 * Without the project's name, which Open MPI would put before the category's. */
static int metrics_register(void)
{
    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
        int rc = mca_base_pvar_register(NULL, "crypt", NULL, metrics[i].name, metrics[i].help, OPAL_INFO_LVL_4,
                                        MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
                                        MCA_BASE_VAR_BIND_NO_OBJECT,
                                        MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, metric, NULL, NULL,
                                        metrics[i].offset);
        if (rc < 0) {
            return rc;
        }
    }
    return OPAL_SUCCESS;
}

/* ---- all of them ---- */

int opal_cryptproc_params_register(void)
{
    opal_cryptproc_params_t *p = &opal_cryptproc_params;
    int rc = add_auth(&p->options);

    rc = rc ? rc : add("key_bits", "Bits of the AES keys: 128, 192 or 256 (default: 128)",
                       MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_2, &p->key_bits);
    rc = rc ? rc : add("threads", "Threads that encrypt or decrypt one large message together, however many "
                                  "processors there are; 0: as pml_crypt_t, the table or the model say, within "
                                  "the processors of this process (default: 0)", MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL,
                       OPAL_INFO_LVL_6, &p->threads);
    rc = rc ? rc : add_choice("scope", "What is encrypted: internode (messages that leave the node) or all (also "
                                       "messages between processes of one node)", scope_values, OPAL_INFO_LVL_2, &p->scope);
    rc = rc ? rc : add_choice("transport", "What encrypts: pml (pml/crypt, each message, over any transport of its host), btl "
                                           "(btl/crypt, below ob1, all that leaves the node, over TCP), or auto (btl over TCP, "
                                           "pml over ucx and libfabric)",
                              transport_values, OPAL_INFO_LVL_4, &p->transport);
    rc = rc ? rc : add_choice("on_auth_failure", "What to do if a message or a peer fails authentication: abort "
                                                 "(abort the job) or error (the call returns an error of an MPI class "
                                                 "of its own, and the buffer is wiped)",
                              failure_values, OPAL_INFO_LVL_4, &p->on_failure);
    rc = rc ? rc : add_choice("on_missing", "What to do if MPI_Finalize finds that messages from other nodes "
                                            "were sent but not received, or cannot tell: warn, or abort (the job "
                                            "fails; for programs that receive everything that is sent). Over btl/crypt a "
                                            "missing message ends the job", missing_values, OPAL_INFO_LVL_4, &p->on_missing);
    rc = rc ? rc : add_choice("audit", "What to do if a component could bypass encryption, or another user could read the "
                                       "job's shared memory: abort, or warn, which runs the job without this "
                                       "protection, and says PLAINTEXT POSSIBLE where one is found and in the report",
                              audit_values, OPAL_INFO_LVL_4, &p->audit);
    rc = rc ? rc : add("connect_timeout", "Abort the job if a process waits this many seconds for the launcher's "
                                          "data about a peer at first contact (on Open MPI 4.1 also in a spawn "
                                          "or a connect), or for a connection of btl/crypt (with fault tolerance the peer has then failed); "
                                          "0: never. After 120 seconds it warns (default: 0)",
                       MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_5, &p->connect_timeout);
    rc = rc ? rc : add_text("report", "Summary that rank 0 writes at the end of a job: 0 (none), 1 (on standard "
                                      "error), json:FILE or syslog (default: 0)", OPAL_INFO_LVL_1, (const char **) &p->report);
    rc = rc ? rc : add_required(&p->required);
    rc = rc ? rc : add_test(&p->options);
    rc = rc ? rc : metrics_register();
    return rc ? rc : opal_cryptproc_events_register();
}

bool opal_cryptproc_report_wanted(void)
{
    const char *report = opal_cryptproc_params.report;

    return NULL != report && '\0' != *report && 0 != strcmp(report, "0");
}

/* Their storage is in this library.  It may be unloaded without any component
 * having been opened (ompi_info), and Open MPI looks at its variables once more
 * after that. */
static void __attribute__((destructor)) params_deregister(void)
{
    const int groups[] = {mca_base_var_group_find("ompi", "crypt", NULL), mca_base_var_group_find(NULL, "crypt", NULL)};

    for (int i = 0; i < 2; i++) {
        if (groups[i] >= 0 && (0 == i || groups[i] != groups[0])) {
            mca_base_var_group_deregister(groups[i]);
        }
    }
}
