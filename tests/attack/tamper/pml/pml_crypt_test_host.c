/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * pml/crypt, but what it takes for ob1, ucx or cm is pml/tamper.
 */
#define OMPI_PML_CRYPT_TEST_HOSTS
#define ompi_pml_crypt_host_load ompi_pml_crypt_host_load_named
#include "ompi/mca/pml/crypt/pml_crypt_host.c"
#undef ompi_pml_crypt_host_load

mca_pml_base_module_t *ompi_pml_crypt_host_load(const char **name, bool progress_threads, bool mpi_threads);

mca_pml_base_module_t *ompi_pml_crypt_host_load(const char **name, bool progress_threads, bool mpi_threads)
{
    const char *tamper = "tamper";

    *name = 0 == strcmp(*name, "auto") ? "ob1" : *name;
    return ompi_pml_crypt_host_load_named(&tamper, progress_threads, mpi_threads);
}
