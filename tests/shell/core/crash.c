/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A job that dies by SIGSEGV in the middle of its work.
 *
 *     crash DIRECTORY [VICTIM [leak]]
 *
 * Each rank writes what lies in its memory that core files leave out, where all
 * secrets should be, to DIRECTORY/secrets.RANK, straight from there; the rank VICTIM
 * (0) leaves its core file in DIRECTORY/VICTIM.  With "leak" a copy of some of it is on
 * the heap, and must be found.  All append the tags that OpenSSL makes, which are no
 * secrets, to DIRECTORY/tags: within a node they pass where nobody captures.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <openssl/core.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGE = 1 << 18, RANKS = 4 };

static char *leaked;
static int tags = -1;

static void need(int good, const char *what)
{
    if (!good) {
        perror(what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Called by the provider in libcrypto's place.  Only tags are asked for. */
__attribute__((visibility("default"))) int EVP_CIPHER_CTX_get_params(void *context, OSSL_PARAM params[]);

int EVP_CIPHER_CTX_get_params(void *context, OSSL_PARAM params[])
{
    void *library = dlopen("libcrypto.so.3", RTLD_NOW);
    int (*real)(void *, OSSL_PARAM[]) = NULL;
    int rc;

    need(NULL != library, "libcrypto.so.3");
    *(void **) &real = dlsym(library, "EVP_CIPHER_CTX_get_params");
    need(NULL != real, "EVP_CIPHER_CTX_get_params");
    rc = real(context, params);
    need((ssize_t) params[0].data_size == write(tags, params[0].data, params[0].data_size), "tags");
    dlclose(library);
    return rc;
}

/* Messages of all kinds: direct, chopped, collective.  The last thing is the key of
 * another communicator, so that nothing has been written over where it passed. */
static void work(int rank, int size)
{
    static int out[LARGE / sizeof(int)], in[LARGE / sizeof(int)], sums[32 * RANKS];
    const int other = (rank + size / 2) % size;         /* of the other node */
    MPI_Comm again;

    for (int n = 1; n <= (int) (LARGE / sizeof(int)); n *= 4) {
        MPI_Sendrecv(out, n, MPI_INT, other, 1, in, n, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Allgather(out, 32, MPI_INT, sums, 32, MPI_INT, MPI_COMM_WORLD);
    MPI_Bcast(in, LARGE / sizeof(int), MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &again);
    MPI_Allgather(out, 1, MPI_INT, sums, 1, MPI_INT, again);
}

/* Appends the pages that the kernel leaves out of core files ("dd").  The file
 * is read without stdio: its buffers must not stand where something is copied. */
static void save(const char *path)
{
    FILE *maps = fopen("/proc/self/smaps", "r"), *file = fopen(path, "w");
    unsigned long from = 0, to = 0, at, end;
    char line[512], rights[8] = "", name[256], now[8];
    int kept = 0;

    need(NULL != maps && NULL != file, path);
    while (NULL != fgets(line, sizeof(line), maps)) {
        name[0] = 0;
        if (3 <= sscanf(line, "%lx-%lx %7s %*s %*s %*s %255[^\n]", &at, &end, now, name)) {
            from = at;
            to = end;
            memcpy(rights, now, sizeof(rights));
            kept = NULL == strstr(name, "[v");          /* the kernel's own pages */
        } else if (0 == strncmp(line, "VmFlags:", 8) && NULL != strstr(line, " dd") && 'r' == rights[0] && kept) {
            need((ssize_t) (to - from) == write(fileno(file), (void *) from, to - from), path);
        }
    }
    fclose(maps);
    need(0 == fclose(file), path);
}

/* 4 KiB of the secrets, or less, on the heap. */
static void leak(const char *path)
{
    FILE *file = fopen(path, "r");
    struct stat status;

    need(NULL != file && 0 == fstat(fileno(file), &status), path);
    leaked = malloc((size_t) status.st_size);
    need(NULL != leaked && (ssize_t) status.st_size == read(fileno(file), leaked, (size_t) status.st_size), path);
}

int main(int argc, char **argv)
{
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    char path[4096];
    int rank, size, victim = argc > 2 ? atoi(argv[2]) : 0;

    /* As the user would; providers that cannot keep their secrets out of core
     * files undo it. */
    if (0 != setrlimit(RLIMIT_CORE, &all)) {
        perror("RLIMIT_CORE");
        return 1;
    }
    snprintf(path, sizeof(path), "%s/tags", argv[1]);
    if ((tags = open(path, O_WRONLY | O_APPEND)) < 0) {
        perror(path);
        return 1;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    need(size <= RANKS, "too many ranks");
    work(rank, size);
    snprintf(path, sizeof(path), "%s/%d", argv[1], rank);
    need(0 == mkdir(path, 0700) && 0 == chdir(path), path);
    snprintf(path, sizeof(path), "%s/secrets.%d", argv[1], rank);
    save(path);
    if (argc > 3) {
        leak(path);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (victim == rank) {
        *(volatile int *) NULL = 0;     /* the first to die takes the others with it */
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return 0;
}
