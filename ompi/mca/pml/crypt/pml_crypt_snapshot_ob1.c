/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Requests of ob1, for the status page of a job over btl/crypt.  They are found where a debugger finds them: in the free
 * lists of pml/base, which never give memory back.  So this costs a message nothing, and blocking calls are seen, too:
 * except for a probe, ob1 takes a request for each call that does not end at once.
 *
 *     allocation: | item | item | ...      the first one has as many as ob1 began with, the others as many as it grows by
 *
 * A request does not say when it began.  It has a sequence number, so its age counts from the first scan that saw it pending
 * with this number.
 */
#include "pml_crypt_waits.h"

#include "opal/align.h"
#include "opal/class/opal_free_list.h"
#include "ompi/mca/pml/base/pml_base_request.h"

enum {
    REQUESTS = 4096,                    /* at most, that are scanned in a list */
    KNOWN = 1024, NEAR = 8              /* slots to remember them, and how many of those a request may use */
};

typedef struct pending {
    const mca_pml_base_request_t *request;
    uint64_t sequence;
    int64_t since;
    uint32_t scan;                      /* that saw it last; unless it was the latest, the request is over */
} pending_t;

static size_t first_sends, first_receives;
static pending_t known[KNOWN];
static uint32_t scans;

/* False: there is no slot for it. */
static bool since_when(const mca_pml_base_request_t *request, uint64_t sequence, int64_t now, int64_t *since)
{
    const size_t home = ((uintptr_t) request >> 6) % KNOWN;
    pending_t *unused = NULL;

    for (size_t i = 0; i < NEAR; i++) {
        pending_t *at = &known[(home + i) % KNOWN];
        const bool over = NULL == at->request || scans - at->scan > 1;

        if (!over && request == at->request && sequence == at->sequence) {
            at->scan = scans;
            *since = at->since;
            return true;
        }
        unused = NULL == unused && (over || request == at->request) ? at : unused;
    }
    if (NULL != unused) {
        *unused = (pending_t){.request = request, .sequence = sequence, .since = now, .scan = scans};
        *since = now;
    }
    return NULL != unused;
}

static bool is_pending(mca_pml_base_request_t *request)
{
    ompi_request_t *r = &request->req_ompi;

    return OMPI_REQUEST_ACTIVE == r->req_state && !REQUEST_COMPLETE(r);
}

/* For a receive, the size of its buffer; 0 with threads, as another one may have released its type. */
static size_t bytes_of(const mca_pml_base_request_t *request, bool sends)
{
    return 0 == request->req_count        ? 0
           : sends                        ? request->req_convertor.local_size
           : opal_cryptproc_threaded()    ? 0
                                          : ompi_common_cryptmpi_bytes(request->req_datatype, request->req_count);
}

static void scan_ob1_request(ompi_pml_crypt_waits_t *waits, const mca_pml_base_request_t *request, bool sends)
{
    const bool probes = MCA_PML_REQUEST_PROBE == request->req_type || MCA_PML_REQUEST_MPROBE == request->req_type;
    ompi_pml_crypt_named_t *named;
    int64_t since;

    if (sends) {
        waits->snapshot->sends[OPAL_CRYPT_STATUS_BELOW]++;
    } else {
        waits->snapshot->receives++;
    }
    if (!since_when(request, request->req_sequence, waits->now, &since)
        || NULL == (named = ompi_pml_crypt_waits_place(waits, sends, since))) {
        return;
    }
    *named = (ompi_pml_crypt_named_t){
        .wait = {.since = since, .bytes = bytes_of(request, sends), .protocol = OPAL_CRYPT_STATUS_BELOW,
                 .peer = request->req_peer, .tag = request->req_tag,
                 .kind = sends ? OPAL_CRYPT_STATUS_SEND : probes ? OPAL_CRYPT_STATUS_PROBE : OPAL_CRYPT_STATUS_RECEIVE},
        .at = request->req_comm};
}

/* Under the list's lock, if there are threads. */
static void scan_list(ompi_pml_crypt_waits_t *waits, opal_free_list_t *list, size_t first, bool sends, uint64_t *moved)
{
    const size_t item_bytes = OPAL_ALIGN(list->fl_frag_size, list->fl_frag_alignment, size_t);
    size_t left = list->fl_num_allocated < REQUESTS ? list->fl_num_allocated : REQUESTS, count = first;
    opal_list_item_t *allocation;

    waits->snapshot->incomplete |= list->fl_num_allocated > REQUESTS;
    OPAL_LIST_FOREACH(allocation, &list->fl_allocations, opal_list_item_t) {
        unsigned char *item = (unsigned char *) allocation + sizeof(opal_free_list_item_t);

        item = OPAL_ALIGN_PTR(item, list->fl_frag_alignment, unsigned char *);
        count = count < left ? count : left;
        left -= count;
        for (; count > 0; count--, item += item_bytes) {
            mca_pml_base_request_t *request = (mca_pml_base_request_t *) item;

            /* The list's layout is internal to it, and may change. */
            if (list->fl_frag_class != ((opal_object_t *) item)->obj_class) {
                waits->snapshot->incomplete = 1;
                return;
            }
            const bool pending = is_pending(request);

            *moved = *moved * 31 + 2 * request->req_sequence + pending;
            if (pending) {
                scan_ob1_request(waits, request, sends);
            }
        }
        count = list->fl_num_per_alloc;
    }
}

static bool scan_with_lock(ompi_pml_crypt_waits_t *waits, opal_free_list_t *list, size_t first, bool sends, uint64_t *moved)
{
    if (opal_cryptproc_threaded() && 0 != opal_mutex_trylock(&list->fl_lock)) {
        return false;
    }
    scan_list(waits, list, first, sends, moved);
    if (opal_cryptproc_threaded()) {
        opal_mutex_unlock(&list->fl_lock);
    }
    return true;
}

void ompi_pml_crypt_snapshot_ob1_start(void)
{
    first_sends = mca_pml_base_send_requests.fl_num_allocated;
    first_receives = mca_pml_base_recv_requests.fl_num_allocated;
}

bool ompi_pml_crypt_snapshot_ob1(ompi_pml_crypt_waits_t *waits, uint64_t *moved)
{
    scans++;
    return scan_with_lock(waits, &mca_pml_base_recv_requests, first_receives, false, moved)
           && scan_with_lock(waits, &mca_pml_base_send_requests, first_sends, true, moved);
}
