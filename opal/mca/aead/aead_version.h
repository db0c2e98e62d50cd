/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The version of ompi-crypt.  configure takes it from the file VERSION, and tests/shell/packaging compares the two; in
 * Open MPI's source tree there is only this one.
 */
#ifndef OPAL_MCA_AEAD_VERSION_H
#define OPAL_MCA_AEAD_VERSION_H

#define OPAL_CRYPT_VERSION "0.1.0"

/* Every component contains this text, followed by Open MPI's version: libraries compare it with their own when the
 * component registers, and `mpicrypt doctor` looks for it in the file. */
#define OPAL_CRYPT_BUILT_FOR " for Open MPI "
#define OPAL_CRYPT_BUILT "ompi-crypt " OPAL_CRYPT_VERSION OPAL_CRYPT_BUILT_FOR

#endif
