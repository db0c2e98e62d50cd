/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * JSON (RFC 8259) that is read where it lies: values are pieces of the text, so a secret in it is never copied.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPTFILE_KEYSTORE_JSON_H
#define OPAL_CRYPTFILE_KEYSTORE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One value: from its first character to behind its last one. */
typedef struct opal_cryptfile_json {
    const char *at, *end;
} opal_cryptfile_json_t;

/* Is the text one value, nested 16 deep at most?  The functions below are for values found in such a text. */
bool opal_cryptfile_json_check(const char *text, size_t bytes, opal_cryptfile_json_t *value);

/* The member `name` of an object: the first, if there are several.  False: it is no object, or has none. */
bool opal_cryptfile_json_member(const opal_cryptfile_json_t *object, const char *name, opal_cryptfile_json_t *value);

/* The next value of an array or object; *rest is first the array or object itself.  *name: an object's, with its quotes;
 * else the value again. */
bool opal_cryptfile_json_next(opal_cryptfile_json_t *rest, opal_cryptfile_json_t *name, opal_cryptfile_json_t *value);

/* The characters of a string.  False for other values, and for a string that has an escape: none that is asked for here
 * needs one. */
bool opal_cryptfile_json_string(const opal_cryptfile_json_t *value, const char **text, size_t *bytes);
/* Is it exactly this string? */
bool opal_cryptfile_json_equals(const opal_cryptfile_json_t *value, const char *text);
/* A whole number without sign, fraction or exponent. */
bool opal_cryptfile_json_number(const opal_cryptfile_json_t *value, uint64_t max, uint64_t *number);
bool opal_cryptfile_json_true(const opal_cryptfile_json_t *value);

#endif
