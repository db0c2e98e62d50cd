/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI_Init: the longest time that a rank took, and the processor time of all
 * ranks together, in milliseconds, on one line.  With the argument openssl, each
 * does besides what any use of OpenSSL for an X25519 key pair and HKDF begins with.
 */
#include <mpi.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double wall(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double) now.tv_sec + 1e-6 * (double) now.tv_nsec;
}

static double processor(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return 1e3 * (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
           + 1e-3 * (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void start_openssl(void)
{
    const unsigned char private[32] = {1};

    if (NULL == EVP_KDF_fetch(NULL, "HKDF", NULL) || NULL == EVP_MAC_fetch(NULL, "HMAC", NULL)
        || NULL == EVP_MD_fetch(NULL, "SHA256", NULL)
        || NULL == EVP_PKEY_new_raw_private_key_ex(NULL, "X25519", NULL, private, sizeof(private))) {
        fprintf(stderr, "OpenSSL does not start\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv)
{
    double start = wall(), before = processor(), took[2], longest = 0, sum = 0;
    int rank;

    MPI_Init(&argc, &argv);
    if (2 == argc && 0 == strcmp("openssl", argv[1])) {
        start_openssl();
    }
    took[0] = wall() - start;
    took[1] = processor() - before;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Reduce(&took[0], &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&took[1], &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("%.1f %.1f\n", longest, sum);
    }
    return MPI_Finalize();
}
