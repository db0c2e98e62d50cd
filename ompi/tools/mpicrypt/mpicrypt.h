/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the verbs of mpicrypt share: the description of a verb and its options
 * (from which the parser and --help are both driven, so that the help cannot
 * go stale), lists, tables, statistics, progress.
 *
 * To add a verb: one file mpicrypt_NAME.c that defines mpicrypt_NAME_verb, one
 * line here and one in the table of mpicrypt.c, one section of
 * docs/mpicrypt.rst.
 *
 * Threads: any may call mpicrypt_error and the functions of a table of its own; verbs call the rest from their main thread.
 */
#ifndef MPICRYPT_H
#define MPICRYPT_H

#define MPICRYPT_OPTIONS_MAX 64 /* of a verb */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes, the same for every verb; --help and the manual list them. */
enum {
    MPICRYPT_OK = 0,
    MPICRYPT_FAILED = 1,        /* the verb ran, but what it did or checked failed */
    MPICRYPT_USAGE = 2,         /* unknown verb or option, bad value */
    MPICRYPT_MISSING = 3        /* something needed is not installed or not there */
};

/* ---- lists, as options take them: "1,64,64K,4M" ---- */

typedef struct mpicrypt_sizes {
    size_t *value;
    int count;
} mpicrypt_sizes_t;

typedef struct mpicrypt_names {
    char **value;
    int count;
} mpicrypt_names_t;

/* 0, or -1 with a message in `error`.  Sizes take the suffixes K, M, G
 * (powers of 1024).  The lists are freed by the functions below. */
int mpicrypt_size_parse(const char *text, size_t *bytes);
int mpicrypt_sizes_parse(const char *text, mpicrypt_sizes_t *list, char *error, size_t error_bytes);
int mpicrypt_names_parse(const char *text, mpicrypt_names_t *list, char *error, size_t error_bytes);
/* Hosts, with ranges: "node[01-64,70],login1".  Each is listed once, and none can be mistaken
 * for an option. */
int mpicrypt_hosts_parse(const char *text, mpicrypt_names_t *list, char *error, size_t error_bytes);
/* Takes the text, which is malloc'd; NULL follows the last one.  Only for lists that are empty or were filled by this. */
void mpicrypt_names_add(mpicrypt_names_t *list, char *name);
void mpicrypt_sizes_free(mpicrypt_sizes_t *list);
void mpicrypt_names_free(mpicrypt_names_t *list);
bool mpicrypt_names_contain(const mpicrypt_names_t *list, const char *name);

/* "64 KiB" is written 64K, 100 is 100; into `text` of at least 24 bytes. */
const char *mpicrypt_size_text(size_t bytes, char *text);

/* ---- verbs and options ---- */

typedef enum {
    MPICRYPT_FLAG,              /* bool */
    MPICRYPT_TEXT,              /* const char *, NULL without a default */
    MPICRYPT_COUNT,             /* size_t, no suffix */
    MPICRYPT_REAL,              /* double */
    MPICRYPT_SIZES,             /* mpicrypt_sizes_t, suffixes allowed */
    MPICRYPT_NAMES,             /* mpicrypt_names_t */
    MPICRYPT_HOSTS              /* mpicrypt_names_t: "node[01-64],login1" */
} mpicrypt_kind_t;

typedef struct mpicrypt_option {
    const char *name;           /* without the dashes; NULL ends the table */
    mpicrypt_kind_t kind;
    const char *argument;       /* how the help calls it: "LIST", "FILE" ... */
    const char *fallback;       /* default, as the user would type it; NULL: none */
    void *target;
    const char *help;           /* sentences; wrapped by the help.  "For new and rotate: ...": of these commands only */
} mpicrypt_option_t;

typedef struct mpicrypt_verb {
    const char *name;
    const char *summary;        /* half a line, for the list of verbs */
    const char *synopsis;       /* after "mpicrypt NAME"; has the commands, if there are any (mpicrypt_command.c) */
    const char *description;    /* paragraphs, separated by "\n\n" */
    const mpicrypt_option_t *options;
    const char *examples;       /* lines, printed as they are */

    /* Options have been parsed; `operands` are the words that are not options.  NULL: the verb is a program
     * of its own, mpicrypt-NAME in libexec, which has all the rest, too. */
    int (*run)(int operand_count, char **operands);
    bool takes_operands;
} mpicrypt_verb_t;

extern const mpicrypt_verb_t mpicrypt_doctor_verb;
extern const mpicrypt_verb_t mpicrypt_file_verb;
extern const mpicrypt_verb_t mpicrypt_key_verb;
extern const mpicrypt_verb_t mpicrypt_keygen_verb;
extern const mpicrypt_verb_t mpicrypt_mount_verb;
extern const mpicrypt_verb_t mpicrypt_ps_verb;
extern const mpicrypt_verb_t mpicrypt_speed_verb;

/* Parse argv[0..argc-1] (the words after the verb) into the targets, defaults
 * first.  MPICRYPT_OK, or MPICRYPT_USAGE after a message on stderr.  Operands
 * are moved to the front of argv.  --help is left to the caller.  given: for each option
 * of the verb, MPICRYPT_OPTIONS_MAX at most, whether it is there. */
int mpicrypt_options_parse(const mpicrypt_verb_t *verb, int argc, char **argv, bool *given, int *operand_count);
void mpicrypt_options_free(const mpicrypt_verb_t *verb);

void mpicrypt_help_program(FILE *out, const mpicrypt_verb_t *const *verbs);
void mpicrypt_help_verb(FILE *out, const mpicrypt_verb_t *verb);

/* Parts of it: a paragraph, an option, and what every page has after the options. */
void mpicrypt_help_wrap(FILE *out, const char *text, size_t bytes, int indent);
void mpicrypt_help_option(FILE *out, const mpicrypt_option_t *option);
void mpicrypt_help_end(FILE *out);

/* ---- commands of a verb, as its description has them: mpicrypt_command.c ---- */

/* The first of these words that is a command of the verb; NULL: none. */
const char *mpicrypt_command_of(const mpicrypt_verb_t *verb, int argc, char **argv);
/* The page of a command: its operands, sentences, options and examples. */
void mpicrypt_help_command(FILE *out, const mpicrypt_verb_t *verb, const char *command);
/* Are the options that were given for this command, and are its operands there?  MPICRYPT_USAGE after a message.  An
 * unknown command is left to the verb. */
int mpicrypt_command_check(const mpicrypt_verb_t *verb, const bool *given, int operand_count, char **operands);
/* For a verb that was given at least one word, and cannot do it: says what is wrong; returns MPICRYPT_USAGE. */
int mpicrypt_command_wrong(const mpicrypt_verb_t *verb, int operand_count, char **operands);

/* "mpicrypt VERB: text" on stderr; returns `code`, so that a caller can write
 * `return mpicrypt_error(MPICRYPT_USAGE, ...)`. */
int mpicrypt_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What an allocation returned; without memory, the tool can only report that, and end. */
void *mpicrypt_checked(void *block);

/* From now on a message is one line, whatever the names in it are. */
void mpicrypt_error_one_line(void);
/* In messages of this thread a path that begins with `name`, which ends in a slash, is shown with `shown` instead.
 * There are two: `which` is 0 or 1.  NULL: no more. */
void mpicrypt_error_replace(int which, const char *name, const char *shown);
/* Messages of this thread about failures are also written here, as JSON has texts, with commas between them.  NULL: no more. */
void mpicrypt_error_list(FILE *list);

/* Become `python3 -I -B LIBEXEC/mpicrypt-NAME MPICRYPT PROFILES ARGUMENT...`.  Returns only after a message. */
int mpicrypt_become(const char *name, int argc, char **argv);

/* Write all of it; false: errno. */
bool mpicrypt_write_all(int fd, const void *bytes, size_t count);

/* First of all: a standard stream that is closed gets /dev/null. */
void mpicrypt_streams_open(void);

/* ---- tables: one object, written as text, CSV or JSON ---- */

typedef struct mpicrypt_table mpicrypt_table_t;

/* A column: its CSV and JSON name, its heading in the printed table (NULL: the
 * column is in CSV and JSON only), decimals of the printed table. */
typedef struct mpicrypt_column {
    const char *name;
    const char *heading;
    int decimals;
} mpicrypt_column_t;

/* NULL name ends the columns; they must outlive the table. */
mpicrypt_table_t *mpicrypt_table_new(const mpicrypt_column_t *columns);
void mpicrypt_table_free(mpicrypt_table_t *table);

/* Cells are added row by row, left to right; text is copied. */
void mpicrypt_table_text(mpicrypt_table_t *table, const char *text);
void mpicrypt_table_number(mpicrypt_table_t *table, double value);
void mpicrypt_table_count(mpicrypt_table_t *table, size_t value);   /* written without decimals */
void mpicrypt_table_bytes(mpicrypt_table_t *table, size_t value);   /* printed as 64K */

void mpicrypt_table_print(const mpicrypt_table_t *table, FILE *out);
void mpicrypt_table_json(const mpicrypt_table_t *table, FILE *out); /* an array of objects */
void mpicrypt_table_json_line(const mpicrypt_table_t *table, FILE *out);    /* without line breaks */
void mpicrypt_json_text(FILE *out, const char *text);               /* quoted and escaped; U+FFFD for what is no UTF-8 */

/* Can `path` be written?  Asked before a long measurement; NULL and "-" can.  A
 * missing file is not created. */
int mpicrypt_writable(const char *path);

/* CSV to a file, "-" for standard output.  MPICRYPT_FAILED after a message. */
int mpicrypt_table_csv_file(const mpicrypt_table_t *table, const char *path);

/* ---- statistics ---- */

typedef struct mpicrypt_spread {
    double median, low, high;   /* low and high: first and third quartile */
} mpicrypt_spread_t;

/* Sorts `values` in place. */
mpicrypt_spread_t mpicrypt_spread(double *values, int count);

/* ---- progress: a bar or a line on stderr, only if that is a terminal; any thread ---- */

void mpicrypt_progress(const char *label, size_t done, size_t total);
void mpicrypt_progress_line(const char *text);          /* instead of the bar */
void mpicrypt_progress_end(void);

#endif
