/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The inputs of a fuzz target, for a test that replays them.
 */
#ifndef TESTS_UNIT_FUZZ_CORPUS_H
#define TESTS_UNIT_FUZZ_CORPUS_H

#include <dirent.h>

#include "tests/unit/unit.h"

/* Each file of tests/fuzz/CORPUS; how many there are. */
static inline unsigned fuzz_corpus(const char *corpus, void (*replay)(const char *directory, const char *name))
{
    const char *directories[] = { getenv("srcdir"), ".", "tests/unit" };
    char path[1000];
    unsigned inputs = 0;
    DIR *directory = NULL;

    for (size_t i = 0; NULL == directory && i < sizeof(directories) / sizeof(directories[0]); ++i) {
        snprintf(path, sizeof(path), "%s/../fuzz/%s", NULL == directories[i] ? "." : directories[i], corpus);
        directory = opendir(path);
    }
    UNIT_REQUIRE(NULL != directory);
    for (struct dirent *entry; NULL != (entry = readdir(directory));) {
        if ('.' != entry->d_name[0]) {
            replay(path, entry->d_name);
            ++inputs;
        }
    }
    closedir(directory);
    return inputs;
}

#endif
