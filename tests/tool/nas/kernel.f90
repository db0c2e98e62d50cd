! Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
!
! As kernel.c, in Fortran: a message to the rank opposite and back.
program kernel
    use mpi
    implicit none
    integer :: error, rank, ranks, peer, requests(2), total, comm
    integer :: states(MPI_STATUS_SIZE, 2), state(MPI_STATUS_SIZE)
    double precision :: a(20000), b(20000)

    call mpi_init(error)
    call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
    call mpi_comm_size(MPI_COMM_WORLD, ranks, error)
    call mpi_comm_dup(MPI_COMM_WORLD, comm, error)
    peer = ieor(rank, 1)
    a = rank
    call mpi_irecv(b, 20000, MPI_DOUBLE_PRECISION, peer, 1, comm, requests(1), error)
    call mpi_isend(a, 20000, MPI_DOUBLE_PRECISION, peer, 1, comm, requests(2), error)
    call mpi_waitall(2, requests, states, error)
    if (rank < peer) then
        call mpi_send(a, 20000, MPI_DOUBLE_PRECISION, peer, 2, comm, error)
        call mpi_irecv(b, 20000, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 2, comm, requests(1), error)
        call mpi_wait(requests(1), state, error)
    else
        call mpi_recv(b, 20000, MPI_DOUBLE_PRECISION, peer, 2, comm, state, error)
        call mpi_send(a, 20000, MPI_DOUBLE_PRECISION, peer, 2, comm, error)
    end if
    call mpi_sendrecv(a, 10, MPI_DOUBLE_PRECISION, peer, 3, b(2), 10, MPI_DOUBLE_PRECISION, peer, 3, comm, state, error)
    call mpi_allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, comm, error)
    call mpi_bcast(total, 1, MPI_INTEGER, 0, comm, error)
    call mpi_barrier(comm, error)
    call mpi_comm_free(comm, error)
    if (rank == 0) then
        print '(a, f20.2)', ' Time in seconds = ', 1.25
        if (b(20000) == peer .and. total == ranks * (ranks - 1) / 2) then
            print '(a)', ' Verification    =               SUCCESSFUL'
        else
            print '(a)', ' Verification    =             UNSUCCESSFUL'
        end if
    end if
    call mpi_finalize(error)
end program
