/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What protects the messages of this job, in one line: the component that seals, the network, the reason, the
 * authentication, the key agreement and the cipher.  For crypt_report, the status page and MPI_T.
 */
#include "cryptmpi.h"

#include <stdio.h>
#include <string.h>

#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"

void ompi_common_cryptmpi_protection(const char *keys, char text[OMPI_COMMON_CRYPTMPI_PROTECTION])
{
    const opal_cryptproc_params_t *p = &opal_cryptproc_params;
    const bool btl = ompi_common_cryptmpi_transport_is_btl();
    const char *host = ompi_common_cryptmpi_host_name();

    memset(text, 0, OMPI_COMMON_CRYPTMPI_PROTECTION);       /* a tool of MPI_T gets the whole buffer */
    if ((!btl && !ompi_common_cryptmpi_transport_is_pml()) || NULL == opal_cryptproc_local()) {
        return;
    }
    if (NULL == keys) {
        keys = btl ? opal_cryptproc_transport_keys : p->options.fips ? "P-256" : "X25519";
    }
    snprintf(text, OMPI_COMMON_CRYPTMPI_PROTECTION, "%s seals %s, over %s (%s); authentication %s, keys %s, AES-%u-GCM",
             btl ? "btl/crypt" : "pml/crypt", OPAL_CRYPTPROC_ALL == p->scope ? "all messages" : "what leaves a node",
             btl ? "TCP" : NULL == host ? "its host" : host, ompi_common_cryptmpi_transport_why(),
             opal_crypt_auth_name(opal_crypt_local_auth(opal_cryptproc_local())), keys, p->key_bits);
}

/* Parameters for how pml/crypt cuts messages, if set. */
void ompi_common_cryptmpi_unused(char *text, size_t bytes)
{
    static const char *const names[] = {"chop_min", "chunk_size", "t", "team"};
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const int index = mca_base_var_find("ompi", "pml", "crypt", names[i]);
        const mca_base_var_t *var;

        if (index >= 0 && OPAL_SUCCESS == mca_base_var_get(index, &var) && MCA_BASE_VAR_SOURCE_DEFAULT != var->mbv_source
            && used < bytes) {
            used += (size_t) snprintf(text + used, bytes - used, "%spml_crypt_%s", used > 0 ? ", " : "", names[i]);
        }
    }
}

/* ---- MPI_T ---- */

static int read_line(const struct mca_base_pvar_t *pvar, void *value, void *object)
{
    (void) pvar;
    (void) object;
    ompi_common_cryptmpi_protection(NULL, value);
    return OPAL_SUCCESS;
}

/* A tool asks for the number of characters. */
static int bind_line(struct mca_base_pvar_t *pvar, mca_base_pvar_event_t event, void *object, int *count)
{
    (void) pvar;
    (void) object;
    if (MCA_BASE_PVAR_HANDLE_BIND == event) {
        *count = OMPI_COMMON_CRYPTMPI_PROTECTION;
    }
    return OPAL_SUCCESS;
}

static int pvar = -1;

int ompi_common_cryptmpi_protection_register(void)
{
    pvar = mca_base_pvar_register(NULL, "crypt", NULL, "protection",
                                  "What protects the messages, in a line: the component that seals, the network, the reason, "
                                  "authentication, key agreement and cipher; empty before MPI_Init",
                                  OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_GENERIC, MCA_BASE_VAR_TYPE_STRING, NULL,
                                  MCA_BASE_VAR_BIND_NO_OBJECT, MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS,
                                  read_line, NULL, bind_line, NULL);

    return pvar < 0 ? pvar : OPAL_SUCCESS;
}

/* Open MPI may unload this library before the one with the other variables of this group. */
static void __attribute__((destructor)) protection_deregister(void)
{
    if (pvar >= 0) {
        (void) mca_base_pvar_mark_invalid(pvar);
    }
}
