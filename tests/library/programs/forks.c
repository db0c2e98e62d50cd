/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * forks FILE PLAIN: forks with an open file, also while another thread reads; the child's calls are refused, it finds
 * neither key nor plaintext in the library's memory, and opens the file again; its child does the same.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpicrypt_file.h>

enum { BYTES = 100000, BUSY_BYTES = 1000000 };

static mpicrypt_file_t *file;
static unsigned char memory[BYTES], wanted[BYTES], other[BUSY_BYTES];      /* the program's own */
static const char *path;
static atomic_int ending;

static void require(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "forks: %s\n", what);
        _exit(9);
    }
}

static void reads(mpicrypt_file_t *from)
{
    mpicrypt_file_error_t error;
    size_t got;

    require(MPICRYPT_FILE_OK == mpicrypt_file_read(from, 0, memory, BYTES, &got, &error), error.text);
    require(BYTES == got && 0 == memcmp(memory, wanted, BYTES), "a read is wrong");
}

static void is_refused(mpicrypt_file_t *from)
{
    mpicrypt_file_info_t info = {.bytes = sizeof(info)};
    mpicrypt_file_region_t region = {.bytes = sizeof(region)};
    mpicrypt_file_error_t error;
    uint64_t size, pair[2];
    size_t got = 7;
    int stopped;

    memset(memory, 1, BYTES);
    require(MPICRYPT_FILE_ERR_FORKED == mpicrypt_file_read(from, 0, memory, BYTES, &got, &error) && 0 == got, "read");
    require(0 == memory[0] && 0 == memcmp(memory, memory + 1, BYTES - 1), "a refused read left bytes");
    require(NULL != strstr(error.text, "it was opened before fork(): open it again in the child"), error.text);
    require(MPICRYPT_FILE_ERR_FORKED == mpicrypt_file_size(from, &size, &error), "size");
    require(MPICRYPT_FILE_ERR_FORKED == mpicrypt_file_info(from, &info, &error), "info");
    require(MPICRYPT_FILE_ERR_FORKED == mpicrypt_file_region(from, 0, &region, &error), "region");
    require(MPICRYPT_FILE_ERR_FORKED == mpicrypt_file_runs(from, 0, 0, pair, 1, &error), "runs");
    require(MPICRYPT_FILE_ERR_FORKED == mpicrypt_file_verify(from, NULL, NULL, &stopped, &error), "verify");
}

/* 64 bytes of the plaintext in memory that is not the program's own buffers: how often. */
static int has_plaintext(void)
{
    unsigned char needle[64];
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");

    for (int i = 0; i < 64; ++i) {
        needle[i] = wanted[50000 + i] ^ 0x5a;
    }
    while (NULL != maps && NULL != fgets(line, sizeof(line), maps)) {
        unsigned long from, to;
        char rights[8];
        if (3 != sscanf(line, "%lx-%lx %7s", &from, &to, rights) || 'w' != rights[1] || NULL != strstr(line, "[v")) {
            continue;
        }
        for (const unsigned char *at = (const unsigned char *) from; at + 64 <= (const unsigned char *) to; ++at) {
            int i = 0;
            while (i < 64 && at[i] == (needle[i] ^ 0x5a)) {
                ++i;
            }
            const int own = (at >= memory && at < memory + BYTES) || (at >= wanted && at < wanted + BYTES)
                            || (at >= other && at < other + BUSY_BYTES);
            found += 64 == i && !own;
        }
    }
    fclose(maps);
    return found;
}

static void opens_again(int depth);

static void child(int depth)
{
    mpicrypt_file_error_t error;
    mpicrypt_file_t *own = NULL;

    is_refused(file);
    require(0 == has_plaintext(), "the child has plaintext of its parent");
    require(MPICRYPT_FILE_OK == mpicrypt_file_open(path, NULL, &own, &error), error.text);
    is_refused(file);
    for (int i = 0; i < 3; ++i) {
        reads(own);
    }
    mpicrypt_file_close(file);
    file = own;
    if (depth > 0) {
        opens_again(depth - 1);
    }
    reads(own);
    mpicrypt_file_close(own);
    _exit(0);
}

static void opens_again(int depth)
{
    int status;
    pid_t pid = fork();

    if (0 == pid) {
        child(depth);
    }
    require(pid > 0 && pid == waitpid(pid, &status, 0) && 0 == status, "the child failed");
    reads(file);                        /* nor has the child disturbed its parent */
}

static void *busy(void *unused)
{
    mpicrypt_file_error_t error;
    size_t got;

    (void) unused;
    for (uint64_t at = 0; !atomic_load(&ending); at = (at + 4096) % BYTES) {
        require(MPICRYPT_FILE_OK == mpicrypt_file_read(file, at, other, BUSY_BYTES, &got, &error), error.text);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    mpicrypt_file_error_t error;
    FILE *plain = fopen(argc > 2 ? argv[2] : "", "r");
    pthread_t thread;

    require(NULL != plain && BYTES == fread(wanted, 1, BYTES, plain), "the plain file");
    fclose(plain);
    path = argv[1];
    require(MPICRYPT_FILE_OK == mpicrypt_file_open(path, NULL, &file, &error), error.text);
    reads(file);
    opens_again(2);
    sleep(3);                           /* by now the cache keeps blocks */
    for (int i = 0; i < 1000; i += 10) {
        size_t got;
        require(MPICRYPT_FILE_OK == mpicrypt_file_read(file, (uint64_t) i * 100, memory, 1, &got, &error), error.text);
    }
    memset(memory, 0, BYTES);
    require(0 != has_plaintext(), "the cache keeps nothing, so that this test shows nothing");
    opens_again(1);
    require(0 == pthread_create(&thread, NULL, busy, NULL), "pthread_create");
    for (int i = 0; i < 20; ++i) {
        opens_again(i % 2);
    }
    atomic_store(&ending, 1);
    pthread_join(thread, NULL);
    mpicrypt_file_close(file);
    printf("forked 24 times\n");
    return 0;
}
