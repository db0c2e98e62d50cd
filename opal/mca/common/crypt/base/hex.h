/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Hashes, identifiers and keys as hexadecimal digits, in a time that does not depend on them.  A file that is a secret
 * in hexadecimal is read by secret_file.h, which checks its location.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPT_BASE_HEX_H
#define OPAL_CRYPT_BASE_HEX_H

#include "base.h"

#pragma GCC visibility push(default)

/* 2 x count lower-case digits and a zero byte. */
void opal_crypt_hex_write(const uint8_t *bytes, size_t count, char *text);

/* From 2 x count lower-case digits, all of which are read; false if any is invalid. */
bool opal_crypt_hex_read(const char *text, uint8_t *bytes, size_t count);

/* The value of one digit, a capital or not; OPAL_CRYPT_HEX_BAD for any other character. */
#define OPAL_CRYPT_HEX_BAD 0x100u
unsigned opal_crypt_hex_value(char c);

#pragma GCC visibility pop

#endif
