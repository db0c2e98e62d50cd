dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.

AC_DEFUN([MCA_opal_aead_sodium_CONFIG], [
    AC_CONFIG_FILES([opal/mca/aead/sodium/Makefile])

    aead_sodium_happy=no
    AC_CHECK_HEADER([sodium.h],
                    [AC_CHECK_LIB([sodium], [crypto_aead_aes256gcm_encrypt_detached_afternm],
                                  [aead_sodium_happy=yes
                                   aead_sodium_LIBS=-lsodium])])
    AC_SUBST([aead_sodium_LIBS])
    AS_IF([test $aead_sodium_happy = yes],
          [$1],
          [ompi_crypt_why="libsodium 1.0.9 or newer is missing (Debian: libsodium-dev)"
           $2])
])

dnl A provider is always a DSO: the symbols of two of them must never meet.
AC_DEFUN([MCA_opal_aead_sodium_COMPILE_MODE], [OMPI_CRYPT_ALWAYS_DSO([$4])])
