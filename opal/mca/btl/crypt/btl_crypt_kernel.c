/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A connection whose records a kernel seals, or opens, or both (kTLS).  There is no ring: items go to the socket
 * as they are, one frame a call, so that a record has bytes of one frame.  Input is a stream of plaintext; the rest of
 * a put goes straight to its address.  (With TLS 1.3 the kernel returns only verified bytes, unless
 * TLS_RX_EXPECT_NO_PAD promises records without padding: then it would decrypt them at that address.)
 */
#include "btl_crypt_link.h"

#include "opal/mca/common/crypt/base/secmem.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

void opal_btl_crypt_kernel_takes(opal_btl_crypt_link_t *link)
{
    if (link->engine->kernel) {
        (void) opal_crypt_tls_records_to_kernel(link->records, link->fd, &link->kernel_out, &link->kernel_in);
    }
}

/* ---- out ---- */

/* If the socket has no room for all that a call has sealed, the kernel keeps the rest.  Once the socket is writable
 * again, the next call sends it, and a short record with it. */
static bool is_writable(const opal_btl_crypt_link_t *link)
{
    struct pollfd ready = {.fd = link->fd, .events = POLLOUT};

    return 1 == poll(&ready, 1, 0) && 0 != (ready.revents & POLLOUT);
}

/* False: not sent; errno has the reason. */
bool opal_btl_crypt_kernel_end(opal_btl_crypt_link_t *link)
{
    if (!is_writable(link)) {
        errno = EAGAIN;
        return false;
    }
    return opal_crypt_tls_kernel_close(link->fd) >= 0;
}

/* Treat EINTR as if the socket had been full. */
static bool sent_or_why(opal_btl_crypt_link_t *link, ssize_t sent)
{
    if (sent < 0 && EINTR == errno) {
        link->wants_write = true;
    } else if (sent < 0) {
        opal_btl_crypt_link_refused(link);
    }
    return sent >= 0;
}

static bool write_last(opal_btl_crypt_link_t *link)
{
    const opal_btl_crypt_frame_t frame = {.type = OPAL_BTL_CRYPT_LAST};
    uint8_t header[OPAL_BTL_CRYPT_HEADER_MAX];
    const size_t bytes = opal_btl_crypt_frame_pack(&frame, header);

    if (!is_writable(link)) {
        link->wants_write = true;
        return false;
    }
    if (!link->kernel_said_last) {
        if (!sent_or_why(link, send(link->fd, header, bytes, MSG_NOSIGNAL | MSG_DONTWAIT))) {
            return false;
        }
        link->kernel_said_last = true;
    }
    link->last_sent = sent_or_why(link, opal_crypt_tls_kernel_close(link->fd));
    return link->last_sent;
}

/* False: the socket is full, or the connection has failed. */
bool opal_btl_crypt_kernel_write(opal_btl_crypt_link_t *link)
{
    opal_btl_crypt_item_t *item = link->queue.first;
    struct iovec part[3];
    struct msghdr message = {.msg_iov = part};
    ssize_t sent;

    if (opal_crypt_forked()) {
        opal_btl_crypt_link_fail(link, "this process was forked from the one that has the connection");
        return false;
    }
    if (opal_btl_crypt_link_last_is_due(link)) {
        return write_last(link);
    }
    message.msg_iovlen = (size_t) opal_btl_crypt_item_part(item, OPAL_BTL_CRYPT_PIECE_MAX, part);
    link->wants_write = false;
    sent = sendmsg(link->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (!sent_or_why(link, sent)) {
        return false;
    }
    link->records_sent += (uint64_t) sent / OPAL_CRYPT_TLS_RECORD_PLAIN_MAX + 1;
    link->sealed_bytes += (uint64_t) sent;
    link->written_bytes += (uint64_t) sent;
    item->sealed += (uint64_t) sent;
    opal_btl_crypt_link_item_sealed(link, item);
    return true;
}

/* ---- in ---- */

void opal_btl_crypt_kernel_read(opal_btl_crypt_link_t *link)
{
    struct iovec pieces[2];
    opal_crypt_tls_record_kind_t kind;
    size_t count = 0, bytes, direct;
    ssize_t came;

    if (opal_crypt_forked()) {
        opal_btl_crypt_link_fail(link, "this process was forked from the one that has the connection");
        return;
    }
    if (link->put_left > 0) {
        const size_t most = link->put_left < OPAL_BTL_CRYPT_PIECE_MAX ? (size_t) link->put_left : OPAL_BTL_CRYPT_PIECE_MAX;

        pieces[count++] = (struct iovec) {link->put_at, most};
    }
    direct = 0 == count ? 0 : pieces[0].iov_len;
    if (direct == link->put_left) {
        pieces[count++] = (struct iovec) {link->engine->wire, OPAL_BTL_CRYPT_WIRE};
    }
    do {
        came = opal_crypt_tls_kernel_read(link->fd, pieces, count, &kind);
    } while (came < 0 && EINTR == errno);
    if (OPAL_CRYPT_TLS_RECORD_CLOSED == kind) {
        opal_btl_crypt_link_closed(link);
        return;
    }
    if (came <= 0) {
        if (came < 0 && (EBADMSG == errno || EMSGSIZE == errno || EINVAL == errno)) {
            opal_btl_crypt_link_fail(link, OPAL_BTL_CRYPT_CHANGED);
        } else if (0 == came || (EAGAIN != errno && EWOULDBLOCK != errno)) {
            opal_btl_crypt_link_cut(link);
        }
        return;
    }
    link->kernel_reads++;
    bytes = (size_t) came;
    direct = direct < bytes ? direct : bytes;
    opal_btl_crypt_link_put_came(link, direct);
    opal_btl_crypt_link_stream(link, link->engine->wire, bytes - direct);
}
