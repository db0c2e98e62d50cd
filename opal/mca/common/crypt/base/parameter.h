/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MCA parameters as they are written: is a name ours, is it spelt right, and can its value
 * be read?  Open MPI ignores a parameter that nobody registers, so that a misspelt
 * fs_crypt_key_label would leave a file in plaintext, and takes 1e30 for 1.
 */
#ifndef OPAL_CRYPT_BASE_PARAMETER_H
#define OPAL_CRYPT_BASE_PARAMETER_H

#include "base.h"

#pragma GCC visibility push(default)

typedef enum {
    OPAL_CRYPT_PARAMETER_TEXT,
    OPAL_CRYPT_PARAMETER_WORD,      /* one of `words`; their numbers begin at `least` */
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
    const char *words;              /* with a space between them */
    const char *start;              /* the default; NULL: none */
    int level;                      /* Open MPI's, 1 to 9; 0: Open MPI registers it for every BTL */
    const char *help;
} opal_crypt_parameter_row_t;

typedef enum {
    OPAL_CRYPT_PARAMETER_FOREIGN,       /* somebody else's */
    OPAL_CRYPT_PARAMETER_KNOWN,         /* ours */
    OPAL_CRYPT_PARAMETER_UNKNOWN,       /* begins as ours do, and is none of them */
    OPAL_CRYPT_PARAMETER_NEAR,          /* begins otherwise, within two edits of one of ours */
    OPAL_CRYPT_PARAMETER_UNREADABLE,    /* ours, but the value is no number, none of its words, or neither on nor off */
    OPAL_CRYPT_PARAMETER_RANGE          /* ours, a number out of its bounds: the component says so, too */
} opal_crypt_parameter_t;

/* `value` may be NULL.  `nearest` gets that of ours which is meant (for a person to read); for
 * UNREADABLE the words that its value may be; NULL where there is none. */
opal_crypt_parameter_t opal_crypt_parameter(const char *name, const char *value, const char **nearest);

/* Every one of ours, NULL after the last; that of a name, or NULL. */
const opal_crypt_parameter_row_t *opal_crypt_parameter_at(size_t index);
const opal_crypt_parameter_row_t *opal_crypt_parameter_row(const char *name);

/* Has one of ours no effect but on messages?  A job that is given it means to encrypt them. */
bool opal_crypt_parameter_of_messages(const char *name);

/* Calls `visit` for each of the environment (OMPI_MCA_NAME=VALUE) that is not FOREIGN. */
typedef void (*opal_crypt_parameter_visit_t)(const char *name, const char *value,
                                             opal_crypt_parameter_t kind, const char *nearest,
                                             void *argument);
void opal_crypt_parameter_environment(opal_crypt_parameter_visit_t visit, void *argument);

#pragma GCC visibility pop

#endif
