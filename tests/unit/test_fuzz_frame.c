/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The fuzz target of frames without a fuzzer: every input of its corpus as it
 * is, and some thousands of mutations of each.
 */
#define FUZZ_STANDALONE
#define main fuzz_main
#include "tests/fuzz/fuzz_frame.c"
#undef main

#include "tests/unit/fuzz_corpus.h"

#define ROUNDS 500

/* Good inputs must open: a target that refuses everything would find nothing. */
static unsigned good, opened;

static void replay(const char *directory, const char *name)
{
    opal_crypt_stats_t before, after;
    char path[1280];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    opal_crypt_stats(&before);
    fuzz_file(path, 1);
    opal_crypt_stats(&after);
    if (NULL != strstr(name, "-good")) {
        ++good;
        opened += after.opened_calls > before.opened_calls;
    } else if (NULL != strstr(name, "-bad")) {
        UNIT_CHECK(after.opened_calls == before.opened_calls && after.failed_opens > before.failed_opens);
    }
    fuzz_file(path, ROUNDS);
}

int main(void)
{
    unsigned inputs;

    fuzz_state = 1;
    inputs = fuzz_corpus("corpus-frame", replay);
    UNIT_GROUP("%u inputs, %d mutations of each", inputs, ROUNDS);
    UNIT_CHECK(inputs > 50 && good > 10 && good == opened);
    opal_crypt_session_destroy(sender);
    opal_crypt_session_destroy(receiver);
    opal_crypt_finalize();
    return unit_done();
}
