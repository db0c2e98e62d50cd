/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The series guard.  Open MPI's loader compares only the version of the MCA base, which all series share, and would
 * use structs of another layout.  A component of another version of ompi-crypt may have the same name as one of this
 * library's, and be loaded with it.
 */
#include "opal_config.h"

#include <stdio.h>
#include <string.h>

#include "opal/constants.h"
#include "opal/mca/aead/base/aead_base_compat.h"
#include "opal/mca/aead/base/aead_base_help.h"
#include "opal/mca/aead/base/base.h"

/* MAJOR.MINOR at the first digit of a version string: "4.1.4", "v5.0.7rc1",
 * "Open MPI v5.0.7".  A site may have chosen an identity without one. */
static int parse(const char *text, int *major, int *minor)
{
    const char *digit = strpbrk(text, "0123456789");

    return NULL != digit && 2 == sscanf(digit, "%d.%d", major, minor) ? OPAL_SUCCESS : OPAL_ERROR;
}

/* Help files of a private prefix are not where Open MPI looks.  It is told when the library is loaded, which is
 * sufficient for the tools, and forgets it at the end of each MPI session in a process (5.0 can have several): so each
 * component that registers tells it again, before any of them can show a text.  Listing a directory twice is
 * harmless. */
__attribute__((constructor)) static void add_help_dir(void)
{
    opal_aead_base_help_dir();
}

int opal_aead_base_series(const char *component, const char *built, const char *running)
{
    static const char own[] = OPAL_CRYPT_BUILT;
    int built_major, built_minor, running_major, running_minor;

    add_help_dir();
    if (0 != strncmp(built, own, sizeof(own) - 1)) {
        OPAL_AEAD_BASE_HELP("help-opal-aead-base.txt", "other version", component, built, OPAL_CRYPT_VERSION);
        return OPAL_ERR_NOT_SUPPORTED;
    }
    built += sizeof(own) - 1;
    if (0 == strcmp(built, running)) {
        return OPAL_SUCCESS;
    }
    if (OPAL_SUCCESS == parse(built, &built_major, &built_minor)
        && OPAL_SUCCESS == parse(running, &running_major, &running_minor)
        && built_major == running_major && built_minor == running_minor) {
        return OPAL_SUCCESS;
    }
    OPAL_AEAD_BASE_HELP("help-opal-aead-base.txt", "other series", component, built, running);
    return OPAL_ERR_NOT_SUPPORTED;
}
