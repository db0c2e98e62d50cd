/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * pml/tamper: an attacker between pml/crypt and ob1, ucx or cm, for tests only.
 *
 *     application -- pml/crypt -- pml/tamper -- ob1 -- the network
 *
 * It sits at the sender, and does to frames what somebody on the wire could do:
 * what it hands to ob1 arrives as if the network had made it so.  Frames of
 * communicators whose name begins with "target" are subject to the plan in
 * the parameter pml_tamper_plan, which a program changes through MPI_T:
 *
 *     CELL KIND NTH COUNT ACTION [NUMBER [NUMBER]]
 *
 * CELL is any number; a plan counts as new when its text differs.  KIND is a
 * kind of frame (below).  NTH: how many of those pass before; COUNT: how many
 * the action is for.
 *
 *     flip AT MASK      invert bits of byte AT (from the end if negative)
 *     cut N, extend N   N bytes less, or N random bytes more
 *     drop              keep it back; the action `release` sends all that was kept
 *     replay AFTER      send it again, AFTER frames of this kind later
 *     hold AFTER        send it that much later only
 *     retag N           send it with tag N - tag: two tags change places
 *     move N            send it on the target communicator of that number
 *     divert RANK       send it to somebody else
 *     relay RANK        give it to the attacker at RANK, who ...
 *     impostor RANK     ... sends what RANK gave him in place of his own frame
 *     forge TYPE BYTES  send a made-up frame before it
 *     raw BYTES HEX     send a frame before it that begins with these bytes
 *     from RANK         (ucx) as if RANK had sent it
 *     exchange          two frames of this kind go under each other's tags
 *
 * It can be a host with faults, too (pml_tamper_fault.c); for these, KIND may be
 * a kind of receive:
 *
 *     refuse LEAVES     the call that hands it over returns OMPI_ERR_BUFFER ...
 *     fail LEAVES       ... or succeeds, and the request ends with MPI_ERR_NO_SPACE;
 *                       LEAVES not 0: and the frame is sent all the same
 */
#ifndef MCA_PML_TAMPER_H
#define MCA_PML_TAMPER_H

#include "ompi/mca/common/cryptmpi/cryptmpi.h"

enum { TAMPER_ANY, TAMPER_DIRECT, TAMPER_FIRST, TAMPER_LOCAL, TAMPER_LOCAL_LARGE, TAMPER_SEGMENT, TAMPER_BODY,
       TAMPER_RECEIVE, TAMPER_RECEIVE_SEGMENT, TAMPER_RECEIVE_BODY, TAMPER_KINDS };

/* What pml/crypt hands over, or a receive of it. */
typedef struct ompi_pml_tamper_frame {
    const void *bytes;
    size_t count;
    ompi_datatype_t *type;
    int dst, tag;
    mca_pml_base_send_mode_t mode;
    ompi_communicator_t *comm;
    bool receive, refused, failed;
} ompi_pml_tamper_frame_t;

extern ompi_common_cryptmpi_pml_component_t mca_pml_tamper_component;
extern mca_pml_base_module_t ompi_pml_tamper_ob1;       /* a copy of the module of ob1, ucx or cm */

mca_pml_base_module_t *ompi_pml_tamper_host_load(const char **name, bool progress_threads, bool mpi_threads);
int ompi_pml_tamper_host_finalize(void);
void ompi_pml_tamper_host_close(void);

extern char *ompi_pml_tamper_plan, *ompi_pml_tamper_host;

/* Act upon a frame.  False: it is not to be sent now.  Frames that are sent in
 * addition have been when this returns. */
bool ompi_pml_tamper_act(ompi_pml_tamper_frame_t *frame);
/* Send what became due by the frame that was just sent. */
void ompi_pml_tamper_after(void);
void ompi_pml_tamper_forget(void);

/* What the host says of a frame that was not to be sent, or a receive that was not
 * to be posted: the code to return, and for those of no fault an empty request. */
int ompi_pml_tamper_fault(const ompi_pml_tamper_frame_t *frame, bool persistent, ompi_request_t **request);
int ompi_pml_tamper_start(size_t count, ompi_request_t **requests);

#endif
