/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * fs/crypt stands before the file system's own component (ufs, lustre, gpfs
 * ...), which does what there is to do; encrypted files get their second part,
 * their map and their engine here.  Plain files pass.
 */
#ifndef OMPI_MCA_FS_CRYPT_H
#define OMPI_MCA_FS_CRYPT_H

#include "ompi/mca/common/cryptmpio/cryptmpio.h"

extern OMPI_DECLSPEC mca_fs_base_component_2_0_0_t mca_fs_crypt_component;

/* A module for one file over what `under` offers; NULL without memory.  One
 * that is made to delete a file is nobody's, and is used again. */
mca_fs_base_module_t *ompi_fs_crypt_module(ompio_file_t *fh, mca_fs_base_module_t *under,
                                           mca_fs_base_component_t *component);

#endif
