! Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
!
! regions FILE: like regions.c, a plain header followed by encrypted data.
!
!     mpifort -o regions_f regions.f90 -lmpi_crypt     (-I and -L: docs/mpi-io.rst)
!     mpirun -n 4 --mca pml crypt ./regions_f FILE
program regions
    use mpi
    implicit none
    include 'mpif-crypt.h'
    integer, parameter :: header = 64, line = 1024
    character(len=line) :: mine, again
    character(len=header) :: head
    character(len=1024) :: path
    integer(kind=MPI_OFFSET_KIND) :: place
    integer :: rank, file, info, error, code
    integer :: status(MPI_STATUS_SIZE)

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call get_command_argument(1, path)
    write(mine, '(a,i0)') 'secret of rank ', rank

    call MPI_File_open(MPI_COMM_WORLD, trim(path), MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, error)
    call check(error, 'MPI_File_open')
    call MPI_Info_create(info, error)
    call MPI_Info_set(info, 'crypt_key_label', 'results', error)
    call MPI_Info_set(info, 'crypt_rest', 'plain', error)
    place = header
    call MPIX_FILE_SET_ENCRYPTION_MAP(file, place, MPI_BYTE, MPI_BYTE, 'native', info, error)
    call check(error, 'MPIX_FILE_SET_ENCRYPTION_MAP')
    call MPI_Info_free(info, error)

    if (rank == 0) then
        head = 'lines of 1024 bytes, one a rank, encrypted'
        place = 0
        call MPI_File_write_at(file, place, head, header, MPI_CHARACTER, status, error)
        call check(error, 'MPI_File_write_at')
    end if
    place = header + rank * line
    call MPI_File_write_at_all(file, place, mine, line, MPI_CHARACTER, status, error)
    call check(error, 'MPI_File_write_at_all')
    call MPI_File_read_at_all(file, place, again, line, MPI_CHARACTER, status, error)
    call check(error, 'MPI_File_read_at_all')
    call MPI_File_close(file, error)
    code = merge(0, 1, mine == again)
    if (rank == 0) print '(a)', merge('each read what it had written', 'each read SOMETHING ELSE     ', code == 0)
    call MPI_Finalize(error)
    if (code /= 0) stop 1
contains
    subroutine check(rc, call)
        integer, intent(in) :: rc
        character(len=*), intent(in) :: call
        integer :: ignored
        if (rc /= MPI_SUCCESS) then
            print '(2a,i0)', call, ': error ', rc
            call MPI_Abort(MPI_COMM_WORLD, 1, ignored)
        end if
    end subroutine check
end program regions
