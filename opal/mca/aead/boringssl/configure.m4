dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.

dnl The library is never linked (aead_boringssl_library.c): its path goes into
dnl the provider, its headers are seen by the provider's files alone.
AC_DEFUN([MCA_opal_aead_boringssl_CONFIG], [
    AC_CONFIG_FILES([opal/mca/aead/boringssl/Makefile])
    AC_ARG_WITH([boringssl],
        [AS_HELP_STRING([--with-boringssl=DIR],
                        [BoringSSL in DIR/include and DIR/lib/libcrypto.so, for the provider of that name
                         (default: Debian's android-libboringssl-dev)])])

    aead_boringssl_happy=no
    aead_boringssl_multiarch=`$CC -print-multiarch 2>/dev/null`
    AS_CASE(["$with_boringssl"],
        [no], [aead_boringssl_include= aead_boringssl_found=],
        [''|yes], [aead_boringssl_include=/usr/include/android
                   aead_boringssl_found=`ls -d /usr/lib/$aead_boringssl_multiarch/android/libcrypto.so.[[0-9]]* 2>/dev/null | head -n 1`],
        [aead_boringssl_include=$with_boringssl/include
         aead_boringssl_found=`ls -d $with_boringssl/lib*/libcrypto.so 2>/dev/null | head -n 1`])

    aead_boringssl_CPPFLAGS="-isystem $aead_boringssl_include -DOPAL_AEAD_BORINGSSL_LIBRARY='\"$aead_boringssl_found\"'"
    AS_IF([test -n "$aead_boringssl_found"],
          [AC_MSG_CHECKING([for BoringSSL in $aead_boringssl_include and $aead_boringssl_found])
           aead_boringssl_save_CPPFLAGS=$CPPFLAGS
           aead_boringssl_save_LIBS=$LIBS
           CPPFLAGS="-isystem $aead_boringssl_include $CPPFLAGS"
           LIBS="$aead_boringssl_found $LIBS"
           AC_LINK_IFELSE([AC_LANG_PROGRAM([[
               #include <openssl/aead.h>
               #ifndef OPENSSL_IS_BORINGSSL
               #error other library
               #endif
               ]], [[return 0 == EVP_AEAD_CTX_seal_scatter(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);]])],
               [aead_boringssl_happy=yes])
           CPPFLAGS=$aead_boringssl_save_CPPFLAGS
           LIBS=$aead_boringssl_save_LIBS
           AC_MSG_RESULT([$aead_boringssl_happy])])
    AC_SUBST([aead_boringssl_CPPFLAGS])
    AS_IF([test $aead_boringssl_happy = yes],
          [$1],
          [ompi_crypt_why="BoringSSL is missing (Debian: android-libboringssl-dev; elsewhere --with-boringssl=DIR)"
           $2])
])

dnl A provider is always a DSO: the symbols of two of them must never meet.
AC_DEFUN([MCA_opal_aead_boringssl_COMPILE_MODE], [OMPI_CRYPT_ALWAYS_DSO([$4])])
