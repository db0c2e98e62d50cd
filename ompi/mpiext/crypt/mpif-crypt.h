! Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
!
! Encryption maps of MPI files: include this after mpif.h or `use mpi`, in fixed
! or free form, and link with -lmpi_crypt.
!
!   call MPIX_FILE_SET_ENCRYPTION_MAP(fh, disp, etype, filetype, datarep, info, ierror)
!   call MPIX_FILE_GET_ENCRYPTION_REGIONS(fh, regions, ierror)
!   call MPIX_FILE_GET_ENCRYPTION_MAP(fh, region, disp, etype, filetype, datarep, info, ierror)
!
!   MPIX_ERR_CRYPT_TORN(), MPIX_ERR_CRYPT_FORGED(), MPIX_ERR_CRYPT_NO_KEY(): integer functions,
!   classes of errors as MPI_ERROR_CLASS has them
!
! disp is an integer(kind=MPI_OFFSET_KIND); region counts from 1.
      external MPIX_FILE_SET_ENCRYPTION_MAP
      external MPIX_FILE_GET_ENCRYPTION_REGIONS
      external MPIX_FILE_GET_ENCRYPTION_MAP
      integer MPIX_ERR_CRYPT_TORN
      integer MPIX_ERR_CRYPT_FORGED
      integer MPIX_ERR_CRYPT_NO_KEY
      external MPIX_ERR_CRYPT_TORN
      external MPIX_ERR_CRYPT_FORGED
      external MPIX_ERR_CRYPT_NO_KEY
