dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.

AC_DEFUN([MCA_ompi_fs_crypt_CONFIG], [
    AC_CONFIG_FILES([ompi/mca/fs/crypt/Makefile])
    AS_IF([test -n "$common_crypt_LIBS"],
          [$1],
          [ompi_crypt_why="it needs common/crypt"
           $2])
])
