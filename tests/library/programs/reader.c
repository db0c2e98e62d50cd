/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the scripts here do with libmpicrypt_file:
 *
 *     reader [OPTION=VALUE]... open FILE               status, os_error, offset, text, a line each
 *                              cat FILE                to standard output, in odd pieces
 *                              at FILE OFFSET BYTES    as open; on success the bytes go to standard output
 *                              random FILE PLAIN N     N ranges, compared with PLAIN
 *                              threads FILE PLAIN N    the same, by 8 threads
 *                              about FILE              size, info, regions, runs
 *                              verify FILE             as open
 *                              stop FILE               end verifying at the first call of progress
 *     OPTION: label, root, keystore, cache, threads, flags, bytes, fd (open by descriptor), hold (seconds before the read)
 *
 * A failed read must leave zeros.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mpicrypt_file.h>

#define MOST (3u << 20)

static mpicrypt_file_options_t options = {.bytes = sizeof(options)};
static int by_fd;
static unsigned hold;

static void die(const char *what)
{
    fprintf(stderr, "reader: %s\n", what);
    exit(9);
}

static void option(char *word)
{
    char *value = strchr(word, '=');

    *value++ = '\0';
    if (0 == strcmp(word, "label")) {
        options.label = value;
    } else if (0 == strcmp(word, "root")) {
        options.seal_root = value;
    } else if (0 == strcmp(word, "keystore")) {
        options.keystore = value;
    } else if (0 == strcmp(word, "cache")) {
        options.cache_bytes = strtoull(value, NULL, 0);
    } else if (0 == strcmp(word, "threads")) {
        options.threads = (uint32_t) strtoul(value, NULL, 0);
    } else if (0 == strcmp(word, "flags")) {
        options.flags = (uint32_t) strtoul(value, NULL, 0);
    } else if (0 == strcmp(word, "bytes")) {
        options.bytes = strtoul(value, NULL, 0);
    } else if (0 == strcmp(word, "fd")) {
        by_fd = 1;
    } else if (0 == strcmp(word, "hold")) {
        hold = (unsigned) strtoul(value, NULL, 0);
    } else {
        die(word);
    }
}

static int say(int status, const mpicrypt_file_error_t *error)
{
    if (status != error->status) {
        die("the error has another status");
    }
    printf("status %d\nos_error %d\noffset %" PRId64 "\ntext %s\n", status, error->os_error, (int64_t) error->offset, error->text);
    return status;
}

static int open_file(const char *path, mpicrypt_file_t **file, mpicrypt_file_error_t *error)
{
    if (!by_fd) {
        return mpicrypt_file_open(path, &options, file, error);
    }
    int fd = open(path, O_RDONLY);
    if (fd < 0) {
        die(path);
    }
    (void) lseek(fd, 17, SEEK_SET);
    int status = mpicrypt_file_open_fd(fd, path, &options, file, error);
    if (17 != lseek(fd, 0, SEEK_CUR)) {
        die("the position of the descriptor was moved");
    }
    close(fd);
    return status;
}

static mpicrypt_file_t *must_open(const char *path)
{
    mpicrypt_file_error_t error;
    mpicrypt_file_t *file;

    if (MPICRYPT_FILE_OK != open_file(path, &file, &error)) {
        fprintf(stderr, "%s\n", error.text);
        exit(error.status);
    }
    return file;
}

static int read_checked(mpicrypt_file_t *file, uint64_t offset, unsigned char *memory, size_t bytes, size_t *got,
                        mpicrypt_file_error_t *error)
{
    memset(memory, 0xa5, bytes);
    int status = mpicrypt_file_read(file, offset, memory, bytes, got, error);
    for (size_t i = 0; MPICRYPT_FILE_OK != status && i < bytes; ++i) {
        if (0 != memory[i]) {
            die("a failed read left bytes");
        }
    }
    if (MPICRYPT_FILE_OK != status && 0 != *got) {
        die("a failed read says that it got bytes");
    }
    return status;
}

/* ---- the commands ---- */

static int cat(const char *path)
{
    static unsigned char memory[MOST];
    mpicrypt_file_error_t error;
    mpicrypt_file_t *file = must_open(path);
    uint64_t at = 0;
    size_t got = 1;

    while (got > 0) {
        if (MPICRYPT_FILE_OK != read_checked(file, at, memory, 1 + (size_t) (at * 7 + 12345) % (MOST - 1), &got, &error)) {
            fprintf(stderr, "%s\n", error.text);
            return error.status;
        }
        if (got != fwrite(memory, 1, got, stdout)) {
            return 9;
        }
        at += got;
    }
    mpicrypt_file_close(file);
    return 0;
}

static int at(const char *path, uint64_t offset, size_t bytes)
{
    mpicrypt_file_error_t error;
    mpicrypt_file_t *file = must_open(path);
    unsigned char *memory = malloc(bytes + 1);
    size_t got;

    sleep(hold);
    int status = read_checked(file, offset, memory, bytes, &got, &error);
    if (MPICRYPT_FILE_OK == status) {
        (void) !fwrite(memory, 1, got, stdout);
    } else {
        (void) say(status, &error);
    }
    free(memory);
    mpicrypt_file_close(file);
    return status;
}

typedef struct ranges {
    mpicrypt_file_t *file;
    int plain;
    unsigned long count, seed;
} ranges_t;

static uint64_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 17;
}

static void *compare_ranges(void *argument)
{
    const ranges_t *r = argument;
    unsigned char *memory = malloc(MOST), *wanted = malloc(MOST);
    uint64_t state = r->seed, size = 0;
    mpicrypt_file_error_t error;
    size_t got;

    if (MPICRYPT_FILE_OK != mpicrypt_file_size(r->file, &size, &error)) {
        die(error.text);
    }
    for (unsigned long i = 0; i < r->count; ++i) {
        const uint64_t offset = draw(&state) % (size + 2000);
        const size_t kinds[] = {10, 5000, 70000, 400000, MOST}, bytes = draw(&state) % kinds[draw(&state) % 5];
        if (MPICRYPT_FILE_OK != mpicrypt_file_read(r->file, offset, memory, bytes, &got, &error)) {
            die(error.text);
        }
        ssize_t there = pread(r->plain, wanted, bytes, (off_t) offset);
        if (there < 0 || (size_t) there != got || 0 != memcmp(memory, wanted, got)) {
            fprintf(stderr, "offset %" PRIu64 " bytes %zu: got %zu, there are %zd, or they differ\n", offset, bytes, got, there);
            exit(9);
        }
    }
    free(memory);
    free(wanted);
    return NULL;
}

static int compare(const char *path, const char *plain, unsigned long count, unsigned threads)
{
    pthread_t thread[8];
    ranges_t r[8];

    for (unsigned i = 0; i < threads; ++i) {
        r[i] = (ranges_t){0 == i ? must_open(path) : r[0].file, 0 == i ? open(plain, O_RDONLY) : r[0].plain, count, i + 1};
    }
    for (unsigned i = 0; i < threads; ++i) {
        if (0 != pthread_create(&thread[i], NULL, compare_ranges, &r[i])) {
            die("pthread_create");
        }
    }
    for (unsigned i = 0; i < threads; ++i) {
        pthread_join(thread[i], NULL);
    }
    mpicrypt_file_close(r[0].file);
    return 0;
}

static int about(const char *path)
{
    mpicrypt_file_t *file = must_open(path);
    mpicrypt_file_error_t error;
    mpicrypt_file_info_t info = {.bytes = sizeof(info)};
    uint64_t size;

    if (0 != mpicrypt_file_size(file, &size, &error) || 0 != mpicrypt_file_info(file, &info, &error)) {
        die(error.text);
    }
    printf("size %" PRIu64 "\ngeneration %" PRIu64 "\nregions %" PRIu32 "\nsealed %" PRIu32 " %s\n", size, info.generation, info.regions,
           info.sealed, info.seal_root);
    for (uint32_t i = 0; i < info.regions; ++i) {
        mpicrypt_file_region_t region = {.bytes = sizeof(region)};
        if (0 != mpicrypt_file_region(file, i, &region, &error)) {
            die(error.text);
        }
        printf("region %" PRIu32 " encrypted %" PRIu32 " readable %" PRIu32 " %s %s %" PRIu32 " version %" PRIu32 " at %" PRIu64
               " extent %" PRIu64 " once %" PRIu32 " runs", i, region.encrypted, region.readable, region.cipher, region.label,
               region.block_bytes, region.key_version, region.displacement, region.extent, region.once);
        for (uint64_t k = 0; k < region.run_count; ++k) {
            uint64_t pair[2];
            if (0 != mpicrypt_file_runs(file, i, k, pair, 1, &error)) {
                die(error.text);
            }
            printf(" %" PRIu64 "+%" PRIu64, pair[0], pair[1]);
        }
        printf("\n");
        if (MPICRYPT_FILE_ERR_ARGUMENT != mpicrypt_file_runs(file, i, region.run_count, &size, 1, &error)) {
            die("a run that does not exist");
        }
    }
    if (MPICRYPT_FILE_ERR_ARGUMENT != mpicrypt_file_region(file, info.regions, &(mpicrypt_file_region_t){.bytes = 152}, &error)) {
        die("a region that does not exist");
    }
    mpicrypt_file_close(file);
    return 0;
}

static int stop_at_once(void *arg, uint64_t done, uint64_t of)
{
    ++*(int *) arg;
    return done <= of ? 42 : 43;
}

static int count_calls(void *arg, uint64_t done, uint64_t of)
{
    ++*(int *) arg;
    return done > of;
}

static int verify(const char *path, int stop)
{
    mpicrypt_file_error_t error;
    mpicrypt_file_t *file = must_open(path);
    int calls = 0, stopped = -1;
    int status = mpicrypt_file_verify(file, stop ? stop_at_once : count_calls, &calls, &stopped, &error);

    if (stop && MPICRYPT_FILE_OK == status && (1 != calls || 42 != stopped)) {
        die("it did not stop");
    }
    if (!stop && 0 != stopped) {
        die("it says that it was stopped");
    }
    mpicrypt_file_close(file);
    return say(status, &error);
}

int main(int argc, char **argv)
{
    mpicrypt_file_error_t error;
    mpicrypt_file_t *file;

    while (argc > 1 && NULL != strchr(argv[1], '=')) {
        option(argv[1]);
        --argc;
        ++argv;
    }
    const char *verb = argc > 2 ? argv[1] : "";
    if (0 == strcmp(verb, "open")) {
        int status = open_file(argv[2], &file, &error);
        if ((MPICRYPT_FILE_OK == status) != (NULL != file)) {
            die("a failed open left a file");
        }
        mpicrypt_file_close(file);
        return say(status, &error);
    }
    return 0 == strcmp(verb, "cat") ? cat(argv[2])
           : 0 == strcmp(verb, "at") && 5 == argc ? at(argv[2], strtoull(argv[3], NULL, 0), strtoul(argv[4], NULL, 0))
           : 0 == strcmp(verb, "random") && 5 == argc ? compare(argv[2], argv[3], strtoul(argv[4], NULL, 0), 1)
           : 0 == strcmp(verb, "threads") && 5 == argc ? compare(argv[2], argv[3], strtoul(argv[4], NULL, 0), 8)
           : 0 == strcmp(verb, "about") ? about(argv[2])
           : 0 == strcmp(verb, "verify") ? verify(argv[2], 0)
           : 0 == strcmp(verb, "stop") ? verify(argv[2], 1) : 9;
}
