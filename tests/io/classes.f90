! Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
!
! The classes of errors of encrypted files, from Fortran: three, and their texts begin with
! their names.
program classes
  use mpi
  implicit none
  include 'mpif-crypt.h'
  integer :: i, ierror, length, found(3)
  character(len=MPI_MAX_ERROR_STRING) :: text
  character(len=21), parameter :: names(3) = &
      [character(len=21) :: 'MPIX_ERR_CRYPT_TORN', 'MPIX_ERR_CRYPT_FORGED', 'MPIX_ERR_CRYPT_NO_KEY']

  call MPI_INIT(ierror)
  found = [MPIX_ERR_CRYPT_TORN(), MPIX_ERR_CRYPT_FORGED(), MPIX_ERR_CRYPT_NO_KEY()]
  do i = 1, 3
    call MPI_ERROR_STRING(found(i), text, length, ierror)
    if (index(text, trim(names(i)) // ': ') /= 1) then
      print *, names(i), ' is ', text
      error stop 1
    end if
  end do
  call MPI_FINALIZE(ierror)
end program classes
