dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.

AC_DEFUN([MCA_ompi_common_cryptmpio_CONFIG], [
    AC_CONFIG_FILES([ompi/mca/common/cryptmpio/Makefile])
    libmca_ompi_common_cryptmpio_so_version=0:0:0
    AC_SUBST([libmca_ompi_common_cryptmpio_so_version])
    AS_IF([test -n "$common_crypt_LIBS"],
          [$1],
          [ompi_crypt_why="it needs common/crypt"
           $2])
])
