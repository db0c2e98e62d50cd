/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Where the BTL interfaces of Open MPI 4.1, 5.0 and 6.0 differ: every #if on a version that btl/crypt needs.
 */
#ifndef OPAL_BTL_CRYPT_COMPAT_H
#define OPAL_BTL_CRYPT_COMPAT_H

#include "opal_config.h"

#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/mca/common/cryptproc/cryptproc.h"
#include "opal/util/proc.h"

/* A symbol that libmpi of no other series has; for 5.0, that no earlier series has. */
#if OPAL_MAJOR_VERSION >= 6
#    define OPAL_BTL_CRYPT_ONLY_HERE ompi_mpi_errclass_remove
#elif OPAL_MAJOR_VERSION >= 5
#    define OPAL_BTL_CRYPT_ONLY_HERE ompi_mpi_instance_null
#else
#    define OPAL_BTL_CRYPT_ONLY_HERE ompi_mpi_errors_throw_exceptions
#endif

/* The only components that may be in use beside btl/crypt: their traffic leaves neither the process nor the node. */
#if OPAL_MAJOR_VERSION >= 5
#    define OPAL_BTL_CRYPT_BESIDE "crypt,self,sm"
#else
#    define OPAL_BTL_CRYPT_BESIDE "crypt,self,vader,sm"
#endif

/* Must data be packed?  Accelerator memory must, as the cipher cannot read it; from 5.0 on need_buffers omits it. */
static inline bool opal_btl_crypt_packs(const opal_convertor_t *convertor)
{
#if OPAL_MAJOR_VERSION >= 5
    return opal_convertor_need_buffers(convertor) || opal_convertor_on_device(convertor);
#else
    return opal_convertor_need_buffers(convertor);
#endif
}

/* Pass a fragment to the callback registered for its tag; the bytes are valid during the call. */
static inline void opal_btl_crypt_call(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                                       mca_btl_base_tag_t tag, mca_btl_base_segment_t *segment)
{
    const mca_btl_active_message_callback_t *callback = mca_btl_base_active_message_trigger + tag;
#if OPAL_MAJOR_VERSION >= 5
    const mca_btl_base_receive_descriptor_t descriptor = {.endpoint = endpoint, .des_segments = segment, .des_segment_count = 1,
                                                          .tag = tag, .cbdata = callback->cbdata};

    callback->cbfunc(btl, &descriptor);
#else
    mca_btl_base_descriptor_t descriptor = {.des_segments = segment, .des_segment_count = 1};

    (void) endpoint;
    callback->cbfunc(btl, tag, &descriptor, callback->cbdata);
#endif
}

/* Is Open MPI's fault tolerance on?  The parameter belongs to libmpi, which has read it before. */
static inline bool opal_btl_crypt_tolerant(void)
{
    const bool *on = NULL;

#if OPAL_MAJOR_VERSION >= 5
    const int index = mca_base_var_find("ompi", "mpi", "ft", "enable");

    if (index >= 0) {
        (void) mca_base_var_get_value(index, &on, NULL, NULL);
    }
#endif
    return NULL != on && *on;
}

/* A flag by which a module promises that puts are there in the order of their callbacks.  Ours are not (btl_crypt_post.c). */
#ifdef MCA_BTL_FLAGS_RDMA_REMOTE_COMPLETION
enum { OPAL_BTL_CRYPT_FLAGS_NEVER = MCA_BTL_FLAGS_RDMA_REMOTE_COMPLETION };
#else
enum { OPAL_BTL_CRYPT_FLAGS_NEVER = 0 };
#endif

/* The number of processes in our job, or 0 if unknown. */
static inline uint32_t opal_btl_crypt_job_size(void)
{
#if OPAL_MAJOR_VERSION >= 5
    return opal_process_info.num_procs;
#else
    const opal_process_name_t job = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = OPAL_VPID_WILDCARD};
    uint32_t size = 0, *at = &size;
    int rc;

    OPAL_MODEX_RECV_VALUE(rc, OPAL_PMIX_JOB_SIZE, &job, &at, OPAL_UINT32);
    return OPAL_SUCCESS == rc ? size : 0;
#endif
}

#endif
