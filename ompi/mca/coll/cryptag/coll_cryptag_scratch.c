/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Scratch memory of a call: allocated piece by piece, all released at the end.
 * A communicator keeps what its last call needed (up to a limit), in one chunk,
 * so that a call of the same size as the last allocates nothing.
 */
#include "coll_cryptag.h"

#include <stdlib.h>

#define FIRST_CHUNK ((size_t) 16 << 10)
#define KEEP_AT_MOST ((size_t) 16 << 20)

struct ompi_coll_cryptag_chunk {
    ompi_coll_cryptag_chunk_t *next;
    size_t capacity, used;
    uint8_t bytes[] __attribute__((aligned(OMPI_COLL_CRYPTAG_ALIGN)));
};

static ompi_coll_cryptag_chunk_t *chunk_new(size_t capacity)
{
    ompi_coll_cryptag_chunk_t *chunk = NULL;

    if (capacity > SIZE_MAX / 2
        || 0 != posix_memalign((void **) &chunk, OMPI_COLL_CRYPTAG_ALIGN, sizeof(*chunk) + capacity)) {
        return NULL;
    }
    chunk->next = NULL;
    chunk->capacity = capacity;
    chunk->used = 0;
    return chunk;
}

void *ompi_coll_cryptag_scratch(ompi_coll_cryptag_call_t *call, size_t bytes)
{
    ompi_coll_cryptag_scratch_t *scratch = &call->module->scratch;
    ompi_coll_cryptag_chunk_t *chunk = scratch->chunks;
    size_t rounded = ompi_coll_cryptag_aligned(bytes);
    void *memory;

    if (rounded < bytes) {
        ompi_coll_cryptag_no_memory(call->comm, bytes);
    }
    if (NULL == chunk || chunk->capacity - chunk->used < rounded) {
        chunk = chunk_new(rounded > FIRST_CHUNK ? rounded : FIRST_CHUNK);
        if (NULL == chunk) {
            ompi_coll_cryptag_no_memory(call->comm, bytes);
        }
        chunk->next = scratch->chunks;
        scratch->chunks = chunk;
    }
    memory = chunk->bytes + chunk->used;
    chunk->used += rounded;
    return memory;
}

/* More than one chunk was needed: the next call finds one of the whole size.  In a process with
 * an accelerator all of it is wiped, as the data may come from there. */
void ompi_coll_cryptag_scratch_reset(ompi_coll_cryptag_scratch_t *scratch)
{
    size_t used = 0;
    bool several = NULL != scratch->chunks && NULL != scratch->chunks->next;

    for (ompi_coll_cryptag_chunk_t *chunk = scratch->chunks; NULL != chunk; chunk = chunk->next) {
        if (ompi_common_cryptmpi_device_possible) {
            opal_crypt_wipe(chunk->bytes, chunk->used);
        }
        used += chunk->used;
        chunk->used = 0;
    }
    if (several || used > KEEP_AT_MOST) {
        ompi_coll_cryptag_scratch_free(scratch);
        if (used <= KEEP_AT_MOST) {
            scratch->chunks = chunk_new(used);
        }
    }
}

void ompi_coll_cryptag_scratch_free(ompi_coll_cryptag_scratch_t *scratch)
{
    while (NULL != scratch->chunks) {
        ompi_coll_cryptag_chunk_t *next = scratch->chunks->next;
        free(scratch->chunks);
        scratch->chunks = next;
    }
}
