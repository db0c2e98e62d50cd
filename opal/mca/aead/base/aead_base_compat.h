/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Where the MCA of Open MPI 6.0 differs from that of 4.1 and 5.0: every #if on a version for what is below
 * opal/mca/common/cryptproc.
 */
#ifndef OPAL_MCA_AEAD_BASE_COMPAT_H
#define OPAL_MCA_AEAD_BASE_COMPAT_H

#include "opal_config.h"

#include "opal/mca/mca.h"
#include "opal/util/show_help.h"

/* An entry of a framework's list of static components, and the component; a help text that mpirun counts. */
#if OPAL_MAJOR_VERSION >= 6
typedef const mca_base_component_t **opal_aead_base_static_t;
#    define OPAL_AEAD_BASE_STATIC(entry) (*(entry))
#    define OPAL_AEAD_BASE_HELP(file, topic, ...) opal_aead_base_help(file, topic, ##__VA_ARGS__)
#else
typedef const mca_base_component_t *opal_aead_base_static_t;
#    define OPAL_AEAD_BASE_STATIC(entry) (entry)
/* A pointer, to which the launcher's part of 4.1 gives a function that has mpirun count them. */
#    define OPAL_AEAD_BASE_HELP(file, topic, ...) opal_show_help(file, topic, true, ##__VA_ARGS__)
#endif

#endif
