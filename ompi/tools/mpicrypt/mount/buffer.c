/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Memory for the plaintext of a read: one buffer a thread, kept from read to read.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mount.h"

typedef struct mount_buffer {
    size_t bytes;                       /* of the mapping; the plaintext begins on its second page */
} mount_buffer_t;

static pthread_once_t buffer_once = PTHREAD_ONCE_INIT;
static pthread_key_t buffer_key;
static size_t page_bytes;

static void buffer_free(void *arg)
{
    mount_buffer_t *buffer = arg;
    size_t bytes = buffer->bytes;

    explicit_bzero(buffer, bytes);
    munmap(buffer, bytes);
}

static void buffer_begin(void)
{
    page_bytes = (size_t) sysconf(_SC_PAGESIZE);
    if (0 != pthread_key_create(&buffer_key, buffer_free)) {
        abort();
    }
}

void *mpicrypt_mount_buffer(size_t bytes)
{
    pthread_once(&buffer_once, buffer_begin);
    mount_buffer_t *buffer = pthread_getspecific(buffer_key);

    if (NULL == buffer || buffer->bytes - page_bytes < bytes) {
        size_t wanted = page_bytes + (bytes + page_bytes - 1) / page_bytes * page_bytes;
        if (NULL != buffer) {
            pthread_setspecific(buffer_key, NULL);
            buffer_free(buffer);
        }
        buffer = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (MAP_FAILED == buffer) {
            return NULL;
        }
        if (0 != madvise(buffer, wanted, MADV_DONTDUMP) || 0 != madvise(buffer, wanted, MADV_WIPEONFORK)
            || 0 != pthread_setspecific(buffer_key, buffer)) {
            munmap(buffer, wanted);
            return NULL;
        }
        buffer->bytes = wanted;
    }
    return (char *) buffer + page_bytes;
}
