/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The eager limit of shared memory, raised where it is Open MPI's default.
 *
 * The default of 4 KiB leaves no room for the header of a message of 4 KiB, whose
 * payload would then take a rendezvous.  hook/crypt raises btl/tcp's limits, but not
 * this one: the default is known only once the transport has started (32 KiB where it
 * finds XPMEM), and the buffers are allocated later, when it gets its peers.
 */
#include "pml_crypt_host.h"

#include <string.h>

#include "opal/mca/btl/base/base.h"

#if OMPI_MAJOR_VERSION >= 5
static const char shared_memory[] = "sm";
#else
static const char shared_memory[] = "vader";
#endif
enum { ENOUGH = 4096 + 512 };       /* the host's header, ours, and some more */

void ompi_pml_crypt_limits_raise(void)
{
    mca_btl_base_selected_module_t *item;

    if (!mca_base_framework_is_open(&opal_btl_base_framework) || ompi_pml_crypt_is_set("opal", "btl", shared_memory, "eager_limit")) {
        return;
    }
    OPAL_LIST_FOREACH(item, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t) {
        mca_btl_base_module_t *btl = item->btl_module;

        if (0 == strcmp(item->btl_component->btl_version.mca_component_name, shared_memory)
            && btl->btl_eager_limit < ENOUGH && btl->btl_max_send_size >= ENOUGH) {
            btl->btl_eager_limit = ENOUGH;
            ompi_common_cryptmpi_report_raised(OMPI_COMMON_CRYPTMPI_RAISED_SM);
        }
    }
}

/* Bytes that ob1 puts before a message. */
enum { HOST_HEADER = 128 };

bool ompi_pml_crypt_limits_eager(size_t wire_bytes)
{
    mca_btl_base_selected_module_t *item;

    if (0 != strcmp(ompi_pml_crypt.host_name, "ob1") || !mca_base_framework_is_open(&opal_btl_base_framework)) {
        return false;
    }
    OPAL_LIST_FOREACH(item, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t) {
        const char *name = item->btl_component->btl_version.mca_component_name;

        if (0 != strcmp(name, "self") && 0 != strcmp(name, shared_memory)
            && item->btl_module->btl_eager_limit < wire_bytes + HOST_HEADER) {
            return false;
        }
    }
    return true;
}
