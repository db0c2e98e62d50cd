/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A small job in which a call fails that does not in others, by the environment's
 * FAULT of a process:
 *   malloc:N, memalign:N   there is no memory for N bytes or more
 *   cryptag:N              nor for N bytes exactly that coll/cryptag asks for
 *   list:N                 nor for a list of N hashes
 *   liar                   it says that another public key is its own, and leaves it to the
 *                          others to end the job
 *
 *   faults [WHAT BYTES]    send: BYTES bytes from rank 1 to rank 0; (and without arguments)
 *                          gather: of BYTES bytes
 *
 * Its functions stand in for those of the C library, and for two of the core.  Only
 * calls of the thread that sends are concerned.
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

static __thread size_t no_malloc, no_memalign, cryptag, list;
static int liar;

static int is_in(const void *address, const char *library)
{
    Dl_info about;

    return 0 != dladdr(address, &about) && NULL != about.dli_fname && NULL != strstr(about.dli_fname, library);
}

void *malloc(size_t bytes)
{
    if ((0 != no_malloc && bytes >= no_malloc)
        || (0 != cryptag && bytes == cryptag && is_in(__builtin_return_address(0), "mca_coll_cryptag"))) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    if (0 != list && count == list && 32 == bytes) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_calloc(count, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    if (0 != no_memalign && bytes >= no_memalign) {
        return ENOMEM;
    }
    *block = __libc_memalign(alignment, bytes);
    return NULL == *block ? ENOMEM : 0;
}

const uint8_t *opal_crypt_local_key_hash(const void *local);
const uint8_t *opal_crypt_local_key_hash(const void *local)
{
    static const uint8_t another[32] = {1};
    const uint8_t *(*real)(const void *);
    void *symbol = dlsym(dlopen("libmca_common_crypt.so.0", RTLD_NOLOAD | RTLD_LAZY), __func__);

    if (NULL == symbol) {
        fprintf(stderr, "no %s\n", __func__);
        abort();
    }
    memcpy(&real, &symbol, sizeof(real));
    return liar ? another : real(local);
}

/* The liar's own key is not in the list that it has sent. */
int opal_crypt_group_create(const void *local, const void *secret, uint64_t high, uint64_t low, const void *members,
                            uint32_t count, uint32_t self, void **group);
int opal_crypt_group_create(const void *local, const void *secret, uint64_t high, uint64_t low, const void *members,
                            uint32_t count, uint32_t self, void **group)
{
    int (*real)(const void *, const void *, uint64_t, uint64_t, const void *, uint32_t, uint32_t, void **);
    void (*progress)(void);
    void *symbol = dlsym(dlopen("libmca_common_crypt.so.0", RTLD_NOLOAD | RTLD_LAZY), __func__);
    void *go_on = dlsym(RTLD_DEFAULT, "opal_progress");

    if (NULL == symbol || NULL == go_on) {
        fprintf(stderr, "no %s\n", __func__);
        abort();
    }
    memcpy(&real, &symbol, sizeof(real));
    memcpy(&progress, &go_on, sizeof(progress));
    while (liar) {
        progress();
    }
    return real(local, secret, high, low, members, count, self, group);
}

static void arm(void)
{
    const char *fault = getenv("FAULT"), *colon = NULL == fault ? NULL : strchr(fault, ':');
    size_t number = NULL == colon ? 0 : strtoul(colon + 1, NULL, 10);

    if (NULL != fault) {
        no_malloc = 0 == strncmp(fault, "malloc:", 7) ? number : 0;
        no_memalign = 0 == strncmp(fault, "memalign:", 9) ? number : 0;
        cryptag = 0 == strncmp(fault, "cryptag:", 8) ? number : 0;
        list = 0 == strncmp(fault, "list:", 5) ? number : 0;
        liar = 0 == strcmp(fault, "liar");
    }
}

int main(int argc, char **argv)
{
    size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 4;
    char *mine = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *all;
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    all = malloc(bytes * (size_t) ranks);
    if (MAP_FAILED == mine || NULL == all) {
        return 2;
    }
    memset(mine, 'a' + rank, bytes);
    arm();
    if (argc > 1 && 0 == strcmp(argv[1], "send")) {
        if (1 == rank) {
            MPI_Send(mine, (int) bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        } else if (0 == rank) {
            MPI_Recv(all + bytes, (int) bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    } else {
        MPI_Allgather(mine, (int) bytes, MPI_BYTE, all, (int) bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0 == rank && 'b' != all[bytes];
}
