/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One command of `mpicrypt file` on one file or on many: the operands, the files below directories, several at a time,
 * what is printed about each, and the summary.
 */
#ifndef MPICRYPT_FILE_MANY_H
#define MPICRYPT_FILE_MANY_H

#include "file.h"

typedef int (*mpicrypt_file_of_one_t)(const mpicrypt_file_choices_t *options, const char *path);
typedef int (*mpicrypt_file_of_two_t)(const mpicrypt_file_choices_t *options, const char *from, const char *to);

typedef struct mpicrypt_file_command {
    const char *name, *done;            /* done: what a file is called on which it has done its work */
    mpicrypt_file_of_one_t of_one;
    mpicrypt_file_of_two_t of_two;      /* of_one or of_two */
    bool writes;                        /* a run that is interrupted has to be run again */
    bool prints;                        /* JSON of its own; otherwise the object about the file is all */
    bool alone;                         /* nobody else may have its file open */
    bool in_place;                      /* of_one: a new file always replaces the old one */
    bool details;                       /* prints more than one line about a file with which all is well */
} mpicrypt_file_command_t;

/* The exit code: the highest of all files. */
int mpicrypt_file_run(const mpicrypt_file_command_t *command, const mpicrypt_file_choices_t *options, int count, char **operands);

/* ---- report.c: what is printed ---- */

typedef struct mpicrypt_file_report mpicrypt_file_report_t;

/* `lines`: a line about each file, and a summary; else what the command prints. */
mpicrypt_file_report_t *mpicrypt_file_report_new(const mpicrypt_file_command_t *command, const mpicrypt_file_choices_t *options,
                                                 bool lines);
/* Where the command prints about the file, until the end; false: no memory. */
bool mpicrypt_file_report_begin(mpicrypt_file_report_t *report, mpicrypt_file_subject_t *subject, char **text, size_t *bytes);
/* Prints; returns the code that counts.  Any thread. */
int mpicrypt_file_report_end(mpicrypt_file_report_t *report, mpicrypt_file_subject_t *subject, int code, char **text);
/* The summary; returns the highest code. */
int mpicrypt_file_report_free(mpicrypt_file_report_t *report);

#endif
