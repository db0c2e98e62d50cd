dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
dnl
dnl The package calls libmpicrypt_file, which comes before it.
AC_DEFUN([OMPI_CRYPT_CONFIG_lib_python], [
    AS_CASE([" $OMPI_CRYPT_OTHER_SUBDIRS "],
            [*" lib/mpicrypt_file "*], [$1],
            [ompi_crypt_why="lib/mpicrypt_file is not built"
             $2])
])
