/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The attacks: see pml_tamper.h.  One thread, or many that do not attack.
 */
#include "pml_tamper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/wire/frame.h"

enum { RELAY_TAG = -900001, WAITING = 64 };

typedef struct plan {
    long cell;
    int kind, nth, count;
    char action[16];
    long a, b;
    char hex[128];
} plan_t;

static plan_t plan;
static char plan_text[256];
static int seen;                        /* frames of this kind since the plan is in force */

/* Frames that go later: each owns a copy of its bytes. */
static struct {
    ompi_pml_tamper_frame_t frame;
    uint32_t index;                     /* of its communicator: on the wire there are ids, and they come back */
    int due;                            /* when `seen` is more; -1: on release */
} waiting[WAITING];
static int waiting_count, waiting_to_exchange;

/* What ob1 may still read: freed at the end. */
static void **owned;
static size_t owned_count;

static void *own(size_t bytes)
{
    void *p = malloc(bytes + 1);
    owned = realloc(owned, (owned_count + 1) * sizeof(*owned));
    if (NULL == p || NULL == owned) {
        abort();
    }
    return owned[owned_count++] = p;
}

void ompi_pml_tamper_forget(void)
{
    for (size_t i = 0; i < owned_count; i++) {
        free(owned[i]);
    }
    free(owned);
    owned = NULL;
    owned_count = 0;
}

/* ---- frames ---- */

static void copy_of(ompi_pml_tamper_frame_t *frame, size_t bytes)
{
    uint8_t *p = own(bytes);
    size_t kept = bytes < frame->count ? bytes : frame->count;

    memcpy(p, frame->bytes, kept);
    for (size_t i = kept; i < bytes; i++) {
        p[i] = (uint8_t) random();
    }
    frame->bytes = p;
    frame->count = bytes;
    if (MCA_PML_BASE_SEND_READY == frame->mode) {
        frame->mode = MCA_PML_BASE_SEND_STANDARD;
    }
}

static int kind_of(const ompi_pml_tamper_frame_t *frame)
{
    const uint8_t *bytes = frame->bytes;
    opal_crypt_tags_t tags;

    opal_crypt_tags_make(opal_crypt_tags_bits(ompi_pml_tamper_ob1.pml_max_tag), &tags);
    if (frame->tag <= tags.bodies && frame->tag >= tags.lowest + OPAL_CRYPT_TAG_FIXED_END) {
        return frame->receive ? TAMPER_RECEIVE_BODY : TAMPER_BODY;
    }
    if (frame->tag <= tags.segments && frame->tag > tags.bodies) {
        return frame->receive ? TAMPER_RECEIVE_SEGMENT : TAMPER_SEGMENT;
    }
    if (frame->receive) {
        return TAMPER_RECEIVE;
    }
    switch (bytes[0] & 0xf) {
    case OPAL_CRYPT_FRAME_DIRECT: return TAMPER_DIRECT;
    case OPAL_CRYPT_FRAME_FIRST: return TAMPER_FIRST;
    case OPAL_CRYPT_FRAME_LOCAL: return TAMPER_LOCAL;
    case OPAL_CRYPT_FRAME_LOCAL_LARGE: return TAMPER_LOCAL_LARGE;
    default: return TAMPER_ANY;
    }
}

static void send_now(const ompi_pml_tamper_frame_t *frame)
{
    ompi_request_t *request = NULL;

    if (OMPI_SUCCESS != ompi_pml_tamper_ob1.pml_isend(frame->bytes, frame->count, frame->type, frame->dst, frame->tag,
                                                      MCA_PML_BASE_SEND_STANDARD, frame->comm, &request)) {
        abort();
    }
    ompi_request_free(&request);
}

static void send_later(const ompi_pml_tamper_frame_t *frame, int due)
{
    if (WAITING == waiting_count) {
        abort();
    }
    waiting[waiting_count].frame = *frame;
    copy_of(&waiting[waiting_count].frame, frame->count);
    waiting[waiting_count].index = ompi_common_cryptmpi_comm_index(frame->comm);
    waiting[waiting_count++].due = due;
}

void ompi_pml_tamper_after(void)
{
    bool released = 0 == strcmp(plan.action, "release");

    for (int i = 0; i < waiting_count;) {
        if (released || (waiting[i].due >= 0 && waiting[i].due < seen)) {
            ompi_pml_tamper_frame_t frame = waiting[i].frame;
            frame.comm = opal_pointer_array_get_item(&ompi_mpi_communicators, (int) waiting[i].index);
            memmove(&waiting[i], &waiting[i + 1], (size_t) (--waiting_count - i) * sizeof(waiting[0]));
            send_now(&frame);
        } else {
            i++;
        }
    }
}

/* The communicator named target<number>. */
static ompi_communicator_t *target(long number)
{
    char name[32];

    snprintf(name, sizeof(name), "target%ld", number);
    for (int i = 0; i < opal_pointer_array_get_size(&ompi_mpi_communicators); i++) {
        ompi_communicator_t *comm = opal_pointer_array_get_item(&ompi_mpi_communicators, i);
        if (NULL != comm && 0 == strcmp(comm->c_name, name)) {
            return comm;
        }
    }
    abort();
}

/* ---- actions ---- */

static void forge(const ompi_pml_tamper_frame_t *frame)
{
    ompi_pml_tamper_frame_t made = *frame;

    made.count = 0;
    copy_of(&made, (size_t) plan.b);
    memset((uint8_t *) made.bytes, 0, made.count < 8 ? made.count : 8);
    if (made.count > 0) {
        *(uint8_t *) made.bytes = (uint8_t) (OPAL_CRYPT_FRAME_VERSION << 4 | plan.a);
    }
    send_now(&made);
}

/* The bytes that the plan has, then any, up to this many. */
static void raw(const ompi_pml_tamper_frame_t *frame)
{
    ompi_pml_tamper_frame_t made = *frame;
    unsigned byte;

    made.count = 0;
    copy_of(&made, (size_t) plan.a);
    for (size_t i = 0; i < made.count && 1 == sscanf(plan.hex + 2 * i, "%2x", &byte); i++) {
        ((uint8_t *) made.bytes)[i] = (uint8_t) byte;
    }
    send_now(&made);
}

/* With ucx the sender's rank is a part of the tag, and nothing stands against a false one. */
static void send_as(const ompi_pml_tamper_frame_t *frame, int rank)
{
    ompi_pml_tamper_frame_t made = *frame;
    int own_rank = frame->comm->c_my_rank;

    copy_of(&made, made.count);
    frame->comm->c_my_rank = rank;
    send_now(&made);
    frame->comm->c_my_rank = own_rank;
}

/* What the attacker at that rank has for us. */
static void impostor(ompi_pml_tamper_frame_t *frame)
{
    ompi_status_public_t status;
    size_t room = 1 << 20;
    void *p = own(room);

    if (OMPI_SUCCESS != ompi_pml_tamper_ob1.pml_recv(p, room, &ompi_mpi_byte.dt, (int) plan.a, RELAY_TAG, frame->comm,
                                                     &status)) {
        abort();
    }
    frame->bytes = p;
    frame->count = status._ucount;
}

/* The first of two waits for the second; both go with the tag of the other. */
static bool exchange(ompi_pml_tamper_frame_t *frame)
{
    int tag = frame->tag;

    if (0 == waiting_to_exchange) {
        send_later(frame, -1);
        waiting_to_exchange = 1;
        return false;
    }
    waiting_to_exchange = 0;
    frame->tag = waiting[waiting_count - 1].frame.tag;
    waiting[--waiting_count].frame.tag = tag;
    send_now(&waiting[waiting_count].frame);
    return true;
}

static bool apply(ompi_pml_tamper_frame_t *frame)
{
    const char *action = plan.action;

    if (0 == strcmp(action, "flip")) {
        copy_of(frame, frame->count);
        size_t at = (size_t) (plan.a < 0 ? plan.a + (long) frame->count : plan.a);
        if (at >= frame->count) {
            abort();
        }
        ((uint8_t *) frame->bytes)[at] ^= (uint8_t) plan.b;
    } else if (0 == strcmp(action, "cut")) {
        copy_of(frame, (size_t) plan.a < frame->count ? frame->count - (size_t) plan.a : 0);
    } else if (0 == strcmp(action, "extend")) {
        copy_of(frame, frame->count + (size_t) plan.a);
    } else if (0 == strcmp(action, "drop")) {
        send_later(frame, -1);
        return false;
    } else if (0 == strcmp(action, "replay")) {
        send_later(frame, seen + (int) plan.a - 1);
    } else if (0 == strcmp(action, "hold")) {
        send_later(frame, seen + (int) plan.a - 1);
        return false;
    } else if (0 == strcmp(action, "retag")) {
        frame->tag = (int) plan.a - frame->tag;
    } else if (0 == strcmp(action, "move")) {
        frame->comm = target(plan.a);
    } else if (0 == strcmp(action, "divert")) {
        frame->dst = (int) plan.a;
    } else if (0 == strcmp(action, "relay")) {
        copy_of(frame, frame->count);
        frame->dst = (int) plan.a;
        frame->tag = RELAY_TAG;
    } else if (0 == strcmp(action, "impostor")) {
        impostor(frame);
    } else if (0 == strcmp(action, "forge")) {
        forge(frame);
    } else if (0 == strcmp(action, "raw")) {
        raw(frame);
    } else if (0 == strcmp(action, "from")) {
        send_as(frame, (int) plan.a);
        return false;
    } else if (0 == strcmp(action, "exchange")) {
        return exchange(frame);
    } else if (0 == strcmp(action, "refuse") || 0 == strcmp(action, "fail")) {
        if (0 != plan.a) {
            send_now(frame);
        }
        frame->refused = 'r' == action[0];
        frame->failed = !frame->refused;
        return false;
    } else {
        abort();
    }
    return true;
}

/* ---- */

static void read_plan(const char *text)
{
    static const char *const kinds[TAMPER_KINDS] = {"any", "direct", "first", "local", "local-large", "segment", "body",
                                                     "receive", "receive-segment", "receive-body"};
    char kind[24] = "";

    snprintf(plan_text, sizeof(plan_text), "%s", text);
    memset(&plan, 0, sizeof(plan));
    seen = waiting_to_exchange = 0;
    if ('\0' == plan_text[0]) {
        return;
    }
    if (sscanf(plan_text, "%ld %23s %d %d %15s %ld %ld", &plan.cell, kind, &plan.nth, &plan.count, plan.action, &plan.a,
               &plan.b) < 5) {
        abort();
    }
    if (0 == strcmp(plan.action, "raw")) {
        (void) sscanf(plan_text, "%*d %*s %*d %*d %*s %*d %127s", plan.hex);
    }
    while (plan.kind < TAMPER_KINDS && 0 != strcmp(kind, kinds[plan.kind])) {
        plan.kind++;
    }
    if (TAMPER_KINDS == plan.kind) {
        abort();
    }
}

bool ompi_pml_tamper_act(ompi_pml_tamper_frame_t *frame)
{
    const char *text = NULL == ompi_pml_tamper_plan ? "" : ompi_pml_tamper_plan;      /* MPI_T makes "" NULL */
    int number;

    if (0 != strcmp(plan_text, text)) {
        read_plan(text);
    }
    if (0 != strncmp(frame->comm->c_name, "target", 6)) {
        return true;
    }
    if ('\0' == plan.action[0] || 0 == strcmp(plan.action, "release")
        || (TAMPER_ANY == plan.kind ? frame->receive : kind_of(frame) != plan.kind)) {
        return true;
    }
    number = seen++;
    if (number < plan.nth || number >= plan.nth + plan.count) {
        return true;
    }
    return apply(frame);
}
