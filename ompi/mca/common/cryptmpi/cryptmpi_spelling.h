/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Our MCA parameters as a job has them: those that would not be obeyed, because their names are misspelt or
 * their values cannot be read (also for `mpicrypt doctor`); whether any asks for encryption; what the site requires.
 */
#ifndef OMPI_COMMON_CRYPTMPI_SPELLING_H
#define OMPI_COMMON_CRYPTMPI_SPELLING_H

#include "ompi_config.h"
#include "opal/mca/common/crypt/base/parameter.h"

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

/* From then on: does crypt_required hold, whatever the user says against the override file?  And a parameter that has no
 * effect but on encrypted messages, and was given for this job (not by a file); NULL: none. */
OMPI_DECLSPEC bool ompi_common_cryptmpi_required(void);
OMPI_DECLSPEC const char *ompi_common_cryptmpi_given(void);

/* Of several PMLs Open MPI would take whichever it likes: the process ends, and with it the job. */
OMPI_DECLSPEC void ompi_common_cryptmpi_refuse_list(void) __attribute__((noreturn));

END_C_DECLS

#endif
