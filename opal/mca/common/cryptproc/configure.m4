dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
dnl
dnl A process in its job: the core (common/crypt), OPAL, and the PMIx that OPAL uses.

AC_DEFUN([MCA_opal_common_cryptproc_CONFIG], [
    AC_CONFIG_FILES([opal/mca/common/cryptproc/Makefile])

    libmca_opal_common_cryptproc_so_version=0:0:0
    AC_SUBST([libmca_opal_common_cryptproc_so_version])

    common_cryptproc_happy=$common_crypt_happy
    AS_IF([test "$common_cryptproc_happy" = yes],
          [$1],
          [ompi_crypt_why="common/crypt is not built"
           $2])
])
