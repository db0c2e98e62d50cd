/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The whole of the unit-test framework.  A test is a program: main() calls
 * UNIT_GROUP("...") before each group of cases, UNIT_CHECK(condition) for each
 * case, and returns unit_done().  A failed check prints its place and goes on.
 * Exit status 77 (unit_skip) means skipped, as automake has it.
 */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long unit_checks, unit_failures, unit_groups;

#define UNIT_GROUP(...) (unit_groups++, printf(__VA_ARGS__), putchar('\n'), (void) fflush(stdout))

#define UNIT_CHECK(condition) unit_check(!!(condition), #condition, __FILE__, __LINE__)

/* For a case that the following ones depend on. */
#define UNIT_REQUIRE(condition) \
    do { \
        if (!UNIT_CHECK(condition)) { \
            exit(1); \
        } \
    } while (0)

#define UNIT_EQUAL_BYTES(a, b, bytes) \
    unit_check(0 == memcmp((a), (b), (bytes)), #a " == " #b, __FILE__, __LINE__)

static inline int unit_check(int good, const char *text, const char *file, int line)
{
    unit_checks++;
    if (!good) {
        unit_failures++;
        fprintf(stderr, "%s:%d: failed: %s\n", file, line, text);
    }
    return good;
}

/* 0 if there were checks and all of them passed. */
static inline int unit_done(void)
{
    printf("%lu checks in %lu groups, %lu failed\n", unit_checks, unit_groups, unit_failures);
    return 0 != unit_failures || 0 == unit_checks;
}

static inline int unit_skip(const char *reason)
{
    printf("skipped: %s\n", reason);
    return 77;
}

#endif
