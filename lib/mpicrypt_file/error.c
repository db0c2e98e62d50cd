/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Errors: a status, and a sentence that begins with the file's name.  Names come from anywhere, so the text is made
 * harmless for a terminal.
 */
#include "lib/mpicrypt_file/error.h"
#include "lib/mpicrypt_file/sentences.h"
#include "ompi/mca/common/cryptmpio/cryptmpio_posix.h"
#include "opal/mca/common/crypt/base/text.h"
#include "opal/mca/common/cryptfile/file/seal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

_Static_assert(1024 == sizeof(mpicrypt_file_error_t), "mpicrypt_file_error_t");

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
        used = (size_t) snprintf(error->text, sizeof(error->text), "%s%s: ", bytes > most ? "..." : "", bytes > most ? name + bytes - most : name);
    }
    va_start(arguments, format);
    vsnprintf(error->text + used, sizeof(error->text) - used, format, arguments);
    va_end(arguments);
    (void) opal_crypt_harmless(error->text, "");
    return status;
}

static int status_of_errno(int os_error) { return ENOMEM == os_error ? MPICRYPT_FILE_ERR_MEMORY : MPICRYPT_FILE_ERR_IO; }

int mpicrypt_fail_errno(mpicrypt_file_error_t *error, int os_error, const char *name)
{
    char text[256];

    return mpicrypt_fail(error, status_of_errno(os_error), os_error, MPICRYPT_FILE_NOWHERE, name, "%s",
                         strerror_r(os_error, text, sizeof(text)));
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

int mpicrypt_fail_engine(mpicrypt_file_error_t *error, const char *name, const opal_cryptfile_t *engine,
                         const opal_cryptfile_outcome_t *outcome)
{
    const opal_cryptfile_map_t *map = opal_cryptfile_map_of(engine);
    const bool known = outcome->region < map->region_count;
    const bool placed = OPAL_CRYPT_ERR_ACCESS == outcome->rc || (known && map->regions[outcome->region].encrypted);
    const uint64_t offset = placed ? outcome->file_offset : MPICRYPT_FILE_NOWHERE;
    const unsigned long long at = outcome->file_offset;
    const unsigned limit = ompi_common_cryptmpio_posix_wait_limit();
    char text[256];
    uint64_t bytes = 0;
    const bool sealed = opal_cryptfile_sealed_bytes(engine, &bytes);

    switch (outcome->rc) {
    case OPAL_CRYPT_ERR_STORAGE:
        return ETIMEDOUT == outcome->error && limit > 0         /* without a limit it is the file system's */
                   ? mpicrypt_fail(error, MPICRYPT_FILE_ERR_IO, ETIMEDOUT, offset, name, "at offset %llu: another process has had a lock "
                                   "on this block for %u seconds", at, limit)
                   : mpicrypt_fail(error, status_of_errno(outcome->error), outcome->error, offset, name, "at offset %llu: %s", at,
                                   strerror_r(outcome->error, text, sizeof(text)));
    case OPAL_CRYPT_ERR_ACCESS:
        return known ? mpicrypt_fail(error, MPICRYPT_FILE_ERR_KEY, 0, offset, name, "at offset %llu: %s (label %s)", at,
                                     mpicrypt_sentence_of(outcome->rc), map->regions[outcome->region].label)
                     : mpicrypt_fail(error, MPICRYPT_FILE_ERR_KEY, 0, offset, name, "at offset %llu: no region has these bytes; "
                                     "one may have been added since the file was opened", at);
    case OPAL_CRYPT_ERR_TORN:
    case OPAL_CRYPT_ERR_AUTH:
        return !placed && sealed ? mpicrypt_fail(error, MPICRYPT_FILE_ERR_FORGED, 0, offset, name, "it is not as it was sealed")
               : mpicrypt_fail(error, OPAL_CRYPT_ERR_TORN == outcome->rc ? MPICRYPT_FILE_ERR_TORN : MPICRYPT_FILE_ERR_FORGED, 0, offset,
                               name, "at offset %llu: %s%s", at, mpicrypt_sentence_of(outcome->rc),
                               sealed && OPAL_CRYPT_ERR_AUTH == outcome->rc ? ", or it is not as it was sealed" : "");
    default:
        return mpicrypt_fail(error, status_of(outcome->rc, MPICRYPT_FILE_ERR_SETUP), 0, offset, name, "%s",
                             opal_crypt_strerror(outcome->rc));
    }
}
