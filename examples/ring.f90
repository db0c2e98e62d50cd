! Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
!
! ring FILE: like ring.c.  Rank 0 reads a line from FILE and sends it through all
! ranks until it comes back.  There is no code for encryption.
!
!     mpifort -o ring_f ring.f90
!     mpirun -n 4 --mca pml crypt ./ring_f secret.txt
program ring
    use mpi
    implicit none
    integer, parameter :: bytes = 4096
    character(len=bytes) :: text, received
    character(len=1024) :: path
    integer :: rank, ranks, left, right, error, unit
    integer :: status(MPI_STATUS_SIZE)
    logical :: good

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    right = mod(rank + 1, ranks)
    left = mod(rank + ranks - 1, ranks)
    good = .true.
    if (rank == 0) then
        call get_command_argument(1, path)
        open(newunit=unit, file=trim(path), action='read', status='old')
        read(unit, '(a)') text
        close(unit)
        call MPI_Sendrecv(text, bytes, MPI_CHARACTER, right, 0, received, bytes, MPI_CHARACTER, left, 0, &
                          MPI_COMM_WORLD, status, error)
        good = text == received .and. len_trim(text) > 0
        print '(i0,2a)', ranks, ' ranks: the message came back ', merge('as it was sent', 'CHANGED       ', good)
    else
        call MPI_Recv(received, bytes, MPI_CHARACTER, left, 0, MPI_COMM_WORLD, status, error)
        call MPI_Send(received, bytes, MPI_CHARACTER, right, 0, MPI_COMM_WORLD, error)
    end if
    call MPI_Finalize(error)
    if (.not. good) stop 1
end program ring
