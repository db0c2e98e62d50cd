/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Staging: memory for what was sealed and what is to be opened, from pools.
 *
 *     stages      first parts and short messages
 *     chunks      segments of chunk_size bytes, or less
 *     large[i]    longer ones, of k, a table, or a peer: up to 128 KiB << i
 *
 * A pool grows as far as it is used at once, and is kept: the limits on how
 * many segments may fly (chop_send.c, chop_recv.c) are what bounds it.  Memory
 * beyond the largest pool is not kept.
 */
#include "pml_crypt.h"

#include <stdlib.h>

#include "opal/util/show_help.h"

enum { SLACK = 64, SMALLEST = 1 << 17, POOLS = 6 };     /* the last: 4 MiB */

static opal_free_list_t stages, chunks, large[POOLS];

static void stage_construct(ompi_pml_crypt_stage_t *stage)
{
    stage->op.inner = NULL;
    stage->op.request = NULL;
    stage->op.segment = 0;
    stage->home = NULL;
    stage->bytes = NULL;
}

OBJ_CLASS_INSTANCE(ompi_pml_crypt_stage_t, opal_free_list_item_t, stage_construct, NULL);

static int pool_start(opal_free_list_t *pool, size_t bytes, int grow_by)
{
    OBJ_CONSTRUCT(pool, opal_free_list_t);
    return opal_free_list_init(pool, sizeof(ompi_pml_crypt_stage_t), 64, OBJ_CLASS(ompi_pml_crypt_stage_t),
                               bytes + SLACK, 64, 0, -1, grow_by, NULL, 0, NULL, NULL, NULL);
}

int ompi_pml_crypt_stages_start(void)
{
    int rc = pool_start(&stages, ompi_pml_crypt.stage_bytes, 8);
    int chunks_rc = pool_start(&chunks, ompi_pml_crypt.params.chunk_size + OPAL_CRYPT_SEGMENT_OVERHEAD, 4);

    rc = OPAL_SUCCESS == rc ? chunks_rc : rc;
    for (int i = 0; i < POOLS; i++) {       /* all are made, so that stop finds them */
        int large_rc = pool_start(&large[i], ((size_t) SMALLEST << i) + OPAL_CRYPT_SEGMENT_OVERHEAD, 1);
        rc = OPAL_SUCCESS == rc ? large_rc : rc;
    }
    return OPAL_SUCCESS == rc ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

void ompi_pml_crypt_stages_stop(void)
{
    OBJ_DESTRUCT(&stages);
    OBJ_DESTRUCT(&chunks);
    for (int i = 0; i < POOLS; i++) {
        OBJ_DESTRUCT(&large[i]);
    }
}

OPAL_CRYPT_OFTEN
static ompi_pml_crypt_stage_t *get_from(opal_free_list_t *list)
{
    ompi_pml_crypt_stage_t *stage = (ompi_pml_crypt_stage_t *) opal_free_list_wait(list);

    stage->home = list;
    stage->bytes = (uint8_t *) stage->super.ptr + 56;    /* 56 + 8 = a cache line */
    return stage;
}

ompi_pml_crypt_stage_t *ompi_pml_crypt_stage_get(void)
{
    return get_from(&stages);
}

/* As when a pool cannot grow, there is no way to go on: the partner waits for,
 * or sends, a segment that nobody could take. */
static ompi_pml_crypt_stage_t *no_memory(const ompi_pml_crypt_request_t *r, size_t wire_bytes)
{
    OMPI_COMMON_CRYPTMPI_SHOW("help-mpi-pml-crypt.txt", "no-memory", true, wire_bytes);
    ompi_mpi_abort(r->base.req_comm, 1);
    abort();
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
    stage = OBJ_NEW(ompi_pml_crypt_stage_t);
    if (NULL == stage || NULL == (stage->bytes = malloc(wire_bytes))) {
        return no_memory(r, wire_bytes);
    }
    return stage;
}

OPAL_CRYPT_OFTEN
void ompi_pml_crypt_stage_return(ompi_pml_crypt_stage_t *stage)
{
    if (NULL == stage->home) {
        free(stage->bytes);
        OBJ_RELEASE(stage);
        return;
    }
    opal_free_list_return(stage->home, &stage->super);
}
