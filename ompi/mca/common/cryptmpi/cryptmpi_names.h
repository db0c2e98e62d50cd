/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What is known about components of other frameworks: for the audit of a job,
 * and for `mpicrypt doctor` before it.
 */
#ifndef OMPI_COMMON_CRYPTMPI_NAMES_H
#define OMPI_COMMON_CRYPTMPI_NAMES_H

#include <stdbool.h>

#include "ompi_config.h"

BEGIN_C_DECLS

/* It sends through the PML, or does not send at all. */
OMPI_DECLSPEC bool ompi_common_cryptmpi_coll_rides(const char *name);
OMPI_DECLSPEC bool ompi_common_cryptmpi_osc_rides(const char *name);

/* It copies through shared memory and never leaves the node. */
OMPI_DECLSPEC bool ompi_common_cryptmpi_coll_local(const char *name);
OMPI_DECLSPEC bool ompi_common_cryptmpi_osc_local(const char *name);
OMPI_DECLSPEC bool ompi_common_cryptmpi_btl_local(const char *name);

END_C_DECLS

#endif
