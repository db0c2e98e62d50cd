/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Start and stop of this library, and the host PML: from pml/crypt's init to its finalize.  And
 * the series guard, before anything else is called.
 */
#include "cryptmpi.h"
#include "cryptmpi_internal.h"
#include "cryptmpi_series.h"

#include <string.h>

#include "opal/mca/aead/base/base.h"
#include "opal/runtime/opal.h"
#include "ompi/runtime/mpiruntime.h"

static const mca_pml_base_module_t *host_module;
static const char *host_name;
static bool started;

int ompi_common_cryptmpi_start(const char *agreed)
{
    int rc = ompi_common_cryptmpi_report_start();

    rc = OMPI_SUCCESS == rc ? opal_cryptproc_start(agreed) : rc;
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    ompi_common_cryptmpi_peers_start();
    ompi_common_cryptmpi_device_start();
    ompi_common_cryptmpi_waits_start();
    started = true;
    return OMPI_SUCCESS;
}

void ompi_common_cryptmpi_stop(void)
{
    if (!started) {
        return;
    }
    started = false;
    ompi_common_cryptmpi_waits_stop();
    ompi_common_cryptmpi_peers_stop();
    ompi_common_cryptmpi_comms_stop();
    ompi_common_cryptmpi_generations_stop();
    opal_crypt_wire_finalize();
    opal_cryptproc_stop();
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
    char job[OPAL_CRYPTPROC_NSPACE_BYTES];

    memset(who, 0, sizeof(*who));
    who->rank = OPAL_PROC_MY_NAME.vpid;
    opal_cryptproc_job_name(&OPAL_PROC_MY_NAME, job);
    opal_cryptproc_cut(who->job, sizeof(who->job), job);
    opal_cryptproc_cut(who->host, sizeof(who->host), opal_process_info.nodename);
    opal_cryptproc_cut(who->method, sizeof(who->method),
                       opal_crypt_auth_name(opal_crypt_local_auth(opal_cryptproc_local())));
    opal_cryptproc_cut(who->pml, sizeof(who->pml), NULL == host_name ? "btl/crypt" : host_name);
    _Static_assert(sizeof(who->protection) == OMPI_COMMON_CRYPTMPI_PROTECTION, "room for the line");
    ompi_common_cryptmpi_protection(NULL, who->protection);
}

/* Both libraries are checked: a process may have two of the same name if a wrong one was found first. */
bool ompi_common_cryptmpi_series_ok(const char *component, const char *built)
{
    return OPAL_SUCCESS == opal_aead_base_series(component, built, ompi_version_string)
           && OPAL_SUCCESS == opal_aead_base_series(component, built, opal_version_string);
}
