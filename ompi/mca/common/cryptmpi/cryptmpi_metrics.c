/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What this process sealed and opened, as performance variables of MPI_T:
 * crypt_NAME, category crypt.  They are always there; crypt_report adds them up
 * over the processes of a job.
 */
#include "cryptmpi.h"
#include "cryptmpi_internal.h"

#include <stddef.h>

#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/common/crypt/base/stats.h"

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

static int get(const struct mca_base_pvar_t *pvar, void *value, void *object)
{
    opal_crypt_stats_t stats;

    (void) object;
    opal_crypt_stats(&stats);
    *(unsigned long long *) value = *(uint64_t *) ((char *) &stats + (size_t) pvar->ctx);
    return OPAL_SUCCESS;
}

/* Without the project's name, which Open MPI would put before the category's. */
int ompi_common_cryptmpi_metrics_register(void)
{
    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
        int rc = mca_base_pvar_register(NULL, "crypt", NULL, metrics[i].name, metrics[i].help, OPAL_INFO_LVL_4,
                                        MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
                                        MCA_BASE_VAR_BIND_NO_OBJECT,
                                        MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, get, NULL, NULL,
                                        metrics[i].offset);
        if (rc < 0) {
            return rc;
        }
    }
    return OMPI_SUCCESS;
}
