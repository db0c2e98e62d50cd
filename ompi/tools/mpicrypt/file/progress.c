/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How far `mpicrypt file` is: files, bytes and their rate, on one line of a terminal.  All threads add to it; one that
 * finds the line old enough rewrites it.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "file.h"
#include "opal/mca/common/crypt/base/thread.h"

enum { REWRITE_NS = 200000000 };

static bool is_on;
static uint64_t began;
static atomic_ullong all_bytes, all_files, written_at;

void mpicrypt_file_progress_begin(bool quiet)
{
    is_on = !quiet && isatty(STDERR_FILENO);
    began = opal_crypt_now();
    atomic_store(&written_at, began);
}

static void show_progress(uint64_t bytes, uint64_t files, uint64_t ns)
{
    const double mib = (double) bytes / (1 << 20), seconds = (double) ns / 1e9;
    char text[80];

    snprintf(text, sizeof(text), "%llu %s, %.0f MiB, %.0f MiB/s", (unsigned long long) files, 1 == files ? "file" : "files", mib,
             mib / seconds);
    mpicrypt_progress_line(text);
}

void mpicrypt_file_progress(uint64_t bytes)
{
    uint64_t sum = atomic_fetch_add(&all_bytes, bytes) + bytes, now = is_on ? opal_crypt_now() : 0;
    unsigned long long before = atomic_load(&written_at);

    if (is_on && now - before > REWRITE_NS && atomic_compare_exchange_strong(&written_at, &before, now)) {
        show_progress(sum, atomic_load(&all_files), now - began);
    }
}

void mpicrypt_file_progress_files(uint64_t files)
{
    (void) atomic_fetch_add(&all_files, files);
    mpicrypt_file_progress(0);
}
