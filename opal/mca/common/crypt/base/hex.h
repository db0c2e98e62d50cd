/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Bytes as hexadecimal digits: of hashes, identifiers and wrapped keys in text files.
 * A secret that comes as digits is read by secret_file.h, which checks where it lies.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPT_BASE_HEX_H
#define OPAL_CRYPT_BASE_HEX_H

#include "base.h"

#pragma GCC visibility push(default)

/* Lower-case digits, 2 x count of them, and a zero. */
void opal_crypt_hex_write(const uint8_t *bytes, size_t count, char *text);

/* From 2 x count lower-case digits; false if one of them is none. */
bool opal_crypt_hex_read(const char *text, uint8_t *bytes, size_t count);

#pragma GCC visibility pop

#endif
