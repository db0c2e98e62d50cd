/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The fuzz target of btl/crypt without a fuzzer: every input of its corpus as it is, and some mutations of each.
 */
#define FUZZ_STANDALONE
#define main fuzz_main
#include "tests/fuzz/fuzz_btl.c"
#undef main

#include "tests/unit/fuzz_corpus.h"

#define ROUNDS 20

static unsigned good, bad;

/* Good ones deliver something, or authenticate a client; bad ones do neither. */
static void replay(const char *directory, const char *name)
{
    const unsigned long before = fuzz_delivered + fuzz_kept;
    char path[1280];
    bool right;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    fuzz_file(path, 1);
    good += 0 == strncmp(name, "good", 4);
    bad += 0 == strncmp(name, "bad", 3);
    right = 0 == strncmp(name, "good", 4) ? fuzz_delivered + fuzz_kept > before
                                          : 0 != strncmp(name, "bad", 3) || fuzz_delivered + fuzz_kept == before;
    if (!UNIT_CHECK(right)) {
        fprintf(stderr, "  %s\n", name);
    }
    fuzz_state = 1;                     /* the same ones, in whatever order the files come */
    fuzz_file(path, ROUNDS);
}

int main(void)
{
    fuzz_corpus("corpus-btl", replay);
    opal_btl_crypt_engine_stop(&fuzz_engine);
    opal_crypt_tls_destroy(fuzz_tls);
    UNIT_GROUP("%u good inputs, %u bad ones, %d mutations of each", good, bad, ROUNDS);
    UNIT_CHECK(good >= 40 && bad >= 40 && fuzz_ended > 0);
    return unit_done();
}
