/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * rate plain|decrypt|library FILE BYTES THREADS: all of a file is read in pieces of BYTES, each thread its part.  Prints
 * seconds.  `plain` reads; `decrypt` also decrypts blocks of 64 KiB in place, by OpenSSL: what the library cannot do
 * without.  Of a file that is not encrypted the result and the tag are nothing, and the work is the same.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <mpicrypt_file.h>
#include <openssl/evp.h>

enum { BLOCK = 65536 };

static mpicrypt_file_t *file;
static int fd, decrypts;
static size_t piece;

typedef struct part {
    pthread_t thread;
    uint64_t from, to;
    unsigned char *memory;
    EVP_CIPHER_CTX *context;
} part_t;

static void die(const char *what)
{
    fprintf(stderr, "rate: %s\n", what);
    exit(1);
}

static void decrypt(const part_t *part, size_t bytes)
{
    static const unsigned char iv[12];
    unsigned char tag[16] = {0};
    int done;

    for (size_t at = 0; at < bytes; at += BLOCK) {
        const int count = (int) (bytes - at < BLOCK ? bytes - at : BLOCK);
        unsigned char *text = part->memory + at;
        if (1 != EVP_DecryptInit_ex(part->context, NULL, NULL, NULL, iv) || 1 != EVP_DecryptUpdate(part->context, text, &done, text, count)
            || 1 != EVP_CIPHER_CTX_ctrl(part->context, EVP_CTRL_AEAD_SET_TAG, sizeof(tag), tag)) {
            die("OpenSSL");
        }
        (void) EVP_DecryptFinal_ex(part->context, text, &done);
    }
}

static void *read_part(void *arg)
{
    const part_t *part = arg;
    mpicrypt_file_error_t error;

    for (uint64_t at = part->from; at < part->to;) {
        size_t bytes = part->to - at < piece ? (size_t) (part->to - at) : piece, got = 0;
        if (NULL != file) {
            if (MPICRYPT_FILE_OK != mpicrypt_file_read(file, at, part->memory, bytes, &got, &error)) {
                die(error.text);
            }
        } else {
            ssize_t done = pread(fd, part->memory, bytes, (off_t) at);
            got = done > 0 ? (size_t) done : 0;
        }
        if (0 == got) {
            die("the file ends");
        }
        if (decrypts) {
            decrypt(part, got);
        }
        at += got;
    }
    return NULL;
}

static void begin(part_t *part, unsigned number, unsigned threads, uint64_t size)
{
    const uint64_t each = size / threads / BLOCK * BLOCK;
    static const unsigned char key[16] = "not a secret key";

    part->from = number * each;
    part->to = number + 1 == threads ? size : part->from + each;
    part->context = EVP_CIPHER_CTX_new();
    if (0 != posix_memalign((void **) &part->memory, 4096, piece) || NULL == part->context
        || 1 != EVP_DecryptInit_ex(part->context, EVP_aes_128_gcm(), NULL, key, NULL)) {
        die("memory");
    }
    memset(part->memory, 1, piece);
}

int main(int argc, char **argv)
{
    part_t parts[8];
    struct timespec start, end;
    struct stat status;
    mpicrypt_file_error_t error;
    uint64_t size;

    if (5 != argc) {
        die("plain|decrypt|library FILE BYTES THREADS");
    }
    piece = strtoul(argv[3], NULL, 0);
    const unsigned threads = (unsigned) strtoul(argv[4], NULL, 0);
    decrypts = 0 == strcmp(argv[1], "decrypt");
    if (0 == strcmp(argv[1], "library")) {
        if (MPICRYPT_FILE_OK != mpicrypt_file_open(argv[2], NULL, &file, &error) || MPICRYPT_FILE_OK != mpicrypt_file_size(file, &size, &error)) {
            die(error.text);
        }
    } else {
        fd = open(argv[2], O_RDONLY);
        if (fd < 0 || 0 != fstat(fd, &status)) {
            die(argv[2]);
        }
        size = (uint64_t) status.st_size;
    }
    if (threads < 1 || threads > sizeof(parts) / sizeof(parts[0])) {
        die("1 to 8 threads");
    }
    for (unsigned i = 0; i < threads; ++i) {
        begin(&parts[i], i, threads, size);
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (unsigned i = 0; i < threads; ++i) {
        if (0 != pthread_create(&parts[i].thread, NULL, read_part, &parts[i])) {
            die("pthread_create");
        }
    }
    for (unsigned i = 0; i < threads; ++i) {
        pthread_join(parts[i].thread, NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.6f\n", (double) (end.tv_sec - start.tv_sec) + (double) (end.tv_nsec - start.tv_nsec) * 1e-9);
    mpicrypt_file_close(file);
    return 0;
}
