/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file cat, and decrypt to standard output.  The pipe gets verified bytes only, and as many of them as
 * there are before the first block that cannot be read; the exit status says that something is missing.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "lib/mpicrypt_file/sentences.h"
#include "lib/mpicrypt_file/settings.h"
#include "opal/mca/common/crypt/base/secmem.h"

#define STREAM_BYTES ((size_t) 4 << 20)

/* Bytes [from, to), or up to the end of the file.  False: writing failed, and errno; or a read, and `first` says how. */
static bool pour(const mpicrypt_opened_t *file, uint64_t from, uint64_t to, uint8_t *memory, opal_cryptfile_outcome_t *first)
{
    while (from < to) {
        const opal_cryptfile_request_t request = {memory, from, to - from < STREAM_BYTES ? (size_t) (to - from) : STREAM_BYTES};
        opal_cryptfile_outcome_t outcome;
        if (OPAL_CRYPT_OK != opal_cryptfile_read(file->file, &request, 1, false, &outcome)) {
            *first = OPAL_CRYPT_OK == first->rc ? outcome : *first;
            to = UINT32_MAX != outcome.region && outcome.file_offset < to ? outcome.file_offset : from;     /* what is before the block */
            continue;
        }
        if (0 == outcome.bytes) {
            break;
        }
        if (!mpicrypt_write_all(STDOUT_FILENO, memory, outcome.bytes)) {
            first->rc = OPAL_CRYPT_OK;
            return false;
        }
        from += outcome.bytes;
    }
    return OPAL_CRYPT_OK == first->rc;
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

/* ---- the command ---- */

/* The reader of the pipe waits, too, so locks have the limit that they have for libmpicrypt_file. */
int mpicrypt_file_cat(const mpicrypt_file_choices_t *options, const char *path)
{
    if (NULL != options->label && !opal_cryptfile_key_label_valid(options->label)) {
        return mpicrypt_error(MPICRYPT_USAGE, "--label: %s: %s", mpicrypt_sentence("file-label"), options->label);
    }
    mpicrypt_file_choices_t with = *options;
    uint8_t *memory = opal_crypt_secmem_alloc(STREAM_BYTES);
    opal_cryptfile_outcome_t first = {.rc = OPAL_CRYPT_OK};
    mpicrypt_opened_t file;
    uint64_t from, to;

    with.secret = true;
    ompi_common_cryptmpio_posix_on_wait(NULL, mpicrypt_settings_lock_timeout());
    int code = NULL == memory ? mpicrypt_error(MPICRYPT_FAILED, "%s: %s", path, strerror(ENOMEM))
                              : mpicrypt_file_open_verified(&with, path, false, &file);

    if (MPICRYPT_OK == code) {
        code = range_parse(path, options->range, file.bytes, &from, &to);
        if (MPICRYPT_OK == code && !pour(&file, from, to, memory, &first)) {
            code = OPAL_CRYPT_OK != first.rc ? mpicrypt_file_failed(&file, &first)
                                             : mpicrypt_error(MPICRYPT_FAILED, "standard output: %s", strerror(errno));
        }
        mpicrypt_file_close_engine(&file);
    }
    opal_crypt_secmem_free(memory);
    return code;
}
