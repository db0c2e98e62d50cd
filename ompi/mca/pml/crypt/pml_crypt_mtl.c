/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * cm as the host: it gives messages to an MTL, and so to a library (libfabric, PSM2) that matches them.  What is
 * different there, as read in mtl/ofi of 4.1.4 and 5.0.7:
 *
 *   - A callback runs in the middle of a loop over completions, and a call that finds a queue of the library full, or
 *     itself not connected yet, makes progress, which reads other completions into the same array: in 4.1 the MTL's own,
 *     in 5.0 all of Open MPI's, also where a callback acknowledges a synchronous message.  So a callback only notes
 *     that an operation has ended, and the progress function looks at it (ops.c).  4.1's acknowledgment of a synchronous
 *     message, as first parts are, may read, too, where the library's queue is full: there one completion is
 *     read at a time, which is done with by then.
 *   - A send that blocks waits by the MTL's progress alone, without ours.  A receiver that waits for segments of an
 *     earlier message would wait for ever: so it is made of one that does not block, here.
 *   - A matched receive acknowledges no synchronous send in 4.1, and first parts are synchronous.  A probe takes a
 *     message by an ordinary receive, under the communicator's lock (held.c).
 *   - libfabric 1.17's tcp closes the connection when a message that it sends at once (ofi_rxm: of up to 16 KiB, unless
 *     FI_OFI_RXM_BUFFER_SIZE says otherwise) is longer than its receive.  So receives have room for what an attacker may
 *     add to that, and what is too long is refused here (OMPI_PML_CRYPT_MTL_ROOM).
 *   - Nobody knows how the library reaches a process, so all of them are SEALED (common/cryptmpi), and no message to
 *     the host is longer than a segment, whatever an MTL's largest message is.
 */
#include "pml_crypt_host.h"

#include <string.h>

#include "ompi/mca/mtl/base/base.h"

/* MTLs whose tags were read: portals4 gives some of their bits to protocols of its own. */
static const char *const known[] = {"ofi", "psm2"};

const char *ompi_pml_crypt_mtl_name(void)
{
    return ompi_pml_crypt.mtl && NULL != ompi_mtl_base_selected_component
               ? ompi_mtl_base_selected_component->mtl_version.mca_component_name : NULL;
}

static int *ofi_parameter(const char *name)
{
    const int index = mca_base_var_find("ompi", "mtl", "ofi", name);
    int *value = NULL;

    return index >= 0 && OPAL_SUCCESS == mca_base_var_get_value(index, &value, NULL, NULL) ? value : NULL;
}

/* Not before the MTL has made its queues of completions, which would have room for one, too: with scalable endpoints it makes
 * more of them for each communicator. */
static void read_one_at_a_time(void)
{
    int *events = ofi_parameter("progress_event_cnt");
    const int *scalable = ofi_parameter("enable_sep");

    if (NULL != events && (NULL == scalable || 0 == *scalable)) {
        *events = 1;
    }
}

bool ompi_pml_crypt_mtl_fit(void)
{
    const char *name = ompi_pml_crypt_mtl_name();

    for (size_t i = 0; NULL != name && i < sizeof(known) / sizeof(known[0]); i++) {
        if (0 == strcmp(name, known[i])) {
            if (OMPI_COMMON_CRYPTMPI_OFI_ONE_ARRAY && 0 == strcmp("ofi", name)) {
                read_one_at_a_time();
            }
            return true;
        }
    }
    OPAL_CRYPTPROC_SHOW("help-mpi-pml-crypt.txt", "host-mtl", NULL == name ? "none" : name, opal_process_info.nodename);
    return false;
}

int ompi_pml_crypt_mtl_send(const void *buffer, size_t count, ompi_datatype_t *type, int dst, int tag,
                            mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    ompi_request_t *request = NULL;
    int rc = ompi_pml_crypt.host.pml_isend(buffer, count, type, dst, tag, mode, comm, &request);

    return OMPI_SUCCESS == rc ? ompi_common_cryptmpi_request_end(&request, MPI_STATUS_IGNORE) : rc;
}
