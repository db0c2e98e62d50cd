dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
dnl
dnl The library needs the engine of encrypted files and the provider `openssl`.
AC_DEFUN([OMPI_CRYPT_CONFIG_lib_mpicrypt_file], [
    AC_CONFIG_FILES([lib/mpicrypt_file/mpicrypt_file.pc])
    AS_IF([test -n "$OMPI_CRYPT_MODULE_openssl" && test "$common_crypt_happy" = yes],
          [$1],
          [ompi_crypt_why="common/crypt or aead/openssl is not built"
           $2])
])
