/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * ring FILE: rank 0 reads a text from FILE and sends it through all ranks until it
 * comes back, then a large message that repeats the text.  This is an ordinary MPI
 * program, without any code for encryption.
 *
 *     mpicc -o ring ring.c
 *     mpirun -n 4 --mca pml crypt ./ring secret.txt
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 4096, LARGE = 1024 * 1024 };

/* Rank 0's text, at most TEXT - 1 bytes. */
static void read_text(const char *path, char *text)
{
    FILE *file = NULL == path ? NULL : fopen(path, "r");
    size_t bytes = NULL == file ? 0 : fread(text, 1, TEXT - 1, file);

    if (0 == bytes) {
        fprintf(stderr, "ring: cannot read a text: %s\n", NULL == path ? "usage: ring FILE" : path);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    fclose(file);
}

/* Rank 0 sends `bytes` of `sent` to the right and receives them from the left; the
 * other ranks forward what they receive.  True if they came back unchanged. */
static int around(const char *sent, char *received, int bytes, int rank, int ranks)
{
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;

    if (0 == rank) {
        MPI_Sendrecv(sent, bytes, MPI_CHAR, right, 0, received, bytes, MPI_CHAR, left, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        return 0 == memcmp(sent, received, bytes);
    }
    MPI_Recv(received, bytes, MPI_CHAR, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(received, bytes, MPI_CHAR, right, 0, MPI_COMM_WORLD);
    return 1;
}

int main(int argc, char **argv)
{
    static char text[TEXT], large[LARGE], received[LARGE];
    int rank, ranks, good;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (0 == rank) {
        read_text(argv[1], text);
        for (size_t i = 0; i < LARGE; ++i) {
            large[i] = text[i % strlen(text)];
        }
    }
    good = around(text, received, TEXT, rank, ranks);
    good &= around(large, received, LARGE, rank, ranks);
    if (0 == rank) {
        printf("%d ranks: the messages came back %s\n", ranks, good ? "as they were sent" : "CHANGED");
    }
    MPI_Finalize();
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
