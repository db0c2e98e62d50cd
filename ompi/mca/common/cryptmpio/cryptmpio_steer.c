/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How OMPIO exchanges data of an encrypted file in collective calls: by which
 * algorithm, through how many aggregators, and how much in a cycle.
 *
 * By default, OMPIO lets one process of a node do the I/O of all, and so all of
 * the encryption.  Here up to SPREAD of a node do.  A read is then exchanged
 * within as many groups: if the pieces of a view are shorter than a block, each
 * group opens the block, in parallel if the node has as many processors.
 * Stripes are assigned round-robin; they are short, so that several processes
 * share the encryption even of a call of 1 MiB.
 *
 * By default, OMPIO also exchanges 32 MiB in a cycle, out of a buffer that fits
 * no cache and that the kernel has to map anew for each call.
 */
#include "cryptmpio_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/coll/coll.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_compat.h"
#include "ompi/mca/fcoll/base/base.h"
#include "opal/mca/base/mca_base_var.h"

#define STRIPE_BYTES 262144u
#define SPREAD 4
#define CYCLE_BYTES (4u << 20)
#define CYCLE_BLOCKS 64u                /* one of them may be split, and opened twice */

/* OMPIO's own, the same for every file. */
static mca_common_ompio_get_mca_parameter_value_fn_t ompio_parameter;

/* A number other than -1 keeps OMPIO from choosing groups by volume; "cb_nodes"
 * determines the groups. */
static int parameter(char *name, int length)
{
    int value = ompio_parameter(name, length);

    return -1 == value && 0 == strncmp(name, "num_aggregators", (size_t) length) ? 1 : value;
}

/* Is this process one of the first SPREAD of its node? */
static bool among_first(const ompio_file_t *fh)
{
    int rank = ompi_common_cryptmpio_first_here(fh, 0);

    for (int i = 1; i < SPREAD && rank < fh->f_rank; ++i) {
        rank = ompi_common_cryptmpio_first_here(fh, rank + 1);
    }
    return rank >= fh->f_rank;
}

/* The MPI-IO hint for the number of aggregators; 0: not set. */
static int hint_of(ompio_file_t *fh)
{
    char text[16];

    return ompi_common_cryptmpi_info_get(fh->f_info, "cb_nodes", text, sizeof(text)) ? atoi(text) : 0;
}

static int own_cycle(const ompio_file_t *fh)
{
    return fh->f_get_mca_parameter_value("bytes_per_agg", (int) strlen("bytes_per_agg"));
}

/* Did the user set the bytes per cycle? */
static bool has_cycle(const ompio_file_t *fh)
{
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
    char text[16];
    int index;

    if (OPAL_SUCCESS == mca_base_var_find_by_name("io_ompio_bytes_per_agg", &index)) {
        (void) mca_base_var_get_value(index, NULL, &source, NULL);
    }
    return MCA_BASE_VAR_SOURCE_DEFAULT != source
           || (ompi_common_cryptmpi_info_get(fh->f_info, "cb_buffer_size", text, sizeof(text))
               && !(OMPI_COMMON_CRYPTMPI_IO_SHOWS_HINTS && atoi(text) == own_cycle(fh)));
}

/* A whole number of blocks; at least the file system's stripe, if it has stripes. */
static size_t stripe_of(const ompio_file_t *fh, uint32_t block_bytes)
{
    size_t wanted = fh->f_stripe_count >= 2 && fh->f_stripe_size > 0 ? fh->f_stripe_size : STRIPE_BYTES;

    return 0 == block_bytes ? wanted : (wanted + block_bytes - 1) / block_bytes * block_bytes;
}

/* Never longer than OMPIO's own. */
static void shorten_cycle(ompio_file_t *fh, uint32_t block_bytes)
{
    uint32_t own = (uint32_t) own_cycle(fh);
    uint32_t wanted = block_bytes > CYCLE_BYTES / CYCLE_BLOCKS ? CYCLE_BLOCKS * block_bytes : CYCLE_BYTES;

    fh->f_bytes_per_agg = (int) (wanted < own ? wanted : own);
}

int ompi_common_cryptmpio_spread(ompio_file_t *fh, uint32_t block_bytes)
{
    mca_common_ompio_get_mca_parameter_value_fn_t own = fh->f_get_mca_parameter_value;
    enum { FIRST, SET, HINT, CYCLE, VALUES };       /* summed: rank 0's hint is used by all */
    int mine[VALUES] = {[FIRST] = among_first(fh) ? 1 : 0, [HINT] = 0 == fh->f_rank ? hint_of(fh) : 0}, sum[VALUES];
    char text[16];

    fh->f_stripe_size = stripe_of(fh, block_bytes);
    if (NULL == ompi_common_cryptmpio_handle(fh)) {         /* OMPIO's internal file, on one process, without hints */
        return MPI_SUCCESS;
    }
    own = parameter == own ? ompio_parameter : own;
    mine[SET] = -1 != own("num_aggregators", (int) strlen("num_aggregators")) ? 1 : 0;
    mine[CYCLE] = has_cycle(fh) ? 1 : 0;
    if (OMPI_SUCCESS != fh->f_comm->c_coll->coll_allreduce(mine, sum, VALUES, MPI_INT, MPI_SUM, fh->f_comm,
                                                           fh->f_comm->c_coll->coll_allreduce_module)) {
        return MPI_ERR_INTERN;
    }
    if (0 == sum[CYCLE]) {
        shorten_cycle(fh, block_bytes);
    }
    if (0 != sum[SET]) {                    /* the user's parameter decides, as without us */
        return MPI_SUCCESS;
    }
    ompio_parameter = own;
    fh->f_get_mca_parameter_value = parameter;
    sum[FIRST] = sum[HINT] > 0 ? sum[HINT] : sum[FIRST];
    sum[FIRST] = sum[FIRST] < 1 ? 1 : sum[FIRST] < fh->f_size ? sum[FIRST] : fh->f_size;
    if (fh->f_stripe_count < 2) {           /* else the file system has its own */
        fh->f_stripe_count = sum[FIRST];
    }
    snprintf(text, sizeof(text), "%d", sum[FIRST]);
    /* All or none: a process with other groups than its peers would wait forever. */
    return ompi_common_cryptmpio_agree(fh, OPAL_SUCCESS == opal_info_set(fh->f_info, "cb_nodes", text) ? MPI_SUCCESS
                                                                                                       : MPI_ERR_NO_MEM);
}

/* An aggregator sees the data of others.  If processes differ in what they may
 * see, and in atomic mode, each does its own I/O; otherwise file domains should
 * end at block boundaries. */
int ompi_common_cryptmpio_steer(const ompi_common_cryptmpio_file_t *state)
{
    ompio_file_t *fh = state->fh;
    bool alone = !state->uniform || 0 != fh->f_atomicity;
    const char *wanted = alone ? "individual" : "dynamic_gen2";
    const char *now = NULL == fh->f_fcoll_component ? "" : fh->f_fcoll_component->mca_component_name;
    mca_fcoll_base_component_t *component;
    int priority;

    if (!state->encrypted) {
        return MPI_SUCCESS;
    }
    if (0 == strcmp(now, wanted) || (!alone && 0 == strcmp(now, "individual"))) {
        return MPI_SUCCESS;
    }
    component = mca_fcoll_base_component_lookup(wanted);
    mca_fcoll_base_module_t *module = NULL == component ? NULL : component->fcollm_file_query(fh, &priority);
    if (NULL != module) {
        fh->f_fcoll = module;
        fh->f_fcoll_component = (mca_base_component_t *) component;
        return OMPI_SUCCESS == module->fcoll_module_init(fh) ? MPI_SUCCESS : MPI_ERR_INTERN;
    }
    return alone ? MPI_ERR_UNSUPPORTED_OPERATION : MPI_SUCCESS;     /* other components are correct, too, but slower */
}
