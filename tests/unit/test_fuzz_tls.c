/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The fuzz target of connections without a fuzzer: every input of its corpus as it is, and some mutations of
 * each.  The ClientHellos were written by a script, without OpenSSL: ours answers those that are good.
 */
#define FUZZ_STANDALONE
#define main fuzz_main
#include "tests/fuzz/fuzz_tls.c"
#undef main

#include "tests/unit/fuzz_corpus.h"

#define ROUNDS 100

static unsigned good, bad;

/* Good ones are answered, or open; of the others at least one record does not. */
static void replay(const char *directory, const char *name)
{
    const unsigned long answered = fuzz_answered, opened = fuzz_opened;
    char path[1280];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    fuzz_file(path, 1);
    if (NULL != strstr(name, "good")) {
        ++good;
        if (!UNIT_CHECK(fuzz_answered + fuzz_opened > answered + opened)) {
            fprintf(stderr, "  %s\n", name);
        }
    } else {
        ++bad;
        if (!UNIT_CHECK(fuzz_answered == answered)) {
            fprintf(stderr, "  %s\n", name);
        }
    }
    fuzz_file(path, ROUNDS);
}

int main(void)
{
    fuzz_state = 1;
    fuzz_corpus("corpus-tls", replay);
    opal_crypt_tls_destroy(tls);
    UNIT_GROUP("%u good inputs, %u bad ones, %d mutations of each", good, bad, ROUNDS);
    UNIT_CHECK(good >= 10 && bad >= 25);
    return unit_done();
}
