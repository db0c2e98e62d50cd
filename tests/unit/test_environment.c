/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Variables of the environment: their values afterwards, and that another thread which reads the environment
 * meanwhile finds the old ones.
 */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/mca/common/crypt/base/environment.h"

static void test_values(void)
{
    size_t count = 0, after = 0;

    UNIT_GROUP("values");
    UNIT_REQUIRE(0 == setenv("UNIT_NEIGHBOR", "1", 1) && 0 == setenv("UNIT", "before", 1));
    while (NULL != environ[count]) {
        count++;
    }
    UNIT_CHECK(opal_crypt_environment_set("UNIT", "now"));
    UNIT_CHECK(0 == strcmp("now", getenv("UNIT")));
    UNIT_CHECK(opal_crypt_environment_set("UNIT_NEW", ""));
    UNIT_CHECK(NULL != getenv("UNIT_NEW") && '\0' == *getenv("UNIT_NEW"));
    UNIT_CHECK(opal_crypt_environment_set("UNIT_NEW", NULL) && NULL == getenv("UNIT_NEW"));
    UNIT_CHECK(opal_crypt_environment_set("UNIT_NEVER", NULL));
    UNIT_CHECK(0 == strcmp("1", getenv("UNIT_NEIGHBOR")));
    while (NULL != environ[after]) {
        after++;
    }
    UNIT_CHECK(count == after);
    /* And the C library goes on with what it finds. */
    UNIT_CHECK(0 == setenv("UNIT", "later", 1) && 0 == setenv("UNIT_MORE", "1", 1));
    UNIT_CHECK(0 == strcmp("later", getenv("UNIT")) && 0 == strcmp("1", getenv("UNIT_MORE")));
    UNIT_CHECK(0 == unsetenv("UNIT_MORE") && opal_crypt_environment_set("UNIT", NULL) && NULL == getenv("UNIT"));
}

/* A reader is somewhere in the array, for as long as it likes. */
static void test_reader(void)
{
    char **seen, **copy;
    size_t count = 0;
    void *behind;

    UNIT_GROUP("the array that a reader has");
    UNIT_REQUIRE(0 == setenv("UNIT_GROWS", "1", 1));           /* the C library's own array from here on */
    behind = malloc(64);                                       /* which cannot grow where it is */
    UNIT_REQUIRE(NULL != behind);
    seen = environ;
    while (NULL != seen[count]) {
        count++;
    }
    copy = malloc((count + 1) * sizeof(*copy));
    UNIT_REQUIRE(NULL != copy);
    memcpy(copy, seen, (count + 1) * sizeof(*copy));
    for (int i = 0; i < 20; i++) {
        char name[16];

        snprintf(name, sizeof(name), "UNIT_%d", i);
        UNIT_CHECK(opal_crypt_environment_set(name, "x"));
        UNIT_CHECK(opal_crypt_environment_set("UNIT_GROWS", i % 2 ? "y" : NULL));
    }
    UNIT_CHECK(0 == memcmp(copy, seen, (count + 1) * sizeof(*copy)));
    free(copy);
    free(behind);
}

static void *read_on(void *stop)
{
    bool good = true;

    while (!__atomic_load_n((int *) stop, __ATOMIC_RELAXED)) {
        const char *value = getenv("UNIT_STAYS");

        good = good && NULL != value && 0 == strcmp("here", value);
        good = good && NULL == getenv("UNIT_NEVER");
    }
    return good ? NULL : stop;
}

static void test_threads(void)
{
    pthread_t reader;
    void *result;
    int stop = 0;

    UNIT_GROUP("a thread that reads");
    UNIT_REQUIRE(opal_crypt_environment_set("UNIT_STAYS", "here"));
    UNIT_REQUIRE(0 == pthread_create(&reader, NULL, read_on, &stop));
    for (int i = 0; i < 2000; i++) {
        UNIT_CHECK(opal_crypt_environment_set("UNIT_GOES", i % 2 ? "" : NULL));
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    UNIT_REQUIRE(0 == pthread_join(reader, &result));
    UNIT_CHECK(NULL == result);
}

int main(void)
{
    test_values();
    test_reader();
    test_threads();
    return unit_done();
}
