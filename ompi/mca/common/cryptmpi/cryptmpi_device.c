/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Buffers in the memory of an accelerator, which a processor cannot or must not touch.  From Open MPI 5.0 on
 * convertors (cryptmpi_pack.c) copy between there and memory of the host, by the accelerator framework.  4.1 has none:
 * where it was built with CUDA, such a buffer is refused.
 */
#include "cryptmpi.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/base/thread.h"
#include "ompi/runtime/mpiruntime.h"

#if OMPI_COMMON_CRYPTMPI_ACCELERATOR

bool ompi_common_cryptmpi_device_possible = false;
static volatile bool has_streams = false;
static struct copier *unused;
static pthread_mutex_t unused_lock = PTHREAD_MUTEX_INITIALIZER;

/* Of 6.0's components ze has events that say that a copy has ended before it has begun, when they are used again. */
void ompi_common_cryptmpi_device_start(void)
{
    const char *name = opal_accelerator_base_selected_component.base_version.mca_component_name;

    ompi_common_cryptmpi_device_possible = 0 != strcmp("null", name);
    has_streams = 0 == strcmp("cuda", name) || 0 == strcmp("rocm", name);
    unused = NULL;                      /* an earlier session's */
}

bool ompi_common_cryptmpi_device_has(const void *address)
{
    uint64_t flags;
    int device;

    return opal_accelerator.check_addr(address, &device, &flags) > 0;
}

enum { NO_DEVICE = MCA_ACCELERATOR_NO_DEVICE_ID };

/* Open MPI's own functions call abort(), which may write a core file. */
static void must(int rc, size_t bytes)
{
    if (OPAL_SUCCESS != rc) {
        OPAL_CRYPTPROC_SHOW("help-ompi-common-cryptmpi.txt", "device-copy", (unsigned long) bytes, opal_strerror(rc));
        ompi_mpi_abort(&ompi_mpi_comm_world.comm, 1);
        opal_cryptproc_exit_soon();
    }
}

/* check_addr, asked about memory of an accelerator, gives this thread a context if it has none. */
static void *copy(void *to, const void *from, size_t bytes, opal_convertor_t *convertor)
{
    (void) convertor;
    (void) (ompi_common_cryptmpi_device_has(to) || ompi_common_cryptmpi_device_has(from));
    must(opal_accelerator.mem_copy(NO_DEVICE, NO_DEVICE, to, from, bytes, MCA_ACCELERATOR_TRANSFER_UNSPEC), bytes);
    return to;
}

void ompi_common_cryptmpi_device_convertor(opal_convertor_t *convertor)
{
    convertor->flags |= CONVERTOR_ACCELERATOR;
    convertor->cbmemcpy = copy;
}

/* ---- asynchronous copies ---- */

/* A stream and an event, for one copy at a time.  Open MPI's components make both in the context that is current, whatever
 * device they are given (docs/design/023-accelerators.rst).  So both are made together, while the buffer's device is the current
 * one, and serve buffers of that device only, in any thread.  They are never destroyed: a program may have reset its device,
 * which destroys them. */
typedef struct copier {
    struct copier *behind;
    int device;
    const void *address;                /* the buffer's */
    size_t bytes;
    int64_t since;
    opal_accelerator_stream_t *stream;
    opal_accelerator_event_t *event;
} copier_t;

/* A stream waits for what the program has given to the default stream. */
enum { PATIENCE_SECONDS = 3600 };

/* A stream or event cannot be made or used: from here on all copies are synchronous, so that each segment does not try again. */
static copier_t *give_up(copier_t *copier)
{
    has_streams = false;
    free(copier);
    return NULL;
}

static copier_t *make_copier(int device)
{
    copier_t *copier;
    int current = NO_DEVICE;

    if (OPAL_SUCCESS != opal_accelerator.get_device(&current) || current != device
        || NULL == (copier = calloc(1, sizeof(*copier)))) {
        return NULL;
    }
    copier->device = device;
    if (OPAL_SUCCESS != opal_accelerator.create_stream(device, &copier->stream)) {
        return give_up(copier);
    }
    if (OPAL_SUCCESS != ompi_common_cryptmpi_create_event(device, &copier->event)) {
        OBJ_RELEASE(copier->stream);
        return give_up(copier);
    }
    return copier;
}

static copier_t *take_copier(const void *address)
{
    copier_t **at = &unused, *copier;
    uint64_t flags;
    int device = NO_DEVICE;

    if (opal_accelerator.check_addr(address, &device, &flags) <= 0 || NO_DEVICE == device) {
        return NULL;
    }
    ompi_common_cryptmpi_lock_acquire(&unused_lock);
    while (NULL != (copier = *at) && device != copier->device) {
        at = &copier->behind;
    }
    if (NULL != copier) {
        *at = copier->behind;
    }
    ompi_common_cryptmpi_lock_release(&unused_lock);
    return NULL != copier ? copier : make_copier(device);
}

void *ompi_common_cryptmpi_device_copy(void *to, const void *from, size_t bytes, bool to_device, bool pinned)
{
    copier_t *copier;

    if (0 == bytes) {
        return NULL;
    }
    copier = pinned && has_streams ? take_copier(to_device ? to : from) : NULL;
    if (NULL != copier
        && OPAL_SUCCESS != opal_accelerator.mem_copy_async(to_device ? copier->device : NO_DEVICE,
                                                           to_device ? NO_DEVICE : copier->device, to, from, bytes, copier->stream,
                                                           to_device ? MCA_ACCELERATOR_TRANSFER_HTOD
                                                                     : MCA_ACCELERATOR_TRANSFER_DTOH)) {
        copier = give_up(copier);       /* nothing was begun; the program may have reset the device */
    }
    if (NULL == copier) {
        copy(to, from, bytes, NULL);
        return NULL;
    }
    copier->address = to_device ? to : from;
    copier->bytes = bytes;
    copier->since = (int64_t) opal_crypt_now();
    must(opal_accelerator.record_event(copier->device, copier->event, copier->stream), bytes);
    return copier;
}

bool ompi_common_cryptmpi_device_done(void *copy_begun)
{
    copier_t *copier = copy_begun;
    int rc;

    (void) ompi_common_cryptmpi_device_has(copier->address);            /* for a context */
    rc = opal_accelerator.query_event(copier->device, copier->event);
    if (OPAL_ERR_RESOURCE_BUSY == rc) {
        if ((int64_t) opal_crypt_now() - copier->since <= PATIENCE_SECONDS * INT64_C(1000000000)) {
            return false;
        }
        rc = OPAL_ERR_TIMEOUT;
    }
    must(rc, copier->bytes);
    ompi_common_cryptmpi_lock_acquire(&unused_lock);
    copier->behind = unused;
    unused = copier;
    ompi_common_cryptmpi_lock_release(&unused_lock);
    return true;
}

bool ompi_common_cryptmpi_device_pin(const void *device, void *memory, size_t bytes)
{
    return has_streams && ompi_common_cryptmpi_device_has(device)       /* for a context */
           && OPAL_SUCCESS == opal_accelerator.host_register(NO_DEVICE, memory, bytes);
}

#else

#    if OPAL_CUDA_SUPPORT

bool ompi_common_cryptmpi_device_possible = true;

bool ompi_common_cryptmpi_device_has(const void *address)
{
    return opal_cuda_check_bufs((char *) address, (char *) address);
}

#    else

bool ompi_common_cryptmpi_device_possible = false;

bool ompi_common_cryptmpi_device_has(const void *address)
{
    (void) address;
    return false;
}

#    endif

void ompi_common_cryptmpi_device_start(void)
{
}

void ompi_common_cryptmpi_device_convertor(opal_convertor_t *convertor)
{
    (void) convertor;
}

/* Not called: no buffer is an accelerator's. */
void *ompi_common_cryptmpi_device_copy(void *to, const void *from, size_t bytes, bool to_device, bool pinned)
{
    (void) to_device, (void) pinned;
    memcpy(to, from, bytes);
    return NULL;
}

bool ompi_common_cryptmpi_device_done(void *copy)
{
    return NULL == copy;
}

bool ompi_common_cryptmpi_device_pin(const void *device, void *memory, size_t bytes)
{
    (void) device, (void) memory, (void) bytes;
    return false;
}

#endif

int ompi_common_cryptmpi_device_refuse(const void *buffer)
{
    OPAL_CRYPTPROC_SHOW("help-ompi-common-cryptmpi.txt", "device-buffer", buffer);
    return OMPI_ERR_NOT_SUPPORTED;
}
