! Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
!
! Encryption maps of MPI files: include this after mpif.h or `use mpi`, in fixed
! or free form, and link with -lmpi_crypt.
!
!   call MPIX_FILE_SET_ENCRYPTION_MAP(fh, disp, etype, filetype, datarep, info, ierror)
!   call MPIX_FILE_GET_ENCRYPTION_REGIONS(fh, regions, ierror)
!   call MPIX_FILE_GET_ENCRYPTION_MAP(fh, region, disp, etype, filetype, datarep, info, ierror)
!
! disp is an integer(kind=MPI_OFFSET_KIND); region counts from 1.
      external MPIX_FILE_SET_ENCRYPTION_MAP
      external MPIX_FILE_GET_ENCRYPTION_REGIONS
      external MPIX_FILE_GET_ENCRYPTION_MAP
