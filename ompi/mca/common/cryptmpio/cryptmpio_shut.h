/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * After a failed request for encryption, a file transfers no data any more, whichever components of
 * Open MPI handle it.  Each user has a copy of this: fs/crypt, hook/crypt, and the library for applications.
 */
#ifndef OMPI_COMMON_CRYPTMPIO_SHUT_H
#define OMPI_COMMON_CRYPTMPIO_SHUT_H

#include "ompi/mca/common/cryptmpi/cryptmpi_compat.h"

/* In a file's own table: every function that reads or writes returns MPI_ERR_ACCESS from now on.  All
 * processes of the file must do the same: none takes part in a collective call any more. */
void ompi_common_cryptmpio_shut(ompi_common_cryptmpi_io_module_t *io);

#endif
