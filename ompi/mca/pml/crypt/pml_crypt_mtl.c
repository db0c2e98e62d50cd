/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * cm as the host: it gives messages to an MTL, and so to a library (libfabric, PSM2) that matches them.  What
 * differs there, as read in mtl/ofi of 4.1.4 and 5.0.7:
 *
 *   - A callback runs in the middle of a loop over completions, and a call that finds a queue of the library full, or
 *     no connection yet, makes progress, which reads other completions into the same array: in 4.1 the MTL's progress,
 *     in 5.0 all of Open MPI's, even where a callback acknowledges a synchronous message.  So a callback only notes
 *     that an operation has ended, and the progress function handles it (ops.c).  In 4.1 the acknowledgment of a
 *     synchronous message, such as a first part, may read completions, too, if the library's queue is full: so there
 *     one completion is read at a time, and has been handled by then.
 *   - A blocking send waits with the MTL's progress alone, without ours: if the receiver waits for segments of an
 *     earlier message, both wait for ever.  So it is replaced here by a non-blocking send and a wait.
 *   - In 4.1 a matched receive does not acknowledge a synchronous send, and first parts are synchronous.  So a probe
 *     takes a message by an ordinary receive, under the communicator's lock (held.c).
 *   - libfabric 1.17's tcp closes the connection when an eager message (ofi_rxm: up to 16 KiB, unless
 *     FI_OFI_RXM_BUFFER_SIZE says otherwise) is longer than its receive.  So receives have room for what an attacker may
 *     add to that, and a message that is too long is refused here (OMPI_PML_CRYPT_MTL_CAPACITY).
 *   - We cannot know how the library reaches a process, so all processes are SEALED (common/cryptmpi), and no message
 *     to the host is longer than a segment, whatever an MTL's largest message is.
 */
#include "pml_crypt_host.h"

#include <string.h>

#include "ompi/mca/mtl/base/base.h"

/* MTLs whose tag layout was checked: portals4 uses some bits of a tag for protocols of its own. */
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

/* Only after the MTL has made its completion queues, which else would have room for only one, too.  So not with
 * scalable endpoints, where it makes more of them for each communicator. */
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
