/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Check the names and values of our MCA parameters.  Open MPI ignores a parameter that is not registered, so a
 * misspelt fs_crypt_key_label would leave a file in plaintext; and it takes 1e30 for 1.
 */
#ifndef OPAL_CRYPT_BASE_PARAMETER_H
#define OPAL_CRYPT_BASE_PARAMETER_H

#include "base.h"

#pragma GCC visibility push(default)

typedef enum {
    OPAL_CRYPT_PARAMETER_TEXT,
    OPAL_CRYPT_PARAMETER_WORD,      /* one of `words`; numbered from `least` */
    OPAL_CRYPT_PARAMETER_CHOICE,    /* the same; MPI_T may change it, at all ranks */
    OPAL_CRYPT_PARAMETER_FLAG,      /* on or off */
    OPAL_CRYPT_PARAMETER_NUMBER,    /* unsigned, from `least` to `most` */
    OPAL_CRYPT_PARAMETER_SIZE       /* the same, a size_t */
} opal_crypt_parameter_type_t;

/* A row of params.def. */
typedef struct opal_crypt_parameter_row {
    const char *name;
    opal_crypt_parameter_type_t type;
    uint64_t least, most;
    const char *words;              /* separated by spaces */
    const char *start;              /* the default; NULL: none */
    int level;                      /* Open MPI's, 1 to 9; 0: Open MPI registers it for every BTL */
    const char *help;
} opal_crypt_parameter_row_t;

typedef enum {
    OPAL_CRYPT_PARAMETER_FOREIGN,       /* not ours */
    OPAL_CRYPT_PARAMETER_KNOWN,         /* ours */
    OPAL_CRYPT_PARAMETER_UNKNOWN,       /* has one of our prefixes, but is not ours */
    OPAL_CRYPT_PARAMETER_NEAR,          /* has another prefix, but is within two edits of one of ours */
    OPAL_CRYPT_PARAMETER_UNREADABLE,    /* ours; the value is no number, none of its words, or neither on nor off */
    OPAL_CRYPT_PARAMETER_RANGE          /* ours, but the number is out of range: the component reports that, too */
} opal_crypt_parameter_t;

/* `value` may be NULL.  `nearest` gets the parameter probably meant (for a person to read); for UNREADABLE the words
 * allowed; NULL if there is none. */
opal_crypt_parameter_t opal_crypt_parameter(const char *name, const char *value, const char **nearest);

/* All of our parameters, NULL after the last; the one of a name, or NULL. */
const opal_crypt_parameter_row_t *opal_crypt_parameter_at(size_t index);
const opal_crypt_parameter_row_t *opal_crypt_parameter_row(const char *name);

/* Does this parameter of ours affect messages only?  A job that sets it means to encrypt them. */
bool opal_crypt_parameter_of_messages(const char *name);

/* Calls `visit` for each environment variable OMPI_MCA_NAME=VALUE that is not FOREIGN. */
typedef void (*opal_crypt_parameter_visit_t)(const char *name, const char *value,
                                             opal_crypt_parameter_t kind, const char *nearest,
                                             void *argument);
void opal_crypt_parameter_environment(opal_crypt_parameter_visit_t visit, void *argument);

#pragma GCC visibility pop

#endif
