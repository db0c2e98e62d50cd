/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Does this process hold some secrets anywhere?  All of its memory is searched:
 * each mapping of /proc/self/maps, read through /proc/self/mem, which shows also
 * what the process itself may not read.
 *
 * The needles, and the room for what is read, lie in one shared mapping that is
 * not searched; nothing here may copy a needle to any other place.
 */
#ifndef TESTS_MEMORY_SEARCH_H
#define TESTS_MEMORY_SEARCH_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/unit.h"

enum { SEARCH_NEEDLE = 16, SEARCH_NEEDLES = 256, SEARCH_WINDOW = 1 << 20, SEARCH_ZEROS = 4096 };

typedef struct {
    int count;
    uint8_t needle[SEARCH_NEEDLES][SEARCH_NEEDLE];
    char name[SEARCH_NEEDLES][32];
    uint8_t starts[1 << 13];            /* a bit for each value of two first bytes */
    char maps[1 << 18];
    uint8_t window[SEARCH_WINDOW + SEARCH_NEEDLE];
} search_t;

static search_t *search;

/* In memory of `fd` (memfd), for a program that was started by another, or -1. */
static inline void search_begin(int fd)
{
    search = mmap(NULL, sizeof(*search), PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    UNIT_REQUIRE(MAP_FAILED != search);
}

static inline void search_add_one(const char *name, const uint8_t *bytes, int turn)
{
    uint8_t *to = search->needle[search->count];
    unsigned start;

    UNIT_REQUIRE(search->count < SEARCH_NEEDLES);
    for (int i = 0; i < SEARCH_NEEDLE; ++i) {
        to[i] = bytes[i ^ turn];
    }
    snprintf(search->name[search->count++], sizeof(search->name[0]), "%s", name);
    start = (unsigned) to[0] << 8 | to[1];
    search->starts[start / 8] |= (uint8_t) (1 << start % 8);
}

/* The first 16 bytes of a secret, as they are and as words of the other byte order. */
static inline void search_add(const char *name, const void *bytes)
{
    search_add_one(name, bytes, 0);
    search_add_one(name, bytes, 3);
}

static inline int search_bytes(const uint8_t *bytes, size_t count, const char *where)
{
    int found = 0;

    for (size_t at = 0; at + SEARCH_NEEDLE <= count; ++at) {
        const unsigned start = (unsigned) bytes[at] << 8 | bytes[at + 1];
        uint64_t eight;

        /* Most memory is zeros: no needle begins in these places, except perhaps in the last. */
        memcpy(&eight, bytes + at, sizeof(eight));
        if (0 == eight && 0 == (search->starts[0] & 1)) {
            const bool page = at + SEARCH_ZEROS <= count && 0 == memcmp(bytes + at, bytes + at + 8, SEARCH_ZEROS - 8);
            at += (page ? SEARCH_ZEROS : 8) - 2;
            continue;
        }
        if (0 == (search->starts[start / 8] & 1 << start % 8)) {
            continue;
        }
        for (int i = 0; i < search->count; ++i) {
            if (0 == memcmp(search->needle[i], bytes + at, SEARCH_NEEDLE)) {
                if (found++ < 3 && NULL != where) {
                    fprintf(stderr, "  %s in %s\n", search->name[i], where);
                }
            }
        }
    }
    return found;
}

/* Has the process touched any page here?  In its own memory, untouched pages are zeros: most of
 * what malloc reserves for threads, for example.  (Others may have touched shared memory.) */
static inline bool search_worth(int pages, const char *line, unsigned long at, size_t bytes)
{
    uint64_t entries[SEARCH_WINDOW / 4096 + 1];
    const size_t count = (bytes + 4095) / 4096;
    unsigned long inode = 1;
    char shared = 's';

    if (2 != sscanf(line, "%*x-%*x %*3c%c %*x %*s %lu", &shared, &inode) || 'p' != shared || 0 != inode
        || (ssize_t) (count * sizeof(*entries)) != pread(pages, entries, count * sizeof(*entries), (off_t) (at / 4096 * sizeof(*entries)))) {
        return true;
    }
    for (size_t i = 0; i < count; ++i) {
        if (0 != entries[i] >> 62) {        /* in memory, or swapped out */
            return true;
        }
    }
    return false;
}

/* How many places of this process's memory hold a needle; with `loud` the first
 * of each mapping are named.  -1: the memory cannot be read here. */
static inline int search_self(int loud)
{
    const int mem = open("/proc/self/mem", O_RDONLY), list = open("/proc/self/maps", O_RDONLY),
              pages = open("/proc/self/pagemap", O_RDONLY);
    size_t bytes = 0;
    ssize_t got;
    int found = 0, searched = 0;

    if (mem < 0 || list < 0) {
        return -1;
    }
    while (0 < (got = read(list, search->maps + bytes, sizeof(search->maps) - 1 - bytes))) {
        bytes += (size_t) got;
    }
    search->maps[bytes] = 0;
    for (char *line = search->maps; 0 != *line;) {
        char *end = strchr(line, '\n');
        unsigned long from, to;

        UNIT_REQUIRE(NULL != end && 2 == sscanf(line, "%lx-%lx", &from, &to));
        *end = 0;
        if ((uintptr_t) search != from) {
            /* Pieces overlap, so that a needle on their border is found. */
            for (unsigned long at = from; at < to; at += SEARCH_WINDOW) {
                const size_t now = to - at < sizeof(search->window) ? to - at : sizeof(search->window);

                if (!search_worth(pages, line, at, now)) {
                    continue;
                }
                got = pread(mem, search->window, now, (off_t) at);
                if (0 < got) {
                    found += search_bytes(search->window, (size_t) got, loud ? line : NULL);
                    searched++;
                }
            }
        }
        line = end + 1;
    }
    close(mem);
    close(list);
    close(pages);
    return 0 == searched ? -1 : found;
}

#endif
