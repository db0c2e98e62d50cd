/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * From fragments and puts to connections: which rails of the peer carry one, and what waits for a connection.
 *
 *     short fragment, short put    rail 0, behind a join of each other rail that has carried something
 *     long fragment                the next rail, and a join of that on rail 0
 *     long put                     a part on every rail, as a put of its own
 */
#include "btl_crypt.h"

enum {
    COPIES_MAX = 64,
    LONG_FRAGMENT = 64 << 10,
    PART_LEAST = 128 << 10,     /* of a long put */
    PART_UNIT = 16 << 10        /* a record */
};

/* ---- over one connection ---- */

opal_btl_crypt_item_t *opal_btl_crypt_copy_of(opal_btl_crypt_endpoint_t *endpoint, const opal_btl_crypt_item_t *item)
{
    opal_btl_crypt_frag_t *copy = opal_btl_crypt_frag_take((size_t) item->bytes, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
    uint8_t *to;

    if (NULL == copy) {
        return NULL;
    }
    to = (uint8_t *) (copy + 1);
    for (int i = 0; i < item->count; to += item->pieces[i++].iov_len) {
        memcpy(to, item->pieces[i].iov_base, item->pieces[i].iov_len);
    }
    memcpy(copy->item.header, item->header, sizeof(item->header));
    copy->item.pieces[0] = (struct iovec) {copy + 1, (size_t) item->bytes};
    copy->item.count = 1;
    copy->item.bytes = item->bytes;
    copy->item.sealed = item->sealed;
    copy->is_copy = true;
    __atomic_fetch_add(&endpoint->copies, 1, __ATOMIC_RELAXED);
    return &copy->item;
}

/* The connection is being replaced.  Plain MPI completes a small message at once, and osc/pt2pt of 4.1 hangs if one
 * has to wait while the answer to another is made: so a copy waits in its place, up to COPIES_MAX.  With the lock. */
static bool keep_copy(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_item_t *item)
{
    opal_btl_crypt_link_t *link = endpoint->link;
    opal_btl_crypt_item_t *copy;

    if (!(NULL == link ? endpoint->replaced : opal_btl_crypt_link_is_last(link))
        || __atomic_load_n(&endpoint->copies, __ATOMIC_RELAXED) >= COPIES_MAX) {
        return false;
    }
    item->sealed = 0;
    copy = opal_btl_crypt_copy_of(endpoint, item);
    if (NULL == copy) {
        return false;
    }
    opal_btl_crypt_queue_append(NULL == link ? &endpoint->waiting : &link->queue, copy);
    if (NULL != link) {
        opal_btl_crypt_link_pump(link);
    }
    return true;
}

/* With the lock.  True: complete at once. */
static bool post(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_item_t *item)
{
    opal_btl_crypt_link_t *link = endpoint->link;
    bool done = false;

    endpoint->sent++;
    if (keep_copy(endpoint, item)) {
        done = true;
    } else if (NULL != link) {
        done = opal_btl_crypt_link_post(link, item);
    } else {
        opal_btl_crypt_queue_append(&endpoint->waiting, item);
    }
    if (NULL != link) {
        opal_btl_crypt_watch(link);
    }
    if (NULL == link || OPAL_BTL_CRYPT_OPEN != link->state || NULL != link->queue.first || NULL != link->sealed.first) {
        opal_btl_crypt_endpoint_busy(endpoint);
    }
    return done;
}

/* ---- over several rails ---- */

/* With the lock, as all of these.  What is posted now goes over this connection. */
static bool carries(const opal_btl_crypt_endpoint_t *endpoint)
{
    const opal_btl_crypt_link_t *link = NULL == endpoint ? NULL : endpoint->link;

    return NULL != link && OPAL_BTL_CRYPT_OPEN == link->state && !link->peer_closed && !opal_btl_crypt_link_is_last(link);
}

/* The first long message makes progress connect the others. */
static void has_long(opal_btl_crypt_endpoint_t *main)
{
    if (!main->has_long) {
        main->has_long = true;
        opal_btl_crypt_endpoint_busy(main);
    }
}

bool opal_btl_crypt_is_joined(const opal_btl_crypt_endpoint_t *main)
{
    for (int i = 1; main->railed && i < OPAL_BTL_CRYPT_RAILS; i++) {
        if (NULL != main->rails[i] && main->rails[i]->sent != main->rails[i]->joined) {
            return false;
        }
    }
    return true;
}

bool opal_btl_crypt_join(opal_btl_crypt_endpoint_t *main)
{
    for (uint8_t i = 1; main->railed && i < OPAL_BTL_CRYPT_RAILS; i++) {
        opal_btl_crypt_endpoint_t *rail = main->rails[i];
        opal_btl_crypt_frag_t *frag;

        if (NULL == rail || rail->sent == rail->joined) {
            continue;
        }
        frag = opal_btl_crypt_frag_take(0, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
        if (NULL == frag) {
            return false;
        }
        opal_btl_crypt_item_make(&frag->item, &(opal_btl_crypt_frame_t) {.type = OPAL_BTL_CRYPT_JOIN, .rail = i, .count = rail->sent,
                                                                         .session = main->order.session}, NULL, 0);
        rail->joined = rail->sent;
        if (post(main, &frag->item)) {
            (void) opal_btl_crypt_free(&opal_btl_crypt.super, &frag->base);
        }
    }
    return true;
}

/* The rails among which this many bytes are divided; the first is always one.  Returns how many there are. */
static int rails_for(opal_btl_crypt_endpoint_t *main, size_t bytes, opal_btl_crypt_endpoint_t *rails[OPAL_BTL_CRYPT_RAILS])
{
    int count = 1;

    rails[0] = main;
    for (int i = 1; main->railed && carries(main) && i < OPAL_BTL_CRYPT_RAILS && bytes / PART_LEAST > (size_t) count; i++) {
        if (carries(main->rails[i])) {
            rails[count++] = main->rails[i];
        }
    }
    return count;
}

/* A long fragment goes over one rail after the other. */
static opal_btl_crypt_endpoint_t *rail_for(opal_btl_crypt_endpoint_t *main, size_t bytes)
{
    if (bytes < LONG_FRAGMENT) {
        return main;
    }
    has_long(main);
    if (!main->railed || !carries(main)) {
        return main;
    }
    do {
        main->turn = (main->turn + 1) % OPAL_BTL_CRYPT_RAILS;
    } while (main->turn > 0 && !carries(main->rails[main->turn]));
    return 0 == main->turn ? main : main->rails[main->turn];
}

int opal_btl_crypt_post_fragment(opal_btl_crypt_endpoint_t *main, opal_btl_crypt_item_t *item)
{
    opal_btl_crypt_endpoint_t *rail;
    int rc = OPAL_ERR_OUT_OF_RESOURCE;

    pthread_mutex_lock(&opal_btl_crypt.lock);
    rail = rail_for(main, (size_t) item->bytes);
    if (opal_btl_crypt_join(main)) {
        rc = post(rail, item);
        if (!opal_btl_crypt_join(main)) {
            opal_btl_crypt_link_fail(main->link, "no memory for what is to be sent");
            opal_btl_crypt_endpoint_busy(main);
        }
    }
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    return rc;
}

/* ---- put ---- */

/* One part for each rail, with the lock.  Without memory for all of them there is one. */
static int divide(opal_btl_crypt_endpoint_t *main, opal_btl_crypt_frag_t *frag, size_t bytes,
                  opal_btl_crypt_frag_t *parts[OPAL_BTL_CRYPT_RAILS], opal_btl_crypt_endpoint_t *rails[OPAL_BTL_CRYPT_RAILS])
{
    int count = rails_for(main, bytes, rails);

    parts[0] = frag;
    for (int i = 1; i < count; i++) {
        parts[i] = opal_btl_crypt_frag_take(0, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
        if (NULL == parts[i]) {
            while (--i > 0) {
                (void) opal_btl_crypt_free(&opal_btl_crypt.super, &parts[i]->base);
            }
            return 1;
        }
    }
    for (int i = 0; count > 1 && i < count; i++) {
        parts[i]->whole = frag;
    }
    frag->parts = count;
    frag->status = OPAL_SUCCESS;
    return count;
}

/* A put that is not divided comes after all that was sent before it; one that is may overtake other puts.  Open MPI lets a
 * fragment follow those that somebody looks at (ob1's FIN; osc/rdma, since we lack OPAL_BTL_CRYPT_FLAGS_NEVER). */
int opal_btl_crypt_post_put(opal_btl_crypt_endpoint_t *main, opal_btl_crypt_frag_t *frag, uint8_t *from, uint64_t to, size_t bytes)
{
    opal_btl_crypt_endpoint_t *rails[OPAL_BTL_CRYPT_RAILS];
    opal_btl_crypt_frag_t *parts[OPAL_BTL_CRYPT_RAILS];
    bool done[OPAL_BTL_CRYPT_RAILS] = {false};
    size_t at = 0, end;
    int count;

    pthread_mutex_lock(&opal_btl_crypt.lock);
    if (bytes >= 2 * PART_LEAST) {
        has_long(main);
    }
    count = divide(main, frag, bytes, parts, rails);
    if (1 == count && !opal_btl_crypt_join(main)) {
        pthread_mutex_unlock(&opal_btl_crypt.lock);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; i < count; i++, at = end) {
        end = i + 1 == count ? bytes : bytes / (size_t) count * (size_t) (i + 1) / PART_UNIT * PART_UNIT;
        const opal_btl_crypt_frame_t frame = {.type = OPAL_BTL_CRYPT_PUT, .address = to + at, .bytes = end - at};
        const struct iovec piece = {from + at, end - at};

        opal_btl_crypt_item_make(&parts[i]->item, &frame, &piece, 1);
        done[i] = post(rails[i], &parts[i]->item);
    }
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    for (int i = 0; i < count; i++) {
        if (done[i]) {
            opal_btl_crypt_frag_done(rails[i], &parts[i]->item);
        }
    }
    return OPAL_SUCCESS;
}

