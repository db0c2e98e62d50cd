/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Entries of our help files.  Open MPI up to 5.0 reads these files once told where they are; 6.0 has all texts
 * compiled in, and reads no others.  For it ours are compiled in, too, from the same files
 * (standalone/help_texts.awk), and handed to the runtime here.
 */
#ifndef OPAL_MCA_AEAD_BASE_HELP_H
#define OPAL_MCA_AEAD_BASE_HELP_H

#include "opal_config.h"

#include "opal/mca/aead/base/aead_base_compat.h"

#include <stdarg.h>
#include <stdbool.h>

BEGIN_C_DECLS

/* The text with its arguments, between two lines of dashes if `framed`; the caller frees it.  NULL: no such text. */
OPAL_DECLSPEC char *opal_aead_base_help_vstring(const char *file, const char *topic, bool framed, va_list list);
OPAL_DECLSPEC char *opal_aead_base_help_string(const char *file, const char *topic, bool framed, ...);

/* Through the launcher, which counts the processes that report the same: OPAL_AEAD_BASE_HELP.  6.0 only. */
OPAL_DECLSPEC void opal_aead_base_help(const char *file, const char *topic, ...);

/* For a private prefix: tell Open MPI where the files are, for this MPI session. */
void opal_aead_base_help_dir(void);

/* The table, which ends with NULLs. */
typedef struct {
    const char *file, *topic, *text;
} opal_aead_base_help_text_t;
extern const opal_aead_base_help_text_t opal_aead_base_help_texts[];

END_C_DECLS

#endif
