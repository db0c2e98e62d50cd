/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Takes the place of accelerator/cuda in Open MPI from 5.0 on, whose streams and events it imitates: some memory of the
 * host is an accelerator's (device.h).  There are two devices, each with a context.  As with CUDA, the one that is current
 * (DEVICE_CURRENT, which a program may change) decides to which context a stream or an event belongs; both must be of one
 * context; and nothing can be done in a thread that has none, which check_addr gives it.  A copy in a stream takes place
 * when its event is asked for the third time.  DEVICE_FAILS=N: a copy of N bytes or more fails; DEVICE_STALE: none can
 * be put into a stream; DEVICE_HANGS: no event ends, and the clock goes on by two hours (late_clock.c).  DEVICE_SAYS=FILE:
 * counts go to FILE.PID.  Rank 0 fails at its end if it copied nothing: it tested nothing.
 */
#include "opal_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/constants.h"
#include "opal/mca/accelerator/accelerator.h"

#include "device.h"

extern opal_accelerator_base_module_t opal_accelerator_null_module;

static opal_accelerator_base_module_t module;
static size_t fails = SIZE_MAX;
static bool copied;
static __thread bool has_context;

/* Copies in streams: by device; by direction, going on now and at most; and blocks that are registered. */
static struct {
    int of[2], now[2], most[2], registered;
    int streams[2], in_use[2], needed[2];   /* by device: streams used (ob1 makes two, and uses none); copies going on now and at most */
} count;

typedef struct pretend_stream {
    opal_accelerator_stream_t super;
    int device;
    void *to;                               /* of the copy that no event was recorded for yet; or NULL */
    const void *from;
    size_t bytes;
    bool used;
} pretend_stream_t;
OBJ_CLASS_INSTANCE(pretend_stream_t, opal_accelerator_stream_t, NULL, NULL);

typedef struct pretend_event {
    opal_accelerator_event_t super;
    int device, asked;
    void *to;                               /* NULL: nothing goes on */
    const void *from;
    size_t bytes;
} pretend_event_t;
OBJ_CLASS_INSTANCE(pretend_event_t, opal_accelerator_event_t, NULL, NULL);

static int current(void)
{
    const char *text = getenv("DEVICE_CURRENT");

    return NULL == text ? 0 : atoi(text);
}

static int check_addr(const void *address, int *device, uint64_t *flags)
{
    *device = on_device(address) ? device_of(address) : MCA_ACCELERATOR_NO_DEVICE_ID;
    *flags = 0;
    has_context |= on_device(address);
    return on_device(address);
}

static int get_device(int *device)
{
    *device = current();
    return has_context ? OPAL_SUCCESS : OPAL_ERROR;
}

static int lock_pages(int device, void *memory, size_t bytes)
{
    count.registered += has_context && 0 == ((uintptr_t) memory | bytes) % (uintptr_t) sysconf(_SC_PAGESIZE);
    return has_context ? OPAL_SUCCESS : OPAL_ERROR;
}

static int unlock_pages(int device, void *memory)
{
    count.registered--;
    return OPAL_SUCCESS;
}

static int move(int to_device, int from_device, void *to, const void *from, size_t bytes, opal_accelerator_transfer_type_t type)
{
    copied = true;
    if (bytes >= fails || !has_context) {
        return OPAL_ERROR;
    }
    memmove(alias_of(to), alias_of(from), bytes);
    return OPAL_SUCCESS;
}

static int move_later(int to_device, int from_device, void *to, const void *from, size_t bytes, opal_accelerator_stream_t *stream,
                      opal_accelerator_transfer_type_t type)
{
    pretend_stream_t *in = (pretend_stream_t *) stream;

    if (bytes >= fails || !has_context || NULL != getenv("DEVICE_STALE") || in->device != device_of(on_device(to) ? to : from) || NULL != in->to) {
        return OPAL_ERROR;
    }
    count.streams[in->device] += !in->used;
    in->used = true;
    in->to = to;
    in->from = from;
    in->bytes = bytes;
    return OPAL_SUCCESS;
}

static int make_stream(int device, opal_accelerator_stream_t **stream)
{
    pretend_stream_t *made = OBJ_NEW(pretend_stream_t);

    made->device = current();
    made->to = NULL;
    made->used = false;
    *stream = &made->super;
    return has_context ? OPAL_SUCCESS : OPAL_ERROR;
}

#if OPAL_MAJOR_VERSION >= 6
static int make_event(int device, opal_accelerator_event_t **event, bool between_processes)
#else
static int make_event(int device, opal_accelerator_event_t **event)
#endif
{
    pretend_event_t *made = OBJ_NEW(pretend_event_t);

    made->device = current();
    made->to = NULL;
    *event = &made->super;
    return has_context ? OPAL_SUCCESS : OPAL_ERROR;
}

static int record(int device, opal_accelerator_event_t *event, opal_accelerator_stream_t *stream)
{
    pretend_stream_t *in = (pretend_stream_t *) stream;
    pretend_event_t *of = (pretend_event_t *) event;
    const int direction = on_device(in->to);

    if (!has_context || of->device != in->device || NULL != of->to) {
        return OPAL_ERROR;
    }
    if (NULL == in->to) {
        return OPAL_SUCCESS;
    }
    of->to = in->to;
    of->from = in->from;
    of->bytes = in->bytes;
    of->asked = 0;
    in->to = NULL;
    count.of[of->device]++;
    count.in_use[of->device]++;
    if (count.in_use[of->device] > count.needed[of->device]) {
        count.needed[of->device]++;
    }
    count.now[direction]++;
    count.most[direction] = count.now[direction] > count.most[direction] ? count.now[direction] : count.most[direction];
    return OPAL_SUCCESS;
}

static int query(int device, opal_accelerator_event_t *event)
{
    pretend_event_t *of = (pretend_event_t *) event;

    if (!has_context) {
        return OPAL_ERROR;
    }
    if (NULL != of->to && NULL != getenv("DEVICE_HANGS") && of->asked++ > 99) {
        setenv("DEVICE_LATE", "1", 1);
    }
    if (NULL != of->to && (NULL != getenv("DEVICE_HANGS") || ++of->asked < 3)) {
        return OPAL_ERR_RESOURCE_BUSY;
    }
    if (NULL != of->to) {
        count.now[on_device(of->to)]--;
        count.in_use[of->device]--;
        memmove(alias_of(of->to), alias_of(of->from), of->bytes);
        of->to = NULL;
    }
    return OPAL_SUCCESS;
}

static opal_accelerator_base_module_t *start(void)
{
    const char *text = getenv("DEVICE_FAILS");

    module = opal_accelerator_null_module;
    module.check_addr = check_addr;
    module.mem_copy = module.mem_move = move;
    module.mem_copy_async = move_later;
    module.create_stream = make_stream;
    module.create_event = make_event;
    module.record_event = record;
    module.query_event = query;
    module.get_device = get_device;
    module.host_register = lock_pages;
    module.host_unregister = unlock_pages;
    has_context = true;
    fails = NULL == text ? SIZE_MAX : strtoul(text, NULL, 10);
    return &module;
}

static void end(opal_accelerator_base_module_t *ours)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    (void) ours;
    if (NULL != getenv("DEVICE_SAYS")) {
        char name[4096];
        FILE *file;

        snprintf(name, sizeof(name), "%s.%ld", getenv("DEVICE_SAYS"), (long) getpid());
        file = fopen(name, "w");
        fprintf(file, "in streams %d + %d; at once from %d, to %d; streams %d of %d; registered %d\n", count.of[0], count.of[1],
                count.most[0], count.most[1], count.streams[0] + count.streams[1], count.needed[0] + count.needed[1],
                count.registered);
        fclose(file);
    }
    if (!copied && NULL != rank && 0 == strcmp(rank, "0")) {
        fprintf(stderr, "accelerator: nothing was copied\n");
        _exit(1);
    }
}

opal_accelerator_base_component_t mca_accelerator_cuda_component = {
    .base_version = {
        OPAL_ACCELERATOR_BASE_VERSION_1_0_0,
        .mca_component_name = "cuda",
        MCA_BASE_MAKE_VERSION(component, OPAL_MAJOR_VERSION, OPAL_MINOR_VERSION, OPAL_RELEASE_VERSION),
    },
    .base_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .accelerator_init = start,
    .accelerator_finalize = end,
};
