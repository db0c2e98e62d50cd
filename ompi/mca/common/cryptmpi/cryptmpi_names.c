/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which components of other frameworks carry payload past the PML, by name.
 * Components that we have not reviewed count as unsafe.
 */
#include "cryptmpi_names.h"

#include "cryptmpi_compat.h"

#include <stddef.h>
#include <string.h>

static bool among(const char *name, const char *const *list)
{
    for (; NULL != *list; list++) {
        if (0 == strcmp(name, *list)) {
            return true;
        }
    }
    return false;
}

bool ompi_common_cryptmpi_coll_rides(const char *name)
{
    static const char *const list[] = {"adapt", "basic", "cuda", "accelerator", "cryptag", "ftagree", "inter",
                                       "libnbc", "monitoring", "self", "spacc", "sync", "tuned", "demo", NULL};

    return among(name, list) || (!OMPI_COMMON_CRYPTMPI_HAN_MAPS && 0 == strcmp(name, "han"));
}

bool ompi_common_cryptmpi_coll_local(const char *name)
{
    static const char *const list[] = {"sm", "xhc", NULL};

    return among(name, list) || (OMPI_COMMON_CRYPTMPI_HAN_MAPS && 0 == strcmp(name, "han"));
}

bool ompi_common_cryptmpi_osc_rides(const char *name)
{
    return 0 == strcmp(name, "pt2pt");
}

bool ompi_common_cryptmpi_osc_local(const char *name)
{
    return 0 == strcmp(name, "sm");
}

bool ompi_common_cryptmpi_btl_local(const char *name)
{
    static const char *const list[] = {"self", "sm", "vader", NULL};

    return among(name, list);
}
