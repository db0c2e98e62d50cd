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

static void stage_construct(ompi_pml_crypt_stage_t *stage)
{
    stage->op.inner = NULL;
    stage->op.request = NULL;
    stage->op.segment = 0;
    stage->home = NULL;
    stage->bytes = NULL;
    stage->cold_bytes = 0;
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

ompi_pml_crypt_stage_t *ompi_pml_crypt_chunk_get(const ompi_pml_crypt_request_t *r, size_t wire_bytes)
{
    ompi_pml_crypt_stage_t *stage;

    if (wire_bytes <= (size_t) ompi_pml_crypt.params.chunk_size + OPAL_CRYPT_SEGMENT_OVERHEAD) {
        return get_from(&chunks);
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
