/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the tests of files share: numbers in vectors.
 */
#ifndef TESTS_FILE_VECTORS_H
#define TESTS_FILE_VECTORS_H

#include "tests/unit/vectors.h"

static inline int64_t number_of(const vector_block_t *vector, const char *name)
{
    return strtoll(vector_text(vector, name), NULL, 10);
}

static inline int kind_is(const vector_block_t *vector, const char *kind)
{
    return 0 == strcmp(kind, vector_text(vector, "kind"));
}

#endif
