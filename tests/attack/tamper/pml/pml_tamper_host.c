/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * ob1 is loaded by the very code that loads us.
 */
#include "pml_tamper.h"

#undef OMPI_PML_CRYPT_TEST_HOSTS
#define mca_pml_crypt_component      mca_pml_tamper_component
#define ompi_pml_crypt_host_load     ompi_pml_tamper_host_load
#define ompi_pml_crypt_host_finalize ompi_pml_tamper_host_finalize
#define ompi_pml_crypt_host_close    ompi_pml_tamper_host_close
#include "ompi/mca/pml/crypt/pml_crypt_host.c"
