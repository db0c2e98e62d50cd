/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The series guard of the MPI-level components: the first statement of every
 * component's register function is
 *
 *     if (!OMPI_COMMON_CRYPTMPI_SERIES_OK("pml/crypt")) {
 *         return OMPI_ERR_NOT_SUPPORTED;
 *     }
 */
#ifndef OMPI_COMMON_CRYPTMPI_SERIES_H
#define OMPI_COMMON_CRYPTMPI_SERIES_H

#include <stdbool.h>

#include "ompi_config.h"

#include "opal/mca/aead/base/base.h"

BEGIN_C_DECLS

/* Does `component` have the version of our libraries, and was it built for the series of the
 * running Open MPI?  `built`: its OPAL_AEAD_BUILT when compiled.  If not, prints why. */
OMPI_DECLSPEC bool ompi_common_cryptmpi_series_ok(const char *component, const char *built);

#define OMPI_COMMON_CRYPTMPI_SERIES_OK(component) \
    ompi_common_cryptmpi_series_ok((component), OPAL_AEAD_BUILT)

END_C_DECLS

#endif
