dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.

AC_DEFUN([MCA_ompi_common_cryptmpi_CONFIG], [
    AC_CONFIG_FILES([ompi/mca/common/cryptmpi/Makefile])
    libmca_ompi_common_cryptmpi_so_version=0:0:0
    AC_SUBST([libmca_ompi_common_cryptmpi_so_version])
    AS_IF([test "$common_cryptproc_happy" = yes],
          [$1],
          [ompi_crypt_why="common/cryptproc is not built"
           $2])
])
