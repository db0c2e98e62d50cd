/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt keygen: what its files, and `key push`, share.
 */
#ifndef MPICRYPT_KEY_KEYGEN_H
#define MPICRYPT_KEY_KEYGEN_H

#include "ompi/tools/mpicrypt/mpicrypt.h"

enum { MPICRYPT_KEYGEN_KEY_BYTES = 65 };        /* 64 digits and the end of their line */

/* Exit statuses of what runs on a host. */
enum {
    MPICRYPT_KEYGEN_OTHER_KEY = 4,      /* there is another key */
    MPICRYPT_KEYGEN_ON_NETFS = 5,          /* writing it there may send it over a network */
    MPICRYPT_KEYGEN_DIRECTORY = 6,      /* its place is a directory */
    MPICRYPT_KEYGEN_UNFIT = 7,          /* the key is there, in a file that jobs refuse */
    MPICRYPT_KEYGEN_UNSAFE = 8          /* jobs refuse any file in its directory */
};

/* What is installed on many hosts: by keygen, and by `key push`. */
typedef struct mpicrypt_keygen_job {
    const mpicrypt_names_t *hosts;
    size_t at_once;
    const char *rsh, *command;          /* run as RSH HOST COMMAND */
    const unsigned char *input;         /* its standard input: 1 MiB at most */
    size_t input_bytes;
    const char *verb, *advice;          /* for the summary: "keygen"; what to do about hosts that lack the key */
    /* The sentence for an exit status that means the host stays as it was; NULL: it does not. */
    const char *(*refusal)(int status);
} mpicrypt_keygen_job_t;

/* Install the key on all hosts.  Prints the outcome for each, in order, and a summary.  If a signal
 * came, ends by it after the summary. */
int mpicrypt_keygen_install(const mpicrypt_keygen_job_t *job);

/* `text`, quoted for a shell; the number of characters, or -1. */
int mpicrypt_keygen_quote(const char *text, char *quoted, size_t capacity);

#endif
