/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The verbose streams: pml_crypt_verbose, coll_cryptag_verbose, fs_crypt_verbose.  They name
 * processes, methods, algorithms, lengths and counts, and never a key or payload.
 */
#include "cryptmpi.h"

#include "opal/mca/base/mca_base_var.h"

int ompi_common_cryptmpi_stream = -1;

int ompi_common_cryptmpi_verbose_register(const mca_base_component_t *component, const char *help, unsigned *level)
{
    int rc;

    *level = 0;
    rc = mca_base_component_var_register(component, "verbose", help, MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, 0, 0, OPAL_INFO_LVL_3,
                                         MCA_BASE_VAR_SCOPE_READONLY, level);
    return rc < 0 ? rc : OMPI_SUCCESS;
}

int ompi_common_cryptmpi_verbose_open(unsigned level)
{
    int stream = level > 0 ? opal_output_open(NULL) : -1;

    if (stream >= 0) {
        opal_output_set_verbosity(stream, level < 100 ? (int) level : 100);
    }
    return stream;
}

void ompi_common_cryptmpi_verbose_close(int *stream)
{
    if (*stream >= 0) {
        opal_output_close(*stream);
    }
    *stream = -1;
}
