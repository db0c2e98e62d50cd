/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * hook/crypt: what has to happen before other frameworks do something.
 */
#ifndef OMPI_MCA_HOOK_CRYPT_H
#define OMPI_MCA_HOOK_CRYPT_H

#include <stdbool.h>

#include "ompi/mca/common/cryptmpi/cryptmpi_compat.h"

struct ompi_file_t;

/* From guard to unguard, encrypted files are only opened by ompio with fs/crypt
 * and fbtl/crypt. */
void ompi_hook_crypt_files_guard(void);
void ompi_hook_crypt_files_unguard(void);
/* The functions of the component that has a file; NULL after unguard. */
const ompi_common_cryptmpi_io_module_t *ompi_hook_crypt_files_under(const struct ompi_file_t *fh);

/* What a component offers for a file, with a watch for requests for encryption that come too late
 * (hook_crypt_late.c).  Valid until this thread's next call. */
const ompi_common_cryptmpi_io_module_t *ompi_hook_crypt_late_watched(const ompi_common_cryptmpi_io_module_t *under);

/* Messages that are not encrypted, and crypt_required (hook_crypt_plain.c), in this order: the component opens; there is a
 * runtime, and `asked_for` is whether the job has asked for encrypted messages; the PML is selected; the component closes. */
void ompi_hook_crypt_plain_open(void);
void ompi_hook_crypt_plain_judge(bool asked_for);
void ompi_hook_crypt_plain_watch(void);
void ompi_hook_crypt_plain_close(void);

#endif
