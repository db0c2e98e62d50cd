/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Errors: a status, and a sentence that begins with the file's name.  Names come from anywhere, so the text is made
 * harmless for a terminal.
 */
#include "lib/mpicrypt_file/reader.h"
#include "lib/mpicrypt_file/sentences.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

_Static_assert(1024 == sizeof(mpicrypt_file_error_t), "mpicrypt_file_error_t");

/* The length of the UTF-8 character here, if it is a good one, and no control character; else 0. */
static size_t harmless_character(const unsigned char *at)
{
    const size_t more = at[0] < 0x80 ? 0 : at[0] >= 0xc2 && at[0] < 0xe0 ? 1 : (at[0] & 0xf0) == 0xe0 ? 2
                        : at[0] >= 0xf0 && at[0] < 0xf5 ? 3 : SIZE_MAX;

    if (SIZE_MAX == more || at[0] < 0x20 || 0x7f == at[0]) {
        return 0;
    }
    for (size_t i = 1; i <= more; ++i) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    const bool overlong = (0xe0 == at[0] && at[1] < 0xa0) || (0xf0 == at[0] && at[1] < 0x90);
    const bool none = (0xed == at[0] && at[1] >= 0xa0) || (0xf4 == at[0] && at[1] >= 0x90);         /* surrogates; beyond U+10FFFF */
    const bool control = (0xc2 == at[0] && at[1] < 0xa0) || (0xe2 == at[0] && 0x80 == at[1] && at[2] >= 0xa8 && at[2] <= 0xae)
                         || (0xe2 == at[0] && 0x81 == at[1] && at[2] >= 0xa6 && at[2] <= 0xa9);     /* C1, lines, directions */
    return overlong || none || control ? 0 : more + 1;
}

static void put_harmless(const char *from, char *to, size_t capacity)
{
    size_t used = 0;

    while ('\0' != *from) {
        const size_t bytes = harmless_character((const unsigned char *) from), written = 0 == bytes ? 1 : bytes;
        if (used + written >= capacity) {
            break;
        }
        memcpy(to + used, 0 == bytes ? "?" : from, written);
        used += written;
        from += written;
    }
    to[used] = '\0';
}

int mpicrypt_fail_nothing(mpicrypt_file_error_t *error)
{
    if (NULL != error) {
        memset(error, 0, sizeof(*error));
        error->offset = MPICRYPT_FILE_NOWHERE;
    }
    return MPICRYPT_FILE_OK;
}

int mpicrypt_fail(mpicrypt_file_error_t *error, int status, int os_error, uint64_t offset, const char *name, const char *format, ...)
{
    char text[2 * sizeof(error->text)];
    va_list arguments;

    if (NULL == error) {
        return status;
    }
    memset(error, 0, sizeof(*error));
    error->status = status;
    error->os_error = os_error;
    error->offset = offset;
    size_t used = 0;
    if (NULL != name) {                 /* its end says more than its beginning, and the reason must fit */
        const size_t bytes = strlen(name), most = 500;
        used = (size_t) snprintf(text, sizeof(text), "%s%s: ", bytes > most ? "..." : "", bytes > most ? name + bytes - most : name);
    }
    va_start(arguments, format);
    vsnprintf(text + used, sizeof(text) - used, format, arguments);
    va_end(arguments);
    put_harmless(text, error->text, sizeof(error->text));
    return status;
}

int mpicrypt_fail_errno(mpicrypt_file_error_t *error, int os_error, const char *name)
{
    char text[256];

    return mpicrypt_fail(error, ENOMEM == os_error ? MPICRYPT_FILE_ERR_MEMORY : MPICRYPT_FILE_ERR_IO, os_error, MPICRYPT_FILE_NOWHERE,
                         name, "%s", strerror_r(os_error, text, sizeof(text)));
}

/* What rc says whatever the call was; else `status`. */
static int status_of(int rc, int status)
{
    return OPAL_CRYPT_ERR_MEMORY == rc ? MPICRYPT_FILE_ERR_MEMORY : OPAL_CRYPT_ERR_FORKED == rc ? MPICRYPT_FILE_ERR_FORKED
           : OPAL_CRYPT_ERR_LIBRARY == rc ? MPICRYPT_FILE_ERR_SETUP : status;
}

int mpicrypt_fail_refused(mpicrypt_file_error_t *error, int status, int rc, const char *name, const opal_crypt_why_t *why)
{
    const char *sentence = mpicrypt_sentence(why->topic);

    if (OPAL_CRYPT_ERR_STORAGE == rc && NULL == why->topic) {
        return mpicrypt_fail_errno(error, errno, name);
    }
    status = status_of(rc, status);
    if (NULL != why->topic && 0 == strcmp("keystore-missing", why->topic)) {    /* the detail is the sentence, with the path */
        return mpicrypt_fail(error, status, 0, MPICRYPT_FILE_NOWHERE, name, "%s; 'mpicrypt key new LABEL' makes one", why->detail);
    }
    return NULL != sentence ? mpicrypt_fail(error, status, 0, MPICRYPT_FILE_NOWHERE, name, "%s%s%s", sentence,
                                            '\0' == why->detail[0] ? "" : ": ", why->detail)
           : mpicrypt_fail(error, status, 0, MPICRYPT_FILE_NOWHERE, name, "%s",
                           NULL == why->topic ? opal_crypt_strerror(rc) : why->detail);
}

int mpicrypt_fail_read(mpicrypt_file_error_t *error, const mpicrypt_file_t *file, const opal_cryptfile_outcome_t *outcome)
{
    const opal_cryptfile_map_t *map = opal_cryptfile_map_of(file->engine);
    const bool known = outcome->region < map->region_count, sealed = file->sealed && OPAL_CRYPT_ERR_AUTH == outcome->rc;
    const bool placed = OPAL_CRYPT_ERR_ACCESS == outcome->rc || (known && map->regions[outcome->region].encrypted);
    const uint64_t offset = placed ? outcome->file_offset : MPICRYPT_FILE_NOWHERE;
    const unsigned long long at = outcome->file_offset;

    switch (outcome->rc) {
    case OPAL_CRYPT_ERR_STORAGE:
        return ETIMEDOUT == outcome->error
                   ? mpicrypt_fail(error, MPICRYPT_FILE_ERR_IO, ETIMEDOUT, offset, file->name,
                                   "at offset %llu: another process has had a lock on this block for %u seconds", at, mpicrypt_start_patience())
                   : mpicrypt_fail_errno(error, outcome->error, file->name);
    case OPAL_CRYPT_ERR_ACCESS:
        return known ? mpicrypt_fail(error, MPICRYPT_FILE_ERR_KEY, 0, offset, file->name, "at offset %llu: %s (label %s)", at,
                                     mpicrypt_sentence_of(outcome->rc), map->regions[outcome->region].label)
                     : mpicrypt_fail(error, MPICRYPT_FILE_ERR_KEY, 0, offset, file->name, "at offset %llu: no region has these bytes; "
                                     "one may have been added since the file was opened", at);
    case OPAL_CRYPT_ERR_TORN:
    case OPAL_CRYPT_ERR_AUTH:
        return !placed ? mpicrypt_fail(error, MPICRYPT_FILE_ERR_FORGED, 0, offset, file->name, "it is not as it was sealed")
               : mpicrypt_fail(error, OPAL_CRYPT_ERR_TORN == outcome->rc ? MPICRYPT_FILE_ERR_TORN : MPICRYPT_FILE_ERR_FORGED, 0, offset,
                               file->name, "at offset %llu: %s%s", at, mpicrypt_sentence_of(outcome->rc),
                               sealed ? ", or it is not as it was sealed" : "");
    default:
        return mpicrypt_fail(error, status_of(outcome->rc, MPICRYPT_FILE_ERR_SETUP), 0, offset, file->name, "%s",
                             opal_crypt_strerror(outcome->rc));
    }
}
