/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The text of keys in exchange: docs/key-exchange.rst, "Contents".
 *
 *     ompi-crypt keys 1
 *     exported SECONDS
 *     keys N
 *     the record's lines, key HEX64      N times: labels ascending, versions of a label descending
 *     end
 */
#ifndef OPAL_CRYPTFILE_KEYSTORE_BUNDLE_H
#define OPAL_CRYPTFILE_KEYSTORE_BUNDLE_H

#include "exchange.h"
#include "key_file.h"

enum { OPAL_CRYPTFILE_BUNDLE_KEYS = 4096 };     /* at most */

/* Text that grows, in secret memory; zeros: empty. */
typedef struct opal_cryptfile_bundle {
    char *text;
    size_t used;
} opal_cryptfile_bundle_t;

/* ERR_EXHAUSTED if the text gets too long. */
int opal_cryptfile_bundle_begin(opal_cryptfile_bundle_t *bundle, int64_t exported, unsigned count);
int opal_cryptfile_bundle_add(opal_cryptfile_bundle_t *bundle, const opal_cryptfile_key_file_t *content);
int opal_cryptfile_bundle_end(opal_cryptfile_bundle_t *bundle);

/* A text whose every line has been checked.  Its keys are read one after another from `at`. */
typedef struct opal_cryptfile_bundle_reader {
    const char *at, *stop;
    unsigned count;
    int64_t exported;
} opal_cryptfile_bundle_reader_t;

/* ERR_AUTH unless all of the text is as above.  `scratch` is secret memory. */
int opal_cryptfile_bundle_check(const char *text, size_t bytes, opal_cryptfile_key_file_t *scratch,
                                opal_cryptfile_bundle_reader_t *reader);
/* The next key; ERR_AUTH: it departs from the format. */
int opal_cryptfile_bundle_next(opal_cryptfile_bundle_reader_t *reader, opal_cryptfile_key_file_t *content);

#endif
