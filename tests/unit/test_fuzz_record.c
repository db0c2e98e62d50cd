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

#include "tests/unit/fuzz_corpus.h"

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
    fuzz_state = 1;
    fuzz_corpus("corpus-record", replay);
    UNIT_GROUP("%u good inputs, %u bad ones, %d mutations of each", good, bad, ROUNDS);
    UNIT_CHECK(good >= 6 && bad >= 20);
    return unit_done();
}
