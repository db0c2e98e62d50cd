/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Foreign text: a file or node name, what a page or a library says.  It may contain any bytes, and is shown on
 * terminals, which obey some of them.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPT_BASE_TEXT_H
#define OPAL_CRYPT_BASE_TEXT_H

#pragma GCC visibility push(default)

/* The length in UTF-8 (RFC 3629) of the character that begins here; 0: no character begins here. */
int opal_crypt_utf8_bytes(const char *text);

/* In place: '?' for each byte that is not part of a character, and for control characters other than those of `kept`. */
char *opal_crypt_harmless(char *text, const char *kept);

#pragma GCC visibility pop

#endif
