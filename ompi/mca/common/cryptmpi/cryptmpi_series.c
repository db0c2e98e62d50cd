/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The series guard of the MPI-level components.  Both libraries are asked: a
 * process may hold two of a name when a wrong one was found first.
 */
#include "ompi_config.h"

#include "opal/mca/aead/base/base.h"
#include "opal/runtime/opal.h"
#include "ompi/runtime/mpiruntime.h"

#include "ompi/mca/common/cryptmpi/cryptmpi_series.h"

bool ompi_common_cryptmpi_series_ok(const char *component, const char *built)
{
    return OPAL_SUCCESS == opal_aead_base_series(component, built, ompi_version_string)
           && OPAL_SUCCESS == opal_aead_base_series(component, built, opal_version_string);
}
