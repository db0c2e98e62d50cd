/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file encrypt and decrypt: from one file into a new one, which is
 * complete or, after a failure, absent.  Zeros become holes in the plain file; in
 * the encrypted one only on request, since holes reveal where the zeros are.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "ompi/tools/mpicrypt/file/stream.h"
#include "opal/mca/common/crypt/base/secmem.h"

#define PART_BYTES (4u << 20)

static bool is_stream(const char *name) { return 0 == strcmp(name, "-"); }

static int failed(const char *path) { return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", path, strerror(errno)); }

static bool all_zero(const uint8_t *bytes, size_t count)
{
    return 0 == bytes[0] && 0 == memcmp(bytes, bytes + 1, count - 1);
}

/* Read up to PART_BYTES; fewer only at the end.  -1 with errno. */
static ssize_t read_part(int fd, uint8_t *bytes)
{
    size_t have = 0;

    while (have < PART_BYTES) {
        ssize_t got = read(fd, bytes + have, PART_BYTES - have);
        if (got < 0 && EINTR == errno) {
            continue;
        }
        if (got <= 0) {
            return 0 == got ? (ssize_t) have : -1;
        }
        have += (size_t) got;
    }
    return (ssize_t) have;
}

static int write_part(int fd, const uint8_t *bytes, size_t count, uint64_t at)
{
    while (count > 0) {
        ssize_t done = pwrite(fd, bytes, count, (off_t) at);
        if (done < 0 && EINTR == errno) {
            continue;
        }
        if (done <= 0) {
            errno = 0 == done ? ENOSPC : errno;
            return -1;
        }
        bytes += done;
        at += (uint64_t) done;
        count -= (size_t) done;
    }
    return 0;
}

/* ---- encrypt ---- */

static int fill(const mpicrypt_file_options_t *options, mpicrypt_file_t *file, int from, const char *from_path,
                uint64_t total, uint8_t *bytes)
{
    opal_cryptfile_outcome_t outcome;
    uint64_t at = 0;

    for (;;) {
        ssize_t got = read_part(from, bytes);
        if (got < 0) {
            return failed(from_path);
        }
        if (0 == got) {
            break;
        }
        const opal_cryptfile_request_t request = {bytes, at, (size_t) got};
        if (!(options->sparse && all_zero(bytes, (size_t) got))
            && OPAL_CRYPT_OK != opal_cryptfile_write(file->file, &request, 1, false, &outcome)) {
            return mpicrypt_file_failed(file, &outcome);
        }
        at += (uint64_t) got;
        mpicrypt_progress(file->path, at, at > total ? at : total);
    }
    mpicrypt_progress_end();
    if (OPAL_CRYPT_OK != opal_cryptfile_resize(file->file, at, &outcome)) {
        return mpicrypt_file_failed(file, &outcome);
    }
    return OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_sync(&file->posix) ? MPICRYPT_OK : failed(file->path);
}

static int encrypt_into(const mpicrypt_file_options_t *options, const char *from_path, int from, const char *to, uint8_t *bytes)
{
    struct stat status;
    mpicrypt_file_t file;
    const char *part;

    if (0 != fstat(from, &status)) {
        return failed(from_path);
    }
    int code = mpicrypt_file_begin(to, &part);
    if (MPICRYPT_OK != code) {
        return code;
    }
    const bool pipe = !S_ISREG(status.st_mode);
    const unsigned mode = pipe ? 0600 : mpicrypt_file_mode(from, &status);
    code = mpicrypt_file_make(options, part, mode, &file);
    if (MPICRYPT_OK == code) {
        code = fill(options, &file, from, from_path, pipe ? 0 : (uint64_t) status.st_size, bytes);
        if (MPICRYPT_OK == code && !mpicrypt_file_protect(&file, mode)) {
            code = failed(to);
        }
        mpicrypt_file_close_engine(&file);
    }
    if (MPICRYPT_OK != code) {
        mpicrypt_file_drop();
        return code;
    }
    return mpicrypt_file_finish(to);
}

int mpicrypt_file_encrypt(const mpicrypt_file_options_t *options, const char *from, const char *to)
{
    if (NULL == options->label) {
        return mpicrypt_error(MPICRYPT_USAGE, "encrypt needs --label");
    }
    if (is_stream(to)) {
        return mpicrypt_error(MPICRYPT_USAGE, "an encrypted file is written at many places, and - is a stream: name a file");
    }
    uint8_t *bytes = malloc(PART_BYTES);
    int fd = is_stream(from) ? dup(STDIN_FILENO) : open(from, O_RDONLY | O_CLOEXEC);
    int code = NULL == bytes || fd < 0 ? failed(from) : encrypt_into(options, from, fd, to, bytes);

    if (fd >= 0) {
        close(fd);
    }
    if (NULL != bytes) {
        opal_crypt_wipe(bytes, PART_BYTES);
    }
    free(bytes);
    return code;
}

/* ---- decrypt ---- */

static int empty(mpicrypt_file_t *file, int to, const char *to_path, uint8_t *bytes)
{
    opal_cryptfile_outcome_t outcome;

    for (uint64_t at = 0; at < file->bytes; at += outcome.bytes) {
        uint64_t left = file->bytes - at;
        const opal_cryptfile_request_t request = {bytes, at, left < PART_BYTES ? (size_t) left : PART_BYTES};
        if (OPAL_CRYPT_OK != opal_cryptfile_read(file->file, &request, 1, false, &outcome)) {
            return mpicrypt_file_failed(file, &outcome);
        }
        if (0 == outcome.bytes) {
            return mpicrypt_error(MPICRYPT_FAILED, "%s: it became shorter meanwhile", file->path);
        }
        if (!all_zero(bytes, outcome.bytes) && 0 != write_part(to, bytes, outcome.bytes, at)) {
            return failed(to_path);
        }
        mpicrypt_progress(to_path, at, file->bytes);
    }
    mpicrypt_progress_end();
    return 0 == ftruncate(to, (off_t) file->bytes) && 0 == fsync(to) ? MPICRYPT_OK : failed(to_path);
}

/* The storage controls the mode of the ciphertext; the owner of the plaintext decides who may
 * read it, so the new file has mode 0600. */
static int decrypt_into(mpicrypt_file_t *file, const char *to, uint8_t *bytes)
{
    const char *part;
    int code = mpicrypt_file_begin(to, &part);

    if (MPICRYPT_OK != code) {
        return code;
    }
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    code = fd < 0 ? failed(to) : empty(file, fd, to, bytes);
    if (fd >= 0) {
        close(fd);
    }
    if (MPICRYPT_OK != code) {
        mpicrypt_file_drop();
        return code;
    }
    return mpicrypt_file_finish(to);
}

/* ---- to standard output ---- */

typedef struct engine_read {
    mpicrypt_file_t *file;
    opal_cryptfile_outcome_t first;             /* that failed */
} engine_read_t;

static bool read_engine(void *of, uint64_t at, void *bytes, size_t count, size_t *got, uint64_t *good)
{
    engine_read_t *e = of;
    const opal_cryptfile_request_t request = {bytes, at, count};
    opal_cryptfile_outcome_t outcome;

    if (OPAL_CRYPT_OK == opal_cryptfile_read(e->file->file, &request, 1, false, &outcome)) {
        *got = outcome.bytes;
        return true;
    }
    *good = UINT32_MAX != outcome.region && outcome.file_offset < *good ? outcome.file_offset : at;
    e->first = OPAL_CRYPT_OK == e->first.rc ? outcome : e->first;
    return false;
}

int mpicrypt_file_cat(const mpicrypt_file_options_t *options, const char *path)
{
    const mpicrypt_stream_t what = {.keystore = &options->keystore, .label = options->label, .root = options->root,
                                    .sealed = options->sealed, .range = options->range};

    return NULL == options->recovery ? mpicrypt_stream_out(&what, path)
           : mpicrypt_error(MPICRYPT_USAGE, "--recovery is not for cat: decrypt FILE - takes it");
}

/* With a recovery key, which the library does not take. */
static int decrypt_recovered(const mpicrypt_file_options_t *options, const char *from)
{
    mpicrypt_file_t file;
    engine_read_t e = {.file = &file};
    bool failed_read;
    int code = mpicrypt_file_open_verified(options, from, false, &file);

    if (MPICRYPT_OK != code) {
        return code;
    }
    if (!mpicrypt_stream_pour(read_engine, &e, 0, UINT64_MAX, &failed_read)) {
        code = failed_read ? mpicrypt_file_failed(&file, &e.first) : failed("standard output");
    }
    mpicrypt_file_close_engine(&file);
    return code;
}

/* ---- to a file ---- */

int mpicrypt_file_decrypt(const mpicrypt_file_options_t *options, const char *from, const char *to)
{
    mpicrypt_file_t file;

    if (is_stream(from)) {
        return mpicrypt_error(MPICRYPT_USAGE, "an encrypted file is read at many places, and - is a stream: name a file");
    }
    if (is_stream(to)) {
        return NULL == options->recovery ? mpicrypt_file_cat(options, from) : decrypt_recovered(options, from);
    }
    int code = mpicrypt_file_open_verified(options, from, false, &file);

    if (MPICRYPT_OK != code) {
        return code;
    }
    uint8_t *bytes = malloc(PART_BYTES);
    code = NULL == bytes ? failed(from) : decrypt_into(&file, to, bytes);
    if (NULL != bytes) {
        opal_crypt_wipe(bytes, PART_BYTES);
    }
    free(bytes);
    mpicrypt_file_close_engine(&file);
    return code;
}
