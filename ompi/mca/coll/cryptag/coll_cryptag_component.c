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

/* A name for each algorithm, and an end. */
static mca_base_var_enum_value_t allgathers[OMPI_COLL_CRYPTAG_ALGORITHMS + 1];
static mca_base_var_enum_value_t bcasts[OMPI_COLL_CRYPTAG_BCASTS + 1];
static mca_base_var_enum_value_t alltoalls[OMPI_COLL_CRYPTAG_ALLTOALLS + 1];
static mca_base_var_enum_value_t leader_kinds[] = { { 0, "auto" }, { 1, "ring" }, { 2, "rd" }, { 0, NULL } };

static void register_int(const char *name, const char *help, mca_base_var_info_lvl_t level, int start, int *value)
{
    *value = start;
    (void) mca_base_component_var_register(&mca_coll_cryptag_component.super.collm_version, name, help,
                                           MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, level,
                                           MCA_BASE_VAR_SCOPE_READONLY, value);
}

enum { MIB64 = 64 << 20 };

/* Sizes, in bytes, and what they may be. */
static const struct size_param {
    const char *name;
    size_t *value, start, least, most;
    const char *help;
} sizes[] = {
    {"fragment", &mca_coll_cryptag_component.fragment, 65000, 4096, MIB64,
     "Encrypted data travel in messages of at most this many bytes, 4096 to 67108864"},
    {"piece_max", &mca_coll_cryptag_component.piece_max, 4194304, 4096, MIB64,
     "Largest piece, in bytes of plaintext, that is encrypted as a unit, 4096 to 67108864"},
    {"bcast_segment", &mca_coll_cryptag_component.bcast_segment, 131072, 1024, MIB64,
     "A broadcast by binomial or chain is sealed and handed on in segments of this many bytes, 1024 to 67108864"},
    {"shm_max", &mca_coll_cryptag_component.shm_max, 67108864, 0, SIZE_MAX,
     "Most bytes of shared memory that a communicator may use on a node; beyond it other algorithms are used. 0: "
     "never use shared memory"},
};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void register_sizes(void)
{
    for (int i = 0; i < SIZES; i++) {
        *sizes[i].value = sizes[i].start;
        (void) mca_base_component_var_register(&mca_coll_cryptag_component.super.collm_version, sizes[i].name,
                                               sizes[i].help, MCA_BASE_VAR_TYPE_SIZE_T, NULL, 0, 0,
                                               OPAL_INFO_LVL_8, MCA_BASE_VAR_SCOPE_READONLY, sizes[i].value);
    }
}

static bool sizes_hold(void)
{
    bool hold = true;

    for (int i = 0; i < SIZES; i++) {
        if (*sizes[i].value < sizes[i].least || *sizes[i].value > sizes[i].most) {
            OPAL_CRYPTPROC_SHOW("help-mpi-coll-cryptag.txt", "bad-size", sizes[i].name, *sizes[i].value,
                           sizes[i].least, sizes[i].most);
            hold = false;
        }
    }
    return hold;
}

/* The one that is none of its words, of which Open MPI has warned. */
static const char *bad_choice;

static bool choices_hold(void)
{
    if (NULL != bad_choice) {
        OPAL_CRYPTPROC_SHOW("help-mpi-coll-cryptag.txt", "bad-choice", bad_choice);
    }
    return NULL == bad_choice;
}

/* A choice may be changed at run time by MPI_T, at all ranks between two
 * collectives: benchmarks compare algorithms within one job that way. */
static void register_choice(const char *name, const char *help, const mca_base_var_enum_value_t *values, int *value)
{
    mca_base_var_enum_t *enumerator = NULL;

    *value = 0;
    (void) mca_base_var_enum_create(name, values, &enumerator);
    if (mca_base_component_var_register(&mca_coll_cryptag_component.super.collm_version, name, help,
                                        MCA_BASE_VAR_TYPE_INT, enumerator, 0, MCA_BASE_VAR_FLAG_SETTABLE,
                                        OPAL_INFO_LVL_7, MCA_BASE_VAR_SCOPE_ALL_EQ, value) < 0) {
        bad_choice = name;
    }
    OBJ_RELEASE(enumerator);
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

static void fill_names(ompi_coll_cryptag_operation_t operation, mca_base_var_enum_value_t *values)
{
    const char *name;

    for (int i = 0; NULL != (name = ompi_coll_cryptag_algorithm_name(operation, i)); i++) {
        values[i] = (mca_base_var_enum_value_t) { i, name };
    }
}

static void register_choices(ompi_coll_cryptag_component_t *c)
{
    fill_names(OMPI_COLL_CRYPTAG_ALLGATHER, allgathers);
    fill_names(OMPI_COLL_CRYPTAG_BCAST, bcasts);
    fill_names(OMPI_COLL_CRYPTAG_ALLTOALL, alltoalls);
    register_choice("allgather_algorithm", "Algorithm of MPI_Allgather and MPI_Allgatherv (hop: left to other "
                    "components); auto: by coll_cryptag_rules_file or the built-in rules.  Must be equal at all ranks", allgathers,
                    &c->allgather_algorithm);
    register_choice("bcast_algorithm", "Algorithm of MPI_Bcast: hop (left to other components, sealed anew on "
                    "every hop), binomial or chain (sealed once), or auto.  Must be equal at all ranks", bcasts,
                    &c->bcast_algorithm);
    register_choice("alltoall_algorithm", "Algorithm of MPI_Alltoall and MPI_Alltoallv: hop (left to other "
                    "components), node (short blocks travel together from node to node), rows (equal blocks, from "
                    "rank to node), pairs (step by step), or auto.  Must be equal at all ranks", alltoalls,
                    &c->alltoall_algorithm);
    register_choice("leaders", "All-gather among the leaders of nodes in hs1, hs2 and hs3, and under naive: ring, rd, "
                    "or auto (ring from 64 KiB)", leader_kinds, &c->leaders);
}

static int component_register(void)
{
    ompi_coll_cryptag_component_t *c = &mca_coll_cryptag_component;

    if (!OMPI_COMMON_CRYPTMPI_SERIES_OK("coll/cryptag")) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    register_int("priority", "Priority of cryptag among the coll components. It passes on what it does not do "
                             "itself, so it should be above the others. Negative: not used", OPAL_INFO_LVL_8, 90,
                 &c->priority);
    register_choices(c);
    register_sizes();
    (void) opal_cryptproc_verbose_register(&c->super.collm_version,
                                           "Print what coll/cryptag does. 20: algorithm and metrics of each collective "
                                           "(default: 0)", &c->verbose);
    c->stream = -1;
    c->rules_file = NULL;
    (void) mca_base_component_var_register(&c->super.collm_version, "rules_file", "File of rules (operation "
                                           "mapping nodes ranks-a-node bytes algorithm) that override the "
                                           "built-in ones; must be equal at all ranks", MCA_BASE_VAR_TYPE_STRING,
                                           NULL, 0, 0, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_READONLY,
                                           &c->rules_file);
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
        mca_coll_cryptag_component.stream = opal_cryptproc_verbose_open(mca_coll_cryptag_component.verbose);
    }
    return OMPI_SUCCESS;
}

/* Named in --mca coll by the user, rather than found among the others. */
static bool asked_for(void)
{
    const char *list = ompi_coll_base_framework.framework_selection;

    return NULL != list && '^' != list[0] && NULL != strstr(list, "cryptag");
}

/* Being left out here, and not where all is good, would let ranks wait for each other in
 * different algorithms. */
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
        ompi_common_cryptmpi_device_start();
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

uint32_t ompi_coll_cryptag_settings(void)
{
    const ompi_coll_cryptag_component_t *c = &mca_coll_cryptag_component;
    const uint64_t numbers[] = {
        (uint64_t) c->allgather_algorithm, (uint64_t) c->bcast_algorithm, (uint64_t) c->alltoall_algorithm,
        (uint64_t) c->leaders, c->fragment, c->piece_max, c->bcast_segment, c->shm_max,
        (uint64_t) opal_cryptproc_params.on_failure, ompi_common_cryptmpi_over_btl(),
    };
    uint32_t sum = ompi_coll_cryptag_sum(numbers, sizeof(numbers), OMPI_COLL_CRYPTAG_SUM_START);

    return ompi_coll_cryptag_rules_sum(c->rules, sum);
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
