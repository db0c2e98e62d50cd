/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a process finds out about its Open MPI before its first message.
 */
#include "pml_crypt_host.h"

#include <stdio.h>
#include <string.h>

#include "opal/mca/base/mca_base_var.h"
#include "ompi/mca/coll/base/base.h"

/* Under ULFM the host's requests fail when a process does; ours would wait for ever. */
bool ompi_pml_crypt_fault_tolerant(void)
{
    const bool tolerant = ompi_common_cryptmpi_fault_tolerant();

    if (tolerant) {
        OPAL_CRYPTPROC_SHOW("help-mpi-pml-crypt.txt", "fault-tolerant");
    }
    return tolerant;
}

/* Are there threads: the application's, or that of btl/tcp, which runs completions itself? */
void ompi_pml_crypt_find_threads(bool mpi_threads)
{
#if OMPI_MAJOR_VERSION < 5
    const int *tcp = NULL;
    int index;

    if (OPAL_SUCCESS == mca_base_var_find_by_name("btl_tcp_progress_thread", &index)) {
        (void) mca_base_var_get_value(index, &tcp, NULL, NULL);
    }
    opal_cryptproc_threads = mpi_threads || (NULL != tcp && 0 != *tcp);
#else
    (void) mpi_threads;             /* Open MPI can be asked at any time */
#endif
}

/* Is coll/cryptag used?  The framework has been opened, in every series, when PMLs are selected. */
bool ompi_pml_crypt_cryptag_here(void)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &ompi_coll_base_framework.framework_components, mca_base_component_list_item_t) {
        if (0 == strcmp(item->cli_component->mca_component_name, "cryptag")) {
            return true;
        }
    }
    return false;
}

/* What processes compare on first contact.  Different MTLs, or different layouts of a tag (which the largest tag and
 * the largest context id tell apart), do not understand each other.  If one process runs a collective by coll/cryptag
 * and another does not, they wait for each other for ever. */
const char *ompi_pml_crypt_agreed(void)
{
    static char agreed[256];            /* the core keeps it */
    const ompi_pml_crypt_params_t *p = &ompi_pml_crypt.params;
    const char *mtl = ompi_pml_crypt_mtl_name();

    snprintf(agreed, sizeof(agreed), "pml_crypt_host=%s%s%s;tag_bits=%u;contexts=%lu;pml_crypt_chop_min=%u;crypt_key_bits=%u;"
             "coll_cryptag=%s%s%s", ompi_pml_crypt.host_name, NULL == mtl ? "" : "/", NULL == mtl ? "" : mtl,
             ompi_pml_crypt.tag_bits, (unsigned long) ompi_pml_crypt.host.pml_max_contextid, p->chop_min,
             opal_cryptproc_params.key_bits, ompi_pml_crypt_cryptag_here() ? "on" : "off",
             ompi_pml_crypt_limits_ucx_raised() ? ";ucx_limits=raised" : "",
             ompi_common_cryptmpi_windows_over_btl() ? ";windows=btl" : "");
    return agreed;
}
