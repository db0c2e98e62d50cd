/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The error classes of encrypted files.
 */
#ifndef OMPI_COMMON_CRYPTMPI_CLASSES_H
#define OMPI_COMMON_CRYPTMPI_CLASSES_H

#include "ompi_config.h"
#include "mpi.h"

BEGIN_C_DECLS

/* How their texts begin. */
#define OMPI_CRYPTMPI_TORN_NAME   "MPIX_ERR_CRYPT_TORN"
#define OMPI_CRYPTMPI_FORGED_NAME "MPIX_ERR_CRYPT_FORGED"
#define OMPI_CRYPTMPI_NO_KEY_NAME "MPIX_ERR_CRYPT_NO_KEY"

typedef enum {
    OMPI_CRYPTMPI_TORN,                 /* a first write was cut short */
    OMPI_CRYPTMPI_FORGED,               /* the data does not authenticate */
    OMPI_CRYPTMPI_NO_KEY,
    OMPI_CRYPTMPI_CLASSES
} ompi_common_cryptmpi_class_t;

/* At the end of MPI_Init, with the arguments of that hook; and when MPI is finalized. */
OMPI_DECLSPEC void ompi_common_cryptmpi_classes_add(int argc, char **argv, int requested, int *provided);
OMPI_DECLSPEC void ompi_common_cryptmpi_classes_forget(void);

/* An error of that class or, where it was not added (a program of MPI sessions alone), of
 * the nearest class of MPI. */
OMPI_DECLSPEC int ompi_common_cryptmpi_code(ompi_common_cryptmpi_class_t kind);

END_C_DECLS

#endif
