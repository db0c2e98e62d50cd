/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Preloaded into a test program: what it gets from mt_alloc is memory of the pretended accelerator (device.h), which a
 * processor cannot touch while the program, which has one thread, is in a call of MPI.  gate.py makes those calls.
 * The program opens what it touches between them, chunk by chunk: to open and close all memory around each call takes minutes.
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

enum { CLASSES = 30, HEAD = 64 };       /* blocks of 1 << class bytes, begun by their class, or the next free one */

enum { CHUNK = 1 << 20 };

static size_t used;
static char *unused[CLASSES], *opened[(1 << 30) / CHUNK];
static int inside, chunks;              /* how many are open */
static struct sigaction before;

extern void __libc_free(void *block);
extern void *accel_malloc(size_t bytes);

static void protect(char *chunk, int rights)
{
    if (0 != mprotect(chunk, CHUNK, rights)) {
        perror("mprotect");
        abort();
    }
}

/* Within a call of MPI this is what the test looks for: it happens again, and Open MPI shows where. */
static void touched(int number, siginfo_t *info, void *context)
{
    (void) context;
    if (!on_device(info->si_addr) || inside > 0) {
        sigaction(number, &before, NULL);
        return;
    }
    opened[chunks] = DEVICE_ADDRESS + ((char *) info->si_addr - DEVICE_ADDRESS) / CHUNK * CHUNK;
    protect(opened[chunks++], PROT_READ | PROT_WRITE);
}

static void map(void)
{
    const struct sigaction action = {.sa_sigaction = touched, .sa_flags = SA_SIGINFO | SA_NODEFER};
    const int fd = memfd_create("device", 0);

    if (fd < 0 || 0 != ftruncate(fd, (off_t) DEVICE_BYTES)
        || DEVICE_ADDRESS != mmap(DEVICE_ADDRESS, DEVICE_BYTES, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0)
        || DEVICE_ALIAS != mmap(DEVICE_ALIAS, DEVICE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0)) {
        perror("device");
        abort();
    }
    sigaction(SIGSEGV, &action, &before);
}

void *accel_malloc(size_t bytes)
{
    int class = 8;
    char *block;

    if (0 == used) {
        map();
    }
    while (((size_t) 1 << class) < bytes + HEAD) {
        class++;
    }
    block = unused[class];
    if (NULL != block) {
        unused[class] = *(char **) alias_of(block);
    } else if (((size_t) 1 << class) > DEVICE_BYTES - used) {
        fprintf(stderr, "device: no memory for %zu bytes\n", bytes);
        abort();
    } else {
        block = DEVICE_ADDRESS + used;
        used += (size_t) 1 << class;
    }
    *(int *) alias_of(block + sizeof(char *)) = class;
    return block + HEAD;
}

void free(void *block)
{
    char *head = (char *) block - HEAD;

    if (!on_device(block)) {
        __libc_free(block);
        return;
    }
    *(char **) alias_of(head) = unused[*(int *) alias_of(head + sizeof(char *))];
    unused[*(int *) alias_of(head + sizeof(char *))] = head;
}

static void enter(void)
{
    if (1 == ++inside) {
        while (chunks > 0) {
            protect(opened[--chunks], PROT_NONE);
        }
    }
}

#define GATE(call)   \
    do {             \
        int rc;      \
        enter();     \
        rc = (call); \
        inside--;    \
        return rc;   \
    } while (0)

#include "calls.h"
