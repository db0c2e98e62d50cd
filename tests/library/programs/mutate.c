/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What an attacker can do to the bytes of a file: an input is a list of changes of it,
 *
 *     | kind 1 | where 3 | what 4 |      kind: flip a bit, set a byte, copy 512 bytes, zero them, cut, lengthen, set a word
 *
 * whatever they are, a call fails and leaves zeros, or returns bytes that the file has at that place.  (Without a seal, a
 * block may become a hole, or an older version of itself; the file here has only one version of each block, so that a
 * block is right, or zeros.)
 *
 *     mutate FILE PLAIN N [SEED]      N inputs at random
 *
 * With -DLIBFUZZER, libFuzzer makes the inputs; MUTATE_FILE and MUTATE_PLAIN name the files.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mpicrypt_file.h>

enum { CHANGE_BYTES = 8, CHANGES_MOST = 32, PIECE = 512 };

static unsigned char *file_bytes, *plain;
static size_t file_size, plain_size;
static unsigned long opened, read_well;

static unsigned char *load(const char *path, size_t *size)
{
    FILE *file = fopen(NULL == path ? "" : path, "r");
    unsigned char *bytes = malloc(16 << 20);

    if (NULL == file || NULL == bytes) {
        fprintf(stderr, "mutate: %s\n", NULL == path ? "no file" : path);
        exit(9);
    }
    *size = fread(bytes, 1, 16 << 20, file);
    fclose(file);
    return bytes;
}

static void change(int fd, size_t *size, const uint8_t *c)
{
    unsigned char bytes[PIECE] = {0};
    size_t where = (c[1] | (size_t) c[2] << 8 | (size_t) c[3] << 16) % (0 == *size ? 1 : *size);
    const size_t what = (c[4] | (size_t) c[5] << 8 | (size_t) c[6] << 16) % (0 == *size ? 1 : *size);

    where = c[0] & 0x40 ? where % 8192 : where;         /* the beginning has most of what is parsed */
    switch (c[0] % 7) {
    case 0:
        (void) !pread(fd, bytes, 1, (off_t) where);
        bytes[0] ^= (unsigned char) (1 << (c[4] % 8));
        (void) !pwrite(fd, bytes, 1, (off_t) where);
        break;
    case 1:
        (void) !pwrite(fd, c + 4, 1, (off_t) where);
        break;
    case 2:
        (void) !pread(fd, bytes, PIECE, (off_t) (what & ~(size_t) 511));
        (void) !pwrite(fd, bytes, PIECE, (off_t) (where & ~(size_t) 511));
        break;
    case 3:
        (void) !pwrite(fd, bytes, PIECE, (off_t) (where & ~(size_t) 63));
        break;
    case 4:
        (void) !ftruncate(fd, (off_t) (*size - *size / 16 + where / 16));
        break;
    case 5:
        (void) !ftruncate(fd, (off_t) (*size + what));
        break;
    default:
        (void) !pwrite(fd, c + 4, 4, (off_t) (where & ~(size_t) 3));
    }
    struct stat status;
    if (0 != fstat(fd, &status)) {
        abort();
    }
    *size = (size_t) status.st_size;
}

static void check(const unsigned char *got, size_t bytes, uint64_t at)
{
    for (size_t i = 0; i < bytes; ++i) {
        if (0 != got[i] && (at + i >= plain_size || got[i] != plain[at + i])) {
            fprintf(stderr, "mutate: a wrong byte at %llu\n", (unsigned long long) (at + i));
            abort();
        }
    }
}

static void read_all(mpicrypt_file_t *file)
{
    static unsigned char memory[1 << 20];
    mpicrypt_file_info_t info = {.bytes = sizeof(info)};
    mpicrypt_file_error_t error;
    uint64_t size = 0, pair[2];
    size_t got;

    (void) mpicrypt_file_size(file, &size, &error);
    (void) mpicrypt_file_info(file, &info, &error);
    for (uint32_t i = 0; i < info.regions; ++i) {
        mpicrypt_file_region_t region = {.bytes = sizeof(region)};
        (void) mpicrypt_file_region(file, i, &region, &error);
        (void) mpicrypt_file_runs(file, i, 0, pair, region.run_count > 0, &error);
    }
    for (uint64_t at = 0; at < plain_size + 100000; at += 4096) {
        const size_t bytes = at % 12288 == 0 ? 300000 : 5000;
        memset(memory, 0xa5, bytes);
        int status = mpicrypt_file_read(file, at, memory, bytes, &got, &error);
        if (MPICRYPT_FILE_OK != status && (0 != got || 0 != memory[0] || 0 != memcmp(memory, memory + 1, bytes - 1))) {
            abort();
        }
        check(memory, got, at);
        read_well += MPICRYPT_FILE_OK == status && got > 0;
    }
    (void) mpicrypt_file_verify(file, NULL, NULL, NULL, &error);
}

static void one(const uint8_t *changes, size_t bytes)
{
    mpicrypt_file_error_t error;
    mpicrypt_file_t *file = NULL;
    size_t size = file_size;
    int fd = memfd_create("mutate", MFD_CLOEXEC);

    if (fd < 0 || (ssize_t) file_size != pwrite(fd, file_bytes, file_size, 0)) {
        abort();
    }
    for (size_t i = 0; i + CHANGE_BYTES <= bytes && i / CHANGE_BYTES < CHANGES_MOST; i += CHANGE_BYTES) {
        change(fd, &size, changes + i);
    }
    int status = mpicrypt_file_open_fd(fd, "mutated", NULL, &file, &error);
    if (status != error.status || (MPICRYPT_FILE_OK == status) != ('\0' == error.text[0])) {
        abort();
    }
    if (MPICRYPT_FILE_OK == status) {
        ++opened;
        read_all(file);
    }
    mpicrypt_file_close(file);
    close(fd);
}

#ifdef LIBFUZZER

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (NULL == plain) {
        file_bytes = load(getenv("MUTATE_FILE"), &file_size);
        plain = load(getenv("MUTATE_PLAIN"), &plain_size);
    }
    one(data, bytes);
    return 0;
}

#else

int main(int argc, char **argv)
{
    uint8_t changes[CHANGES_MOST * CHANGE_BYTES];

    if (argc < 4) {
        return 9;
    }
    file_bytes = load(argv[1], &file_size);
    plain = load(argv[2], &plain_size);
    uint64_t state = argc > 4 ? strtoull(argv[4], NULL, 0) : 1;
    const unsigned long count = strtoul(argv[3], NULL, 0);
    one(changes, 0);
    if (1 != opened) {
        fprintf(stderr, "mutate: the unchanged file cannot be opened\n");
        return 9;
    }
    for (unsigned long i = 0; i < count; ++i) {
        for (size_t k = 0; k < sizeof(changes); ++k) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            changes[k] = (uint8_t) (state >> 40);
        }
        one(changes, CHANGE_BYTES * (1 + (state >> 20) % (i % 8 < 6 ? 2 : CHANGES_MOST)));
    }
    printf("%lu inputs: %lu opened, %lu good reads\n", count, opened - 1, read_well);
    return opened > count / 10 && read_well > count ? 0 : 9;
}

#endif
