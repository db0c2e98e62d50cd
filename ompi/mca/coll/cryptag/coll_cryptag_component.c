/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The component: parameters, MPI_T variables, and whether it may be used.
 */
#include "coll_cryptag.h"

#include <string.h>

#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_series.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/util/output.h"

static int component_register(void);
static int component_close(void);

ompi_coll_cryptag_component_t mca_coll_cryptag_component = {
    .super = {
        .collm_version = {
            OMPI_COMMON_CRYPTMPI_COLL_VERSION,
            .mca_component_name = "cryptag",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
            .mca_close_component = component_close,
            .mca_register_component_params = component_register,
        },
        .collm_data = { MCA_BASE_METADATA_PARAM_CHECKPOINT },
        .collm_init_query = ompi_coll_cryptag_init_query,
        .collm_comm_query = ompi_coll_cryptag_comm_query,
    },
};

static const opal_cryptproc_parameter_t parameters[] = {
    {"coll_cryptag_allgather_algorithm", &mca_coll_cryptag_component.allgather_algorithm},
    {"coll_cryptag_bcast_algorithm", &mca_coll_cryptag_component.bcast_algorithm},
    {"coll_cryptag_alltoall_algorithm", &mca_coll_cryptag_component.alltoall_algorithm},
    {"coll_cryptag_fragment", &mca_coll_cryptag_component.fragment},
    {"coll_cryptag_shm_max", &mca_coll_cryptag_component.shm_max},
    {"coll_cryptag_rules_file", &mca_coll_cryptag_component.rules_file},
};
enum { PARAMETERS = sizeof(parameters) / sizeof(parameters[0]) };

static bool sizes_hold(void)
{
    bool hold = true;

    for (int i = 0; i < PARAMETERS; i++) {
        const opal_crypt_parameter_row_t *row = opal_crypt_parameter_row(parameters[i].name);
        const size_t *value = parameters[i].storage;

        if (OPAL_CRYPT_PARAMETER_SIZE == row->type && (*value < row->least || *value > row->most)) {
            OPAL_CRYPTPROC_SHOW("help-mpi-coll-cryptag.txt", "bad-size", row->name, *value, (size_t) row->least,
                                (size_t) row->most);
            hold = false;
        }
    }
    return hold;
}

/* A parameter with a value that is not one of its words; Open MPI has warned about it. */
static const char *bad_choice;

static bool choices_hold(void)
{
    if (NULL != bad_choice) {
        OPAL_CRYPTPROC_SHOW("help-mpi-coll-cryptag.txt", "bad-choice", bad_choice);
    }
    return NULL == bad_choice;
}

static void register_metric(const char *name, const char *help, uint64_t *value)
{
    (void) mca_base_component_pvar_register(&mca_coll_cryptag_component.super.collm_version, name, help,
                                            OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_COUNTER,
                                            MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
                                            MCA_BASE_VAR_BIND_NO_OBJECT,
                                            MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS,
                                            NULL, NULL, NULL, value);
}

static void register_metrics(ompi_coll_cryptag_metrics_t *total)
{
    register_metric("r_c", "Communication steps waited for, of all calls", &total->r_c);
    register_metric("s_c", "Payload bytes sent, of all calls; sealing overhead and copies through shared "
                    "memory are left out", &total->s_c);
    register_metric("r_e", "Pieces sealed", &total->r_e);
    register_metric("s_e", "Plaintext bytes sealed", &total->s_e);
    register_metric("r_d", "Pieces opened", &total->r_d);
    register_metric("s_d", "Plaintext bytes opened", &total->s_d);
}

static int component_register(void)
{
    ompi_coll_cryptag_component_t *c = &mca_coll_cryptag_component;

    if (!OMPI_COMMON_CRYPTMPI_SERIES_OK("coll/cryptag")) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    (void) opal_cryptproc_register(parameters, PARAMETERS, &bad_choice);
    c->stream = -1;
    register_metrics(&c->total);
    return OPAL_SUCCESS;
}

static bool read_rules(void)
{
    ompi_coll_cryptag_component_t *c = &mca_coll_cryptag_component;
    char why[512];

    c->rules = ompi_coll_cryptag_rules_new(ompi_common_cryptmpi_over_btl(), c->rules_file, why, sizeof(why));
    if (NULL == c->rules) {
        OPAL_CRYPTPROC_SHOW("help-mpi-coll-cryptag.txt", "bad-rules", why);
    }
    return NULL != c->rules;
}

static int component_close(void)
{
    ompi_coll_cryptag_rules_free(mca_coll_cryptag_component.rules);
    mca_coll_cryptag_component.rules = NULL;
    opal_cryptproc_verbose_close(&mca_coll_cryptag_component.stream);
    return OPAL_SUCCESS;
}

int ompi_coll_cryptag_init_query(bool enable_progress_threads, bool enable_mpi_threads)
{
    (void) enable_progress_threads;
    (void) enable_mpi_threads;
    if (mca_coll_cryptag_component.stream < 0) {
        mca_coll_cryptag_component.stream = opal_cryptproc_verbose_open();
    }
    return OMPI_SUCCESS;
}

/* Did the user name us in --mca coll? */
static bool asked_for(void)
{
    const char *list = ompi_coll_base_framework.framework_selection;

    return NULL != list && '^' != list[0] && NULL != strstr(list, "cryptag");
}

/* If only this rank left the component out, ranks would wait for each other in different
 * algorithms: so the job ends. */
static void need_parameters(void)
{
    if (NULL == mca_coll_cryptag_component.rules && !(choices_hold() && sizes_hold() && read_rules())) {
        ompi_mpi_abort(MPI_COMM_WORLD, 1);
    }
}

bool ompi_coll_cryptag_usable(void)
{
    const char *pml = mca_pml_base_selected_component.pmlm_version.mca_component_name;

    if (ompi_common_cryptmpi_over_btl() && ompi_common_cryptmpi_fault_tolerant()) {
        opal_output_verbose(10, ompi_coll_base_framework.framework_output,
                            "coll:cryptag: not used with fault tolerance: nobody ends the wait for a neighbor who failed");
        return false;
    }
    if (ompi_common_cryptmpi_active() || ompi_common_cryptmpi_over_btl()) {
        need_parameters();
        if (!ompi_common_cryptmpi_active()) {
            ompi_common_cryptmpi_device_start();
        }
        return true;
    }
    if (asked_for() && !opal_cryptproc_has_transport()) {       /* else Open MPI's own are sealed, hop by hop */
        OPAL_CRYPTPROC_SHOW("help-mpi-coll-cryptag.txt", "needs-pml-crypt", pml);
        ompi_mpi_abort(MPI_COMM_WORLD, 1);
    }
    opal_output_verbose(10, ompi_coll_base_framework.framework_output,
                        "coll:cryptag: not used, the selected PML is %s, not crypt", pml);
    return false;
}

/* Each parameter of ours is part of it: one that differs between ranks would let them wait for each other. */
uint32_t ompi_coll_cryptag_settings(void)
{
    const uint64_t others[] = { (uint64_t) opal_cryptproc_params.on_failure, ompi_common_cryptmpi_over_btl() };
    uint32_t sum = ompi_coll_cryptag_sum(others, sizeof(others), OMPI_COLL_CRYPTAG_SUM_START);

    for (int i = 0; i < PARAMETERS; i++) {
        const opal_crypt_parameter_type_t type = opal_crypt_parameter_row(parameters[i].name)->type;

        if (OPAL_CRYPT_PARAMETER_TEXT != type) {        /* the file of rules: by what it says, below */
            sum = ompi_coll_cryptag_sum(parameters[i].storage,
                                        OPAL_CRYPT_PARAMETER_SIZE == type ? sizeof(size_t) : sizeof(int), sum);
        }
    }
    return ompi_coll_cryptag_rules_sum(mca_coll_cryptag_component.rules, sum);
}

void ompi_coll_cryptag_count(const ompi_coll_cryptag_call_t *call)
{
    const ompi_coll_cryptag_metrics_t *m = &call->metrics;
    ompi_coll_cryptag_metrics_t *total = &mca_coll_cryptag_component.total;

    __atomic_fetch_add(&total->r_c, m->r_c, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->s_c, m->s_c, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->r_e, m->r_e, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->s_e, m->s_e, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->r_d, m->r_d, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->s_d, m->s_d, __ATOMIC_RELAXED);
    opal_output_verbose(OPAL_CRYPTPROC_SAY_CHOICES, mca_coll_cryptag_component.stream,
                        "coll:cryptag: %s, rank %d of %d, call %" PRIu64 ": %s by %s: r_c %" PRIu64 " s_c %" PRIu64
                        " r_e %" PRIu64 " s_e %" PRIu64 " r_d %" PRIu64 " s_d %" PRIu64, call->comm->c_name,
                        call->topo->rank, call->topo->ranks, call->sequence,
                        ompi_coll_cryptag_operation_name(call->operation),
                        ompi_coll_cryptag_algorithm_name(call->operation, call->algorithm), m->r_c, m->s_c, m->r_e,
                        m->s_e, m->r_d, m->s_d);
}
