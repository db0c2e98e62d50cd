/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Stands between ompi-crypt's components and the collectives of a file's communicator, and puts other bytes in the place
 * of what one of these calls brings, as if another process had lied, or were in another call.  Open MPI's own calls get what is
 * right.
 */
#include "ompi/mca/common/cryptmpi/cryptmpi.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_compat.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/coll.h"

/* ---- for the program ---- */

static int calls, at = -1, value;

OMPI_DECLSPEC void lie_arm(int call, int byte);
OMPI_DECLSPEC int lie_calls(void);

/* The call of this number, from 0, brings this byte all over. */
void lie_arm(int call, int byte)
{
    calls = 0;
    at = call;
    value = byte;
}

int lie_calls(void) { return calls; }

/* Is it this call, of a library of ours? */
static bool lies(const void *caller)
{
    Dl_info about;

    return 0 != dladdr(caller, &about) && NULL != about.dli_fname && NULL != strstr(about.dli_fname, "crypt")
           && at == calls++;
}

static void put(void *buffer, size_t count, const ompi_datatype_t *type)
{
    size_t size;

    opal_datatype_type_size(&type->super, &size);
    memset(buffer, value, count * size);
}

/* ---- the functions of a communicator ---- */

typedef __typeof__(*((ompi_communicator_t *) 0)->c_coll) functions_t;
typedef struct of {
    struct of *next;
    const ompi_communicator_t *comm;
    functions_t functions;
} of_t;

static of_t *all;

static const functions_t *of(const ompi_communicator_t *comm)
{
    const of_t *one = all;

    while (comm != one->comm) {
        one = one->next;
    }
    return &one->functions;
}

/* Two numbers are whether somebody has an error, which may be any; there are very many of them. */
enum { ERROR_AND_FLAG = 2 };

static int allreduce(const void *from, void *to, ompi_common_cryptmpi_count_t count, ompi_datatype_t *type, struct ompi_op_t *op,
                     ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    const bool lie = ERROR_AND_FLAG != count && lies(__builtin_return_address(0));
    const int rc = of(comm)->coll_allreduce(from, to, count, type, op, comm, module);

    if (lie) {
        put(to, (size_t) count, type);
    }
    return rc;
}

static int bcast(void *buffer, ompi_common_cryptmpi_count_t count, ompi_datatype_t *type, int root, ompi_communicator_t *comm,
                 mca_coll_base_module_t *module)
{
    const bool lie = lies(__builtin_return_address(0)) && root != ompi_comm_rank(comm);
    const int rc = of(comm)->coll_bcast(buffer, count, type, root, comm, module);

    if (lie) {
        put(buffer, (size_t) count, type);
    }
    return rc;
}

static int allgather(const void *from, ompi_common_cryptmpi_count_t scount, ompi_datatype_t *stype, void *to,
                     ompi_common_cryptmpi_count_t rcount, ompi_datatype_t *rtype, ompi_communicator_t *comm,
                     mca_coll_base_module_t *module)
{
    const bool lie = lies(__builtin_return_address(0));
    const int rc = of(comm)->coll_allgather(from, scount, stype, to, rcount, rtype, comm, module);

    if (lie) {
        put(to, (size_t) rcount * (size_t) ompi_comm_size(comm), rtype);
    }
    return rc;
}

/* What others contribute, but not this process. */
static int allgatherv(const void *from, ompi_common_cryptmpi_count_t scount, ompi_datatype_t *stype, void *to,
                      ompi_common_cryptmpi_counts_t counts, ompi_common_cryptmpi_disps_t places, ompi_datatype_t *rtype,
                      ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    const bool lie = lies(__builtin_return_address(0));
    const int rc = of(comm)->coll_allgatherv(from, scount, stype, to, counts, places, rtype, comm, module);

    for (int i = 0; lie && i < ompi_comm_size(comm); i++) {
        if (i != ompi_comm_rank(comm)) {
            put((char *) to + ompi_common_cryptmpi_disp(places, i), ompi_common_cryptmpi_count(counts, i), rtype);
        }
    }
    return rc;
}

/* Where the components look at a communicator first. */
ompi_common_cryptmpi_everywhere_t ompi_common_cryptmpi_everywhere(const ompi_communicator_t *comm, int *lacks)
{
    ompi_common_cryptmpi_everywhere_t (*real)(const ompi_communicator_t *, int *) =
        (ompi_common_cryptmpi_everywhere_t (*)(const ompi_communicator_t *, int *)) dlsym(RTLD_NEXT, "ompi_common_cryptmpi_everywhere");
    functions_t *now = comm->c_coll;
    of_t *one = all;

    while (NULL != one && comm != one->comm) {
        one = one->next;
    }
    if (NULL == one) {
        one = calloc(1, sizeof(*one));
        one->next = all;
        one->comm = comm;
        all = one;
    }
    if (NULL != now && allreduce != now->coll_allreduce) {     /* a new one, perhaps where one was that is gone */
        one->functions = *now;
        now->coll_allreduce = allreduce;
        now->coll_bcast = bcast;
        now->coll_allgather = allgather;
        now->coll_allgatherv = allgatherv;
    }
    return real(comm, lacks);
}
