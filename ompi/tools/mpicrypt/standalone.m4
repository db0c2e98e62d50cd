dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
dnl
dnl OpenSSL is for the naive row of `mpicrypt speed`, libfuse3 for `mpicrypt mount`.
AC_DEFUN([OMPI_CRYPT_CONFIG_ompi_tools_mpicrypt], [
    AC_CHECK_HEADER([openssl/evp.h],
                    [AC_CHECK_LIB([crypto], [EVP_CIPHER_CTX_new], [$1],
                                  [ompi_crypt_why="libcrypto is missing (Debian: libssl-dev)"
                                   $2])],
                    [ompi_crypt_why="openssl/evp.h is missing (Debian: libssl-dev)"
                     $2])
    ompi_crypt_fuse=no
    PKG_CHECK_MODULES([FUSE], [fuse3 >= 3.4],
        [AC_CHECK_HEADER([linux/openat2.h], [ompi_crypt_fuse=yes],
                         [ompi_crypt_without="$ompi_crypt_without; mount: linux/openat2.h is missing"])],
        [ompi_crypt_without="$ompi_crypt_without; mount: libfuse3 is missing (Debian: libfuse3-dev)"])
    AM_CONDITIONAL([OMPI_CRYPT_FUSE], [test $ompi_crypt_fuse = yes])
])
