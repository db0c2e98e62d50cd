dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
dnl
dnl OpenSSL is for the naive row of `mpicrypt speed`.
AC_DEFUN([OMPI_CRYPT_CONFIG_ompi_tools_mpicrypt], [
    AC_CHECK_HEADER([openssl/evp.h],
                    [AC_CHECK_LIB([crypto], [EVP_CIPHER_CTX_new], [$1],
                                  [ompi_crypt_why="libcrypto is missing (Debian: libssl-dev)"
                                   $2])],
                    [ompi_crypt_why="openssl/evp.h is missing (Debian: libssl-dev)"
                     $2])
])
