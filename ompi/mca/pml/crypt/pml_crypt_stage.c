/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Staging: memory for what was sealed and what is to be opened, from pools.
 *
 *     first       receives: first parts and short messages
 *     frames      sends: the same, of more than SMALL bytes
 *     small, tiny sends of up to SMALL and TINY bytes
 *     chunks      segments of chunk_size bytes, or less
 *     large[i]    longer ones, due to k, a table, or a peer: up to 128 KiB << i
 *     pinned      segments of chunk_size bytes, or less, from and to the memory of an accelerator: WARM bytes each way, page-locked for
 *                 asynchronous copies; more are chunks
 *
 * However many receives are posted, only what arrives takes memory, and it is returned:
 * the first WARM bytes of a pool (four times as many for receives) are kept, and used
 * before others; stages beyond these return their pages to the kernel each time.  Sends have
 * at most WARM bytes of frames: a send that gets none takes another path (chop_send.c).
 * Stages larger than those of the largest pool are not kept.
 *
 * An RDMA adapter reads and writes stages by itself, long after the call that gave it one.  So a stage is
 * returned only in the host's completion callback, or after a blocking call of the host; a cancelled
 * receive counts as active until the host has ended it; and pools are destroyed after the host, since
 * libfabric's endpoints live as long.  cool() gives up pages that an adapter may still have registered:
 * according to their sources, Open MPI, UCX and libfabric intercept madvise, and register them again.
 */
#include "pml_crypt.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>


enum {
    SLACK = 64, SMALLEST = 1 << 17, POOLS = 6,      /* the last: 4 MiB */
    WARM = 4 << 20, WARM_LEAST = 8,                 /* bytes; and stages */
    SMALL = 4096 + OPAL_CRYPT_FIRST_OVERHEAD, TINY = 512,
};

/* `cold` may stay unused (nothing beyond `warm`), and `warm` may be unbounded. */
typedef struct pool {
    opal_free_list_t warm, cold;
    size_t cold_bytes;                              /* whole pages */
} pool_t;

static pool_t first, frames, small, tiny, chunks, large[POOLS];
static opal_free_list_t pinned[2];      /* receives; sends */
static size_t pinned_bytes;             /* whole pages */
static bool cannot_pin;

static void stage_construct(ompi_pml_crypt_stage_t *stage)
{
    stage->op.inner = NULL;
    stage->op.request = NULL;
    stage->op.segment = 0;
    stage->home = NULL;
    stage->bytes = NULL;
    stage->cold_bytes = 0;
    stage->copy = NULL;
    stage->pinned = false;
}

OBJ_CLASS_INSTANCE(ompi_pml_crypt_stage_t, opal_free_list_item_t, stage_construct, NULL);

static int list_start(opal_free_list_t *list, size_t bytes, size_t alignment, int most, int grow_by)
{
    OBJ_CONSTRUCT(list, opal_free_list_t);
    return opal_free_list_init(list, sizeof(ompi_pml_crypt_stage_t), 64, OBJ_CLASS(ompi_pml_crypt_stage_t), bytes,
                               alignment, 0, most, grow_by, NULL, 0, NULL, NULL, NULL);
}

static int pool_start(pool_t *pool, size_t wire_bytes, size_t warm_bytes, int grow_by)
{
    const size_t bytes = wire_bytes + SLACK, page = (size_t) sysconf(_SC_PAGESIZE);
    const int most = bytes * WARM_LEAST > warm_bytes ? WARM_LEAST : (int) (warm_bytes / bytes);
    int rc = list_start(&pool->warm, bytes, 64, 0 != warm_bytes ? most : -1, grow_by), cold_rc;

    pool->cold_bytes = (bytes + page - 1) / page * page;
    cold_rc = list_start(&pool->cold, pool->cold_bytes, page, -1, grow_by);
    return OPAL_SUCCESS == rc ? cold_rc : rc;
}

static void pool_stop(pool_t *pool)
{
    OBJ_DESTRUCT(&pool->warm);
    OBJ_DESTRUCT(&pool->cold);
}

int ompi_pml_crypt_stages_start(void)
{
    /* All are made, even after a failure, so that stop can destroy them. */
    const int made[] = {
        pool_start(&first, ompi_pml_crypt_capacity_of(ompi_pml_crypt.stage_bytes), 4 * WARM, 8),
        pool_start(&frames, ompi_pml_crypt.stage_bytes, WARM, 8),
        pool_start(&small, SMALL, 0, 16),
        pool_start(&tiny, TINY, 0, 64),
        pool_start(&chunks, ompi_pml_crypt.params.chunk_size + OPAL_CRYPT_SEGMENT_OVERHEAD, WARM, 4),
    };
    int rc = OPAL_SUCCESS;

    pinned_bytes = chunks.cold_bytes;
    for (int i = 0; i < 2; i++) {
        int pinned_rc = list_start(&pinned[i], pinned_bytes, (size_t) sysconf(_SC_PAGESIZE),
                                   pinned_bytes * WARM_LEAST > WARM ? WARM_LEAST : (int) (WARM / pinned_bytes), 4);
        rc = OPAL_SUCCESS == rc ? pinned_rc : rc;
    }
    for (int i = 0; i < POOLS; i++) {
        int large_rc = pool_start(&large[i], ((size_t) SMALLEST << i) + OPAL_CRYPT_SEGMENT_OVERHEAD, WARM, 1);
        rc = OPAL_SUCCESS == rc ? large_rc : rc;
    }
    for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
        rc = OPAL_SUCCESS == rc ? made[i] : rc;
    }
    return OPAL_SUCCESS == rc ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

void ompi_pml_crypt_stages_stop(void)
{
    pool_t *const all[] = {&first, &frames, &small, &tiny, &chunks};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        pool_stop(all[i]);
    }
    for (int i = 0; i < POOLS; i++) {
        pool_stop(&large[i]);
    }
    /* `pinned` is left: this thread may have no context to unlock pages in, or the program may have reset its device, and pages
     * that are locked must not be freed. */
    cannot_pin = false;
}

static inline ompi_pml_crypt_stage_t *prepare(opal_free_list_item_t *item, opal_free_list_t *list, size_t cold_bytes)
{
    ompi_pml_crypt_stage_t *stage = (ompi_pml_crypt_stage_t *) item;

    stage->home = list;
    stage->cold_bytes = cold_bytes;
    stage->bytes = (uint8_t *) stage->super.ptr + 56;    /* 56 + 8 = a cache line */
    return stage;
}

static __opal_attribute_noinline__ ompi_pml_crypt_stage_t *get_cold(pool_t *pool)
{
    return prepare(opal_free_list_wait(&pool->cold), &pool->cold, pool->cold_bytes);
}

OPAL_CRYPT_OFTEN
static ompi_pml_crypt_stage_t *get_from(pool_t *pool)
{
    opal_free_list_item_t *item = opal_free_list_get(&pool->warm);

    return OPAL_LIKELY(NULL != item) ? prepare(item, &pool->warm, 0) : get_cold(pool);
}

ompi_pml_crypt_stage_t *ompi_pml_crypt_stage_get(void)
{
    return get_from(&first);
}

OPAL_CRYPT_OFTEN
ompi_pml_crypt_stage_t *ompi_pml_crypt_frame_get(size_t wire_bytes)
{
    opal_free_list_item_t *item;

    if (wire_bytes <= SMALL) {
        return get_from(wire_bytes <= TINY ? &tiny : &small);
    }
    item = opal_free_list_get(&frames.warm);
    return OPAL_LIKELY(NULL != item) ? prepare(item, &frames.warm, 0) : NULL;
}

/* As when a pool cannot grow, the job cannot go on: the peer waits for, or
 * sends, a segment that has no memory. */
void ompi_pml_crypt_no_memory(const ompi_pml_crypt_request_t *r, const char *topic, size_t bytes)
{
    OPAL_CRYPTPROC_SHOW("help-mpi-pml-crypt.txt", topic, bytes);
    ompi_mpi_abort(r->base.req_comm, 1);
    opal_cryptproc_exit_soon();
}

ompi_pml_crypt_stage_t *ompi_pml_crypt_stage_of(size_t wire_bytes)
{
    ompi_pml_crypt_stage_t *stage = OBJ_NEW(ompi_pml_crypt_stage_t);

    if (NULL != stage && NULL == (stage->bytes = malloc(wire_bytes))) {
        OBJ_RELEASE(stage);
    }
    return stage;
}

/* NULL: no block is left, or memory cannot be pinned. */
static ompi_pml_crypt_stage_t *get_pinned(const ompi_pml_crypt_request_t *r)
{
    opal_free_list_t *list = &pinned[MCA_PML_REQUEST_SEND == r->base.req_type];
    opal_free_list_item_t *item = cannot_pin ? NULL : opal_free_list_get(list);
    ompi_pml_crypt_stage_t *stage;

    if (NULL == item) {
        return NULL;
    }
    stage = prepare(item, list, 0);
    stage->pinned = stage->pinned || ompi_common_cryptmpi_device_pin(r->device, item->ptr, pinned_bytes);
    if (!stage->pinned) {
        cannot_pin = true;
        opal_free_list_return(list, item);
        return NULL;
    }
    return stage;
}

ompi_pml_crypt_stage_t *ompi_pml_crypt_chunk_get(const ompi_pml_crypt_request_t *r, size_t wire_bytes)
{
    ompi_pml_crypt_stage_t *stage;

    if (wire_bytes <= (size_t) ompi_pml_crypt.params.chunk_size + OPAL_CRYPT_SEGMENT_OVERHEAD) {
        stage = NULL != r->device ? get_pinned(r) : NULL;
        return NULL != stage ? stage : get_from(&chunks);
    }
    for (int i = 0; i < POOLS; i++) {
        if (wire_bytes <= ((size_t) SMALLEST << i) + OPAL_CRYPT_SEGMENT_OVERHEAD) {
            return get_from(&large[i]);
        }
    }
    stage = ompi_pml_crypt_stage_of(wire_bytes);
    if (NULL == stage) {
        ompi_pml_crypt_no_memory(r, "no-memory", wire_bytes);
    }
    return stage;
}

/* Its pages are zeros when they are touched again. */
static __opal_attribute_noinline__ void cool(ompi_pml_crypt_stage_t *stage)
{
    (void) madvise(stage->super.ptr, stage->cold_bytes, MADV_DONTNEED);
}

OPAL_CRYPT_OFTEN
void ompi_pml_crypt_stage_return(ompi_pml_crypt_stage_t *stage)
{
    if (NULL == stage->home) {
        free(stage->bytes);
        OBJ_RELEASE(stage);
        return;
    }
    if (OPAL_UNLIKELY(stage->cold_bytes > 0)) {
        cool(stage);
    }
    opal_free_list_return(stage->home, &stage->super);
}

void ompi_pml_crypt_stage_copy(ompi_pml_crypt_stage_t *stage, char *device, size_t bytes, bool to_device)
{
    stage->copy = ompi_common_cryptmpi_device_copy(to_device ? (void *) device : stage->bytes,
                                                   to_device ? (void *) stage->bytes : device, bytes, to_device, stage->pinned);
}

bool ompi_pml_crypt_stage_copied(ompi_pml_crypt_stage_t *stage)
{
    if (NULL != stage->copy && ompi_common_cryptmpi_device_done(stage->copy)) {
        stage->copy = NULL;
    }
    return NULL == stage->copy;
}
