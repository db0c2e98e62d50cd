/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The threads of `mpicrypt file`, of which --threads says how many there are.  Each file has one; those that have no
 * file of their own help with the parts of a large one.
 *
 *     parts of a file   next (one thread at a time) -> work (any number) -> next ...
 */
#ifndef MPICRYPT_FILE_CREW_H
#define MPICRYPT_FILE_CREW_H

#include "file.h"

enum { MPICRYPT_FILE_THREADS_MAX = 64, MPICRYPT_FILE_PART_BYTES = 4 << 20 };

/* What failed: an engine's call, or a system call, or neither (`text`). */
typedef struct mpicrypt_file_fault {
    const mpicrypt_opened_t *file;        /* the engine's; NULL: `path` and `text`, or errno */
    opal_cryptfile_outcome_t outcome;
    const char *path, *text;
    int error;
} mpicrypt_file_fault_t;

/* Set the fault; returns false, so that a caller can return it. */
bool mpicrypt_file_fault_engine(mpicrypt_file_fault_t *fault, const mpicrypt_opened_t *file, const opal_cryptfile_outcome_t *outcome);
bool mpicrypt_file_fault_system(mpicrypt_file_fault_t *fault, const char *path);               /* errno */
bool mpicrypt_file_fault_text(mpicrypt_file_fault_t *fault, const char *path, const char *text);

/* The parts of a file.  `begin`, `next` and `end` are called by one thread at a time, and after a failure no part is begun.
 * Which failure is reported does not depend on the number of threads: that of the first part in order. */
typedef struct mpicrypt_file_crew {
    void *of;
    uint64_t parts;                     /* about; more threads than this would be idle */
    void *(*begin)(void *of);           /* a thread's memory; NULL: errno */
    bool (*next)(void *of, void *memory);       /* choose the next part; false: there is none */
    bool (*work)(void *of, void *memory, mpicrypt_file_fault_t *fault);
    void (*end)(void *of, void *memory);        /* wipes it */
} mpicrypt_file_crew_t;

/* Returns an exit code, after a message if the work failed. */
int mpicrypt_file_crew(const mpicrypt_file_crew_t *crew);

/* How many threads there are; each file takes one while it is worked on, and gives it back. */
void mpicrypt_file_threads(unsigned count);
void mpicrypt_file_thread_take(void);
void mpicrypt_file_thread_give(void);

/* The number of processors that this process may use, at most 8. */
unsigned mpicrypt_file_threads_default(void);

#endif
