/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Where the MCA of Open MPI 6.0 differs from that of 4.1 and 5.0: every #if on a version, as far as
 * what is below opal/mca/common/cryptproc is concerned.
 */
#ifndef OPAL_MCA_AEAD_BASE_COMPAT_H
#define OPAL_MCA_AEAD_BASE_COMPAT_H

#include "opal_config.h"

#include "opal/mca/mca.h"

/* An entry of a framework's list of static components, and the component. */
#if OPAL_MAJOR_VERSION >= 6
typedef const mca_base_component_t **opal_aead_base_static_t;
#    define OPAL_AEAD_BASE_STATIC(entry) (*(entry))
#else
typedef const mca_base_component_t *opal_aead_base_static_t;
#    define OPAL_AEAD_BASE_STATIC(entry) (entry)
#endif

#endif
