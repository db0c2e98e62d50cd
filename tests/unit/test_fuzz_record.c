/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The fuzz target of records without a fuzzer: every input of its corpus as
 * it is, and some hundreds of mutations of each.
 */
#define FUZZ_STANDALONE
#define main fuzz_main
#include "tests/fuzz/fuzz_record.c"
#undef main

#include "tests/unit/unit.h"

#include <dirent.h>

#define ROUNDS 300

/* Good inputs must come through: a target that refuses everything would find
 * nothing. */
static unsigned good, bad;

static void replay(const char *directory, const char *name)
{
    unsigned long before = fuzz_agreed + fuzz_chains;
    char path[1280];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    fuzz_file(path, 1);
    if (NULL != strstr(name, "-good")) {
        ++good;
        UNIT_CHECK(fuzz_agreed + fuzz_chains == before + 1);
    } else {
        ++bad;
        UNIT_CHECK(fuzz_agreed + fuzz_chains == before);
    }
    fuzz_file(path, ROUNDS);
}

int main(void)
{
    const char *places[] = { getenv("srcdir"), ".", "tests/unit" };
    char directory[1000];
    DIR *corpus = NULL;

    for (size_t i = 0; NULL == corpus && i < sizeof(places) / sizeof(places[0]); ++i) {
        snprintf(directory, sizeof(directory), "%s/../fuzz/corpus-record", NULL == places[i] ? "." : places[i]);
        corpus = opendir(directory);
    }
    UNIT_REQUIRE(NULL != corpus);
    fuzz_state = 1;
    for (struct dirent *entry; NULL != (entry = readdir(corpus));) {
        if ('.' != entry->d_name[0]) {
            replay(directory, entry->d_name);
        }
    }
    closedir(corpus);
    UNIT_GROUP("%u good inputs, %u bad ones, %d mutations of each", good, bad, ROUNDS);
    UNIT_CHECK(good >= 6 && bad >= 20);
    return unit_done();
}
