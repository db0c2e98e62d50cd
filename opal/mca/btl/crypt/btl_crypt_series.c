/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A component of another series of Open MPI brings the libopen-pal of that series into the process,
 * and loads: a BTL wants nothing of libmpi.  Open MPI's own components then meet the wrong
 * functions, and crash, in jobs that do not even name it.  So it wants a symbol that only
 * the libmpi of its series has, by an address, which the dynamic linker looks for at once.
 */
#include "btl_crypt_compat.h"

extern char OPAL_BTL_CRYPT_ONLY_HERE[];

const void *const opal_btl_crypt_only_here __attribute__((used)) = OPAL_BTL_CRYPT_ONLY_HERE;
