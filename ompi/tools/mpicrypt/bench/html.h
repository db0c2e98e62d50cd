/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The report of `mpicrypt bench --html`: one page that needs no other file, with
 * a section for each benchmark.
 */
#ifndef MPICRYPT_BENCH_HTML_H
#define MPICRYPT_BENCH_HTML_H

#include "ompi/tools/mpicrypt/mpicrypt.h"

/* A figure of a paper: time over that of plain MPI, at a size. */
typedef struct mpicrypt_paper {
    const char *pattern, *curve, *source;
    double bytes, ratio;
} mpicrypt_paper_t;

/* bench/papers.c: the next one of this pattern after `last` (NULL: the
 * first); NULL at the end. */
const mpicrypt_paper_t *mpicrypt_paper_next(const mpicrypt_paper_t *last, const char *pattern);

/* What one benchmark left: files, and what it printed. */
typedef struct mpicrypt_section {
    const char *name;           /* "pingpong" */
    const char *about;          /* a sentence */
    const char *said;           /* its table, or why there is none */
    const char *svg, *csv;      /* NULL: none */
} mpicrypt_section_t;

/* Open and close the page; sections in between.  Files are read at once. */
FILE *mpicrypt_html_begin(const char *path, const char *command);
/* `scratch`: a file that may be overwritten. */
int mpicrypt_html_section(FILE *out, const mpicrypt_section_t *section, const char *scratch);
int mpicrypt_html_end(FILE *out, const char *path);

/* bench/all.c: run `pattern` ("all": every benchmark) as commands of
 * their own, and write the page if `html` is not NULL. */
int mpicrypt_bench_all(const char *pattern, const char *html, const char *label, size_t fast, double lap_ms);

#endif
