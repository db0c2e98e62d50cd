/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A block of an all-to-all, in the user's buffers.
 */
#include "coll_cryptag.h"
#include "coll_cryptag_alltoall.h"

ompi_coll_cryptag_cell_t ompi_coll_cryptag_cell(const ompi_coll_cryptag_side_t *side, int rank)
{
    const size_t count = side->counts ? ompi_common_cryptmpi_count(side->counts, rank) : side->count;
    ptrdiff_t lb, extent, elements;

    ompi_datatype_get_extent(side->dtype, &lb, &extent);
    elements = side->counts ? ompi_common_cryptmpi_disp(side->disps, rank) : (ptrdiff_t) rank * (ptrdiff_t) side->count;
    return (ompi_coll_cryptag_cell_t) { side->buffer + elements * extent, count,
                                        ompi_common_cryptmpi_bytes(side->dtype, count), side->dtype };
}

uint8_t *ompi_coll_cryptag_cell_flat(const ompi_coll_cryptag_cell_t *cell)
{
    return ompi_common_cryptmpi_contiguous(cell->base, cell->dtype, cell->count);
}

void ompi_coll_cryptag_cell_pack(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_cell_t *cell, uint8_t *to)
{
    ompi_coll_cryptag_note(call, ompi_common_cryptmpi_pack(cell->base, cell->count, cell->dtype, 0, cell->bytes, to));
}

void ompi_coll_cryptag_cell_unpack(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_cell_t *cell,
                                   const uint8_t *from)
{
    ompi_coll_cryptag_note(call, ompi_common_cryptmpi_unpack(cell->base, cell->count, cell->dtype, 0, cell->bytes, from));
}

void ompi_coll_cryptag_cell_recv(ompi_coll_cryptag_call_t *call, int rank, const ompi_coll_cryptag_cell_t *in)
{
    ompi_coll_cryptag_recv_typed(call, rank, in->base, in->count, in->dtype, in->bytes);
}

void ompi_coll_cryptag_cell_send(ompi_coll_cryptag_call_t *call, int rank, const ompi_coll_cryptag_cell_t *out)
{
    ompi_coll_cryptag_send_typed(call, rank, out->base, out->count, out->dtype, out->bytes);
}

ompi_coll_cryptag_cell_t ompi_coll_cryptag_cell_copy(ompi_coll_cryptag_call_t *call,
                                                     const ompi_coll_cryptag_cell_t *cell)
{
    uint8_t *copy = ompi_coll_cryptag_scratch(call, cell->bytes);

    ompi_coll_cryptag_cell_pack(call, cell, copy);
    return (ompi_coll_cryptag_cell_t) { (char *) copy, cell->bytes, cell->bytes, MPI_BYTE };
}

int ompi_coll_cryptag_cell_take_own(const ompi_coll_cryptag_alltoall_t *alltoall)
{
    const int rank = ompi_comm_rank(alltoall->call.comm);
    const ompi_coll_cryptag_cell_t out = ompi_coll_cryptag_cell(&alltoall->out, rank);
    const ompi_coll_cryptag_cell_t in = ompi_coll_cryptag_cell(&alltoall->in, rank);

    return alltoall->in_place ? OMPI_SUCCESS
                              : ompi_datatype_sndrcv(out.base, (ompi_common_cryptmpi_count_t) out.count, out.dtype,
                                                     in.base, (ompi_common_cryptmpi_count_t) in.count, in.dtype);
}
