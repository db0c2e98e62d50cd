/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Our MCA parameters that would not be obeyed, because their names are misspelt or their
 * values cannot be read: for a job, and for `mpicrypt doctor` before it.
 */
#ifndef OMPI_COMMON_CRYPTMPI_SPELLING_H
#define OMPI_COMMON_CRYPTMPI_SPELLING_H

#include "ompi_config.h"
#include "opal/mca/common/crypt/wire/parameter.h"

BEGIN_C_DECLS

/* One that is neither FOREIGN nor KNOWN, and where it was found: a file's name, or NULL for the
 * environment, where the command line ends, too. */
typedef void (*ompi_common_cryptmpi_spelling_visit_t)(const char *name, const char *value,
                                                      opal_crypt_parameter_t kind, const char *nearest,
                                                      const char *file, void *argument);
OMPI_DECLSPEC void ompi_common_cryptmpi_spelling_each(ompi_common_cryptmpi_spelling_visit_t visit, void *argument);

/* In every process, once, before any component of ours does something: warns of such parameters,
 * or ends the process, and with it the job. */
OMPI_DECLSPEC void ompi_common_cryptmpi_spelling_check(void);

/* Of several PMLs Open MPI would take whichever it likes: the process ends, and with it the job. */
OMPI_DECLSPEC void ompi_common_cryptmpi_refuse_list(void) __attribute__((noreturn));

END_C_DECLS

#endif
