/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A component built for another series of Open MPI brings the libopen-pal of that series into the process, and still
 * loads, as a BTL needs nothing from libmpi.  Open MPI's own components then call the wrong functions and crash, even
 * in jobs that do not name this one.  So it refers to a symbol that only the libmpi of its series has, by address,
 * which the dynamic linker resolves at once.
 */
#include "btl_crypt_compat.h"

extern char OPAL_BTL_CRYPT_ONLY_HERE[];

const void *const opal_btl_crypt_only_here __attribute__((used)) = OPAL_BTL_CRYPT_ONLY_HERE;
