/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * waits FILE OFFSET: a thread that waits for a lock is canceled, and dies when its call is over, after which the block can
 * be read by another.  The caller holds the locks of all blocks, exclusively, for a while, and the block is damaged.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpicrypt_file.h>

static mpicrypt_file_t *file;
static uint64_t offset;
static int status = -1;

static void *reading(void *unused)
{
    mpicrypt_file_error_t error;
    char bytes[16];
    size_t got;

    (void) unused;
    status = mpicrypt_file_read(file, offset, bytes, sizeof(bytes), &got, &error);
    printf("status %d os_error %d text %s\n", status, error.os_error, error.text);
    fflush(stdout);
    pthread_testcancel();
    return NULL;
}

int main(int argc, char **argv)
{
    mpicrypt_file_error_t error;
    pthread_t thread;
    void *result;

    offset = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
    if (argc < 3 || MPICRYPT_FILE_OK != mpicrypt_file_open(argv[1], NULL, &file, &error)) {
        return 9;
    }
    if (0 != pthread_create(&thread, NULL, reading, NULL)) {
        return 9;
    }
    usleep(200000);
    (void) pthread_cancel(thread);
    (void) pthread_join(thread, &result);
    if (PTHREAD_CANCELED != result || -1 == status) {
        fprintf(stderr, "the call was canceled\n");
        return 9;
    }
    mpicrypt_file_close(file);
    return status;
}
