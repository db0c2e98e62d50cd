/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A message, as it is sent or received, and what the host reports of one that arrived.
 */
#ifndef MCA_PML_CRYPT_MESSAGE_H
#define MCA_PML_CRYPT_MESSAGE_H

#include "ompi/mca/common/cryptmpi/cryptmpi.h"

/* ---- what the host reports of a message ---- */

/* The host's status comes from the network.  It is checked here, once: source and length
 * are never taken from anywhere else. */
typedef struct ompi_pml_crypt_arrival {
    enum {
        OMPI_PML_CRYPT_WHOLE,
        OMPI_PML_CRYPT_FORGED,          /* longer than anything that a peer sends, or from another process */
        OMPI_PML_CRYPT_BROKEN,          /* the host could not deliver it */
        OMPI_PML_CRYPT_CANCELLED
    } state;
    int error;                          /* BROKEN: the host's error, an MPI code */
    int source, tag;                    /* WHOLE: a rank of the communicator's (remote) group */
    size_t wire_bytes;                  /* WHOLE: at most the capacity; else 0 */
} ompi_pml_crypt_arrival_t;

/* The tag of a message that the host found when asked for `wanted`: below 0 the host may
 * know it by another tag (host_tag), and ucx reports 24 bits without a sign. */
static inline int ompi_pml_crypt_tag_of(int wanted, const ompi_status_public_t *status)
{
    return MPI_ANY_TAG == wanted ? status->MPI_TAG : wanted;
}

/* `rank` and `tag`: what the host was asked for.  `capacity`: the size of the buffer that the message
 * is in; SIZE_MAX for one that the host still has, for which mtl/ofi does not set _cancelled. */
static inline ompi_pml_crypt_arrival_t ompi_pml_crypt_arrival(const ompi_common_cryptmpi_comm_t *c, int rank, int tag,
                                                              const ompi_status_public_t *status, size_t capacity)
{
    const bool whole = MPI_SUCCESS == status->MPI_ERROR && status->_ucount <= capacity
                       && (unsigned) status->MPI_SOURCE < (unsigned) c->peer_count
                       && (MPI_ANY_SOURCE == rank || status->MPI_SOURCE == rank);

    return (ompi_pml_crypt_arrival_t){
        .state = status->_cancelled && SIZE_MAX != capacity ? OMPI_PML_CRYPT_CANCELLED
                 : whole ? OMPI_PML_CRYPT_WHOLE
                 : MPI_SUCCESS == status->MPI_ERROR || MPI_ERR_TRUNCATE == status->MPI_ERROR ? OMPI_PML_CRYPT_FORGED
                                                                                             : OMPI_PML_CRYPT_BROKEN,
        .error = status->MPI_ERROR,
        .source = status->MPI_SOURCE,
        .tag = ompi_pml_crypt_tag_of(tag, status),
        .wire_bytes = whole ? status->_ucount : 0,
    };
}

/* ---- a message ---- */

/* The arguments of the MPI call, the peer and, for a receive, what arrived.  Part of a request;
 * or on the stack, for a blocking call that needs no request. */
typedef struct ompi_pml_crypt_message {
    ompi_common_cryptmpi_comm_t *c;
    ompi_common_cryptmpi_peer_t *peer;      /* receives: set when the first part has arrived */
    void *buffer;                           /* sends: only read */
    size_t count;
    ompi_datatype_t *type;
    size_t plain_bytes;                     /* send: of the message; receive: room in the buffer */
    char *flat;                             /* the first byte, of contiguous elements in memory of the host; or NULL */
    int rank, tag;                          /* the peer's; receive: or MPI_ANY_SOURCE, MPI_ANY_TAG */
    ompi_status_public_t status;            /* what the application will see */
    /* receives */
    uint64_t serial;                        /* 0: none, or given back (accept.c) */
    bool any_tag;                           /* matched at the host by MPI_ANY_TAG */
    ompi_pml_crypt_arrival_t in;            /* the first part */
} ompi_pml_crypt_message_t;

/* Member by member: for an initializer, a compiler first clears all of it, by a slow instruction. */
static inline void ompi_pml_crypt_message_init(ompi_pml_crypt_message_t *m, ompi_communicator_t *comm, const void *buffer,
                                               size_t count, ompi_datatype_t *type, int rank, int tag)
{
    m->c = ompi_common_cryptmpi_comm(comm);
    m->peer = NULL;
    m->buffer = (void *) buffer;
    m->count = count;
    m->type = type;
    m->plain_bytes = ompi_common_cryptmpi_bytes(type, count);
    m->flat = ompi_common_cryptmpi_contiguous(buffer, type, count);
    m->rank = rank;
    m->tag = tag;
    m->status = (ompi_status_public_t){.MPI_SOURCE = OMPI_ANY_SOURCE, .MPI_TAG = OMPI_ANY_TAG};
    m->serial = 0;
    m->any_tag = false;
    m->in = (ompi_pml_crypt_arrival_t){.state = OMPI_PML_CRYPT_BROKEN};
}

/* The error of a message that could not be sealed or opened: never MPI_SUCCESS. */
static inline int ompi_pml_crypt_error(const ompi_pml_crypt_message_t *m, int rank, int tag, int rc)
{
    const int error = ompi_common_cryptmpi_auth_failure(m->c->comm, rank, tag, rc);

    return MPI_SUCCESS != error ? error : MPI_ERR_OTHER;
}

#endif
