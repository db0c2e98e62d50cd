/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Help texts through Open MPI; otherwise standalone/help_table.c has these functions, and the one that mpirun counts.
 */
#include "opal_config.h"

#include "opal/util/show_help.h"

#include "opal/mca/aead/base/aead_base_help.h"

#ifndef OMPI_CRYPT_HELP_TEXTS

char *opal_aead_base_help_vstring(const char *file, const char *topic, bool framed, va_list list)
{
    return opal_show_help_vstring(file, topic, framed, list);
}

void opal_aead_base_help_dir(void)
{
#ifdef OMPI_CRYPT_HELP_DIR
    opal_show_help_add_dir(OMPI_CRYPT_HELP_DIR);
#endif
}

#endif

char *opal_aead_base_help_string(const char *file, const char *topic, bool framed, ...)
{
    va_list list;
    char *text;

    va_start(list, framed);
    text = opal_aead_base_help_vstring(file, topic, framed, list);
    va_end(list);
    return text;
}
