/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How much of our long messages a peer may have to buffer before it receives them.
 *
 * What leaves before a receive is known to have matched may occupy the receiver's memory
 * for any length of time.  Its bytes are counted for each peer; a message beyond the
 * limit sends its first part without payload, and its segments when that has matched
 * (chop_send.c).
 *
 * A first part that is sent synchronously reports its match (it acks), and costs an
 * acknowledgment.  So not every one is: messages of one communicator and tag match in
 * order, and one that acks covers those before it.
 *
 *     told, not told, not told, ... told (limit / CONFIRMS bytes later)      for one tag
 *
 * The first message of a tag that is not known yet acks.
 */
#include "pml_crypt.h"

#include <limits.h>
#include <stdlib.h>

enum {
    STREAMS = 16,                           /* known tags of one peer */
    AHEAD_ALL = 32 << 20,                   /* bytes that all of a communicator's processes may send ahead to one */
    AHEAD_MOST = 8 << 20, AHEAD_LEAST = 512 << 10,  /* bounds for one of them */
    CONFIRMS = 4,                           /* a stream's share of the limit: 1 / CONFIRMS */
};

typedef struct ompi_pml_crypt_stream {
    uint64_t context_high, context_low;
    int tag;
    uint32_t fresh;                         /* bytes since the last message that acks */
    ompi_common_cryptmpi_atomic32_t confirming; /* bytes that the one in flight will report */
} stream_t;

/* Callbacks lower `bytes` and `confirming`; the rest is accessed under `lock`. */
struct ompi_common_cryptmpi_ahead {
    ompi_common_cryptmpi_atomic32_t bytes;
    uint32_t fresh;                         /* of all streams */
    unsigned next;
    stream_t streams[STREAMS];
};

static ompi_common_cryptmpi_lock_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t limit_of(const ompi_common_cryptmpi_comm_t *c)
{
    const int share = AHEAD_ALL / (c->peer_count > 0 ? c->peer_count : 1);

    return share > AHEAD_MOST ? AHEAD_MOST : share < AHEAD_LEAST ? AHEAD_LEAST : (uint32_t) share;
}

static inline bool all_told(const stream_t *stream)
{
    return 0 == stream->fresh && 0 == stream->confirming;
}

/* NULL: the tag is not known, and no slot is free. */
static stream_t *stream_of(struct ompi_common_cryptmpi_ahead *ahead, const ompi_pml_crypt_request_t *r, bool *known)
{
    *known = true;
    for (int i = 0; i < STREAMS; i++) {
        stream_t *stream = &ahead->streams[i];
        if (stream->tag == r->m.tag && stream->context_low == r->m.c->context_low
            && stream->context_high == r->m.c->context_high) {
            return stream;
        }
    }
    *known = false;
    for (int i = 0; i < STREAMS; i++) {
        stream_t *stream = &ahead->streams[ahead->next++ % STREAMS];
        if (all_told(stream)) {
            stream->context_high = r->m.c->context_high;
            stream->context_low = r->m.c->context_low;
            stream->tag = r->m.tag;
            return stream;
        }
    }
    return NULL;
}

static struct ompi_common_cryptmpi_ahead *ahead_of(ompi_common_cryptmpi_peer_t *peer)
{
    struct ompi_common_cryptmpi_ahead *ahead = peer->ahead;

    if (NULL == ahead && NULL != (ahead = calloc(1, sizeof(*ahead)))) {
        for (int i = 0; i < STREAMS; i++) {
            ahead->streams[i].tag = INT_MIN;            /* of no message */
        }
        __atomic_store_n(&peer->ahead, ahead, __ATOMIC_RELEASE);        /* the status page reads it without a lock */
    }
    return ahead;
}

/* Let this message report those before it, unless one in flight will. */
static void speak_for(struct ompi_common_cryptmpi_ahead *ahead, stream_t *stream, ompi_pml_crypt_request_t *r)
{
    if (0 == stream->confirming && stream->fresh > 0) {
        r->confirms = stream;
        r->ahead += stream->fresh;
        ahead->fresh -= stream->fresh;
        stream->confirming = (int32_t) stream->fresh;
        stream->fresh = 0;
    }
}

static ompi_pml_crypt_ahead_t take(ompi_pml_crypt_request_t *r, uint32_t bytes, bool acks)
{
    const uint32_t limit = limit_of(r->m.c);
    struct ompi_common_cryptmpi_ahead *ahead = ahead_of(r->m.peer);
    stream_t *stream;
    bool known = false, late;

    if (NULL == ahead) {
        return OMPI_PML_CRYPT_LATE;
    }
    late = OMPI_PML_CRYPT_NOTHING_AHEAD == bytes || (0 != ahead->bytes && (uint32_t) ahead->bytes + bytes > limit);
    stream = stream_of(ahead, r, &known);
    if (!late) {
        ompi_common_cryptmpi_add(&ahead->bytes, (int32_t) bytes);
        if (!acks && known && ahead->fresh + bytes <= limit / 2
            && (0 != stream->confirming || stream->fresh + bytes <= limit / CONFIRMS)) {
            stream->fresh += bytes;
            ahead->fresh += bytes;
            return OMPI_PML_CRYPT_AHEAD;
        }
        r->ahead = bytes;
    }
    if (NULL != stream) {
        speak_for(ahead, stream, r);
    }
    return late ? OMPI_PML_CRYPT_LATE : OMPI_PML_CRYPT_AHEAD_ACKS;
}

ompi_pml_crypt_ahead_t ompi_pml_crypt_ahead_take(ompi_pml_crypt_request_t *r, uint32_t bytes, bool acks)
{
    ompi_pml_crypt_ahead_t ahead;

    ompi_common_cryptmpi_lock_acquire(&lock);
    ahead = take(r, bytes, acks);
    ompi_common_cryptmpi_lock_release(&lock);
    return ahead;
}

void ompi_pml_crypt_ahead_told(ompi_pml_crypt_request_t *r)
{
    if (r->ahead > 0) {
        ompi_common_cryptmpi_add(&r->m.peer->ahead->bytes, -(int32_t) r->ahead);
        r->ahead = 0;
    }
    if (NULL != r->confirms) {
        __atomic_store_n(&r->confirms->confirming, 0, __ATOMIC_RELEASE);
        r->confirms = NULL;
    }
}

uint32_t ompi_pml_crypt_ahead_bytes(const ompi_common_cryptmpi_peer_t *peer)
{
    const struct ompi_common_cryptmpi_ahead *ahead = __atomic_load_n(&peer->ahead, __ATOMIC_ACQUIRE);

    return NULL == ahead ? 0 : (uint32_t) __atomic_load_n((const volatile int32_t *) &ahead->bytes, __ATOMIC_RELAXED);
}
