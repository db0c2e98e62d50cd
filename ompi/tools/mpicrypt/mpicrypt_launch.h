/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Running commands, above all mpicrypt-mpi through the user's launcher.
 */
#ifndef MPICRYPT_LAUNCH_H
#define MPICRYPT_LAUNCH_H

#include "mpicrypt.h"

/* Words of a command; the array ends with NULL. */
typedef mpicrypt_names_t mpicrypt_words_t;

void mpicrypt_words_add(mpicrypt_words_t *words, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mpicrypt_words_split(mpicrypt_words_t *words, const char *text);   /* at blanks */
static inline void mpicrypt_words_free(mpicrypt_words_t *words) { mpicrypt_names_free(words); }

typedef struct mpicrypt_launch {
    char *out, *err;            /* what the command wrote; freed by _launch_free */
    int code;                   /* exit code, 128 + signal; 127: it could not be started */
} mpicrypt_launch_t;

/* Run `command` with NAME=VALUE of `settings` added to the environment, stdin
 * empty, and wait.  MPICRYPT_FAILED after a message if that is impossible, or without a
 * message after a signal that is to end us. */
int mpicrypt_launch(const mpicrypt_words_t *command, const mpicrypt_words_t *settings, mpicrypt_launch_t *result);
void mpicrypt_launch_free(mpicrypt_launch_t *result);

/* Does the command start srun, whose words are others than mpirun's? */
bool mpicrypt_launch_is_srun(const mpicrypt_words_t *command);

/* mpicrypt-mpi: `given` by the user, or where it is installed.  MPICRYPT_MISSING
 * after a message when there is none. */
int mpicrypt_mpi_program(const char *given, const char **program);

/* The next line of `*text` that mpicrypt-mpi wrote, without its mark "@mpicrypt ";
 * NULL at the end.  The text is cut into lines. */
char *mpicrypt_launch_line(char **text);

#endif
