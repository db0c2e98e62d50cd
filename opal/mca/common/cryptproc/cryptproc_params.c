/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How parameters of the table are registered, and the common ones that every component obeys: crypt_*.  They name
 * files, methods and limits; none ever holds a secret.  Also what MPI_T shows of a process.
 */
#include "cryptproc_internal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_var_enum.h"
#include "opal/mca/base/mca_base_var_group.h"
#include "opal/mca/common/crypt/base/stats.h"
#include "opal/mca/common/crypt/base/parameter.h"

opal_cryptproc_params_t opal_cryptproc_params;

/* The table lists the words in this order. */
_Static_assert(0 == OPAL_CRYPT_AUTH_AUTO && 1 == OPAL_CRYPT_AUTH_NONE && 2 == OPAL_CRYPT_AUTH_PSK && 3 == OPAL_CRYPT_AUTH_MUNGE
               && 4 == OPAL_CRYPT_AUTH_X509, "crypt_auth");
_Static_assert(0 == OPAL_CRYPTPROC_INTERNODE && 1 == OPAL_CRYPTPROC_ALL, "crypt_scope");
_Static_assert(0 == OPAL_CRYPTPROC_ABORT && 1 == OPAL_CRYPTPROC_ERROR, "crypt_on_auth_failure");
_Static_assert(0 == OPAL_CRYPTPROC_AUDIT_ABORT && 1 == OPAL_CRYPTPROC_AUDIT_WARN, "crypt_audit");
_Static_assert(0 == OPAL_CRYPTPROC_MISSING_WARN && 1 == OPAL_CRYPTPROC_MISSING_ABORT, "crypt_on_missing");
_Static_assert(0 == OPAL_CRYPTPROC_TRANSPORT_AUTO && 1 == OPAL_CRYPTPROC_TRANSPORT_PML && 2 == OPAL_CRYPTPROC_TRANSPORT_BTL,
               "crypt_transport");

/* ---- any parameter of the table ---- */

enum { NAME_BYTES = 64, WORDS_MOST = 16 };

/* NULL if there is no memory.  Open MPI copies the words. */
static mca_base_var_enum_t *words_of(const opal_crypt_parameter_row_t *row)
{
    mca_base_var_enum_value_t values[WORDS_MOST + 1] = {{0, NULL}};
    char *words = strdup(row->words), *rest = words, *word;
    mca_base_var_enum_t *choices = NULL;

    for (int i = 0; i < WORDS_MOST && NULL != (word = strsep(&rest, " ")); i++) {
        values[i] = (mca_base_var_enum_value_t) {(int) row->least + i, word};
    }
    if (NULL != words && OPAL_SUCCESS != mca_base_var_enum_create(row->name, values, &choices)) {
        choices = NULL;
    }
    free(words);
    return choices;
}

static void give_default(const opal_crypt_parameter_row_t *row, mca_base_var_enum_t *choices, void *storage)
{
    switch (row->type) {
    case OPAL_CRYPT_PARAMETER_TEXT:
        *(const char **) storage = row->start;
        break;
    case OPAL_CRYPT_PARAMETER_WORD:
    case OPAL_CRYPT_PARAMETER_CHOICE:
        (void) choices->value_from_string(choices, row->start, storage);
        break;
    case OPAL_CRYPT_PARAMETER_FLAG:
        *(bool *) storage = '1' == *row->start;
        break;
    case OPAL_CRYPT_PARAMETER_NUMBER:
        *(unsigned *) storage = (unsigned) strtoul(row->start, NULL, 10);
        break;
    case OPAL_CRYPT_PARAMETER_SIZE:
        *(size_t *) storage = strtoul(row->start, NULL, 10);
        break;
    }
}

/* FRAMEWORK_COMPONENT_NAME, or crypt_NAME, of no component.  A second registration finds the current value. */
int opal_cryptproc_register_one(const char *full, void *storage)
{
    static const mca_base_var_type_t types[] = {
        [OPAL_CRYPT_PARAMETER_TEXT] = MCA_BASE_VAR_TYPE_STRING,   [OPAL_CRYPT_PARAMETER_WORD] = MCA_BASE_VAR_TYPE_INT,
        [OPAL_CRYPT_PARAMETER_CHOICE] = MCA_BASE_VAR_TYPE_INT,    [OPAL_CRYPT_PARAMETER_FLAG] = MCA_BASE_VAR_TYPE_BOOL,
        [OPAL_CRYPT_PARAMETER_NUMBER] = MCA_BASE_VAR_TYPE_UNSIGNED_INT, [OPAL_CRYPT_PARAMETER_SIZE] = MCA_BASE_VAR_TYPE_SIZE_T};
    const opal_crypt_parameter_row_t *row = opal_crypt_parameter_row(full);
    const bool settable = OPAL_CRYPT_PARAMETER_CHOICE == row->type;
    mca_base_var_enum_t *choices = NULL;
    char text[NAME_BYTES], *name = text, *component = NULL;
    const char *framework = text, *project = 0 == strncmp(full, "btl_", 4) ? "opal" : "ompi";
    int index;

    snprintf(text, sizeof(text), "%s", full);
    (void) strsep(&name, "_");
    if (0 != strcmp(framework, "crypt")) {
        component = strsep(&name, "_");
    }
    if ((OPAL_CRYPT_PARAMETER_WORD == row->type || settable) && NULL == (choices = words_of(row))) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (mca_base_var_find(project, framework, component, name) < 0) {
        give_default(row, choices, storage);
    }
    index = mca_base_var_register(project, framework, component, name, row->help, types[row->type], choices, 0,
                                  MCA_BASE_VAR_FLAG_DWG | (settable ? MCA_BASE_VAR_FLAG_SETTABLE : 0),
                                  (mca_base_var_info_lvl_t) (OPAL_INFO_LVL_1 + row->level - 1),
                                  settable ? MCA_BASE_VAR_SCOPE_ALL_EQ : MCA_BASE_VAR_SCOPE_READONLY, storage);
    if (NULL != choices) {
        OBJ_RELEASE(choices);
    }
    return index;
}

int opal_cryptproc_register(const opal_cryptproc_parameter_t *list, size_t count, const char **failed)
{
    int rc = OPAL_SUCCESS;

    for (size_t i = 0; i < count; i++) {
        const int index = opal_cryptproc_register_one(list[i].name, list[i].storage);

        if (index < 0 && OPAL_SUCCESS == rc) {
            rc = index;
            *failed = list[i].name;
        }
    }
    return rc;
}

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

/* What this process sealed and opened, as MPI_T performance variables: crypt_NAME, category crypt.  They always exist;
 * crypt_report sums them over the processes of a job.  Registered without the project's name, which Open MPI would put
 * before the category's. */
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

/* ---- all parameters ---- */

/* crypt_required is registered for display only: hook/crypt reads it itself (cryptmpi_spelling.c). */
int opal_cryptproc_params_register(void)
{
    opal_cryptproc_params_t *p = &opal_cryptproc_params;
    opal_crypt_options_t *o = &p->options;
    const opal_cryptproc_parameter_t list[] = {
        {"crypt_auth", &o->auth},
        {"crypt_psk_file", &o->psk_file},
        {"crypt_munge_socket", &o->munge_socket},
        {"crypt_munge_age", &o->munge_age},
        {"crypt_x509_cert", &o->x509_cert},
        {"crypt_x509_key", &o->x509_key},
        {"crypt_x509_ca", &o->x509_ca},
        {"crypt_x509_crl", &o->x509_crl},
        {"crypt_x509_peer", &o->x509_peer},
        {"crypt_secret_on_netfs", &o->secret_on_netfs},
        {"crypt_fips", &o->fips},
        {"crypt_key_bits", &p->key_bits},
        {"crypt_threads", &p->threads},
        {"crypt_scope", &p->scope},
        {"crypt_transport", &p->transport},
        {"crypt_on_auth_failure", &p->on_failure},
        {"crypt_on_missing", &p->on_missing},
        {"crypt_audit", &p->audit},
        {"crypt_connect_timeout", &p->connect_timeout},
        {"crypt_report", &p->report},
        {"crypt_verbose", &p->verbose},
        {"crypt_required", &p->required},
#ifdef OPAL_CRYPT_TEST_RECORD
        {"crypt_epoch_shift", &o->epoch_shift},
#endif
    };
    const char *failed;
    int rc;

#ifndef OPAL_CRYPT_TEST_RECORD
    o->epoch_shift = 20;
#endif
    rc = opal_cryptproc_register(list, sizeof(list) / sizeof(list[0]), &failed);
    rc = rc ? rc : metrics_register();
    return rc ? rc : opal_cryptproc_events_register();
}

bool opal_cryptproc_report_wanted(void)
{
    const char *report = opal_cryptproc_params.report;

    return NULL != report && '\0' != *report && 0 != strcmp(report, "0");
}

/* Their storage is in this library.  It may be unloaded before any component was opened (ompi_info), and Open MPI
 * looks at its variables once more after that. */
static void __attribute__((destructor)) params_deregister(void)
{
    const int groups[] = {mca_base_var_group_find("ompi", "crypt", NULL), mca_base_var_group_find(NULL, "crypt", NULL)};

    for (int i = 0; i < 2; i++) {
        if (groups[i] >= 0 && (0 == i || groups[i] != groups[0])) {
            mca_base_var_group_deregister(groups[i]);
        }
    }
}
