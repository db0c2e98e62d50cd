/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * fs/crypt wraps the file system's own component (ufs, lustre, gpfs ...), which
 * does the actual work; here encrypted files get their map and their engine.
 * Plain files pass through.
 */
#ifndef OMPI_MCA_FS_CRYPT_H
#define OMPI_MCA_FS_CRYPT_H

#include "ompi/mca/common/cryptmpio/cryptmpio.h"

extern OMPI_DECLSPEC mca_fs_base_component_2_0_0_t mca_fs_crypt_component;

/* A module for one file on top of `under`; NULL if out of memory.  A module made
 * to delete a file belongs to its thread, and is reused. */
mca_fs_base_module_t *ompi_fs_crypt_module(ompio_file_t *fh, mca_fs_base_module_t *under,
                                           mca_fs_base_component_t *component);

#endif
