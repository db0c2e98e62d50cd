/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * hook/crypt: what has to happen before other frameworks do something.
 */
#ifndef OMPI_MCA_HOOK_CRYPT_H
#define OMPI_MCA_HOOK_CRYPT_H

/* From now on, and until it is taken back, encrypted files are for ompio with
 * fs/crypt and fbtl/crypt only. */
void ompi_hook_crypt_files_guard(void);
void ompi_hook_crypt_files_unguard(void);

#endif
