/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What Open MPI's parameter files say; shared by the files of common/cryptmpi only.
 */
#ifndef OMPI_COMMON_CRYPTMPI_PARAM_FILES_H
#define OMPI_COMMON_CRYPTMPI_PARAM_FILES_H

#include "ompi_config.h"

#include "opal/class/opal_list.h"
#include "opal/mca/base/mca_base_vari.h"

enum { OMPI_COMMON_CRYPTMPI_PARAM_FILES = 16 };

typedef struct {
    opal_list_t values;         /* mca_base_var_file_value_t, each name once; mbvfv_file is one of the names below */
    char *names[OMPI_COMMON_CRYPTMPI_PARAM_FILES];
    int count;
    const char *override;       /* openmpi-mca-params-override.conf, which always wins */
} ompi_common_cryptmpi_param_files_t;

void ompi_common_cryptmpi_param_files_read(ompi_common_cryptmpi_param_files_t *files);
void ompi_common_cryptmpi_param_files_free(ompi_common_cryptmpi_param_files_t *files);

/* Their value for `name`, or NULL. */
const mca_base_var_file_value_t *ompi_common_cryptmpi_param_files_value(const ompi_common_cryptmpi_param_files_t *files,
                                                                        const char *name);

#endif
