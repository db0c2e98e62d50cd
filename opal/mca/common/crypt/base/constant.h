/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What everybody may learn of a secret.  Neither a branch nor an address depends on anything else of it.
 *
 * tests/unit/test_constant.c marks secrets as uninitialized for valgrind, which then reports every branch and every
 * address that depends on them, until it reaches OPAL_CRYPT_PUBLIC.  Elsewhere that is nothing.
 */
#ifndef OPAL_CRYPT_BASE_CONSTANT_H
#define OPAL_CRYPT_BASE_CONSTANT_H

#if defined(OPAL_CRYPT_TEST_RECORD) && __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define OPAL_CRYPT_PUBLIC(memory, bytes) ((void) VALGRIND_MAKE_MEM_DEFINED((memory), (bytes)))
#else
#define OPAL_CRYPT_PUBLIC(memory, bytes) ((void) 0)
#endif

#endif
