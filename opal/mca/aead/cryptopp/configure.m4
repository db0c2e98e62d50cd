dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.

dnl The only C++ in the project.  Open MPI's own configure may not have looked
dnl for a compiler of it.  Everything is linked by the C compiler.
AC_DEFUN([MCA_opal_aead_cryptopp_CONFIG], [
    AC_REQUIRE([AC_PROG_CXX])
    AC_CONFIG_FILES([opal/mca/aead/cryptopp/Makefile])

    aead_cryptopp_happy=no
    AS_IF([test -n "$CXX" && $CXX --version >/dev/null 2>&1],
          [AC_LANG_PUSH([C++])
           AC_MSG_CHECKING([for Crypto++])
           aead_cryptopp_save_LIBS=$LIBS
           LIBS="-lcryptopp $LIBS"
           AC_LINK_IFELSE([AC_LANG_PROGRAM([[
               #include <cryptopp/aes.h>
               #include <cryptopp/chachapoly.h>
               #include <cryptopp/gcm.h>
               ]], [[CryptoPP::GCM<CryptoPP::AES>::Encryption gcm; return CryptoPP::LibraryVersion() < 810;]])],
               [aead_cryptopp_happy=yes
                aead_cryptopp_LIBS="-lcryptopp -lstdc++"])
           LIBS=$aead_cryptopp_save_LIBS
           AC_MSG_RESULT([$aead_cryptopp_happy])
           AC_LANG_POP([C++])])
    AC_SUBST([aead_cryptopp_LIBS])
    AS_IF([test $aead_cryptopp_happy = yes],
          [$1],
          [ompi_crypt_why="Crypto++ 8.1 or newer, or a C++ compiler, is missing (Debian: libcrypto++-dev g++)"
           $2])
])

dnl A provider is always a DSO: the symbols of two of them must never meet.
AC_DEFUN([MCA_opal_aead_cryptopp_COMPILE_MODE], [OMPI_CRYPT_ALWAYS_DSO([$4])])
