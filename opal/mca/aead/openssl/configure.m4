dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.

AC_DEFUN([MCA_opal_aead_openssl_CONFIG], [
    AC_CONFIG_FILES([opal/mca/aead/openssl/Makefile])

    aead_openssl_happy=no
    AC_CHECK_HEADER([openssl/evp.h],
                    [AC_CHECK_LIB([crypto], [EVP_CIPHER_fetch],
                                  [aead_openssl_happy=yes
                                   aead_openssl_LIBS=-lcrypto])])
    AC_SUBST([aead_openssl_LIBS])
    AS_IF([test $aead_openssl_happy = yes],
          [$1],
          [ompi_crypt_why="libcrypto of OpenSSL 3.0 or newer is missing (Debian: libssl-dev)"
           $2])
])

dnl A provider is always a DSO: the symbols of two of them must never meet.
AC_DEFUN([MCA_opal_aead_openssl_COMPILE_MODE], [OMPI_CRYPT_ALWAYS_DSO([$4])])
