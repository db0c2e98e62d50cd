/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The component and its module: ob1's, with another way to send, and faults.
 */
#include "pml_tamper.h"

static int component_register(void);
static int component_close(void);
static mca_pml_base_module_t *component_init(int *priority, bool progress_threads, bool mpi_threads);
static int component_finalize(void);

OMPI_DECLSPEC ompi_common_cryptmpi_pml_component_t mca_pml_tamper_component = {
    .pmlm_version = {
        OMPI_COMMON_CRYPTMPI_PML_VERSION,
        .mca_component_name = "tamper",
        MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
        .mca_close_component = component_close,
        .mca_register_component_params = component_register,
    },
    .pmlm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .pmlm_init = component_init,
    .pmlm_finalize = component_finalize,
};

mca_pml_base_module_t ompi_pml_tamper_ob1;
static mca_pml_base_module_t module;
char *ompi_pml_tamper_plan = NULL, *ompi_pml_tamper_host = NULL;

static int component_register(void)
{
    ompi_pml_tamper_plan = "";
    int rc = mca_base_component_var_register(&mca_pml_tamper_component.pmlm_version, "plan",
                                             "What to do to which frame (see pml_tamper.h)", MCA_BASE_VAR_TYPE_STRING,
                                             NULL, 0, MCA_BASE_VAR_FLAG_SETTABLE, OPAL_INFO_LVL_9,
                                             MCA_BASE_VAR_SCOPE_LOCAL, &ompi_pml_tamper_plan);
    if (rc < 0) {
        return rc;
    }
    ompi_pml_tamper_host = "ob1";
    rc = mca_base_component_var_register(&mca_pml_tamper_component.pmlm_version, "host", "ob1, ucx or cm",
                                         MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_9,
                                         MCA_BASE_VAR_SCOPE_READONLY, &ompi_pml_tamper_host);
    return rc < 0 ? rc : OMPI_SUCCESS;
}

/* ---- sending ---- */

static int isend(const void *buffer, size_t count, ompi_datatype_t *type, int dst, int tag,
                 mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    ompi_pml_tamper_frame_t f = {buffer, count, type, dst, tag, mode, comm, false, false, false};
    int rc = OMPI_SUCCESS;

    if (ompi_pml_tamper_act(&f)) {
        rc = ompi_pml_tamper_ob1.pml_isend(f.bytes, f.count, f.type, f.dst, f.tag, f.mode, f.comm, request);
    } else {
        rc = ompi_pml_tamper_fault(&f, false, request);
    }
    ompi_pml_tamper_after();
    return rc;
}

static int send_blocking(const void *buffer, size_t count, ompi_datatype_t *type, int dst, int tag,
                         mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    ompi_pml_tamper_frame_t f = {buffer, count, type, dst, tag, mode, comm, false, false, false};
    int rc = OMPI_SUCCESS;

    if (ompi_pml_tamper_act(&f)) {
        rc = ompi_pml_tamper_ob1.pml_send(f.bytes, f.count, f.type, f.dst, f.tag, f.mode, f.comm);
    } else if (f.refused || f.failed) {
        rc = OMPI_ERR_BUFFER;
    }
    ompi_pml_tamper_after();
    return rc;
}

/* Under MPI_THREAD_MULTIPLE pml/crypt makes the request, then starts it; what is
 * kept back then goes to nobody on a tag that nobody receives, and ends without an
 * answer: what is released later has no request that could get one. */
static int isend_init(const void *buffer, size_t count, ompi_datatype_t *type, int dst, int tag,
                      mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    ompi_pml_tamper_frame_t f = {buffer, count, type, dst, tag, mode, comm, false, false, false};

    if (!ompi_pml_tamper_act(&f)) {
        if (f.refused || f.failed) {
            return ompi_pml_tamper_fault(&f, true, request);
        }
        f.tag = -999999;
        f.count = 0;
        f.mode = MCA_PML_BASE_SEND_STANDARD;
    }
    return ompi_pml_tamper_ob1.pml_isend_init(f.bytes, f.count, f.type, f.dst, f.tag, f.mode, f.comm, request);
}

/* ---- receiving: no attacks, but faults ---- */

static int irecv(void *buffer, size_t count, ompi_datatype_t *type, int src, int tag, ompi_communicator_t *comm,
                 ompi_request_t **request)
{
    ompi_pml_tamper_frame_t f = {buffer, count, type, src, tag, MCA_PML_BASE_SEND_STANDARD, comm, true, false, false};

    return ompi_pml_tamper_act(&f) ? ompi_pml_tamper_ob1.pml_irecv(buffer, count, type, src, tag, comm, request)
                                   : ompi_pml_tamper_fault(&f, false, request);
}

static int irecv_init(void *buffer, size_t count, ompi_datatype_t *type, int src, int tag, ompi_communicator_t *comm,
                      ompi_request_t **request)
{
    ompi_pml_tamper_frame_t f = {buffer, count, type, src, tag, MCA_PML_BASE_SEND_STANDARD, comm, true, false, false};

    return ompi_pml_tamper_act(&f) ? ompi_pml_tamper_ob1.pml_irecv_init(buffer, count, type, src, tag, comm, request)
                                   : ompi_pml_tamper_fault(&f, true, request);
}

/* ---- life ---- */

static mca_pml_base_module_t *component_init(int *priority, bool progress_threads, bool mpi_threads)
{
    const char *name = ompi_pml_tamper_host;
    const mca_pml_base_module_t *ob1 = ompi_pml_tamper_host_load(&name, progress_threads, mpi_threads);

    if (NULL == ob1) {
        return NULL;
    }
    *priority = 1;
    module = ompi_pml_tamper_ob1 = *ob1;
    module.pml_isend = isend;
    module.pml_send = send_blocking;
    module.pml_isend_init = isend_init;
    module.pml_irecv = irecv;
    module.pml_irecv_init = irecv_init;
    module.pml_start = ompi_pml_tamper_start;
    return &module;
}

static int component_finalize(void)
{
    ompi_pml_tamper_forget();
    return ompi_pml_tamper_host_finalize();
}

static int component_close(void)
{
    ompi_pml_tamper_host_close();
    return OMPI_SUCCESS;
}
