/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the MPI tests share: payload patterns that tell whose byte it is, sizes
 * at the edges of every path, guarded buffers, checks that print where they
 * failed, and a watchdog that prints where a rank hangs.
 *
 * The programs know nothing of encryption: they pass on plain Open MPI and
 * must pass unchanged with any other PML.  They run on any number of ranks
 * from 2 unless tests.list says more.
 */
#ifndef TESTS_MPI_MT_H
#define TESTS_MPI_MT_H

#include <mpi.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A program of the standard ABI is not told which Open MPI it runs on: 6.0 or later. */
#ifndef OMPI_MAJOR_VERSION
#    define OMPI_MAJOR_VERSION 6
#endif
/* Open MPI 5.0 has these parts of MPI 4, but calls itself 3.1. */
#define MT_HAS_MPI4 (OMPI_MAJOR_VERSION >= 5)
#define MT_HAS_MPI5 (MPI_VERSION >= 5)

#define MT_SKIP 77                  /* exit status: cannot run here, and says why */

extern int mt_rank, mt_size;        /* in MPI_COMM_WORLD */

/* MPI_Init_thread at `level` (skips when the library gives less), watchdog. */
void mt_start(int *argc, char ***argv, int level);
void mt_start_alone(int *argc, char ***argv, int level);    /* without a message; mt_remote has nothing then */
/* Barrier, finalize, "passed".  Returns main's exit status. */
int mt_end(void);
/* End of a case group: barrier, then rank 0 prints its line. */
void mt_group(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Called by all ranks: say why, finalize, exit MT_SKIP. */
void mt_skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void mt_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));
void mt_place(const char *file, int line);

/* "name=value" on the command line, or the default. */
long mt_arg(const char *name, long otherwise);
bool mt_flag(const char *word);

#define MT_AT() mt_place(__FILE__, __LINE__)
#define MT_CHECK(cond, ...) \
    do { MT_AT(); if (!(cond)) mt_fail(__FILE__, __LINE__, __VA_ARGS__); } while (0)
#define MT_MPI(call) \
    do { MT_AT(); int mt_rc_ = (call); if (MPI_SUCCESS != mt_rc_) mt_fail_mpi(__FILE__, __LINE__, #call, mt_rc_); } while (0)
void mt_fail_mpi(const char *file, int line, const char *call, int rc) __attribute__((noreturn));

/* ---- patterns: every byte is a function of the key and its offset ---- */
uint64_t mt_mix(uint64_t x);
uint64_t mt_key(int seed, int source, int tag, int index);
void mt_fill(void *p, size_t n, uint64_t key);
/* Offset of the first wrong byte, or n. */
size_t mt_differs(const void *p, size_t n, uint64_t key);
#define MT_SAME(p, n, key, what) \
    do { size_t mt_d_ = mt_differs(p, n, key); \
         MT_CHECK(mt_d_ == (size_t) (n), "%s: wrong byte at %zu of %zu", what, mt_d_, (size_t) (n)); } while (0)

/* ---- random numbers: the same on every machine ---- */
uint64_t mt_random(uint64_t *state);
static inline size_t mt_below(uint64_t *state, size_t n) { return (size_t) (mt_random(state) % n); }

/* ---- sizes ---- */
extern const size_t mt_sizes[];
extern const int mt_sizes_count;
extern const size_t mt_few_sizes[];     /* one of each class */
extern const int mt_few_sizes_count;
#define MT_MAX_SIZE 5000001
/* Mostly small, now and then large; at most `limit`. */
size_t mt_random_size(uint64_t *state, size_t limit);

/* ---- buffers of messages: with @ACCEL@ in the list, an accelerator's memory; for free() ---- */
extern void *accel_malloc(size_t bytes) __attribute__((weak));      /* accel/gate.c, if it is preloaded; aligned to 64 */
static inline void *mt_alloc(size_t bytes) { return NULL != accel_malloc ? accel_malloc(bytes) : malloc(bytes); }

/* ---- guarded receive buffers ---- */
typedef struct mt_buf {
    unsigned char *p;       /* n bytes, between two guards */
    size_t n;
} mt_buf_t;
void mt_buf_new(mt_buf_t *b, size_t n);
void mt_buf_free(mt_buf_t *b);
void mt_buf_poison(mt_buf_t *b);
/* `used` bytes of the pattern; everything behind and around them untouched. */
void mt_buf_check(const mt_buf_t *b, size_t used, uint64_t key, const char *file, int line);
#define MT_BUF(b, used, key) do { MT_AT(); mt_buf_check(b, used, key, __FILE__, __LINE__); } while (0)

/* Status of a completed receive: source, tag, bytes. */
void mt_status_check(const MPI_Status *s, int source, int tag, size_t bytes, const char *file, int line);
#define MT_STATUS(s, source, tag, bytes) \
    do { MT_AT(); mt_status_check(s, source, tag, bytes, __FILE__, __LINE__); } while (0)

/* True if that world rank runs on another host name. */
bool mt_remote(int rank);
/* Resident kilobytes of this process. */
long mt_rss_kib(void);
/* Does pml/crypt seal?  Over TCP it does only if crypt_transport=pml was asked for: else btl/crypt does, below ob1. */
bool mt_sealed(void);

#endif
