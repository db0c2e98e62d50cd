/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The receive path: one read, the records in it, and what they carry.
 *
 *     socket --> wire --open--> frame buffer --> deliver         a fragment
 *                         \---> wire --copy--> its address       a put, except its header's record
 *
 * An incomplete record is kept until the next read.  Nothing is trusted before it is opened, and nothing that was
 * opened is delivered before its header is checked.
 *
 * A put may target a window, which the program may read at any time.  It sees the old bytes or those sent, never what
 * an attacker made of them: no byte is written there before its record has verified.
 */
#include "btl_crypt_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { READ_MOST = 512 << 10 };     /* from one connection, before others get their turn */

/* The usual buffer: for the largest fragment with default limits, and for any first record with the byte after it,
 * which opening may write to. */
enum { FRAME_USUAL = OPAL_BTL_CRYPT_HEADER + OPAL_BTL_CRYPT_FRAGMENT_USUAL + 8 };

/* ---- buffers ---- */

static bool frame_needed(opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_engine_t *engine = link->engine;

    if (NULL == link->frame) {
        link->frame = opal_btl_crypt_spares_take(&engine->frames, FRAME_USUAL);
        link->frame_capacity = FRAME_USUAL;
    }
    return NULL != link->frame;
}

/* Make room for the rest of a frame that began in a usual buffer. */
static bool frame_fits(opal_btl_crypt_link_t *link)
{
    uint8_t *larger;

    if (link->frame_bytes < link->frame_capacity) {
        return true;
    }
    larger = realloc(link->frame, link->frame_bytes + 1);
    if (NULL != larger) {
        link->frame = larger;
        link->frame_capacity = link->frame_bytes + 1;
    }
    return NULL != larger;
}

static void frame_release(opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_engine_t *engine = link->engine;

    if (NULL != link->frame && 0 == link->frame_have) {
        if (FRAME_USUAL == link->frame_capacity) {
            opal_btl_crypt_spares_give(&engine->frames, link->frame);
        } else {
            free(link->frame);
        }
        link->frame = NULL;
    }
}

/* ---- rails ---- */

static bool is_due(const opal_btl_crypt_link_t *link)
{
    const uint16_t rail = link->identity.link;

    return NULL == link->order || 0 == rail || rail == link->order->awaited;
}

bool opal_btl_crypt_link_waits(const opal_btl_crypt_link_t *link)
{
    return link->holds ? !is_due(link) : NULL != link->order && 0 == link->identity.link && 0 != link->order->awaited;
}

bool opal_btl_crypt_link_resumes(const opal_btl_crypt_link_t *link)
{
    return OPAL_BTL_CRYPT_OPEN == link->state && link->paused && !opal_btl_crypt_link_waits(link);
}

static void frame_done(opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_order_t *order = link->order;
    const uint16_t rail = link->identity.link;

    if (NULL != order && rail > 0 && ++order->done[rail] >= order->until && rail == order->awaited) {
        order->awaited = 0;
    }
}

static void begin_join(opal_btl_crypt_link_t *link, const opal_btl_crypt_frame_t *frame)
{
    opal_btl_crypt_order_t *order = link->order;

    link->frame_have = 0;
    if (NULL == order || 0 != link->identity.link || frame->session != order->session) {
        opal_btl_crypt_link_fail(link, "a join that belongs elsewhere");
    } else if (order->done[frame->rail] < frame->count) {
        order->awaited = frame->rail;
        order->until = frame->count;
    }
}

/* ---- frames ---- */

static void fragment_complete(opal_btl_crypt_link_t *link)
{
    const size_t bytes = link->frame_bytes - OPAL_BTL_CRYPT_HEADER;

    link->holds = !is_due(link);
    if (link->holds) {
        return;
    }
    link->frame_have = link->frame_bytes = 0;
    if (!link->engine->deliver(link, link->frame_tag, link->frame + OPAL_BTL_CRYPT_HEADER, bytes)) {
        opal_btl_crypt_link_fail(link, "a fragment for which there is nobody");
    }
    frame_done(link);
}

void opal_btl_crypt_link_put_came(opal_btl_crypt_link_t *link, size_t bytes)
{
    link->put_at += bytes;
    link->put_left -= bytes;
    if (bytes > 0 && 0 == link->put_left) {
        frame_done(link);
    }
}

static void begin_put(opal_btl_crypt_link_t *link, const opal_btl_crypt_frame_t *frame, size_t bytes)
{
    link->put_at = (uint8_t *) (uintptr_t) frame->address;
    memcpy(link->put_at, link->frame + OPAL_BTL_CRYPT_HEADER_MAX, bytes);
    link->put_left = frame->bytes;
    link->frame_have = 0;
    opal_btl_crypt_link_put_came(link, bytes);
}

static void hello_complete(opal_btl_crypt_link_t *link, const opal_btl_crypt_frame_t *frame)
{
    link->peer_kernel = frame->kernel;
    link->hello_came = true;
    link->frame_have = 0;
    if (OPAL_BTL_CRYPT_HELLO_SENT == link->state) {
        link->state = OPAL_BTL_CRYPT_OPEN;
    }
}

/* Sent by both ends: by the one that wants a new connection, and by the other in reply. */
static void last_complete(opal_btl_crypt_link_t *link)
{
    link->last_came = true;
    link->frame_have = 0;
}

/* The first record of a frame is in the buffer. */
static void begin_frame(opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_frame_t frame;
    const size_t header = opal_btl_crypt_frame_unpack(link->frame, link->frame_have, &frame);

    if (0 == header || (OPAL_BTL_CRYPT_HELLO == frame.type) == link->hello_came || link->last_came) {
        opal_btl_crypt_link_fail(link, "not a frame that could follow here");
    } else if (link->frame_have - header > frame.bytes) {
        opal_btl_crypt_link_fail(link, "a frame that is shorter than its record");
    } else if (OPAL_BTL_CRYPT_HELLO == frame.type) {
        hello_complete(link, &frame);
    } else if (OPAL_BTL_CRYPT_LAST == frame.type) {
        last_complete(link);
    } else if (OPAL_BTL_CRYPT_JOIN == frame.type) {
        begin_join(link, &frame);
    } else if (OPAL_BTL_CRYPT_PUT == frame.type) {
        begin_put(link, &frame, link->frame_have - header);
    } else {
        link->frame_bytes = header + (size_t) frame.bytes;
        link->frame_tag = frame.tag;
        if (!frame_fits(link)) {
            opal_btl_crypt_link_fail(link, "no memory for what arrives");
        }
    }
}

/* ---- records ---- */

/* Where to open a record of this length, and the space there: for a put, exactly what it needs. */
static uint8_t *place_for(opal_btl_crypt_link_t *link, size_t record_bytes, size_t *capacity)
{
    const size_t plain_bytes = record_bytes - OPAL_CRYPT_TLS_RECORD_OVERHEAD;

    if (link->put_left > 0) {
        *capacity = link->put_left < plain_bytes ? (size_t) link->put_left : plain_bytes;
        return link->put_at;
    }
    if (!frame_needed(link)) {
        return NULL;
    }
    *capacity = 0 == link->frame_bytes ? OPAL_CRYPT_TLS_RECORD_PLAIN_MAX + 1 : link->frame_bytes - link->frame_have + 1;
    return link->frame + link->frame_have;
}

static void data_came(opal_btl_crypt_link_t *link, size_t bytes)
{
    if (link->put_left > 0) {
        opal_btl_crypt_link_put_came(link, bytes);
        return;
    }
    link->frame_have += bytes;
    if (0 == link->frame_bytes) {
        begin_frame(link);
    } else if (link->frame_have > link->frame_bytes) {
        opal_btl_crypt_link_fail(link, "a frame that is shorter than its record");
    }
    if (0 != link->frame_bytes && link->frame_have == link->frame_bytes) {
        fragment_complete(link);
    }
}

void opal_btl_crypt_link_closed(opal_btl_crypt_link_t *link)
{
    if (link->put_left > 0 || link->frame_have > 0) {
        opal_btl_crypt_link_fail(link, "the end came within a frame");
    } else if (link->last_came) {
        link->closed_came = true;
    } else {
        opal_btl_crypt_link_ended(link);
    }
}

static void open_record(opal_btl_crypt_link_t *link, uint8_t *wire, size_t bytes)
{
    opal_crypt_tls_record_kind_t kind;
    size_t capacity, plain;
    uint8_t *place = place_for(link, bytes, &capacity);
    int rc;

    if (NULL == place) {
        opal_btl_crypt_link_fail(link, "no memory for what arrives");
        return;
    }
    rc = opal_crypt_tls_records_open(link->records, wire, bytes, place, capacity, &plain, &kind);
    if (OPAL_CRYPT_ERR_CONFIG == rc) {
        opal_btl_crypt_link_fail(link, "a frame that is shorter than its record");
    } else if (OPAL_CRYPT_OK != rc) {
        opal_btl_crypt_link_fail(link, OPAL_BTL_CRYPT_CHANGED);
    } else if (OPAL_CRYPT_TLS_RECORD_DATA == kind) {
        data_came(link, plain);
    } else if (OPAL_CRYPT_TLS_RECORD_CLOSED == kind) {
        opal_btl_crypt_link_closed(link);
    }
}

/* Open records of a put with several threads.  Returns how many bytes of the wire they took. */
static size_t open_run(opal_btl_crypt_link_t *link, uint8_t *wire, size_t bytes)
{
    size_t taken, plain;

    if (OPAL_CRYPT_OK != opal_crypt_tls_records_open_run(link->records, wire, bytes, link->put_at, (size_t) link->put_left, &taken, &plain)) {
        opal_btl_crypt_link_fail(link, OPAL_BTL_CRYPT_CHANGED);
    } else if (taken > 0) {
        data_came(link, plain);
    }
    return taken;
}

static bool readable(const opal_btl_crypt_link_t *link)
{
    return OPAL_BTL_CRYPT_OPEN == link->state || OPAL_BTL_CRYPT_HELLO_SENT == link->state;
}

static bool goes_on(const opal_btl_crypt_link_t *link)
{
    return readable(link) && !opal_btl_crypt_link_waits(link);
}

/* Open all complete records, or those before a wait.  Returns how many bytes of the wire they took. */
static size_t open_records(opal_btl_crypt_link_t *link, size_t bytes)
{
    uint8_t *wire = link->engine->wire;
    size_t at = 0, record;

    while (goes_on(link) && at < bytes) {
        if (link->put_left > 0 && 0 != (record = open_run(link, wire + at, bytes - at))) {
            at += record;
        } else if (OPAL_CRYPT_OK != opal_crypt_tls_records_next(link->records, wire + at, bytes - at, &record)) {
            opal_btl_crypt_link_fail(link, "not a record");
        } else if (0 == record || record > bytes - at) {
            break;
        } else {
            open_record(link, wire + at, record);
            at += record;
        }
    }
    return at;
}

static void keep_rest(opal_btl_crypt_link_t *link, const uint8_t *rest, size_t bytes)
{
    free(link->rest);
    link->rest = 0 == bytes ? NULL : malloc(bytes);
    link->rest_bytes = bytes;
    if (NULL != link->rest) {
        memcpy(link->rest, rest, bytes);
    } else if (0 != bytes) {
        opal_btl_crypt_link_fail(link, "no memory for what arrives");
    }
}

/* ---- without records ---- */

static bool has_long_header(const opal_btl_crypt_link_t *link)
{
    return OPAL_BTL_CRYPT_PUT == link->frame[0] || OPAL_BTL_CRYPT_JOIN == link->frame[0];
}

/* How many bytes to put into the frame's buffer next.  A header comes whole and alone, so that it can be treated like
 * the frame's first record. */
static size_t next_bytes(const opal_btl_crypt_link_t *link)
{
    if (0 != link->frame_bytes) {
        return link->frame_bytes - link->frame_have;
    }
    return (link->frame_have >= OPAL_BTL_CRYPT_HEADER && has_long_header(link) ? OPAL_BTL_CRYPT_HEADER_MAX : OPAL_BTL_CRYPT_HEADER)
           - link->frame_have;
}

static void into_frame(opal_btl_crypt_link_t *link, const uint8_t *bytes, size_t count, size_t wanted)
{
    memcpy(link->frame + link->frame_have, bytes, count);
    link->frame_have += count;
    if (count < wanted || (0 == link->frame_bytes && OPAL_BTL_CRYPT_HEADER == link->frame_have && has_long_header(link))) {
        return;
    }
    if (0 == link->frame_bytes) {
        begin_frame(link);
    }
    if (readable(link) && 0 != link->frame_bytes && link->frame_have == link->frame_bytes) {
        fragment_complete(link);
    }
}

void opal_btl_crypt_link_stream(opal_btl_crypt_link_t *link, const uint8_t *bytes, size_t count)
{
    while (goes_on(link) && count > 0) {
        size_t wanted, now;

        if (0 == link->put_left && !frame_needed(link)) {
            opal_btl_crypt_link_fail(link, "no memory for what arrives");
            return;
        }
        wanted = 0 == link->put_left ? next_bytes(link) : link->put_left < count ? (size_t) link->put_left : count;
        now = wanted < count ? wanted : count;
        if (0 == link->put_left) {
            into_frame(link, bytes, now, wanted);
        } else {
            memcpy(link->put_at, bytes, now);
            opal_btl_crypt_link_put_came(link, now);
        }
        bytes += now;
        count -= now;
    }
    if (opal_btl_crypt_link_waits(link)) {
        keep_rest(link, bytes, count);
        link->paused = true;
    }
    frame_release(link);
}

/* Go on after a wait. */
static void stream_rest(opal_btl_crypt_link_t *link)
{
    const size_t bytes = link->rest_bytes;

    if (bytes > 0) {
        memcpy(link->engine->wire, link->rest, bytes);
    }
    keep_rest(link, NULL, 0);
    opal_btl_crypt_link_stream(link, link->engine->wire, bytes);
}

/* ---- read ---- */

/* A peer that sent close_notify takes nothing more; the writer checks whether we had something left for it. */
void opal_btl_crypt_link_cut(opal_btl_crypt_link_t *link)
{
    if (link->closed_came) {
        link->peer_closed = true;
    } else {
        opal_btl_crypt_link_fail(link, "the connection was cut");
    }
}

/* Returns how many bytes came; 0 if none are available, or the connection has failed. */
static size_t receive(opal_btl_crypt_link_t *link, uint8_t *to, size_t capacity)
{
    ssize_t came;

    do {
        came = recv(link->fd, to, capacity, MSG_DONTWAIT);
    } while (came < 0 && EINTR == errno);
    if (0 == came || (came < 0 && EAGAIN != errno && EWOULDBLOCK != errno)) {
        opal_btl_crypt_link_cut(link);
    }
    return came < 0 ? 0 : (size_t) came;
}

static bool within_frame(const opal_btl_crypt_link_t *link, size_t rest)
{
    return link->put_left > 0 || link->frame_have > 0 || rest > 0;
}

/* While we open records, more of a long frame may arrive: it is read at once, up to READ_MOST.  After a wait for other
 * rails the rest comes first. */
void opal_btl_crypt_link_read(opal_btl_crypt_link_t *link)
{
    uint8_t *wire = link->engine->wire;
    const bool resumes = link->paused;
    size_t bytes = link->rest_bytes, came = 0, all = 0, taken;

    if (!goes_on(link)) {
        return;
    }
    link->paused = false;
    if (link->holds) {
        fragment_complete(link);
    }
    if (link->kernel_in) {
        (resumes ? stream_rest : opal_btl_crypt_kernel_read)(link);
        return;
    }
    if (!resumes && 0 == (came = receive(link, wire + bytes, OPAL_BTL_CRYPT_WIRE - bytes))) {
        return;
    }
    if (bytes > 0) {
        memcpy(wire, link->rest, bytes);
    }
    do {
        bytes += came;
        all += came;
        taken = open_records(link, bytes);
        bytes -= taken;
        if (taken > 0 && bytes > 0) {
            memmove(wire, wire + taken, bytes);
        }
        came = goes_on(link) && within_frame(link, bytes) && all < READ_MOST
                   ? receive(link, wire + bytes, OPAL_BTL_CRYPT_WIRE - bytes) : 0;
    } while (came > 0);
    if (readable(link)) {
        keep_rest(link, wire, bytes);
        link->paused = opal_btl_crypt_link_waits(link);
        frame_release(link);
    } else if (OPAL_BTL_CRYPT_ENDED == link->state && bytes > 0) {
        opal_btl_crypt_link_fail(link, "bytes behind the end");
    }
}
