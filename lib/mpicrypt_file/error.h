/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How libmpicrypt_file and `mpicrypt file` describe a failure.  Each function returns the status, and `error` may be NULL.
 */
#ifndef MPICRYPT_FILE_ERROR_H
#define MPICRYPT_FILE_ERROR_H

#include <stdbool.h>

#include "lib/mpicrypt_file/mpicrypt_file.h"
#include "opal/mca/common/crypt/base/base.h"
#include "opal/mca/common/cryptfile/file/file.h"

int mpicrypt_fail_nothing(mpicrypt_file_error_t *error);
int mpicrypt_fail(mpicrypt_file_error_t *error, int status, int os_error, uint64_t offset, const char *name, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* For errno. */
int mpicrypt_fail_errno(mpicrypt_file_error_t *error, int os_error, const char *name);
/* For a refusal of the core; `status` unless rc says something else, such as that memory ran out. */
int mpicrypt_fail_refused(mpicrypt_file_error_t *error, int status, int rc, const char *name, const opal_crypt_why_t *why);
/* For a call of the engine. */
int mpicrypt_fail_engine(mpicrypt_file_error_t *error, const char *name, const opal_cryptfile_t *engine,
                         const opal_cryptfile_outcome_t *outcome);

#endif
