/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reader of tests/vectors/NAME: sections of `field = value` lines.
 *
 *     [section]
 *     number = -3
 *     bytes = 00ff
 */
#ifndef TESTS_UNIT_VECTORS_H
#define TESTS_UNIT_VECTORS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTOR_FIELDS 64
#define VECTOR_LINE   8192

typedef struct vector {
    char section[32];
    int count;
    char *names[VECTOR_FIELDS], *values[VECTOR_FIELDS];
} vector_t;

static inline FILE *vectors_open(const char *name)
{
    const char *directory = getenv("srcdir");
    char path[4096];

    snprintf(path, sizeof(path), "%s/../vectors/%s", NULL == directory ? "." : directory, name);
    FILE *file = fopen(path, "r");
    if (NULL == file) {
        perror(path);
        exit(1);
    }
    return file;
}

static inline void vector_clear(vector_t *vector)
{
    for (int i = 0; i < vector->count; ++i) {
        free(vector->names[i]);
        free(vector->values[i]);
    }
    vector->count = 0;
}

/* The next section; 0 at the end of the file. */
static inline int vector_next(FILE *file, vector_t *vector)
{
    char line[VECTOR_LINE];

    vector_clear(vector);
    vector->section[0] = '\0';
    for (long before = ftell(file); NULL != fgets(line, sizeof(line), file); before = ftell(file)) {
        line[strcspn(line, "\r\n")] = '\0';
        if ('[' == line[0] && '\0' != vector->section[0]) {
            fseek(file, before, SEEK_SET);
            return 1;
        }
        if ('[' == line[0]) {
            line[strcspn(line, "]")] = '\0';
            snprintf(vector->section, sizeof(vector->section), "%.31s", line + 1);
        } else if ('\0' != line[0] && '#' != line[0]) {
            char *equals = strstr(line, " =");
            if (NULL == equals || vector->count == VECTOR_FIELDS) {
                fprintf(stderr, "bad line in vectors: %s\n", line);
                exit(1);
            }
            *equals = '\0';
            vector->names[vector->count] = strdup(line);
            vector->values[vector->count++] = strdup(equals + 2 + (' ' == equals[2]));
        }
    }
    return '\0' != vector->section[0];
}

static inline const char *vector_text(const vector_t *vector, const char *name)
{
    for (int i = 0; i < vector->count; ++i) {
        if (0 == strcmp(vector->names[i], name)) {
            return vector->values[i];
        }
    }
    fprintf(stderr, "[%s] of the vectors has no %s\n", vector->section, name);
    exit(1);
}

static inline int64_t vector_number(const vector_t *vector, const char *name)
{
    return strtoll(vector_text(vector, name), NULL, 10);
}

/* At most `most` bytes; returns how many. */
static inline size_t vector_bytes(const vector_t *vector, const char *name, void *out, size_t most)
{
    const char *text = vector_text(vector, name);
    size_t bytes = strlen(text) / 2;

    for (size_t i = 0; i < bytes; ++i) {
        unsigned value;
        if (bytes > most || 1 != sscanf(text + 2 * i, "%2x", &value)) {
            fprintf(stderr, "[%s] of the vectors: bad %s\n", vector->section, name);
            exit(1);
        }
        ((uint8_t *) out)[i] = (uint8_t) value;
    }
    return bytes;
}

#endif
