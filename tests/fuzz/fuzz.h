/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A fuzz target is one file with LLVMFuzzerTestOneInput, for libFuzzer
 * (clang -fsanitize=fuzzer,address).  Without libFuzzer the same file is a
 * program: FUZZ_MAIN gives it a main() that mutates the inputs named on the
 * command line, so that it also runs under gcc's sanitizers.
 *
 *     fuzz_NAME [-r ROUNDS] [-s SEED] FILE...
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* For properties that hold for every input. */
#define FUZZ_CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort(); \
        } \
    } while (0)

#ifdef FUZZ_STANDALONE

static uint64_t fuzz_state;

static uint64_t fuzz_draw(uint64_t below)
{
    fuzz_state ^= fuzz_state << 13;
    fuzz_state ^= fuzz_state >> 7;
    fuzz_state ^= fuzz_state << 17;
    return (fuzz_state >> 8) % below;
}

/* One to eight changes: bits, bytes that matter to parsers, cut, repeat. */
static size_t fuzz_mutate(uint8_t *data, size_t size, size_t most)
{
    static const uint8_t dear[] = {0, 1, 2, 0x7f, 0x80, 0xff};

    for (uint64_t turns = 1 + fuzz_draw(8); turns > 0 && size > 0; --turns) {
        size_t at = fuzz_draw(size), bytes = 1 + fuzz_draw(size - at < 64 ? size - at : 64);
        switch (fuzz_draw(6)) {
        case 0: data[at] ^= (uint8_t) (1u << fuzz_draw(8)); break;
        case 1: data[at] = dear[fuzz_draw(sizeof(dear))]; break;
        case 2: memset(data + at, dear[fuzz_draw(sizeof(dear))], bytes); break;
        case 3: size -= 0 == fuzz_draw(4) ? size - at : 0; break;
        case 4: memmove(data + fuzz_draw(size - bytes + 1), data + at, bytes); break;
        default:
            if (size + bytes <= most) {
                memmove(data + at + bytes, data + at, size - at);
                size += bytes;
            }
        }
    }
    return size;
}

static void fuzz_file(const char *path, uint64_t rounds)
{
    enum { MOST = 1 << 20 };
    static uint8_t original[MOST], data[MOST];
    FILE *file = fopen(path, "rb");

    if (NULL == file) {
        perror(path);
        exit(1);
    }
    size_t size = fread(original, 1, MOST / 2, file);
    fclose(file);
    for (uint64_t round = 0; round < rounds; ++round) {
        memcpy(data, original, size);
        size_t now = 0 == round ? size : fuzz_mutate(data, size, MOST);
        uint8_t *exact = malloc(now + 1);       /* so that a sanitizer sees every byte too many */
        memcpy(exact, data, now);
        LLVMFuzzerTestOneInput(exact, now);
        free(exact);
    }
}

int main(int argc, char **argv)
{
    uint64_t rounds = 100000, seed = 1;

    for (int option; -1 != (option = getopt(argc, argv, "r:s:"));) {
        if ('r' == option) {
            rounds = strtoull(optarg, NULL, 10);
        } else if ('s' == option) {
            seed = strtoull(optarg, NULL, 10);
        } else {
            return 2;
        }
    }
    fuzz_state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (int i = optind; i < argc; ++i) {
        fuzz_file(argv[i], rounds);
    }
    printf("%s: seed %llu, %d inputs, %llu rounds each\n", argv[0], (unsigned long long) seed, argc - optind,
           (unsigned long long) rounds);
    return 0;
}

#endif
#endif
