dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.

AC_DEFUN([MCA_opal_btl_crypt_CONFIG], [
    AC_CONFIG_FILES([opal/mca/btl/crypt/Makefile])
    AS_IF([test "$common_cryptproc_happy" = yes],
          [$1],
          [ompi_crypt_why="it needs common/cryptproc"
           $2])
])
