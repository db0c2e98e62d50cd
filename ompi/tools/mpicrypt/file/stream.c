/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file cat, and decrypt to standard output.  The pipe gets verified bytes only, and as many of them as
 * there are before the first block that cannot be read; the exit status says that something is missing.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/mpicrypt_file/mpicrypt_file.h"
#include "ompi/tools/mpicrypt/file/stream.h"
#include "opal/mca/common/crypt/base/secmem.h"

#define STREAM_BYTES ((size_t) 4 << 20)

/* ---- pouring ---- */

static bool pour_write(const uint8_t *bytes, size_t count)
{
    while (count > 0) {
        ssize_t done = write(STDOUT_FILENO, bytes, count);
        if (done < 0 && EINTR == errno) {
            continue;
        }
        if (done < 0) {
            return false;
        }
        bytes += done;
        count -= (size_t) done;
    }
    return true;
}

static bool pour_by(mpicrypt_stream_read_t read_from, void *of, uint64_t from, uint64_t to, uint8_t *memory, bool *failed)
{
    uint64_t good = to;

    while (from < good) {
        const size_t count = good - from < STREAM_BYTES ? (size_t) (good - from) : STREAM_BYTES;
        size_t got;
        if (!read_from(of, from, memory, count, &got, &good)) {
            *failed = true;             /* then only what is before the block */
            continue;
        }
        if (0 == got) {
            break;
        }
        if (!pour_write(memory, got)) {
            *failed = false;
            return false;
        }
        from += got;
    }
    return !*failed;
}

bool mpicrypt_stream_pour(mpicrypt_stream_read_t read_from, void *of, uint64_t from, uint64_t to, bool *failed)
{
    uint8_t *memory = opal_crypt_secmem_alloc(STREAM_BYTES);

    *failed = false;
    if (NULL == memory) {
        errno = ENOMEM;
        return false;
    }
    bool good = pour_by(read_from, of, from, to, memory, failed);
    int error = errno;
    opal_crypt_secmem_free(memory);
    errno = error;
    return good;
}

/* ---- the range: A-B, A-, -N, as those of curl ---- */

static bool range_number(const char *text, size_t bytes, uint64_t *number)
{
    char copy[32];
    size_t value;

    if (0 == bytes || bytes >= sizeof(copy)) {
        return false;
    }
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    if (0 != mpicrypt_size_parse(copy, &value)) {
        return false;
    }
    *number = value;
    return true;
}

/* Bytes [*from, *to) of a file of `end` bytes. */
static int range_parse(const char *path, const char *range, uint64_t end, uint64_t *from, uint64_t *to)
{
    const char *dash = NULL == range ? NULL : strchr(range, '-');
    uint64_t last = 0;

    *from = 0;
    *to = UINT64_MAX;
    if (NULL == range) {
        return MPICRYPT_OK;
    }
    const bool first_there = NULL != dash && dash > range, last_there = NULL != dash && '\0' != dash[1];
    if ((!first_there && !last_there) || (first_there && !range_number(range, (size_t) (dash - range), from))
        || (last_there && !range_number(dash + 1, strlen(dash + 1), &last)) || (first_there && last_there && last < *from)) {
        return mpicrypt_error(MPICRYPT_USAGE, "--range is FIRST-LAST, FIRST- or -COUNT, in bytes from 0 on");
    }
    if (!first_there) {
        *from = last < end ? end - last : 0;
    } else if (last_there && last < UINT64_MAX) {
        *to = last + 1;
    }
    return *from <= end ? MPICRYPT_OK
           : mpicrypt_error(MPICRYPT_FAILED, "%s: it has %" PRIu64 " bytes, and the range begins at %" PRIu64, path, end, *from);
}

/* ---- by the library ---- */

typedef struct stream_file {
    mpicrypt_file_t *file;
    mpicrypt_file_error_t error;        /* the first one */
} stream_file_t;

static bool stream_read(void *of, uint64_t at, void *bytes, size_t count, size_t *got, uint64_t *good)
{
    stream_file_t *s = of;
    mpicrypt_file_error_t error;

    if (MPICRYPT_FILE_OK == mpicrypt_file_read(s->file, at, bytes, count, got, &error)) {
        return true;
    }
    *good = MPICRYPT_FILE_NOWHERE != error.offset && error.offset < *good ? error.offset : at;
    s->error = MPICRYPT_FILE_OK == s->error.status ? error : s->error;
    return false;
}

static int stream_code(const mpicrypt_file_error_t *error)
{
    return mpicrypt_error(MPICRYPT_FILE_ERR_ARGUMENT == error->status ? MPICRYPT_USAGE : MPICRYPT_FAILED, "%s", error->text);
}

/* The library reads parameters where jobs have them. */
static bool stream_setting(const char *name, const char *value) { return NULL == value || 0 == setenv(name, value, 1); }

static bool stream_settings(const mpicrypt_keystore_t *k)
{
    return stream_setting("OMPI_MCA_crypt_keystore", k->backend) && stream_setting("OMPI_MCA_crypt_keystore_dir", k->directory)
           && stream_setting("OMPI_MCA_crypt_keystore_log", k->log_file)
           && stream_setting("OMPI_MCA_crypt_keystore_group", k->group)
           && stream_setting("OMPI_MCA_crypt_keystore_machine_key", k->machine_key_file)
           && stream_setting("OMPI_MCA_crypt_pkcs11_module", k->pkcs11_module)
           && stream_setting("OMPI_MCA_crypt_pkcs11_token", k->pkcs11_token)
           && stream_setting("OMPI_MCA_crypt_pkcs11_pin_file", k->pkcs11_pin_file)
           && stream_setting("OMPI_MCA_crypt_secret_on_netfs", k->netfs ? "1" : NULL)
           && stream_setting("OMPI_MCA_crypt_fips", k->fips ? "1" : NULL);
}

static int stream_open_file(const mpicrypt_stream_t *what, const char *path, stream_file_t *s)
{
    const mpicrypt_file_options_t options = {.bytes = sizeof(options), .label = what->label, .seal_root = what->root};
    mpicrypt_file_info_t info = {.bytes = sizeof(info)};

    s->error.status = MPICRYPT_FILE_OK;
    s->file = NULL;
    if (!stream_settings(what->keystore)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s", strerror(errno));
    }
    if (MPICRYPT_FILE_OK != mpicrypt_file_open(path, &options, &s->file, &s->error)
        || MPICRYPT_FILE_OK != mpicrypt_file_info(s->file, &info, &s->error)) {
        return stream_code(&s->error);
    }
    return !what->sealed || info.sealed ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_FAILED, "%s: it is not sealed", path);
}

int mpicrypt_stream_out(const mpicrypt_stream_t *what, const char *path)
{
    stream_file_t s;
    uint64_t end = 0, from, to;
    bool failed;
    int code = stream_open_file(what, path, &s);

    if (MPICRYPT_OK == code && MPICRYPT_FILE_OK != mpicrypt_file_size(s.file, &end, &s.error)) {
        code = stream_code(&s.error);
    }
    code = MPICRYPT_OK == code ? range_parse(path, what->range, end, &from, &to) : code;
    if (MPICRYPT_OK == code && !mpicrypt_stream_pour(stream_read, &s, from, to, &failed)) {
        code = failed ? stream_code(&s.error) : mpicrypt_error(MPICRYPT_FAILED, "standard output: %s", strerror(errno));
    }
    mpicrypt_file_close(s.file);
    return code;
}
