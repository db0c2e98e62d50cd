/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file encrypt and decrypt: from one file into a new one, which is
 * complete or, after a failure, absent; or one that replaces the old one.  Zeros become holes in the plain file; in
 * the encrypted one only on request, since holes reveal where the zeros are.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crew.h"
#include "file.h"
#include "opal/mca/common/crypt/base/secmem.h"

static bool is_stream(const char *name) { return 0 == strcmp(name, "-"); }

static int failed(const char *path) { return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", path, strerror(errno)); }

/* ---- parts, by several threads ---- */

/* From or to a plain file. */
typedef struct stream {
    const mpicrypt_file_choices_t *options;
    mpicrypt_opened_t *file;
    int fd;
    const char *path;                   /* of the plain file, for messages */
    bool in_order;                      /* encrypt: from a pipe, or the like, until that ends */
    size_t capacity;                    /* of a part */
    uint64_t next, end;
} stream_t;

typedef struct stream_part {
    uint64_t at;
    size_t count;                       /* encrypt: read */
    int error;
    bool failed;
    uint8_t bytes[];
} stream_part_t;

static void *stream_begin(void *of)
{
    stream_part_t *part = malloc(sizeof(*part) + ((stream_t *) of)->capacity);

    if (NULL != part) {
        *part = (stream_part_t){.at = 0};
    }
    return part;
}

static void stream_end(void *of, void *memory)
{
    opal_crypt_wipe(memory, sizeof(stream_part_t) + ((stream_t *) of)->capacity);
    free(memory);
}

/* Small files get a small part: all of it is wiped. */
static size_t stream_capacity(uint64_t bytes)
{
    const uint64_t least = 65536, wanted = (bytes + least) / least * least;

    return wanted < MPICRYPT_FILE_PART_BYTES ? (size_t) wanted : MPICRYPT_FILE_PART_BYTES;
}

static int run_stream(stream_t *stream, bool (*next)(void *, void *), bool (*work)(void *, void *, mpicrypt_file_fault_t *))
{
    const uint64_t parts = stream->in_order ? UINT64_MAX : (stream->end + stream->capacity - 1) / stream->capacity;
    const mpicrypt_file_crew_t crew = {stream, parts, stream_begin, next, work, stream_end};

    return mpicrypt_file_crew(&crew);
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

/* ---- what an interrupted run has done ---- */

/* A file of many gets the time of the file that it was made from, by which the next run knows it. */
static int same_time(const mpicrypt_file_choices_t *options, int fd, const struct stat *of, const char *path)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, of->st_mtim};

    return NULL == options->to || 0 == futimens(fd, times) ? MPICRYPT_OK : failed(path);
}

/* Is the file that would be made there: with the same time, and `bytes` bytes of plaintext? */
static bool is_there_already(const char *path, const struct stat *of, uint64_t bytes, bool encrypted)
{
    struct stat there;
    uint64_t size = 0;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool is = fd >= 0 && 0 == fstat(fd, &there) && S_ISREG(there.st_mode) && there.st_mtim.tv_sec == of->st_mtim.tv_sec
              && there.st_mtim.tv_nsec == of->st_mtim.tv_nsec && encrypted == mpicrypt_file_seems_encrypted(fd, &size);

    if (fd >= 0) {
        close(fd);
    }
    return is && bytes == (encrypted ? size : (uint64_t) there.st_size);
}

/* ---- encrypt ---- */

/* Fill the part from the plain file; less only at its end. */
static void read_part(const stream_t *stream, stream_part_t *part)
{
    part->count = 0;
    part->failed = false;
    while (part->count < stream->capacity) {
        uint8_t *to = part->bytes + part->count;
        size_t left = stream->capacity - part->count;
        ssize_t got = stream->in_order ? read(stream->fd, to, left) : pread(stream->fd, to, left, (off_t) (part->at + part->count));
        if (got < 0 && EINTR == errno) {
            continue;
        }
        if (got <= 0) {
            part->failed = got < 0;
            part->error = errno;
            break;
        }
        part->count += (size_t) got;
    }
}

/* Parts of a regular file have their places, so each thread reads its own. */
static bool encrypt_next(void *of, void *memory)
{
    stream_t *stream = of;
    stream_part_t *part = memory;

    part->at = stream->next;
    if (stream->in_order) {
        read_part(stream, part);
        stream->next += part->count;
        return part->count > 0 || part->failed;
    }
    stream->next += stream->capacity;
    return part->at < stream->end;
}

static bool encrypt_part(void *of, void *memory, mpicrypt_file_fault_t *fault)
{
    const stream_t *stream = of;
    stream_part_t *part = memory;
    opal_cryptfile_outcome_t outcome;

    if (!stream->in_order) {
        const uint64_t left = stream->end - part->at, wanted = left < stream->capacity ? left : stream->capacity;
        read_part(stream, part);
        if (!part->failed && part->count < wanted) {
            return mpicrypt_file_fault_text(fault, stream->path, "it became shorter meanwhile");
        }
        part->count = wanted;           /* what was appended since is not copied */
    }
    if (part->failed) {
        errno = part->error;
        return mpicrypt_file_fault_system(fault, stream->path);
    }
    const opal_cryptfile_request_t request = {part->bytes, part->at, part->count};
    if (!(stream->options->sparse && opal_crypt_all_zero(part->bytes, part->count))
        && OPAL_CRYPT_OK != opal_cryptfile_write(stream->file->file, &request, 1, false, &outcome)) {
        return mpicrypt_file_fault_engine(fault, stream->file, &outcome);
    }
    mpicrypt_file_progress(part->count);
    return true;
}

static int fill(const mpicrypt_file_choices_t *options, mpicrypt_opened_t *file, int from, const char *from_path,
                const struct stat *status)
{
    const bool in_order = !S_ISREG(status->st_mode) || 0 == status->st_size;    /* files of /proc have bytes, but no size */
    const uint64_t size = in_order ? 0 : (uint64_t) status->st_size;
    stream_t stream = {.options = options, .file = file, .fd = from, .path = from_path, .in_order = in_order, .end = size,
                       .capacity = in_order ? MPICRYPT_FILE_PART_BYTES : stream_capacity(size)};
    opal_cryptfile_outcome_t outcome;
    int code = run_stream(&stream, encrypt_next, encrypt_part);

    if (MPICRYPT_OK != code) {
        return code;
    }
    if (OPAL_CRYPT_OK != opal_cryptfile_resize(file->file, in_order ? stream.next : size, &outcome)) {
        return mpicrypt_file_failed(file, &outcome);
    }
    return OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_sync(&file->posix) ? MPICRYPT_OK : failed(file->path);
}

/* A new file at `to`; or, in place, one that replaces the plain file there, which had this status. */
static int encrypt_into(const mpicrypt_file_choices_t *options, const char *from_path, int from, const char *to,
                        const struct stat *status)
{
    const unsigned mode = S_ISREG(status->st_mode) ? mpicrypt_file_mode(from, status) : 0600;
    mpicrypt_opened_t file;
    mpicrypt_file_part_t *part;
    int code = mpicrypt_file_begin(to, options->in_place ? status : NULL, &part);

    if (MPICRYPT_OK != code) {
        return code;
    }
    code = mpicrypt_file_make(options, mpicrypt_file_part_name(part), mode, &file);
    if (MPICRYPT_OK == code) {
        mpicrypt_file_created(part);
        code = fill(options, &file, from, from_path, status);
        if (MPICRYPT_OK == code
            && !(options->in_place ? mpicrypt_file_own_as(file.posix.data_fd, from) : mpicrypt_file_protect(&file, mode))) {
            code = failed(to);
        }
        code = MPICRYPT_OK == code ? same_time(options, file.posix.data_fd, status, to) : code;
        mpicrypt_file_close_engine(&file);
    }
    if (MPICRYPT_OK != code) {
        mpicrypt_file_drop(part);
        return code;
    }
    return mpicrypt_file_finish(part, to, options->in_place ? status : NULL);
}

int mpicrypt_file_encrypt(const mpicrypt_file_choices_t *options, const char *from, const char *to)
{
    mpicrypt_file_subject_t *subject = options->subject;
    struct stat status;
    uint64_t bytes;
    int code = MPICRYPT_OK;

    if (is_stream(to)) {
        return mpicrypt_error(MPICRYPT_USAGE, "an encrypted file is written at many places, and - is a stream: name a file");
    }
    int fd = is_stream(from) && !options->in_place ? dup(STDIN_FILENO)
                                                   : open(from, O_RDONLY | (subject->found ? O_NOFOLLOW : 0) | O_CLOEXEC);
    if (fd < 0 || 0 != fstat(fd, &status)) {
        code = failed(from);
    } else if (subject->again && mpicrypt_file_seems_encrypted(fd, &bytes)) {
        mpicrypt_file_finds(subject, MPICRYPT_FILE_IS_ENCRYPTED);
    } else if (options->in_place && !S_ISREG(status.st_mode)) {
        code = mpicrypt_error(MPICRYPT_FAILED, "%s: it is not a regular file", from);
    } else if (subject->again && !options->in_place && is_there_already(to, &status, (uint64_t) status.st_size, true)) {
        mpicrypt_file_finds(subject, MPICRYPT_FILE_IS_THERE);
    } else {
        code = encrypt_into(options, from, fd, to, &status);
    }
    if (fd >= 0) {
        close(fd);
    }
    return code;
}

/* ---- decrypt ---- */

static bool decrypt_next(void *of, void *memory)
{
    stream_t *stream = of;
    stream_part_t *part = memory;

    part->at = stream->next;
    stream->next += stream->capacity;
    return part->at < stream->end;
}

/* Holes stay holes, as the plain file is made longer at the end. */
static bool decrypt_part(void *of, void *memory, mpicrypt_file_fault_t *fault)
{
    const stream_t *stream = of;
    stream_part_t *part = memory;
    const uint64_t left = stream->end - part->at;
    const opal_cryptfile_request_t request = {part->bytes, part->at, left < stream->capacity ? (size_t) left : stream->capacity};
    opal_cryptfile_outcome_t outcome;

    if (OPAL_CRYPT_OK != opal_cryptfile_read(stream->file->file, &request, 1, false, &outcome)) {
        return mpicrypt_file_fault_engine(fault, stream->file, &outcome);
    }
    if (outcome.bytes < request.bytes) {
        return mpicrypt_file_fault_text(fault, stream->file->path, "it became shorter meanwhile");
    }
    if (!opal_crypt_all_zero(part->bytes, request.bytes) && 0 != write_part(stream->fd, part->bytes, request.bytes, part->at)) {
        return mpicrypt_file_fault_system(fault, stream->path);
    }
    mpicrypt_file_progress(request.bytes);
    return true;
}

static int empty(mpicrypt_opened_t *file, int to, const char *to_path)
{
    stream_t stream = {.file = file, .fd = to, .path = to_path, .capacity = stream_capacity(file->bytes), .end = file->bytes};
    int code = run_stream(&stream, decrypt_next, decrypt_part);

    return MPICRYPT_OK != code ? code : 0 == ftruncate(to, (off_t) file->bytes) && 0 == fsync(to) ? MPICRYPT_OK : failed(to_path);
}

/* The storage controls the mode of the ciphertext; the owner of the plaintext decides who may
 * read it, so the new file has mode 0600. */
static int decrypt_into(const mpicrypt_file_choices_t *options, mpicrypt_opened_t *file, const char *to, const struct stat *was)
{
    mpicrypt_file_part_t *part;
    int code = mpicrypt_file_begin(to, options->in_place ? was : NULL, &part);

    if (MPICRYPT_OK != code) {
        return code;
    }
    int fd = open(mpicrypt_file_part_name(part), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        mpicrypt_file_created(part);
    }
    code = fd < 0 ? failed(to) : empty(file, fd, to);
    if (MPICRYPT_OK == code && options->in_place && 0 == geteuid() && 0 != fchown(fd, was->st_uid, was->st_gid)) {
        code = failed(to);
    }
    code = MPICRYPT_OK == code ? same_time(options, fd, was, to) : code;
    if (fd >= 0) {
        close(fd);
    }
    if (MPICRYPT_OK != code) {
        mpicrypt_file_drop(part);
        return code;
    }
    return mpicrypt_file_finish(part, to, options->in_place ? was : NULL);
}

int mpicrypt_file_decrypt(const mpicrypt_file_choices_t *options, const char *from, const char *to)
{
    mpicrypt_opened_t file;
    struct stat was;

    if (is_stream(from)) {
        return mpicrypt_error(MPICRYPT_USAGE, "an encrypted file is read at many places, and - is a stream: name a file");
    }
    if (is_stream(to)) {
        return mpicrypt_file_cat(options, from);
    }
    int code = mpicrypt_file_open_verified(options, from, options->in_place, &file);

    if (MPICRYPT_OK != code) {
        return code;
    }
    if (0 != fstat(file.posix.data_fd, &was)) {
        code = failed(from);
    } else if (options->subject->again && !options->in_place && is_there_already(to, &was, file.bytes, false)) {
        mpicrypt_file_finds(options->subject, MPICRYPT_FILE_IS_THERE);
    } else {
        code = decrypt_into(options, &file, to, &was);
    }
    mpicrypt_file_close_engine(&file);
    return code;
}
