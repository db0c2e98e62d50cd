/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The parameters that every component of the suite obeys: crypt_*.  They name
 * files, methods and limits; none of them ever holds a secret.
 */
#include "cryptmpi.h"
#include "cryptmpi_internal.h"

#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_var_enum.h"
#include "opal/mca/base/mca_base_var_group.h"

ompi_common_cryptmpi_params_t ompi_common_cryptmpi_params = {
    .options = {.auth = OPAL_CRYPT_AUTH_AUTO, .epoch_shift = 20, .munge_age = 600},
    .key_bits = 128,
    .threads = 0,
    .scope = OMPI_COMMON_CRYPTMPI_INTERNODE,
    .on_failure = OMPI_COMMON_CRYPTMPI_ABORT,
    .audit = OMPI_COMMON_CRYPTMPI_AUDIT_ABORT,
    .on_missing = OMPI_COMMON_CRYPTMPI_MISSING_WARN,
};

static const mca_base_var_enum_value_t auth_values[] = {
    {OPAL_CRYPT_AUTH_AUTO, "auto"}, {OPAL_CRYPT_AUTH_PSK, "psk"},   {OPAL_CRYPT_AUTH_MUNGE, "munge"},
    {OPAL_CRYPT_AUTH_X509, "x509"}, {OPAL_CRYPT_AUTH_NONE, "none"}, {0, NULL}};
static const mca_base_var_enum_value_t scope_values[] = {
    {OMPI_COMMON_CRYPTMPI_INTERNODE, "internode"}, {OMPI_COMMON_CRYPTMPI_ALL, "all"}, {0, NULL}};
static const mca_base_var_enum_value_t failure_values[] = {
    {OMPI_COMMON_CRYPTMPI_ABORT, "abort"}, {OMPI_COMMON_CRYPTMPI_ERROR, "error"}, {0, NULL}};
static const mca_base_var_enum_value_t audit_values[] = {
    {OMPI_COMMON_CRYPTMPI_AUDIT_ABORT, "abort"}, {OMPI_COMMON_CRYPTMPI_AUDIT_WARN, "warn"}, {0, NULL}};
static const mca_base_var_enum_value_t missing_values[] = {
    {OMPI_COMMON_CRYPTMPI_MISSING_WARN, "warn"}, {OMPI_COMMON_CRYPTMPI_MISSING_ABORT, "abort"}, {0, NULL}};

static int add(const char *name, const char *help, mca_base_var_type_t type, mca_base_var_enum_t *values,
               mca_base_var_info_lvl_t level, void *storage)
{
    int rc = mca_base_var_register("ompi", "crypt", NULL, name, help, type, values, 0, MCA_BASE_VAR_FLAG_DWG, level,
                                   MCA_BASE_VAR_SCOPE_READONLY, storage);
    if (rc < 0) {
        return rc;
    }
    /* ompi_info lists components only: there it goes by pml_crypt_NAME, too. */
    rc = mca_base_var_register_synonym(rc, "ompi", "pml", "crypt", name, 0);
    return rc < 0 ? rc : OMPI_SUCCESS;
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

static int add_auth(opal_common_crypt_options_t *o)
{
    int rc = add_choice("auth",
                        "How processes prove who they are: psk (a key file), munge, x509 (certificates), none "
                        "(no protection against an active attacker; warned of in every job), or auto: x509 if "
                        "configured, else psk if its file exists, else munge if its daemon answers, else stop",
                        auth_values, OPAL_INFO_LVL_2, &o->auth);
    rc = rc ? rc : add_text("psk_file", "File that holds the pre-shared key (made by mpicrypt keygen; mode 0600). "
                            "Default: ~/.ompi-crypt/psk", OPAL_INFO_LVL_2, &o->psk_file);
    rc = rc ? rc : add_text("munge_socket", "Socket of the munge daemon. Default: munge's own",
                            OPAL_INFO_LVL_5, &o->munge_socket);
    rc = rc ? rc : add("munge_age", "Maximum age, and clock skew, of a peer's munge credential in seconds, at the time "
                       "when this process called MPI_Init, or was connected to the peer later; 1 to 86400. Raise it "
                       "where ranks start at very different times or clocks differ (default: 600)",
                       MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_6, &o->munge_age);
    rc = rc ? rc : add_text("x509_cert", "File with our certificate chain (PEM)", OPAL_INFO_LVL_2, &o->x509_cert);
    rc = rc ? rc : add_text("x509_key", "File with the private key of our certificate (PEM; mode 0600)",
                            OPAL_INFO_LVL_2, &o->x509_key);
    rc = rc ? rc : add_text("x509_ca", "File with the certificates of the trusted authorities (PEM; only its "
                            "owner may write to it)", OPAL_INFO_LVL_2, &o->x509_ca);
    rc = rc ? rc : add_text("x509_crl", "File with certificate revocation lists (PEM); without it none is checked",
                            OPAL_INFO_LVL_3, &o->x509_crl);
    rc = rc ? rc : add_text("x509_peer", "Subject that a peer's certificate must have. Default: our own",
                            OPAL_INFO_LVL_3, &o->x509_peer);
    rc = rc ? rc : add("secret_on_netfs", "Accept files of keys and of certificates on network or unknown file "
                       "systems, where they cross the network (default: refused)", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_5,
                       &o->secret_on_netfs);
    return rc ? rc : add("fips", "Use only what a FIPS 140 validated OpenSSL provider offers: P-256 instead of "
                         "X25519, aead openssl (default: off)", MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_4,
                         &o->fips);
}

#ifdef OPAL_CRYPT_TEST_RECORD
static int add_test(opal_common_crypt_options_t *o)
{
    return add("epoch_shift", "Test builds only: an epoch is 2^epoch_shift messages, at most 2^20 (default: 20)",
               MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_9, &o->epoch_shift);
}
#else
static int add_test(opal_common_crypt_options_t *o)
{
    (void) o;
    return OMPI_SUCCESS;
}
#endif

int ompi_common_cryptmpi_params_register(void)
{
    ompi_common_cryptmpi_params_t *p = &ompi_common_cryptmpi_params;
    int rc = add_auth(&p->options);

    rc = rc ? rc : add("key_bits", "Bits of the AES keys: 128, 192 or 256 (default: 128)",
                       MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_2, &p->key_bits);
    rc = rc ? rc : add("threads", "Threads that seal and open one large message together, whatever the processors "
                       "are; 0: pml_crypt_t, the table or the model decide, within the processors of this process "
                       "(default: 0)", MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL,
                       OPAL_INFO_LVL_4, &p->threads);
    rc = rc ? rc : add_choice("scope", "What is sealed: internode (messages that leave the node) or all (messages "
                              "between processes of one node, too)", scope_values, OPAL_INFO_LVL_2, &p->scope);
    rc = rc ? rc : add_choice("on_auth_failure", "What follows a message, or a peer, that does not authenticate: abort (end the "
                              "job) or error (the call returns an MPI error class of its own, the buffer is wiped)",
                              failure_values, OPAL_INFO_LVL_3, &p->on_failure);
    rc = rc ? rc : add_choice("on_missing", "What follows when MPI_Finalize finds that messages of other nodes were sent "
                              "but not received, or cannot find out: warn, or abort (end the job with an error; for "
                              "programs that receive everything that is sent)", missing_values, OPAL_INFO_LVL_3,
                              &p->on_missing);
    rc = rc ? rc : add_choice("audit", "What follows when a component could carry payload around the encryption: "
                              "abort, or warn, which says PLAINTEXT POSSIBLE in every job and breaks the promise",
                              audit_values, OPAL_INFO_LVL_3, &p->audit);
    rc = rc ? rc : add("connect_timeout", "Seconds after which a process that waits for what the launcher has of "
                       "another one, when they first speak, ends the job (with Open MPI 4.1 also one that spawns, or "
                       "connects to, another job); 0: never. After 120 seconds it says that it waits (default: 0)",
                       MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_4, &p->connect_timeout);
    rc = rc ? rc : add_text("report", "Summary at the end of a job, written by rank 0: 0 (none), 1 (on standard "
                            "error), json:FILE or syslog (default: 0)", OPAL_INFO_LVL_2, (const char **) &p->report);
    rc = rc ? rc : add_test(&p->options);
    return rc ? rc : ompi_common_cryptmpi_metrics_register();
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
