/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Memory for secrets: zeroed, aligned, wiped, left out of core files, known
 * to a fork'd child.
 */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "opal/mca/common/crypt/base/secmem.h"

static int all_zero(const uint8_t *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; ++i) {
        if (0 != p[i]) {
            return 0;
        }
    }
    return 1;
}

static void test_sizes(void)
{
    static const size_t sizes[] = { 0, 1, 63, 64, 65, 4096, 16383, 16384, 16385, 65536, 1000000 };
    uint8_t *blocks[sizeof(sizes) / sizeof(sizes[0])][5];

    UNIT_GROUP("blocks of every size: aligned, zero, apart, wiped when they return");
    for (int round = 0; round < 3; ++round) {
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s) {
            for (int n = 0; n < 5; ++n) {
                uint8_t *block = opal_crypt_secmem_alloc(sizes[s]);

                UNIT_REQUIRE(NULL != block);
                UNIT_CHECK(0 == (uintptr_t) block % 64 && all_zero(block, sizes[s]));
                memset(block, (int) (s * 5) + n + 1, sizes[s]);
                blocks[s][n] = block;
            }
        }
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s) {
            for (int n = 0; n < 5; ++n) {
                for (size_t i = 0; i < sizes[s]; ++i) {
                    if (blocks[s][n][i] != (uint8_t) ((s * 5) + (unsigned) n + 1)) {
                        UNIT_CHECK(!"a block overlaps another");
                        break;
                    }
                }
                opal_crypt_secmem_free(blocks[s][n]);
            }
        }
    }
    opal_crypt_secmem_free(NULL);
    UNIT_CHECK(NULL == opal_crypt_secmem_alloc(SIZE_MAX));
    UNIT_CHECK(NULL == opal_crypt_secmem_alloc(SIZE_MAX - 70000));
}

static void test_many(void)
{
    enum { COUNT = 5000 };
    static uint8_t *blocks[COUNT];

    UNIT_GROUP("more blocks than fit into an arena, freed in another order");
    for (int i = 0; i < COUNT; ++i) {
        UNIT_REQUIRE(NULL != (blocks[i] = opal_crypt_secmem_alloc(64 + (size_t) (i % 300))));
        memset(blocks[i], i, 64);
    }
    for (int i = 0; i < COUNT; ++i) {
        int j = (int) (((long) i * 1237) % COUNT);

        UNIT_CHECK((uint8_t) j == blocks[j][63]);
        opal_crypt_secmem_free(blocks[j]);
    }
    blocks[0] = opal_crypt_secmem_alloc(64);
    UNIT_CHECK(all_zero(blocks[0], 64));
    opal_crypt_secmem_free(blocks[0]);
}

static void *thread(void *argument)
{
    uint8_t *mine[50] = { NULL };
    uintptr_t good = 1;

    for (int i = 0; i < 5000; ++i) {
        uint8_t **slot = &mine[i % 50];

        if (NULL != *slot) {
            good = good && (*slot)[0] == (uint8_t) (uintptr_t) argument;
            opal_crypt_secmem_free(*slot);
        }
        *slot = opal_crypt_secmem_alloc((size_t) (i % 500));
        good = good && NULL != *slot && 0 == (*slot)[0];
        (*slot)[0] = (uint8_t) (uintptr_t) argument;
    }
    for (int i = 0; i < 50; ++i) {
        opal_crypt_secmem_free(mine[i]);
    }
    return (void *) good;
}

static void test_threads(void)
{
    pthread_t threads[4];

    UNIT_GROUP("four threads");
    for (uintptr_t i = 0; i < 4; ++i) {
        UNIT_REQUIRE(0 == pthread_create(&threads[i], NULL, thread, (void *) (i + 1)));
    }
    for (int i = 0; i < 4; ++i) {
        void *good = NULL;

        pthread_join(threads[i], &good);
        UNIT_CHECK(NULL != good);
    }
}

/* VmFlags of the mapping that holds `address`, as the kernel states them. */
static int has_flag(const void *address, const char *flag)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    int inside = 0, found = -1;

    while (NULL != maps && NULL != fgets(line, sizeof(line), maps)) {
        unsigned long from, to;

        if (2 == sscanf(line, "%lx-%lx ", &from, &to)) {
            inside = (uintptr_t) address >= from && (uintptr_t) address < to;
        } else if (inside && 0 == strncmp(line, "VmFlags:", 8)) {
            found = NULL != strstr(line, flag);
        }
    }
    if (NULL != maps) {
        fclose(maps);
    }
    return found;
}

static void test_dontdump(void)
{
    uint8_t *small = opal_crypt_secmem_alloc(32), *large = opal_crypt_secmem_alloc(200000);
    int on_stack = 0;

    UNIT_GROUP("the kernel leaves the pages out of core files");
    if (has_flag(&on_stack, " rd") < 0) {
        printf("  skipped: /proc/self/smaps has no VmFlags here\n");
    } else {
        UNIT_CHECK(1 == has_flag(small, " dd"));
        UNIT_CHECK(1 == has_flag(large, " dd") && 1 == has_flag(large + 199999, " dd"));
        UNIT_CHECK(0 == has_flag(&on_stack, " dd"));
    }
    opal_crypt_secmem_free(small);
    opal_crypt_secmem_free(large);
}

/* The limit as it is, and none at all: then there is memory all the same. */
static void test_locked(void)
{
    struct rlimit limit, none;
    uint8_t *small = opal_crypt_secmem_alloc(32), *large;

    UNIT_GROUP("the pages are locked where the limit allows it");
    UNIT_REQUIRE(NULL != small && 0 == getrlimit(RLIMIT_MEMLOCK, &limit));
    if (limit.rlim_cur < 1 << 20 || has_flag(small, " rd") < 0) {
        printf("  skipped: RLIMIT_MEMLOCK is %llu, or smaps has no VmFlags\n", (unsigned long long) limit.rlim_cur);
        opal_crypt_secmem_free(small);
        return;
    }
    UNIT_CHECK(1 == has_flag(small, " lo"));
    none = (struct rlimit) { .rlim_cur = 0, .rlim_max = limit.rlim_max };
    UNIT_REQUIRE(0 == setrlimit(RLIMIT_MEMLOCK, &none));
    large = opal_crypt_secmem_alloc(200000);
    UNIT_REQUIRE(0 == setrlimit(RLIMIT_MEMLOCK, &limit));
    UNIT_REQUIRE(NULL != large);
    UNIT_CHECK(1 == has_flag(large, " dd"));
    opal_crypt_secmem_free(small);
    opal_crypt_secmem_free(large);
}

static int child_says(void)
{
    int status = -1;
    pid_t child = fork();

    if (0 == child) {
        _exit(opal_crypt_forked() ? 7 : 8);
    }
    UNIT_REQUIRE(child > 0 && child == waitpid(child, &status, 0) && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_fork(void)
{
    UNIT_GROUP("a child knows that it is one, the parent that it is none");
    UNIT_CHECK(!opal_crypt_forked());
    UNIT_CHECK(7 == child_says());
    UNIT_CHECK(!opal_crypt_forked());
}

static void test_finalize(void)
{
    uint8_t *block = opal_crypt_secmem_alloc(64);
    unsigned char present;

    UNIT_GROUP("finalize unmaps everything; the next block is of a new life");
    (void) present;
    UNIT_CHECK(has_flag(block, " rd") >= 0 || has_flag(&present, " rd") < 0);
    opal_crypt_secmem_finalize();
    UNIT_CHECK(has_flag(block, " dd") <= 0);
    UNIT_CHECK(!opal_crypt_forked());
    UNIT_CHECK(8 == child_says());
    block = opal_crypt_secmem_alloc(64);
    UNIT_CHECK(NULL != block && all_zero(block, 64));
    UNIT_CHECK(7 == child_says());
    opal_crypt_secmem_finalize();
}

static void test_compare(void)
{
    uint8_t a[64], b[64];

    UNIT_GROUP("comparison, wiping, random bytes");
    opal_crypt_random(a, sizeof(a));
    opal_crypt_random(b, sizeof(b));
    UNIT_CHECK(0 != opal_crypt_differ(a, b, sizeof(a)));
    memcpy(b, a, sizeof(a));
    UNIT_CHECK(0 == opal_crypt_differ(a, b, sizeof(a)));
    for (int i = 0; i < 64; ++i) {
        b[i] ^= 0x80;
        UNIT_CHECK(0 != opal_crypt_differ(a, b, sizeof(a)));
        b[i] ^= 0x80;
    }
    opal_crypt_wipe(a, sizeof(a));
    UNIT_CHECK(all_zero(a, sizeof(a)));
}

int main(void)
{
    UNIT_GROUP("before the first block nobody is a child");
    UNIT_CHECK(8 == child_says());
    test_sizes();
    test_many();
    test_threads();
    test_dontdump();
    test_locked();
    test_fork();
    test_compare();
    test_finalize();
    return unit_done();
}
