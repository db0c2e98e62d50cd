/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Descriptors, and the ways to send: a fragment becomes an item of a connection, or waits for one (btl_crypt_post.c).
 */
#include "btl_crypt.h"

enum {
    SENDI_MAX = 8192            /* the largest send without a descriptor: one record */
};
#define PUT_MOST (UINT64_C(1) << 36)    /* short enough to replace a connection in time: OPAL_BTL_CRYPT_KERNEL_MOST */

static void frag_construct(opal_btl_crypt_frag_t *frag)
{
    frag->base.des_segments = frag->segments;
    frag->put_done = NULL;
    frag->is_copy = false;
    frag->whole = NULL;
}

static OBJ_CLASS_INSTANCE(opal_btl_crypt_frag_t, mca_btl_base_descriptor_t, frag_construct, NULL);

/* ---- lists ---- */

static bool list_start(opal_free_list_t *list, size_t payload)
{
    OBJ_CONSTRUCT(list, opal_free_list_t);
    return OPAL_SUCCESS == opal_free_list_init(list, sizeof(opal_btl_crypt_frag_t) + payload, opal_cache_line_size,
                                               OBJ_CLASS(opal_btl_crypt_frag_t), 0, opal_cache_line_size, 8, -1, 32, NULL, 0,
                                               NULL, NULL, NULL);
}

bool opal_btl_crypt_frags_start(void)
{
    const bool little = list_start(&opal_btl_crypt.little, SENDI_MAX);
    const bool eager = list_start(&opal_btl_crypt.eager, opal_btl_crypt.super.btl_eager_limit);
    const bool max = list_start(&opal_btl_crypt.max, opal_btl_crypt.super.btl_max_send_size);
    const bool user = list_start(&opal_btl_crypt.user, 0);

    return little && eager && max && user;
}

void opal_btl_crypt_frags_stop(void)
{
    OBJ_DESTRUCT(&opal_btl_crypt.little);
    OBJ_DESTRUCT(&opal_btl_crypt.eager);
    OBJ_DESTRUCT(&opal_btl_crypt.max);
    OBJ_DESTRUCT(&opal_btl_crypt.user);
}

static opal_btl_crypt_frag_t *take(opal_free_list_t *list, uint32_t flags)
{
    opal_btl_crypt_frag_t *frag = (opal_btl_crypt_frag_t *) opal_free_list_get(list);

    if (NULL != frag) {
        frag->list = list;
        frag->base.des_segments = frag->segments;
        frag->base.des_segment_count = 1;
        frag->base.des_flags = flags;
        frag->base.des_cbfunc = NULL;
        frag->base.order = MCA_BTL_NO_ORDER;
        frag->segments[0].seg_addr.pval = frag + 1;
        frag->segments[0].seg_len = 0;
    }
    return frag;
}

/* Take one with room for `bytes` from the list with the shortest buffers that do, as thousands of short messages may
 * wait for a peer.  NULL: too long, or no memory. */
opal_btl_crypt_frag_t *opal_btl_crypt_frag_take(size_t bytes, uint32_t flags)
{
    const size_t eager = opal_btl_crypt.super.btl_eager_limit, max = opal_btl_crypt.super.btl_max_send_size;
    const bool in_eager = bytes <= eager && (eager <= max || bytes > max);

    if (bytes <= SENDI_MAX) {
        return take(0 == bytes ? &opal_btl_crypt.user : &opal_btl_crypt.little, flags);
    }
    return in_eager ? take(&opal_btl_crypt.eager, flags) : bytes <= max ? take(&opal_btl_crypt.max, flags) : NULL;
}

mca_btl_base_descriptor_t *opal_btl_crypt_alloc(mca_btl_base_module_t *btl, opal_btl_crypt_endpoint_t *endpoint, uint8_t order,
                                                size_t size, uint32_t flags)
{
    opal_btl_crypt_frag_t *frag = opal_btl_crypt_frag_take(size, flags);

    (void) btl, (void) endpoint, (void) order;
    if (NULL == frag) {
        return NULL;
    }
    frag->segments[0].seg_len = size;
    return &frag->base;
}

int opal_btl_crypt_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
    opal_btl_crypt_frag_t *frag = (opal_btl_crypt_frag_t *) descriptor;

    (void) btl;
    frag->put_done = NULL;
    frag->is_copy = false;
    opal_free_list_return(frag->list, &frag->base.super);
    return OPAL_SUCCESS;
}

/* `reserve` bytes for the caller's header, then the data: packed, or in place if contiguous. */
mca_btl_base_descriptor_t *opal_btl_crypt_prepare_src(mca_btl_base_module_t *btl, opal_btl_crypt_endpoint_t *endpoint,
                                                      opal_convertor_t *convertor, uint8_t order, size_t reserve, size_t *size,
                                                      uint32_t flags)
{
    const size_t longest = btl->btl_eager_limit > btl->btl_max_send_size ? btl->btl_eager_limit : btl->btl_max_send_size;
    const size_t most = longest - reserve, wanted = *size < most ? *size : most;
    const bool packs = opal_btl_crypt_packs(convertor);
    opal_btl_crypt_frag_t *frag = opal_btl_crypt_frag_take(packs ? reserve + wanted : reserve, flags);
    struct iovec data = {NULL, wanted};
    size_t bytes = wanted;
    uint32_t count = 1;

    (void) endpoint, (void) order;
    if (NULL == frag) {
        return NULL;
    }
    data.iov_base = packs ? (uint8_t *) (frag + 1) + reserve : NULL;
    if (opal_convertor_pack(convertor, &data, &count, &bytes) < 0) {
        opal_btl_crypt_free(btl, &frag->base);
        return NULL;
    }
    frag->segments[0].seg_len = packs ? reserve + bytes : reserve;
    if (!packs) {
        frag->segments[1].seg_addr.pval = data.iov_base;
        frag->segments[1].seg_len = bytes;
        frag->base.des_segment_count = 2;
    }
    *size = bytes;
    return &frag->base;
}

/* ---- send ---- */

/* A part of a put is done.  Returns the put, if this was its last part. */
static opal_btl_crypt_frag_t *whole_of(opal_btl_crypt_frag_t *part, int *status)
{
    opal_btl_crypt_frag_t *whole = part->whole;

    part->whole = NULL;
    if (OPAL_SUCCESS != *status) {
        __atomic_store_n(&whole->status, *status, __ATOMIC_RELAXED);
    }
    if (part != whole) {
        (void) opal_btl_crypt_free(&opal_btl_crypt.super, &part->base);
    }
    if (__atomic_sub_fetch(&whole->parts, 1, __ATOMIC_ACQ_REL) > 0) {
        return NULL;
    }
    *status = __atomic_load_n(&whole->status, __ATOMIC_RELAXED);
    return whole;
}

/* Tell the sender, by its callback if it wants one, else by the return value.  At the end of the module the PML may be
 * gone, and nobody is told. */
static void finish(opal_btl_crypt_endpoint_t *rail, opal_btl_crypt_frag_t *frag, bool call, int status)
{
    mca_btl_base_module_t *btl = &opal_btl_crypt.super;
    opal_btl_crypt_endpoint_t *endpoint = rail->main;
    const bool ours = 0 != (frag->base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);

    if (frag->is_copy) {
        __atomic_fetch_sub(&rail->copies, 1, __ATOMIC_RELAXED);
    }
    if (!opal_btl_crypt.started) {
        return;
    }
    if (NULL != frag->whole) {
        frag = whole_of(frag, &status);
        if (NULL == frag) {
            return;
        }
    }
    if (NULL != frag->put_done) {
        frag->put_done(btl, endpoint, frag->put_from, NULL, frag->put_context, frag->put_data, status);
    } else if (call && NULL != frag->base.des_cbfunc) {
        frag->base.des_cbfunc(btl, endpoint, &frag->base, status);
    }
    if (ours) {
        opal_btl_crypt_free(btl, &frag->base);
    }
}

static opal_btl_crypt_frag_t *frag_of(opal_btl_crypt_item_t *item)
{
    return (opal_btl_crypt_frag_t *) ((char *) item - offsetof(opal_btl_crypt_frag_t, item));
}

void opal_btl_crypt_frag_done(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_item_t *item)
{
    finish(endpoint, frag_of(item), true, OPAL_SUCCESS);
}

void opal_btl_crypt_frag_lost(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_item_t *item)
{
    finish(endpoint, frag_of(item), true, OPAL_ERR_UNREACH);
}

int opal_btl_crypt_send(mca_btl_base_module_t *btl, opal_btl_crypt_endpoint_t *endpoint, mca_btl_base_descriptor_t *descriptor,
                        mca_btl_base_tag_t tag)
{
    opal_btl_crypt_frag_t *frag = (opal_btl_crypt_frag_t *) descriptor;
    const bool call = 0 != (descriptor->des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK);
    opal_btl_crypt_frame_t frame = {.type = OPAL_BTL_CRYPT_FRAGMENT, .tag = tag};
    struct iovec pieces[2];
    int rc;

    (void) btl;
    if (opal_btl_crypt_has_failed(endpoint)) {
        return OPAL_ERR_UNREACH;
    }
    for (size_t i = 0; i < descriptor->des_segment_count; i++) {
        pieces[i] = (struct iovec) {frag->segments[i].seg_addr.pval, frag->segments[i].seg_len};
        frame.bytes += frag->segments[i].seg_len;
    }
    opal_btl_crypt_item_make(&frag->item, &frame, pieces, (int) descriptor->des_segment_count);
    rc = opal_btl_crypt_post_fragment(endpoint, &frag->item);
    if (1 != rc) {
        return rc;                              /* finish will call back, from progress; or an error */
    }
    finish(endpoint, frag, call, OPAL_SUCCESS);
    return 1;
}

/* ---- at once ---- */

/* The data, if contiguous.  False if it has to be packed, and so needs a descriptor. */
static bool in_one_piece(opal_convertor_t *convertor, size_t bytes, struct iovec *piece)
{
    uint32_t count = 1;
    size_t found = bytes;

    *piece = (struct iovec) {NULL, bytes};
    return 0 == bytes                           /* there may be no convertor */
           || (!opal_btl_crypt_packs(convertor) && opal_convertor_pack(convertor, piece, &count, &found) >= 0
               && found == bytes);
}

/* With an empty ring the message is one record, complete once sealed.  Otherwise it needs a descriptor. */
static bool ready(const opal_btl_crypt_link_t *link)
{
    return NULL != link && OPAL_BTL_CRYPT_OPEN == link->state && NULL == link->queue.first && !link->wants_write
           && !link->peer_closed && opal_btl_crypt_link_seals_now(link);
}

/* The kernel has taken only a part: queue a copy of the rest. */
static bool go_on_with(opal_btl_crypt_endpoint_t *endpoint, opal_btl_crypt_link_t *link, const opal_btl_crypt_item_t *item)
{
    opal_btl_crypt_item_t *copy = opal_btl_crypt_copy_of(endpoint, item);

    if (NULL == copy) {
        opal_btl_crypt_link_fail(link, "no memory for what is to be sent");
        return false;
    }
    opal_btl_crypt_queue_append(&link->queue, copy);
    opal_btl_crypt_endpoint_busy(endpoint);
    return true;
}

static bool send_now(opal_btl_crypt_endpoint_t *endpoint, opal_convertor_t *convertor, const opal_btl_crypt_frame_t *frame,
                     struct iovec header)
{
    struct iovec pieces[2] = {header};
    const size_t payload = frame->bytes - header.iov_len;
    opal_btl_crypt_item_t item;
    opal_btl_crypt_link_t *link;
    bool done = false;

    pthread_mutex_lock(&opal_btl_crypt.lock);
    link = endpoint->link;
    if (ready(link) && opal_btl_crypt_is_joined(endpoint) && in_one_piece(convertor, payload, &pieces[1])) {
        opal_btl_crypt_item_make(&item, frame, pieces, 0 == payload ? 1 : 2);
        done = opal_btl_crypt_link_post(link, &item);
        if (!done) {                            /* our item is on the stack */
            link->queue = (opal_btl_crypt_queue_t) {0};
            done = item.sealed > 0 && go_on_with(endpoint, link, &item);
        }
        if (OPAL_BTL_CRYPT_OPEN != link->state) {
            opal_btl_crypt_endpoint_busy(endpoint);
        }
        opal_btl_crypt_watch(link);
    }
    pthread_mutex_unlock(&opal_btl_crypt.lock);
    return done;
}

int opal_btl_crypt_sendi(mca_btl_base_module_t *btl, opal_btl_crypt_endpoint_t *endpoint, opal_convertor_t *convertor,
                         void *header, size_t header_size, size_t payload_size, uint8_t order, uint32_t flags,
                         mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor)
{
    const opal_btl_crypt_frame_t frame = {.type = OPAL_BTL_CRYPT_FRAGMENT, .tag = tag, .bytes = header_size + payload_size};

    if (frame.bytes <= SENDI_MAX && send_now(endpoint, convertor, &frame, (struct iovec) {header, header_size})) {
        return OPAL_SUCCESS;
    }
    if (NULL != descriptor) {                   /* without one, ob1 waits for another send to end */
        *descriptor = opal_btl_crypt_alloc(btl, endpoint, order, header_size + payload_size, flags);
    }
    return OPAL_ERR_RESOURCE_BUSY;
}

/* ---- put ---- */

int opal_btl_crypt_put(mca_btl_base_module_t *btl, opal_btl_crypt_endpoint_t *endpoint, void *local_address,
                       uint64_t remote_address, mca_btl_base_registration_handle_t *local_handle,
                       mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
                       mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
    opal_btl_crypt_frag_t *frag;
    int rc;

    (void) local_handle, (void) remote_handle, (void) flags, (void) order;
    if (size > PUT_MOST || opal_btl_crypt_has_failed(endpoint)) {
        return size > PUT_MOST ? OPAL_ERR_BAD_PARAM : OPAL_ERR_UNREACH;
    }
    if (0 == size) {
        cbfunc(btl, endpoint, local_address, NULL, cbcontext, cbdata, OPAL_SUCCESS);
        return OPAL_SUCCESS;
    }
    frag = opal_btl_crypt_frag_take(0, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
    if (NULL == frag) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    frag->put_done = cbfunc;
    frag->put_from = local_address;
    frag->put_context = cbcontext;
    frag->put_data = cbdata;
    rc = opal_btl_crypt_post_put(endpoint, frag, local_address, remote_address, size);
    if (OPAL_SUCCESS != rc) {
        (void) opal_btl_crypt_free(btl, &frag->base);
    }
    return rc;
}
