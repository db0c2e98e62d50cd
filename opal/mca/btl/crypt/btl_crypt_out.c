/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The send path: items are sealed into the ring as records, and written from there.
 *
 *     post --> queue --seal--> ring --write--> socket        reap: completed items
 *                 sealed:  items whose last record is in the ring
 *
 * Each batch is sealed, then written.  The first batch of a long message is 64 KiB, which the kernel takes as one
 * packet, so that the other end can start early; later ones are larger, as that costs less.
 */
#include "btl_crypt_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { BATCH_FIRST = 64 << 10, BATCH_MOST = 240 << 10, APART = 4096, WRITE_MOST = 2 << 20 };

void opal_btl_crypt_queue_append(opal_btl_crypt_queue_t *queue, opal_btl_crypt_item_t *item)
{
    item->next = NULL;
    if (NULL == queue->first) {
        queue->first = item;
    } else {
        queue->last->next = item;
    }
    queue->last = item;
}

void opal_btl_crypt_queue_prepend(opal_btl_crypt_queue_t *queue, opal_btl_crypt_queue_t *before)
{
    if (NULL != before->first) {
        before->last->next = queue->first;
        queue->last = NULL == queue->first ? before->last : queue->last;
        queue->first = before->first;
        *before = (opal_btl_crypt_queue_t) {0};
    }
}

opal_btl_crypt_item_t *opal_btl_crypt_queue_take(opal_btl_crypt_queue_t *queue)
{
    opal_btl_crypt_item_t *item = queue->first;

    if (NULL != item) {
        queue->first = item->next;
    }
    return item;
}

void opal_btl_crypt_item_make(opal_btl_crypt_item_t *item, const opal_btl_crypt_frame_t *frame, const struct iovec *pieces,
                              int count)
{
    const size_t header = opal_btl_crypt_frame_pack(frame, item->header);

    item->pieces[0] = (struct iovec) {item->header, header};
    for (int i = 0; i < count; i++) {
        item->pieces[1 + i] = pieces[i];
    }
    item->count = 1 + count;
    item->bytes = header + frame->bytes;
}

/* ---- the ring ---- */

static bool ring_needed(opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_engine_t *engine = link->engine;
    opal_btl_crypt_ring_t *ring = &link->ring;

    if (NULL != ring->bytes) {
        return true;
    }
    ring->capacity = engine->ring_bytes + OPAL_BTL_CRYPT_RING <= OPAL_BTL_CRYPT_RINGS_MAX ? OPAL_BTL_CRYPT_RING
                                                                                     : OPAL_BTL_CRYPT_RING_SMALL;
    ring->bytes = OPAL_BTL_CRYPT_RING == ring->capacity ? opal_btl_crypt_spares_take(&engine->rings, ring->capacity)
                                                        : malloc(ring->capacity);
    if (NULL == ring->bytes) {
        opal_btl_crypt_link_fail(link, "no memory for what is to be sent");
        return false;
    }
    engine->ring_bytes += ring->capacity;
    return true;
}

static void ring_free(opal_btl_crypt_link_t *link)
{
    link->engine->ring_bytes -= link->ring.capacity;
    if (OPAL_BTL_CRYPT_RING == link->ring.capacity) {
        opal_btl_crypt_spares_give(&link->engine->rings, link->ring.bytes);
    } else {
        free(link->ring.bytes);
    }
    link->ring.bytes = NULL;
}

static void ring_release(opal_btl_crypt_link_t *link)
{
    if (NULL != link->ring.bytes && (NULL == link->queue.first || link->last_sent) && 0 == opal_btl_crypt_ring_used(&link->ring)) {
        ring_free(link);
    }
}

/* ---- seal ---- */

/* Describe `bytes` bytes of an item, from `sealed` on, as pieces. */
int opal_btl_crypt_item_part(const opal_btl_crypt_item_t *item, size_t bytes, struct iovec part[3])
{
    uint64_t skip = item->sealed;
    int count = 0;

    for (int i = 0; i < item->count && bytes > 0; i++) {
        const size_t length = item->pieces[i].iov_len;
        size_t now;

        if (skip >= length) {
            skip -= length;
            continue;
        }
        now = length - skip < bytes ? length - (size_t) skip : bytes;
        part[count++] = (struct iovec) {(uint8_t *) item->pieces[i].iov_base + skip, now};
        bytes -= now;
        skip = 0;
    }
    return count;
}

/* How much of `left` fits into a place as records: all, or only whole records. */
static size_t fitting(const opal_btl_crypt_link_t *link, uint64_t left, size_t most, size_t place)
{
    size_t bytes = left < most ? (size_t) left : most;

    while (bytes > 0 && opal_crypt_tls_records_bytes(link->records, bytes) > place) {
        bytes = (bytes - 1) / OPAL_CRYPT_TLS_RECORD_PLAIN_MAX * OPAL_CRYPT_TLS_RECORD_PLAIN_MAX;
    }
    return bytes;
}

void opal_btl_crypt_link_item_sealed(opal_btl_crypt_link_t *link, opal_btl_crypt_item_t *item)
{
    if (item->sealed == item->bytes) {
        item->end = link->sealed_bytes;
        opal_btl_crypt_queue_take(&link->queue);
        opal_btl_crypt_queue_append(&link->sealed, item);
    }
}

/* The header of a long put gets its own record, so that the others can be opened at their destination. */
static uint64_t next_bytes(const opal_btl_crypt_item_t *item)
{
    const bool apart = 0 == item->sealed && OPAL_BTL_CRYPT_PUT == item->header[0] && item->bytes > APART;

    return apart ? item->pieces[0].iov_len : item->bytes - item->sealed;
}

/* A short rest joins what is before it; otherwise the batch ends with a whole record. */
static size_t rounded(uint64_t left, size_t most)
{
    return left <= most + APART ? (size_t) left
                                : (most + OPAL_CRYPT_TLS_RECORD_PLAIN_MAX - 1) / OPAL_CRYPT_TLS_RECORD_PLAIN_MAX
                                      * OPAL_CRYPT_TLS_RECORD_PLAIN_MAX;
}

/* Another thread may just have received a bad record, which ends the connection in both directions. */
static void cannot_seal(opal_btl_crypt_link_t *link, int rc)
{
    opal_btl_crypt_link_fail(link, OPAL_CRYPT_ERR_AUTH == rc ? OPAL_BTL_CRYPT_CHANGED : "what is to be sent cannot be sealed");
}

/* Seal about `most` bytes of the first item, or what fits, into the ring.  Returns the bytes of plaintext, or 0. */
static size_t seal_some(opal_btl_crypt_link_t *link, size_t most)
{
    opal_btl_crypt_item_t *item = link->queue.first;
    const uint64_t left = next_bytes(item);
    const size_t least = left < OPAL_CRYPT_TLS_RECORD_PLAIN_MAX ? (size_t) left : OPAL_CRYPT_TLS_RECORD_PLAIN_MAX;
    const size_t needed = opal_crypt_tls_records_bytes(link->records, least);
    struct iovec part[3];
    size_t place_bytes, bytes, wire_bytes;
    uint8_t *place;
    int count;

    place = opal_btl_crypt_ring_place(&link->ring, needed, &place_bytes);
    bytes = NULL == place ? 0 : fitting(link, left, rounded(left, most), place_bytes);
    if (0 == bytes) {
        return 0;
    }
    count = opal_btl_crypt_item_part(item, bytes, part);
    int rc = opal_crypt_tls_records_seal(link->records, part, count, place, place_bytes, &wire_bytes);
    if (OPAL_CRYPT_OK != rc) {
        cannot_seal(link, rc);
        return 0;
    }
    link->ring.tail += wire_bytes;
    link->sealed_bytes += wire_bytes;
    link->records_sent += (bytes + OPAL_CRYPT_TLS_RECORD_PLAIN_MAX - 1) / OPAL_CRYPT_TLS_RECORD_PLAIN_MAX;
    item->sealed += bytes;
    opal_btl_crypt_link_item_sealed(link, item);
    return bytes;
}

/* ---- the last frame ---- */

/* A key that a kernel holds cannot be renewed. */
static uint64_t records_most(const opal_btl_crypt_link_t *link)
{
    const uint64_t wanted = 0 != link->engine->records_most && !link->closing ? link->engine->records_most : UINT64_MAX;
    const uint64_t most = link->kernel_out || link->peer_kernel ? OPAL_BTL_CRYPT_KERNEL_MOST : UINT64_MAX;

    return wanted < most ? wanted : most;
}

/* Due only between two frames, and once both ends have said hello. */
bool opal_btl_crypt_link_last_is_due(const opal_btl_crypt_link_t *link)
{
    return !link->last_sent && link->hello_came && (link->last_came || link->records_sent > records_most(link))
           && (NULL == link->queue.first || 0 == link->queue.first->sealed);
}

static void seal_last(opal_btl_crypt_link_t *link)
{
    const opal_btl_crypt_frame_t frame = {.type = OPAL_BTL_CRYPT_LAST};
    uint8_t header[OPAL_BTL_CRYPT_HEADER_MAX];
    const struct iovec piece = {header, opal_btl_crypt_frame_pack(&frame, header)};
    const size_t needed = opal_crypt_tls_records_bytes(link->records, piece.iov_len) + OPAL_CRYPT_TLS_RECORD_CLOSE;
    size_t place_bytes, wire_bytes;
    uint8_t *place = opal_btl_crypt_ring_place(&link->ring, needed, &place_bytes);

    if (NULL == place) {
        return;
    }
    int rc = opal_crypt_tls_records_seal(link->records, &piece, 1, place, place_bytes, &wire_bytes);
    rc = OPAL_CRYPT_OK == rc ? opal_crypt_tls_records_close(link->records, place + wire_bytes) : rc;
    if (OPAL_CRYPT_OK != rc) {
        cannot_seal(link, rc);
        return;
    }
    wire_bytes += OPAL_CRYPT_TLS_RECORD_CLOSE;
    link->ring.tail += wire_bytes;
    link->sealed_bytes += wire_bytes;
    link->last_sent = true;
}

bool opal_btl_crypt_link_is_last(const opal_btl_crypt_link_t *link)
{
    return link->last_sent || opal_btl_crypt_link_last_is_due(link);
}

/* Once the peer has closed, do not wait for its side of the shutdown. */
static bool is_over(const opal_btl_crypt_link_t *link)
{
    return link->closed_came && (link->peer_closed || (link->last_sent && 0 == opal_btl_crypt_ring_used(&link->ring)));
}

/* ---- write ---- */

/* The socket is full, or the other end has closed it.  Whether it ended the connection properly or an attacker cut it,
 * the reader finds out. */
void opal_btl_crypt_link_refused(opal_btl_crypt_link_t *link)
{
    link->wants_write = EAGAIN == errno || EWOULDBLOCK == errno;
    if (EPIPE == errno || ECONNRESET == errno) {
        link->peer_closed = true;                              /* for good: the reader may have found it, too */
    } else if (!link->wants_write) {                    /* the reader may never notice */
        opal_btl_crypt_link_fail(link, "the system refuses what is to be sent");
    }
}

/* False: failed, or cannot go on now. */
static bool write_some(opal_btl_crypt_link_t *link)
{
    struct iovec pieces[2];
    struct msghdr message = {.msg_iov = pieces};
    ssize_t written;

    message.msg_iovlen = (size_t) opal_btl_crypt_ring_pieces(&link->ring, pieces);
    do {
        written = sendmsg(link->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (written < 0 && EINTR == errno);
    link->wants_write = false;
    if (written < 0) {
        opal_btl_crypt_link_refused(link);
        return false;
    }
    link->written_bytes += (size_t) written;
    opal_btl_crypt_ring_took(&link->ring, (size_t) written);
    return true;
}

/* A server does not send much before it knows whether a kernel opens it. */
static bool is_early(const opal_btl_crypt_link_t *link)
{
    return !link->hello_came && link->records_sent >= OPAL_BTL_CRYPT_EARLY_MOST;
}

static bool may_seal(const opal_btl_crypt_link_t *link)
{
    return NULL != link->queue.first && !link->last_sent && !is_early(link);
}

bool opal_btl_crypt_link_seals_now(const opal_btl_crypt_link_t *link)
{
    return !opal_btl_crypt_link_is_last(link) && !is_early(link);
}

static void seal_batch(opal_btl_crypt_link_t *link, size_t batch)
{
    size_t sealed = 0, now = 1;

    if (link->peer_kernel && !link->keeps_key) {
        opal_crypt_tls_records_keep_key(link->records);
        link->keeps_key = true;
    }
    while (sealed < batch && now > 0 && may_seal(link) && !opal_btl_crypt_link_last_is_due(link)) {
        now = seal_some(link, batch - sealed);
        sealed += now;
    }
    if (opal_btl_crypt_link_last_is_due(link)) {
        seal_last(link);
    }
}

bool opal_btl_crypt_link_has_more(const opal_btl_crypt_link_t *link)
{
    return OPAL_BTL_CRYPT_FAILED != link->state && !link->peer_closed
           && (may_seal(link) || opal_btl_crypt_link_last_is_due(link) || opal_btl_crypt_ring_used(&link->ring) > 0);
}

static size_t next_batch(const opal_btl_crypt_link_t *link)
{
    return NULL != link->queue.first && link->queue.first->sealed >= BATCH_FIRST ? BATCH_MOST : BATCH_FIRST;
}

/* A link may be faster than the cipher, and others wait for the lock: the rest is sent after the next epoll. */
static bool had_its_turn(opal_btl_crypt_link_t *link, uint64_t before)
{
    if (link->written_bytes - before < WRITE_MOST || !opal_btl_crypt_link_has_more(link)) {
        return false;
    }
    link->wants_write = true;
    return true;
}

void opal_btl_crypt_link_pump(opal_btl_crypt_link_t *link)
{
    const uint64_t before = link->written_bytes;
    bool goes = true;

    while (goes && link->kernel_out && opal_btl_crypt_link_has_more(link)) {
        goes = opal_btl_crypt_kernel_write(link) && !had_its_turn(link, before);
    }
    while (goes && !link->kernel_out && opal_btl_crypt_link_has_more(link) && ring_needed(link)) {
        seal_batch(link, next_batch(link));
        goes = OPAL_BTL_CRYPT_FAILED != link->state && write_some(link) && !had_its_turn(link, before);
    }
    ring_release(link);
    if (is_over(link)) {
        opal_btl_crypt_link_ended(link);
    }
}

/* ---- items ---- */

static bool is_done(const opal_btl_crypt_link_t *link, const opal_btl_crypt_item_t *item)
{
    return item->end <= link->written_bytes + OPAL_BTL_CRYPT_MARK;
}

opal_btl_crypt_item_t *opal_btl_crypt_link_reap(opal_btl_crypt_link_t *link)
{
    return NULL != link->sealed.first && is_done(link, link->sealed.first) ? opal_btl_crypt_queue_take(&link->sealed) : NULL;
}

/* Remove the last sealed item: nobody will reap it. */
static void forget_last(opal_btl_crypt_queue_t *queue)
{
    opal_btl_crypt_item_t *before = queue->first;

    if (before == queue->last) {
        queue->first = NULL;
        return;
    }
    while (before->next != queue->last) {
        before = before->next;
    }
    before->next = NULL;
    queue->last = before;
}

bool opal_btl_crypt_link_post(opal_btl_crypt_link_t *link, opal_btl_crypt_item_t *item)
{
    const bool idle = NULL == link->queue.first && !link->wants_write;

    item->sealed = 0;
    opal_btl_crypt_queue_append(&link->queue, item);
    if (idle) {
        opal_btl_crypt_link_pump(link);
    }
    if (NULL != link->queue.first || NULL == link->sealed.first || link->sealed.last != item || !is_done(link, item)) {
        return false;
    }
    forget_last(&link->sealed);
    return true;
}
