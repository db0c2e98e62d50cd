/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Our MCA parameters as set for a job: those that would be ignored, because their names are misspelt or their values
 * cannot be read (also for `mpicrypt doctor`); whether any asks for encryption; what the site requires.
 */
#ifndef OMPI_COMMON_CRYPTMPI_SPELLING_H
#define OMPI_COMMON_CRYPTMPI_SPELLING_H

#include "ompi_config.h"
#include "opal/mca/common/crypt/base/parameter.h"

BEGIN_C_DECLS

/* A parameter that is neither FOREIGN nor KNOWN, and where it was found: a file's name, or NULL
 * for the environment, which also holds the command line's. */
typedef void (*ompi_common_cryptmpi_spelling_visit_t)(const char *name, const char *value,
                                                      opal_crypt_parameter_t kind, const char *nearest,
                                                      const char *file, void *argument);
OMPI_DECLSPEC void ompi_common_cryptmpi_spelling_each(ompi_common_cryptmpi_spelling_visit_t visit, void *argument);

/* In every process, once, before any component of ours does something: warns about such
 * parameters, or ends the process, and with it the job. */
OMPI_DECLSPEC void ompi_common_cryptmpi_spelling_check(void);

/* After the check: is crypt_required set, whatever the user sets against the override file?  And a parameter that was
 * given for this job (not by a file) and only affects encrypted messages; NULL: there is none. */
OMPI_DECLSPEC bool ompi_common_cryptmpi_required(void);
OMPI_DECLSPEC const char *ompi_common_cryptmpi_given(void);

/* Open MPI would choose freely among several PMLs: end the process, and with it the job. */
OMPI_DECLSPEC void ompi_common_cryptmpi_refuse_list(void) __attribute__((noreturn));

END_C_DECLS

#endif
