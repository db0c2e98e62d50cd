/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reading files of "name = value" lines, values in hexadecimal, as the
 * scripts in tests/vectors write them; an empty line ends a block.
 */
#ifndef TESTS_VECTORS_H
#define TESTS_VECTORS_H

#include "tests/unit/unit.h"

#include <stdint.h>

#define VECTOR_LINES 64

typedef struct vector_block {
    char names[VECTOR_LINES][40];
    char *values[VECTOR_LINES];
    int count;
} vector_block_t;

/* tests/vectors/NAME, found from where the tests are built or run. */
static inline FILE *vector_file(const char *name)
{
    const char *directories[] = { getenv("srcdir"), ".", "tests/unit" };
    char path[1024];

    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); ++i) {
        FILE *file;

        snprintf(path, sizeof(path), "%s/../vectors/%s", NULL == directories[i] ? "." : directories[i], name);
        if (NULL != (file = fopen(path, "r"))) {
            return file;
        }
    }
    fprintf(stderr, "%s cannot be found: set srcdir\n", name);
    exit(1);
}

static inline void vector_clear(vector_block_t *block)
{
    for (int i = 0; i < block->count; ++i) {
        free(block->values[i]);
    }
    block->count = 0;
}

/* The next block; 0 at the end of the file. */
static inline int vector_next(FILE *file, vector_block_t *block)
{
    char *line = NULL;
    size_t capacity = 0;

    vector_clear(block);
    while (getline(&line, &capacity, file) > 0) {
        char *equals = strstr(line, " = ");

        line[strcspn(line, "\n")] = 0;
        if ('#' == line[0]) {
            continue;
        }
        if (NULL == equals && block->count > 0) {
            break;
        }
        if (NULL != equals && block->count < VECTOR_LINES) {
            *equals = 0;
            snprintf(block->names[block->count], sizeof(block->names[0]), "%s", line);
            block->values[block->count++] = strdup(equals + 3);
        }
    }
    free(line);
    return block->count > 0;
}

static inline int vector_has(const vector_block_t *block, const char *name)
{
    for (int i = 0; i < block->count; ++i) {
        if (0 == strcmp(block->names[i], name)) {
            return 1;
        }
    }
    return 0;
}

static inline const char *vector_text(const vector_block_t *block, const char *name)
{
    for (int i = 0; i < block->count; ++i) {
        if (0 == strcmp(block->names[i], name)) {
            return block->values[i];
        }
    }
    fprintf(stderr, "no %s in this block of vectors\n", name);
    exit(1);
}

/* Hexadecimal into `out`; the number of bytes. */
static inline size_t vector_hex(const char *text, uint8_t *out, size_t capacity)
{
    size_t bytes = strlen(text) / 2;

    if (bytes > capacity) {
        fprintf(stderr, "a vector is longer than %zu bytes\n", capacity);
        exit(1);
    }
    for (size_t i = 0; i < bytes; ++i) {
        unsigned value = 0;

        sscanf(text + 2 * i, "%2x", &value);
        out[i] = (uint8_t) value;
    }
    return bytes;
}

static inline size_t vector_bytes(const vector_block_t *block, const char *name, uint8_t *out, size_t capacity)
{
    return vector_hex(vector_text(block, name), out, capacity);
}

#endif
