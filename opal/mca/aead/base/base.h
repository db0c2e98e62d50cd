/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The base of the aead framework.
 */
#ifndef OPAL_AEAD_BASE_H
#define OPAL_AEAD_BASE_H

#include "opal/mca/aead/aead.h"

BEGIN_C_DECLS

OPAL_DECLSPEC extern mca_base_framework_t opal_aead_base_framework;

/* The series guard: does `running`, the version string of a library in this
 * process, belong to the series (MAJOR.MINOR) of the headers with which
 * `component` was compiled, `built`?  If not, show why and return
 * OPAL_ERR_NOT_SUPPORTED; the component must then not be used, as the structs
 * of another series have other layouts.  Callers use the macro. */
OPAL_DECLSPEC int opal_aead_base_series(const char *component, const char *built, const char *running);

/* First statement of every component's register function. */
#define OPAL_AEAD_SERIES_OK(component) \
    (OPAL_SUCCESS == opal_aead_base_series((component), OPAL_IDENT_STRING, opal_version_string))

END_C_DECLS

#endif
