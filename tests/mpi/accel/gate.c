/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Preloaded into a test program: what it gets from mt_alloc is memory of accelerator/pretend (device.h), which a
 * processor cannot touch while the program, which has one thread, is in a call of MPI.  gate.py makes those calls.
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

enum { CLASSES = 30, HEAD = 64 };       /* blocks of 1 << class bytes, begun by their class, or the next free one */

static size_t used;
static char *unused[CLASSES];
static int inside;

extern void __libc_free(void *block);
extern void *accel_malloc(size_t bytes);

static void map(void)
{
    const int fd = memfd_create("device", 0);

    if (fd < 0 || 0 != ftruncate(fd, (off_t) DEVICE_BYTES)
        || DEVICE_ADDRESS != mmap(DEVICE_ADDRESS, DEVICE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0)
        || DEVICE_ALIAS != mmap(DEVICE_ALIAS, DEVICE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0)) {
        perror("device");
        abort();
    }
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

static void gate(int step, int change, int rights)
{
    if (change == __atomic_add_fetch(&inside, step, __ATOMIC_ACQ_REL) && used > 0
        && 0 != mprotect(DEVICE_ADDRESS, used, rights)) {
        perror("mprotect");
        abort();
    }
}

#define GATE(call)                           \
    do {                                     \
        int rc;                              \
        gate(1, 1, PROT_NONE);               \
        rc = (call);                         \
        gate(-1, 0, PROT_READ | PROT_WRITE); \
        return rc;                           \
    } while (0)

#include "calls.h"
